//! Two calibrations of one device: do they agree?

use crate::{Calibration, FigureKind};
use serde::{Deserialize, Serialize};

/// Main figures of two calibrations of an idle device lie within this share of each other.
pub const AGREEMENT_LIMIT: f64 = 0.05;

/// One figure of two calibrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Which figure.
    pub kind: FigureKind,
    /// The other one's median over this one's.
    pub ratio: f64,
    /// Whether they are within [`AGREEMENT_LIMIT`].
    pub agrees: bool,
    /// Where they are not: what is known of it.
    pub why: Option<String>,
}

impl Calibration {
    /// Each figure that both have.
    #[must_use]
    pub fn agreement(&self, other: &Calibration) -> Vec<Agreement> {
        let pairs = self.figures.iter().filter_map(|mine| {
            let theirs = other.figures.iter().find(|figure| figure.kind == mine.kind)?;
            let ratio = theirs.estimate.median / mine.estimate.median;
            let agrees = (ratio - 1.0).abs() <= AGREEMENT_LIMIT;
            let why = || match (&mine.estimate.reason, &theirs.estimate.reason) {
                (Some(reason), _) => format!("the first had not settled: {reason}"),
                (None, Some(reason)) => format!("the second had not settled: {reason}"),
                (None, None) if mine.at != theirs.at => format!("found at {} and at {}", mine.at, theirs.at),
                (None, None) => "both had settled: the device has changed in between".to_string(),
            };
            Some(Agreement { kind: mine.kind, ratio, agrees, why: (!agrees).then(why) })
        });
        pairs.collect()
    }
}
