//! Direct path load.
use crate::{EngineError, Instance};
use plumb_types::RowSource;

/// What a load did.
#[derive(Debug, Clone, Copy)]
pub struct LoadOutcome {
    /// Rows loaded.
    pub row_count: u64,
    /// Blocks they fill.
    pub block_count: u64,
    /// Bytes of the rows themselves.
    pub row_bytes: u64,
}

/// Loads all rows of `source` into a new table.
///
/// # Errors
/// When the table exists, the source fails, a row does not fit a block, or a
/// write fails; nothing of the load then remains.
pub fn load(_instance: &Instance, _table: &str, _source: &dyn RowSource) -> Result<LoadOutcome, EngineError> {
    unimplemented!()
}
