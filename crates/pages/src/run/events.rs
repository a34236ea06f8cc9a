//! Wait events: the top ones, by class, and in full.

use plumb_record::{Record, Sampling, WaitEvent};
use plumb_report::format::{Average, Count, Figure, Percent, Seconds};
use plumb_report::table::{Cell, Row, RowKind, Table};
use plumb_report::{Section, cells, table};
use plumb_units::{Nanos, total_of};
use std::collections::BTreeMap;

/// Number of events on the first page.
const TOP_EVENTS: usize = 10;

/// Name of CPU among the events.
pub(crate) const DB_CPU: &str = "DB CPU";

/// An event of the first page; CPU is one without waits.
#[derive(Debug, Clone)]
pub(crate) struct TopEvent<'a> {
    pub event: &'a str,
    /// Wait class; empty for CPU.
    pub wait_class: &'a str,
    pub waits: Option<u64>,
    pub time_ns: u64,
}

/// Returns CPU and the non-idle foreground events, by time.
pub(crate) fn top_events(record: &Record) -> Vec<TopEvent<'_>> {
    let cpu = TopEvent { event: DB_CPU, wait_class: "", waits: None, time_ns: record.header.db_cpu() };
    let busy = record.foreground_events.iter().filter(|event| !event.is_idle());
    let waits = busy.map(|event| TopEvent {
        event: &event.event,
        wait_class: &event.wait_class,
        waits: Some(event.waits),
        time_ns: event.time_ns,
    });
    let mut top = std::iter::once(cpu).chain(waits).collect::<Vec<_>>();
    top.retain(|event| event.time_ns > 0);
    top.sort_by_key(|event| (std::cmp::Reverse(event.time_ns), event.event));
    top.truncate(TOP_EVENTS);
    top
}

/// Shows the events with most of the DB time.
pub(super) fn top(record: &Record) -> Section {
    if let Some(sampling) = &record.sampling {
        return top_sampled(record, sampling);
    }
    let table = table!(event in top_events(record); {
        let share = Percent::of(event.time_ns, record.header.db_time());
        let average = event.waits.map(|count| Average { total_ns: event.time_ns, count });
    } [
        text "Event" => event.event,
        numbers "Waits" => event.waits.map(Count),
        numbers "Total Wait\nTime (s)" => Seconds(event.time_ns),
        numbers "Avg\nwait" => average,
        numbers "% DB\ntime" => Cell::of(share).with_share(share.share()),
        text "Wait Class" => event.wait_class,
    ]);
    Section::front("top-events", format!("Top {TOP_EVENTS} Foreground Events by Total Wait Time"))
        .table(table)
}

/// Shows the same events where their times are estimates: each has its standard error.
fn top_sampled(record: &Record, sampling: &Sampling) -> Section {
    let table = table!(event in top_events(record); {
        let share = Percent::of(event.time_ns, record.header.db_time());
    } [
        text "Event" => event.event,
        numbers "Samples" => event.waits.map(Count),
        numbers "Total Wait\nTime (s)" => Seconds(event.time_ns),
        numbers "Std Err\n(s)" => event.waits.and_then(|_| error_of(sampling, event.event)),
        numbers "% DB\ntime" => Cell::of(share).with_share(share.share()),
        text "Wait Class" => event.wait_class,
    ]);
    Section::front("top-events", format!("Top {TOP_EVENTS} Foreground Events by Total Wait Time"))
        .note(sampled(sampling))
        .table(table)
}

/// Returns the standard error of an event's time.
fn error_of(sampling: &Sampling, event: &str) -> Option<Seconds> {
    sampling.errors.iter().find(|error| error.event == event).map(|error| Seconds(error.error_ns))
}

fn sampled(sampling: &Sampling) -> String {
    format!(
        "time off CPU is measured; {} samples, one in {} on average, divide it among events; an event below two errors was \
         seen, and its time is no figure",
        Count(sampling.samples).figure(),
        Nanos(sampling.interval_ns)
    )
}

/// Shows foreground time by wait class, CPU included.
pub(super) fn wait_classes(record: &Record) -> Section {
    let header = &record.header;
    let busy = record.foreground_events.iter().filter(|event| !event.is_idle());
    let captured = header.db_cpu().saturating_add(total_of(busy.map(|event| event.time_ns)));
    let captured_share = Percent::of(captured, header.db_time());
    let mut table = Table::default().text(["Wait Class"]).numbers([
        "Waits",
        "Total Wait\nTime (s)",
        "Avg\nwait",
        "% DB\ntime",
    ]);
    table.rows = class_rows(record);
    Section::detail("wait-classes", "Foreground Wait Class")
        .note("ordered by wait time desc, waits desc")
        .note(format!(
            "Captured Time accounts for {}% of Total DB time {} (s)",
            captured_share.figure(),
            Seconds(header.db_time()).figure()
        ))
        .note(format!(
            "Total FG Wait Time: {} (s)  DB CPU time: {} (s)",
            Seconds(captured - header.db_cpu()).figure(),
            Seconds(header.db_cpu()).figure()
        ))
        .table(table)
}

/// Waits and time of a class.
#[derive(Default)]
struct ClassTotal {
    waits: Option<u64>,
    time_ns: u64,
}

/// Returns CPU and the wait classes of the foreground, the longest first.
fn classes(record: &Record) -> Vec<(&str, ClassTotal)> {
    let mut classes = BTreeMap::<&str, ClassTotal>::new();
    classes.entry(DB_CPU).or_default().time_ns = record.header.db_cpu();
    for event in record.foreground_events.iter().filter(|event| !event.is_idle()) {
        let class = classes.entry(event.wait_class.as_str()).or_default();
        *class.waits.get_or_insert(0) += event.waits;
        class.time_ns += event.time_ns;
    }
    let mut classes = classes.into_iter().collect::<Vec<_>>();
    classes.sort_by_key(|(_, total)| std::cmp::Reverse((total.time_ns, total.waits)));
    classes
}

pub(super) fn class_times(record: &Record) -> Vec<(&str, u64)> {
    classes(record).into_iter().map(|(class, total)| (class, total.time_ns)).collect()
}

fn class_rows(record: &Record) -> Vec<Row> {
    let row = |(class, total): (&str, ClassTotal)| {
        let share = Percent::of(total.time_ns, record.header.db_time());
        let count = |waits| Average { total_ns: total.time_ns, count: waits };
        Row {
            kind: RowKind::Plain,
            cells: cells![
                class,
                total.waits.map(Count),
                Seconds(total.time_ns),
                total.waits.map(count),
                Cell::of(share).with_share(share.share())
            ],
        }
    };
    classes(record).into_iter().map(row).collect()
}

/// Shows every event of the foreground sessions.
pub(super) fn foreground(record: &Record) -> Section {
    let base = ("% DB\ntime", record.header.db_time());
    let section = Section::detail("foreground-events", "Foreground Wait Events")
        .note("ordered by wait time desc, waits desc (idle events last)");
    match &record.sampling {
        Some(sampling) => section.note(sampled(sampling)).table(sampled_table(
            &record.foreground_events,
            record.header.db_time(),
            sampling,
        )),
        None => section.table(event_table(&record.foreground_events, base)),
    }
}

/// Shows every event of the background processes.
pub(super) fn background(record: &Record) -> Section {
    let busy = record.background_events.iter().filter(|event| !event.is_idle());
    let base = ("% bg\ntime", total_of(busy.map(|event| event.time_ns)));
    Section::detail("background-events", "Background Wait Events")
        .note("ordered by wait time desc, waits desc (idle events last)")
        .note("% bg time is the share of the background's waits that are not idle")
        .table(event_table(&record.background_events, base))
}

fn event_table(events: &[WaitEvent], (share_title, base_ns): (&str, u64)) -> Table {
    let mut table = Table::default()
        .text(["Event"])
        .numbers(["Waits", "Total Wait\nTime (s)", "Avg\nwait", "Max\nwait", share_title])
        .text(["Wait Class"]);
    for event in ordered(events) {
        // Idle time is not part of the base of the share.
        let share = (!event.is_idle()).then(|| Percent::of(event.time_ns, base_ns));
        let kind = if event.is_idle() { RowKind::Quiet } else { RowKind::Plain };
        let cells = cells![
            &event.event,
            Count(event.waits),
            Seconds(event.time_ns),
            Average { total_ns: event.time_ns, count: event.waits },
            event.max_ns.filter(|max_ns| *max_ns > 0).map(|total_ns| Average { total_ns, count: 1 }),
            Cell::of(share).with_share(share.and_then(Percent::share)),
            &event.wait_class
        ];
        table.push(kind, cells);
    }
    table
}

/// Lists sampled events, which have no number of waits and no longest one.
fn sampled_table(events: &[WaitEvent], db_time_ns: u64, sampling: &Sampling) -> Table {
    let mut table = Table::default()
        .text(["Event"])
        .numbers(["Samples", "Total Wait\nTime (s)", "Std Err\n(s)", "% DB\ntime"])
        .text(["Wait Class"]);
    for event in ordered(events) {
        let share = (!event.is_idle()).then(|| Percent::of(event.time_ns, db_time_ns));
        let kind = if event.is_idle() { RowKind::Quiet } else { RowKind::Plain };
        let cells = cells![
            &event.event,
            Count(event.waits),
            Seconds(event.time_ns),
            error_of(sampling, &event.event),
            Cell::of(share).with_share(share.and_then(Percent::share)),
            &event.wait_class
        ];
        table.push(kind, cells);
    }
    table
}

/// Orders events by time, then by waits, with idle ones last.
pub(super) fn ordered(events: &[WaitEvent]) -> Vec<&WaitEvent> {
    let mut ordered = events.iter().filter(|event| event.waits > 0).collect::<Vec<_>>();
    ordered.sort_by(|left, right| {
        let idle = left.is_idle().cmp(&right.is_idle());
        let size = (right.time_ns, right.waits).cmp(&(left.time_ns, left.waits));
        idle.then(size).then(left.event.cmp(&right.event))
    });
    ordered
}
