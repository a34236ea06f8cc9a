//! Runs a study block by block; settles before each run and keeps its record.
//!
//! ```text
//! for each block:   stop? ──> for each cell of its order:  ready ──> canary ──> run ──> bundle
//! ```
//!
//! A block with a failed run is abandoned: it could not be used, and another block is a better use
//! of the time. Three failed blocks end the study, because repeated failures are a fault of the
//! experiment. A resumed study starts with a warm-up run of the reference, because its databases
//! are new.
//!
//! A budget ends a study for good, with verdicts. Only an interrupted study can continue, and until
//! its end no figure of it is shown (`analysis`). Its clock stops between interruption and
//! resumption.

use crate::bundle::{Bundle, EndFile, Ended, RunRecord, Settled, Stop, errors_name};
use crate::observer::{Observer, Stage};
use crate::plan::{Cell, Plan, Until};
use crate::targets::{ExplainedPlan, Failure, NoRecord, Preparation, Target};
use crate::{StudyError, analysis};
use plumb_events::{Cancel, clock};
use plumb_record::Record;
use plumb_units::Nanos;
use std::collections::BTreeSet;

/// Failed blocks that end a study.
const FAILED_BLOCKS_MAX: usize = 3;

/// Runs the rest of a study's plan and records why it stopped. A study that ended by its own rule
/// is unchanged. After an error the bundle stays whole.
pub fn execute(
    bundle: &mut Bundle,
    target: &mut dyn Target,
    budget: Option<Nanos>,
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Stop, StudyError> {
    let plan = bundle.contents().plan.clone();
    if let Some(stop) = ended(bundle)? {
        return Ok(stop);
    }
    let begin = clock::now();
    let (before, runs_before) = (bundle.contents().ran(), bundle.contents().runs.len());
    bundle.go_on()?;
    let arms: Vec<_> = (0..plan.design.arms.len()).map(|arm| plan.arm_settings(arm)).collect();
    let name = format!("plumb-study-{}", bundle.contents().id());
    let expects_same = plan.study.expects_same;
    target.prepare(&Preparation { arms: &arms, expects_same, name: &name })?;
    let stop = Execution {
        plan: &plan,
        bundle,
        target,
        cancel,
        observer,
        budget,
        begin,
        before,
        runs_before,
        blocks_timed: Vec::new(),
    }
    .blocks()?;
    if let (Stop::Budget, Some(budget)) = (stop, budget) {
        require_block(bundle, &plan, budget, begin)?;
    }
    let end_ns = (before + clock::now().saturating_sub(begin)).0;
    bundle.end(EndFile { stop, end_ns })?;
    Ok(stop)
}

/// Reason to exclude a run that was suspended for part of its time.
fn stood_still(stopped: Nanos) -> String {
    format!(
        "its processes were stopped, or the machine was suspended, for {stopped}: its time is not that of its work"
    )
}

/// Returns the reason why a study has ended by its own rule; `None` if it may continue.
/// Fails if it ended before its last block: its figures were shown, and more blocks after
/// that would be another experiment.
pub fn ended(bundle: &Bundle) -> Result<Option<Stop>, StudyError> {
    match bundle.contents().end.map(|end| end.stop) {
        None | Some(Stop::Interrupted) => Ok(None),
        Some(Stop::Budget | Stop::Ended) => {
            let why = "it has ended before its last block, and its figures were shown: more blocks after a look at them \
                       would prove too much";
            Err(StudyError::Resume { path: bundle.directory().to_path_buf(), why: why.to_string() })
        }
        stop => Ok(stop),
    }
}

/// Rejects a budget that was spent before a block that counts.
fn require_block(bundle: &Bundle, plan: &Plan, budget: Nanos, begin: Nanos) -> Result<(), StudyError> {
    let slots = plan.schedule.slots();
    let runs = &bundle.contents().runs;
    let whole = |block: u64| runs.iter().filter(|run| run.block == Some(block)).count() == slots;
    if (1..=plan.study.blocks as u64).any(whole) {
        return Ok(());
    }
    let (made, spent) = (runs.len(), clock::now().saturating_sub(begin));
    Err(budget_spent(plan, budget, spent, made))
}

/// Rejects a budget too small for preparation, warm-up and one block, if all runs take
/// as long as the first.
fn require_time(plan: &Plan, budget: Option<Nanos>, prepared: Nanos, spent: Nanos) -> Result<(), StudyError> {
    let runs = 2 * plan.schedule.slots();
    let needed = Nanos(prepared.0.saturating_add(spent.0.saturating_mul(runs as u64)));
    match budget {
        Some(budget) if needed > budget => Err(StudyError::BudgetSpent {
            budget,
            made: 1,
            runs,
            rows: plan.study.rows_asked(),
            spent,
            needed,
            resumable: true,
        }),
        _ => Ok(()),
    }
}

fn budget_spent(plan: &Plan, budget: Nanos, spent: Nanos, made: usize) -> StudyError {
    let runs = made.max(2 * plan.schedule.slots());
    let needed = Nanos(spent.0 / made.max(1) as u64 * runs as u64);
    StudyError::BudgetSpent {
        budget,
        made,
        runs,
        rows: plan.study.rows_asked(),
        spent,
        needed,
        resumable: true,
    }
}

struct Execution<'a> {
    plan: &'a Plan,
    bundle: &'a mut Bundle,
    target: &'a mut dyn Target,
    cancel: &'a Cancel,
    observer: &'a dyn Observer,
    budget: Option<Nanos>,
    begin: Nanos,
    /// Time it had run when it was interrupted.
    before: Nanos,
    /// Runs in the bundle when the program started.
    runs_before: usize,
    /// Times of the blocks that ran completely since the program started.
    blocks_timed: Vec<Nanos>,
}

impl Execution<'_> {
    fn blocks(&mut self) -> Result<Stop, StudyError> {
        let begun = self.bundle.contents().runs.iter().filter(|run| run.block.is_some()).count();
        if begun > 0 && self.left() > 0 {
            let again = Cell {
                block: 0,
                position: 0,
                slot: self.plan.schedule.reference,
                arm: self.plan.schedule.reference,
            };
            if self.run(again)?.is_none() {
                return Ok(Stop::Interrupted);
            }
        }
        for block in 0..=self.plan.study.blocks {
            if let Some(stop) = self.stop_before(block) {
                return Ok(stop);
            }
            let begin = clock::now();
            let mut ran = 0;
            for cell in self.plan.block(block) {
                // The first run gives an estimate, so that a budget too small is reported before a
                // whole warm-up.
                if begun == 0 && block == 0 && cell.position == 2 {
                    let spent = clock::now().saturating_sub(begin);
                    require_time(self.plan, self.budget, begin.saturating_sub(self.begin), spent)?;
                }
                if self.is_done(cell) || self.failed_blocks().contains(&(block as u64)) {
                    continue;
                }
                if self.run(cell)?.is_none() {
                    return Ok(Stop::Interrupted);
                }
                ran += 1;
            }
            if ran == self.plan.schedule.slots() {
                self.blocks_timed.push(clock::now().saturating_sub(begin));
            }
        }
        Ok(if self.is_decided() { Stop::Decided } else { Stop::Planned })
    }

    /// Counts blocks that are not complete yet.
    fn left(&self) -> usize {
        let failed = self.failed_blocks();
        let whole = |block: &usize| self.plan.block(*block).into_iter().all(|cell| self.is_done(cell));
        (1..=self.plan.study.blocks)
            .filter(|block| !failed.contains(&(*block as u64)) && !whole(block))
            .count()
    }

    fn is_done(&self, cell: Cell) -> bool {
        let block = (cell.block > 0).then_some(cell.block as u64);
        let runs = &self.bundle.contents().runs;
        runs.iter().any(|run| run.block == block && run.position == cell.position as u64)
    }

    /// Returns blocks that cannot be used; 0 is the warm-up.
    fn failed_blocks(&self) -> BTreeSet<u64> {
        let failed = |run: &&RunRecord| {
            let wrong =
                run.record.as_ref().is_some_and(|record| record.checks.iter().any(|check| !check.passed));
            run.ended != Ended::Finished || wrong
        };
        self.bundle.contents().runs.iter().filter(failed).map(|run| run.block.unwrap_or(0)).collect()
    }

    fn is_decided(&self) -> bool {
        self.plan.until == Until::Decided && analysis::decided(self.bundle.contents())
    }

    fn stop_before(&self, block: usize) -> Option<Stop> {
        if self.failed_blocks().len() >= FAILED_BLOCKS_MAX {
            return Some(Stop::Failures);
        }
        if block == 0 || self.plan.block(block).into_iter().all(|cell| self.is_done(cell)) {
            return None;
        }
        if self.is_decided() {
            return Some(Stop::Decided);
        }
        let longest = self.blocks_timed.iter().max().copied().unwrap_or(Nanos(0));
        let spent = clock::now().saturating_sub(self.begin);
        self.budget.filter(|budget| spent + longest > *budget).map(|_| Stop::Budget)
    }

    /// Makes one run and keeps it; `None` when the study must stop.
    fn run(&mut self, cell: Cell) -> Result<Option<()>, StudyError> {
        if self.cancel.check().is_err() {
            return Ok(None);
        }
        let arm = self.plan.arm_name(cell.arm);
        self.show(cell, &arm);
        let settled = self.target.ready(&self.plan.arm_settings(cell.arm))?;
        let canary = self.target.sing();
        let start_ns = (self.before + clock::now().saturating_sub(self.begin)).0;
        let number = self.bundle.contents().runs.last().map_or(1, |run| run.number + 1);
        let made = self.target.run(&self.plan.arm_settings(cell.arm), self.cancel);
        let (ended, record) = match made.and_then(|record| self.explained(cell, record)) {
            Ok(record) => match record.stopped_ns {
                None => (Ended::Finished, Some(record)),
                // The suspension is part of its time, so no figure of it may be used.
                Some(stopped) => (Ended::Failed { reason: stood_still(Nanos(stopped)) }, None),
            },
            Err(NoRecord::Interrupted) => return Ok(None),
            Err(NoRecord::Failed(failure)) => (self.failed(number, &failure)?, None),
        };
        self.bundle.add(&RunRecord {
            number,
            arm,
            arm_index: cell.arm,
            block: (cell.block > 0).then_some(cell.block as u64),
            position: cell.position as u64,
            slot: cell.slot,
            start_ns,
            settled: Settled { canary: Some(canary), ..settled },
            ended,
            record,
        })?;
        Ok(Some(()))
    }

    /// Adds the plan of an arm to its warm-up run, because no figure of that is used.
    fn explained(&mut self, cell: Cell, record: Record) -> Result<Record, NoRecord> {
        let runs = &self.bundle.contents().runs;
        let has_plan = |run: &RunRecord| run.record.as_ref().is_some_and(|record| record.plan.is_some());
        let is_known = runs.iter().any(|run| run.arm_index == cell.arm && has_plan(run));
        if cell.block > 0 || is_known {
            return Ok(record);
        }
        let explained = self.target.explain(&self.plan.arm_settings(cell.arm), self.cancel)?;
        let Some(ExplainedPlan { plan, sizes }) = explained else { return Ok(record) };
        Ok(Record { plan: Some(plan), request_sizes: sizes, ..record })
    }

    /// Keeps the standard error of a failed run, so that the reason can name the file.
    fn failed(&mut self, number: u64, failure: &Failure) -> Result<Ended, StudyError> {
        if failure.errors.is_empty() {
            return Ok(Ended::Failed { reason: failure.line(None) });
        }
        let name = errors_name(number);
        self.bundle.write(&name, &failure.errors)?;
        Ok(Ended::Failed { reason: failure.line(Some(&name)) })
    }

    fn show(&self, cell: Cell, arm: &str) {
        let slots = self.plan.schedule.slots();
        let runs = (self.plan.study.blocks + 1) * slots;
        let done = cell.block * slots + cell.position.saturating_sub(1);
        let spent = clock::now().saturating_sub(self.begin);
        // Before the first complete block the estimate includes preparation.
        let (timed, made) = match self.blocks_timed.len() * slots {
            0 => (spent.0, self.bundle.contents().runs.len() - self.runs_before),
            made => (self.blocks_timed.iter().map(|block| block.0).sum(), made),
        };
        let left = (made > 0).then(|| {
            let planned = Nanos(timed / made as u64 * (runs - done) as u64);
            self.budget.map_or(planned, |budget| planned.min(budget.saturating_sub(spent)))
        });
        let (blocks, block) = (self.plan.study.blocks, cell.block);
        self.observer.stage(&Stage::Study { done: done as u64, runs: runs as u64, block, blocks, arm, left });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_to_hold_what_was_prepared_too() {
        let plan = crate::plan::tests::plan(1);
        let runs = 2 * plan.schedule.slots() as u64;
        let asked = |budget, prepared| require_time(&plan, Some(Nanos(budget)), Nanos(prepared), Nanos(10));
        assert!(asked(10 * runs, 0).is_ok());
        let refused = asked(10 * runs + 6, 7).expect_err("one is missing");
        assert!(matches!(refused, StudyError::BudgetSpent { needed, .. } if needed.0 == 10 * runs + 7));
        assert!(asked(10 * runs + 7, 7).is_ok());
    }
}
