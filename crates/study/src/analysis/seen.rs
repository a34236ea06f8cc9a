//! The runs that count: those of complete blocks whose runs all finished and verified.
//!
//! The block is the unit. One run that crashed or returned a wrong result takes its block with it.
//! Without that run, the others have lost what they are compared with. Also, the treatment may
//! influence which run of a block fails.

use super::canary;
use crate::analysis::result::MarkedBlock;
use crate::bundle::{Contents, Ended, RunRecord};
use crate::definition::Sides;
use crate::plan::Until;
use crate::vocabulary::{Better, Measure};
use plumb_proof::ProofError;
use plumb_proof::contrast::Lost;
use plumb_proof::effect::Observations;
use plumb_proof::family::Looks;
use plumb_proof::order::{self, After, Asked};
use plumb_proof::sequential::Spending;
use plumb_record::Record;

pub(super) struct Seen<'a> {
    pub(super) contents: &'a Contents,
    /// Blocks used, numbered from 1, each with its runs by slot.
    pub(super) blocks: Vec<(u64, Vec<&'a RunRecord>)>,
    pub(super) marked: Vec<MarkedBlock>,
}

impl<'a> Seen<'a> {
    pub(super) fn of(contents: &'a Contents) -> Seen<'a> {
        let mut seen = Seen { contents, blocks: Vec::new(), marked: Vec::new() };
        let begun = contents.runs.iter().filter_map(|run| run.block).max().unwrap_or(0);
        for block in 1..=begun {
            match block_of(contents, block) {
                Ok(runs) => seen.blocks.push((block, runs)),
                Err(reason) => seen.marked.push(MarkedBlock { block, reason }),
            }
        }
        seen
    }

    /// Returns the figures of the used blocks by slot. The study's own measure has the canary as a
    /// covariate, if that explains enough of the noise.
    pub(super) fn observations(&self, measure: &Measure) -> Result<Observations, ProofError> {
        let figures = self.measured(measure)?;
        let own = *measure == self.contents.plan.study.measure;
        Ok(if own { canary::beside(self, figures) } else { figures })
    }

    /// Returns the figures without a covariate.
    pub(super) fn measured(&self, measure: &Measure) -> Result<Observations, ProofError> {
        let value = |run: &&RunRecord| run.record.as_ref().map_or(0.0, |record| measure.value(record));
        let rows: Vec<Vec<f64>> =
            self.blocks.iter().map(|(_, runs)| runs.iter().map(value).collect()).collect();
        Observations::new(self.contents.plan.schedule.slots(), &rows)
    }

    /// Returns the figures as costs: a rate by its inverse, so that less
    /// is better for every measure.
    pub(super) fn costs(&self, measure: &Measure) -> Result<Observations, ProofError> {
        let cost = |logs: &Vec<f64>| match measure.better {
            Better::Lower => logs.iter().map(|log| log.exp()).collect(),
            Better::Higher => logs.iter().map(|log| (-log).exp()).collect(),
        };
        let rows: Vec<Vec<f64>> = self.measured(measure)?.logs().iter().map(cost).collect();
        let costs = Observations::new(self.contents.plan.schedule.slots(), &rows)?;
        let own = *measure == self.contents.plan.study.measure;
        Ok(if own { canary::beside(self, costs) } else { costs })
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

    /// Compares the runs that follow these arms with all others.
    pub(super) fn after(&self, observations: &Observations, arms: &[usize]) -> Option<After> {
        let schedule = &self.contents.plan.schedule;
        let slots: Vec<usize> =
            (0..schedule.slots()).filter(|slot| arms.contains(&schedule.arm_of(*slot))).collect();
        order::after(
            observations,
            &self.orders(),
            &Asked { slots: &slots, twice: self.contents.plan.twice(), seed: schedule.seed },
        )
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
