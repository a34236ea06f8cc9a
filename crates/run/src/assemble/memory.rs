//! Declared memory and used memory.

use super::Evidence;
use crate::evidence::{FileRole, ImportDone, SESSION_BYTES, UPDATER_BYTES};
use plumb_engine::sort::plan::SHARED_MEMORY;
use plumb_engine::{Setting, Settings};
use plumb_record::{Memory, MemoryArea};
use plumb_units::Bytes;
use plumb_workload::slob::SlobSpec;

/// Memory of the program besides the budget: its code, rings, stacks and the allocator's slack.
/// With 32 sessions 69 MB were seen.
const OVERHEAD_BYTES: u64 = 80 * Bytes::M;

/// A batch of the source, and a row's overhead in an array.
const SOURCE_BATCH_BYTES: u64 = Bytes::M;

/// Buffers of a load server: four of half a megabyte, and as much for its source.
const LOAD_BYTES: u64 = 4 * Bytes::M;

/// Log buffer and a write from it, which takes at most half of it.
fn log_buffer(settings: &Settings) -> (&'static str, u64) {
    let log = settings.number(Setting::LogBuffer);
    ("Log buffer, and a write of it", log + log / 2)
}

/// Cache, log buffer with a write from it, and per session a batch of the source and its arrays. An
/// array may have grown by half of itself.
fn of_import(seen: &Evidence, import: &ImportDone) -> [MemoryArea; 3] {
    let settings = &seen.inside.settings;
    let arrays = (3 * import.array_bytes + SOURCE_BATCH_BYTES).saturating_mul(import.sessions);
    [
        ("Buffer cache", settings.number(Setting::DbCacheSize)),
        log_buffer(settings),
        ("Arrays of the sessions", arrays),
    ]
    .map(|(name, bytes)| MemoryArea { name: name.to_string(), bytes })
}

/// Caches, log buffer with a write from it, and buffers of the load and of its source.
fn of_ctas(seen: &Evidence) -> [MemoryArea; 3] {
    let settings = &seen.inside.settings;
    let caches = seen.inside.caches.iter().map(|cache| cache.frames * cache.block_size.bytes() as u64);
    [
        ("Buffer caches", caches.sum()),
        log_buffer(settings),
        ("Buffers of the load", LOAD_BYTES.saturating_mul(seen.inside.degree as u64)),
    ]
    .map(|(name, bytes)| MemoryArea { name: name.to_string(), bytes })
}

/// Buffers of the servers of scans. Each has the requests in flight, and the one that it reads.
fn of_scans(seen: &Evidence, streams: u64, block_bytes: u64) -> MemoryArea {
    let settings = &seen.inside.settings;
    let request = settings.number(Setting::DbFileMultiblockReadCount).saturating_mul(block_bytes);
    let server = request.saturating_mul(1 + settings.number(Setting::ScanReadAhead));
    let servers = (seen.inside.degree as u64).saturating_mul(streams);
    MemoryArea { name: "Buffers of the scans".to_string(), bytes: server.saturating_mul(servers) }
}

/// Cache, log buffer with a write from it, and sessions, each with its blocks in flight.
fn of_slob(seen: &Evidence, spec: &SlobSpec) -> [MemoryArea; 3] {
    let settings = &seen.inside.settings;
    let blocks = 1
        + settings.number(Setting::DbBlockPrefetchLimit)
        + if spec.scan_pct > 0 { settings.number(Setting::DbFileMultiblockReadCount) } else { 0 };
    let updater = if spec.update_pct > 0 { UPDATER_BYTES } else { 0 };
    let session = SESSION_BYTES + updater + blocks * spec.block_bytes;
    [
        ("Buffer cache", settings.number(Setting::DbCacheSize)),
        log_buffer(settings),
        ("Sessions", session.saturating_mul(spec.sessions)),
    ]
    .map(|(name, bytes)| MemoryArea { name: name.to_string(), bytes })
}

pub(super) fn memory(seen: &Evidence) -> Memory {
    let area = |(name, bytes): &(String, Bytes)| MemoryArea { name: name.clone(), bytes: bytes.0 };
    let outcome = &seen.measured.outcome;
    let sort = outcome.sort.iter().flat_map(|sort| &sort.memory);
    let mut areas: Vec<MemoryArea> = sort.map(area).collect();
    if let Some(import) = &outcome.import {
        areas.extend(of_import(seen, import));
    }
    if outcome.ctas.is_some() || outcome.copy.is_some() {
        areas.extend(of_ctas(seen));
    }
    if let Some(copy) = &outcome.copy {
        areas.push(of_scans(seen, 1, copy.block_bytes));
    }
    if let Some(scan) = &outcome.scan {
        let cache = seen.inside.settings.number(Setting::DbCacheSize);
        areas.push(MemoryArea { name: "Buffer cache".to_string(), bytes: cache });
        areas.push(of_scans(seen, scan.streams.len() as u64, scan.block_bytes));
    }
    if let Some(trace) = &seen.measured.trace {
        areas.push(MemoryArea { name: "Trace".to_string(), bytes: trace.memory().0 });
    }
    if let Some(slob) = &outcome.slob {
        areas.extend(of_slob(seen, &slob.spec));
    }
    if let Some(users) = &outcome.users {
        // The build may have declared the cache already.
        let declared = areas.iter().any(|area| area.name == SHARED_MEMORY);
        areas.extend(of_slob(seen, &users.spec.reads).into_iter().skip(usize::from(declared)));
    }
    if let Some(log) = outcome.log.as_ref().filter(|log| log.read_back.0 > 0) {
        areas.push(MemoryArea { name: "Log records read back".to_string(), bytes: log.read_back.0 });
    }
    if seen.inside.in_memory() {
        let log = seen.measured.files.iter().filter(|file| file.role == FileRole::Log);
        let log = log.filter_map(|file| file.length).sum::<Bytes>();
        let files = seen.inside.tablespaces.iter().map(|tablespace| tablespace.size).sum::<Bytes>() + log;
        areas.push(MemoryArea { name: "Files (io_method=null)".to_string(), bytes: files.0 });
    }
    // A peak that includes the load says nothing about the build.
    let peak = seen.measured.memory.filter(|_| seen.measured.peak_is_of_work);
    Memory { areas, overhead_bytes: Some(OVERHEAD_BYTES), peak_rss_bytes: peak.map(|memory| memory.peak.0) }
}
