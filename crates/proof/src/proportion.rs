//! The exact interval of a share: a number of hits of a number of trials.
//!
//! Clopper and Pearson 1934. At the lower end, that many hits or more have a chance of a/2; at the
//! upper end, that many or fewer have. The interval holds at every number of trials, which the
//! usual normal approximation does not near 0. In return it covers more often than its level
//! (Brown, Cai, DasGupta 2001). It is found by bisection on the sum of the binomial terms, at the
//! cost of one term for each hit and step. A closed form needs the incomplete beta function.

use crate::interval::Interval;

/// Halvings: beyond the digits of a double.
const STEPS: usize = 60;

/// Returns the interval of the share of `hits` in `trials`, at confidence 1 - `alpha`; from
/// 0 to 1 without trials.
///
/// # Panics
/// When there are more hits than trials.
pub fn interval(hits: usize, trials: usize, alpha: f64) -> Interval {
    assert!(hits <= trials);
    let low = if hits == 0 {
        0.0
    } else {
        // The chance of fewer hits falls as the probability grows.
        solve(|probability| at_most(hits - 1, trials, probability) > 1.0 - alpha / 2.0)
    };
    let high = if hits == trials {
        1.0
    } else {
        solve(|probability| at_most(hits, trials, probability) > alpha / 2.0)
    };
    Interval { low, high }
}

/// Returns the end of a condition that holds from 0 on.
fn solve(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the chance of at most `hits` hits.
pub fn at_most(hits: usize, trials: usize, probability: f64) -> f64 {
    if probability <= 0.0 {
        return 1.0;
    }
    terms(trials, probability).take(hits + 1).sum::<f64>().min(1.0)
}

/// Returns the chances of at most 0, 1, ... and `trials - 1` hits; the probability is above 0.
pub(crate) fn cumulative(trials: usize, probability: f64) -> Vec<f64> {
    let sums = terms(trials, probability).take(trials).scan(0.0, |sum, term| {
        *sum += term;
        Some(*sum)
    });
    sums.map(|sum: f64| sum.min(1.0)).collect()
}

/// Returns the chances of 0, 1, ... and `trials` hits, each from the one before it by logarithms.
fn terms(trials: usize, probability: f64) -> impl Iterator<Item = f64> {
    let (log_hit, log_miss) = (probability.ln(), (1.0 - probability).ln());
    let mut log_choose = 0.0;
    (0..=trials).map(move |hit| {
        if hit > 0 {
            log_choose += ((trials - hit + 1) as f64 / hit as f64).ln();
        }
        let misses = if hit == trials { 0.0 } else { (trials - hit) as f64 * log_miss };
        (log_choose + hit as f64 * log_hit + misses).exp()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // The ends of no hit are closed forms: 1 - (alpha/2)^(1/n).
        for (hits, trials, low, high) in [
            (0, 10, 0.0, 1.0 - 0.025_f64.powf(0.1)),
            (10, 10, 0.025_f64.powf(0.1), 1.0),
            (1, 10, 0.002_529, 0.445_016),
            (2, 40, 0.006_11, 0.169_19),
            (5, 100, 0.016_43, 0.112_83),
        ] {
            let found = interval(hits, trials, 0.05);
            assert!((found.low - low).abs() < 1e-4, "{hits} of {trials}: {found:?}");
            assert!((found.high - high).abs() < 1e-4, "{hits} of {trials}: {found:?}");
        }
    }

    #[test]
    fn a_share_without_a_trial_is_unknown_and_the_chances_sum_to_one() {
        assert_eq!(interval(0, 0, 0.05), Interval { low: 0.0, high: 1.0 });
        assert!((at_most(7, 7, 0.3) - 1.0).abs() < 1e-12);
        assert!((at_most(0, 2, 0.5) - 0.25).abs() < 1e-12);
        assert_eq!(cumulative(5, 0.3), (0..5).map(|hits| at_most(hits, 5, 0.3)).collect::<Vec<f64>>());
    }
}
