//! Many figures in one table: a single step, whose intervals hold together; and Holm's step-down. A
//! study's claims are judged by `family`, which steps down, too, and asks more than one thing of a
//! claim.
//!
//! With m claims and p-values in ascending order p(1)..p(m), claim (i) is proved while p(j) <=
//! alpha / (m - j + 1) for all j <= i (Holm 1979). The chance that any true "no difference" is
//! called proved is at most alpha, however the claims depend on each other, which they do: all
//! share one reference arm. The adjusted p is the running maximum of (m - j + 1) p(j), to be held
//! against alpha itself.
//!
//! Why not Bonferroni: Holm proves all that it proves and more, at the same error. Why not a
//! false-discovery rate: a verdict is read alone, and each must hold.
//!
//! Intervals. No bounded interval comes free with Holm's extra proofs (Guilbaud 2008; Strassburger,
//! Bretz 2008). So there are two levels a claim:
//! - `level`: the level at which the step-down tested the claim. Its interval excludes 0 exactly
//!   when the claim is proved, so the printed line never contradicts itself; but for ties among the
//!   differences, where a p may pass and the interval, a closed one, end at 0: such a claim is not
//!   proved. Jointly they guarantee no false exclusion of 0 (that is Holm's theorem), and each
//!   alone covers with 1 - level.
//! - `simultaneous_level`: alpha / m, at which all m intervals cover together.

/// What the step-down says of one claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Smallest family error at which the claim would be proved.
    pub adjusted_p: f64,
    /// Whether it is proved.
    pub outcome: Outcome,
    /// Two-sided level at which the claim was tested: its interval uses it.
    pub level: f64,
    /// Level of intervals that hold all together.
    pub simultaneous_level: f64,
}

/// Proved or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// p is small enough at its step, and at every step before it.
    Proved,
    /// It is not, or an earlier one was not.
    NotProved,
}

/// Bonferroni's: each at alpha / m, where intervals at that level hold together and never say
/// anything else than the tests do.
pub fn single_step(p_values: &[f64], alpha: f64) -> Vec<Step> {
    let level = alpha / p_values.len().max(1) as f64;
    let step = |p: &f64| {
        let outcome = if *p <= level { Outcome::Proved } else { Outcome::NotProved };
        // p * m may come out a rounding above alpha.
        let most = if outcome == Outcome::Proved { alpha } else { 1.0 };
        let adjusted_p = (p * p_values.len() as f64).min(most);
        Step { adjusted_p, outcome, level, simultaneous_level: level }
    };
    p_values.iter().map(step).collect()
}

/// Holm's procedure; the answers come in the order of the p-values given.
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
            // left * (alpha / left) may come out a rounding above alpha.
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
