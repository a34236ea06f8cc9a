//! The noise floor: the effects that these blocks could have resolved, and
//! the blocks for smaller ones.
//!
//! The reference runs twice in each block. The log-ratios of the pair have the spread s_d of any
//! two of its runs, and show if the machine was quiet. The effects that a claim could find
//! follow from the spread of its own effects over the blocks. It may use many pairs, and its
//! arms need not be as noisy as the reference. A two-sided test at level a finds a shift D with
//! power 1 - b after about
//!
//! ```text
//! n = (z(1 - a/2) + z(1 - b))^2 (s / D)^2      80%: 7.85 (s/D)^2   95%: 13.0 (s/D)^2
//! ```
//!
//! blocks, if n is large and the noise normal. At the sizes of studies that is far off: where it
//! promises 80%, nine blocks and a level of 5% find 52%. So studies of normal noise are simulated,
//! the same ones for every shift and every level. They are judged by the deciding part of
//! `randomisation`, Student's t with n - 1 degrees of freedom; a test compares the whole test with
//! that promise. Equalities are planned likewise, by both their one-sided tests.
//!
//! Both a plain SD and a robust one (1.4826 median |d - median|, Hampel 1974) are kept. If they
//! differ much, a few blocks were disturbed.
//!
//! Variance components of the reference's log times (two runs a block, one-way random effects;
//! Searle, Casella, McCulloch 1992): within = var(d)/2, between = var(block means) - within/2.
//! Their ratio is the saving of blocking against unpaired runs; its interval is that of the F
//! of both. On independent draws, where blocking saves nothing, a fifth of studies of 10
//! blocks estimate more than 25%.
//!
//! Limits: an SD from n pairs is uncertain by a share of 1/sqrt(2(n-1)), a fifth at 12; so are
//! floors and plans that use it.

use crate::random::Generator;
use crate::randomisation::BLOCKS_MIN;
use crate::student;
use crate::summary::{mean, normal_quantile, variance};
use plumb_units::median;
use serde::Serialize;

/// The spread of pairs of reference runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// Standard deviation of the A/A log-ratios.
    pub deviation: f64,
    /// Standard deviation from the median absolute deviation.
    pub robust_deviation: f64,
    /// Number of pairs that were measured.
    pub blocks: usize,
    /// Variance of a run about its block, in squared log units.
    pub within: f64,
    /// Variance of the blocks' levels; 0 if indistinguishable from none.
    pub between: f64,
    /// The share of a run's variance between blocks, which comparing within them removes:
    /// the ends of its 95% interval, at least 0. `None` for fewer than three pairs, or for
    /// pairs that do not differ.
    pub removed: Option<[f64; 2]>,
}

impl Floor {
    /// Measures the floor on the logarithms of the two reference runs.
    pub fn of(first: &[f64], second: &[f64]) -> Self {
        let differences: Vec<f64> = first.iter().zip(second).map(|(a, b)| b - a).collect();
        let levels: Vec<f64> = first.iter().zip(second).map(|(a, b)| (a + b) / 2.0).collect();
        let centre = median(&differences);
        let distances: Vec<f64> = differences.iter().map(|d| (d - centre).abs()).collect();
        let within = variance(&differences) / 2.0;
        Self {
            deviation: variance(&differences).sqrt(),
            robust_deviation: 1.4826 * median(&distances),
            blocks: differences.len(),
            within,
            between: (variance(&levels) - within / 2.0).max(0.0),
            removed: removed(differences.len(), variance(&levels), within),
        }
    }
}

/// Returns the interval of (F - 1) / (F + 1). F is the variance of block means over the one that
/// runs alone would give them.
fn removed(blocks: usize, levels: f64, within: f64) -> Option<[f64; 2]> {
    if blocks < 3 || within <= 0.0 {
        return None;
    }
    let (found, freedom) = (2.0 * levels / within, blocks as f64 - 1.0);
    let share = |ratio: f64| ((ratio - 1.0) / (ratio + 1.0)).max(0.0);
    let limit = student::ratio_of_variances(0.975, freedom, freedom);
    Some([share(found / limit), share(found * limit)])
}

/// Returns (z(1 - alpha/2) + z(power))^2: 7.85 for 5% and 80%.
fn squared_quantiles(alpha: f64, power: f64) -> f64 {
    (normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power)).powi(2)
}

/// Goal for which blocks are planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The shift to be found, a log-ratio other than 0.
    pub effect: f64,
    /// Standard deviation of the log-ratios, above 0.
    pub deviation: f64,
    /// Two-sided level, after any correction for other claims.
    pub alpha: f64,
    /// Chance of finding the shift.
    pub power: f64,
}

/// Most blocks of a plan.
pub const BLOCKS_MAX: usize = 2_000;
/// Number of blocks above which the rule is as good as the simulation.
const SIMULATED_BLOCKS_MAX: usize = 120;
const SIMULATED_STUDIES: usize = 4_000;

/// Returns the blocks by the rule of the header, without the corrections of small numbers.
pub fn blocks_by_rule(goal: &Goal) -> usize {
    let ratio = goal.deviation / goal.effect.abs();
    let blocks = (squared_quantiles(goal.alpha, goal.power) * ratio * ratio).ceil();
    if blocks.is_finite() { (blocks as usize).clamp(1, BLOCKS_MAX) } else { BLOCKS_MAX }
}

/// Studies of normal noise of deviation 1: the mean of each, and the divisor of Student's t.
struct Imagined {
    blocks: usize,
    studies: Vec<(f64, f64)>,
}

impl Imagined {
    fn new(blocks: usize, seed: u64) -> Self {
        let mut generator = Generator::of_part(seed, blocks as u64);
        let study = |_| {
            let values: Vec<f64> = (0..blocks).map(|_| generator.normal()).collect();
            (mean(&values), (variance(&values) / blocks as f64).sqrt())
        };
        Self { blocks, studies: (0..SIMULATED_STUDIES).map(study).collect() }
    }

    /// Returns the share of studies that meet a condition of mean and standard error.
    fn share(&self, holds: impl Fn(f64, f64) -> bool) -> f64 {
        let found = self.studies.iter().filter(|(mean, error)| holds(*mean, *error)).count();
        found as f64 / self.studies.len() as f64
    }

    /// Returns the standard errors that a one-sided test at `level` requires; none if
    /// there are too few blocks.
    fn critical(&self, level: f64) -> Option<f64> {
        (self.blocks >= BLOCKS_MIN).then(|| student::upper_quantile(level, self.blocks as f64 - 1.0))
    }

    /// Returns the power to find a shift, in deviations.
    fn power(&self, shift: f64, level: f64) -> f64 {
        let Some(critical) = self.critical(level / 2.0) else { return 0.0 };
        self.share(|mean, error| mean + shift > critical * error)
    }

    /// Returns the power to prove that an effect is within a margin, both in deviations.
    fn power_of_equality(&self, effect: f64, margin: f64, level: f64) -> f64 {
        let Some(critical) = self.critical(level) else { return 0.0 };
        self.share(|mean, error| (mean + effect).abs() + critical * error < margin)
    }
}

/// Returns the shift, a log-ratio, that `blocks` blocks find with a power; infinite if they are
/// too few to find any.
pub fn smallest_effect(blocks: usize, deviation: f64, level: f64, power: f64, seed: u64) -> f64 {
    let imagined = Imagined::new(blocks.min(SIMULATED_BLOCKS_MAX), seed);
    if imagined.critical(level).is_none() {
        return f64::INFINITY;
    }
    if blocks > SIMULATED_BLOCKS_MAX {
        return deviation * (squared_quantiles(level, power) / blocks as f64).sqrt();
    }
    let (mut low, mut high) = (0.0, 1.0);
    while imagined.power(high, level) < power {
        high *= 2.0;
    }
    for _ in 0..30 {
        let middle = f64::midpoint(low, high);
        if imagined.power(middle, level) < power { low = middle } else { high = middle }
    }
    deviation * high
}

/// Returns the chance that `blocks` blocks find the goal's effect on normal noise;
/// the goal's power is ignored.
pub fn power_of(goal: &Goal, blocks: usize, seed: u64) -> f64 {
    Imagined::new(blocks, seed).power(goal.effect.abs() / goal.deviation, goal.alpha)
}

/// Returns the smallest number of blocks that reaches the goal's power on
/// normal noise; at most `BLOCKS_MAX`.
pub fn blocks_for(goal: &Goal, seed: u64) -> usize {
    let shift = goal.effect.abs() / goal.deviation;
    fewest(blocks_by_rule(goal), |blocks| Imagined::new(blocks, seed).power(shift, goal.alpha) >= goal.power)
}

/// Returns the smallest number of blocks that proves an effect within a margin, another log-ratio,
/// with the goal's power. At most `BLOCKS_MAX`, also if the effect is beyond the margin.
pub fn blocks_for_equality(goal: &Goal, margin: f64, seed: u64) -> usize {
    let room = margin - goal.effect.abs();
    if room <= 0.0 {
        return BLOCKS_MAX;
    }
    // One-sided at the level: the rule's quantile for twice that level.
    let rule = blocks_by_rule(&Goal { effect: room, alpha: (2.0 * goal.alpha).min(0.5), ..*goal });
    let (effect, margin) = (goal.effect.abs() / goal.deviation, margin / goal.deviation);
    // No effect can be missed on either side: up to a third more than the rule.
    fewest(rule, |blocks| {
        Imagined::new(blocks, seed).power_of_equality(effect, margin, goal.alpha) >= goal.power
    })
}

/// Returns the fewest blocks that are enough, near the rule; the rule itself where it is large.
fn fewest(rule: usize, enough: impl Fn(usize) -> bool) -> usize {
    if rule > SIMULATED_BLOCKS_MAX {
        return rule.min(BLOCKS_MAX);
    }
    let (mut low, mut high) = (BLOCKS_MIN, BLOCKS_MIN.max(2 * rule + 8));
    while low < high {
        let middle = (low + high) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contrast::{Contrast, Lottery};
    use crate::randomisation;

    #[test]
    fn the_rule_gives_the_published_sizes() {
        let rule = |deviation, effect| blocks_by_rule(&Goal { effect, deviation, alpha: 0.05, power: 0.8 });
        let sizes = [rule(0.005, 0.005), rule(0.03, 0.03), rule(0.03, 0.01), rule(0.1, 0.05)];
        assert_eq!(sizes, [8, 8, 71, 32]);
    }

    #[test]
    fn plans_are_near_the_rule_and_never_below_the_fewest() {
        let goal = Goal { effect: 1.0, deviation: 0.01, alpha: 0.05, power: 0.95 };
        assert_eq!(blocks_for(&goal, 1), BLOCKS_MIN);
        let goal = Goal { effect: 0.02, deviation: 0.03, ..goal };
        let blocks = blocks_for(&goal, 1);
        assert!((30..=34).contains(&blocks), "{blocks}");
        assert_eq!(blocks_for(&Goal { effect: 1e-9, ..goal }, 1), BLOCKS_MAX);
        let equality = |effect: f64| blocks_for_equality(&Goal { effect, ..goal }, 0.02, 1);
        assert!((28..=36).contains(&equality(0.0)), "{}", equality(0.0));
        assert!(equality(0.005) > equality(0.0));
        assert_eq!(equality(0.02), BLOCKS_MAX);
    }

    /// Returns the share of studies of trios in which the whole test proves a difference.
    fn found(effect: f64, blocks: usize, level: f64) -> f64 {
        let studies = 1_000;
        let proved = |seed| {
            let mut generator = Generator::new(seed);
            let lottery = |_| {
                let runs: [f64; 3] = std::array::from_fn(|_| 0.02 * generator.normal());
                vec![Lottery::trio([effect + runs[0] - runs[1], effect + runs[0] - runs[2]], 1.0)]
            };
            let contrast = Contrast::new((0..blocks).map(lottery).collect());
            randomisation::tails(&contrast, 0.0).two_sided() <= level
        };
        (0..studies).filter(|seed| proved(*seed)).count() as f64 / studies as f64
    }

    #[test]
    fn the_floor_of_a_claim_is_found_as_often_as_it_says() {
        // Two standard errors of a thousand studies are 2.5%. At the formula's floor at
        // 9 blocks, 52% found it.
        for (blocks, level) in [(6, 0.05), (9, 0.0125), (12, 0.05), (20, 0.0125)] {
            let floor = smallest_effect(blocks, 0.02 * 1.5f64.sqrt(), level, 0.8, 1);
            let share = found(floor, blocks, level);
            assert!((0.76..0.85).contains(&share), "{blocks} blocks at {level}: {share}");
        }
        assert_eq!(smallest_effect(5, 0.02, 0.05, 0.8, 1), f64::INFINITY);
    }

    #[test]
    fn blocks_that_save_nothing_are_seldom_said_to_save() {
        let mut generator = Generator::new(12);
        let saves = (0..1_000).filter(|_| {
            let series: [Vec<f64>; 2] =
                std::array::from_fn(|_| (0..10).map(|_| generator.normal()).collect());
            Floor::of(&series[0], &series[1]).removed.is_some_and(|[low, _]| low > 0.0)
        });
        let saves = saves.count();
        assert!(saves <= 45, "{saves} of 1,000 intervals of 95%");
    }

    #[test]
    fn components_are_recovered() {
        let mut generator = Generator::new(2);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..4_000 {
            let level = 0.05 * generator.normal();
            first.push(level + 0.02 * generator.normal());
            second.push(level + 0.02 * generator.normal());
        }
        let floor = Floor::of(&first, &second);
        assert!((floor.deviation - 0.02 * 2f64.sqrt()).abs() < 0.001);
        assert!((floor.robust_deviation - floor.deviation).abs() < 0.002);
        assert!((floor.between.sqrt() - 0.05).abs() < 0.003);
        let [low, high] = floor.removed.unwrap();
        assert!(low < 1.0 - 1.0 / 7.25 && 1.0 - 1.0 / 7.25 < high, "{low} {high}");
    }
}
