//! Sorts a file of lines, or of records of any one length, into another file.
//!
//! [`sort_lines`] gives the result of GNU sort under `LC_ALL=C`, and the same for records with
//! their key anywhere in them. Its memory is fixed beforehand and may be any part of the file.
//! [`judge`](judge::judge) reads an output and checks its order.
//!
//! With two servers:
//!
//! ```text
//!              chunks in turn         table queue, by key range        one after the other
//!   input ──┬── cut, make keys ──┬──────┬── sort area, runs, merge ── write ──┬── output
//!           └── cut, make keys ──┴──────┴── sort area, runs, merge ── write ──┘
//! ```
//!
//! A file of lines is sorted as an index on text is built, with lines instead of rows. Scan servers
//! read chunks and cut them into lines; [`seams`] joins those that lie in two chunks. They make a
//! key of each line ([`key`]), which contains the whole line. A sample of the file gives the key
//! ranges. The sort servers' areas hold keys packed, without the bytes that neighbours share. After
//! the last line has been sent, each server knows the bytes in the ranges before its own. So all
//! write their parts of the output at once.
//!
//! Why not by runs and a divided merge, as [`file_sort`](crate::file_sort) does: there
//! the number of a record gives its place. Lines would have to be counted again for that,
//! and runs would be written even for a small file. Here a file that fits in the areas
//! never touches the temporary tablespace.
//!
//! Cost on paper, a line of 43 bytes: 60 ns to cut it, make its key and add it to the
//! sums, 15 for the queue, 150 to sort, 60 to merge and write it: 0.3 us, or 1.5 s for
//! 10 million on two processors.
//!
//! Limits: a line with its key fits a block of the temporary tablespace (32K at most).
//! If a key is a part of the line, the record has it a second time. The order of equal
//! lines is not checked afterwards.
//!
//! Invariants:
//! - Y1 Every byte of the input is in one line ([`seams`]).
//! - Y2 As many lines and bytes leave the sort as were read.

pub mod judge;
pub mod key;
mod sample;
mod seams;

pub use key::{Compared, Part, SortKey, SortOrder, Ties};

use crate::access::memory::{QUEUE_BUFFER_BYTES, QUEUE_BUFFERS_PER_SENDER, queue_bytes};
use crate::file_sort::input::{RecordFile, RecordReader};
use crate::file_sort::output::{Fragment, OutputFile, OutputWriter};
use crate::parallel::servers::{self, Operation};
use crate::parallel::table_queue::{CloseGuard, Closed, TableQueue};
use crate::sort::area::RecordSize;
use crate::sort::area::bytes::BytesArea;
use crate::sort::format::{BytesKey, RunFormat};
use crate::sort::plan::SortPlan;
use crate::sort::summary::{self, Divided, SortSummary};
use crate::sort::{SortOutcome, SortServer, Sorter, key_ranges};
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use key::Keyed;
use plumb_events::{Phase, Role, Session, SortServerSummary, Statistic, now};
use plumb_io::File;
use plumb_units::{Bytes, Lsn};
use seams::Seams;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

/// Most bytes of a read: above it the kernel hands requests to worker threads.
const CHUNK_BYTES_MAX: u64 = 512 * 1024;
/// Number of read buffers of a server, one being cut and the others ahead of it.
const CHUNKS: usize = 8;
/// Bytes and number of a server's write buffers.
const OUTPUT_BUFFERS: (usize, usize) = (256 * 1024, 8);
/// Bytes of the shortest line that is planned for.
const LINE_BYTES_MIN: usize = 2;

/// The elements that a file consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Lines, each ended by a line feed; the last one need not be.
    Lines,
    /// Records of this number of bytes.
    Records(usize),
}

impl Shape {
    /// Returns the bytes that end a line in the file.
    pub const fn end_bytes(self) -> u64 {
        match self {
            Shape::Lines => 1,
            Shape::Records(_) => 0,
        }
    }
}

/// Files, shape and order of a sort.
#[derive(Debug, Clone)]
pub struct LineSortSpec {
    /// File of lines or records, which is only read.
    pub input: PathBuf,
    /// Path of the sorted file; no file may exist there.
    pub output: PathBuf,
    /// Lines or records of the file.
    pub shape: Shape,
    /// Order of the sorted lines.
    pub order: SortOrder,
}

/// Outcome of a sort of lines.
#[derive(Debug, Clone)]
pub struct LineSortOutcome {
    /// Count of lines or records, and the sum of their CRC-32C as they were read.
    pub summed: Summed,
    /// Work of the sort servers.
    pub sort: SortSummary,
    /// Input file, which is still open.
    pub input: Arc<File>,
    /// Output file, which is still open.
    pub output: Arc<File>,
}

/// Sums over lines in any order: equal for two files that have the same lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summed {
    /// Number of lines or records.
    pub line_count: u64,
    /// Bytes of the lines without their ends.
    pub bytes: u64,
    /// Sum of the CRC-32C (iSCSI) of each line; processors have an instruction for it.
    pub checksum: u128,
}

impl Summed {
    #[inline]
    fn line(&mut self, line: &[u8]) {
        self.line_count += 1;
        self.bytes += line.len() as u64;
        self.checksum += u128::from(crc_fast::crc32_iscsi(line));
    }

    fn add(&mut self, other: &Summed) {
        self.line_count += other.line_count;
        self.bytes += other.bytes;
        self.checksum = self.checksum.wrapping_add(other.checksum);
    }
}

/// Sorts a file of lines or records.
///
/// # Errors
/// If the input is not a file of this shape or changes, a line is too long, the output exists, the
/// sort area cannot hold a line, or I/O fails. Nothing of the sort then remains.
pub fn sort_lines(instance: &Instance, spec: &LineSortSpec) -> Result<LineSortOutcome, EngineError> {
    let coordinator = instance.recorder.session(Role::Coordinator);
    let temp = instance.tablespace(Purpose::Temp);
    let extent_counts = temp.extent_counts();
    let sorted = run(instance, &coordinator, spec);
    if sorted.is_err() {
        // The sort's own error is the one to report.
        let _ = temp.cut_back(&extent_counts);
    }
    sorted
}

fn run(
    instance: &Instance,
    coordinator: &Session,
    spec: &LineSortSpec,
) -> Result<LineSortOutcome, EngineError> {
    let begin = now();
    let input = open(instance, coordinator, spec)?;
    let block_size = instance.tablespace(Purpose::Temp).block_size;
    let keyed = Keyed::new(spec.shape, &spec.order, block_size, &spec.input);
    let bytes = input.record_count + missing_end(instance, coordinator, &input, spec.shape)?;
    let output = OutputFile::create(instance, coordinator, &spec.output, bytes)?;
    let mut records = sample::records(instance, coordinator, &input, &keyed)?;
    let plan = plan(instance, &records, &input, spec.shape)?;
    records.sort_by(|one, two| BytesKey::compare(one, two));
    let ranges = key_ranges(&records, instance.parallel_degree());
    drop(records);
    instance.recorder.phase(Phase::Sample, begin, 0);

    let lsn = instance.next_lsn(coordinator)?;
    let seams = Seams::new(spec.shape, input.record_count, keyed.line_bytes_max(), &spec.input);
    let range_bytes = (0..=ranges.len()).map(|_| AtomicU64::new(0)).collect();
    let work = Work {
        instance,
        input: &input,
        output: &output,
        keyed: &keyed,
        seams: &seams,
        plan: &plan,
        ranges: &ranges,
        range_bytes,
        lsn,
    };
    let operation = instance.operation();
    let parts = work.parts(coordinator, &operation);
    operation.outcome()?;
    let mut summed = Summed::default();
    parts.iter().for_each(|part| summed.add(&part.read));
    seams.require_closed();
    let written: u64 = parts.iter().map(|part| part.outcome.row_count).sum();
    if written != summed.line_count || summed.bytes + summed.line_count * spec.shape.end_bytes() != bytes {
        return Err(EngineError::Verification {
            what: format!("lines that came out of the sort of {}", spec.input.display()),
            found: format!("{written}, and {} bytes in all", summed.bytes),
            expected: format!("{}, and {bytes} bytes with their ends", summed.line_count),
        });
    }
    let begin = now();
    let summaries =
        parts.iter().filter(|part| part.sorts).map(|part| part.summary(instance, &plan)).collect();
    output.patch(coordinator, parts.into_iter().flat_map(|part| part.fragments).collect())?;
    let written = output.finish(coordinator)?;
    instance.recorder.phase(Phase::Join, begin, 0);
    let sort = SortSummary::new(&plan, summaries, memory(instance, &plan, &input), Divided::ByKey);
    Ok(LineSortOutcome { summed, sort, input: Arc::clone(input.file()), output: written })
}

/// Opens the input; records must be whole.
fn open(instance: &Instance, session: &Session, spec: &LineSortSpec) -> Result<RecordFile, EngineError> {
    let block = instance.tablespace(Purpose::Temp).block_size.bytes() as u64;
    let asked = u64::from(instance.settings.io.db_file_multiblock_read_count) * block;
    let chunk_bytes = asked.min(CHUNK_BYTES_MAX).max(block) as usize;
    let input = RecordFile::open(instance, session, &spec.input, (1, chunk_bytes))?;
    if let Shape::Records(bytes) = spec.shape {
        crate::file_sort::input::require_whole(&spec.input, input.record_count, bytes)?;
    }
    Ok(input)
}

/// Returns 1 if the last line has no end: the output gets one, as from other sorts.
fn missing_end(
    instance: &Instance,
    session: &Session,
    input: &RecordFile,
    shape: Shape,
) -> Result<u64, EngineError> {
    if input.record_count == 0 || shape != Shape::Lines {
        return Ok(0);
    }
    let place = (input.record_count - 1) / sample::BLOCK_BYTES * sample::BLOCK_BYTES;
    let mut missing = 0;
    sample::read(instance, session, input.file(), (&[place], sample::BLOCK_BYTES as usize), |_, bytes| {
        missing = u64::from(bytes.last().is_some_and(|last| *last != b'\n'));
        Ok(())
    })?;
    Ok(missing)
}

/// Plans the sort by the mean length of the sample's lines.
fn plan(
    instance: &Instance,
    sample: &[Vec<u8>],
    input: &RecordFile,
    shape: Shape,
) -> Result<SortPlan, EngineError> {
    let bytes: usize = sample.iter().map(Vec::len).sum();
    let mean = bytes.div_ceil(sample.len().max(1)).max(LINE_BYTES_MIN);
    let line = match shape {
        Shape::Lines => mean.saturating_sub(crate::sort::format::BYTES_HEADER).max(LINE_BYTES_MIN),
        Shape::Records(bytes) => bytes,
    };
    let count = input.record_count / line as u64;
    SortPlan::new(instance, RecordSize::new::<BytesArea>(mean), count / instance.parallel_degree() as u64)
}

/// Returns the memory planned before the first line, by purpose.
fn memory(instance: &Instance, plan: &SortPlan, input: &RecordFile) -> Vec<(String, Bytes)> {
    let degree = instance.parallel_degree() as u64;
    let all = |bytes: u64| Bytes(bytes * degree);
    let mut memory = plan.memory(&instance.settings, degree);
    memory.push(("file read buffers".to_string(), all((CHUNKS * input.chunk_bytes) as u64)));
    memory.push(("output buffers".to_string(), all((OUTPUT_BUFFERS.0 * OUTPUT_BUFFERS.1) as u64)));
    if degree > 1 {
        memory.push(("table queue".to_string(), Bytes(queue_bytes(degree))));
    }
    memory
}

/// State shared by all servers of a sort.
struct Work<'a> {
    instance: &'a Instance,
    input: &'a RecordFile,
    output: &'a OutputFile<'a>,
    keyed: &'a Keyed<'a>,
    seams: &'a Seams<'a>,
    plan: &'a SortPlan,
    /// First records of all key ranges but the lowest.
    ranges: &'a [Vec<u8>],
    /// Bytes of the output in each range; complete when all scan servers
    /// have finished with the queue.
    range_bytes: Vec<AtomicU64>,
    lsn: Lsn,
}

#[derive(Default)]
struct ServerPart {
    name: String,
    sorts: bool,
    read: Summed,
    outcome: SortOutcome,
    fragments: Vec<Fragment>,
}

impl ServerPart {
    fn summary(&self, instance: &Instance, plan: &SortPlan) -> SortServerSummary {
        let area = instance.settings.sort.sort_area_size;
        summary::of_sorter(self.name.clone(), area, plan, &self.outcome)
    }
}

impl Work<'_> {
    fn parts(&self, coordinator: &Session, operation: &Operation) -> Vec<ServerPart> {
        let degree = self.instance.parallel_degree();
        let parts = if degree == 1 {
            thread::scope(|scope| {
                let work = |session: &Session| self.alone(session, operation);
                servers::join(coordinator, vec![servers::start(scope, operation, (Role::Serial, 0), work)])
            })
        } else {
            self.in_two_sets(coordinator, operation, degree)
        };
        parts.into_iter().flatten().collect()
    }

    /// Sorts with a single server.
    fn alone(&self, session: &Session, operation: &Operation) -> Result<ServerPart, EngineError> {
        let server = self.server(session, operation);
        let mut sorter = Sorter::<BytesKey>::new(&server)?;
        let mut records = Vec::with_capacity(QUEUE_BUFFER_BYTES);
        let read = self.scan(session, operation, |line, offset| {
            if records.len() + self.keyed.record_bytes_max(line.len()) > QUEUE_BUFFER_BYTES {
                sorter.fill(&records)?;
                records.clear();
            }
            self.keyed.append(line, offset, &mut records)
        })?;
        sorter.fill(&records)?;
        drop(records);
        Ok(ServerPart { read, ..self.write(session, sorter, 0)? })
    }

    /// Sorts with scan servers, the table queue and sort servers.
    fn in_two_sets(
        &self,
        coordinator: &Session,
        operation: &Operation,
        degree: usize,
    ) -> Vec<Option<ServerPart>> {
        let queue = TableQueue::new(degree, degree, degree * QUEUE_BUFFERS_PER_SENDER);
        let queue = &queue;
        thread::scope(|scope| {
            // Guards are made here, not by the servers: if one cannot start, its
            // dropped guard wakes the others.
            let guard = || queue.close_unless_done();
            let sorts = (0..degree).map(|range| {
                let guard = guard();
                let work =
                    move |session: &Session| self.sort_range(session, operation, range, (queue, guard));
                servers::start(scope, operation, (Role::SortServer, range), work)
            });
            let sorts: Vec<_> = sorts.collect();
            let scans = (0..degree).map(|number| {
                let guard = guard();
                let work = move |session: &Session| self.send(session, operation, (queue, guard));
                servers::start(scope, operation, (Role::ScanServer, number), work)
            });
            let scans: Vec<_> = scans.collect();
            let mut parts = servers::join(coordinator, scans);
            parts.extend(servers::join(coordinator, sorts));
            parts
        })
    }

    /// Cuts chunks of the input into lines, in turn with the other servers.
    fn scan(
        &self,
        session: &Session,
        operation: &Operation,
        mut visit: impl FnMut(&[u8], u64) -> Result<(), EngineError>,
    ) -> Result<Summed, EngineError> {
        let begin = now();
        let mut summed = Summed::default();
        let mut reader = RecordReader::new(session, &self.instance.access, self.input, CHUNKS)?;
        while let Some(chunk) = reader.next()? {
            operation.check()?;
            let before = summed.line_count;
            self.seams.cut(chunk.first, chunk.records(), |line, offset| {
                summed.line(line);
                visit(line, offset)
            })?;
            session.count(Statistic::TableScanRows, summed.line_count - before);
            reader.recycle([chunk.buffer])?;
        }
        self.instance.recorder.phase(Phase::FileScan, begin, summed.line_count);
        Ok(summed)
    }

    /// Runs a scan server: makes records of lines and sends each to the sort server of its range.
    fn send(
        &self,
        session: &Session,
        operation: &Operation,
        (queue, guard): (&TableQueue, CloseGuard<'_>),
    ) -> Result<ServerPart, EngineError> {
        let stopped = |Closed| EngineError::Stopped;
        let mut buffers = Vec::new();
        for range in 0..=self.ranges.len() {
            buffers.push(queue.empty_buffer(session, range).map_err(stopped)?);
        }
        let mut bytes = vec![0; buffers.len()];
        let end_bytes = self.keyed.shape().end_bytes();
        let mut record = Vec::new();
        let read = self.scan(session, operation, |line, offset| {
            record.clear();
            self.keyed.append(line, offset, &mut record)?;
            let range =
                self.ranges.iter().take_while(|first| BytesKey::compare(first, &record).is_le()).count();
            if buffers[range].len() + record.len() > QUEUE_BUFFER_BYTES {
                let full = std::mem::take(&mut buffers[range]);
                queue.send(session, range, full);
                buffers[range] = queue.empty_buffer(session, range).map_err(stopped)?;
            }
            buffers[range].extend_from_slice(&record);
            bytes[range] += line.len() as u64 + end_bytes;
            Ok(())
        })?;
        for (range, buffer) in buffers.into_iter().enumerate() {
            queue.send(session, range, buffer);
            self.range_bytes[range].fetch_add(bytes[range], SeqCst);
        }
        queue.sender_done();
        guard.done();
        session.count(Statistic::QueueRows, read.line_count);
        Ok(ServerPart { read, ..ServerPart::default() })
    }

    /// Runs a sort server: sorts its range, and writes it after the ranges before it.
    fn sort_range(
        &self,
        session: &Session,
        operation: &Operation,
        range: usize,
        (queue, guard): (&TableQueue, CloseGuard<'_>),
    ) -> Result<ServerPart, EngineError> {
        let server = self.server(session, operation);
        let mut sorter = Sorter::<BytesKey>::new(&server)?;
        while let Some(buffer) = queue.receive(session, range).map_err(|Closed| EngineError::Stopped)? {
            sorter.fill(&buffer)?;
            queue.give_back(range, buffer);
        }
        guard.done();
        // The queue has ended, so every sender has counted its bytes.
        let before = self.range_bytes.iter().take(range).map(|bytes| bytes.load(SeqCst)).sum();
        self.write(session, sorter, before)
    }

    /// Merges the sorted records into the output from byte `offset` on.
    fn write(
        &self,
        session: &Session,
        sorter: Sorter<'_, BytesKey>,
        offset: u64,
    ) -> Result<ServerPart, EngineError> {
        let mut writer = OutputWriter::new(self.output, session, offset, OUTPUT_BUFFERS)?;
        let outcome = sorter.finish(|record| self.keyed.write(record, |bytes| writer.push(bytes)))?;
        let fragments = writer.finish()?;
        let name = session.name().to_string();
        Ok(ServerPart { name, sorts: true, read: Summed::default(), outcome, fragments })
    }

    fn server<'s>(&'s self, session: &'s Session, operation: &'s Operation) -> SortServer<'s> {
        let (instance, plan, lsn) = (self.instance, self.plan, self.lsn);
        SortServer { instance, session, operation, plan, lsn, last_phase: Phase::MergeAndWrite }
    }
}
