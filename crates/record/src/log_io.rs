//! What the log asked of its files, and what reached the device for it.

use serde::{Deserialize, Serialize};

/// The log of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogIo {
    /// Whether its files bypass the page cache.
    pub direct: bool,
    /// How its writes become durable.
    pub sync_method: String,
    /// Log writes, all members of a file together, by their requests: number, bytes, service times in sum.
    pub writes: u64,
    pub write_bytes: u64,
    /// Nanoseconds of them; of a method that syncs by a call of its own, without that call.
    pub write_ns: u64,
    /// Log writes by the engine's statistics, and their time with all that makes them durable, microseconds.
    pub redo_writes: u64,
    pub redo_write_us: u64,
    pub redo_bytes: u64,
    pub reads: u64,
    pub read_bytes: u64,
    /// Bytes that the kernel sent to the device for the log: of all that it sent for this process, what no request for other files asked for.
    /// None where it does not tell, or other files are buffered, too.
    pub sent_bytes: Option<u64>,
    /// Bytes that it fetched and nobody asked for: the rest of blocks that were written in part, and what it read ahead. Likewise.
    pub fetched_bytes: Option<u64>,
    /// Log writes that took more than four times as long as the typical one; none without a trace.
    pub slow_writes: Option<u64>,
    /// Of these, those that lie between two looks at the log's device between which it read something, for whomever; none without looks,
    /// or where log files lie on several devices.
    pub slow_beside_reads: Option<u64>,
    /// What the requests and the device make of it.
    pub pattern: LogPattern,
}

/// How a log is written, as its device sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPattern {
    /// Not enough is known, or written.
    #[default]
    Unknown,
    /// Each write goes behind the one before, and the device gets what was asked for.
    Appends,
    /// The device gets whole blocks for parts of blocks: the same block again and again.
    BlockRewritten,
    /// Blocks that are written in part are read first.
    ReadModifyWrite,
    /// The same, and several writes were slow while the device read.
    #[serde(alias = "stalled_behind_read")]
    SlowBesideReads,
}

impl LogPattern {
    #[must_use]
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
