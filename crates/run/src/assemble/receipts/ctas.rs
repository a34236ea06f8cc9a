//! Parameters of a create table as select that a study may vary, compared with the table made.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::CtasDone;
use plumb_engine::Setting;
use plumb_engine::transaction::Logging;
use plumb_events::Statistic;
use plumb_record::Receipt;
use plumb_units::{Bytes, RowCount};

/// Divisor for the tolerance of the mean row length: a twentieth of the shape's length.
const SHAPE_SHARE: u64 = 20;

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let Some(done) = &seen.measured.outcome.ctas else { return Vec::new() };
    let logging = if done.logging == Logging::Logging { "logging" } else { "nologging" };
    let mut receipts = vec![
        block_size(seen, done).receipt("block-size", done.block_size.to_string()),
        shape(done).inside("shape", done.shape.name()),
        logged(seen, done).inside("logging", logging),
    ];
    receipts.extend(
        done.source_cached
            .map(|cached| source(seen, cached).inside("start: source table", "in the buffer cache")),
    );
    receipts
}

/// Block size in the headers of the new table's files, read back from disk.
fn block_size(seen: &Evidence, done: &CtasDone) -> Ruling {
    let tablespace = seen.inside.tablespaces.iter().find(|found| found.block_size == done.block_size);
    let Some(tablespace) = tablespace else { return Ruling::contradicted("no tablespace has such blocks") };
    let name = tablespace.purpose.name();
    let headers = seen.headers.iter().filter(|header| tablespace.files.contains(&header.path));
    let sizes: Vec<u64> = headers.map(|header| header.block_bytes).collect();
    let blocks = RowCount(done.loaded.block_count);
    let Some(first) = sizes.first() else {
        return Ruling::unknown(format!("{blocks} blocks in {name}: its files are in memory"));
    };
    let evidence = format!(
        "read back from disk: {} of {name} of {} blocks; the table has {blocks} of them",
        counted(sizes.len() as u64, "data file"),
        Bytes(*first).as_setting()
    );
    Ruling::that(sizes.iter().all(|size| *size == done.block_size.bytes() as u64), evidence)
}

/// Mean length of the rows, compared with the shape's.
fn shape(done: &CtasDone) -> Ruling {
    let loaded = &done.loaded;
    let (mean, expected) =
        (loaded.row_bytes.checked_div(loaded.row_count).unwrap_or(0), done.shape.row_bytes());
    let evidence = format!(
        "{} of {} on average, {} of them chained",
        counted(loaded.row_count, "row"),
        Bytes(mean),
        RowCount(loaded.chained_row_count)
    );
    Ruling::that(mean.abs_diff(expected) * SHAPE_SHARE <= expected, evidence)
}

/// Redo of the table's blocks, and a backup that no setting requires.
fn logged(seen: &Evidence, done: &CtasDone) -> Ruling {
    let redo = seen.measured.period.statistic(Statistic::RedoDirectBytes);
    let bytes = done.loaded.block_count * done.block_size.bytes() as u64;
    let backup = done.backup.map_or(String::new(), |copied| {
        format!("; a backup of {} in {} behind it", copied.bytes, copied.elapsed)
    });
    let evidence = format!("{} of redo for {} of blocks{backup}", Bytes(redo), Bytes(bytes));
    let expected = if done.logged { redo >= bytes } else { redo == 0 };
    Ruling::that(expected, evidence)
}

/// A scan of a cached table reads nothing.
fn source(seen: &Evidence, cached: bool) -> Ruling {
    let read = seen.measured.period.statistic(Statistic::PhysicalReadBlocks);
    let said = if cached { "all of it" } else { "not all of it" };
    let evidence = format!("{said} was cached before; the work read {}", counted(read, "block"));
    Ruling::that(cached && read == 0, evidence)
}

/// Judges the setting by the redo of the load.
pub(super) fn force_logging(seen: &Evidence) -> Option<Ruling> {
    let (outcome, settings) = (&seen.measured.outcome, &seen.inside.settings);
    let of_copy = outcome.copy.as_ref().map(|copy| copy.logging);
    let logging = outcome.ctas.as_ref().map(|ctas| ctas.logging).or(of_copy)?;
    if !settings.is_explicit(Setting::ForceLogging) {
        return None;
    }
    let redo = seen.measured.period.statistic(Statistic::RedoDirectBytes);
    let size = seen.measured.period.statistic(Statistic::RedoSize);
    let evidence = format!("{} of redo, {} of it of the load's blocks", Bytes(size), Bytes(redo));
    let is_forced = settings.word(Setting::ForceLogging) == "on";
    let is_kept = settings.word(Setting::ArchiveLogMode) == "on" && logging == Logging::Logging;
    Some(Ruling::that((redo > 0) == (is_forced || is_kept), evidence))
}
