//! The load profile: amounts of work per second and per transaction.

use super::Evidence;
use crate::evidence::Done;
use crate::rows::Counted;
use plumb_events::Statistic;
use plumb_record::{LoadRow, Response};
use plumb_units::Bytes;

/// Returns the rows for this work, counted over this period.
pub(super) fn rows(period: &Counted, outcome: &Done) -> Vec<LoadRow> {
    let row = |name: &str, total: f64| LoadRow { name: name.to_string(), total, is_count: false };
    let count = |name: &str, statistic| LoadRow {
        name: name.to_string(),
        total: period.statistic(statistic) as f64,
        is_count: true,
    };
    let megabytes = |name: &str, statistic| row(name, period.statistic(statistic) as f64 / Bytes::M as f64);
    let mut rows = vec![
        row("DB Time(s)", period.db_time.seconds()),
        row("DB CPU(s)", period.db_cpu.seconds()),
        megabytes("Physical reads (MB)", Statistic::PhysicalReadBytes),
        megabytes("Physical writes (MB)", Statistic::PhysicalWriteBytes),
        count("Read IO requests", Statistic::PhysicalReadRequests),
        count("Write IO requests", Statistic::PhysicalWriteRequests),
        count("Logical reads (blocks)", Statistic::LogicalReads),
    ];
    if outcome.sort.is_some() {
        rows.extend([
            count("Rows scanned", Statistic::TableScanRows),
            count("Rows sorted", Statistic::SortRows),
            count("Sort runs", Statistic::SortRuns),
            count("Rows merged", Statistic::MergeRows),
            count("Index entries", Statistic::IndexEntries),
        ]);
    }
    if outcome.import.is_some() {
        rows.extend([
            count("Redo size (bytes)", Statistic::RedoSize),
            count("Redo entries", Statistic::RedoEntries),
            count("Redo writes", Statistic::RedoWrites),
            count("Block changes", Statistic::BlockChanges),
            count("Rows inserted", Statistic::RowsInserted),
            count("User commits", Statistic::UserCommits),
            count("User rollbacks", Statistic::UserRollbacks),
        ]);
    }
    if outcome.ctas.is_some() || outcome.copy.is_some() {
        rows.extend([
            count("Redo size (bytes)", Statistic::RedoSize),
            count("Redo of direct writes (bytes)", Statistic::RedoDirectBytes),
            count("Redo writes", Statistic::RedoWrites),
            count("Rows loaded", Statistic::LoadRows),
            count("Rows chained", Statistic::LoadRowsChained),
            count("Physical writes direct (blocks)", Statistic::PhysicalWritesDirect),
        ]);
    }
    if outcome.scan.is_some() {
        rows.extend([
            count("Physical reads (blocks)", Statistic::PhysicalReadBlocks),
            count("Rows scanned", Statistic::TableScanRows),
        ]);
    }
    if outcome.users.is_some() || outcome.slob.is_some() {
        rows.extend(operations(&count));
    }
    if outcome.slob.is_some() {
        rows.extend(updates(&count));
    }
    rows
}

/// Returns the rows of operations that read blocks through the cache.
fn operations(count: &dyn Fn(&str, Statistic) -> LoadRow) -> [LoadRow; 3] {
    [
        count("Executes (operations)", Statistic::ExecuteCount),
        count("Physical reads (blocks)", Statistic::PhysicalReadBlocks),
        count("Physical writes (blocks)", Statistic::PhysicalWriteBlocks),
    ]
}

/// Returns the further rows of operations that may update.
fn updates(count: &dyn Fn(&str, Statistic) -> LoadRow) -> [LoadRow; 7] {
    [
        count("Rows read by index", Statistic::RowsFetchedByRowId),
        count("Block changes", Statistic::BlockChanges),
        count("Rows updated", Statistic::RowsUpdated),
        count("Redo size (bytes)", Statistic::RedoSize),
        count("Redo writes", Statistic::RedoWrites),
        count("User commits", Statistic::UserCommits),
        count("User rollbacks", Statistic::UserRollbacks),
    ]
}

/// Returns the operations due in the run but not begun at its end, if operations arrive at a rate.
pub(super) fn behind(seen: &Evidence) -> Option<LoadRow> {
    let slob = seen.measured.outcome.slob.as_ref().filter(|slob| slob.spec.rate > 0)?;
    let name = "Operations due that had not begun".to_string();
    Some(LoadRow { name, total: slob.behind as f64, is_count: true })
}

pub(super) fn responses(seen: &Evidence) -> Vec<Response> {
    let Some(slob) = &seen.measured.outcome.slob else { return Vec::new() };
    let named = ["select", "update", "scan"].into_iter().zip(&slob.responses);
    let done = named.filter(|(_, latency)| latency.count() > 0);
    let named = done.map(|(name, latency)| Response {
        operation: name.to_string(),
        latency: latency.clone(),
        elapsed_ns: None,
    });
    named.collect()
}
