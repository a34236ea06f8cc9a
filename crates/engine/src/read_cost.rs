//! What reads of a device cost, as merges are planned by it; [`crate::probe`] measures it.

use plumb_units::BlockSize;

/// The cost of reads: t(bytes) = start + bytes / rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadCost {
    /// Seconds before the first byte: seek, latency, system call.
    pub start_seconds: f64,
    /// Bytes a second once it runs, one request at a time.
    pub bytes_per_second: f64,
    /// Seconds of one random read of one block at depth 1 (median).
    pub block_read_seconds: f64,
}

/// What the plan of a merge goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MergeReads {
    /// The cost of reads one at a time.
    pub cost: ReadCost,
    /// Reads of single blocks that a merge has in flight.
    pub depth: usize,
    /// Seconds that one of them then takes.
    pub block_seconds: f64,
}

impl ReadCost {
    /// SORT_READ_FAC: the cost of reading one block over the cost of each further
    /// block of the same request, (seek + latency + transfer) / transfer, that is
    ///
    /// ```text
    /// (seek + latency) / transfer + 1
    /// ```
    ///
    /// rounded, and at least 1. Transfer is the time of one block at the rate.
    #[must_use]
    pub fn read_fac(&self, block_size: BlockSize) -> u64 {
        let transfer = block_size.bytes() as f64 / self.bytes_per_second;
        let ratio = self.read_fac_of(block_size, self.start_seconds + transfer);
        ratio.round() as u64
    }

    /// The same ratio for one-block reads that take so many seconds each, as
    /// several in flight do; at least 1.
    #[must_use]
    pub fn read_fac_of(&self, block_size: BlockSize, block_seconds: f64) -> f64 {
        let transfer = block_size.bytes() as f64 / self.bytes_per_second;
        let ratio = block_seconds / transfer;
        if ratio.is_finite() { ratio.max(1.0) } else { 1.0 }
    }
}
