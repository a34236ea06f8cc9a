//! Proof that two arms are as good as equal: small is not the same as absent,
//! and "no difference found" is neither.
//!
//! Two one-sided tests (Schuirmann 1987), each a sign-flip test about a margin:
//!
//! ```text
//! H-: effect <= -ln(1 + d)      H+: effect >= +ln(1 + d)      p = max(p-, p+)
//! ```
//!
//! Both must be rejected at alpha, and no correction is due because both are needed
//! (Berger 1982). The margin is the same distance on the logarithm to either side,
//! so that ratio and inverse ratio get the same answer; the lower end, 1/(1 + d), is a little
//! inside 1 - d.
//!
//! A difference and an equality can both be proved (a real 0.5% within 2%);
//! `verdict` then reports the equality. Limits: with few blocks the smallest p is
//! 1/2^n, so 5 blocks are the fewest; the margin must be chosen before the run.

use crate::permutation::{self, Statistic};
use serde::Serialize;

/// The two one-sided tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Equivalence {
    /// The margin d as a share: 0.02 is 2%.
    pub margin: f64,
    /// p against "faster by d or more" (the lower margin).
    pub p_lower: f64,
    /// p against "slower by d or more" (the upper margin).
    pub p_upper: f64,
    /// The larger of the two.
    pub p: f64,
}

/// Tests whether the log-ratios lie within the margin, a share above 0.
pub fn test(differences: &[f64], margin: f64, statistic: Statistic, seed: u64) -> Equivalence {
    assert!(margin > 0.0, "a margin of {margin} is never met");
    let bound = (1.0 + margin).ln();
    let p_lower = permutation::test(differences, -bound, statistic, seed).p_greater;
    let p_upper = permutation::test(differences, bound, statistic, seed).p_less;
    Equivalence { margin, p_lower, p_upper, p: p_lower.max(p_upper) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    fn rate(effect: f64, blocks: usize) -> f64 {
        let hits = (0..400)
            .filter(|seed| {
                let mut generator = Generator::new(*seed);
                let d: Vec<f64> = (0..blocks).map(|_| effect + 0.01 * generator.normal()).collect();
                test(&d, 0.02, Statistic::SignedRank, 0).p <= 0.05
            })
            .count();
        hits as f64 / 400.0
    }

    #[test]
    fn equal_arms_are_proved_equal_and_arms_at_the_margin_are_not() {
        assert!(rate(0.0, 12) > 0.95);
        assert!(rate(1.02f64.ln(), 12) < 0.08);
        assert!(rate(0.04, 12) == 0.0);
    }
}
