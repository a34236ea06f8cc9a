//! Instance Activity Stats: counters with their rates.

use plumb_events::Unit;
use plumb_record::Record;
use plumb_report::format::{Count, PerSecond, Total};
use plumb_report::table::{Cell, Table};
use plumb_report::{Section, cells};

pub(super) fn statistics(record: &Record) -> Section {
    let elapsed_ns = record.header.elapsed_ns;
    let mut statistics = record.statistics.iter().collect::<Vec<_>>();
    statistics.retain(|statistic| statistic.total > 0);
    statistics.sort_by(|left, right| left.name.cmp(&right.name));
    let transactions = record.transactions();
    let mut table = Table::default().text(["Statistic"]).numbers(["Total", "per Second"]);
    if transactions.is_some() {
        table = table.numbers(["per Transaction"]);
    }
    let mut table = table.text(["Unit"]);
    for statistic in statistics {
        let (total, unit) = match statistic.unit {
            Unit::Count => (statistic.total, ""),
            Unit::Bytes => (statistic.total, "bytes"),
        };
        let mut cells = cells![&statistic.name, Count(total), PerSecond { total: total as f64, elapsed_ns }];
        cells.extend(transactions.map(|count| Cell::of(Total(total as f64 / count as f64))));
        cells.extend(cells![unit]);
        table.row(cells);
    }
    Section::detail("activity", "Instance Activity Stats")
        .note("ordered by statistic name; statistics that did not move are left out")
        .table(table)
}
