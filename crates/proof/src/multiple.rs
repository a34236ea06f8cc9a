//! Several figures in one table: a single step, whose intervals hold together, and Holm's
//! step-down. `family` judges a study's claims: it steps down too, and tests more than
//! one hypothesis for each claim.
//!
//! With m claims and p-values in ascending order p(1)..p(m), claim (i) is proved while p(j) <=
//! alpha / (m - j + 1) for all j <= i (Holm 1979). The chance that any true "no difference" is
//! called proved is at most alpha, however the claims depend on each other. They do, because
//! all share one reference arm. The adjusted p is the running maximum of (m - j + 1) p(j), to
//! be compared with alpha itself.
//!
//! Why not Bonferroni: Holm proves all that it proves and more, at the same error. Why not a
//! false-discovery rate: a verdict is read on its own, and each must hold.
//!
//! Intervals. No bounded interval is compatible with Holm's extra proofs (Guilbaud 2008;
//! Strassburger, Bretz 2008). So each claim has two levels:
//! - `level`: the level at which the step-down tested the claim. Its interval excludes 0 exactly if
//!   the claim is proved, so the printed line never contradicts itself. The exception is ties among
//!   the differences: a p may pass while the closed interval ends at 0; such a claim is not proved.
//!   Jointly these intervals guarantee no false exclusion of 0 (Holm's theorem); each alone covers
//!   with 1 - level.
//! - `simultaneous_level`: alpha / m, at which all m intervals cover together.

/// Result of the step-down for one claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Smallest family error at which the claim would be proved.
    pub adjusted_p: f64,
    /// Proved, or not proved, at its step.
    pub outcome: Outcome,
    /// Two-sided level at which the claim was tested, also used by its interval.
    pub level: f64,
    /// Level of intervals that hold all together.
    pub simultaneous_level: f64,
}

/// Decision of the step-down for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// p is small enough at its step and at every step before it.
    Proved,
    /// p is too large at its step or at an earlier one.
    NotProved,
}

/// Tests each claim at alpha / m (Bonferroni). Intervals at that level hold together and
/// always agree with the tests.
pub fn single_step(p_values: &[f64], alpha: f64) -> Vec<Step> {
    let level = alpha / p_values.len().max(1) as f64;
    let step = |p: &f64| {
        let outcome = if *p <= level { Outcome::Proved } else { Outcome::NotProved };
        // p * m may be a rounding error above alpha.
        let most = if outcome == Outcome::Proved { alpha } else { 1.0 };
        let adjusted_p = (p * p_values.len() as f64).min(most);
        Step { adjusted_p, outcome, level, simultaneous_level: level }
    };
    p_values.iter().map(step).collect()
}

/// Steps down by Holm's procedure; the answers are in the order of the given p-values.
pub fn holm(p_values: &[f64], alpha: f64) -> Vec<Step> {
    let claims = p_values.len();
    let mut ascending: Vec<usize> = (0..claims).collect();
    ascending.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let simultaneous_level = alpha / claims.max(1) as f64;
    let blank = Step { adjusted_p: 1.0, outcome: Outcome::NotProved, level: alpha, simultaneous_level };
    let mut steps = vec![blank; claims];
    let (mut largest, mut stopped_at) = (0.0f64, None);
    for (rank, &claim) in ascending.iter().enumerate() {
        let left = (claims - rank) as f64;
        largest = largest.max((left * p_values[claim]).min(1.0));
        // Compared as p <= alpha / left, so that 0.01 <= 0.05 / 5 is not lost to rounding.
        if stopped_at.is_none() && p_values[claim] > alpha / left {
            stopped_at = Some(left);
        }
        steps[claim] = Step {
            // left * (alpha / left) may be a rounding error above alpha.
            adjusted_p: if stopped_at.is_none() { largest.min(alpha) } else { largest },
            outcome: if stopped_at.is_none() { Outcome::Proved } else { Outcome::NotProved },
            level: alpha / stopped_at.unwrap_or(left),
            simultaneous_level,
        };
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_worked_example() {
        // Sorted: 0.005 <= .05/4, 0.01 <= .05/3, 0.03 > .05/2: two are proved.
        let steps = holm(&[0.01, 0.04, 0.03, 0.005], 0.05);
        let adjusted: Vec<f64> = steps.iter().map(|step| step.adjusted_p).collect();
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{adjusted:?}");
        }
        let proved: Vec<bool> = steps.iter().map(|step| step.outcome == Outcome::Proved).collect();
        assert_eq!(proved, [true, false, false, true]);
        let levels: Vec<f64> = steps.iter().map(|step| step.level).collect();
        assert_eq!(levels, [0.05 / 3.0, 0.025, 0.025, 0.0125]);
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn a_p_at_its_own_level_is_proved_and_says_so() {
        for claims in 1..40 {
            let levels: Vec<f64> = (1..=claims).rev().map(|left| 0.05 / left as f64).collect();
            let steps = holm(&levels, 0.05);
            assert!(steps.iter().all(|step| step.outcome == Outcome::Proved && step.adjusted_p <= 0.05));
        }
    }

    proptest! {
        #[test]
        fn level_outcome_and_adjusted_p_say_the_same(p in prop::collection::vec(0.0f64..0.2, 1..12)) {
            for (step, p) in holm(&p, 0.05).iter().zip(&p) {
                prop_assert_eq!(step.outcome == Outcome::Proved, *p <= step.level);
                if (step.adjusted_p - 0.05).abs() > 1e-9 {
                    prop_assert_eq!(step.outcome == Outcome::Proved, step.adjusted_p <= 0.05);
                }
                prop_assert!(step.level >= step.simultaneous_level);
            }
        }
    }
}
