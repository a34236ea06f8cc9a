//! Sorts a file of records of one length into another file.
//!
//! [`sort_file`] reads a plain file of records with the key at their front, and writes the same
//! records in key order to another file. Its memory is fixed beforehand and may be any part of the
//! file. [`create`] makes an input, [`validate`] judges an output as valsort does.
//!
//! With two servers:
//!
//! ```text
//!              chunks in turn            runs of both           shares of the keys
//!   input ──┬── load, sort, write ── runs ──┐        ┌── merge ── write ──┬── output
//!           └── load, sort, write ── runs ──┴─divide─┴── merge ── write ──┘
//! ```
//!
//! Each server reads chunks of the input ([`input`]) until it has a load, and sorts its keys. It
//! writes the records as a run ([`load`], [`runs`]) while it reads the next load. Then the merge is
//! divided into equal shares of all records, each a range of keys ([`ranges`]). A server merges its
//! share out of every run, its own or another's, and writes it to its place in the output
//! ([`output`]). Records have one length, so the number of records before a share gives that place.
//!
//! Why not by the table queue, as an index is built: it moves every record from a scan server's
//! buffer to a sort server's once more. For 16 bytes that is cheap; for 100 it costs about as much
//! as sorting them. Here a record is moved three times: from its read buffer into a run, from there
//! into the merge's buffer of its source, and into the output.
//!
//! Loads are as small as one merge of all runs with large requests allows: the entries being sorted
//! then fit the caches, and reading never waits long for sorting. A longer load makes fewer and
//! longer runs, and is used when memory is short.
//!
//! Cost on paper, a record of 100 bytes: 400 bytes through the device; 10 ns to take its key,
//! 30 to sort it, 30 to move it and 5 for checksums into the run, 50 to merge and move it.
//! Measured, 10 GiB in 512 MiB, 345 runs: 83 ns of CPU for the run, 89 for merge and output. On
//! two processors that is 86 ns of the 160 to 210 that a record takes; the rest is waits for
//! the device, mostly for writes.
//!
//! Rejected: 4 write buffers of 256K and 32 requests in flight, instead of 16 of 512K and 128. A
//! server then waits five times as long for its runs, because a load is produced faster than a
//! device takes it. Rejected: an output without preallocated space. It is no faster and reports
//! a full disk too late.
//!
//! Limits: keys of up to 11 bytes. A file that would fit in memory is written as runs all the same.
//! Disk space besides the input: the runs, with their block headers 1.02 times the input, and the
//! output; twice the runs if memory is so short that there are intermediate merges.
//!
//! Invariants:
//! - X1 Every record of the input is in one run, and every run is in order.
//! - X2 The shares of the merge divide every run: they follow one another, from its first
//!   record to its last.
//! - X3 Requests begin and end at block boundaries, records at record boundaries.
//! - X4 Every byte of the output is written once: by a server, or as part of a fragment.

pub mod create;
pub(crate) mod input;
mod load;
pub(crate) mod output;
mod plan;
mod ranges;
pub mod record;
mod runs;
pub mod validate;

pub use output::{OutputLeftover, unfinished};

use crate::parallel::servers;
use crate::sort::area::RecordSink;
use crate::sort::merge_plan::{self, MergeShape};
use crate::sort::summary::{Divided, SortSummary};
use crate::sort::{SortServer, merge};
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use input::{RecordFile, RecordReader};
use load::Load;
use output::{Fragment, OutputFile, OutputWriter};
use plan::FilePlan;
use plumb_events::{Phase, Role, Session, SortServerSummary, Statistic, locked, now};
use plumb_io::File;
use plumb_units::Bytes;
use record::FixedRecord;
use runs::{SampledRun, SampledRunWriter, records_per_block};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Alignment of requests to files of records: a multiple of every device's sector.
const BLOCK_BYTES: usize = 4096;
/// Hint for a file whose length does not fit its records.
const RECORD_FILE_HINT: &str = "it was cut short, or has records of another length";

/// Input and output of a sort of a file.
#[derive(Debug, Clone)]
pub struct FileSortSpec {
    /// File of records, which is only read.
    pub input: PathBuf,
    /// Path of the sorted file; no file may exist there.
    pub output: PathBuf,
}

/// Outcome of a sort of a file.
#[derive(Debug, Clone)]
pub struct FileSortOutcome {
    /// Number of records sorted, all of the input.
    pub record_count: u64,
    /// Number of records that each merge server sorted.
    pub share_counts: Vec<u64>,
    /// Bytes of the runs made from the input. Intermediate merges hold up to as
    /// much again for a while.
    pub run_bytes: Bytes,
    /// Work of the sort servers.
    pub sort: SortSummary,
    /// Input file, which is still open.
    pub input: Arc<File>,
    /// Output file, which is still open.
    pub output: Arc<File>,
}

/// Sorts a file of records by their first `KEY` bytes.
///
/// # Errors
/// If the input is not a file of such records or changes, the output exists, the memory is too
/// small for a merge, or I/O fails. Nothing of the sort then remains, except an output that is
/// complete and only its directory could not be synced.
pub fn sort_file<const BYTES: usize, const KEY: usize>(
    instance: &Instance,
    spec: &FileSortSpec,
) -> Result<FileSortOutcome, EngineError> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let temp = instance.tablespace(Purpose::Temp);
    let extent_counts = temp.extent_counts();
    let sorted = FileSort::<BYTES, KEY>::run(instance, &coordinator, spec);
    if sorted.is_err() {
        // The sort's own error is the one to report.
        let _ = temp.cut_back(&extent_counts);
    }
    sorted
}

/// A sort that is running.
struct FileSort<'a, const BYTES: usize, const KEY: usize> {
    instance: &'a Instance,
    plan: FilePlan,
    lsn: plumb_units::Lsn,
}

impl<const BYTES: usize, const KEY: usize> FileSort<'_, BYTES, KEY> {
    fn run(
        instance: &Instance,
        coordinator: &Session,
        spec: &FileSortSpec,
    ) -> Result<FileSortOutcome, EngineError> {
        let chunk_bytes = plan::chunk_bytes(instance, BYTES)?;
        let input = RecordFile::open(instance, coordinator, &spec.input, (BYTES, chunk_bytes))?;
        let plan = FilePlan::new(instance, &input)?;
        let bytes = input.record_count * BYTES as u64;
        let output = OutputFile::create(instance, coordinator, &spec.output, bytes)?;
        let sort = FileSort::<BYTES, KEY> { instance, plan, lsn: instance.next_lsn(coordinator)? };

        let (runs, mut summaries) = sort.make_runs(coordinator, &input)?;
        let in_runs: u64 = runs.iter().map(|run| run.run.rows).sum();
        assert_eq!(in_runs, input.record_count, "X1: records in runs, and records of the input");
        let run_bytes = Bytes(summaries.iter().map(|server| server.run_bytes).sum());
        let (runs, shape) = sort.reduce(coordinator, runs, &mut summaries)?;
        let share_counts = sort.merge(coordinator, &runs, shape, &output)?;
        let merged: u64 = share_counts.iter().sum();
        if merged != input.record_count {
            return Err(EngineError::Verification {
                what: format!("records that came out of the sort of {}", spec.input.display()),
                found: merged.to_string(),
                expected: input.record_count.to_string(),
            });
        }
        let written = output.finish(coordinator)?;
        let memory = sort.plan.memory(instance);
        let sort = SortSummary::new(&sort.plan.sort, summaries, memory, Divided::InMerge);
        let input = Arc::clone(input.file());
        Ok(FileSortOutcome { record_count: merged, share_counts, run_bytes, sort, input, output: written })
    }

    fn degree(&self) -> usize {
        self.instance.parallel_degree()
    }

    /// Runs a set of servers, each with its session and its number.
    fn run_set<T: Send>(
        &self,
        coordinator: &Session,
        (role, count): (Role, usize),
        work: impl Fn(&SortServer<'_>, usize) -> Result<T, EngineError> + Sync,
    ) -> Result<Vec<T>, EngineError> {
        let (instance, plan, lsn) = (self.instance, &self.plan.sort, self.lsn);
        servers::run_set(instance.operation(), coordinator, (role, count), |session, operation, number| {
            work(
                &SortServer { instance, session, operation, plan, lsn, last_phase: Phase::MergeAndWrite },
                number,
            )
        })
    }

    fn make_runs(
        &self,
        coordinator: &Session,
        input: &RecordFile,
    ) -> Result<(Vec<SampledRun>, Vec<SortServerSummary>), EngineError> {
        let made = self.run_set(coordinator, (Role::SortServer, self.degree()), |server, _| {
            self.make_runs_of_server(server, input)
        })?;
        let mut runs = Vec::new();
        let mut summaries = Vec::new();
        for (of_server, summary) in made {
            runs.extend(of_server);
            summaries.push(summary);
        }
        Ok((runs, summaries))
    }

    fn make_runs_of_server(
        &self,
        server: &SortServer<'_>,
        input: &RecordFile,
    ) -> Result<(Vec<SampledRun>, SortServerSummary), EngineError> {
        let SortServer { instance, session, operation, .. } = *server;
        let begin = now();
        let plan = &self.plan;
        let mut reader = RecordReader::new(session, &instance.access, input, plan.buffer_count())?;
        let supplying = now();
        let mut load = Load::<BYTES, KEY>::new(plan.load_chunks, input.chunk_bytes / BYTES)?;
        let area_mapping = now().saturating_sub(supplying);
        let mut writer = SampledRunWriter::<BYTES, KEY>::new(server, plan.sample_interval)?;
        let mapped = load.mapped_bytes() + plan.buffer_count() * input.chunk_bytes;
        let mut row_count = 0;
        while let Some(chunk) = reader.next()? {
            operation.check()?;
            session.count(Statistic::TableScanRows, (chunk.bytes / BYTES) as u64);
            load.add(chunk);
            if load.chunk_count() == plan.load_chunks {
                row_count += load.record_count() as u64;
                reader.recycle(load.drain(&mut writer)?)?;
            }
        }
        row_count += load.record_count() as u64;
        load.drain(&mut writer)?;
        let (runs, run_bytes) = writer.finish()?;
        let in_runs: u64 = runs.iter().map(|run| run.run.rows).sum();
        assert_eq!(in_runs, row_count, "X1: records in a server's runs, and records it has read");
        session.count(Statistic::SortRows, row_count);
        session.count(Statistic::SortRuns, runs.len() as u64);
        session.count(Statistic::SortsDisk, u64::from(!runs.is_empty()));
        instance.recorder.phase(Phase::RunGeneration, begin, row_count);
        let summary = SortServerSummary {
            name: session.name().to_string(),
            area: instance.settings.sort.sort_area_size,
            area_mapped: Bytes(mapped as u64),
            area_mapping,
            strip: plan.load(input),
            memory_rows: 0,
            row_count,
            run_count: runs.len() as u64,
            run_bytes,
            intermediate_merges: 0,
            merge_passes: 0,
            merge_width: 0,
            optimal: false,
        };
        Ok((runs, summary))
    }

    /// Merges runs into longer ones, on all servers at a time, until one merge can take the rest;
    /// returns the runs and the shape of that merge.
    fn reduce(
        &self,
        coordinator: &Session,
        runs: Vec<SampledRun>,
        summaries: &mut [SortServerSummary],
    ) -> Result<(Vec<SampledRun>, MergeShape), EngineError> {
        let (instance, run_count) = (self.instance, runs.len());
        let shape = self.plan.merge_shape(instance, coordinator, run_count)?;
        let passes = u64::from(merge_plan::passes(run_count, shape.fan_in));
        let multipass = Statistic::SortsMultiPass;
        let statistic = if passes > 1 { multipass } else { Statistic::SortsOnePass };
        coordinator.count(statistic, u64::from(run_count > 0));
        let begin = now();
        let queue = Mutex::new(MergeQueue { runs: runs.into(), under_way: 0 });
        let mut merged_rows = 0;
        if passes > 1 {
            let merges =
                self.run_set(coordinator, (Role::MergeServer, self.degree()), |server, number| {
                    Ok((number, self.intermediate_merges(server, shape, &queue)?))
                })?;
            for (number, merges) in merges {
                summaries[number].intermediate_merges = merges.count;
                summaries[number].run_bytes += merges.bytes;
                merged_rows += merges.rows;
            }
            instance.recorder.phase(Phase::IntermediateMerges, begin, merged_rows);
        }
        let runs: Vec<SampledRun> = queue.into_inner().unwrap_or_else(PoisonError::into_inner).runs.into();
        for summary in summaries {
            summary.merge_passes = passes;
            summary.merge_width = if passes > 1 { shape.fan_in } else { run_count } as u64;
        }
        Ok((runs, shape))
    }

    fn intermediate_merges(
        &self,
        server: &SortServer<'_>,
        shape: MergeShape,
        queue: &Mutex<MergeQueue>,
    ) -> Result<IntermediateMerges, EngineError> {
        let mut done = IntermediateMerges::default();
        loop {
            // A statement of its own, so that the lock is not held while the runs are merged.
            let taken = locked(queue).take(shape.fan_in);
            let Some(inputs) = taken else { return Ok(done) };
            let runs = inputs.into_iter().map(|sampled| sampled.run).collect();
            let mut writer = SampledRunWriter::<BYTES, KEY>::new(server, self.plan.sample_interval)?;
            done.rows +=
                merge::merge::<FixedRecord<BYTES, KEY>>(server, runs, shape, Vec::new(), |record| {
                    writer.record(record)
                })?;
            writer.end_run()?;
            let (merged, bytes) = writer.finish()?;
            done.bytes += bytes;
            done.count += 1;
            server.session.count(Statistic::IntermediateMerges, 1);
            locked(queue).give_back(merged);
        }
    }

    /// Runs the last merge; returns the number of records of each server.
    fn merge(
        &self,
        coordinator: &Session,
        runs: &[SampledRun],
        shape: MergeShape,
        output: &OutputFile<'_>,
    ) -> Result<Vec<u64>, EngineError> {
        let begin = now();
        let shares = self.divide(coordinator, runs)?;
        self.instance.recorder.phase(Phase::Division, begin, 0);
        let counts: Vec<u64> = shares
            .iter()
            .map(|share| share.iter().map(|records| records.end - records.start).sum())
            .collect();
        let begins: Vec<u64> = (0..counts.len()).map(|share| counts[..share].iter().sum()).collect();
        let temp = self.instance.tablespace(Purpose::Temp);
        let per_block = records_per_block(temp.block_size, BYTES);
        let merged = self.run_set(coordinator, (Role::MergeServer, shares.len()), |server, share| {
            let ranges = runs.iter().zip(&shares[share]);
            let parts = ranges.filter_map(|(run, records)| run.part(records.clone(), per_block, BYTES));
            self.merge_share(server, parts.collect(), shape, (output, begins[share], counts[share]))
        })?;
        let begin = now();
        output.patch(coordinator, merged.into_iter().flatten().collect())?;
        self.instance.recorder.phase(Phase::Join, begin, 0);
        Ok(counts)
    }

    fn divide(
        &self,
        session: &Session,
        runs: &[SampledRun],
    ) -> Result<Vec<Vec<std::ops::Range<u64>>>, EngineError> {
        let operation = self.instance.operation();
        let instance = self.instance;
        let server = SortServer {
            instance,
            session,
            operation: &operation,
            plan: &self.plan.sort,
            lsn: self.lsn,
            last_phase: Phase::MergeAndWrite,
        };
        ranges::divide::<BYTES, KEY>(&server, runs, self.plan.sample_interval, self.degree())
    }

    fn merge_share(
        &self,
        server: &SortServer<'_>,
        parts: Vec<crate::sort::run::Run>,
        shape: MergeShape,
        (output, first, expected): (&OutputFile<'_>, u64, u64),
    ) -> Result<Vec<Fragment>, EngineError> {
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let begin = now();
        let offset = first * BYTES as u64;
        let mut writer = OutputWriter::new(output, server.session, offset, self.plan.output_buffers)?;
        let rows = merge::merge::<FixedRecord<BYTES, KEY>>(server, parts, shape, Vec::new(), |record| {
            // A length that the compiler knows.
            let record: &[u8; BYTES] = record.try_into().expect("a whole record");
            writer.push(record)
        })?;
        assert_eq!(rows, expected, "X2: the parts of a share are its records");
        let fragments = writer.finish()?;
        self.instance.recorder.phase(Phase::MergeAndWrite, begin, rows);
        Ok(fragments)
    }
}

/// Runs waiting to be merged, and the number of merges in progress.
struct MergeQueue {
    runs: VecDeque<SampledRun>,
    under_way: usize,
}

impl MergeQueue {
    /// Takes the runs of the next intermediate merge; `None` if there is no merge for the caller: a
    /// server whose merge is in progress asks again after it.
    fn take(&mut self, fan_in: usize) -> Option<Vec<SampledRun>> {
        let take = merge_plan::next_merge(self.runs.len() + self.under_way, fan_in).min(self.runs.len());
        if take < 2 {
            return None;
        }
        self.under_way += 1;
        Some(self.runs.drain(..take).collect())
    }

    fn give_back(&mut self, merged: Vec<SampledRun>) {
        assert!(self.under_way > 0, "a merge was begun before it ends");
        assert_eq!(merged.len(), 1, "a merge makes one run");
        self.runs.extend(merged);
        self.under_way -= 1;
    }
}

/// Sums over the intermediate merges of a server: merges, rows, bytes of their runs.
#[derive(Debug, Default)]
struct IntermediateMerges {
    count: u64,
    rows: u64,
    bytes: u64,
}
