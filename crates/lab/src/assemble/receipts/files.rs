//! Blocks, extents, files and the buffer cache.

use super::super::Story;
use super::{Finding, counted};
use crate::measure::Role;
use plumb_engine::Setting;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::Statistic;
use plumb_units::Bytes;

/// What is fixed when a database is made agrees with what is asked, or nobody asked.
fn fixed(story: &Story<'_>, setting: Setting, agrees: bool, evidence: String) -> Option<Finding> {
    match (agrees, story.instance.settings.is_explicit(setting) || story.files_presized) {
        (false, false) => {
            Some(Finding::not_checked(format!("{evidence}; it was fixed when the database was made")))
        }
        (agrees, _) => Some(Finding::that(agrees, evidence)),
    }
}

pub(super) fn block_size(story: &Story<'_>) -> Option<Finding> {
    let asked = story.instance.settings.number(Setting::DbBlockSize);
    let sizes = story.instance.catalog().tablespaces.iter().map(|entry| entry.block_size).collect::<Vec<_>>();
    let shown = sizes.iter().map(|size| Bytes(*size).as_setting()).collect::<Vec<_>>().join(", ");
    let agrees = sizes.iter().all(|size| *size == asked);
    fixed(story, Setting::DbBlockSize, agrees, format!("the control file has tablespaces of {shown} blocks"))
}

pub(super) fn extent_size(story: &Story<'_>) -> Option<Finding> {
    let settings = &story.instance.settings;
    if !settings.is_explicit(Setting::ExtentSize) {
        return None;
    }
    let block = settings.number(Setting::DbBlockSize);
    let asked = settings.number(Setting::ExtentSize).max(8 * block).next_power_of_two();
    let extents = story
        .instance
        .catalog()
        .tablespaces
        .iter()
        .map(|entry| u64::from(entry.extent_blocks) * entry.block_size)
        .collect::<Vec<_>>();
    let shown = extents.iter().map(|size| Bytes(*size).as_setting()).collect::<Vec<_>>().join(", ");
    let agrees = extents.iter().all(|size| *size == asked);
    fixed(story, Setting::ExtentSize, agrees, format!("the control file has extents of {shown}"))
}

/// Extents of the table by data file.
pub(super) fn striping(story: &Story<'_>) -> Option<Finding> {
    let catalog = story.instance.catalog();
    let asked = story.instance.settings.number(Setting::DataFiles);
    let users = catalog.tablespaces.iter().find(|entry| entry.purpose == Purpose::Users)?;
    let table = catalog.table(story.table).ok()?;
    let blocks = |id: u16| {
        let extents = table.extents.iter().filter(|extent| extent.extent.file == id);
        extents.map(|extent| u64::from(extent.used)).sum::<u64>()
    };
    let by_file: Vec<u64> = users.files.iter().map(|file| blocks(file.id)).collect();
    let reads: Vec<u64> = story
        .measured
        .files
        .iter()
        .filter(|file| file.role == Role::Data(Purpose::Users))
        .map(|file| file.reads.1)
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
    // Round robin: no file is more than the servers' unfinished extents ahead of another.
    let least = by_file.iter().min().copied().unwrap_or(0);
    let most = by_file.iter().max().copied().unwrap_or(0);
    let slack = u64::from(users.extent_blocks) * (story.instance.parallel_degree() as u64 + 1);
    let even = !story.files_presized || most - least <= slack;
    fixed(story, Setting::DataFiles, even && by_file.len() as u64 == asked, evidence)
}

/// No file may grow while it is measured.
pub(super) fn growth(story: &Story<'_>) -> Option<Finding> {
    let grown = story.measured.period.statistic(Statistic::FileBytesExtended);
    let evidence = format!("the files grew by {} during the build", Bytes(grown));
    match (grown, story.files_presized) {
        (0, _) => Some(Finding::held(evidence)),
        (_, false) => Some(Finding::not_checked(format!("{evidence}; this database starts small and grows"))),
        (_, true) => {
            Some(Finding::contradicted(format!("{evidence}: part of the time is that of writing zeros")))
        }
    }
}

/// Why a setting of the cache has no effect.
const CACHE_UNUSED: &str = "the cache was not used: this setting had no effect";

/// Whether a session looked for a block in the cache or put one there.
fn cache_was_used(story: &Story<'_>) -> bool {
    let kinds = [Statistic::FreeBufferRequested, Statistic::PhysicalWritesFromCache, Statistic::LogicalReads];
    kinds.iter().any(|kind| story.measured.period.statistic(*kind) > 0)
}

/// What is said of a setting of a cache that was not used, if somebody set it.
fn unused(story: &Story<'_>, setting: Setting) -> Option<Finding> {
    story.instance.settings.is_explicit(setting).then(|| Finding::not_checked(CACHE_UNUSED))
}

/// The buffer cache's frames against its size.
pub(super) fn cache(story: &Story<'_>) -> Option<Finding> {
    if !cache_was_used(story) {
        return unused(story, Setting::DbCacheSize);
    }
    let asked = story.instance.settings.number(Setting::DbCacheSize);
    let block = story.instance.tablespace(Purpose::Users).block_size.bytes() as u64;
    let frames = story.instance.cache().options().frame_count as u64;
    let found = frames * block;
    let count = |kind| story.measured.period.statistic(kind);
    let evidence = format!(
        "the cache has {} of {}, {}; {} requested, {} written by DBWR",
        counted(frames, "buffer"),
        Bytes(block).as_setting(),
        Bytes(found),
        counted(count(Statistic::FreeBufferRequested), "buffer"),
        counted(count(Statistic::PhysicalWritesFromCache), "block")
    );
    Some(Finding::that(found <= asked && found + block > asked, evidence))
}

/// The sessions of database writers.
fn writer_sessions(story: &Story<'_>) -> u64 {
    story.measured.period.sessions.iter().filter(|session| session.name.starts_with("DBW")).count() as u64
}

/// Database writers that lived.
pub(super) fn writers(story: &Story<'_>) -> Option<Finding> {
    let lived = writer_sessions(story);
    if lived == 0 {
        return unused(story, Setting::DbWriterProcesses);
    }
    let asked = story.instance.settings.number(Setting::DbWriterProcesses);
    let batches = story.measured.period.statistic(Statistic::DbwrBatches);
    let evidence = format!("{} of DBWR, {}", counted(lived, "session"), counted(batches, "write batch"));
    Some(Finding::that(lived == asked, evidence))
}

/// Blocks of a batch of the database writers.
pub(super) fn write_batch(story: &Story<'_>) -> Option<Finding> {
    let period = &story.measured.period;
    let batches = period.statistic(Statistic::DbwrBatches);
    if batches == 0 {
        return unused(story, Setting::DbBlockWriteBatch);
    }
    let asked = story.instance.settings.number(Setting::DbBlockWriteBatch);
    let blocks = period.statistic(Statistic::PhysicalWritesFromCache);
    let evidence = format!(
        "{} in {}, {:.1} each on average",
        counted(blocks, "block"),
        counted(batches, "batch"),
        blocks as f64 / batches as f64
    );
    Some(Finding::that(blocks <= asked.saturating_mul(batches), evidence))
}
