//! Receipts: evidence that a setting took effect, with the source of it.
//!
//! Every kind of target judges its settings by a [`Ruling`]: an observation, its source, what
//! follows from it, and a figure by which the runs of two arms are compared. [`Receipts`] makes the
//! rows of a record of them.

use serde::{Deserialize, Serialize};

/// Between two readings that are counts or truth values.
const BETWEEN_COUNTS: f64 = 0.5;

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

/// Ruling on a setting: an observation of the run, and what follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    /// The observation, in a sentence.
    pub evidence: String,
    pub held: Held,
    pub seen: Seen,
    /// The figure by which this evidence is compared with that of another run.
    pub reading: Option<Shift>,
}

/// A figure, and the largest difference that counts as none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub value: f64,
    pub step: f64,
}

impl Ruling {
    /// Makes a ruling by what is seen outside the program, without a reading.
    pub fn that(held: impl Into<Held>, evidence: impl Into<String>) -> Ruling {
        Ruling { evidence: evidence.into(), held: held.into(), seen: Seen::Outside, reading: None }
    }

    pub fn held(evidence: impl Into<String>) -> Ruling {
        Ruling::that(Held::Held, evidence)
    }

    pub fn contradicted(evidence: impl Into<String>) -> Ruling {
        Ruling::that(Held::Contradicted, evidence)
    }

    pub fn unknown(evidence: impl Into<String>) -> Ruling {
        Ruling::that(Held::NotChecked, evidence)
    }

    /// Adds a reading, and the largest difference that counts as none.
    #[must_use]
    pub fn shift(self, value: f64, step: f64) -> Ruling {
        Ruling { reading: Some(Shift { value, step }), ..self }
    }

    /// Adds a count as the reading; another count is another treatment.
    #[must_use]
    pub fn counted(self, value: u64) -> Ruling {
        self.shift(value as f64, BETWEEN_COUNTS)
    }

    /// Makes the receipt of evidence that the program gives of itself.
    pub fn inside(self, setting: impl Into<String>, asked: impl Into<String>) -> Receipt {
        Ruling { seen: Seen::Inside, ..self }.receipt(setting, asked)
    }

    /// Makes the receipt of a setting, with its value as it was asked for.
    pub fn receipt(self, setting: impl Into<String>, asked: impl Into<String>) -> Receipt {
        let Ruling { evidence, held, seen, .. } = self;
        Receipt { setting: setting.into(), asked: asked.into(), evidence, held, seen }
    }
}

/// Receipts of a run, with their readings.
#[derive(Debug, Default)]
pub struct Receipts {
    pub receipts: Vec<Receipt>,
    pub readings: Vec<ReceiptReading>,
}

impl Receipts {
    /// Adds the ruling on a setting.
    pub fn add(&mut self, setting: &str, asked: impl Into<String>, ruling: Ruling) {
        let reading = |Shift { value, step }| ReceiptReading { setting: setting.to_string(), value, step };
        self.readings.extend(ruling.reading.map(reading));
        self.receipts.push(ruling.receipt(setting, asked));
    }
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

impl From<bool> for Held {
    /// Held where the evidence agrees with the setting, otherwise contradicted.
    fn from(agrees: bool) -> Held {
        if agrees { Held::Held } else { Held::Contradicted }
    }
}

impl From<Option<bool>> for Held {
    /// Not checked where the evidence is not conclusive.
    fn from(agrees: Option<bool>) -> Held {
        agrees.map_or(Held::NotChecked, Held::from)
    }
}
