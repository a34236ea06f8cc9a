//! Work of a buffer cache.

use plumb_units::counters;
use serde::{Deserialize, Serialize};

/// Work of a buffer cache since it was made, counted under its mutex.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolCounts {
    /// Number of blocks looked up and given out, found or read.
    pub gets: u64,
    /// Number of these that were in the cache.
    pub hits: u64,
    /// Number of blocks read into the cache, ahead of need too.
    pub reads: u64,
    /// Number of blocks written from the cache.
    pub writes: u64,
    /// Number of waits for a free buffer.
    pub free_buffer_waits: u64,
    /// Number of waits for a block that a database writer has taken.
    pub write_complete_waits: u64,
    /// Number of waits for a block that another session holds.
    pub buffer_busy_waits: u64,
    /// Number of blocks that lost their frame to another block while sessions may have needed
    /// them: those of sort runs, and those that only a scan had asked for, do not count. 0 in
    /// older records.
    #[serde(default)]
    pub evicted: u64,
}

counters!(PoolCounts {
    gets,
    hits,
    reads,
    writes,
    free_buffer_waits,
    write_complete_waits,
    buffer_busy_waits,
    evicted,
});
