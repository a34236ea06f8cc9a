//! Durable writes: what a commit costs on this device, by each way to ask for it.
//!
//! One writer writes a log from its start, each write the next, each made durable
//! before the one after it. Two things decide the cost besides the device: the way
//! durability is asked for, and whether the file's blocks were ever written. In a
//! file that is merely allocated (`fallocate`) each first write also changes the
//! file's map of blocks, and a sync has to make that durable too: a journal commit
//! and often a second flush. So both files are measured, the zeroed one again and
//! again from its start, the allocated one made anew for each repeat.
//!
//! ```text
//! physics of one flush:   disk that rotates     4 - 12 ms (half a turn or more)
//!                         flash, no capacitor   0.3 - 5 ms (program the cache's pages)
//!                         flash with capacitor  10 - 60 us (the cache counts as medium)
//! under 5 us more than the same write without a sync: no device was asked
//! ```
//!
//! The plain write is measured as a method of its own, because the cost of a flush
//! is a difference.
//!
//! Limits: one log, one writer, one write at a time: group commit is the log writer's
//! business.

mod log;

pub(crate) use log::Logs;

use crate::evidence::Traffic;
use crate::lane::stamp;
use crate::random::Random;
use crate::runner::Runner;
use crate::{Access, CalibrateError, Evidence, LoadMeasurement, Measurement};
use log::LogFile;
use plumb_events::{Recorder, SessionKind, now};
use plumb_io::device::{DeviceDescription, DirectIoSupport, RingPart};
use plumb_io::{Arena, RingSetup, receipt};
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A way to make a write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurableMethod {
    /// Not at all: the write alone, to compare with.
    None,
    /// write, then fdatasync.
    Fdatasync,
    /// write, then fsync.
    Fsync,
    /// A file that is open with `O_DSYNC`.
    ODsync,
    /// A file that is open with `O_SYNC`.
    OSync,
    /// A write with `RWF_DSYNC`, by pwritev2.
    RwfDsync,
    /// The same through a ring.
    RingRwfDsync,
    /// A write and an fdatasync through a ring, linked: one system call for both.
    RingLinked,
}

impl DurableMethod {
    /// Every way, the plain write first.
    pub const ALL: [DurableMethod; 8] = [
        DurableMethod::None,
        DurableMethod::Fdatasync,
        DurableMethod::Fsync,
        DurableMethod::ODsync,
        DurableMethod::OSync,
        DurableMethod::RwfDsync,
        DurableMethod::RingRwfDsync,
        DurableMethod::RingLinked,
    ];

    /// The name, as a reader of manual pages knows it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DurableMethod::None => "write only",
            DurableMethod::Fdatasync => "fdatasync",
            DurableMethod::Fsync => "fsync",
            DurableMethod::ODsync => "O_DSYNC",
            DurableMethod::OSync => "O_SYNC",
            DurableMethod::RwfDsync => "RWF_DSYNC",
            DurableMethod::RingRwfDsync => "RWF_DSYNC by ring",
            DurableMethod::RingLinked => "linked fdatasync by ring",
        }
    }

    /// Whether it needs a ring.
    pub(crate) const fn by_ring(self) -> bool {
        matches!(self, DurableMethod::RingRwfDsync | DurableMethod::RingLinked)
    }
}

/// What a log's blocks are before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// Written with zeros.
    Zeroed,
    /// Allocated and never written.
    Allocated,
}

/// Durable writes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurablePoint {
    /// How durability is asked for.
    pub method: DurableMethod,
    /// Whether the page cache is bypassed.
    pub access: Access,
    /// The bytes of each write.
    pub request_bytes: u64,
    /// What the log's blocks are before.
    pub space: Space,
}

impl DurablePoint {
    /// Why this cannot be measured on a device.
    #[must_use]
    pub fn refusal(&self, device: &DeviceDescription) -> Option<String> {
        let ring = device.io_uring.refusal(RingPart::Setup(RingSetup::Plain));
        if let Some((why, cure)) = ring.filter(|_| self.method.by_ring()) {
            return Some(format!("no io_uring: {why}; {cure}"));
        }
        if self.access == Access::Buffered {
            return None;
        }
        match &device.direct_io {
            DirectIoSupport::No { why } => Some(format!("direct I/O does not work here: {why}")),
            DirectIoSupport::Yes { offset_align, .. }
                if !self.request_bytes.is_multiple_of(offset_align.0) =>
            {
                Some(format!("direct writes here are multiples of {}", offset_align.as_setting()))
            }
            DirectIoSupport::Yes { .. } => None,
        }
    }
}

impl fmt::Display for DurablePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direct = if self.access == Access::Direct { "O_DIRECT " } else { "" };
        let space = if self.space == Space::Zeroed { "zeroed" } else { "allocated" };
        let size = Bytes(self.request_bytes).as_setting();
        write!(f, "{size} {direct}write, {}, {space} log", self.method.name())
    }
}

/// Before it is measured: the first writes find a cold code path and an idle disk.
const RAMP_PARTS: u64 = 8;

/// Writes durably, one after the other, for `time`.
pub(crate) fn run(
    runner: &Runner<'_>,
    point: DurablePoint,
    mut random: Random,
    time: Nanos,
) -> Result<Measurement, CalibrateError> {
    let recorder = Recorder::new();
    let session = recorder.session("calibration log writer", SessionKind::Probe);
    let mut log = LogFile::open(runner.home, runner.logs, point)?;
    let (_arena, mut buffers) = Arena::buffers(point.request_bytes as usize, 1)?;
    let Some(mut buffer) = buffers.pop() else { unreachable!("one was asked for") };
    random.fill(&mut buffer);
    let (mut number, mut load, mut writes) = (random.word(), LoadMeasurement::default(), 0);
    let effort = runner.effort.read();
    let mut at = now();
    let mut measured_from = at + Nanos(time.0 / RAMP_PARTS);
    let end = measured_from + time;
    while at < end && log.has_room(writes) {
        if writes % 64 == 0 {
            runner.guard.check()?;
        }
        stamp(&mut buffer, &mut number);
        let begin = now();
        buffer = log.write(&session, buffer, writes)?;
        at = now();
        writes += 1;
        if begin >= measured_from {
            load.writes += 1;
            load.latency.add(at.saturating_sub(begin));
        } else {
            // What began in the ramp ends it: the measurement begins with a whole write.
            measured_from = measured_from.max(at);
        }
    }
    let effort = runner.effort.read().since(effort);
    // While the log's ring lives: its workers end with it.
    let io_wq_workers = receipt::io_wq_workers().unwrap_or(0);
    log.close(runner.home)?;
    let asked = Traffic { requests: writes, read_bytes: 0, write_bytes: writes * point.request_bytes };
    let syncs = if point.method == DurableMethod::None { 0 } else { writes };
    let evidence = Evidence { asked, syncs, io_wq_workers, ..Evidence::default() };
    let elapsed_ns = at.saturating_sub(measured_from).0;
    Ok(Measurement { elapsed_ns, loads: vec![load], cpu_ns: effort.time.0, cycles: effort.cycles, evidence })
}
