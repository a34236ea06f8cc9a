//! The arms of a study, and the order in which they run.
//!
//! Arms. A full factorial runs every combination of levels, so that each factor's effect is an
//! average over all settings of the others, and interactions show. A regular fraction of a
//! two-level design makes some columns products of others: with D = ABC, eight runs carry four
//! factors (Box, Hunter 1961). The products that equal the identity (here ABCD) form the
//! defining words; the length of the shortest is the resolution. III confuses main effects
//! with pairs, IV pairs with pairs, V neither. Fractions exist for two levels only; mixed
//! levels take the full design.
//!
//! Order. Machines drift, so arms are compared within blocks, each with every arm once and the
//! reference twice. The second copy is a treatment without effect (A/A), which measures the study's
//! noise floor. Slots 0..arms are the arms; the last slot is the copy.
//!
//! ```text
//! block 0   T2  R   T1  R'         every order equally likely, drawn from
//! block 1   R'  T2  R   T1         (seed, block): resuming a study, or
//! block 2   T1  R   R'  T2         adding blocks, changes no block before
//! ```
//!
//! Why not the balanced orders of Williams (1949) by default, in which every slot follows every
//! other equally often: balance makes the blocks of a cycle depend on each other. Independent
//! shuffles are exactly the coin tosses that the sign-flip test counts. Williams orders are offered
//! for studies whose runs are known to affect their successors. Alternating ABAB is not offered: it
//! resonates with any periodic neighbour.

use crate::ProofError;
use crate::random::Generator;
use serde::Serialize;

/// Most arms: a larger number is a mistake in a study file, because at one minute a run a single
/// block would take over eight hours.
pub const ARMS_MAX: usize = 512;
/// Most generators: there are 2^generators - 1 defining words, all of which are listed.
const GENERATORS_MAX: usize = 12;

/// A setting that a study varies, with its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// Name, as the study gives it.
    pub name: String,
    /// Names of the levels, at least two.
    pub levels: Vec<String>,
}

/// The arms of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    /// The factors, in the order in which an arm lists its levels.
    pub factors: Vec<Factor>,
    /// One row for each arm: the index of each factor's level.
    pub arms: Vec<Vec<usize>>,
    /// Sets of factors whose product is constant; none in a full design.
    pub defining_words: Vec<Vec<usize>>,
}

impl Design {
    /// Creates every combination; the last factor changes fastest.
    pub fn full(factors: Vec<Factor>) -> Result<Self, ProofError> {
        check_levels(&factors)?;
        let arms = factors.iter().try_fold(1usize, |arms, factor| {
            let arms = arms * factor.levels.len();
            if arms > ARMS_MAX {
                return Err(ProofError::TooMany { what: "arms", found: arms, most: ARMS_MAX });
            }
            Ok(arms)
        })?;
        let row = |arm: usize| {
            let mut rest = arm;
            let mut levels: Vec<usize> = factors
                .iter()
                .rev()
                .map(|factor| {
                    let level = rest % factor.levels.len();
                    rest /= factor.levels.len();
                    level
                })
                .collect();
            levels.reverse();
            levels
        };
        let arms = (0..arms).map(row).collect();
        Ok(Self { factors, arms, defining_words: Vec::new() })
    }

    /// Creates a regular two-level fraction. The last `generators.len()` factors are not free: each
    /// is the product of the free factors that its generator names.
    pub fn fraction(factors: Vec<Factor>, generators: &[Vec<usize>]) -> Result<Self, ProofError> {
        check_levels(&factors)?;
        if let Some(factor) = factors.iter().find(|factor| factor.levels.len() != 2) {
            let found = factor.levels.len();
            return Err(ProofError::TooMany { what: "levels in a fraction", found, most: 2 });
        }
        let free = factors.len().checked_sub(generators.len()).filter(|free| *free > 0).ok_or(
            ProofError::TooFew {
                what: "factors in a fraction",
                found: factors.len(),
                needed: generators.len() + 1,
            },
        )?;
        // The full design bounds the free factors, before their bits are shifted.
        let base = Self::full(factors[..free].to_vec())?;
        if generators.len() > GENERATORS_MAX {
            let found = generators.len();
            return Err(ProofError::TooMany { what: "generators", found, most: GENERATORS_MAX });
        }
        let masks = generator_masks(generators, free)?;
        let arms = base
            .arms
            .into_iter()
            .map(|mut arm| {
                // Level 1 is +, level 0 is -; a product is + if an even number is -.
                let signs = arm.clone();
                for mask in &masks {
                    let minus = (0..free).filter(|bit| mask >> bit & 1 == 1 && signs[*bit] == 0).count();
                    arm.push(usize::from(minus % 2 == 0));
                }
                arm
            })
            .collect();
        let defining_words = words(&masks, free);
        Ok(Self { factors, arms, defining_words })
    }

    /// Returns the length of the shortest defining word; none for a
    /// full design, which confuses nothing.
    pub fn resolution(&self) -> Option<usize> {
        self.defining_words.iter().map(Vec::len).min()
    }
}

fn check_levels(factors: &[Factor]) -> Result<(), ProofError> {
    if factors.is_empty() {
        return Err(ProofError::TooFew { what: "factors", found: 0, needed: 1 });
    }
    match factors.iter().find(|factor| factor.levels.len() < 2) {
        Some(factor) => {
            Err(ProofError::TooFew { what: "levels of a factor", found: factor.levels.len(), needed: 2 })
        }
        None => Ok(()),
    }
}

/// Returns each generator as a set of bits over the free factors.
fn generator_masks(generators: &[Vec<usize>], free: usize) -> Result<Vec<u64>, ProofError> {
    let mut masks: Vec<u64> = Vec::new();
    for (index, generator) in generators.iter().enumerate() {
        let mut mask = 0u64;
        for &factor in generator {
            if factor >= free {
                return Err(ProofError::Unknown { what: "free factor", index: factor, last: free - 1 });
            }
            mask ^= 1 << factor;
        }
        if mask.count_ones() < 2 || masks.contains(&mask) {
            return Err(ProofError::Confounded { index });
        }
        masks.push(mask);
    }
    Ok(masks)
}

/// Returns the products of all non-empty sets of generator words: the defining relation.
fn words(masks: &[u64], free: usize) -> Vec<Vec<usize>> {
    let own: Vec<u64> = masks.iter().enumerate().map(|(i, mask)| mask | 1 << (free + i)).collect();
    let mut words: Vec<Vec<usize>> = (1u64..1 << own.len())
        .map(|chosen| {
            let word =
                own.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1).fold(0, |w, (_, m)| w ^ m);
            (0..64).filter(|bit| word >> bit & 1 == 1).collect()
        })
        .collect();
    words.sort_by_key(|word| (word.len(), word.clone()));
    words
}

/// Method by which a block's order is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Every order of every block equally likely.
    Shuffled,
    /// Cycles in which each slot follows each other one equally often.
    Williams,
}

/// The orders in which slots run: a function of its fields and the block's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Number of arms, the reference included.
    pub arms: usize,
    /// The arm that runs twice in a block.
    pub reference: usize,
    /// Seed of the orders, recorded with the study.
    pub seed: u64,
    /// Method by which orders are drawn.
    pub order: Order,
}

impl Schedule {
    /// Returns the slots of a block: the arms, and the reference once more.
    pub fn slots(&self) -> usize {
        self.arms + 1
    }

    /// Returns the slot of the reference's second run.
    pub fn reference_again(&self) -> usize {
        self.arms
    }

    /// Returns the arm that runs in a slot.
    pub fn arm_of(&self, slot: usize) -> usize {
        if slot == self.reference_again() { self.reference } else { slot }
    }

    /// Returns the slots of block `index` in the order in which they run.
    pub fn block(&self, index: usize) -> Vec<usize> {
        let mut slots: Vec<usize> = (0..self.slots()).collect();
        match self.order {
            Order::Shuffled => {
                Generator::of_part(self.seed, index as u64).shuffle(&mut slots);
                slots
            }
            Order::Williams => {
                let rows = williams(self.slots());
                let mut generator = Generator::of_part(self.seed, (index / rows.len()) as u64);
                generator.shuffle(&mut slots);
                let mut row_order: Vec<usize> = (0..rows.len()).collect();
                generator.shuffle(&mut row_order);
                rows[row_order[index % rows.len()]].iter().map(|label| slots[*label]).collect()
            }
        }
    }

    /// Returns the first `blocks` blocks, each an order of slots.
    pub fn blocks(&self, blocks: usize) -> Vec<Vec<usize>> {
        (0..blocks).map(|index| self.block(index)).collect()
    }
}

/// Returns rows 0, 1, k-1, 2, k-2, ... each shifted by one; for an odd k also reversed.
fn williams(slots: usize) -> Vec<Vec<usize>> {
    let zigzag = |step: usize| if step % 2 == 1 { step.div_ceil(2) } else { (slots - step / 2) % slots };
    let mut rows: Vec<Vec<usize>> =
        (0..slots).map(|shift| (0..slots).map(|step| (zigzag(step) + shift) % slots).collect()).collect();
    if slots % 2 == 1 {
        let reversed: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(reversed);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn factors(levels: &[usize]) -> Vec<Factor> {
        levels
            .iter()
            .enumerate()
            .map(|(i, n)| Factor { name: format!("f{i}"), levels: (0..*n).map(|l| l.to_string()).collect() })
            .collect()
    }

    #[test]
    fn a_full_design_has_every_combination_once() {
        let design = Design::full(factors(&[2, 2, 3])).unwrap();
        assert_eq!(design.arms.len(), 12);
        assert_eq!(design.arms[..4], [vec![0, 0, 0], vec![0, 0, 1], vec![0, 0, 2], vec![0, 1, 0]]);
        assert_eq!(design.resolution(), None);
        assert!(Design::full(factors(&[1])).is_err());
        assert!(Design::full(factors(&[8, 8, 9])).is_err());
    }

    #[test]
    fn fractions_have_the_resolution_of_their_words() {
        // 2^(4-1), D = ABC: IV. 2^(5-2), D = AB, E = AC: III. 2^(5-1), E = ABCD: V.
        let half = Design::fraction(factors(&[2; 4]), &[vec![0, 1, 2]]).unwrap();
        assert_eq!((half.arms.len(), half.resolution()), (8, Some(4)));
        let quarter = Design::fraction(factors(&[2; 5]), &[vec![0, 1], vec![0, 2]]).unwrap();
        assert_eq!((quarter.arms.len(), quarter.resolution()), (8, Some(3)));
        assert_eq!(quarter.defining_words, [vec![0, 1, 3], vec![0, 2, 4], vec![1, 2, 3, 4]]);
        let five = Design::fraction(factors(&[2; 5]), &[vec![0, 1, 2, 3]]).unwrap();
        assert_eq!((five.arms.len(), five.resolution()), (16, Some(5)));
        for design in [half, quarter, five] {
            for (a, b) in [(0, 1), (0, 3), (1, 3)] {
                let same = design.arms.iter().filter(|arm| arm[a] == arm[b]).count();
                assert_eq!(2 * same, design.arms.len(), "columns {a} and {b} are not orthogonal");
            }
        }
    }

    #[test]
    fn impossible_fractions_are_refused() {
        for generators in [vec![vec![0]], vec![vec![0, 1], vec![1, 0]], vec![vec![0, 9]], vec![vec![]; 5]] {
            assert!(Design::fraction(factors(&[2; 4]), &generators).is_err(), "{generators:?}");
        }
        assert!(Design::fraction(factors(&[2, 3, 2]), &[vec![0, 1]]).is_err());
    }

    #[test]
    fn blocks_hold_every_slot_and_do_not_depend_on_their_number() {
        let schedule = Schedule { arms: 3, reference: 1, seed: 9, order: Order::Shuffled };
        let orders = schedule.blocks(400);
        assert_eq!(orders[7], schedule.block(7));
        let mut first = [0usize; 4];
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            first[order[0]] += 1;
        }
        assert!(first.iter().all(|count| (70..130).contains(count)), "{first:?}");
        assert_eq!(schedule.arm_of(3), 1);
    }

    #[test]
    fn williams_orders_are_balanced_for_predecessors() {
        for arms in [2, 3, 4, 5] {
            let schedule = Schedule { arms, reference: 0, seed: 5, order: Order::Williams };
            let cycle = williams(schedule.slots()).len();
            let mut followed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for order in schedule.blocks(cycle) {
                order.windows(2).for_each(|pair| *followed.entry((pair[0], pair[1])).or_default() += 1);
            }
            let slots = schedule.slots();
            assert_eq!(followed.len(), slots * (slots - 1));
            let expected = cycle * (slots - 1) / (slots * (slots - 1));
            assert!(followed.values().all(|count| *count == expected), "{arms} arms: {followed:?}");
        }
    }
}
