//! Instance Activity Stats: counters with their rates.

use crate::record::Record;
use plumb_events::Unit;
use plumb_report::format::{Count, PerSecond};
use plumb_report::table::Table;
use plumb_report::{Section, cells};

/// Every counter that moved.
pub(super) fn statistics(record: &Record) -> Section {
    let elapsed_ns = record.header.elapsed_ns;
    let mut statistics = record.statistics.iter().collect::<Vec<_>>();
    statistics.retain(|statistic| statistic.total > 0);
    statistics.sort_by(|left, right| left.name.cmp(&right.name));
    let mut table = Table::default().text(["Statistic"]).numbers(["Total", "per Second"]).text(["Unit"]);
    for statistic in statistics {
        let (total, unit) = match statistic.unit {
            Unit::Count => (statistic.total, ""),
            Unit::Bytes => (statistic.total, "bytes"),
        };
        table.row(cells![&statistic.name, Count(total), PerSecond { total: total as f64, elapsed_ns }, unit]);
    }
    Section::detail("activity", "Instance Activity Stats")
        .note("ordered by statistic name; statistics that did not move are left out")
        .table(table)
}
