//! Whether the memory that settings ask for can be had, before the first of it is taken.
//!
//! The sum is what a build may come to take at most: areas and buffers are mapped as they are
//! needed. More than the machine or the control group has cannot be had, and is refused where a
//! part of it was asked for by name. More than is available now may be had, if others give some
//! back: it is said and tried.

use crate::EngineError;
use crate::settings::{Setting, Settings};
use plumb_host::limits::{self, MemoryBounds};
use plumb_units::{BlockSize, Bytes};

/// Bytes of a buffer of the table queue.
pub const QUEUE_BUFFER_BYTES: usize = 64 * 1024;
/// Buffers that a key range of the table queue has for each of its senders.
pub const QUEUE_BUFFERS_PER_SENDER: usize = 16;

/// The settings that the sum depends on.
const SETTINGS: [Setting; 7] = [
    Setting::SortAreaSize,
    Setting::DbCacheSize,
    Setting::SortWriteBufferSize,
    Setting::SortWriteBuffers,
    Setting::ParallelDegree,
    Setting::ScanReadAhead,
    Setting::DbFileMultiblockReadCount,
];

/// Refuses memory beyond the machine's; gives what is to be said of memory beyond what is
/// available.
///
/// # Errors
/// [`EngineError::Memory`] when a setting was asked for by name and the sum is beyond what there
/// is.
pub fn require(settings: &Settings, block_size: BlockSize) -> Result<Option<String>, EngineError> {
    limits::memory().map_or(Ok(None), |bounds| judge(settings, block_size, &bounds))
}

pub(super) fn judge(
    settings: &Settings,
    block_size: BlockSize,
    bounds: &MemoryBounds,
) -> Result<Option<String>, EngineError> {
    let parts = parts(settings, block_size);
    let sum = Bytes(parts.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(bytes.0)));
    let listed: Vec<String> = parts.iter().map(|(what, bytes)| format!("{what} {bytes}")).collect();
    let MemoryBounds { total, source, available } = *bounds;
    let asked: Vec<String> = SETTINGS
        .iter()
        .filter_map(|setting| {
            let origin = settings.origin(*setting)?;
            Some(format!("{} ({origin})", settings.assigned(*setting)))
        })
        .collect();
    if sum > total && !asked.is_empty() {
        let (parts, asked) = (listed.join(" + "), asked.join(", "));
        return Err(EngineError::Memory { sum, parts, total, source_name: source, asked });
    }
    Ok((sum > available.min(total)).then(|| {
        format!(
            "{sum} may be taken ({}), and {available} of {total} were available at the start",
            listed.join(" + ")
        )
    }))
}

/// What a build may take, by purpose.
fn parts(settings: &Settings, block_size: BlockSize) -> Vec<(String, Bytes)> {
    let degree = settings.degree() as u64;
    let read = (u64::from(settings.io.db_file_multiblock_read_count) * block_size.bytes() as u64)
        .min(settings.storage.extent_size.0);
    let sort = &settings.sort;
    let mut parts = vec![("sort areas", sort.sort_area_size.0)];
    // Otherwise they come out of the area.
    if sort.sort_direct_writes == Some(true) {
        parts.push(("sort write buffers", sort.sort_write_buffers * sort.sort_write_buffer_size.0));
    }
    parts.push(("scan buffers", settings.io.scan_read_ahead as u64 * read));
    let mut parts: Vec<(String, Bytes)> = parts
        .into_iter()
        .map(|(what, bytes)| {
            (format!("{what} {degree} x {} =", Bytes(bytes)), Bytes(bytes.saturating_mul(degree)))
        })
        .collect();
    if degree > 1 {
        parts.push(("table queue".to_string(), Bytes(queue_bytes(degree))));
    }
    parts.push(("buffer cache".to_string(), settings.cache.db_cache_size));
    parts
}

/// Bytes of the table queue between two sets of so many servers, at most.
pub(crate) const fn queue_bytes(degree: u64) -> u64 {
    degree * degree * (QUEUE_BUFFERS_PER_SENDER * QUEUE_BUFFER_BYTES) as u64
}
