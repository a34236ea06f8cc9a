//! What a sort did, for reports.

use crate::sort::SortOutcome;
use crate::sort::plan::SortPlan;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// How one sort server worked. Its names in a record of a run are those of the attributes; what is skipped is not kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SortServerSummary {
    /// Its session's name.
    pub name: String,
    /// Memory it was given for runs and merges.
    #[serde(rename = "area_bytes", with = "bytes")]
    pub area: Bytes,
    /// Memory that was really mapped for its sort area.
    #[serde(skip)]
    pub area_mapped: Bytes,
    /// How long the system took to supply that memory, as far as was seen.
    #[serde(skip)]
    pub area_mapping: Nanos,
    /// Memory of a strip of it, and how much of that is records: what a run takes.
    #[serde(skip)]
    pub strip: (Bytes, Bytes),
    /// Rows that never left memory.
    #[serde(skip)]
    pub memory_rows: u64,
    /// Rows it sorted.
    #[serde(rename = "rows")]
    pub row_count: u64,
    /// Runs it made from its input; 0 when all fitted in memory.
    #[serde(rename = "runs")]
    pub run_count: u64,
    /// Bytes of runs it wrote, intermediate merges included.
    pub run_bytes: u64,
    /// Merges of some runs into a longer one before the last merge.
    #[serde(skip)]
    pub intermediate_merges: u64,
    /// Times that a row was read back, at most.
    pub merge_passes: u64,
    /// The largest fan-in: most runs that one merge took.
    pub merge_width: u64,
    /// True when all rows fitted in memory, so that no run was written.
    #[serde(skip)]
    pub optimal: bool,
}

impl SortServerSummary {
    /// What a server did whose records went through a [`Sorter`](crate::sort::Sorter).
    pub(crate) fn of_sorter(
        name: String,
        area: Bytes,
        plan: &SortPlan,
        outcome: &SortOutcome,
    ) -> SortServerSummary {
        SortServerSummary {
            name,
            area,
            area_mapped: Bytes(outcome.area.bytes as u64),
            area_mapping: outcome.area.time,
            strip: plan.strip(),
            memory_rows: outcome.memory_rows,
            row_count: outcome.row_count,
            run_count: outcome.run_count,
            run_bytes: outcome.run_bytes,
            intermediate_merges: outcome.intermediate_merges,
            merge_passes: outcome.merge_passes,
            merge_width: outcome.merge_width,
            optimal: outcome.run_count == 0,
        }
    }
}

/// How the work of a sort is divided among its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Divided {
    /// Each sorts a range of keys, which a queue brings it.
    ByKey,
    /// Each sorts what it reads, and the merge of all runs is divided.
    InMerge,
}

/// Bytes as a number.
mod bytes {
    use plumb_units::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(bytes.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        u64::deserialize(deserializer).map(Bytes)
    }
}

/// What the servers of a sort did, and with which memory.
#[derive(Debug, Clone)]
pub struct SortSummary {
    /// How the servers share the work.
    pub divided: Divided,
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
        divided: Divided,
    ) -> SortSummary {
        let (sort_read_fac, sort_read_fac_source) = plan.read_fac_used();
        SortSummary {
            divided,
            servers,
            sort_read_fac,
            sort_read_fac_source,
            direct_writes: plan.direct_writes,
            direct_writes_reason: plan.direct_writes_reason.clone(),
            memory,
        }
    }
}
