//! The sort: runs made in a fixed sort area, written while the next one fills,
//! merged in the same memory.
//!
//! What it does: a [`Sorter`] is filled with records and then gives them back in
//! order. Records that fit its sort area never touch the disk (an optimal sort).
//! Otherwise each full area becomes a run, and the runs are merged, at once if
//! the memory allows (one-pass) or after intermediate merges (multi-pass).
//!
//! How: [`key`] makes byte strings that compare as the rows do; [`format`] is
//! how key and row id travel; [`area`] collects and sorts them;
//! [`run`] writes runs; [`merge_plan`] decides width and request size from the
//! device's read cost; [`merge`] reads ahead and merges with a [`loser_tree`], or,
//! keys of any length, [`packed`] without what neighbours share, in a [`tournament`].
//!
//! Memory: `sort_area_size` is the whole budget of a server, first for the area,
//! then, the area freed, for the merge's buffers. Write buffers come out of it
//! with `sort_direct_writes=auto` and on top of it with `true`. A sort never
//! fails for lack of memory: it merges in more passes.
//!
//! Cost on paper, a row of 16 bytes, per core: key 10 ns, sort 35 ns, run write
//! 5 ns, merge 15 to 30 ns, leaf 10 ns; so 10 million rows are about a second of
//! CPU, and bytes on disk 16 written and 16 read.

pub mod area;
pub mod format;
pub mod key;
pub mod loser_tree;
pub mod merge;
pub mod merge_plan;
pub mod packed;
pub mod plan;
pub mod run;
pub mod tournament;

use crate::parallel::servers::Operation;
use crate::{EngineError, Instance};
use area::{Drain, RecordSink, SortArea};
use format::Format;
use merge_plan::MergeShape;
use plan::SortPlan;
use plumb_events::{Session, Statistic, now};
use plumb_units::{Bytes, Lsn};
use run::{Run, RunWriter};
use std::collections::VecDeque;

/// The server that sorts, and what it works with.
#[derive(Debug)]
pub struct SortServer<'a> {
    /// The database.
    pub instance: &'a Instance,
    /// Its session.
    pub session: &'a Session,
    /// What it is part of.
    pub operation: &'a Operation,
    /// Its memory and methods, the same for all servers of the sort.
    pub plan: &'a SortPlan,
    /// The operation's number, for block headers.
    pub lsn: Lsn,
}

/// How a sort went.
#[derive(Debug, Clone, Copy, Default)]
pub struct SortOutcome {
    /// Rows sorted.
    pub row_count: u64,
    /// Runs made from the input; 0 when all fitted in the area.
    pub run_count: u64,
    /// Bytes of runs written, intermediate merges included.
    pub run_bytes: u64,
    /// Merges before the last.
    pub intermediate_merges: u64,
    /// How often a row was read back, at most.
    pub merge_passes: u64,
    /// Runs merged by the widest merge.
    pub merge_width: u64,
}

/// Sorts records.
pub struct Sorter<'a, F: Format> {
    server: &'a SortServer<'a>,
    area: F::Area,
    /// Made when the area is full for the first time.
    writer: Option<RunWriter<'a, F::Packing>>,
    outcome: SortOutcome,
    begin: plumb_units::Nanos,
}

impl<'a, F: Format> Sorter<'a, F> {
    /// A sorter with an empty area.
    ///
    /// # Errors
    /// When there is no memory for the area.
    pub fn new(server: &'a SortServer<'a>) -> Result<Sorter<'a, F>, EngineError> {
        let area = F::Area::new(server.plan.area.0 as usize, server.plan.record_bytes)?;
        Ok(Sorter { server, area, writer: None, outcome: SortOutcome::default(), begin: now() })
    }

    /// Bytes of memory that its area has mapped.
    #[must_use]
    pub fn area_mapped(&self) -> usize {
        self.area.mapped_bytes()
    }

    /// Adds whole records.
    ///
    /// # Errors
    /// When a run cannot be written.
    pub fn fill(&mut self, records: &[u8]) -> Result<(), EngineError> {
        let mut rest = records;
        loop {
            let taken = self.area.fill(rest);
            rest = &rest[taken..];
            if rest.is_empty() {
                return Ok(());
            }
            if taken == 0 && self.area.is_empty() {
                return Err(EngineError::Contradiction {
                    first: format!("sort_area_size={}", Bytes(self.server.plan.area.0).as_setting()),
                    second: format!("a key of {} bytes", F::length(rest)),
                    why: "the area does not hold one record; set a larger sort_area_size".to_string(),
                });
            }
            self.spill()?;
        }
    }

    /// Hands all records to `take` in order.
    ///
    /// # Errors
    /// When a run cannot be written or read back, or `take` fails.
    pub fn finish(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<SortOutcome, EngineError> {
        let session = self.server.session;
        let recorder = &self.server.instance.recorder;
        if self.writer.is_none() {
            self.outcome.row_count = self.area.len() as u64;
            recorder.phase("run generation", self.begin, self.outcome.row_count);
            session.count(Statistic::SortRows, self.outcome.row_count);
            session.count(Statistic::SortsMemory, 1);
            let begin = now();
            self.area.drain(Drain::Merged, &mut Consumer(&mut take))?;
            self.area.matches().count_in(session);
            recorder.phase("merge and index", begin, self.outcome.row_count);
            return Ok(self.outcome);
        }
        if !self.area.is_empty() {
            self.spill()?;
        }
        let Sorter { server, area, writer, mut outcome, begin } = self;
        area.matches().count_in(session);
        drop(area);
        let (runs, bytes) = writer.expect("seen above").finish()?;
        outcome.run_count = runs.len() as u64;
        outcome.run_bytes = bytes;
        recorder.phase("run generation", begin, outcome.row_count);
        session.count(Statistic::SortRows, outcome.row_count);
        session.count(Statistic::SortRuns, outcome.run_count);
        session.count(Statistic::SortsDisk, 1);
        let (runs, shape) = reduce::<F>(server, runs, &mut outcome)?;
        outcome.merge_width = outcome.merge_width.max(runs.len() as u64);
        let begin = now();
        let rows = F::merge(server, runs, shape, take)?;
        recorder.phase("merge and index", begin, rows);
        if rows != outcome.row_count {
            return Err(EngineError::Verification {
                what: "rows that came out of the sort".to_string(),
                found: rows.to_string(),
                expected: outcome.row_count.to_string(),
            });
        }
        Ok(outcome)
    }

    /// Sorts the area and writes it as a run.
    fn spill(&mut self) -> Result<(), EngineError> {
        self.server.operation.check()?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RunWriter::new(self.server)?),
        };
        self.outcome.row_count += self.area.len() as u64;
        let how =
            if self.server.plan.takes_strips(self.area.strip_len()) { Drain::Strips } else { Drain::Merged };
        self.area.drain(how, writer)
    }
}

/// Passes the records of a sort that fitted in memory on.
struct Consumer<T>(T);

impl<T: FnMut(&[u8]) -> Result<(), EngineError>> RecordSink for Consumer<T> {
    type Error = EngineError;

    #[inline]
    fn record(&mut self, record: &[u8]) -> Result<(), EngineError> {
        (self.0)(record)
    }

    fn end_run(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Merges some runs into longer ones until one merge can take the rest; gives
/// them back with the shape of that merge.
fn reduce<'a, F: Format>(
    server: &'a SortServer<'a>,
    runs: Vec<Run<'a>>,
    outcome: &mut SortOutcome,
) -> Result<(Vec<Run<'a>>, MergeShape), EngineError> {
    let plan = server.plan;
    let block_size = server.instance.tablespace(crate::storage::tablespace::Purpose::Temp).block_size;
    let memory_blocks = block_size.blocks_in(plan.area.0).0;
    let one_pass =
        merge_plan::fits_one_pass(runs.len(), memory_blocks, block_size.bytes(), plan.chunk_blocks_max);
    let shape = match one_pass {
        Some(shape) => shape,
        None => {
            let costs = plan.merge_cost(server.instance, server.session)?;
            merge_plan::plan(runs.len(), memory_blocks, plan.chunk_blocks_max, costs)
        }
    };
    outcome.merge_passes = u64::from(merge_plan::passes(runs.len(), shape.width));
    server
        .session
        .count(if outcome.merge_passes > 1 { Statistic::SortsMultiPass } else { Statistic::SortsOnePass }, 1);
    let mut queue = VecDeque::from(runs);
    let begin = now();
    let mut merged_rows = 0;
    while let take @ 1.. = merge_plan::next_merge(queue.len(), shape.width) {
        let inputs: Vec<Run<'a>> = queue.drain(..take).collect();
        let mut writer = RunWriter::<F::Packing>::new(server)?;
        merged_rows += F::merge(server, inputs, shape, |record| writer.record(record))?;
        writer.end_run()?;
        let (merged, bytes) = writer.finish()?;
        queue.extend(merged);
        outcome.run_bytes += bytes;
        outcome.intermediate_merges += 1;
        outcome.merge_width = outcome.merge_width.max(take as u64);
        server.session.count(Statistic::IntermediateMerges, 1);
    }
    if outcome.intermediate_merges > 0 {
        server.instance.recorder.phase("intermediate merges", begin, merged_rows);
    }
    Ok((queue.into(), shape))
}
