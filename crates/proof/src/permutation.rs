//! The exact sign-flip test of paired differences, its interval, and how few
//! blocks can prove anything.
//!
//! Under "the treatment does nothing" the sign of every block's difference was a
//! coin toss of the design (Fisher 1935). The p-value is the share of the 2^n sign
//! patterns whose statistic is at least as extreme as the one seen, two-sided:
//!
//! ```text
//! p = min(1, 2 * min(P(T <= seen), P(T >= seen)))     smallest: 2 / 2^n
//! ```
//!
//! Two statistics. `SignedRank` is what verdicts use; `signed_rank` says why.
//! `Mean` is the plain sum of the differences; studentising would change nothing,
//! because the sum of squares is the same under every flip. With it, flipping the
//! set A gives a sum at least as large exactly when the differences in A sum to 0
//! or less, so that the test counts subset sums. Half the blocks make one sorted
//! list, the other half another, and a walk through both counts the pairs
//! (Horowitz, Sahni 1974): 2^(n/2) steps instead of the 2^n of a Gray-code walk,
//! exact up to 32 blocks. Beyond, 9,999 seeded patterns; the pattern seen is
//! counted among them, so the test stays valid (Dwass 1957; Phipson, Smyth 2010) and
//! the standard error says how far p may be from the full count.
//!
//! The interval holds every shift the two-sided test does not reject. For the
//! mean it is found by bisection, since the tails are monotone in the shift
//! (they count subset means below it, Hartigan 1969).
//!
//! Limits: the hypothesis is about the signs. Differences whose noise is skewed
//! for a reason other than the treatment, such as a reference averaged over two runs
//! against a treatment run once, are not exchangeable; `effect` therefore
//! compares one run with one run.

use crate::interval::Interval;
use crate::random::Generator;
use crate::signed_rank;
use crate::summary::mean;

/// Blocks up to which the mean's test is a full count.
pub const EXACT_BLOCKS_MAX: usize = 32;
/// Sign patterns drawn beyond that.
pub const DRAWS: usize = 9_999;

/// What is flipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Ranks of the differences' sizes: robust, and the one verdicts rest on.
    SignedRank,
    /// The differences themselves.
    Mean,
}

/// How a p-value came about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// Every sign pattern was counted.
    Exact,
    /// A seeded sample of the patterns.
    MonteCarlo {
        /// Patterns drawn, the one seen not included.
        draws: usize,
        /// Standard error of the two-sided p.
        standard_error: f64,
    },
}

/// A test of "the shift is `against`".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The estimated shift: Hodges-Lehmann for ranks, the mean for the mean.
    pub estimate: f64,
    /// One-sided, for "the differences lie below the shift".
    pub p_less: f64,
    /// One-sided, for "the differences lie above the shift".
    pub p_greater: f64,
    /// Two-sided.
    pub p: f64,
    /// Blocks used.
    pub blocks: usize,
    /// Whether p is a count or a sample.
    pub precision: Precision,
}

/// The smallest two-sided p that so many blocks can give: 2 / 2^n.
pub fn smallest_p(blocks: usize) -> f64 {
    (1.0 - blocks as f64).exp2().min(1.0)
}

/// The fewest blocks with which one of so many claims can be proved at all:
/// the smallest n with 2 / 2^n <= alpha / claims. 6, 9, 10, 12 blocks for 1, 10,
/// 20, 100 claims at 5%.
pub fn blocks_needed(alpha: f64, claims: usize) -> usize {
    assert!(alpha > 0.0 && alpha < 1.0, "alpha {alpha} is no probability of error");
    let level = alpha / claims.max(1) as f64;
    (1..).find(|blocks| smallest_p(*blocks) <= level).unwrap_or(usize::MAX)
}

/// Tests whether the differences lie about `against`. The seed matters only
/// to the mean of more than `EXACT_BLOCKS_MAX` blocks.
pub fn test(differences: &[f64], against: f64, statistic: Statistic, seed: u64) -> Test {
    let (estimate, less, greater) = match statistic {
        Statistic::SignedRank => {
            let tails = signed_rank::tails(differences, against);
            (signed_rank::estimate(differences), tails.less, tails.greater)
        }
        Statistic::Mean => {
            let (less, greater) = mean_tails(differences, against, seed);
            (mean(differences), less, greater)
        }
    };
    let p = (2.0 * less.min(greater)).min(1.0);
    let sampled = statistic == Statistic::Mean && differences.len() > EXACT_BLOCKS_MAX;
    let precision = if sampled {
        let one_sided = less.min(greater);
        let standard_error = 2.0 * (one_sided * (1.0 - one_sided) / (DRAWS + 1) as f64).sqrt();
        Precision::MonteCarlo { draws: DRAWS, standard_error }
    } else {
        Precision::Exact
    };
    Test { estimate, p_less: less, p_greater: greater, p, blocks: differences.len(), precision }
}

/// Every shift that `test` does not reject at the two-sided level `alpha`.
pub fn interval(differences: &[f64], alpha: f64, statistic: Statistic, seed: u64) -> Interval {
    match statistic {
        Statistic::SignedRank => signed_rank::interval(differences, alpha),
        Statistic::Mean => mean_interval(differences, alpha, seed),
    }
}

fn mean_interval(differences: &[f64], alpha: f64, seed: u64) -> Interval {
    let low = differences.iter().copied().fold(f64::INFINITY, f64::min);
    let high = differences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if differences.is_empty() || smallest_p(differences.len()) > alpha {
        return Interval::UNBOUNDED;
    }
    let too_low = |shift: f64| mean_tails(differences, shift, seed).1 <= alpha / 2.0;
    let too_high = |shift: f64| mean_tails(differences, shift, seed).0 <= alpha / 2.0;
    let centre = mean(differences);
    Interval { low: boundary(low, centre, too_low), high: boundary(high, centre, too_high) }
}

/// Between a rejected and an accepted shift, the last one rejected to within 1e-9
/// of their distance.
pub(crate) fn boundary(rejected: f64, accepted: f64, rejects: impl Fn(f64) -> bool) -> f64 {
    let (mut outside, mut inside) = (rejected, accepted);
    for _ in 0..30 {
        let middle = (outside + inside) / 2.0;
        if rejects(middle) {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    outside
}

/// P(T <= seen) and P(T >= seen) for the sum of `differences - against`.
fn mean_tails(differences: &[f64], against: f64, seed: u64) -> (f64, f64) {
    let shifted: Vec<f64> = differences.iter().map(|difference| difference - against).collect();
    if shifted.len() <= EXACT_BLOCKS_MAX { counted_tails(&shifted) } else { sampled_tails(&shifted, seed) }
}

/// Sums closer to 0 than this are ties broken by rounding: they count as extreme.
fn tie_width(values: &[f64]) -> f64 {
    1e-12 * values.iter().map(|value| value.abs()).sum::<f64>()
}

/// Counts the subsets with a sum of at most and of at least 0.
fn counted_tails(values: &[f64]) -> (f64, f64) {
    let (left, right) = values.split_at(values.len() / 2);
    let (left, right) = (subset_sums(left), subset_sums(right));
    let tie = tie_width(values);
    let (mut at_most, mut at_least) = (0u64, 0u64);
    let (mut upper, mut lower) = (right.len(), right.len());
    // As the left sum grows, fewer right sums keep the total at most 0 ...
    for sum in &left {
        while upper > 0 && sum + right[upper - 1] > tie {
            upper -= 1;
        }
        // ... and more bring it to at least 0.
        while lower > 0 && sum + right[lower - 1] >= -tie {
            lower -= 1;
        }
        at_most += upper as u64;
        at_least += (right.len() - lower) as u64;
    }
    let all = (values.len() as f64).exp2();
    (at_least as f64 / all, at_most as f64 / all)
}

/// Sums of all subsets in ascending order: each value doubles the list by a merge.
fn subset_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for &value in values {
        let moved: Vec<f64> = sums.iter().map(|sum| sum + value).collect();
        let mut merged = Vec::with_capacity(2 * sums.len());
        let (mut stay, mut go) = (sums.iter().peekable(), moved.iter().peekable());
        while let Some(next) = match (stay.peek(), go.peek()) {
            (Some(a), Some(b)) if a <= b => stay.next(),
            (_, Some(_)) => go.next(),
            (_, None) => stay.next(),
        } {
            merged.push(*next);
        }
        sums = merged;
    }
    sums
}

fn sampled_tails(values: &[f64], seed: u64) -> (f64, f64) {
    let mut generator = Generator::new(seed);
    let tie = tie_width(values);
    let (mut at_most, mut at_least) = (1usize, 1usize);
    for _ in 0..DRAWS {
        let mut sum = 0.0;
        for chunk in values.chunks(64) {
            let flips = generator.bits();
            sum += chunk
                .iter()
                .enumerate()
                .filter(|(bit, _)| flips >> bit & 1 == 1)
                .map(|(_, v)| v)
                .sum::<f64>();
        }
        at_most += usize::from(sum <= tie);
        at_least += usize::from(sum >= -tie);
    }
    let all = (DRAWS + 1) as f64;
    (at_least as f64 / all, at_most as f64 / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn brute(values: &[f64]) -> (f64, f64) {
        let all = 1usize << values.len();
        let sum = |flips: usize| -> f64 {
            values.iter().enumerate().map(|(i, v)| if flips >> i & 1 == 1 { -v } else { *v }).sum()
        };
        let seen = sum(0);
        let less = (0..all).filter(|flips| sum(*flips) <= seen + 1e-9).count();
        let greater = (0..all).filter(|flips| sum(*flips) >= seen - 1e-9).count();
        (less as f64 / all as f64, greater as f64 / all as f64)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_mean_test_equals_enumeration(steps in prop::collection::vec(-5i32..6, 1..11)) {
            let values: Vec<f64> = steps.iter().map(|step| f64::from(*step) / 8.0).collect();
            let (less, greater) = brute(&values);
            let test = test(&values, 0.0, Statistic::Mean, 0);
            prop_assert!((test.p_less - less).abs() < 1e-12, "{} {less}", test.p_less);
            prop_assert!((test.p_greater - greater).abs() < 1e-12);
        }

        #[test]
        fn the_mean_interval_agrees_with_its_test(seed in 0u64..2_000, blocks in 6usize..16) {
            let mut generator = Generator::new(seed);
            let values: Vec<f64> = (0..blocks).map(|_| generator.normal() + 0.6).collect();
            let rejected = test(&values, 0.0, Statistic::Mean, 1).p <= 0.05;
            prop_assert_eq!(rejected, !interval(&values, 0.05, Statistic::Mean, 1).contains(0.0));
        }
    }

    #[test]
    fn no_p_is_below_what_the_blocks_can_give() {
        for blocks in 1..12 {
            let values: Vec<f64> = (1..=blocks).map(|step| step as f64).collect();
            for statistic in [Statistic::SignedRank, Statistic::Mean] {
                let p = test(&values, 0.0, statistic, 0).p;
                assert!((p - smallest_p(blocks)).abs() < 1e-12, "{blocks} blocks, {statistic:?}: {p}");
            }
        }
    }

    #[test]
    fn blocks_needed_grow_with_the_claims() {
        let needed = [1, 10, 20, 100].map(|claims| blocks_needed(0.05, claims));
        assert_eq!(needed, [6, 9, 10, 12]);
    }

    #[test]
    fn a_sample_of_the_patterns_agrees_with_the_count() {
        let mut generator = Generator::new(5);
        let values: Vec<f64> = (0..30).map(|_| generator.normal() + 0.3).collect();
        let (exact, sampled) = (counted_tails(&values), sampled_tails(&values, 11));
        assert!((exact.0 - sampled.0).abs() < 0.02);
        assert!((exact.1 - sampled.1).abs() < 0.01, "{exact:?} {sampled:?}");
        let many: Vec<f64> = (0..40).map(|_| generator.normal()).collect();
        let test = test(&many, 0.0, Statistic::Mean, 3);
        assert!(
            matches!(test.precision, Precision::MonteCarlo { standard_error, .. } if standard_error < 0.02)
        );
    }

    #[test]
    fn five_blocks_bound_nothing() {
        assert_eq!(interval(&[1.0; 5], 0.05, Statistic::Mean, 0), Interval::UNBOUNDED);
        assert_eq!(interval(&[1.0; 5], 0.05, Statistic::SignedRank, 0), Interval::UNBOUNDED);
    }
}
