//! Work of one server of a sort: filled by the engine, kept in the record of a run.

use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Work of one sort server. The attributes name the fields in the record of a run, which
/// leaves out the skipped ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SortServerSummary {
    /// Name of the server's session.
    pub name: String,
    /// Memory granted for runs and merges, in bytes.
    #[serde(rename = "area_bytes", with = "bytes")]
    pub area: Bytes,
    /// Memory that was mapped for its sort area, in bytes.
    #[serde(skip)]
    pub area_mapped: Bytes,
    /// Time that the system took to supply that memory, as far as it was measured.
    #[serde(skip)]
    pub area_mapping: Nanos,
    /// Memory of one strip of the area, and its part for records, which is the size of a run.
    #[serde(skip)]
    pub strip: (Bytes, Bytes),
    /// Rows that stayed in memory.
    #[serde(skip)]
    pub memory_rows: u64,
    /// Rows that the server sorted.
    #[serde(rename = "rows")]
    pub row_count: u64,
    /// Runs made from its input; 0 when all rows fitted in memory.
    #[serde(rename = "runs")]
    pub run_count: u64,
    /// Bytes of runs that it wrote, intermediate merges included.
    pub run_bytes: u64,
    /// Merges of some runs into a longer one before the last merge.
    #[serde(skip)]
    pub intermediate_merges: u64,
    /// Most times that any row was read back.
    pub merge_passes: u64,
    /// The largest fan-in: most runs in one merge.
    pub merge_width: u64,
    /// True when all rows fitted in memory, so that no run was written.
    #[serde(skip)]
    pub optimal: bool,
}

/// Serialises `Bytes` as a number.
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
