//! What a sort did, for reports.

use crate::sort::plan::SortPlan;
use plumb_units::{Bytes, Nanos};

/// How one sort server worked.
#[derive(Debug, Clone)]
pub struct SortServerSummary {
    /// Its session's name.
    pub name: String,
    /// Memory it was given for runs and merges.
    pub area: Bytes,
    /// Memory that was really mapped for its sort area.
    pub area_mapped: Bytes,
    /// How long the system took to supply that memory, as far as was seen.
    pub area_mapping: Nanos,
    /// Memory of a strip of it, and how much of that is records: what a run takes.
    pub strip: (Bytes, Bytes),
    /// Rows that never left memory.
    pub memory_rows: u64,
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
    /// The largest fan-in: most runs that one merge took.
    pub merge_width: u64,
    /// True when all rows fitted in memory, so that no run was written.
    pub optimal: bool,
}

/// What the servers of a sort did, and with which memory.
#[derive(Debug, Clone)]
pub struct SortSummary {
    /// One entry a sort server.
    pub servers: Vec<SortServerSummary>,
    /// The read cost ratio used to plan merges.
    pub sort_read_fac: u64,
    /// Where it came from: measured, with the figures, or given.
    pub sort_read_fac_source: String,
    /// Whether servers wrote their runs themselves, past the buffer cache.
    pub direct_writes: bool,
    /// Which rule decided it, as the report says.
    pub direct_writes_reason: String,
    /// Memory planned before the first row, by purpose.
    pub memory: Vec<(String, Bytes)>,
}

impl SortSummary {
    pub(crate) fn new(
        plan: &SortPlan,
        servers: Vec<SortServerSummary>,
        memory: Vec<(String, Bytes)>,
    ) -> SortSummary {
        let (sort_read_fac, sort_read_fac_source) = plan.read_fac_used();
        SortSummary {
            servers,
            sort_read_fac,
            sort_read_fac_source,
            direct_writes: plan.direct_writes,
            direct_writes_reason: plan.direct_writes_reason.clone(),
            memory,
        }
    }
}
