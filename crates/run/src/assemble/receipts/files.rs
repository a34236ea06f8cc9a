//! Receipts of blocks, extents, files and the buffer cache.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::FileRole;
use plumb_engine::Setting;
use plumb_engine::storage::control::SegmentExtent;
use plumb_engine::storage::header::FileShape;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Role, Statistic};
use plumb_units::{BlockSize, Bytes};

/// Headers of data files with the database's own block size; other tablespaces have their own.
fn first_headers(seen: &Evidence) -> impl Iterator<Item = &FileShape> {
    let first = |path| {
        let tablespaces = seen.inside.tablespaces.iter().filter(|found| found.purpose.own_size().is_none());
        tablespaces.flat_map(|found| &found.files).any(|file| file == path)
    };
    seen.headers.iter().filter(move |header| first(&header.path))
}

/// Returns the distinct sizes in these headers on disk, and their text.
fn in_headers(seen: &Evidence, size: fn(&FileShape) -> u64) -> (Vec<u64>, String) {
    let mut sizes: Vec<u64> = first_headers(seen).map(size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let shown = sizes.iter().map(|size| Bytes(*size).as_setting()).collect::<Vec<_>>().join(", ");
    (sizes, shown)
}

pub(super) fn block_size(seen: &Evidence) -> Option<Ruling> {
    let asked = seen.inside.settings.number(Setting::DbBlockSize);
    let (sizes, shown) = in_headers(seen, |header| header.block_bytes);
    let files = counted(first_headers(seen).count() as u64, "data file");
    let evidence = format!("read back from disk: {files} of {shown} blocks");
    Some(Ruling::that(sizes == [asked], evidence).counted(sizes.iter().sum()))
}

pub(super) fn extent_size(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    if !settings.is_explicit(Setting::ExtentSize) {
        return None;
    }
    let block = settings.number(Setting::DbBlockSize);
    let asked = settings.number(Setting::ExtentSize).max(8 * block).next_power_of_two();
    let (sizes, shown) = in_headers(seen, |header| header.extent_bytes);
    let files = counted(first_headers(seen).count() as u64, "data file");
    let evidence = format!("read back from disk: {files} of {shown} extents");
    Some(Ruling::that(sizes == [asked], evidence).counted(sizes.iter().sum()))
}

/// Compares the extents of the table by data file.
pub(super) fn striping(seen: &Evidence) -> Option<Ruling> {
    let catalog = &seen.inside.catalog;
    let asked = seen.inside.settings.number(Setting::DataFiles);
    let users = catalog.tablespaces.iter().find(|entry| entry.purpose == Purpose::Users)?;
    let live = || catalog.live_tables.iter().flat_map(|table| &table.extents);
    let extents: Vec<&SegmentExtent> = match (catalog.table(&seen.asked.data), &seen.measured.outcome.slob) {
        (Ok(table), _) => table.extents.iter().collect(),
        (Err(_), Some(_)) => live().collect(),
        (Err(_), None) => return None,
    };
    let blocks = |id: u16| {
        let extents = extents.iter().filter(|extent| extent.extent.file == id);
        extents.map(|extent| u64::from(extent.used)).sum::<u64>()
    };
    let by_file: Vec<u64> = users.files.iter().map(|file| blocks(file.id)).collect();
    let reads: Vec<u64> = seen
        .measured
        .files
        .iter()
        .filter(|file| file.role == FileRole::Data(Purpose::Users))
        .map(|file| file.io.reads.bytes)
        .collect();
    let shown =
        |values: &[u64]| values.iter().map(|bytes| Bytes(*bytes).to_string()).collect::<Vec<_>>().join(", ");
    let table_bytes: Vec<u64> = by_file.iter().map(|blocks| blocks * users.block_size).collect();
    let evidence = format!(
        "{} data files hold {} of the table; {} were read from them",
        by_file.len(),
        shown(&table_bytes),
        shown(&reads)
    );
    // Round robin: files differ by at most the servers' unfinished extents.
    let least = by_file.iter().min().copied().unwrap_or(0);
    let most = by_file.iter().max().copied().unwrap_or(0);
    let slack = u64::from(users.extent_blocks) * (seen.inside.degree as u64 + 1);
    let even = !seen.asked.files_presized || most - least <= slack;
    Some(Ruling::that(even && by_file.len() as u64 == asked, evidence))
}

/// Requires that no file grows during the measurement.
pub(super) fn growth(seen: &Evidence) -> Option<Ruling> {
    let grown = seen.measured.period.statistic(Statistic::FileBytesExtended);
    let evidence = format!("the files grew by {} during the build", Bytes(grown));
    match (grown, seen.asked.files_presized) {
        (0, _) => Some(Ruling::held(evidence)),
        (_, false) => Some(Ruling::unknown(format!("{evidence}; this database starts small and grows"))),
        (_, true) => {
            Some(Ruling::contradicted(format!("{evidence}: part of the time is that of writing zeros")))
        }
    }
}

/// Reason why a setting of the cache has no effect.
const CACHE_UNUSED: &str = "the cache was not used: this setting had no effect";

/// True if a session used the cache for a block.
fn cache_was_used(seen: &Evidence) -> bool {
    let kinds = [Statistic::FreeBufferRequested, Statistic::PhysicalWritesFromCache, Statistic::LogicalReads];
    kinds.iter().any(|kind| seen.measured.period.statistic(*kind) > 0)
}

/// Answer for a setting of an unused cache; `None` unless it was set.
fn unused(seen: &Evidence, setting: Setting) -> Option<Ruling> {
    seen.inside.settings.is_explicit(setting).then(|| Ruling::unknown(CACHE_UNUSED))
}

/// Compares the memory mapped for the buffer cache with its size.
pub(super) fn cache(seen: &Evidence) -> Option<Ruling> {
    if !cache_was_used(seen) {
        return unused(seen, Setting::DbCacheSize);
    }
    let asked = seen.inside.settings.number(Setting::DbCacheSize);
    let block = seen.inside.tablespace(Purpose::Users).block_size.bytes() as u64;
    let frames = seen.inside.cache().frames;
    let Some(Bytes(mapped)) = seen.inside.cache().mapped else {
        return Some(Ruling::unknown("/proc/self/maps does not tell what is mapped for the cache"));
    };
    let count = |kind| seen.measured.period.statistic(kind);
    let evidence = format!(
        "/proc/self/maps: {} are mapped for the {} of {}; {} requested, {} written by DBWR",
        Bytes(mapped),
        counted(frames, "buffer"),
        Bytes(block).as_setting(),
        counted(count(Statistic::FreeBufferRequested), "buffer"),
        counted(count(Statistic::PhysicalWritesFromCache), "block")
    );
    // Whole blocks, one for each buffer.
    let agrees = mapped <= asked && mapped + block > asked && mapped == frames * block;
    Some(Ruling::that(agrees, evidence).counted(mapped))
}

/// Judges the cache of another block size; `PLACE` is the size's index.
pub(super) fn sized_cache<const PLACE: usize>(seen: &Evidence) -> Option<Ruling> {
    let block_size = BlockSize::ALL[PLACE];
    let setting = Setting::cache_of(block_size);
    let asked = seen.inside.settings.number(setting);
    let cache = seen.inside.caches[1..].iter().find(|cache| cache.block_size == block_size);
    let Some(cache) = cache else {
        let is_asked = seen.inside.settings.is_explicit(setting);
        return is_asked.then(|| Ruling::that(asked == 0, "there is no such cache".to_string()));
    };
    let Some(Bytes(mapped)) = cache.mapped else {
        return Some(Ruling::unknown(format!("no block of {block_size} was asked of it: {CACHE_UNUSED}")));
    };
    let pool = seen.measured.pools.iter().find(|pool| pool.block_bytes == block_size.bytes() as u64);
    let cached = pool.map_or(0, |pool| pool.census.iter().map(|row| row.blocks).sum());
    let evidence = format!(
        "/proc/self/maps: {} are mapped for the {} of {block_size}; {} in it when the work ended, before the \
         verification; the others' block size is {}",
        Bytes(mapped),
        counted(cache.frames, "buffer"),
        counted(cached, "block"),
        seen.inside.cache().block_size
    );
    let block = block_size.bytes() as u64;
    let agrees = mapped == cache.frames * block && mapped <= asked.max(block);
    Some(Ruling::that(agrees, evidence).counted(mapped))
}

/// Counts the started database writers.
pub(super) fn writers(seen: &Evidence) -> Option<Ruling> {
    let sessions = seen.measured.period.sessions.iter();
    let lived = sessions.filter(|session| session.role == Role::DatabaseWriter).count() as u64;
    if lived == 0 {
        return unused(seen, Setting::DbWriterProcesses);
    }
    // Each written cache has this number.
    let asked = seen.inside.settings.number(Setting::DbWriterProcesses);
    let caches = seen.inside.caches.len() as u64;
    let batches = seen.measured.period.statistic(Statistic::DbwrBatches);
    let evidence = format!("{} of DBWR, {}", counted(lived, "session"), counted(batches, "write batch"));
    let all = lived.is_multiple_of(asked) && lived <= asked * caches;
    Some(Ruling::that(all, evidence).counted(lived))
}

/// Judges the mean number of blocks in a batch of the database writers.
pub(super) fn write_batch(seen: &Evidence) -> Option<Ruling> {
    let period = &seen.measured.period;
    let batches = period.statistic(Statistic::DbwrBatches);
    if batches == 0 {
        return unused(seen, Setting::DbBlockWriteBatch);
    }
    let asked = seen.inside.settings.number(Setting::DbBlockWriteBatch);
    let blocks = period.statistic(Statistic::PhysicalWritesFromCache);
    let evidence = format!(
        "{} in {}, {:.1} each on average",
        counted(blocks, "block"),
        counted(batches, "batch"),
        blocks as f64 / batches as f64
    );
    Some(Ruling::that(blocks <= asked.saturating_mul(batches), evidence))
}
