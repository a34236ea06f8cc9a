//! Instance Activity Stats: counters with their rates.

use crate::record::Record;
use crate::record::StatisticUnit;
use plumb_report::Section;
use plumb_report::format::{Count, PerSecond};
use plumb_report::table::{Cell, Column, Table};

/// Every counter that moved.
pub(super) fn statistics(context: &Record) -> Section {
    let elapsed_ns = context.header.elapsed_ns;
    let mut statistics = context.statistics.iter().collect::<Vec<_>>();
    statistics.retain(|statistic| statistic.total > 0);
    statistics.sort_by(|left, right| left.name.cmp(&right.name));
    let mut table = Table::new(vec![
        Column::text("Statistic"),
        Column::number("Total"),
        Column::number("per Second"),
        Column::text("Unit"),
    ]);
    for statistic in statistics {
        // A counter of time is printed in microseconds: its nanoseconds are noise.
        let (total, unit) = match statistic.unit {
            StatisticUnit::Count => (statistic.total, ""),
            StatisticUnit::Bytes => (statistic.total, "bytes"),
            StatisticUnit::Nanos => (statistic.total / 1_000, "us"),
        };
        table.row(vec![
            Cell::from(&statistic.name),
            Cell::of(Count(total)),
            Cell::of(PerSecond { total: total as f64, elapsed_ns }),
            Cell::from(unit),
        ]);
    }
    Section::detail("activity", "Instance Activity Stats")
        .note("ordered by statistic name; statistics that did not move are left out")
        .table(table)
}
