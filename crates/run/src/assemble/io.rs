//! I/O by file and by device, buffer caches, and the kernel's count of the process's bytes.

use super::Evidence;
use super::receipts;
use crate::evidence::{FileEvidence, FileMoves, FileRole, TablespaceFacts, Transfers};
use plumb_engine::cache::{CachedBlocks, PoolCounts};
use plumb_host::readings::{DiskStats, RequestCounts};
use plumb_io::MethodKind;
use plumb_record::{Completion, IoDevice, IoFile, IoTally, KernelIo, PoolBlocks, PoolStats, TablespaceShape};
use plumb_units::{BlockSize, path_text};
use std::collections::BTreeMap;

pub(super) fn files(seen: &Evidence) -> Vec<IoFile> {
    seen.measured.files.iter().map(|file| file_row(seen, file, &file.moves)).collect()
}

/// Returns the row of a file with these requests: those of the work, or of one interval.
pub(super) fn file_row(seen: &Evidence, file: &FileEvidence, moves: &FileMoves) -> IoFile {
    let block = match file.role {
        FileRole::Data(purpose) => Some(seen.inside.tablespace(purpose).block_size),
        _ => None,
    };
    let [reads, writes] = moves.totals().map(tally);
    IoFile {
        tablespace: file.role.name().to_string(),
        path: path_text(&file.path),
        reads,
        writes,
        block_bytes: block.map(bytes_of),
        sizes: moves.sizes(),
        buffer_waits: block.map(|_| moves.waits),
    }
}

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
    let pool = |pool: &crate::evidence::PoolSeen| PoolStats {
        census: pool.census.iter().map(cached).collect(),
        ..pool_row(pool.block_size, pool.frames, &pool.counts)
    };
    let used = |pool: &PoolStats| pool.gets + pool.reads + pool.writes > 0 || !pool.census.is_empty();
    seen.measured.pools.iter().map(pool).filter(used).collect()
}

pub(super) fn pool_row(block_size: BlockSize, buffers: u64, counts: &PoolCounts) -> PoolStats {
    PoolStats {
        block_bytes: bytes_of(block_size),
        buffers,
        gets: counts.gets,
        hits: counts.hits,
        reads: counts.reads,
        writes: counts.writes,
        free_buffer_waits: counts.free_buffer_waits,
        write_complete_waits: counts.write_complete_waits,
        buffer_busy_waits: counts.buffer_busy_waits,
        evicted: counts.evicted,
        census: Vec::new(),
    }
}

fn cached(row: &CachedBlocks) -> PoolBlocks {
    PoolBlocks { tablespace: row.purpose.name().to_string(), blocks: row.blocks, dirty: row.dirty }
}

/// Returns the kernel's count of the process's bytes; `None` without /proc and for files in memory.
pub(super) fn kernel(seen: &Evidence, moved: Option<[u64; 2]>) -> Option<KernelIo> {
    let [read_bytes, written_bytes] = moved.filter(|_| !seen.inside.in_memory())?;
    Some(KernelIo { read_bytes, written_bytes, all_direct: receipts::all_direct(seen) })
}

/// Returns the block devices with requests in this period.
pub(super) fn devices(disks: &BTreeMap<String, DiskStats>) -> Vec<IoDevice> {
    let tally = |counts: &RequestCounts| tally((counts.completed, counts.bytes.0, counts.time.0));
    let disks = disks.iter().filter(|(_, disk)| disk.reads.completed + disk.writes.completed > 0);
    disks
        .map(|(name, disk)| IoDevice {
            device: name.clone(),
            reads: tally(&disk.reads),
            writes: tally(&disk.writes),
            busy_ns: Some(disk.io_time.0),
            weighted_ns: Some(disk.weighted_io_time.0),
        })
        .collect()
}

/// A ring keeps a completion until its session reads it, so only rings record late times.
pub(super) fn completion(seen: &Evidence) -> Completion {
    match seen.inside.access.method.kind() {
        MethodKind::IoUring if !seen.inside.in_memory() => Completion::Seen,
        _ => Completion::Exact,
    }
}

pub(super) fn tally((requests, bytes, time_ns): Transfers) -> IoTally {
    IoTally { requests, bytes, time_ns: Some(time_ns) }
}
