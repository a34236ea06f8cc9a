//! Measures the cost of reads on the device under a tablespace.
//!
//! The merges of a sort are planned with two figures: the cost of starting a read, and the cost of
//! each further block of the same read. They are measured with random reads of four sizes, one at a
//! time. The order is shuffled, so that a device that slows down slows all sizes alike. The median
//! of each size is kept, and a line t = start + bytes / rate is fitted through the medians. The fit
//! minimises the relative error: the scatter of a time grows with the time, so a plain fit would
//! let the longest reads decide where the line starts.
//!
//! A merge reads ahead, and many devices serve several reads at once: [`overlapped_block_read`]
//! measures the cost of its one-block reads then.
//!
//! [`sequential_reads`] is the other end: the bytes a second that the requests of a scan can bring
//! in if no session reads the bytes.
//!
//! Limits: the medians of a slow disk come from few reads, at least three of each larger size.
//! Reads during writes are not measured.

use crate::parallel::servers;
use crate::read_cost::{MergeReads, SingleReads};
use crate::storage::control::SegmentExtent;
use crate::storage::datafile::DataFile;
use crate::storage::reader::{ReaderOptions, SegmentReader};
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::table::scan;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Role, Session, now};
use plumb_host::readings;
use plumb_io::{Arena, Channel, DirectIo, IoBuffer, IoError, Request};
use plumb_units::{BlockSize, Bytes, Nanos, ReadLine, SplitMix, median};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// Bytes of the larger reads, if the files are long enough.
const LARGER: [usize; 3] = [64 << 10, 256 << 10, 1 << 20];
/// Reads of one block in a round; of each larger size there is one.
const BLOCK_READS: usize = 4;
/// No round begins later than this, unless there were fewer than `ROUNDS_MIN`.
const BUDGET: Nanos = Nanos(80_000_000);
/// Time for which reads are kept in flight to measure their overlap.
const OVERLAPPED_BUDGET: Nanos = Nanos(20_000_000);
const ROUNDS_MIN: usize = 3;
const ROUNDS_MAX: usize = 64;
const SEED: u64 = 0x9E37_79B9_7F4A_7C15;

/// Measures the reads of a merge on the files of the temporary tablespace.
pub(crate) fn merge_reads(
    instance: &Instance,
    session: &Session,
    depth: usize,
) -> Result<MergeReads, EngineError> {
    let SingleReads { line, block_read_seconds } = measure(instance, session, Purpose::Temp)?;
    let block_seconds = match depth {
        1 => block_read_seconds,
        _ => overlapped_block_read(instance, session, Purpose::Temp, depth)?,
    };
    Ok(MergeReads { line, depth, block_seconds })
}

/// Measures reads one at a time, of the tablespace's own files.
///
/// # Errors
/// If a read of a file fails.
pub fn measure(instance: &Instance, session: &Session, purpose: Purpose) -> Result<SingleReads, EngineError> {
    let tablespace = instance.tablespace(purpose);
    let block_bytes = tablespace.block_size.bytes();
    let mut probe = Probe::new(instance, session, tablespace)?;
    let mut samples: Vec<Sample> = std::iter::once(block_bytes)
        .chain(
            LARGER.into_iter().filter(|size| *size > block_bytes && *size as u64 <= probe.file_bytes_max()),
        )
        .map(|size| Sample { bytes: size, seconds: Vec::new() })
        .collect();
    let begin = now();
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS_MIN && now().saturating_sub(begin) >= BUDGET {
            break;
        }
        instance.cancel.check()?;
        drop_cache(session, tablespace)?;
        for size in probe.shuffled_round(samples.len()) {
            let seconds = probe.read(samples[size].bytes)?;
            samples[size].seconds.push(seconds);
        }
    }
    let medians: Vec<(f64, f64)> =
        samples.iter_mut().map(|sample| (sample.bytes as f64, median(&sample.seconds))).collect();
    Ok(SingleReads { line: fit(&medians), block_read_seconds: medians[0].1 })
}

/// Returns the seconds of a random read of one block while `depth` of them are in flight: the total
/// time over the number of reads. Takes about 20 ms.
///
/// # Errors
/// If a read of a file fails.
pub fn overlapped_block_read(
    instance: &Instance,
    session: &Session,
    purpose: Purpose,
    depth: usize,
) -> Result<f64, EngineError> {
    let tablespace = instance.tablespace(purpose);
    let block_bytes = tablespace.block_size.bytes();
    let mut probe = Probe::new(instance, session, tablespace)?;
    let (arena, mut buffers) = Arena::buffers(block_bytes, depth.max(1))?;
    let mut channel = instance.access.method.channel(&[&arena])?;
    drop_cache(session, tablespace)?;
    let begin = now();
    let mut reads = 0u32;
    while now().saturating_sub(begin) < OVERLAPPED_BUDGET {
        while let Some(buffer) = buffers.pop() {
            channel.submit(session, probe.request(block_bytes, buffer))?;
        }
        buffers.push(channel.wait(session, Event::DirectPathRead)?.buffer);
        reads += 1;
    }
    let elapsed = now().saturating_sub(begin);
    while channel.outstanding() > 0 {
        channel.wait(session, Event::DirectPathRead)?;
    }
    Ok(elapsed.seconds() / f64::from(reads))
}

/// Bytes to read for a rate, and the number of parts.
#[derive(Debug, Clone, Copy)]
pub struct Shots {
    /// Bytes of all parts together; fewer if the tablespace has fewer.
    pub bytes: u64,
    /// Number of parts, each of other extents, so that no cache below serves
    /// one part from another's reads.
    pub count: usize,
}

/// Returns the bytes a second that the device gives to the requests of a scan, part by
/// part. Request size, read-ahead and number of servers are those of a scan, over extents
/// of the tablespace in their order. The blocks are not verified, and need not have been
/// written, so the rate is an upper bound for scans. There are fewer parts than requested
/// if there are fewer extents.
///
/// # Errors
/// If a read of a file fails.
pub fn sequential_reads(
    instance: &Instance,
    session: &Session,
    purpose: Purpose,
    shots: Shots,
) -> Result<Vec<f64>, EngineError> {
    let extents = first_extents(instance.tablespace(purpose), shots.bytes)?;
    let each = extents.len().div_ceil(shots.count.max(1)).max(1);
    extents.chunks(each).map(|part| sequential_read(instance, session, (purpose, part))).collect()
}

/// Returns the rate of one part.
fn sequential_read(
    instance: &Instance,
    session: &Session,
    (purpose, extents): (Purpose, &[SegmentExtent]),
) -> Result<f64, EngineError> {
    let tablespace = instance.tablespace(purpose);
    let options = raw_options(instance, tablespace);
    drop_cache(session, tablespace)?;
    let operation = instance.operation();
    let taken = AtomicUsize::new(0);
    let begin = now();
    thread::scope(|scope| {
        let servers = (0..instance.parallel_degree()).map(|number| {
            let (operation, taken) = (&operation, &taken);
            servers::start(scope, operation, (Role::ProbeServer, number), move |session| {
                let mut reader = SegmentReader::new(session, &instance.access, tablespace, options)?;
                let mut pieces = |_| extents.get(taken.fetch_add(1, Relaxed)).copied();
                while let Some(chunk) = reader.next(&mut pieces)? {
                    operation.check()?;
                    reader.recycle(chunk);
                }
                Ok(())
            })
        });
        let servers = servers.collect();
        servers::join(session, servers);
    });
    operation.outcome()?;
    let elapsed = now().saturating_sub(begin);
    let read: u64 = extents.iter().map(|extent| u64::from(extent.used)).sum();
    Ok(Bytes(read * tablespace.block_size.bytes() as u64).per(elapsed).0)
}

/// Returns the options of a scan, but with no buffer for an owner to work on.
fn raw_options(instance: &Instance, tablespace: &Tablespace) -> ReaderOptions {
    let options = scan::reader_options(instance, tablespace.purpose);
    ReaderOptions {
        chunk_blocks: options.chunk_blocks.min(tablespace.extent_blocks.0),
        buffer_count: instance.settings.io.scan_read_ahead,
        stream: IoStream::Probe,
        ..options
    }
}

/// Returns extents in the order of allocation, up to `bytes` bytes.
fn first_extents(tablespace: &Tablespace, bytes: u64) -> Result<Vec<SegmentExtent>, EngineError> {
    let extent_bytes = tablespace.extent_blocks.bytes(tablespace.block_size);
    let mut counts = Vec::new();
    for file in &tablespace.files {
        counts.push((file.file.length()? / extent_bytes) as usize);
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let rounds = (0..most).flat_map(|index| (0..counts.len()).map(move |file| (index, file)));
    let there = rounds.filter(|(index, file)| *index < counts[*file]);
    let extent = |(index, file): (usize, usize)| {
        let extent = tablespace.extent(file, index);
        SegmentExtent { extent, used: extent.blocks }
    };
    let wanted = bytes.div_ceil(extent_bytes).max(1);
    Ok(there.take(usize::try_from(wanted).unwrap_or(usize::MAX)).map(extent).collect())
}

/// Drops files from the page cache if they are read through it, so that reads reach the device.
fn drop_cache(session: &Session, tablespace: &Tablespace) -> Result<(), EngineError> {
    for file in tablespace.files.iter().filter(|file| file.file.direct() == DirectIo::Off) {
        let Some(descriptor) = file.file.descriptor() else { continue };
        session.wait(Event::DirectPathSync, || readings::drop_cache(descriptor)).map_err(|source| {
            IoError::Operation {
                operation: "drop from the page cache",
                path: file.file.path().to_path_buf(),
                source,
            }
        })?;
    }
    Ok(())
}

/// Times of reads of one size.
struct Sample {
    bytes: usize,
    seconds: Vec<f64>,
}

/// Reads at random places, one at a time.
struct Probe<'a> {
    session: &'a Session,
    block_size: BlockSize,
    /// Each file with its length.
    files: Vec<(&'a DataFile, u64)>,
    channel: Channel,
    buffer: Option<IoBuffer>,
    random: SplitMix,
}

impl<'a> Probe<'a> {
    fn new(
        instance: &Instance,
        session: &'a Session,
        tablespace: &'a Tablespace,
    ) -> Result<Probe<'a>, EngineError> {
        let mut files = Vec::new();
        for file in &tablespace.files {
            files.push((file, file.file.length()?));
        }
        let (arena, mut buffers) = Arena::buffers(LARGER[LARGER.len() - 1], 1)?;
        let channel = instance.access.method.channel(&[&arena])?;
        let (buffer, block_size) = (buffers.pop(), tablespace.block_size);
        Ok(Probe { session, block_size, files, channel, buffer, random: SplitMix(SEED) })
    }

    /// Returns the longest file's length, because a size is read if at least one file has it.
    fn file_bytes_max(&self) -> u64 {
        self.files.iter().map(|(_, length)| *length).max().unwrap_or(0)
    }

    /// Returns the indexes of the sizes to read: some single blocks and one of each other size.
    fn shuffled_round(&mut self, sizes: usize) -> Vec<usize> {
        let mut round = vec![0; BLOCK_READS];
        round.extend(1..sizes);
        self.random.shuffle(&mut round);
        round
    }

    /// Makes a read of `bytes` bytes at a random block.
    fn request(&mut self, bytes: usize, buffer: IoBuffer) -> Request {
        let long_enough = |file: &&(&DataFile, u64)| file.1 >= bytes as u64;
        let count = self.files.iter().filter(long_enough).count() as u64;
        let turn = self.random.below(count) as usize;
        let (file, length) = *self.files.iter().filter(long_enough).nth(turn).expect("fewer than counted");
        let places = (length - bytes as u64) / self.block_size.bytes() as u64 + 1;
        let offset = self.random.below(places) * self.block_size.bytes() as u64;
        Request {
            operation: plumb_io::Operation::Read,
            file: Arc::clone(&file.file),
            offset,
            buffer,
            range: 0..bytes,
            event: Event::DirectPathRead,
            stream: IoStream::Probe,
            tag: 0,
        }
    }

    /// Reads once and returns the seconds.
    fn read(&mut self, bytes: usize) -> Result<f64, EngineError> {
        let buffer = self.buffer.take().expect("given back by the read before");
        let request = self.request(bytes, buffer);
        let begin = now();
        self.channel.submit(self.session, request)?;
        let completion = self.channel.wait(self.session, Event::DirectPathRead)?;
        let elapsed = now().saturating_sub(begin);
        self.buffer = Some(completion.buffer);
        Ok(elapsed.seconds())
    }
}

/// Fits the line through (bytes, seconds). If longer reads take no longer, the rate
/// is that of the longest.
fn fit(points: &[(f64, f64)]) -> ReadLine {
    let (bytes, seconds) = points[points.len() - 1];
    ReadLine::fit(points).unwrap_or(ReadLine {
        start_seconds: points[0].1.min(seconds),
        bytes_per_second: bytes / seconds.max(1e-9),
    })
}

#[cfg(test)]
mod tests;
