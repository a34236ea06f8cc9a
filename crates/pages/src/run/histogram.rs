//! Histograms of wait times, in powers of two.
//!
//! AWR's first histogram starts at one millisecond, later than most waits of modern storage. Here
//! the first starts at one microsecond, the second continues after it, and the third covers waits
//! beyond half a second. Each prints percentages of all waits of the event, so that a row of all
//! parts sums to 100. A later part shows only events that extend into it.

use super::events::ordered;
use plumb_record::{Record, WaitEvent};
use plumb_report::Section;
use plumb_report::format::{Count, Percent, SparsePercent};
use plumb_report::table::{Cell, Column, RowKind, Table};
use plumb_units::total_of;

/// One part: entries `first..last` of the histogram have a column each, the rest one more.
struct Part {
    id: &'static str,
    title: &'static str,
    first: usize,
    last: usize,
}

const PARTS: [Part; 3] = [
    Part { id: "histogram", title: "Wait Event Histogram (up to 512 us)", first: 0, last: 10 },
    Part { id: "histogram-ms", title: "Wait Event Histogram Detail (512 us to 512 ms)", first: 10, last: 20 },
    Part { id: "histogram-s", title: "Wait Event Histogram Detail (512 ms and up)", first: 20, last: 28 },
];

/// Returns the parts with waits; the first part always.
pub(super) fn histograms(record: &Record) -> Vec<Section> {
    let events = merged(record);
    let reached =
        |part: &&Part| part.first == 0 || events.iter().any(|event| waits_from(event, part.first) > 0);
    PARTS.iter().filter(reached).map(|part| section(part, &events)).collect()
}

/// Merges foreground and background waits of an event into one row, as AWR does.
fn merged(record: &Record) -> Vec<WaitEvent> {
    let mut merged: Vec<WaitEvent> = Vec::new();
    for event in record.foreground_events.iter().chain(&record.background_events) {
        let Some(known) = merged.iter_mut().find(|known| known.event == event.event) else {
            merged.push(event.clone());
            continue;
        };
        known.waits += event.waits;
        known.time_ns += event.time_ns;
        let length = known.histogram.len().max(event.histogram.len());
        known.histogram.resize(length, 0);
        for (sum, count) in known.histogram.iter_mut().zip(&event.histogram) {
            *sum += count;
        }
    }
    merged
}

fn section(part: &Part, events: &[WaitEvent]) -> Section {
    let below = (part.first..part.last).map(|entry| format!("<{}", upper_edge(entry)));
    let above = format!(">={}", upper_edge(part.last - 1));
    let numbers = below.chain([above]).map(Column::number);
    let names = [Column::text("Event"), Column::number("Waits")];
    let mut table = Table::new(names.into_iter().chain(numbers).collect());
    for event in ordered(events) {
        if waits_from(event, part.first) == 0 {
            continue;
        }
        let kind = if event.is_idle() { RowKind::Quiet } else { RowKind::Plain };
        let total = waits_from(event, 0);
        let entries = (part.first..part.last).map(|entry| event.histogram.get(entry).copied());
        let entries = entries.map(|count| count.unwrap_or(0)).chain([waits_from(event, part.last)]);
        let shares = entries.map(|count| {
            let share = Percent::of(count, total);
            Cell::of(SparsePercent(share)).with_share(share.share().filter(|share| *share > 0.0))
        });
        let names = [Cell::from(&event.event), Cell::of(Count(total))];
        table.push(kind, names.into_iter().chain(shares).collect());
    }
    let unit = "columns are upper bounds, 1 ms standing for 1,024 us and 1 s for 1,048,576 us";
    Section::detail(part.id, part.title)
        .note("% of Waits: value of .0 indicates value was < .05%. Value of null is truly 0")
        .note(unit)
        .note("ordered by wait time desc, waits desc (idle events last)")
        .table(table)
}

fn waits_from(event: &WaitEvent, entry: usize) -> u64 {
    total_of(event.histogram.iter().skip(entry).copied())
}

/// Prints the upper bound of an entry, 2^entry us, in the largest unit that leaves a whole number.
fn upper_edge(entry: usize) -> String {
    let (shift, unit) = match entry {
        0..10 => (0, "us"),
        10..20 => (10, "ms"),
        _ => (20, "s"),
    };
    format!("{}{unit}", 1u64 << (entry - shift))
}
