//! What a read costs on the device under a tablespace.
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use plumb_events::Session;

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

/// Measures it with reads of the tablespace's own files.
///
/// # Errors
/// When a read fails.
pub fn measure(_instance: &Instance, _session: &Session, _purpose: Purpose) -> Result<ReadCost, EngineError> {
    unimplemented!()
}

impl ReadCost {
    /// placeholder
    #[must_use]
    pub fn read_fac(&self, _b: plumb_units::BlockSize) -> u64 { 1 }
}
