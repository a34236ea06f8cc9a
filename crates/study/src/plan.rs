//! Runs of a study and their order: a function of the study and the seed alone.
//!
//! ```text
//! block 0    warm-up: recorded, not counted      R  T2 T1 R'
//! block 1..  every arm once, the reference twice  T2 R  T1 R'    drawn from (seed, block)
//! ```
//!
//! The stopping rule is planned, too: after N blocks, or as soon as everything is decided, with N
//! as the maximum. In the second case the error of every look is paid for in advance
//! (`proof::sequential`). A time budget ends a study before a block that would not fit. It is set
//! before any figure is seen, so it needs no correction.

use crate::StudyError;
use crate::definition::{Claim, Of, Study};
use crate::vocabulary::{Assignment, SettingFacts};
use plumb_proof::design::{Design, Schedule};
use plumb_proof::quantile;
use plumb_proof::randomisation::{blocks_needed, fewest_blocks};
use plumb_units::Nanos;
use serde::{Deserialize, Serialize};

/// Rows per second, above the rate at which any machine loads, sorts and verifies. A budget too
/// small even at this rate is rejected before anything is measured.
const ROWS_PER_SECOND_MAX: f64 = 20e6;
/// Shortest time of a run: a process, an opened database, a settled device.
const RUN_SECONDS_MIN: f64 = 0.1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    Blocks,
    /// When every claim is decided or hopeless, at the latest after the planned blocks.
    Decided,
}

/// Changes of a study's plan by the command line.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanOptions {
    pub rows: Option<u64>,
    pub blocks: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// Number of the block; 0 is the warm-up.
    pub block: usize,
    /// Place in the block, from 1.
    pub position: usize,
    /// Slot in the block; the last one is the reference's second run.
    pub slot: usize,
    pub arm: usize,
}

/// A study with its arms and its order.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The study, with the changes of the command line.
    pub study: Study,
    /// The arms, as levels of the factors.
    pub design: Design,
    pub schedule: Schedule,
    pub until: Until,
}

impl Plan {
    /// Plans a study with these changes. Fails if its design is impossible.
    pub fn new(mut study: Study, options: PlanOptions, until: Until, seed: u64) -> Result<Plan, StudyError> {
        let why = |why: String| StudyError::Plan { study: study.name.clone(), why };
        if let Some(rows) = options.rows {
            let work =
                study.work.as_mut().ok_or_else(|| why("it has no rows; leave --rows out".to_string()))?;
            *work = work.with_rows(rows).map_err(why)?;
        }
        study.blocks = options.blocks.unwrap_or(study.blocks);
        if let Some(claim) = study.claims.iter().find(|claim| claim.of == Of::P95 && until == Until::Decided)
        {
            return Err(why(format!(
                "the claim {} is of a p95, which is tested once: leave --until decided out, and give --blocks",
                claim.name
            )));
        }
        let design = study
            .design()
            .map_err(|error| StudyError::Plan { study: study.name.clone(), why: error.to_string() })?;
        // The first level of every factor is its reference, whatever the generators make of it.
        let first = vec![0; study.factors.len()];
        let reference = design.arms.iter().position(|levels| *levels == first).unwrap_or(0);
        let schedule = Schedule { arms: design.arms.len(), reference, seed, order: study.order };
        Ok(Plan { study, design, schedule, until })
    }

    pub fn arm_name(&self, arm: usize) -> String {
        self.study.arm_name(&self.design.arms[arm])
    }

    pub fn arm_settings(&self, arm: usize) -> Vec<Assignment> {
        self.study.arm_settings(&self.design.arms[arm])
    }

    /// Returns the runs of a block in order of execution.
    pub fn block(&self, block: usize) -> Vec<Cell> {
        let slots = self.schedule.block(block);
        let cell = |(index, slot)| Cell { block, position: index + 1, slot, arm: self.schedule.arm_of(slot) };
        slots.into_iter().enumerate().map(cell).collect()
    }

    /// Rejects a budget too small for a single block. The error names the least time of one block.
    pub fn require_room(&self, budget: Option<Nanos>) -> Result<(), StudyError> {
        let Some(budget) = budget else { return Ok(()) };
        let run = (self.study.rows() as f64 / ROWS_PER_SECOND_MAX).max(RUN_SECONDS_MIN);
        let needed = Nanos((run * self.schedule.slots() as f64 * 1e9) as u64);
        if budget >= needed {
            return Ok(());
        }
        Err(StudyError::Budget { budget, runs: self.schedule.slots(), rows: self.study.rows_asked(), needed })
    }

    /// Returns facts about the settings that the study gives.
    pub fn setting_facts(&self) -> Vec<SettingFacts> {
        let levels = self.study.factors.iter().flat_map(|factor| &factor.levels);
        let given = self.study.settings.iter().chain(levels.flat_map(|level| &level.settings));
        let mut facts: Vec<SettingFacts> = given
            .filter_map(|set| Some(self.study.vocabulary.setting(&set.name, &set.value, "").ok()?.0))
            .collect();
        facts.sort_by(|one, two| one.name.cmp(&two.name));
        facts.dedup();
        facts
    }

    /// Returns a warning about a study too short to prove anything, or anything of a p95.
    pub fn too_short(&self) -> Option<String> {
        let blocks = self.study.blocks;
        let count = |claims: usize| format!("{claims} claim{}", if claims == 1 { "" } else { "s" });
        let too_few = |needed: usize, what: String| {
            let ending = if blocks == 1 { "" } else { "s" };
            (blocks < needed).then(|| {
                format!(
                    "{blocks} block{ending} can prove nothing of {what}: the fewest that can are {needed}; the figures will \
                     be there all the same"
                )
            })
        };
        let of_p95 = self.study.claims.iter().filter(|claim| claim.of == Of::P95).count();
        let needed = if of_p95 == 0 { 0 } else { self.blocks_needed_for_p95() };
        too_few(self.blocks_needed(), count(self.study.claims.len()))
            .or_else(|| too_few(needed, format!("{} in p95", count(of_p95))))
    }

    /// Returns the fewest blocks that can prove the first of the claims.
    pub fn blocks_needed(&self) -> usize {
        blocks_needed(self.study.alpha, self.study.claims.len())
    }

    /// Returns the fewest blocks that can prove a claim of a p95 before the other claims.
    pub fn blocks_needed_for_p95(&self) -> usize {
        quantile::fewest_blocks(self.study.alpha / self.study.claims.len().max(1) as f64)
    }

    /// Returns the slots of the reference arm.
    pub fn twice(&self) -> (usize, usize) {
        (self.schedule.reference, self.schedule.reference_again())
    }

    /// Returns the claim that decides between two arms: it compares them
    /// by the study's own measure.
    pub fn advice_claim(&self) -> Option<usize> {
        let compares = |claim: &Claim| {
            let sides = claim.sides(&self.design);
            claim.with.is_none()
                && claim.of != Of::P95
                && claim.measure.as_ref().is_none_or(|measure| *measure == self.study.measure)
                && sides.to.len() == 1
                && sides.from.len() == 1
        };
        (self.schedule.arms == 2).then(|| self.study.claims.iter().position(compares)).flatten()
    }

    /// Returns the fewest blocks that can recommend an arm, once every claim is settled. It
    /// has two comparisons per block, with both runs of the reference, and its test is one of
    /// 2K - 3 among K arms.
    pub fn blocks_to_recommend(&self) -> usize {
        let tests = (2 * self.schedule.arms).saturating_sub(3).max(1);
        fewest_blocks(1.0 / 3.0, 2.0 * self.study.alpha / tests as f64)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::definition::{catalog, parse};
    use crate::targets::command::Commands;

    /// A plan of a shipped study of commands.
    pub(crate) fn plan(seed: u64) -> Plan {
        let (file, text) = catalog::text("file-copy").expect("the study is there");
        let study = parse(file, text, &[&Commands]).expect("a study that is well formed");
        Plan::new(study, PlanOptions::default(), Until::Blocks, seed).expect("a design")
    }

    #[test]
    fn the_order_of_runs_follows_from_the_seed() {
        let order = |seed| (0..8).flat_map(|block| plan(seed).block(block)).collect::<Vec<Cell>>();
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }

    #[test]
    fn every_block_has_each_arm_once_and_the_reference_twice() {
        let plan = plan(3);
        for block in 0..12 {
            let mut arms: Vec<usize> = plan.block(block).iter().map(|cell| cell.arm).collect();
            arms.sort_unstable();
            let mut expected: Vec<usize> = (0..plan.schedule.arms).chain([plan.schedule.reference]).collect();
            expected.sort_unstable();
            assert_eq!(arms, expected);
        }
        assert_eq!(
            plan.arm_name(plan.schedule.reference),
            plan.study.arm_name(&vec![0; plan.study.factors.len()])
        );
    }

    #[test]
    fn a_p95_is_tested_once_in_enough_blocks() {
        let (file, text) = catalog::text("file-copy").expect("the study is there");
        let text = text.replacen("expect = \"faster\"", "expect = \"faster in p95\"", 1);
        let study = parse(file, &text, &[&Commands]).expect("a study that is well formed");
        let plan = |blocks: usize, until| {
            let options = PlanOptions { blocks: Some(blocks), rows: None };
            Plan::new(study.clone(), options, until, 1)
        };
        let needed = plan(9, Until::Blocks).expect("a plan").blocks_needed_for_p95();
        let warned = |blocks| plan(blocks, Until::Blocks).expect("a plan").too_short();
        let few = warned(needed - 1).expect("a warning");
        assert!(
            few.contains(&format!("nothing of 1 claim in p95: the fewest that can are {needed}")),
            "{few}"
        );
        assert_eq!(warned(needed), None);
        let refused = plan(needed, Until::Decided).expect_err("it may stop").to_string();
        assert!(
            refused.contains("is of a p95, which is tested once: leave --until decided out"),
            "{refused}"
        );
    }

    #[test]
    fn a_budget_below_one_block_is_refused() {
        let plan = plan(1);
        assert!(plan.require_room(None).is_ok());
        assert!(plan.require_room(Some(Nanos(600_000_000_000))).is_ok());
        let refused = plan.require_room(Some(Nanos(50_000_000))).expect_err("less than a run");
        assert!(refused.to_string().starts_with("--budget "), "{refused}");
    }
}
