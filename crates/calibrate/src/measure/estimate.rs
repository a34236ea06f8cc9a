//! A figure from repeats: median, interval, and settled or not.
//!
//! Repeats of a storage measurement are skewed and have outliers, so no distribution is assumed.
//! The median of n repeats is between the k-th smallest and the k-th largest with probability
//! ```text
//! 1 - 2 * P(Binomial(n, 1/2) < k)      n = 6: k = 1, 96.9%    n = 9: k = 2, 96.1%
//! ```
//!
//! The largest k with at least 95% gives the interval. Below six repeats no pair reaches 95% (n =
//! 3: 75%). Then the interval is the range of the repeats, marked as such.
//!
//! A figure is settled if its interval, as a share of the median, is within a limit. Unsettled
//! figures get further repeats, so an interval that settled late is somewhat too narrow, because
//! stopping depends on it. So the number of repeats is always part of the figure.
//!
//! Limits: the interval covers variation during this calibration, not from one day to the next. Two
//! calibrations can be compared for that.

use crate::plan::REPEATS_MIN;
use serde::{Deserialize, Serialize};

/// Least probability that an interval covers the median.
const CONFIDENCE: f64 = 0.95;

/// Kind of an interval, by the number of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interval {
    /// Smallest to largest: too few repeats for a confidence.
    Range,
    /// Order statistics that include the median with this probability.
    Confidence(f64),
}

/// A figure from repeats, with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub interval: Interval,
    pub repeats: usize,
    /// True if the interval is within the limit.
    pub settled: bool,
    /// Reason why it has not settled.
    pub reason: Option<String>,
}

impl Estimate {
    /// Estimates from repeats, which must agree within `limit` (a share of
    /// the median). `None` without repeats.
    pub fn of(values: &[f64], limit: f64) -> Option<Estimate> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (first, last) = (*sorted.first()?, *sorted.last()?);
        let repeats = sorted.len();
        let median = f64::midpoint(sorted[(repeats - 1) / 2], sorted[repeats / 2]);
        let (low, high, interval) = match order_statistics(repeats) {
            Some((rank, confidence)) => {
                (sorted[rank - 1], sorted[repeats - rank], Interval::Confidence(confidence))
            }
            None => (first, last, Interval::Range),
        };
        let width = if median == 0.0 { high - low } else { (high - low) / median.abs() };
        let reason = if repeats < REPEATS_MIN {
            Some(format!("{repeats} of at least {REPEATS_MIN} repeats"))
        } else if width > limit {
            let what = if interval == Interval::Range { "range" } else { "interval" };
            Some(format!(
                "{what} of {repeats} repeats is {:.0}% wide (limit {:.0}%)",
                width * 1e2,
                limit * 1e2
            ))
        } else {
            None
        };
        Some(Estimate { median, low, high, interval, repeats, settled: reason.is_none(), reason })
    }
}

/// Returns the rank from either end, and the probability that the median is between.
fn order_statistics(repeats: usize) -> Option<(usize, f64)> {
    let mut best = None;
    let mut below = 0.0;
    let mut probability = 0.5f64.powi(i32::try_from(repeats).ok()?);
    for rank in 1..=repeats / 2 {
        // After the addition, `below` is the probability of fewer than `rank` successes.
        below += probability;
        probability *= (repeats - rank + 1) as f64 / rank as f64;
        let confidence = 1.0 - 2.0 * below;
        if confidence < CONFIDENCE {
            break;
        }
        best = Some((rank, confidence));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64], median: f64, low: f64, high: f64) -> Estimate {
        let estimate = Estimate::of(values, 0.1).expect("there are values");
        assert_eq!((estimate.median, estimate.low, estimate.high), (median, low, high));
        estimate
    }

    #[test]
    fn few_repeats_give_their_range_under_its_own_name() {
        let estimate = check(&[102.0, 100.0, 104.0], 102.0, 100.0, 104.0);
        assert_eq!(estimate.interval, Interval::Range);
        assert!(estimate.settled);
    }

    #[test]
    fn six_repeats_have_confidence_and_nine_drop_an_outlier() {
        assert!(order_statistics(5).is_none());
        assert!(matches!(order_statistics(6), Some((1, c)) if (c - 0.96875).abs() < 1e-12));
        assert!(matches!(order_statistics(8), Some((1, _))));
        assert!(matches!(order_statistics(9), Some((2, c)) if (c - 0.9609375).abs() < 1e-12));
        let nine = [1.0, 100.0, 100.0, 101.0, 101.0, 101.0, 102.0, 102.0, 400.0];
        assert!(check(&nine, 101.0, 100.0, 102.0).settled);
    }

    #[test]
    fn what_scatters_is_not_settled_and_says_why() {
        let estimate = check(&[154.0, 1_353_418.0, 1_351_136.0], 1_351_136.0, 154.0, 1_353_418.0);
        assert_eq!(estimate.reason.as_deref(), Some("range of 3 repeats is 100% wide (limit 10%)"));
        let estimate = check(&[5.0, 5.0], 5.0, 5.0, 5.0);
        assert_eq!(estimate.reason.as_deref(), Some("2 of at least 3 repeats"));
        assert!(Estimate::of(&[], 0.1).is_none());
    }
}
