//! Builds an index.
use crate::storage::control::Index;
use crate::{EngineError, Instance};
use plumb_units::Bytes;

/// Which index to build.
#[derive(Debug, Clone)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// The table.
    pub table: String,
    /// Column names, each with whether it is descending.
    pub columns: Vec<(String, bool)>,
}

/// How one sort server worked.
#[derive(Debug, Clone)]
pub struct SortServerOutcome {
    /// Its session's name.
    pub name: String,
    /// Memory it was given for runs and merges.
    pub area: Bytes,
    /// Rows it sorted.
    pub row_count: u64,
    /// Runs it made from its input; 0 when all fitted in memory.
    pub run_count: u64,
    /// Bytes of runs it wrote, intermediate merges included.
    pub run_bytes: u64,
    /// Merges of some runs into a longer one before the last merge.
    pub intermediate_merges: u64,
    /// Times that a row was read back, at most.
    pub merge_passes: u64,
    /// Runs merged at once by the widest merge.
    pub merge_width: u64,
    /// Whether all fitted in memory.
    pub optimal: bool,
}

/// What a build did.
#[derive(Debug, Clone)]
pub struct BuildOutcome {
    /// The index as entered in the catalog.
    pub index: Index,
    /// One entry a sort server.
    pub servers: Vec<SortServerOutcome>,
    /// The read cost ratio used to plan merges.
    pub sort_read_fac: u64,
    /// Where it came from: measured, with the figures, or given.
    pub sort_read_fac_source: String,
    /// Whether the sort wrote its runs itself.
    pub direct_writes: bool,
    /// Why.
    pub direct_writes_reason: String,
    /// Memory planned before the first row, by purpose.
    pub memory: Vec<(String, Bytes)>,
}

/// Builds an index by a parallel disk sort.
///
/// # Errors
/// When the table or a column is missing, the index exists, a key is too long,
/// a block is corrupt or I/O fails; nothing of the build then remains.
pub fn create_index(_instance: &Instance, _spec: &IndexSpec) -> Result<BuildOutcome, EngineError> {
    unimplemented!()
}
