//! Durable writes: cost of a commit on this device, by each method.
//!
//! One writer writes a log sequentially from its start, and makes each write durable before the
//! next. Besides the device, two properties determine the cost: the method of durability, and
//! whether the file's blocks were ever written. In a file that is only allocated (`fallocate`),
//! each first write also changes the file's block map. A sync must make that durable, too: a
//! journal commit and often a second flush. So both files are measured. The zeroed one is reused
//! from its start, the allocated one is made for each repeat.
//!
//! ```text
//! physics of one flush:   disk that rotates     4 - 12 ms (half a turn or more)
//!                         flash, no capacitor   0.3 - 5 ms (program the cache's pages)
//!                         flash with capacitor  10 - 60 us (the cache counts as medium)
//! under 5 us more than the same write without a sync: no device was asked
//! ```
//!
//! The plain write is a method of its own, because the cost of a flush is a difference.
//!
//! Limits: one log, one writer, one write at a time. The engine's log writer implements group
//! commit.

use plumb_host::device::{DeviceDescription, DirectIoSupport, RingPart, RingSetup};
use plumb_io::DirectIo;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A method to make a write durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurableMethod {
    /// The write alone, without durability, for comparison.
    None,
    /// A write, then a call of fdatasync.
    Fdatasync,
    /// A write, then a call of fsync.
    Fsync,
    /// A write to a file opened with `O_DSYNC`.
    ODsync,
    /// A write to a file opened with `O_SYNC`.
    OSync,
    /// A write with `RWF_DSYNC`, by pwritev2.
    RwfDsync,
    /// A write with `RWF_DSYNC`, through a ring.
    RingRwfDsync,
    /// A write and an fdatasync through a ring, linked: one system call for both.
    RingLinked,
}

impl DurableMethod {
    /// Every method, with the plain write first.
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

    /// Returns the name used in manual pages.
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

    /// True if requests go through a ring.
    pub const fn by_ring(self) -> bool {
        matches!(self, DurableMethod::RingRwfDsync | DurableMethod::RingLinked)
    }
}

/// State of a log's blocks before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSpace {
    Zeroed,
    /// Allocated and never written to.
    Allocated,
}

/// Durable writes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurablePoint {
    pub method: DurableMethod,
    /// Required if the page cache is bypassed.
    #[serde(alias = "access")]
    pub direct_io: DirectIo,
    /// Number of bytes of each write.
    pub request_bytes: u64,
    /// State of the log's blocks before the writes.
    pub space: LogSpace,
}

impl DurablePoint {
    /// Returns the reason why a device does not support this; `None` if it does.
    pub fn refusal(&self, device: &DeviceDescription) -> Option<String> {
        let ring = device.io_uring.refusal(RingPart::Setup(RingSetup::Plain));
        if let Some((why, cure)) = ring.filter(|_| self.method.by_ring()) {
            return Some(format!("no io_uring: {why}; {cure}"));
        }
        if self.direct_io == DirectIo::Off {
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
        let direct = if self.direct_io == DirectIo::Required { "O_DIRECT " } else { "" };
        let space = if self.space == LogSpace::Zeroed { "zeroed" } else { "allocated" };
        let size = Bytes(self.request_bytes).as_setting();
        write!(f, "{size} {direct}write, {}, {space} log", self.method.name())
    }
}
