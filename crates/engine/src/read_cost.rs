//! The cost of reads of a device, as merges are planned by it; [`crate::probe`] measures it.

use plumb_units::ReadLine;

/// Reads of a device, measured one at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SingleReads {
    /// The cost of reads of any size.
    pub line: ReadLine,
    /// Seconds of one random read of one block (median).
    pub block_read_seconds: f64,
}

/// Reads of a merge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeReads {
    /// The cost of reads one at a time.
    pub line: ReadLine,
    /// Reads of single blocks that a merge has in flight.
    pub depth: usize,
    /// Seconds that one of them then takes.
    pub block_seconds: f64,
}
