//! Tablespaces, buffer caches, and the kernel's count of the process's bytes.

use super::{Evidence, receipts};
use crate::evidence::TablespaceFacts;
use plumb_io::MethodKind;
use plumb_record::{Completion, KernelIo, PoolStats, TablespaceShape};
use plumb_units::BlockSize;

fn bytes_of(block: BlockSize) -> u64 {
    block.bytes() as u64
}

pub(super) fn tablespaces(seen: &Evidence) -> Vec<TablespaceShape> {
    let shape = |of: &TablespaceFacts| TablespaceShape {
        tablespace: of.purpose.name().to_string(),
        block_bytes: bytes_of(of.block_size),
        extent_bytes: u64::from(of.extent_blocks.0) * bytes_of(of.block_size),
        files: of.files.len() as u64,
        bytes: of.size.0,
    };
    seen.inside.tablespaces.iter().map(shape).collect()
}

/// Returns the buffer caches that were used, with their blocks at the end of the work.
pub(super) fn pools(seen: &Evidence) -> Vec<PoolStats> {
    let used = |pool: &&PoolStats| {
        pool.counts.gets + pool.counts.reads + pool.counts.writes > 0 || !pool.census.is_empty()
    };
    seen.measured.pools.iter().filter(used).cloned().collect()
}

/// Returns the kernel's count of the process's bytes; `None` without /proc and for files in memory.
pub(super) fn kernel(seen: &Evidence, moved: Option<KernelIo>) -> Option<KernelIo> {
    let moved = moved.filter(|_| !seen.inside.in_memory())?;
    Some(KernelIo { all_direct: receipts::all_direct(seen), ..moved })
}

/// A ring keeps a completion until its session reads it, so only rings record late times.
pub(super) fn completion(seen: &Evidence) -> Completion {
    match seen.inside.access.method.kind() {
        MethodKind::IoUring if !seen.inside.in_memory() => Completion::Seen,
        _ => Completion::Exact,
    }
}
