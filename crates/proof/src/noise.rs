//! The noise floor: what this machine could have resolved, and what it would take.
//!
//! The reference runs twice a block. The log-ratios of the pair have the spread s_d of
//! any two runs that do not differ, the measure of every comparison in the study.
//! A shift D is found with power 1 - b by a two-sided test at alpha after
//!
//! ```text
//! n = (z(1 - alpha/2) + z(1 - b))^2 (s_d / D)^2      80%: 7.85 (s_d/D)^2   95%: 13.0 (s_d/D)^2
//! ```
//!
//! blocks, if n is large and the noise normal; the smallest shift found with n blocks is the
//! same formula solved for D. `blocks_for` does not trust it: it simulates the signed-rank test
//! itself on normal noise and returns the smallest n that reaches the power, which at small n
//! is larger (an exact test of 6 blocks proves nothing unless all six agree).
//!
//! Both a plain SD and a robust one (1.4826 median |d - median|, Hampel 1974) are
//! kept: far apart, they say that a few blocks were hit by something else. Since the
//! test is a rank test, its power follows the robust one more than the plain one.
//!
//! Variance components of the reference's log times (two runs a block, one-way random effects;
//! Searle, Casella, McCulloch 1992): within = var(d)/2, between = var(block means) - within/2.
//! Their ratio is what blocking saved against comparing unpaired runs.
//!
//! Limits: an SD from n pairs is itself uncertain by a share of 1/sqrt(2(n-1)), a fifth at 12.

use crate::random::Generator;
use crate::signed_rank;
use crate::summary::{doubled_ranks, mean, median, normal_quantile, variance};
use serde::Serialize;

/// The spread of pairs that do not differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// Standard deviation of the A/A log-ratios.
    pub deviation: f64,
    /// The same from the median absolute deviation.
    pub robust_deviation: f64,
    /// Pairs it was measured on.
    pub blocks: usize,
    /// Variance of a run about its block, in squared log units.
    pub within: f64,
    /// Variance of the blocks' levels; 0 when it cannot be told from none.
    pub between: f64,
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
        }
    }

    /// The shift that `blocks` blocks find with the given power, by the formula.
    pub fn smallest_effect(&self, blocks: usize, alpha: f64, power: f64) -> f64 {
        (squared_quantiles(alpha, power) / blocks.max(1) as f64).sqrt() * self.deviation
    }
}

/// (z(1 - alpha/2) + z(power))^2: 7.85 for 5% and 80%.
fn squared_quantiles(alpha: f64, power: f64) -> f64 {
    (normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power)).powi(2)
}

/// What a number of blocks is asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The shift to be found, a log-ratio other than 0.
    pub effect: f64,
    /// Standard deviation of the log-ratios, above 0.
    pub deviation: f64,
    /// Two-sided level, after any correction for other claims.
    pub alpha: f64,
    /// Chance of finding it.
    pub power: f64,
}

/// More blocks than this are not planned for.
pub const BLOCKS_MAX: usize = 2_000;
/// Above this many blocks the rule is as good as the simulation.
const SIMULATED_BLOCKS_MAX: usize = 120;
const SIMULATED_STUDIES: usize = 4_000;

/// Blocks by the rule of the header, without the corrections of small numbers.
pub fn blocks_by_rule(goal: &Goal) -> usize {
    let ratio = goal.deviation / goal.effect.abs();
    let blocks = (squared_quantiles(goal.alpha, goal.power) * ratio * ratio).ceil();
    if blocks.is_finite() { (blocks as usize).clamp(1, BLOCKS_MAX) } else { BLOCKS_MAX }
}

/// The smallest number of blocks with which the signed-rank test at `alpha`
/// reaches the power on normal noise; at most `BLOCKS_MAX`. Give or take a block or two: the test's
/// true level, and with it the power, is not quite monotone in the number of blocks.
pub fn blocks_for(goal: &Goal, seed: u64) -> usize {
    // 3/pi: the test's efficiency on normal noise.
    let rule = (blocks_by_rule(goal) as f64 * std::f64::consts::PI / 3.0).ceil() as usize;
    let fewest = crate::permutation::blocks_needed(goal.alpha, 1);
    if rule > SIMULATED_BLOCKS_MAX {
        return rule.clamp(fewest, BLOCKS_MAX);
    }
    let (mut low, mut high) = (fewest, fewest.max(2 * rule + 4));
    while low < high {
        let middle = (low + high) / 2;
        if simulated_power(middle, goal, seed) >= goal.power {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The share of studies of `blocks` blocks, with normal noise, that find the effect.
pub fn simulated_power(blocks: usize, goal: &Goal, seed: u64) -> f64 {
    let cut = 2 * signed_rank::cut(blocks, goal.alpha);
    let mut generator = Generator::of_part(seed, blocks as u64);
    let shift = goal.effect.abs() / goal.deviation;
    let mut found = 0;
    for _ in 0..SIMULATED_STUDIES {
        let differences: Vec<f64> = (0..blocks).map(|_| shift + generator.normal()).collect();
        let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
        let below: usize = doubled_ranks(&sizes)
            .iter()
            .zip(&differences)
            .filter(|(_, d)| **d < 0.0)
            .map(|(rank, _)| rank)
            .sum();
        found += usize::from(below < cut);
    }
    f64::from(found as u32) / SIMULATED_STUDIES as f64
}

/// By what factor pairing cut the variance of a comparison: variance of the
/// difference of two runs from different blocks over that within a block.
pub fn gain_of_blocking(floor: &Floor) -> f64 {
    if floor.within > 0.0 { (floor.within + floor.between) / floor.within } else { 1.0 }
}

/// Mean A/A log-ratio: far from 0, the second run of an arm differs from the first.
pub fn bias(first: &[f64], second: &[f64]) -> f64 {
    mean(&first.iter().zip(second).map(|(a, b)| b - a).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_gives_the_published_sizes() {
        let rule = |deviation, effect| blocks_by_rule(&Goal { effect, deviation, alpha: 0.05, power: 0.8 });
        let sizes = [rule(0.005, 0.005), rule(0.03, 0.03), rule(0.03, 0.01), rule(0.1, 0.05)];
        assert_eq!(sizes, [8, 8, 71, 32]);
    }

    #[test]
    fn the_simulated_number_is_at_least_the_exact_minimum() {
        let goal = Goal { effect: 1.0, deviation: 0.01, alpha: 0.05, power: 0.95 };
        assert_eq!(blocks_for(&goal, 1), 6);
        let goal = Goal { effect: 0.02, deviation: 0.03, ..goal };
        let blocks = blocks_for(&goal, 1);
        assert!((30..=36).contains(&blocks), "{blocks}");
        assert_eq!(blocks_for(&Goal { effect: 1e-9, ..goal }, 1), BLOCKS_MAX);
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
        assert!((gain_of_blocking(&floor) - 7.25).abs() < 0.6);
        assert!(bias(&first, &second).abs() < 0.003);
        assert!(
            (floor.smallest_effect(8, 0.05, 0.8) - floor.deviation * (7.85f64 / 8.0).sqrt()).abs() < 1e-4
        );
    }
}
