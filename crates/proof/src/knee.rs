//! The best level of an ordered factor: the first one from which on more gains little.
//!
//! A depth of queue or a number of sessions raises the rate up to a point, and the latency beyond
//! it. The knee is the first level, in their order, whose rate reaches a share of the highest rate
//! among the levels that keep a limit. Its interval comes from drawing whole blocks again, because
//! runs of one block share its conditions.
//!
//! Why not the level with the highest rate: among levels that differ by noise it is a matter of
//! chance, and the last one wins half of the time. Limits: the interval says how far other blocks
//! of the same machine would move the knee, and tests nothing. A knee chosen after a study is a
//! reason for the next one.

use crate::random::Generator;
use plumb_units::median;

/// Draws of blocks for the interval.
const DRAWS: usize = 999;
/// Part of the draws beyond each end of the interval.
const BEYOND: f64 = 0.025;

/// Figures of one level, each with an entry for every block.
#[derive(Debug, Clone, PartialEq)]
pub struct KneeLevel {
    /// Figure to maximise, such as a rate.
    pub gain: Vec<f64>,
    /// Figure with the limit, such as a latency; empty without a limit.
    pub limited: Vec<f64>,
}

/// Question about the levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KneeSought {
    /// Share of the highest gain that is enough, above 0 and at most 1.
    pub share: f64,
    /// Largest value of the limited figure, in its unit; `None` without a limit.
    pub limit: Option<f64>,
    /// Seed of the draws.
    pub seed: u64,
}

/// The knee, as places in the list of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Knee {
    /// The knee of all blocks.
    pub level: usize,
    /// Lower end of its 95% interval.
    pub low: usize,
    /// Upper end of its 95% interval.
    pub high: usize,
}

/// Returns the knee; `None` without a block, or if no level keeps the limit.
#[must_use]
pub fn knee(levels: &[KneeLevel], sought: &KneeSought) -> Option<Knee> {
    let blocks = levels.iter().map(|level| level.gain.len()).min().filter(|blocks| *blocks > 0)?;
    let level = chosen(levels, &(0..blocks).collect::<Vec<_>>(), sought)?;
    let mut generator = Generator::new(sought.seed);
    let draw = |_| {
        let picked: Vec<usize> = (0..blocks).map(|_| generator.below(blocks)).collect();
        chosen(levels, &picked, sought)
    };
    // A draw in which no level keeps the limit says that none is safe: it counts as the lowest.
    let mut found: Vec<usize> = (0..DRAWS).map(draw).map(|found| found.unwrap_or(0)).collect();
    found.sort_unstable();
    let beyond = (DRAWS as f64 * BEYOND) as usize;
    Some(Knee { level, low: found[beyond].min(level), high: found[DRAWS - 1 - beyond].max(level) })
}

fn chosen(levels: &[KneeLevel], blocks: &[usize], sought: &KneeSought) -> Option<usize> {
    let of = |figures: &[f64]| {
        let picked: Vec<f64> = blocks.iter().filter_map(|block| figures.get(*block).copied()).collect();
        (!picked.is_empty()).then(|| median(&picked))
    };
    let keeps = |level: &KneeLevel| match sought.limit {
        Some(limit) => of(&level.limited).is_some_and(|value| value <= limit),
        None => true,
    };
    let gains: Vec<Option<f64>> =
        levels.iter().map(|level| of(&level.gain).filter(|_| keeps(level))).collect();
    let peak = gains.iter().flatten().copied().reduce(f64::max)?;
    gains.iter().position(|gain| gain.is_some_and(|gain| gain >= sought.share * peak))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels with these rates and latencies, and a fixed noise of a per cent by block.
    fn levels(figures: &[(f64, f64)]) -> Vec<KneeLevel> {
        let noisy = |figure: f64| (0..9).map(move |block| figure * (1.0 + 0.01 * f64::from(block % 3 - 1)));
        let level = |(rate, latency): &(f64, f64)| KneeLevel {
            gain: noisy(*rate).collect(),
            limited: noisy(*latency).collect(),
        };
        figures.iter().map(level).collect()
    }

    const SOUGHT: KneeSought = KneeSought { share: 0.95, limit: None, seed: 7 };

    #[test]
    fn the_knee_is_the_first_level_near_the_peak() {
        let depths = levels(&[(10.0, 0.1), (40.0, 0.2), (98.0, 0.3), (100.0, 1.2), (99.0, 5.0)]);
        assert_eq!(knee(&depths, &SOUGHT), Some(Knee { level: 2, low: 2, high: 2 }));
    }

    #[test]
    fn a_limit_moves_the_knee_below_it() {
        let depths = levels(&[(10.0, 0.1), (40.0, 0.2), (80.0, 0.9), (100.0, 2.4), (120.0, 5.0)]);
        assert_eq!(knee(&depths, &SOUGHT).map(|knee| knee.level), Some(4));
        let under =
            |limit| knee(&depths, &KneeSought { limit: Some(limit), ..SOUGHT }).map(|knee| knee.level);
        assert_eq!((under(2.0), under(0.05)), (Some(2), None));
    }

    #[test]
    fn levels_that_noise_cannot_tell_apart_widen_the_interval() {
        let mut depths = levels(&[(10.0, 0.1), (94.5, 0.2), (100.0, 0.3)]);
        depths[1].gain = vec![80.0, 99.0, 80.0, 99.0, 99.0, 80.0, 99.0, 80.0, 99.0];
        let found = knee(&depths, &SOUGHT).expect("a knee");
        assert!(found.low == 1 && found.high == 2, "{found:?}");
        assert_eq!(knee(&depths, &SOUGHT), Some(found), "the draws follow from the seed");
        assert_eq!(knee(&[], &SOUGHT), None);
    }
}
