//! Claims of averages: `equal within 5% on average`.
//!
//! The family tests the average after the typical run and shares the claim's error with it, so a
//! claim of averages needs no test of its own. It holds if both are proved, and is never refuted,
//! because only the typical run is tested at its bound.
//!
//! An average within a margin also needs the slow runs that did not happen. If n runs had none, up
//! to `1 - level^(1/n)` of all may be slow, and [`SLOW_FACTOR`] bounds what each of them costs.
//! With 1% of one arm's runs at ten times the length, the mean is 9% higher; without this allowance
//! 70% of studies of 30 blocks called the averages equal.
//!
//! Limits: a run that takes longer than that is not covered, and no number of runs covers all.

use crate::definition::Expectation;
use plumb_proof::average::{RatioOfMeans, SlowSeen};
use plumb_proof::family::OnAverage;
use plumb_proof::verdict::{Better, Verdict};

/// Times the usual length that a slow run may take.
const SLOW_FACTOR: f64 = 10.0;

/// Test of the averages of a claim.
pub(super) struct AverageTest {
    pub(super) lies: Option<OnAverage>,
    pub(super) level: f64,
    pub(super) ratio: Option<RatioOfMeans>,
    pub(super) slow: Option<SlowSeen>,
    pub(super) better: Better,
}

impl AverageTest {
    /// Proves the expectation, of which the typical run has this verdict, of the average.
    ///
    /// # Errors
    /// A sentence: the reason why it is not proved.
    pub(super) fn proves(&self, expects: Expectation, verdict: &Verdict) -> Result<(), String> {
        let side = if self.better == Better::Lower { OnAverage::Below } else { OnAverage::Above };
        let is_shown = match (expects, verdict) {
            (Expectation::Equal { within }, Verdict::Equal { beside: Some(_), .. }) => {
                return self.is_within(Some(within), within);
            }
            (Expectation::NotSlower { by }, Verdict::NotSlower { .. }) => return self.is_within(None, by),
            (_, Verdict::Equal { beside: None, .. }) => true,
            (_, Verdict::Faster(_)) => self.lies == Some(side),
            (_, Verdict::Slower(_)) => self.lies.is_some_and(|lies| lies != side && lies != OnAverage::Open),
            _ => false,
        };
        is_shown.then_some(()).ok_or_else(|| "the average is not proved".to_string())
    }

    /// Proves that the average cost lies within a margin above, and one below if there is one, both
    /// in per cent, whatever slow runs did not happen.
    fn is_within(&self, below: Option<f64>, above: f64) -> Result<(), String> {
        let (Some(found), Some(slow)) = (self.ratio, self.slow) else {
            return Err("the average is not proved".to_string());
        };
        let unseen =
            |runs: usize| 1.0 + (SLOW_FACTOR - 1.0) * (1.0 - self.level.powf(1.0 / runs.max(1) as f64));
        // A rate of 95% is a cost of 1 / 0.95.
        let (ends, most) = match self.better {
            Better::Lower => (found.interval, 1.0 + above / 100.0),
            Better::Higher => (found.inverse().interval, 1.0 / (1.0 - above / 100.0)),
        };
        let is_below = ends.high * unseen(slow.treatment.runs) < most;
        let is_above =
            below.is_none_or(|below| ends.low * (1.0 + below / 100.0) > unseen(slow.reference.runs));
        if self.lies == Some(OnAverage::Within) && is_below && is_above {
            return Ok(());
        }
        // Half of the margin is left for the noise.
        let share = (most - 1.0) / 2.0 / (SLOW_FACTOR - 1.0);
        let runs = (self.level.ln() / (1.0 - share).ln()).ceil();
        Err(format!(
            "the average is not proved: slow runs that did not happen may take {SLOW_FACTOR} times as long, and about {runs} \
             runs of each arm without one rule them out"
        ))
    }
}
