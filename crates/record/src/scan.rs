//! Full scans: what they found, and the I/O of each instance.

use crate::IoTally;
use serde::{Deserialize, Serialize};

/// The full scans of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// Rows that satisfied the condition, in each stream.
    pub rows: u64,
    /// Columns added, with their exact sums.
    pub sums: Vec<ColumnSum>,
    /// Elapsed time of each stream, nanoseconds.
    pub streams_ns: Vec<u64>,
    pub extents: u64,
    pub instances: Vec<ScanInstance>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnSum {
    pub column: String,
    /// Decimal text, because a JSON number does not keep every digit.
    pub sum: String,
}

/// An instance that scanned: this process, or one that read the closed database.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScanInstance {
    pub name: String,
    /// Extents of the table that were its share.
    pub extents: u64,
    /// Bytes of the blocks in these extents, times its streams.
    pub share_bytes: u64,
    pub rows: u64,
    /// Time from the start of its scan to its end, nanoseconds.
    pub elapsed_ns: u64,
    /// Reads past the buffer cache.
    pub direct_reads: IoTally,
    /// Reads into the buffer cache.
    pub cache_reads: IoTally,
    pub writes: IoTally,
}
