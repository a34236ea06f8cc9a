//! The runs that count: those of complete blocks whose runs all finished and verified.
//!
//! The block is the unit. One run that crashed or returned a wrong result takes its block with it.
//! Without that run, the others have lost what they are compared with. Also, the treatment may
//! influence which run of a block fails.

use crate::analysis::result::MarkedBlock;
use crate::bundle::{Contents, Ended, RunRecord};
use crate::definition::Sides;
use crate::plan::Until;
use plumb_proof::change_point::ChangePoint;
use plumb_proof::contrast::Lost;
use plumb_proof::family::Looks;
use plumb_proof::sequential::Spending;
use plumb_record::Record;

pub(super) struct UsedBlocks<'a> {
    pub(super) contents: &'a Contents,
    /// Blocks used, numbered from 1, each with its runs by slot.
    pub(super) blocks: Vec<(u64, Vec<&'a RunRecord>)>,
    pub(super) marked: Vec<MarkedBlock>,
}

impl<'a> UsedBlocks<'a> {
    pub(super) fn of(contents: &'a Contents) -> UsedBlocks<'a> {
        let mut used = UsedBlocks { contents, blocks: Vec::new(), marked: Vec::new() };
        let begun = contents.runs.iter().filter_map(|run| run.block).max().unwrap_or(0);
        for block in 1..=begun {
            match block_of(contents, block) {
                Ok(runs) => used.blocks.push((block, runs)),
                Err(reason) => used.marked.push(MarkedBlock { block, reason }),
            }
        }
        used
    }

    /// Returns the slots of the used blocks in order of execution.
    pub(super) fn orders(&self) -> Vec<Vec<usize>> {
        let order = |(block, _): &(u64, Vec<_>)| {
            self.contents.plan.schedule.block(usize::try_from(*block).unwrap_or(usize::MAX))
        };
        self.blocks.iter().map(order).collect()
    }

    /// Returns the counted records of some arms, with their runs.
    pub(super) fn records(&self, arms: &[usize]) -> Vec<(&'a RunRecord, &'a Record)> {
        let runs = self.blocks.iter().flat_map(|(_, runs)| runs.iter().copied());
        let ours = runs.filter(|run| arms.contains(&run.arm_index));
        ours.filter_map(|run| Some((run, run.record.as_ref()?))).collect()
    }

    /// Returns the looks at the figures: one per block in a study that ends when it is decided.
    pub(super) fn looks(&self) -> Looks {
        let plan = &self.contents.plan;
        match plan.until {
            Until::Decided => Looks::Every(Spending::Planned { blocks: plan.study.blocks }),
            Until::Blocks => Looks::Once,
        }
    }

    /// Counts blocks excluded because a run of these arms failed, by side.
    pub(super) fn lost(&self, Sides { to, from }: &Sides) -> Lost {
        let (failed, schedule) = (self.failed(), &self.contents.plan.schedule);
        let of = |arms: &[usize]| failed.iter().flatten().filter(|arm| arms.contains(arm)).count();
        let runs = |arms: &[usize]| {
            (0..schedule.slots()).filter(|slot| arms.contains(&schedule.arm_of(*slot))).count()
        };
        let both = |arm: &usize| to.contains(arm) || from.contains(arm);
        Lost {
            blocks: failed.iter().filter(|failed| failed.iter().any(both)).count(),
            treatment: of(to),
            reference: of(from),
            treatment_runs: runs(to),
            reference_runs: runs(from),
        }
    }

    /// Returns for each excluded block the arms with a failed run.
    pub(super) fn failed(&self) -> Vec<Vec<usize>> {
        let of = |block: u64| {
            let runs = self.contents.runs.iter().filter(|run| run.block == Some(block));
            let failed = runs.filter(|run| matches!(run.ended, Ended::Failed { .. }));
            failed.map(|run| run.arm_index).collect()
        };
        self.marked.iter().map(|marked| of(marked.block)).collect()
    }

    /// Returns the first block after a change; a steady change has none.
    pub(super) fn first_block_of(&self, change: &ChangePoint) -> Option<u64> {
        self.blocks.get(change.index).filter(|_| !change.steady).map(|(block, _)| *block)
    }

    /// True if the run's block is used.
    pub(super) fn counts(&self, run: &RunRecord) -> bool {
        self.blocks.iter().any(|(block, _)| run.block == Some(*block))
    }
}

/// Returns the reason why a run itself does not count; `None` if it does.
pub(super) fn fault(run: &RunRecord) -> Option<String> {
    if let Ended::Failed { reason } = &run.ended {
        return Some(reason.clone());
    }
    let failed = run.record.as_ref()?.checks.iter().find(|check| !check.passed)?;
    Some(format!("verification failed: {}: {}", failed.name, failed.detail))
}

/// Returns the runs of a block by slot, or the reason why it is not used.
fn block_of(contents: &Contents, block: u64) -> Result<Vec<&RunRecord>, String> {
    let runs: Vec<&RunRecord> = contents.runs.iter().filter(|run| run.block == Some(block)).collect();
    if let Some((run, why)) = runs.iter().find_map(|run| Some((run, fault(run)?))) {
        return Err(format!("run {} ({}): {why}", run.number, run.arm));
    }
    let slots = contents.plan.schedule.slots();
    let by_slot: Option<Vec<&RunRecord>> =
        (0..slots).map(|slot| runs.iter().copied().find(|run| run.slot == slot)).collect();
    by_slot.ok_or_else(|| format!("{} of its {slots} runs were made", runs.len()))
}
