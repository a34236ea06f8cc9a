//! The logs of durable writes.
//!
//! A log is opened with the flags of a point, and the kernel's flags are read back before the first
//! write. Writes are sequential, one at a time, through a channel of `plumb-io`. A point of a ring
//! uses that; others use system calls of the writer itself.
//!
//! Before a point starts, the log is dropped from the page cache. Otherwise the kernel would have
//! to evict a page for each direct write.

use super::ScratchDirectory;
use super::data_file::{Content, Filling};
use crate::CalibrateError;
use crate::plan::{DurableMethod, DurablePoint, LogSpace};
use crate::progress::StopCheck;
use plumb_events::{Event, IoStream, Session};
use plumb_host::readings;
use plumb_io::{
    Channel, DirectIo, Durability, File, IoBuffer, IoError, Method, MethodKind, Operation, Request, Space,
};
use plumb_units::{Bytes, Nanos};
use std::sync::Arc;

/// The logs of a calibration.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The log written with zeros beforehand; `None` for files in memory.
    zeroed: Option<File>,
    bytes: Bytes,
}

impl Logs {
    /// Name of the zeroed log in its directory.
    pub(crate) const ZEROED: &'static str = "log";
    /// Name of an allocated log.
    pub(crate) const ALLOCATED: &'static str = "log-allocated";

    /// Returns no logs: nothing durable is measured.
    pub(crate) fn none() -> Logs {
        Logs { zeroed: None, bytes: Bytes(0) }
    }

    /// Makes the zeroed log; allocated ones, of the same length, are made when needed.
    pub(crate) fn create(
        scratch: &ScratchDirectory,
        bytes: Bytes,
        max_rate: Option<u64>,
        stop: &StopCheck<'_>,
    ) -> Result<Logs, CalibrateError> {
        if scratch.in_memory() {
            return Ok(Logs::none());
        }
        let zeroed = Arc::new(scratch.create_file(Logs::ZEROED, DirectIo::Off)?);
        let method = Method::start(MethodKind::Sync, 1)?;
        let (content, time_max) = (Content::Zeros, Nanos(u64::MAX));
        let filling = Filling { method: &method, content, time_max, max_rate, stop };
        filling.fill(&zeroed, bytes)?;
        zeroed.sync_data()?;
        // The channel is closed, so no other owner of the file remains.
        Ok(Logs { zeroed: Arc::into_inner(zeroed), bytes })
    }
}

/// A log opened with the flags of a point.
#[derive(Debug)]
pub(crate) struct LogFile {
    point: DurablePoint,
    file: Arc<File>,
    channel: Channel,
    /// Number of writes that fit.
    writes: u64,
}

impl LogFile {
    pub(crate) fn open(
        scratch: &ScratchDirectory,
        logs: &Logs,
        point: DurablePoint,
    ) -> Result<LogFile, CalibrateError> {
        let allocated;
        let log = match (point.space, &logs.zeroed) {
            (LogSpace::Zeroed, Some(zeroed)) => zeroed,
            _ => {
                allocated = allocate(scratch, logs.bytes)?;
                &allocated
            }
        };
        if let Some(descriptor) = log.descriptor() {
            // Each write must evict a page that stayed, which widens the interval.
            let _ = readings::drop_cache(descriptor);
        }
        let durability = match point.method {
            DurableMethod::ODsync => Durability::Data,
            DurableMethod::OSync => Durability::All,
            _ => Durability::OnSync,
        };
        let file = scratch.reopen(log, point.direct_io, durability)?;
        require(&file, point.direct_io, durability)?;
        let kind = if point.method.by_ring() { MethodKind::IoUring } else { MethodKind::Sync };
        let channel = Method::start(kind, 1)?.channel(&[])?;
        Ok(LogFile { point, file: Arc::new(file), channel, writes: logs.bytes.0 / point.request_bytes })
    }

    /// True if one more write is possible after this number: an allocated log is written once.
    pub(crate) fn has_room(&self, writes: u64) -> bool {
        self.point.space == LogSpace::Zeroed || writes < self.writes
    }

    /// Writes at the next position and returns the buffer when it is durable.
    pub(crate) fn write(
        &mut self,
        session: &Session,
        buffer: IoBuffer,
        number: u64,
    ) -> Result<IoBuffer, CalibrateError> {
        let request = Request {
            operation: match self.point.method {
                DurableMethod::RwfDsync | DurableMethod::RingRwfDsync => Operation::WriteDurable,
                DurableMethod::Fdatasync | DurableMethod::RingLinked => Operation::WriteAndSync,
                DurableMethod::Fsync => Operation::WriteAndSyncAll,
                DurableMethod::None | DurableMethod::ODsync | DurableMethod::OSync => Operation::Write,
            },
            file: Arc::clone(&self.file),
            offset: number % self.writes.max(1) * self.point.request_bytes,
            range: 0..buffer.len(),
            buffer,
            event: Event::LogFileParallelWrite,
            stream: IoStream::ProbeWrites,
            tag: number,
        };
        self.channel.submit(session, request)?;
        Ok(self.channel.wait(session, Event::LogFileParallelWrite)?.buffer)
    }

    /// Removes an allocated log, because its blocks are written now.
    pub(crate) fn close(self, scratch: &ScratchDirectory) -> Result<(), CalibrateError> {
        if self.point.space == LogSpace::Allocated {
            scratch.remove_file(self.file.path())?;
        }
        Ok(())
    }
}

fn allocate(scratch: &ScratchDirectory, bytes: Bytes) -> Result<File, CalibrateError> {
    let file = scratch.create_file(Logs::ALLOCATED, DirectIo::Off)?;
    if file.allocate(bytes.0)? == Space::Lengthened {
        // The point requires a log with allocated blocks.
        let why = "the file system reserves no space for a file (fallocate)";
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, why);
        return Err(IoError::operation("allocate space for", file.path(), source).into());
    }
    // The length and the map are durable before the first write is timed.
    file.sync_data()?;
    Ok(file)
}

/// Compares the kernel's flags of an open file with the requested ones.
fn require(file: &File, direct: DirectIo, durability: Durability) -> Result<(), CalibrateError> {
    let Some(descriptor) = file.descriptor() else { return Ok(()) };
    let path = || file.path().to_path_buf();
    let flags = readings::open_flags(descriptor)
        .map_err(|source| CalibrateError::Receipt { path: path(), source })?;
    let found = (flags.direct, flags.dsync, flags.sync);
    let asked =
        (direct == DirectIo::Required, durability != Durability::OnSync, durability == Durability::All);
    if found == asked {
        return Ok(());
    }
    let asked = [(asked.0, "O_DIRECT"), (asked.1, "O_DSYNC"), (asked.2, "O_SYNC")];
    let names: Vec<&str> = asked.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
    let asked = if names.is_empty() { "no flags".to_string() } else { names.join(" and ") };
    Err(CalibrateError::OpenedOtherwise { path: path(), asked, found: flags.raw })
}
