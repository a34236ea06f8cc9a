//! Memory that was declared, and memory that was used.

use super::Evidence;
use crate::record::{Memory, MemoryArea};
use plumb_units::Bytes;

/// What the program itself may take beside the budget: its code, the recorder's
/// profiles (a quarter of a megabyte a session), rings, stacks and the allocator's slack.
const OVERHEAD_BYTES: u64 = 64 * Bytes::M;

pub(super) fn memory(seen: &Evidence) -> Memory {
    let area = |(name, bytes): &(String, Bytes)| MemoryArea { name: name.clone(), bytes: bytes.0 };
    let mut areas: Vec<MemoryArea> = seen.measured.outcome.sort.memory.iter().map(area).collect();
    if seen.inside.in_memory() {
        let files = seen.inside.tablespaces.iter().map(|tablespace| tablespace.size).sum::<Bytes>();
        areas.push(MemoryArea { name: "Files (io_method=null)".to_string(), bytes: files.0 });
    }
    // A peak that covers the load as well says nothing about the build.
    let peak = seen.measured.memory.filter(|_| seen.measured.peak_is_of_work);
    Memory { areas, overhead_bytes: Some(OVERHEAD_BYTES), peak_rss_bytes: peak.map(|memory| memory.peak.0) }
}
