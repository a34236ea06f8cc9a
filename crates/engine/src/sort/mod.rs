//! The sort: runs made in a fixed sort area, written while the next one fills,
//! merged in the same memory.
//!
//! A [`Sorter`] is filled with records and then returns them in order. Records that fit its sort
//! area never touch the disk (an optimal sort). Otherwise strips of the area become runs as room is
//! needed. In the end the runs are merged with the strips that are still in memory (one-pass). If
//! one merge cannot take so large a number of runs, each full area becomes one run, and they are
//! merged in several steps (multi-pass).
//!
//! The parts: [`codec`] makes records of rows, [`word`] into machine words or, by [`key`],
//! byte strings that compare as the rows do. [`format`] defines the layout and order of
//! records; [`area`] collects and sorts them; [`run`] writes runs; [`merge_plan`] decides
//! fan-in and request size from the device's read cost. [`merge`] reads ahead and merges
//! with a [`loser_tree`]. It merges keys of any length in a [`tournament`], [`packed`]
//! without the bytes that neighbours share.
//!
//! Memory: `sort_area_size` is the whole budget of a server, first for the area, then, as far as
//! it is freed, for the merge's buffers. Write buffers are part of it with
//! `sort_direct_writes=auto`, and are added to it with `true`. A sort never fails for lack of
//! memory: it merges in more passes.
//!
//! Cost on paper, a row packed into 8 bytes, per core: record 8 ns, queue 3 ns,
//! sort 16 ns, run write 2 ns, merge 10 to 20 ns, leaf 8 ns.
//!
//! Invariants (those of the parts are in their files: A, F, L, M, P, R):
//! - S1 A sort, a spill and a merge return as many records as they took.

pub mod area;
pub mod codec;
#[cfg(test)]
pub(crate) mod fixture;
pub mod forecast;
pub mod format;
pub mod key;
pub mod loser_tree;
pub mod merge;
pub mod merge_plan;
pub mod packed;
pub mod plan;
pub mod run;
pub mod summary;
pub mod tournament;
pub mod word;

use crate::parallel::servers::Operation;
use crate::storage::block::{BlockKind, Expected, LsnRange};
use crate::{EngineError, Instance};
use area::{Mapped, MemoryMerge, RecordSink, SortArea};
use format::Format;
use merge_plan::MergeShape;
use plan::SortPlan;
use plumb_events::{Phase, Session, Statistic, now};
use plumb_units::{Bytes, Lsn};
use run::{Run, RunWriter};
use std::collections::VecDeque;

/// The server that sorts, with its database, session and plan.
#[derive(Debug)]
pub struct SortServer<'a> {
    /// Database whose temporary tablespace and settings it uses.
    pub instance: &'a Instance,
    /// Session that its waits and statistics count for.
    pub session: &'a Session,
    /// Operation that the sort is a part of.
    pub operation: &'a Operation,
    /// Memory and methods, the same for all servers of the sort.
    pub plan: &'a SortPlan,
    /// Number of the operation, for block headers.
    pub lsn: Lsn,
    /// Phase in which the last merge is counted.
    pub last_phase: Phase,
}

impl SortServer<'_> {
    /// Returns the kind and the LSN that a block of its runs must have. A block of an earlier sort
    /// at the same place is whole, but its own write was lost.
    #[inline]
    pub fn written(&self) -> Expected {
        Expected { kind: BlockKind::Temp, lsns: LsnRange::only(self.lsn) }
    }
}

/// Returns the first records of all key ranges but the lowest, chosen from a sorted sample.
pub(crate) fn key_ranges(sorted: &[Vec<u8>], degree: usize) -> Vec<Vec<u8>> {
    assert!(degree > 0, "a sort has a server");
    if sorted.is_empty() {
        return Vec::new();
    }
    (1..degree).map(|range| sorted[range * sorted.len() / degree].clone()).collect()
}

/// Outcome of one server's sort.
#[derive(Debug, Clone, Copy, Default)]
pub struct SortOutcome {
    /// Number of rows that were sorted.
    pub row_count: u64,
    /// Runs made from the input; 0 if all rows fitted in the area.
    pub run_count: u64,
    /// Bytes of runs written, intermediate merges included.
    pub run_bytes: u64,
    /// Rows that stayed in memory until the last merge.
    pub memory_rows: u64,
    /// Merges whose output was written as a run again.
    pub intermediate_merges: u64,
    /// Most times that a row was read back.
    pub merge_passes: u64,
    /// Largest fan-in: most runs that one merge took.
    pub merge_width: u64,
    /// Memory that the area has mapped.
    pub area: Mapped,
}

/// Takes records in any order and returns them in order.
pub struct Sorter<'a, F: Format> {
    server: &'a SortServer<'a>,
    area: F::Area,
    /// Made when the area is full for the first time.
    writer: Option<RunWriter<'a, F::Packing>>,
    outcome: SortOutcome,
    begin: plumb_units::Nanos,
}

impl<'a, F: Format> Sorter<'a, F> {
    /// Makes a sorter with an empty area.
    ///
    /// # Errors
    /// If there is no memory for the area.
    pub fn new(server: &'a SortServer<'a>) -> Result<Sorter<'a, F>, EngineError> {
        let plan = server.plan;
        let area = F::Area::new(plan.area.0 as usize, plan.strips, plan.record)?;
        Ok(Sorter { server, area, writer: None, outcome: SortOutcome::default(), begin: now() })
    }

    /// Adds whole records, in any order.
    ///
    /// # Errors
    /// If there is no memory, or a run cannot be written.
    pub fn fill(&mut self, records: &[u8]) -> Result<(), EngineError> {
        let mut rest = records;
        loop {
            let taken = self.area.fill(rest)?;
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

    /// Makes room in the area.
    fn spill(&mut self) -> Result<(), EngineError> {
        self.server.operation.check()?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(RunWriter::new(self.server)?),
        };
        let rows = (self.area.len() as u64, writer.row_count());
        self.outcome.run_count += self.area.spill(writer)?;
        let moved = (rows.0 - self.area.len() as u64, writer.row_count() - rows.1);
        assert_eq!(moved.0, moved.1, "S1: rows that left the area, and rows of its runs");
        Ok(())
    }

    /// Hands all records to `take` in order.
    ///
    /// # Errors
    /// If a run cannot be written or read back, or `take` fails.
    pub fn finish(
        mut self,
        take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<SortOutcome, EngineError> {
        self.area.close()?;
        self.outcome.area = self.area.mapped();
        if self.writer.is_none() { self.finish_in_memory(take) } else { self.finish_on_disk(take) }
    }

    fn finish_in_memory(
        mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<SortOutcome, EngineError> {
        self.outcome.row_count = self.area.len() as u64;
        self.outcome.memory_rows = self.outcome.row_count;
        self.generated();
        self.server.session.count(Statistic::SortsMemory, 1);
        let begin = now();
        let mut merged = MemoryMerge::<F>::new(self.area.sources());
        while let record @ [_, ..] = merged.current() {
            take(record)?;
            merged.advance();
        }
        merged.matches().count_in(self.server.session);
        self.server.instance.recorder.phase(self.server.last_phase, begin, self.outcome.row_count);
        Ok(self.outcome)
    }

    fn finish_on_disk(
        mut self,
        take: impl FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<SortOutcome, EngineError> {
        let session = self.server.session;
        let shape = self.make_room()?;
        let (runs, bytes) = self.writer.take().expect("a run was written").finish()?;
        self.outcome.run_bytes = bytes;
        self.outcome.memory_rows = self.area.len() as u64;
        self.outcome.row_count = self.outcome.memory_rows + runs.iter().map(|run| run.rows).sum::<u64>();
        self.generated();
        session.count(Statistic::SortRuns, self.outcome.run_count);
        session.count(Statistic::SortsDisk, 1);
        let (runs, shape) = match shape {
            Some(shape) => {
                self.outcome.merge_passes = 1;
                session.count(Statistic::SortsOnePass, 1);
                (runs, shape)
            }
            None => reduce::<F>(self.server, runs, &mut self.outcome)?,
        };
        self.outcome.merge_width = self.outcome.merge_width.max(runs.len() as u64);
        let begin = now();
        let rows = merge::merge::<F>(self.server, runs, shape, self.area.sources(), take)?;
        self.server.instance.recorder.phase(self.server.last_phase, begin, rows);
        if rows != self.outcome.row_count {
            return Err(EngineError::Verification {
                what: "rows that came out of the sort".to_string(),
                found: rows.to_string(),
                expected: self.outcome.row_count.to_string(),
            });
        }
        Ok(self.outcome)
    }

    /// Notes the end of run generation.
    fn generated(&self) {
        self.server.instance.recorder.phase(Phase::RunGeneration, self.begin, self.outcome.row_count);
        self.server.session.count(Statistic::SortRows, self.outcome.row_count);
    }

    /// Spills strips until the free memory holds the buffers of one merge of all runs; returns the
    /// shape of that merge. `None` if there is no such merge; then no record is left in memory.
    fn make_room(&mut self) -> Result<Option<MergeShape>, EngineError> {
        let mut free = 0;
        loop {
            free += self.area.release_spare() as u64;
            let runs = self.outcome.run_count as usize;
            if let Some(shape) = self.server.plan.one_pass(runs, Bytes(free)) {
                assert!(free <= self.server.plan.area.0, "A1: an area gives back no more than it had");
                return Ok(Some(shape.within(self.server.plan.memory_blocks(Bytes(free)))));
            }
            if self.area.is_empty() {
                return Ok(None);
            }
            self.spill()?;
        }
    }
}

/// Merges some runs into longer ones until one merge can take the rest; returns the runs and
/// the shape of that merge.
fn reduce<F: Format>(
    server: &SortServer<'_>,
    runs: Vec<Run>,
    outcome: &mut SortOutcome,
) -> Result<(Vec<Run>, MergeShape), EngineError> {
    let plan = server.plan;
    let costs = plan.merge_cost(server.instance, server.session)?;
    let shape = merge_plan::plan(runs.len(), plan.memory_blocks(plan.area), plan.chunk_blocks_max, costs);
    outcome.merge_passes = u64::from(merge_plan::passes(runs.len(), shape.fan_in));
    server
        .session
        .count(if outcome.merge_passes > 1 { Statistic::SortsMultiPass } else { Statistic::SortsOnePass }, 1);
    let mut queue = VecDeque::from(runs);
    let begin = now();
    let mut merged_rows = 0;
    while let take @ 1.. = merge_plan::next_merge(queue.len(), shape.fan_in) {
        let inputs: Vec<Run> = queue.drain(..take).collect();
        let mut writer = RunWriter::<F::Packing>::new(server)?;
        merged_rows += merge::merge::<F>(server, inputs, shape, Vec::new(), |record| writer.record(record))?;
        writer.end_run()?;
        let (merged, bytes) = writer.finish()?;
        queue.extend(merged);
        outcome.run_bytes += bytes;
        outcome.intermediate_merges += 1;
        outcome.merge_width = outcome.merge_width.max(take as u64);
        server.session.count(Statistic::IntermediateMerges, 1);
    }
    if outcome.intermediate_merges > 0 {
        server.instance.recorder.phase(Phase::IntermediateMerges, begin, merged_rows);
    }
    Ok((queue.into(), shape))
}
