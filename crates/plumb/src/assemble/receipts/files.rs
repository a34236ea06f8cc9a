//! Blocks, extents, files and the buffer cache.

use super::super::Story;
use super::Finding;
use plumb_engine::Setting;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{SessionKind, Statistic};
use plumb_units::{Bytes, RowCount};

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
        .filter(|file| file.purpose == Purpose::Users)
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

/// The buffer cache, where runs go through it.
pub(super) fn cache(story: &Story<'_>) -> Option<Finding> {
    let period = &story.measured.period;
    let [asked_for, written, reads] =
        [Statistic::FreeBufferRequested, Statistic::PhysicalWritesFromCache, Statistic::LogicalReads]
            .map(|kind| period.statistic(kind));
    if asked_for + written + reads == 0 {
        let explicit = story.instance.settings.is_explicit(Setting::DbCacheSize);
        return explicit.then(|| {
            Finding::not_checked("no block went through the buffer cache: this setting had no effect")
        });
    }
    let asked = story.instance.settings.number(Setting::DbCacheSize);
    let declared =
        story.measured.outcome.memory.iter().find(|(name, _)| name.to_lowercase().contains("cache"));
    let evidence =
        format!("{} buffers requested, {} blocks written by DBWR", RowCount(asked_for), RowCount(written));
    Some(match declared {
        Some((name, bytes)) => {
            // Headers of the buffers may be on top.
            Finding::that(bytes.0.abs_diff(asked) <= asked / 4, format!("{name} has {bytes}; {evidence}"))
        }
        None => Finding::not_checked(evidence),
    })
}

/// Database writers that lived.
pub(super) fn writers(story: &Story<'_>) -> Option<Finding> {
    let period = &story.measured.period;
    let explicit = story.instance.settings.is_explicit(Setting::DbWriterProcesses);
    let asked = story.instance.settings.number(Setting::DbWriterProcesses);
    let lived =
        period.sessions.iter().filter(|session| session.kind == SessionKind::Background).count() as u64;
    let batches = period.statistic(Statistic::DbwrBatches);
    if lived == 0 {
        return explicit.then(|| {
            Finding::not_checked("no block went through the buffer cache: this setting had no effect")
        });
    }
    Some(Finding::that(
        lived == asked,
        format!("{lived} background sessions, {} write batches", RowCount(batches)),
    ))
}
