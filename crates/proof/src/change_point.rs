//! Change points in a series of logarithms: tests if an arm changes during the study.
//!
//! For every split k of the n values, the ranks before it are compared with those of a random half
//! (Pettitt 1979). A weight makes early and late splits count as much as central ones:
//!
//! ```text
//! C(k) = | sum of ranks up to k - k (n+1)/2 | / sqrt(k (n-k))       found = max over k
//! ```
//!
//! p is the share of shuffled series with a maximum at least as large. A found change splits the
//! series, and both parts are searched again (binary segmentation; Vostrikova 1981), until nothing
//! is found or a part is too short.
//!
//! Why not E-divisive with energy distances (Matteson, James 2014), which also finds changes of
//! spread: O(n^2) for each shuffle against O(n). A verdict about times needs a change of level. The
//! usual thresholds of that method are kept: p = 0.001 and a change of 5%.
//!
//! Limits: shuffling assumes that order carries no other information; in an
//! autocorrelated series it finds changes that are only long waves. The log-ratios to the
//! reference show if an *effect* changed, the arm's own series if the arm did; the first
//! is free of the machine's drift. In a short series even the sharpest step has a p above
//! that threshold: [`Search::values_needed`], usually 14.
//!
//! [`step`] is for fewer blocks than that, each of several runs. The runs show if noise could have
//! made the step, the blocks if it is one step and no burst.

use crate::random::Generator;
use crate::summary::{doubled_ranks, mean, variance};
use plumb_units::median;

/// Fewest values on either side of a change, because fewer do not determine a level.
pub const SEGMENT_MIN: usize = 4;

/// Thresholds of a search, and its random numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Largest p of a reported change.
    pub p: f64,
    /// Smallest distance of the two levels, a log-ratio.
    pub shift: f64,
    /// Number of shuffles; p is at least 1 / (draws + 1).
    pub draws: usize,
    /// Seed of the shuffles, kept with the study.
    pub seed: u64,
}

impl Search {
    /// Returns the usual thresholds, p = 0.001 and 5%, with twice the shuffles that reach that p.
    pub fn usual(seed: u64) -> Self {
        Self { p: 0.001, shift: 1.05f64.ln(), draws: 1_999, seed }
    }

    /// Returns the fewest values in which a change can be found: if one half lies above the other,
    /// its p is small enough. Of the C(n, n/2) ways to choose the upper half, two are as sharp, or
    /// four if the halves are unequal.
    #[must_use]
    pub fn values_needed(&self) -> usize {
        let sharpest = |values: usize| {
            let ways: f64 = (1..=values / 2).map(|i| (values - values / 2 + i) as f64 / i as f64).product();
            if values.is_multiple_of(2) { 2.0 / ways } else { 4.0 / ways }
        };
        (2 * SEGMENT_MIN..)
            .find(|values| sharpest(*values) <= self.p)
            .expect("the share falls with every value")
    }
}

/// A change of level within a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change.
    pub index: usize,
    /// Median after less median before, within the searched part.
    pub shift: f64,
    /// Permutation p in the part in which it was found.
    pub p: f64,
    /// True if a steady change of the whole series fits it better than this step. Then no place
    /// of the step is named.
    pub steady: bool,
}

/// Returns all changes of a series, in order.
pub fn find(series: &[f64], search: &Search) -> Vec<ChangePoint> {
    let mut generator = Generator::new(search.seed);
    let mut parts = vec![(0, series.len())];
    let mut changes = Vec::new();
    // Each found change leaves two shorter parts, so this ends.
    while let Some((start, end)) = parts.pop() {
        if let Some(change) = strongest(&series[start..end], search, &mut generator) {
            parts.push((start, start + change.index));
            parts.push((start + change.index, end));
            let index = start + change.index;
            changes.push(ChangePoint { index, steady: is_steady(series, index), ..change });
        }
    }
    changes.sort_unstable_by_key(|change| change.index);
    changes
}

/// Factor by which a step must leave less than a line, because its place was chosen.
const CLEARLY: f64 = 1.2;

/// True if a step at this index does not clearly leave less than a line through the series.
fn is_steady(series: &[f64], index: usize) -> bool {
    let left = |part: &[f64]| variance(part) * (part.len() as f64 - 1.0).max(0.0);
    let middle = (series.len() as f64 - 1.0) / 2.0;
    let centre = mean(series);
    let times = || (0..series.len()).map(|at| at as f64 - middle);
    let together: f64 = times().zip(series).map(|(time, value)| time * (value - centre)).sum();
    let by_line = together * together / times().map(|time| time * time).sum::<f64>();
    left(series) - by_line < CLEARLY * (left(&series[..index]) + left(&series[index..]))
}

/// The fewest blocks in which [`step`] can find one.
pub const STEP_BLOCKS_MIN: usize = 2 * SEGMENT_MIN;

/// Finds a step in a series of blocks too short for [`find`], each of several runs.
///
/// ```text
/// apart   the medians of all blocks before it lie below those of all after it, or above them
/// noise   if the runs are shuffled over the study, a share of at most p has as sharp a step
/// ```
///
/// Identical blocks are apart by chance in 2 of C(8, 4) orders of eight (3%), and in fewer of more
/// blocks. That holds for any correlation of the runs of a block. For uncorrelated runs the second
/// test has an error of p.
///
/// Limits: [`SEGMENT_MIN`] blocks are on either side, so it finds neither a step in the first or
/// last three blocks nor a burst.
pub fn step(blocks: &[Vec<f64>], search: &Search) -> Option<ChangePoint> {
    let medians: Vec<f64> = blocks.iter().map(|block| median(block)).collect();
    let shift = |split: usize| median(&blocks[split..].concat()) - median(&blocks[..split].concat());
    let splits: Vec<usize> = (SEGMENT_MIN..=blocks.len().checked_sub(SEGMENT_MIN)?).collect();
    let found = splits.iter().copied().filter(|split| is_apart(&medians, *split));
    let index = found.max_by(|one, two| shift(*one).abs().total_cmp(&shift(*two).abs()))?;
    if shift(index).abs() < search.shift {
        return None;
    }
    let runs = blocks.concat();
    let centre = (runs.len() + 1) as f64;
    let mut ranks: Vec<f64> = doubled_ranks(&runs).iter().map(|rank| *rank as f64 - centre).collect();
    let borders: Vec<usize> =
        splits.iter().map(|split| blocks[..*split].iter().map(Vec::len).sum()).collect();
    let sharpest = |ranks: &[f64]| {
        let at = |border: &usize| {
            let weight = (border * (ranks.len() - border)) as f64;
            ranks[..*border].iter().sum::<f64>().abs() / weight.sqrt()
        };
        borders.iter().map(at).fold(0.0, f64::max)
    };
    let seen = sharpest(&ranks);
    let mut generator = Generator::new(search.seed);
    let as_sharp = (0..search.draws).filter(|_| {
        generator.shuffle(&mut ranks);
        sharpest(&ranks) >= seen * (1.0 - 1e-12)
    });
    let p = (as_sharp.count() + 1) as f64 / (search.draws + 1) as f64;
    (p <= search.p).then_some(ChangePoint { index, shift: shift(index), p, steady: false })
}

/// True if all values before a split lie on one side of all after it.
fn is_apart(values: &[f64], split: usize) -> bool {
    let ends = |part: &[f64]| {
        part.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(*value), high.max(*value))
        })
    };
    let (before, after) = (ends(&values[..split]), ends(&values[split..]));
    before.1 < after.0 || after.1 < before.0
}

fn strongest(part: &[f64], search: &Search, generator: &mut Generator) -> Option<ChangePoint> {
    if part.len() < 2 * SEGMENT_MIN {
        return None;
    }
    let centre = (part.len() + 1) as f64;
    let mut ranks: Vec<f64> = doubled_ranks(part).iter().map(|rank| *rank as f64 - centre).collect();
    let (index, found) = largest(&ranks);
    let shift = median(&part[index..]) - median(&part[..index]);
    if shift.abs() < search.shift {
        return None;
    }
    let mut count = 1usize;
    for _ in 0..search.draws {
        generator.shuffle(&mut ranks);
        count += usize::from(largest(&ranks).1 >= found * (1.0 - 1e-12));
    }
    let p = count as f64 / (search.draws + 1) as f64;
    (p <= search.p).then_some(ChangePoint { index, shift, p, steady: false })
}

/// Returns the split with the largest C(k).
fn largest(centred: &[f64]) -> (usize, f64) {
    let count = centred.len();
    let (mut best, mut sum) = ((SEGMENT_MIN, 0.0f64), 0.0);
    for (before, value) in centred.iter().enumerate() {
        if before >= SEGMENT_MIN && before + SEGMENT_MIN <= count {
            let size = f64::abs(sum) / ((before * (count - before)) as f64).sqrt();
            if size > best.1 {
                best = (before, size);
            }
        }
        sum += value;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        (0..count).map(|_| 0.02 * generator.normal()).collect()
    }

    #[test]
    fn a_steady_change_has_no_place_and_a_step_has() {
        let found = |level: fn(usize) -> f64| {
            let mut generator = Generator::new(7);
            let series: Vec<f64> = (0..30).map(|at| level(at) + 0.02 * generator.normal()).collect();
            find(&series, &Search::usual(1))
        };
        let steady = found(|at| 0.01 * at as f64);
        assert!(!steady.is_empty() && steady.iter().all(|change| change.steady), "{steady:?}");
        let step = found(|at| if at < 15 { 0.0 } else { 0.2 });
        assert!(step.iter().any(|change| change.index == 15 && !change.steady), "{step:?}");
    }

    #[test]
    fn a_change_takes_as_many_values_as_its_p_asks_for() {
        let search = Search { draws: 19_999, ..Search::usual(1) };
        assert_eq!(search.values_needed(), 14);
        let step = |values: usize| {
            (0..values).map(move |i| if i < values / 2 { 0.0 } else { 1.0 } + i as f64 * 1e-6)
        };
        assert!(find(&step(13).collect::<Vec<f64>>(), &search).is_empty());
        assert_eq!(find(&step(14).collect::<Vec<f64>>(), &search).len(), 1);
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let mut series = noise(1, 60);
        series[20..].iter_mut().for_each(|value| *value += 0.1);
        series[45..].iter_mut().for_each(|value| *value -= 0.2);
        let found = find(&series, &Search::usual(3));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].index.abs_diff(20) <= 1, "{found:?}");
        assert!(found[1].index.abs_diff(45) <= 1, "{found:?}");
        assert!((found[1].shift + 0.2).abs() < 0.05);
    }

    #[test]
    fn a_step_is_found_in_eight_blocks_of_three_runs() {
        let blocks = |seed: u64, count: usize, to: f64| -> Vec<Vec<f64>> {
            let runs = noise(seed, 3 * count);
            let level = |block: usize| if block >= count / 2 { to } else { 0.0 };
            (0..count).map(|block| (0..3).map(|run| runs[3 * block + run] + level(block)).collect()).collect()
        };
        let found = step(&blocks(1, 8, 0.2), &Search::usual(1)).unwrap();
        assert_eq!(found.index, 4);
        assert!((found.shift - 0.2).abs() < 0.03 && found.p <= 0.001, "{found:?}");
        assert_eq!(step(&blocks(1, 7, 0.2), &Search::usual(1)), None, "three blocks are no level");
        assert_eq!(step(&blocks(1, 8, 0.0), &Search::usual(1)), None);
        assert_eq!(step(&blocks(1, 8, 0.04), &Search::usual(1)), None, "below what counts");
        assert_eq!(step(&[], &Search::usual(1)), None);
    }

    #[test]
    fn noise_of_runs_and_of_blocks_is_no_step() {
        // No smallest shift is set, so this counts 2 of 70 orders of eight blocks, and those
        // that the runs let through.
        let search = Search { shift: 0.0, ..Search::usual(1) };
        let share = |blocks: usize, of_block: f64| {
            let found = (0..1_000).filter(|seed| {
                let mut generator = Generator::new(7_000 + seed);
                let rows: Vec<Vec<f64>> = (0..blocks)
                    .map(|_| {
                        let mood = of_block * generator.normal();
                        (0..3).map(|_| mood + 0.3 * generator.normal()).collect()
                    })
                    .collect();
                step(&rows, &search).is_some()
            });
            found.count() as f64 / 1_000.0
        };
        for blocks in 8..=13 {
            assert!(share(blocks, 0.0) <= 0.005, "{blocks} blocks of independent runs");
            assert!(share(blocks, 3.0) <= 0.045, "{blocks} blocks, each with a mood of its own");
        }
    }

    #[test]
    fn a_steady_series_and_a_single_stall_have_none() {
        let search = Search { p: 0.01, shift: 0.0, draws: 499, seed: 1 };
        let found = (0..100).filter(|seed| !find(&noise(*seed, 24), &search).is_empty()).count();
        assert!(found <= 5, "{found} of 100 at p = 0.01");
        let mut stalled = noise(7, 24);
        stalled[11] = 5.0;
        assert!(find(&stalled, &Search::usual(1)).is_empty());
        assert!(find(&noise(7, 7), &Search::usual(1)).is_empty());
    }
}
