//! The load profile, and all statistics of the period.

use super::Evidence;
use crate::record::{self, LoadRow, Response};
use plumb_events::Statistic;
use plumb_units::Bytes;

pub(super) fn rows(seen: &Evidence) -> Vec<LoadRow> {
    let period = &seen.measured.period;
    let row = |name: &str, total: f64| LoadRow { name: name.to_string(), total, is_count: false };
    let count = |name: &str, statistic| LoadRow {
        name: name.to_string(),
        total: period.statistic(statistic) as f64,
        is_count: true,
    };
    let megabytes = |name: &str, statistic| row(name, period.statistic(statistic) as f64 / Bytes::M as f64);
    let mut rows = vec![
        row("DB Time(s)", period.db_time().seconds()),
        row("DB CPU(s)", period.db_cpu().seconds()),
        megabytes("Physical reads (MB)", Statistic::PhysicalReadBytes),
        megabytes("Physical writes (MB)", Statistic::PhysicalWriteBytes),
        count("Read IO requests", Statistic::PhysicalReadRequests),
        count("Write IO requests", Statistic::PhysicalWriteRequests),
        count("Logical reads (blocks)", Statistic::LogicalReads),
    ];
    if seen.measured.outcome.sort.is_some() {
        rows.extend([
            count("Rows scanned", Statistic::TableScanRows),
            count("Rows sorted", Statistic::SortRows),
            count("Sort runs", Statistic::SortRuns),
            count("Rows merged", Statistic::MergeRows),
            count("Index entries", Statistic::IndexEntries),
        ]);
    }
    if seen.measured.outcome.import.is_some() {
        rows.extend([
            count("Redo size (bytes)", Statistic::RedoSize),
            count("Redo entries", Statistic::RedoEntries),
            count("Redo writes", Statistic::RedoWrites),
            count("Rows inserted", Statistic::RowsInserted),
            count("User commits", Statistic::UserCommits),
            count("User rollbacks", Statistic::UserRollbacks),
        ]);
    }
    if let Some(slob) = &seen.measured.outcome.slob {
        let counted =
            |name: &str, total: u64| LoadRow { name: name.to_string(), total: total as f64, is_count: true };
        rows.extend([
            counted("Executes (operations)", slob.count()),
            count("Physical reads (blocks)", Statistic::PhysicalReadBlocks),
            count("Physical writes (blocks)", Statistic::PhysicalWriteBlocks),
            counted("Rows read by index", slob.rows_read),
            counted("Rows updated", slob.rows_updated),
            count("Redo size (bytes)", Statistic::RedoSize),
            count("Redo writes", Statistic::RedoWrites),
            count("User commits", Statistic::UserCommits),
            count("User rollbacks", Statistic::UserRollbacks),
        ]);
        if slob.spec.rate > 0 {
            rows.push(counted("Operations due that had not begun", slob.behind));
        }
    }
    rows
}

/// Response times of operations.
pub(super) fn responses(seen: &Evidence) -> Vec<Response> {
    let Some(slob) = &seen.measured.outcome.slob else { return Vec::new() };
    let named = ["select", "update", "scan"].into_iter().zip(&slob.responses);
    let done = named.filter(|(_, latency)| latency.count() > 0);
    done.map(|(name, latency)| Response { operation: name.to_string(), latency: latency.clone() }).collect()
}

pub(super) fn statistics(seen: &Evidence) -> Vec<record::StatisticRow> {
    let row = |statistic: &Statistic| record::StatisticRow {
        name: statistic.name().to_string(),
        total: seen.measured.period.statistic(*statistic),
        unit: statistic.unit(),
    };
    Statistic::ALL.iter().map(row).collect()
}
