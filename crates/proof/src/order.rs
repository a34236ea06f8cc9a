//! Effects of the order of execution: position in the block, the run before, drift.
//!
//! The randomised order that protects the effects also makes these tests exact, if orders were
//! drawn as they are redrawn here: each block shuffled independently. For Williams squares, and if
//! blocks were left out, p is an approximation. If no run depends on its time or on the run before,
//! any order would have given the same figures. So orders are redrawn within every block, and the
//! statistic of the real order is ranked among theirs (p = (1 + as large) / (1 + draws)).
//!
//! ```text
//! residual   r = ln y - median of its slot - median of its block, as a rank
//! position   sum over positions     of n * mean(r)^2      1st, 2nd, ... in the block
//! carry-over sum over predecessors  of n * mean(r)^2      which slot ran just before
//! drift      sum over blocks        of (b - mean b) * rank of the block's level
//! ```
//!
//! Ranks, so that one stall does not make a position guilty. The predecessor of a block's first run
//! is the previous block's last. The random order balances position effects and drift, which only
//! cost precision. Carry-over is the dangerous one, because a treatment that slows its successors
//! but not itself can look fast. Its size is therefore reported: after which slot the next run is
//! slower, and by how much.
//!
//! After an arm ([`after`]): in a study of two arms, the two runs of the reference in one block are
//! compared by signed ranks. A block counts if exactly one of them follows the treatment. Both are
//! one arm, so neither a slot's level nor a block's is needed, and more blocks find a smaller
//! carry-over. Residuals lose half of it to the subtracted medians of three.
//!
//! Wandering ([`wanders_p`]): effects of neighbouring blocks that are alike. Student's t over
//! blocks assumes that they are drawn independently. Ranks of the blocks' effects are multiplied
//! by those of the next block, and the sum is ranked among shuffles, on the side of likeness. With
//! 24 blocks it finds an effect that wanders as much as the noise (AR 0.9) in a quarter of
//! studies, with 60 in most.
//!
//! Why not the two-period cross-over test of Grizzle (1965): it is known to be powerless against
//! carry-over and to bias its successor (Freeman 1989). Limits: carry-over over more than one run
//! is not tested, and fewer than about 10 blocks find little; settle between runs anyway.

use crate::effect::Observations;
use crate::random::Generator;
use crate::signed_rank;
use crate::summary::{doubled_ranks, mean};
use plumb_units::median;
use serde::Serialize;

/// Number of orders drawn for each test.
pub const DRAWS: usize = 999;

/// Fewest pairs of reference runs with a one-sided p of 5%; with fewer, all runs are
/// compared. The pairs alone missed a treatment that slows its successor by four deviations
/// in 10% of studies of 6 blocks.
const PAIRS_MIN: usize = 5;
/// The fewest blocks in which likeness of neighbours differs from chance.
const WANDERS_BLOCKS_MIN: usize = 12;

/// One group of runs: those at a position, or those after a slot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Group {
    /// Position in the block, or the slot that ran before.
    pub index: usize,
    /// Median log-ratio of its runs to the level expected from their slot and block.
    pub shift: f64,
}

/// Runs after some slots, compared with all other runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct After {
    /// Median log-ratio of runs after these slots to the level expected from their slot and block,
    /// less that of all others.
    pub shift: f64,
    /// p of "it does not matter if one of these ran before".
    pub p: f64,
}

/// Results of the tests of order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderReport {
    /// p of "position does not matter".
    pub position_p: f64,
    /// Shift of the runs at each position.
    pub positions: Vec<Group>,
    /// p of "the run before does not matter".
    pub carry_over_p: f64,
    /// Shift of the runs after each slot.
    pub predecessors: Vec<Group>,
    /// p of "the level does not drift over the blocks".
    pub drift_p: f64,
    /// Median slope of the level, log units a block (Theil 1950; Sen 1968).
    pub drift_per_block: f64,
}

impl OrderReport {
    /// Returns the largest distance between two predecessors' shifts, a log-ratio.
    pub fn carry_over_size(&self) -> f64 {
        spread(&self.predecessors)
    }
}

fn spread(groups: &[Group]) -> f64 {
    let highest = groups.iter().map(|group| group.shift).fold(f64::NEG_INFINITY, f64::max);
    let lowest = groups.iter().map(|group| group.shift).fold(f64::INFINITY, f64::min);
    if groups.is_empty() { 0.0 } else { highest - lowest }
}

/// Tests the order that ran: `orders[b]` lists the slots of block b as executed.
pub fn test(seen: &Observations, orders: &[Vec<usize>], seed: u64) -> OrderReport {
    assert_eq!(seen.blocks(), orders.len(), "an order for every block");
    let residuals = residuals(seen);
    let flat: Vec<f64> = residuals.iter().flatten().copied().collect();
    let centre = (flat.len() + 1) as f64;
    let ranks: Vec<f64> = doubled_ranks(&flat).iter().map(|rank| *rank as f64 - centre).collect();
    let slots = seen.slots();
    let (position, carry_over) = statistics(&ranks, orders, slots);
    let mut generator = Generator::new(seed);
    let mut drawn = orders.to_vec();
    let (mut position_count, mut carry_over_count) = (1usize, 1usize);
    for _ in 0..DRAWS {
        drawn.iter_mut().for_each(|order| generator.shuffle(order));
        let (other_position, other_carry_over) = statistics(&ranks, &drawn, slots);
        position_count += usize::from(other_position >= position * (1.0 - 1e-12));
        carry_over_count += usize::from(other_carry_over >= carry_over * (1.0 - 1e-12));
    }
    let (drift_p, drift_per_block) = drift(seen, &mut generator);
    OrderReport {
        position_p: position_count as f64 / (DRAWS + 1) as f64,
        positions: groups(&residuals, orders, slots, Grouping::Position),
        carry_over_p: carry_over_count as f64 / (DRAWS + 1) as f64,
        predecessors: groups(&residuals, orders, slots, Grouping::Predecessor),
        drift_p,
        drift_per_block,
    }
}

/// Slots after which runs may differ.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The slots of an arm that may affect its successors.
    pub slots: &'a [usize],
    /// The slots of the reference.
    pub twice: (usize, usize),
    /// Seed of the redrawn orders.
    pub seed: u64,
}

/// Tests if runs after these slots differ from other runs: the arm's carry-over. None if all runs
/// follow such a slot, or none does.
///
/// The report's test of all slots together has too many alternatives to find the effect of one arm.
pub fn after(seen: &Observations, orders: &[Vec<usize>], asked: &Asked<'_>) -> Option<After> {
    let Asked { slots, twice, seed } = *asked;
    let of_reference = after_reference(seen, orders, slots, twice);
    if seen.slots() == 3 && !slots.contains(&twice.0) && of_reference.is_some() {
        return of_reference;
    }
    let residuals = residuals(seen);
    let flat: Vec<f64> = residuals.iter().flatten().copied().collect();
    let centre = (flat.len() + 1) as f64;
    let ranks: Vec<f64> = doubled_ranks(&flat).iter().map(|rank| *rank as f64 - centre).collect();
    let apart = |values: &[f64], orders: &[Vec<usize>]| {
        let (mut behind, mut others) = (Vec::new(), Vec::new());
        let mut before = None;
        for (block, order) in orders.iter().enumerate() {
            for &slot in order {
                let Some(previous) = before.replace(slot) else { continue };
                let group = if slots.contains(&previous) { &mut behind } else { &mut others };
                group.push(values[block * seen.slots() + slot]);
            }
        }
        (behind, others)
    };
    let size = |orders: &[Vec<usize>]| {
        let (behind, others) = apart(&ranks, orders);
        (mean(&behind) - mean(&others)).abs()
    };
    let (behind, others) = apart(&flat, orders);
    if behind.is_empty() || others.is_empty() {
        return None;
    }
    let found = size(orders);
    let mut generator = Generator::new(seed);
    let mut drawn = orders.to_vec();
    let as_large = (0..DRAWS).filter(|_| {
        drawn.iter_mut().for_each(|order| generator.shuffle(order));
        size(&drawn) >= found * (1.0 - 1e-12)
    });
    let p = (1 + as_large.count()) as f64 / (DRAWS + 1) as f64;
    Some(After { shift: median(&behind) - median(&others), p })
}

/// Returns p of "the effects of neighbouring blocks are no more alike than others", in their order;
/// none for fewer than twelve blocks.
pub fn wanders_p(effects: &[f64], seed: u64) -> Option<f64> {
    if effects.len() < WANDERS_BLOCKS_MIN {
        return None;
    }
    let centre = (effects.len() + 1) as f64;
    let mut ranks: Vec<f64> = doubled_ranks(effects).iter().map(|rank| *rank as f64 - centre).collect();
    let likeness = |ranks: &[f64]| ranks.windows(2).map(|two| two[0] * two[1]).sum::<f64>();
    let found = likeness(&ranks);
    let mut generator = Generator::new(seed);
    let as_alike = (0..DRAWS).filter(|_| {
        generator.shuffle(&mut ranks);
        likeness(&ranks) >= found - 1e-9
    });
    Some((1 + as_alike.count()) as f64 / (DRAWS + 1) as f64)
}

/// Tests as [`after`] does, by the reference's two runs only. It takes the logarithm of the one
/// that follows such a slot over the one that does not, in each block with such a pair.
fn after_reference(
    seen: &Observations,
    orders: &[Vec<usize>],
    slots: &[usize],
    twice: (usize, usize),
) -> Option<After> {
    let mut differences = Vec::new();
    let mut before = None;
    for (block, order) in orders.iter().enumerate() {
        let (mut behind, mut other) = (None, None);
        for &slot in order {
            let previous = before.replace(slot);
            if slot == twice.0 || slot == twice.1 {
                let follows = previous.is_some_and(|previous| slots.contains(&previous));
                let place = if follows { &mut behind } else { &mut other };
                *place = previous.map(|_| seen.logs()[block][slot]);
            }
        }
        differences.extend(behind.zip(other).map(|(behind, other)| behind - other));
    }
    let shift = signed_rank::estimate(&differences);
    (differences.len() >= PAIRS_MIN).then(|| After { shift, p: signed_rank::p(&differences) })
}

/// Returns `[block][slot]` without the slot's and the block's own level.
fn residuals(seen: &Observations) -> Vec<Vec<f64>> {
    let levels: Vec<f64> = seen.logs().iter().map(|block| median(block)).collect();
    let slot_levels: Vec<f64> = (0..seen.slots())
        .map(|slot| {
            median(&seen.logs().iter().zip(&levels).map(|(b, level)| b[slot] - level).collect::<Vec<_>>())
        })
        .collect();
    let block = |(values, level): (&Vec<f64>, &f64)| {
        values.iter().zip(&slot_levels).map(|(value, slot)| value - level - slot).collect()
    };
    seen.logs().iter().zip(&levels).map(block).collect()
}

/// Returns the position's and the predecessor's statistic for an order;
/// `values` lists blocks, then slots.
fn statistics(values: &[f64], orders: &[Vec<usize>], slots: usize) -> (f64, f64) {
    let (mut at, mut after) = (vec![(0.0, 0.0); slots], vec![(0.0, 0.0); slots]);
    let mut before = None;
    for (block, order) in orders.iter().enumerate() {
        for (position, &slot) in order.iter().enumerate() {
            let value = values[block * slots + slot];
            at[position].0 += value;
            at[position].1 += 1.0;
            if let Some(previous) = before.replace(slot) {
                let group: &mut (f64, f64) = &mut after[previous];
                group.0 += value;
                group.1 += 1.0;
            }
        }
    }
    let between = |groups: &[(f64, f64)]| {
        groups.iter().filter(|(_, count)| *count > 0.0).map(|(sum, count)| sum * sum / count).sum::<f64>()
    };
    (between(&at), between(&after))
}

#[derive(Clone, Copy, PartialEq)]
enum Grouping {
    Position,
    Predecessor,
}

fn groups(residuals: &[Vec<f64>], orders: &[Vec<usize>], slots: usize, by: Grouping) -> Vec<Group> {
    let mut members: Vec<Vec<f64>> = vec![Vec::new(); slots];
    let mut before = None;
    for (block, order) in orders.iter().enumerate() {
        for (position, &slot) in order.iter().enumerate() {
            let previous = before.replace(slot);
            let group = if by == Grouping::Position { Some(position) } else { previous };
            if let Some(group) = group {
                members[group].push(residuals[block][slot]);
            }
        }
    }
    let filled = members.iter().enumerate().filter(|(_, values)| !values.is_empty());
    filled.map(|(index, values)| Group { index, shift: median(values) }).collect()
}

/// Returns p of Spearman's correlation of block and level, by redrawn orders of
/// the blocks, and the slope.
fn drift(seen: &Observations, generator: &mut Generator) -> (f64, f64) {
    let levels: Vec<f64> = seen.logs().iter().map(|block| median(block)).collect();
    let blocks = levels.len();
    let centre = (blocks as f64 - 1.0) / 2.0;
    let mut ranks: Vec<f64> = doubled_ranks(&levels).iter().map(|rank| *rank as f64).collect();
    let product = |ranks: &[f64]| {
        ranks.iter().enumerate().map(|(block, rank)| (block as f64 - centre) * rank).sum::<f64>().abs()
    };
    let found = product(&ranks);
    let mut count = 1usize;
    for _ in 0..DRAWS {
        generator.shuffle(&mut ranks);
        count += usize::from(product(&ranks) >= found - 1e-9);
    }
    let mut slopes = Vec::new();
    for first in 0..blocks {
        slopes.extend(
            (first + 1..blocks).map(|second| (levels[second] - levels[first]) / (second - first) as f64),
        );
    }
    (count as f64 / (DRAWS + 1) as f64, median(&slopes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::{Order, Schedule};

    /// Three arms, the reference twice; the run after slot 2 takes `dirt` longer.
    fn study(seed: u64, dirt: f64, late: f64, trend: f64) -> OrderReport {
        let schedule = Schedule { arms: 3, reference: 0, seed, order: Order::Shuffled };
        let mut generator = Generator::new(seed ^ 0xABCD);
        let orders = schedule.blocks(16);
        let mut before = 0;
        let rows: Vec<Vec<f64>> = orders
            .iter()
            .enumerate()
            .map(|(block, order)| {
                let mut row = vec![0.0; 4];
                for (position, &slot) in order.iter().enumerate() {
                    let mut log = 0.02 * generator.normal() + trend * block as f64 - 0.3 * slot as f64;
                    log += if before == 2 { dirt } else { 0.0 };
                    log += if position == 3 { late } else { 0.0 };
                    row[slot] = log.exp();
                    before = slot;
                }
                row
            })
            .collect();
        test(&Observations::new(4, &rows).unwrap(), &orders, seed)
    }

    #[test]
    fn each_fault_is_found_by_its_test() {
        let carried = study(1, 0.08, 0.0, 0.0);
        assert!(carried.carry_over_p <= 0.005, "{carried:?}");
        let worst = carried.predecessors.iter().max_by(|a, b| a.shift.total_cmp(&b.shift)).unwrap();
        assert_eq!(worst.index, 2);
        assert!(carried.carry_over_size() > 0.04);
        let late = study(2, 0.0, 0.06, 0.0);
        assert!(late.position_p <= 0.005 && spread(&late.positions) > 0.03, "{late:?}");
        let drifting = study(3, 0.0, 0.0, 0.01);
        assert!(drifting.drift_p <= 0.005 && (drifting.drift_per_block - 0.01).abs() < 0.003, "{drifting:?}");
    }

    #[test]
    fn a_small_carry_over_is_found_by_many_blocks() {
        // The run after the treatment is half a deviation slower.
        let found = |blocks: usize, dirt: f64| {
            let share = (0..200).filter(|seed| {
                let schedule = Schedule { arms: 2, reference: 0, seed: *seed, order: Order::Shuffled };
                let mut generator = Generator::new(seed ^ 0xABCD);
                let orders = schedule.blocks(blocks);
                let mut before = 0;
                let mut row = |order: &Vec<usize>| {
                    let mut row = vec![0.0; 3];
                    for &slot in order {
                        let dirty = if before == 1 { dirt } else { 0.0 };
                        row[slot] = (0.02 * generator.normal() + dirty).exp();
                        before = slot;
                    }
                    row
                };
                let rows: Vec<Vec<f64>> = orders.iter().map(&mut row).collect();
                let seen = Observations::new(3, &rows).unwrap();
                let found =
                    after(&seen, &orders, &Asked { slots: &[1], twice: (0, 2), seed: *seed }).unwrap();
                found.shift > 0.0 && found.p / 2.0 <= 0.05
            });
            share.count()
        };
        let (few, many, clean) = (found(20, 0.01), found(80, 0.01), found(80, 0.0));
        assert!(few < many && many >= 150 && clean <= 20, "{few} {many} {clean} of 200");
    }

    #[test]
    fn effects_that_wander_are_told_from_effects_that_vary() {
        let told = |rho: f64| {
            let wanders = |seed: &u64| {
                let mut generator = Generator::new(*seed);
                let mut state = generator.normal();
                let effects: Vec<f64> = (0..40)
                    .map(|_| {
                        state = rho * state + (1.0 - rho * rho).sqrt() * generator.normal();
                        state + 0.5 * generator.normal()
                    })
                    .collect();
                wanders_p(&effects, *seed).is_some_and(|p| p <= 0.01)
            };
            (0..200).filter(wanders).count()
        };
        assert!(told(0.9) >= 150 && told(0.0) <= 8, "{} {}", told(0.9), told(0.0));
        assert_eq!(wanders_p(&[0.0; 11], 1), None);
    }

    #[test]
    fn a_clean_study_is_seldom_accused() {
        let mut accused = [0; 3];
        for seed in 0..120 {
            let report = study(100 + seed, 0.0, 0.0, 0.0);
            for (count, p) in accused.iter_mut().zip([report.position_p, report.carry_over_p, report.drift_p])
            {
                *count += usize::from(p <= 0.05);
            }
        }
        assert!(accused.iter().all(|count| *count <= 14), "{accused:?} of 120");
    }
}
