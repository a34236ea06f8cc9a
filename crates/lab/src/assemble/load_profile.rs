//! The load profile.

use crate::evidence::Done;
use crate::record::LoadRow;
use crate::rows::Counted;
use plumb_events::Statistic;
use plumb_units::Bytes;

/// The rows for what was done in all of which this is counted.
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
            count("Rows inserted", Statistic::RowsInserted),
            count("User commits", Statistic::UserCommits),
            count("User rollbacks", Statistic::UserRollbacks),
        ]);
    }
    rows
}
