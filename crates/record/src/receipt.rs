//! Receipts: evidence that a setting took effect, with the source of it.

use serde::{Deserialize, Serialize};

/// Evidence, from outside the code that applied a setting, that it took effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub setting: String,
    pub asked: String,
    /// Observations of the run, in a sentence.
    pub evidence: String,
    /// Conclusion from the evidence for the setting.
    pub held: Held,
    #[serde(default, skip_serializing_if = "Seen::is_outside")]
    pub seen: Seen,
}

/// A figure of a receipt from outside the program. Where it is alike in two arms, the setting
/// made no difference there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReceiptReading {
    pub setting: String,
    /// The figure, in a unit of the setting's own.
    pub value: f64,
    /// The largest difference that counts as none, in the same unit.
    pub step: f64,
}

/// Source of the evidence for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Only the request is known.
    Asked,
    /// The program that received the setting reports it.
    Inside,
    /// The kernel or the disk shows it; older records have only this value.
    #[default]
    Outside,
}

impl Seen {
    /// True for the default, which records omit.
    pub fn is_outside(&self) -> bool {
        *self == Seen::Outside
    }

    /// Returns the source of such evidence in a few words.
    pub fn words(&self) -> &'static str {
        match self {
            Seen::Asked => "the request alone",
            Seen::Inside => "the program's own word",
            Seen::Outside => "the kernel or the disk",
        }
    }
}

/// Conclusion from the evidence for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    Held,
    /// The setting did not take effect: the run is invalid.
    Contradicted,
    NotChecked,
}
