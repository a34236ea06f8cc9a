//! The sort: its memory, its way to the disk, its servers.

use super::super::Story;
use super::super::sort::first_run_bytes;
use super::Finding;
use plumb_engine::Setting;
use plumb_engine::index::build::SortServerOutcome;
use plumb_events::{IoStream, Statistic};
use plumb_units::{Bytes, RowCount};

/// Why a setting of the spill has no effect.
const IN_MEMORY: &str = "the sort fitted in memory: this setting had no effect";

fn servers<'a>(story: &'a Story<'_>) -> &'a [SortServerOutcome] {
    &story.measured.outcome.servers
}

fn in_memory(story: &Story<'_>) -> bool {
    servers(story).iter().all(|server| server.run_count == 0)
}

/// Runs against the area that made them.
pub(super) fn area(story: &Story<'_>) -> Option<Finding> {
    let asked = story.instance.settings.number(Setting::SortAreaSize);
    let runs: u64 = servers(story).iter().map(|server| server.run_count).sum();
    let rows: u64 = servers(story).iter().map(|server| server.row_count).sum();
    let given = servers(story).iter().map(|server| server.area.0).max().unwrap_or(0);
    let count = |kind| RowCount(story.measured.period.statistic(kind));
    let sorts = format!(
        "sorts: {} in memory, {} on disk",
        count(Statistic::SortsMemory),
        count(Statistic::SortsDisk)
    );
    if runs == 0 {
        let evidence =
            format!("{} rows fitted in areas of {} at most; {sorts}", RowCount(rows), Bytes(given));
        return Some(Finding::that(given <= asked, evidence));
    }
    let bytes = first_run_bytes(story);
    let mean = bytes / runs;
    let expected: u64 = servers(story)
        .iter()
        .filter(|server| server.run_count > 0)
        .map(|server| {
            // Every server's last run is what is left over.
            let share = u128::from(bytes) * u128::from(server.row_count) / u128::from(rows.max(1));
            u64::try_from(share).unwrap_or(u64::MAX).div_ceil(server.area.0.max(1))
        })
        .sum();
    let merges: u64 = servers(story).iter().map(|server| server.intermediate_merges).sum();
    let evidence = format!(
        "{} runs of {} on average for {} of records; full areas of {} make {}, and sorted strips of an area are runs of \
         their own where one merge takes them all; {} intermediate merges; {sorts}",
        RowCount(runs),
        Bytes(mean),
        Bytes(bytes),
        Bytes(given),
        RowCount(expected),
        RowCount(merges),
    );
    // Records lie in the area as they do in a run, or with an entry of their own beside them:
    // runs are never larger than the area but for their block headers.
    let agrees = given <= asked && mean <= given + given / 16 + 64 * Bytes::K;
    Some(Finding::that(agrees, evidence))
}

/// Who wrote the runs.
pub(super) fn direct_writes(story: &Story<'_>) -> Option<Finding> {
    if in_memory(story) {
        return Some(Finding::not_checked(IN_MEMORY));
    }
    let period = &story.measured.period;
    let direct = period.statistic(Statistic::PhysicalWritesDirectTemp);
    let cached = period.statistic(Statistic::PhysicalWritesFromCache);
    let batches = period.statistic(Statistic::DbwrBatches);
    let outcome = &story.measured.outcome;
    let evidence = format!(
        "{} run blocks written by the sort itself, {} by DBWR in {} batches ({})",
        RowCount(direct),
        RowCount(cached),
        RowCount(batches),
        outcome.direct_writes_reason
    );
    let asked = match story.instance.settings.word(Setting::SortDirectWrites) {
        "true" => true,
        "false" => false,
        _ => outcome.direct_writes,
    };
    // Runs that still fit the cache need not be written by anybody.
    Some(match asked {
        true => Finding::that(direct > 0 && cached == 0, evidence),
        false if direct == 0 && cached == 0 => {
            Finding::not_checked(format!("{evidence}; the runs fitted the cache"))
        }
        false => Finding::that(direct == 0, evidence),
    })
}

/// The mean write of a run.
pub(super) fn write_buffer_size(story: &Story<'_>) -> Option<Finding> {
    let settings = &story.instance.settings;
    if in_memory(story) {
        return settings.is_explicit(Setting::SortWriteBufferSize).then(|| Finding::not_checked(IN_MEMORY));
    }
    let writes = story.measured.period.stream(IoStream::TempWrites);
    if !story.measured.outcome.direct_writes || writes.count == 0 {
        let explicit = settings.is_explicit(Setting::SortWriteBufferSize);
        return explicit
            .then(|| Finding::not_checked("runs went through the buffer cache: this setting had no effect"));
    }
    let asked = settings.number(Setting::SortWriteBufferSize);
    let mean = writes.bytes / writes.count;
    let evidence = format!("{} writes of runs of {} on average", RowCount(writes.count), Bytes(mean));
    if mean * 2 < asked && !settings.is_explicit(Setting::SortWriteBufferSize) {
        // auto has shrunk the buffers, and nobody asked for their size.
        return None;
    }
    let block =
        story.instance.tablespace(plumb_engine::storage::tablespace::Purpose::Temp).block_size.bytes() as u64;
    Some(match (mean <= asked.next_multiple_of(block), mean * 2 >= asked) {
        (false, _) => Finding::contradicted(evidence),
        (true, true) => Finding::held(evidence),
        // Small runs end inside a buffer, and auto shrinks the buffers to a tenth of the area.
        (true, false) => {
            Finding::not_checked(format!("{evidence}; {}", story.measured.outcome.direct_writes_reason))
        }
    })
}

/// The read cost that merges were planned with.
pub(super) fn read_fac(story: &Story<'_>) -> Option<Finding> {
    let outcome = &story.measured.outcome;
    let asked = story.instance.settings.optional_number(Setting::SortReadFac)?;
    if in_memory(story) {
        return Some(Finding::not_checked(IN_MEMORY));
    }
    let width = servers(story).iter().map(|server| server.merge_width).max().unwrap_or(0);
    let reads = story.measured.period.stream(IoStream::TempReads);
    let mean = Bytes(reads.bytes.checked_div(reads.count).unwrap_or(0));
    let evidence = format!(
        "merges planned with {} ({}): at most {width} runs wide, reads of {mean} on average",
        outcome.sort_read_fac, outcome.sort_read_fac_source
    );
    Some(Finding::that(outcome.sort_read_fac == asked, evidence))
}

/// Servers that really lived.
pub(super) fn degree(story: &Story<'_>) -> Option<Finding> {
    let asked = story.instance.parallel_degree();
    let count = |role: &str| {
        let sessions = story.measured.period.sessions.iter();
        sessions.filter(|session| session.name.starts_with(role)).count()
    };
    let [scan, sort] = ["PX scan server", "PX sort server"].map(count);
    let largest = servers(story).iter().map(|server| server.row_count).max().unwrap_or(0);
    let rows: u64 = servers(story).iter().map(|server| server.row_count).sum();
    let share = largest as f64 * 100.0 / rows.max(1) as f64;
    let evidence = format!(
        "{scan} scan servers and {sort} sort servers lived; the busiest sorted {share:.0}% of the rows"
    );
    match asked {
        1 => Some(Finding::that(scan + sort == 0, format!("one serial session; {evidence}"))),
        degree => Some(Finding::that(scan == degree && sort == degree, evidence)),
    }
}
