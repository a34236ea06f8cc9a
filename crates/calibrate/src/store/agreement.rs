//! Agreement of two calibrations of one device.

use crate::{Calibration, FigureKind};
use serde::{Deserialize, Serialize};

/// Largest difference of main figures on an idle device, as a share.
pub const AGREEMENT_LIMIT: f64 = 0.05;

/// One figure of two calibrations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    pub kind: FigureKind,
    /// Median of the other calibration over that of this one.
    pub ratio: f64,
    /// True if the medians are within [`AGREEMENT_LIMIT`].
    pub agrees: bool,
    /// Reason of a difference beyond the limit.
    pub why: Option<Disagreement>,
}

/// Reason why a figure of two calibrations differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Disagreement {
    /// Both had settled, at the same point.
    DeviceChanged,
    /// The best was found at another depth, or with another number of threads.
    FoundElsewhere,
    /// One of the two had not settled: its record has the reason.
    Unsettled,
}

impl Disagreement {
    pub const fn name(self) -> &'static str {
        match self {
            Disagreement::DeviceChanged => "both had settled, the device has changed in between",
            Disagreement::FoundElsewhere => "both had settled, at other points",
            Disagreement::Unsettled => "one of the two had not settled",
        }
    }
}

impl Calibration {
    /// Compares each figure that both have.
    pub fn agreement(&self, other: &Calibration) -> Vec<Agreement> {
        let pairs = self.figures.iter().filter_map(|mine| {
            let theirs = other.figures.iter().find(|figure| figure.kind == mine.kind)?;
            let ratio = theirs.estimate.median / mine.estimate.median;
            let agrees = (ratio - 1.0).abs() <= AGREEMENT_LIMIT;
            let why = || match (mine.estimate.settled && theirs.estimate.settled, mine.at == theirs.at) {
                (false, _) => Disagreement::Unsettled,
                (true, false) => Disagreement::FoundElsewhere,
                (true, true) => Disagreement::DeviceChanged,
            };
            Some(Agreement { kind: mine.kind, ratio, agrees, why: (!agrees).then(why) })
        });
        pairs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calibration;

    #[test]
    fn two_calibrations_that_differ_say_why() {
        let (first, mut second) = (calibration(), calibration());
        for figure in &mut second.figures {
            figure.estimate.median *= 1.2;
        }
        let found = first.agreement(&second);
        assert!(found.iter().all(|agreement| !agreement.agrees));
        assert_eq!(found[0].why, Some(Disagreement::DeviceChanged));
        assert_eq!(found[2].why, Some(Disagreement::Unsettled));
        second.figures[0].at = "elsewhere".to_string();
        assert_eq!(first.agreement(&second)[0].why, Some(Disagreement::FoundElsewhere));
    }
}
