//! Requests of the log, and the bytes that reached its device.

use serde::{Deserialize, Serialize};

/// The log of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogIo {
    /// True if its files bypass the page cache.
    pub direct: bool,
    /// Method that makes its writes durable.
    pub sync_method: String,
    /// Number of log writes by their requests, all members of a file together.
    pub writes: u64,
    pub write_bytes: u64,
    /// Service time of these writes, nanoseconds; without a separate sync call.
    pub write_ns: u64,
    /// Log writes by the engine's statistics.
    pub redo_writes: u64,
    /// Time of these with their syncs, microseconds.
    pub redo_write_us: u64,
    pub redo_bytes: u64,
    /// Number of reads of log files.
    pub reads: u64,
    pub read_bytes: u64,
    /// Bytes that the kernel sent to the device for the log: all of this process, without those of
    /// other files' requests. `None` without a counter, or if other files are buffered, too.
    pub sent_bytes: Option<u64>,
    /// Bytes read without a request, as the rest of blocks written in part, and
    /// read-ahead. `None` as for `sent_bytes`.
    pub fetched_bytes: Option<u64>,
    /// Number of log writes of more than four times the median; `None` without a trace.
    pub slow_writes: Option<u64>,
    /// Number of these between two samples of the log's device between which any process read from
    /// it. `None` without samples, or if log files lie on several devices.
    pub slow_beside_reads: Option<u64>,
    /// Pattern of the log's requests at the device.
    pub pattern: LogPattern,
}

/// Pattern of a log's writes at its device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPattern {
    /// Too little is known, or written.
    #[default]
    Unknown,
    /// Each write follows the previous one, and the device receives the requested bytes.
    Appends,
    /// The device receives whole blocks for parts of blocks: the same block again and again.
    BlockRewritten,
    /// Blocks that are written in part are read first.
    ReadModifyWrite,
    /// As `ReadModifyWrite`, and several writes were slow while the device read.
    #[serde(alias = "stalled_behind_read")]
    SlowBesideReads,
}

impl LogPattern {
    /// Returns the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            LogPattern::Unknown => "not known",
            LogPattern::Appends => "appends",
            LogPattern::BlockRewritten => "one block rewritten",
            LogPattern::ReadModifyWrite => "read-modify-write",
            LogPattern::SlowBesideReads => "read-modify-write, with slow writes while the device read",
        }
    }
}
