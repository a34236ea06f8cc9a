//! What one server of a sort did: filled by the engine, kept in the record of a run.

use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Work of one sort server. The attributes give its names in the record of a run, which keeps
/// nothing that is skipped.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SortServerSummary {
    /// Name of the session.
    pub name: String,
    /// Memory it was given for runs and merges.
    #[serde(rename = "area_bytes", with = "bytes")]
    pub area: Bytes,
    /// Memory that was really mapped for its sort area.
    #[serde(skip)]
    pub area_mapped: Bytes,
    /// Time that the system took to supply that memory, as far as was seen.
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
