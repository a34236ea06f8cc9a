//! Snapshots within a run: one row for each interval.

use plumb_record::{Interval, Record, WaitEvent};
use plumb_report::format::{Decimal, PerSecond, Percent, Seconds, Throughput};
use plumb_report::table::Table;
use plumb_report::{Section, cells};
use plumb_units::total_of;

/// Largest number of rows in the table; the record has all.
const ROWS_MAX: usize = 60;

/// Shows the work of each interval; `None` without snapshots.
pub(super) fn section(record: &Record) -> Option<Section> {
    // Snapshots of a period keep their numbers in the run.
    let first = record.period.as_ref().map_or(1, |period| period.first);
    let last = record.last_snapshot()? + first - 1;
    let mut table = Table::default().numbers([
        "From\nsnapshot",
        "To",
        "Begin (s)",
        "Elapsed (s)",
        "DB Time\n(s)",
        "Avg Active\nSessions",
        "% DB\nCPU",
        "Transac-\ntions/s",
        "Reads/s",
        "Reads\nMB/s",
        "Writes/s",
        "Writes\nMB/s",
    ]);
    table = table.text(["Top wait"]).numbers(["% DB\ntime"]);
    for (index, interval) in record.intervals.iter().take(ROWS_MAX).enumerate() {
        table.row(row(index + first, interval));
    }
    let section = Section::front("snapshots", "Snapshots").note(format!(
        "{first} to {last}; `plumb report BUNDLE --begin 1 --end 2` reports what happened between two of them, and `plumb compare \
         BUNDLE:1-2 BUNDLE:2-3` compares two periods"
    ));
    let left_out = record.intervals.len().saturating_sub(ROWS_MAX);
    let section = match left_out {
        0 => section,
        more => section.note(format!("{more} more are in the record")),
    };
    Some(section.table(table))
}

fn row(number: usize, interval: &Interval) -> Vec<plumb_report::table::Cell> {
    let elapsed_ns = interval.end_ns.saturating_sub(interval.begin_ns);
    let total = |names: &[&str]| {
        let own = interval.statistics.iter().filter(|row| names.contains(&row.name.as_str()));
        total_of(own.map(|row| row.total))
    };
    let rate = |names: &[&str]| PerSecond { total: total(names) as f64, elapsed_ns };
    let bytes = |name: &str| Throughput { bytes: total(&[name]), elapsed_ns };
    let busy = interval.foreground_events.iter().filter(|event| !event.is_idle());
    let top: Option<&WaitEvent> = busy.max_by_key(|event| event.time_ns);
    let active = Percent::of(interval.db_time_ns, elapsed_ns).share();
    cells![
        number.to_string(),
        (number + 1).to_string(),
        Seconds(interval.begin_ns),
        Seconds(elapsed_ns),
        Seconds(interval.db_time_ns),
        active.map(Decimal),
        Percent::of(interval.db_cpu_ns, interval.db_time_ns),
        rate(&["user commits", "user rollbacks"]),
        rate(&["physical read total IO requests"]),
        bytes("physical read total bytes"),
        rate(&["physical write total IO requests"]),
        bytes("physical write total bytes"),
        top.map_or("", |event| event.event.as_str()),
        top.map(|event| Percent::of(event.time_ns, interval.db_time_ns))
    ]
}
