//! Waits: the longest of either side, all of them, and their histograms.

use super::{known, test_columns, tested};
use crate::run::{TopEvent, top_events};
use plumb_record::figures::{DB_TIME, FigureGroup};
use plumb_record::{Record, WaitEvent};
use plumb_report::format::{Average, Count, Percent, Reading, Seconds, SparsePercent};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, short_micros};
use plumb_report::table::{Cell, Column, Table};
use plumb_report::{Drawing, Section, cells};
use plumb_study::compare::{Comparison, Period, names};
use plumb_units::total_of;

/// Number of events with overlaid histograms.
const HISTOGRAMS: usize = 6;
/// Entries of a histogram that have a column: up to 2^27 us, beyond two minutes.
const ENTRIES: usize = 27;

/// Shows the longest waits of either side, side by side.
pub(super) fn top(comparison: &Comparison) -> Section {
    let mut columns = Vec::new();
    for side in ["1st", "2nd"] {
        columns.push(Column::wrapped(format!("{side}: Event"), 27));
        columns.extend(["Waits", "Time (s)", "Avg Time", "%DB\ntime"].map(Column::number));
    }
    columns.insert(5, Column::text("|"));
    let mut table = Table::new(columns);
    let of_events = |run: &&Record| run.command.is_none();
    let runs = comparison.sides().map(|period| period.typical().filter(of_events));
    let tops = runs.map(|run| run.map(top_events).unwrap_or_default());
    let named = |side: usize, event: &TopEvent<'_>| tops[side].iter().any(|other| other.event == event.event);
    for index in 0..tops[0].len().max(tops[1].len()) {
        let mut cells = Vec::new();
        for side in 0..2 {
            let event = tops[side].get(index);
            let mark = event.map_or("", |event| if named(1 - side, event) { "" } else { "-" });
            let db_time = runs[side].map_or(0, |run| run.header.db_time());
            cells.extend(
                event.map_or_else(|| vec![Cell::default(); 5], |event| top_cells(mark, event, db_time)),
            );
        }
        cells.insert(5, Cell::from("|"));
        table.row(cells);
    }
    let section = Section::front("top-events", "Top Timed Events")
        .note("Events with a \"-\" did not make the Top list of the other set");
    let repeated = comparison.sides().iter().any(|period| period.runs.len() > 1);
    let section =
        if repeated { section.note("of the run with the median elapsed time of its set") } else { section };
    section.table(table)
}

fn top_cells(mark: &str, event: &TopEvent<'_>, db_time_ns: u64) -> Vec<Cell> {
    let share = Percent::of(event.time_ns, db_time_ns);
    let average = event.waits.map(|count| Average { total_ns: event.time_ns, count });
    cells![
        format!("{mark}{}", event.event),
        event.waits.map(Count),
        Seconds(event.time_ns),
        average,
        Cell::of(share).with_share(share.share())
    ]
}

/// Shows all non-idle events of the foreground or background, by the longer of both times.
pub(super) fn events(comparison: &Comparison, group: FigureGroup) -> Section {
    let mut columns = vec![Column::wrapped("Event", 28)];
    columns.extend(
        ["Waits\n1st", "Waits\n2nd", "Time (s)\n1st", "Time (s)\n2nd", "Avg Time\n1st", "Avg Time\n2nd"]
            .map(Column::number),
    );
    columns.extend(test_columns());
    let mut table = Table::new(columns);
    for (name, [first, second]) in by_time(comparison, group) {
        let average = |(waits, ns): (f64, f64)| Average { total_ns: ns as u64, count: waits as u64 };
        let mut cells = cells![&name];
        let known = known(comparison, group, &name);
        let sides = [(first, known[0]), (second, known[1])].map(|(side, known)| known.then_some(side));
        cells.extend(sides.map(|side| Cell::of(side.map(|(waits, _)| Count(waits.round() as u64)))));
        cells.extend(sides.map(|side| Cell::of(side.map(|(_, ns)| Reading(ns / 1e9)))));
        cells.extend(sides.map(|side| Cell::of(side.map(average))));
        cells.extend(tested(comparison, group, &name));
        table.row(cells);
    }
    let (id, title) = match group {
        FigureGroup::Background => ("background-events", "Background Wait Events"),
        _ => ("events", "Foreground Wait Events"),
    };
    Section::detail(id, title)
        .note("ordered by the longer of both times; %Diff, interval and p are those of the time")
        .table(table)
}

/// Waits and nanoseconds of an event on a side, medians over its runs.
type Waited = (f64, f64);

/// Returns events with their times on both sides, by the longer of both.
fn by_time(comparison: &Comparison, group: FigureGroup) -> Vec<(String, [Waited; 2])> {
    let names = names(group, &comparison.first.runs, &comparison.second.runs).into_iter();
    let mut rows: Vec<_> = names
        .map(|name| {
            let sides = comparison.sides().map(|period| waits(period, group, &name));
            (name, sides)
        })
        .collect();
    let longer = |sides: &[Waited; 2]| sides[0].1.max(sides[1].1);
    rows.sort_by(|left, right| longer(&right.1).total_cmp(&longer(&left.1)).then(left.0.cmp(&right.0)));
    rows
}

fn waits(period: &Period, group: FigureGroup, name: &str) -> Waited {
    let of = |of: fn(&WaitEvent) -> u64| {
        period.median(|run| {
            let events = if group == FigureGroup::Background {
                &run.background_events
            } else {
                &run.foreground_events
            };
            events.iter().find(|event| event.event == name).map_or(0, of) as f64
        })
    };
    (of(|event| event.waits), of(|event| event.time_ns))
}

/// Overlays both sides' histograms of the longest events: rows in the table, curves on a page.
pub(super) fn histograms(comparison: &Comparison) -> Option<Section> {
    let rows = [FigureGroup::Event, FigureGroup::Background].map(|group| (group, by_time(comparison, group)));
    let mut longest: Vec<(FigureGroup, String, f64)> = Vec::new();
    for (group, events) in rows {
        longest.extend(events.into_iter().map(|(name, sides)| (group, name, sides[0].1.max(sides[1].1))));
    }
    longest.sort_by(|left, right| right.2.total_cmp(&left.2));
    longest.truncate(HISTOGRAMS);
    // Both kinds of sessions may wait for one event.
    let titled = |group: &FigureGroup, name: &str| match group {
        FigureGroup::Background => format!("{name} (background)"),
        _ => name.to_string(),
    };
    let shape = |(group, name, _): &(FigureGroup, String, f64)| {
        (titled(group, name), comparison.sides().map(|period| counts(period, *group, name)))
    };
    let shapes: Vec<_> = longest.iter().map(shape).collect();
    let used = |entry: usize| shapes.iter().any(|(_, sides)| sides.iter().any(|side| side[entry] > 0));
    let first = (0..ENTRIES).find(|entry| used(*entry))?;
    let last = (0..ENTRIES).rev().find(|entry| used(*entry))?;
    let mut columns = vec![Column::wrapped("Event", 24), Column::text(""), Column::number("Waits")];
    columns.extend((first..=last).map(|entry| Column::number(format!("<{}", edge(entry)))));
    let mut table = Table::new(columns);
    let mut drawings = Vec::new();
    for (name, sides) in &shapes {
        for (index, (label, side)) in ["1st", "2nd"].into_iter().zip(sides).enumerate() {
            let total = total_of(side.iter().copied());
            let mut cells = cells![if index == 0 { name.as_str() } else { "" }, label, Count(total)];
            cells.extend((first..=last).map(|entry| {
                let share = Percent::of(side[entry], total);
                Cell::of(SparsePercent(share)).with_share(share.share().filter(|share| *share > 0.0))
            }));
            table.row(cells);
        }
        drawings.push(Drawing::Plot(overlaid(name, sides, first, last)));
    }
    Some(
        Section::detail("histograms", "Wait Event Histograms Over Each Other")
            .note("% of Waits of all runs of a set by their length; value of .0 indicates value was < .05%, null is truly 0")
            .note("columns are upper bounds, 1 ms standing for 1,024 us and 1 s for 1,048,576 us; the longest waits of either side")
            .drawings(drawings)
            .table(table),
    )
}

/// Counts the waits of an event by length, over all runs of a set.
fn counts(period: &Period, group: FigureGroup, name: &str) -> [u64; ENTRIES] {
    let mut counts = [0; ENTRIES];
    for run in &period.runs {
        let events =
            if group == FigureGroup::Background { &run.background_events } else { &run.foreground_events };
        let own = events.iter().filter(|event| event.event == name).flat_map(|event| &event.histogram);
        for (entry, waits) in own.enumerate() {
            counts[entry.min(ENTRIES - 1)] += waits;
        }
    }
    counts
}

fn overlaid(name: &str, sides: &[[u64; ENTRIES]; 2], first: usize, last: usize) -> Plot {
    let share = |side: &[u64; ENTRIES], entry: usize| {
        100.0 * side[entry] as f64 / side.iter().sum::<u64>().max(1) as f64
    };
    let largest =
        sides.iter().flat_map(|side| (first..=last).map(|entry| share(side, entry))).fold(1.0, f64::max);
    let series = |index: usize| Series {
        name: ["1st", "2nd"][index].to_string(),
        colour: index,
        stroke: if index == 0 { Stroke::Dashed } else { Stroke::Line },
        marks: (first..=last)
            .map(|entry| Mark {
                x: (1_u64 << entry) as f64,
                y: share(&sides[index], entry),
                hint: format!("{:.2}% below {}", share(&sides[index], entry), edge(entry)),
                ..Mark::default()
            })
            .collect(),
    };
    Plot {
        title: format!("{name}: % of waits by length"),
        x: Axis::log("below", (1_u64 << first) as f64, (1_u64 << last) as f64, short_micros),
        y: Axis::linear("% of waits", largest, |percent| format!("{percent:.0}")),
        series: vec![series(0), series(1)],
    }
}

/// Prints the upper bound of an entry in the largest unit that leaves a whole number.
fn edge(entry: usize) -> String {
    let (shift, unit) = match entry {
        0..10 => (0, "us"),
        10..20 => (10, "ms"),
        _ => (20, "s"),
    };
    format!("{}{unit}", 1_u64 << (entry - shift))
}

/// Shows the parts of the foreground time by wait class.
pub(super) fn classes(comparison: &Comparison) -> Section {
    let mut columns = vec![Column::text("Wait Class")];
    columns.extend(["Time (s)\n1st", "Time (s)\n2nd", "%DB time\n1st", "%DB time\n2nd"].map(Column::number));
    columns.extend(test_columns());
    let mut table = Table::new(columns);
    let db_time = comparison.sides().map(|period| period.figure(FigureGroup::Time, DB_TIME));
    let mut rows: Vec<(String, [f64; 2])> =
        names(FigureGroup::Class, &comparison.first.runs, &comparison.second.runs)
            .into_iter()
            .map(|name| {
                let sides = comparison.sides().map(|period| period.figure(FigureGroup::Class, &name));
                (name, sides)
            })
            .collect();
    rows.sort_by(|left, right| right.1[0].max(right.1[1]).total_cmp(&left.1[0].max(left.1[1])));
    for (name, sides) in rows {
        let share = |side: usize| Percent { part: sides[side], whole: db_time[side] };
        let known = known(comparison, FigureGroup::Class, &name);
        let mut cells = cells![&name];
        cells.extend([0, 1].map(|side| Cell::of(known[side].then_some(Reading(sides[side])))));
        cells.extend([0, 1].map(|side| Cell::of(share(side)).with_share(share(side).share())));
        cells.extend(tested(comparison, FigureGroup::Class, &name));
        table.row(cells);
    }
    Section::detail("wait-classes", "Foreground Wait Classes")
        .note("ordered by the longer of both times; CPU is that outside waits")
        .table(table)
}
