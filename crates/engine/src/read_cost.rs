//! The read costs of a device, by which merges are planned; [`crate::probe`] measures them.

use plumb_units::ReadLine;

/// Cost of reads of a device, measured one at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SingleReads {
    /// Line through the costs of reads of all sizes.
    pub line: ReadLine,
    /// Seconds of one random read of one block (median).
    pub block_read_seconds: f64,
}

/// Cost of the reads of a merge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeReads {
    /// Line through the costs of reads one at a time.
    pub line: ReadLine,
    /// Reads of single blocks that a merge has in flight.
    pub depth: usize,
    /// Seconds that each of these reads takes on average.
    pub block_seconds: f64,
}
