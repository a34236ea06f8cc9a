//! Removes the bias of being significant from an estimate.
//!
//! An effect is reported if its estimate exceeds some bound. Of effects near the bound those are
//! reported that looked large, so that a proved effect looks larger than it is. A true 1% in 8
//! blocks at s_d 4% is reported as 3.3% if proved (the winner's curse). The corrected estimate is
//! the effect under which the observed value is the median of the values that would have been
//! reported (after Zhong, Prentice 2008):
//!
//! ```text
//! P(X >= x | X >= c, effect m) = 1/2        X normal about m with the standard error s
//! ```
//!
//! Far beyond the bound it is x; near the bound it is less, and never below 0.
//!
//! Limits: the noise is assumed normal, and its spread known.

use crate::summary::normal_probability;

/// Halvings of the corrected estimate's range.
const STEPS: usize = 60;

/// Corrects an estimate, a log-ratio of either sign, for the condition that it is `critical`
/// standard errors or more from 0.
pub fn corrected(estimate: f64, error: f64, critical: f64) -> f64 {
    let (seen, bound) = (estimate.abs(), critical * error);
    let is_known = error > 0.0;
    if !is_known || seen <= bound {
        return if is_known { 0.0 } else { estimate };
    }
    let beyond = |value: f64, effect: f64| normal_probability((effect - value) / error);
    let share = |effect: f64| beyond(seen, effect) / beyond(bound, effect);
    let (mut low, mut high) = (0.0, seen);
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if share(middle) < 0.5 { low = middle } else { high = middle }
    }
    low.copysign(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn of_what_is_reported_half_is_corrected_to_more_than_the_truth() {
        let mut generator = Generator::new(6);
        for truth in [1.0, 2.0, 3.0] {
            let reported: Vec<f64> =
                (0..40_000).map(|_| truth + generator.normal()).filter(|seen| *seen > 1.96).collect();
            let above = reported.iter().filter(|seen| corrected(**seen, 1.0, 1.96) > truth).count();
            let share = above as f64 / reported.len() as f64;
            assert!((0.47..0.53).contains(&share), "{truth}: {share}");
        }
    }

    #[test]
    fn far_beyond_the_bound_nothing_is_taken_and_signs_stay() {
        assert!((corrected(-10.0, 1.0, 2.0) + 10.0).abs() < 1e-6);
        assert_eq!(corrected(2.0, 1.0, 2.0), 0.0);
        assert_eq!(corrected(0.3, 0.0, 2.0), 0.3);
    }
}
