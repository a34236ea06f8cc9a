//! The test of a claim: how often would the design's own lotteries have shown as much?
//!
//! Two one-sided p, and the larger of them counts.
//!
//! *The lotteries.* If the treatment only shifts every logarithm by `against`, then with that taken out the runs of a
//! lottery could have come out in any order, so that each of them was as likely to be the lone one (Fisher 1935). Runs
//! are put about the mean of their lottery, ranked over all of them, and given normal scores (van der Waerden 1952):
//!
//! ```text
//! W = sum over lotteries of the lone run's score      p = share of all draws with a W at least as large
//! ```
//!
//! Scores are whole numbers, so that the distribution of W follows by adding one lottery after the other: every draw is
//! counted, none is sampled, no noise is assumed. Drift, bursts, tails, autocorrelation: exact.
//!
//! *Student's t over blocks*, of the same scores: the mean of a block's scores over its standard error, with n - 2
//! degrees of freedom. The lotteries alone answer a narrower question: they ask for an effect that is the same in every
//! block. Where it varies about nothing, they reject in 9% to 14% of studies (s_d and twice s_d, 6 to 24 blocks), and t, which
//! measures the variation, in 4% to 5%. One degree less than usual, because scores are bounded: with n - 1 it was 6.3% at
//! 6 blocks. The larger p of the two is right where either is.
//!
//! Why normal scores: on normal noise they lose nothing against the means themselves, and on any other noise they need no
//! more blocks (Chernoff, Savage 1958). With stalls in a tenth of all runs a 5% effect at s_d 3% was found by 18 blocks in 98%
//! of studies, by means in 74%. Why not the signed ranks of blocks: 6 blocks have 64 patterns of signs, and 729 of
//! threes; what took 34 blocks takes 24.
//!
//! Ranks say nothing of how far apart runs lie once every lone run is beyond all others. There t of the effects themselves may
//! speak as well: that happens by chance in less than the smallest p that the lotteries have.
//!
//! The interval holds every shift that the test does not reject. The estimate is the median of block
//! pairs' means, always inside.
//!
//! Limits: six blocks at least, however large the effect, since the spread of fewer says too little. Lotteries of blocks
//! that were left out, because a run of them crashed, are not counted: which blocks crash may depend on the treatment.

use crate::contrast::{Contrast, Lottery};
use crate::interval::Interval;
use crate::student;
use crate::summary::{doubled_ranks, normal_score};

/// The fewest blocks that prove anything.
pub const BLOCKS_MIN: usize = 6;
/// What a normal score is multiplied by before it is rounded.
const SCALE: f64 = 32.0;
/// The most that all scores together may span, so that the sum stays cheap; many lotteries get coarser scores.
const SPAN_MAX: f64 = 12_000.0;
/// Halvings of an interval's ends.
const STEPS: usize = 30;

/// The fewest blocks with which one of so many claims can be proved at all by pairs of runs, of which n blocks have
/// no smaller p than 2 / 2^n: 6, 9, 10, 12 blocks for 1, 10, 20, 100 claims at 5%. Threes of runs need fewer, but never
/// less than `BLOCKS_MIN`.
pub fn blocks_needed(alpha: f64, claims: usize) -> usize {
    assert!(alpha > 0.0 && alpha < 1.0, "alpha {alpha} is no probability of error");
    fewest_blocks(0.5, alpha / claims.max(1) as f64)
}

/// The fewest blocks at a two-sided level when each multiplies the smallest one-sided p by `share`.
pub fn fewest_blocks(share: f64, level: f64) -> usize {
    let needed = ((level / 2.0).ln() / share.ln() - 1e-9).ceil();
    if needed.is_finite() { BLOCKS_MIN.max(needed as usize) } else { usize::MAX }
}

/// One-sided p of both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tails {
    /// Small when the effect lies below the shift.
    pub less: f64,
    /// Small when it lies above it.
    pub greater: f64,
}

impl Tails {
    /// What says nothing.
    pub const NONE: Self = Self { less: 1.0, greater: 1.0 };

    /// The two-sided p.
    pub fn two_sided(&self) -> f64 {
        (2.0 * self.less.min(self.greater)).min(1.0)
    }
}

/// Tests whether the effect is `against`, a log-ratio.
pub fn tails(contrast: &Contrast, against: f64) -> Tails {
    if contrast.blocks() < BLOCKS_MIN {
        return Tails::NONE;
    }
    let scored = Scored::of(contrast, against);
    let drawn = scored.by_draws();
    let mut ranges = Ranges::EMPTY;
    contrast.lotteries().iter().flatten().for_each(|lottery| ranges.take(lottery, against));
    let effects: Vec<f64> = contrast.effects().iter().map(|effect| effect - against).collect();
    let (t, freedom) = (ranges.t(&scored.blocks(), &effects), effects.len() as f64 - 2.0);
    let spread = Tails { less: student::upper_tail(-t, freedom), greater: student::upper_tail(t, freedom) };
    Tails { less: drawn.less.max(spread.less), greater: drawn.greater.max(spread.greater) }
}

/// Every shift that the two-sided test at `level` does not reject; unbounded when none can be.
pub fn interval(contrast: &Contrast, level: f64) -> Interval {
    let effects = contrast.effects();
    if effects.len() < BLOCKS_MIN || contrast.smallest_tail() > level / 2.0 {
        return Interval::UNBOUNDED;
    }
    inverted(&effects, contrast.estimate(), |shift| {
        let tails = tails(contrast, shift);
        (tails.greater <= level / 2.0, tails.less <= level / 2.0)
    })
}

/// The shifts about an estimate that are rejected neither as too low nor as too high; `rejects` says both of one.
pub(crate) fn inverted(effects: &[f64], centre: f64, rejects: impl Fn(f64) -> (bool, bool)) -> Interval {
    let least = effects.iter().copied().fold(f64::INFINITY, f64::min);
    let most = effects.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Where all effects are one the ends lie beside it, far enough to be other numbers.
    let room = (most - least).max(1e-9 * least.abs().max(most.abs())).max(f64::MIN_POSITIVE);
    let end = |side: f64, rejected: &dyn Fn(f64) -> bool| {
        // "No effect" is among the shifts tried, so that interval and test agree about it.
        let outside = [0.0, centre + side * room, centre + side * 8.0 * room];
        let beyond = outside.into_iter().filter(|shift| side * (shift - centre) > 0.0);
        beyond.into_iter().find(|shift| rejected(*shift)).map(|shift| boundary(shift, centre, rejected))
    };
    Interval {
        low: end(-1.0, &|shift| rejects(shift).0).unwrap_or(f64::NEG_INFINITY),
        high: end(1.0, &|shift| rejects(shift).1).unwrap_or(f64::INFINITY),
    }
}

/// Between a rejected and an accepted shift, the last one rejected to within 1e-9 of their distance.
fn boundary(rejected: f64, accepted: f64, rejects: &dyn Fn(f64) -> bool) -> f64 {
    let (mut outside, mut inside) = (rejected, accepted);
    for _ in 0..STEPS {
        let middle = f64::midpoint(outside, inside);
        if rejects(middle) {
            outside = middle;
        } else {
            inside = middle;
        }
    }
    outside
}

/// The scores of every lottery, the lone run's first.
struct Scored {
    /// Score and number of runs.
    lotteries: Vec<([i32; 3], usize)>,
    /// Lotteries of a block.
    each: usize,
}

impl Scored {
    fn of(contrast: &Contrast, against: f64) -> Self {
        let lotteries: Vec<_> = contrast.lotteries().iter().flatten().collect();
        let aligned: Vec<f64> = lotteries
            .iter()
            .flat_map(|lottery| lottery.aligned(against).into_iter().take(lottery.runs()))
            .collect();
        let runs = aligned.len() as f64;
        // Four standard deviations are what a lottery spans at most.
        let scale = (SPAN_MAX / (4.0 * lotteries.len().max(1) as f64)).clamp(4.0, SCALE);
        let score =
            |doubled: usize| (scale * normal_score(doubled as f64 / (2.0 * (runs + 1.0)))).round() as i32;
        let mut scores = doubled_ranks(&aligned).into_iter().map(score);
        let mut of = |runs: usize| {
            let mut own = [0; 3];
            own[..runs].iter_mut().for_each(|own| *own = scores.next().unwrap_or(0));
            (own, runs)
        };
        let each = lotteries.len() / contrast.blocks().max(1);
        Self { lotteries: lotteries.iter().map(|lottery| of(lottery.runs())).collect(), each }
    }

    /// The p of the lotteries: every draw counted.
    fn by_draws(&self) -> Tails {
        let seen: usize = self.lotteries.iter().map(|(scores, runs)| lifted(scores, *runs)[0]).sum();
        let mut chances = vec![1.0];
        for (scores, runs) in &self.lotteries {
            let steps = &lifted(scores, *runs)[..*runs];
            let reach = steps.iter().max().copied().unwrap_or(0);
            let mut next = vec![0.0; chances.len() + reach];
            let share = 1.0 / *runs as f64;
            for step in steps {
                next[*step..*step + chances.len()]
                    .iter_mut()
                    .zip(&chances)
                    .for_each(|(next, chance)| *next += share * chance);
            }
            chances = next;
        }
        Tails {
            less: chances[..=seen].iter().sum::<f64>().min(1.0),
            greater: chances[seen..].iter().sum::<f64>().min(1.0),
        }
    }

    /// What lone runs scored above the mean of their lottery, a mean a block.
    fn blocks(&self) -> Vec<f64> {
        let effect = |(scores, runs): &([i32; 3], usize)| {
            f64::from(scores[0]) - f64::from(scores.iter().sum::<i32>()) / *runs as f64
        };
        let blocks = self.lotteries.chunks(self.each);
        blocks.map(|block| block.iter().map(effect).sum::<f64>() / self.each as f64).collect()
    }
}

/// Where lone runs and all other runs lie, about the mean of their lottery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranges {
    lone: (f64, f64),
    others: (f64, f64),
}

impl Ranges {
    pub(crate) const EMPTY: Self = {
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        Self { lone: none, others: none }
    };

    pub(crate) fn take(&mut self, lottery: &Lottery, against: f64) {
        let wider = |(low, high): (f64, f64), run: &f64| (low.min(*run), high.max(*run));
        let aligned = lottery.aligned(against);
        self.lone = wider(self.lone, &aligned[0]);
        self.others = aligned[1..lottery.runs()].iter().fold(self.others, wider);
    }

    /// Student's t over scores; or over effects where every lone run lies beyond all others.
    pub(crate) fn t(&self, scores: &[f64], effects: &[f64]) -> f64 {
        let t = student::ratio(scores);
        match () {
            () if self.lone.0 > self.others.1 => t.max(student::ratio(effects)),
            () if self.lone.1 < self.others.0 => t.min(student::ratio(effects)),
            () => t,
        }
    }
}

/// Scores above the smallest of their lottery: steps that are never negative.
fn lifted(scores: &[i32; 3], runs: usize) -> [usize; 3] {
    let least = scores[..runs].iter().min().copied().unwrap_or(0);
    scores.map(|score| usize::try_from(score - least).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Observations;
    use crate::random::Generator;
    use proptest::prelude::*;

    /// Every draw of every lottery, one by one.
    fn brute(scored: &Scored) -> Tails {
        let sum = |mut draw: usize| -> i32 {
            scored
                .lotteries
                .iter()
                .map(|(scores, runs)| {
                    let chosen = scores[draw % runs];
                    draw /= runs;
                    chosen
                })
                .sum()
        };
        let all: usize = scored.lotteries.iter().map(|(_, runs)| runs).product();
        let seen = sum(0);
        let share =
            |keep: &dyn Fn(i32) -> bool| (0..all).filter(|draw| keep(sum(*draw))).count() as f64 / all as f64;
        Tails { less: share(&|w| w <= seen), greater: share(&|w| w >= seen) }
    }

    fn trios(seed: u64, blocks: usize, effect: f64) -> Contrast {
        let mut generator = Generator::new(seed);
        let rows: Vec<Vec<f64>> = (0..blocks)
            .map(|_| {
                let mut row: Vec<f64> = (0..4).map(|_| (0.03 * generator.normal()).exp()).collect();
                row[1] *= effect.exp();
                row
            })
            .collect();
        let seen = Observations::new(4, &rows).unwrap();
        Contrast::of_pairs(&seen, &[(1, 0), (2, 1)][..1 + seed as usize % 2], (0, 3)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn counting_equals_enumeration(seed in 0u64..1_000, blocks in 2usize..5) {
            let scored = Scored::of(&trios(seed, blocks, 0.02), 0.0);
            let (fast, slow) = (scored.by_draws(), brute(&scored));
            prop_assert!((fast.less - slow.less).abs() < 1e-12);
            prop_assert!((fast.greater - slow.greater).abs() < 1e-12);
        }

        #[test]
        fn the_interval_holds_what_the_test_does_not_reject(seed in 0u64..1_000, blocks in 6usize..14) {
            let contrast = trios(seed, blocks, 0.03);
            let found = interval(&contrast, 0.05);
            prop_assert!(found.contains(contrast.estimate()));
            prop_assert_eq!(tails(&contrast, 0.0).two_sided() <= 0.05, !found.contains(0.0), "{:?}", found);
        }
    }

    #[test]
    fn turning_a_comparison_round_turns_its_tails_round() {
        let trio = |sign: f64| {
            let noise = |b: i32| f64::from((b * 37) % 11) / 100.0;
            let lottery = |b| vec![Lottery::trio([0.1 + noise(b), 0.12 - noise(b)], sign)];
            Contrast::new((0..8).map(lottery).collect())
        };
        let (one, other) = (tails(&trio(1.0), 0.0), tails(&trio(-1.0), 0.0));
        assert!((one.less - other.greater).abs() < 1e-12 && (one.greater - other.less).abs() < 1e-12);
        assert!(one.greater < 0.001 && one.less > 0.99);
    }

    #[test]
    fn a_larger_effect_has_no_larger_p() {
        let p = |effect: f64| tails(&trios(8, 9, effect), 0.0).greater;
        let found = [0.03, 0.1, 0.4, 1.0].map(p);
        assert!(found.is_sorted_by(|one, two| one >= two) && found[3] < 1e-4, "{found:?}");
    }

    #[test]
    fn blocks_needed_grow_with_the_claims() {
        assert_eq!([1, 10, 20, 100].map(|claims| blocks_needed(0.05, claims)), [6, 9, 10, 12]);
        assert_eq!([0.05, 0.0125, 0.001].map(|level| fewest_blocks(1.0 / 3.0, level)), [6, 6, 7]);
    }

    #[test]
    fn five_blocks_prove_nothing_and_six_do() {
        let equal = |blocks: usize| Contrast::of_differences(&vec![0.1; blocks]);
        assert_eq!(tails(&equal(5), 0.0), Tails::NONE);
        assert_eq!(interval(&equal(5), 0.05), Interval::UNBOUNDED);
        assert!((tails(&equal(6), 0.0).two_sided() - 2.0 / 64.0).abs() < 1e-12);
        assert!(!interval(&equal(6), 0.05).contains(0.0));
        assert_eq!(interval(&equal(6), 0.01), Interval::UNBOUNDED, "a coin's six tosses have no such p");
    }
}
