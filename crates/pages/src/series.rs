//! Reports of one database over weeks: where its load changed, and the events that explain it.
//!
//! ```text
//! records in order ──> average active sessions, as logarithms ──> steps of level
//! each change ──> means of CPU and of every event before and after it ──> differences that sum up
//! ```
//!
//! Time adds up in every report: CPU, the waits that it lists, and the rest. So the difference of
//! two means of active sessions is the sum of the differences of these parts.
//!
//! Limits: those of `plumb_proof::series`. A step has four reports at least on either side.

use plumb_proof::change_point::ChangePoint;
use plumb_proof::series::{REPORTS_MIN, STEP_P, reports_for, steps};
use plumb_record::{Record, WaitEvent};
use plumb_report::format::{Decimal, Figure, Percent};
use plumb_report::plot::{Axis, Mark, Plot, Series, Side, Stroke, short_count};
use plumb_report::table::{Column, RowKind, Table, Tone};
use plumb_report::{Document, Drawing, ReportAnswer, Section, State, Summary, cells, text};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;

/// The seed of the search: the same reports give the same changes.
pub(crate) const SEED: u64 = 1996;
/// Parts of a change that are shown at most.
const PARTS_MOST: usize = 12;
/// Parts of the changes that have a line in a picture, at most: two names fit its legend.
const DRAWN_MOST: usize = 2;
/// Letters of a name in a legend, at most.
const LEGEND_MOST: usize = 28;
/// The name of the time in which sessions computed.
const CPU: &str = "DB CPU";
/// The name of DB time that is neither CPU nor a wait that the report lists.
const REST: &str = "not captured";

/// A report of the series, with its name.
#[derive(Debug)]
pub struct Member<'r> {
    pub name: String,
    pub record: &'r Record,
}

/// Returns the report of a series whose members are in the order of time.
pub fn document(members: &[Member<'_>], plumb_version: &str) -> Document {
    let loads: Vec<f64> = members.iter().map(|member| sessions(member.record)).collect();
    // A report without load has no logarithm; it is far below every other one.
    let series: Vec<f64> = loads.iter().map(|load| load.max(1e-6).ln()).collect();
    let changes = steps(&series, SEED);
    let needed = REPORTS_MIN;
    let (word, tone) = match (changes.len(), members.len() < needed) {
        (0, true) => (format!("TOO FEW REPORTS: {} of {needed}", members.len()), Tone::Open),
        (0, false) => ("NO STEP FOUND".to_string(), Tone::Good),
        (1, _) => ("1 CHANGE".to_string(), Tone::Open),
        (count, _) => (format!("{count} CHANGES"), Tone::Open),
    };
    let workload = members.first().map_or("", |member| member.record.header.workload.as_str());
    let mut sections = vec![reports(members, &changes).drawings(pictures(members, &changes))];
    sections.extend((0..changes.len()).map(|at| explained(members, &changes, at)));
    let lines = changes.iter().map(|change| ("-".to_string(), sentence(members, change)));
    Document {
        title: format!("SERIES  {workload}, {} reports", members.len()),
        answer: ReportAnswer::default(),
        question: String::new(),
        running_head: format!("Series: {workload}"),
        width: text::WIDTH,
        state: State { of: "Series".to_string(), word, tone },
        basis: format!(
            "a step of 5% at least, at p = {STEP_P}, against loads that grow steadily, repeat each week, or resemble \
             the report before"
        ),
        reasons: unseen(&series).into_iter().filter(|_| changes.is_empty()).collect(),
        headline: Vec::new(),
        sections,
        summary: Summary { subject: workload.to_string(), lines: lines.collect(), facts: Vec::new() },
        footer: format!("plumb {plumb_version}"),
        data: data(members, &changes),
    }
}

/// A step that readers want to be told of, per cent.
const SOUGHT: f64 = 15.0;

/// Says how many reports a step of [`SOUGHT`] takes, if these are too few.
fn unseen(series: &[f64]) -> Option<String> {
    let needed = reports_for(series, (SOUGHT / 100.0).ln_1p()).filter(|needed| *needed > series.len())?;
    Some(format!("a step of {SOUGHT}% takes about {needed} reports like these {} to show", series.len()))
}

/// Returns the reports with their load, and the changes with their parts, as JSON.
fn data(members: &[Member<'_>], changes: &[ChangePoint]) -> String {
    let report = |member: &Member<'_>| {
        let begin = &member.record.header.begin_time;
        json!({ "file": member.name, "begin": begin, "active_sessions": sessions(member.record) })
    };
    let change = |at: usize| {
        let [before, after] = around(members, changes, at);
        let part = |part: &Moved| json!({ "name": part.name, "before": part.before, "after": part.after });
        let parts = moved(&members[before], &members[after]).iter().map(part).collect::<Vec<_>>();
        let ratio = changes[at].shift.exp();
        json!({ "first_report": changes[at].index + 1, "ratio": ratio, "parts": parts })
    };
    let reports = members.iter().map(report).collect::<Vec<_>>();
    json!({ "reports": reports, "changes": (0..changes.len()).map(change).collect::<Vec<_>>() }).to_string()
}

/// Draws the load of each report, its means between the changes, and the parts that changed.
fn pictures(members: &[Member<'_>], changes: &[ChangePoint]) -> Vec<Drawing> {
    let x = |at: usize| (at + 1) as f64;
    let loads: Vec<f64> = members.iter().map(|member| sessions(member.record)).collect();
    let change = |at: usize| changes.iter().find(|change| change.index == at);
    let mark = |at: usize| Mark {
        x: x(at),
        y: loads[at],
        ringed: change(at).is_some(),
        // To the right is the line itself.
        side: Side::Left,
        label: change(at).map_or(String::new(), rise),
        hint: format!("report {}, {}: {:.2}", at + 1, members[at].record.header.begin_time, loads[at]),
        ..Mark::default()
    };
    let mut means = Vec::new();
    let mut start = 0;
    for end in changes.iter().map(|change| change.index).chain([members.len()]) {
        let mean = loads[start..end].iter().sum::<f64>() / (end - start).max(1) as f64;
        means.extend([start, end.max(1) - 1].map(|at| Mark { x: x(at), y: mean, ..Mark::default() }));
        start = end;
    }
    let all = 0..members.len();
    let load = vec![
        Series {
            name: "DB time".into(),
            colour: 0,
            stroke: Stroke::Line,
            marks: all.clone().map(mark).collect(),
        },
        Series { name: "mean between changes".into(), colour: 1, stroke: Stroke::Fit, marks: means },
    ];
    let parts_of: Vec<BTreeMap<String, f64>> = members.iter().map(|member| parts(member.record)).collect();
    let of_part = |(colour, name): (usize, String)| {
        // More captured than there was leaves less than nothing, which has no place on the axis.
        let point = |at: usize| {
            let y = Some(parts_of[at].get(&name).copied().unwrap_or(0.0)).filter(|y| *y >= 0.0)?;
            let hint = format!("report {}: {y:.2} of {name}", at + 1);
            Some(Mark { x: x(at), y, hint, ..Mark::default() })
        };
        let marks = all.clone().filter_map(point).collect();
        let name = name.chars().take(LEGEND_MOST).collect();
        Series { name, colour, stroke: Stroke::Line, marks }
    };
    let parts: Vec<Series> = (2..).zip(drawn(members, changes)).map(of_part).collect();
    let plot = |title: &str, series: Vec<Series>| {
        let highest = series.iter().flat_map(|series| &series.marks).map(|mark| mark.y).fold(0.0, f64::max);
        Drawing::Plot(Plot {
            title: title.to_string(),
            x: Axis::linear("report", members.len() as f64, short_count),
            y: Axis::linear("average active sessions", highest, short_count),
            series,
        })
    };
    let load = plot("Load of each report; a ring marks the first one after a change", load);
    let parts = (!parts.is_empty()).then(|| plot("The parts of DB time that changed most", parts));
    std::iter::once(load).chain(parts).collect()
}

/// Returns the parts that changed most, over all changes.
fn drawn(members: &[Member<'_>], changes: &[ChangePoint]) -> Vec<String> {
    let mut sizes: BTreeMap<String, f64> = BTreeMap::new();
    for at in 0..changes.len() {
        let [before, after] = around(members, changes, at);
        for part in moved(&members[before], &members[after]) {
            let size = sizes.entry(part.name).or_default();
            *size = size.max((part.after - part.before).abs());
        }
    }
    let mut names: Vec<(String, f64)> = sizes.into_iter().collect();
    names.sort_by(|one, two| two.1.total_cmp(&one.1));
    names.into_iter().take(DRAWN_MOST).map(|(name, _)| name).collect()
}

/// The change of average active sessions in per cent.
fn rise(change: &ChangePoint) -> String {
    format!("{:+.1}%", 100.0 * (change.shift.exp() - 1.0))
}

/// Returns the reports before a change, and those after it until the next one.
fn around(members: &[Member<'_>], changes: &[ChangePoint], at: usize) -> [Range<usize>; 2] {
    let index = changes[at].index;
    let start = at.checked_sub(1).map_or(0, |before| changes[before].index);
    let end = changes.get(at + 1).map_or(members.len(), |next| next.index);
    [start..index, index..end]
}

/// Average active sessions: DB time over the interval.
fn sessions(record: &Record) -> f64 {
    record.header.db_time() as f64 / record.header.elapsed_ns.max(1) as f64
}

fn sentence(members: &[Member<'_>], change: &ChangePoint) -> String {
    let begin = &members[change.index].record.header.begin_time;
    format!("{} in average active sessions from {begin} on (report {})", rise(change), change.index + 1)
}

fn reports(members: &[Member<'_>], changes: &[ChangePoint]) -> Section {
    let mut table = Table::default()
        .numbers(["#"])
        .text(["Begin"])
        .numbers(["Elapsed\n(s)", "Active\nsessions", "% CPU"])
        .column(Column::wrapped("Top event", 32))
        .numbers(["%"])
        .column(Column::wrapped("File", 40));
    for (at, member) in members.iter().enumerate() {
        let header = &member.record.header;
        let top = busy(member.record).max_by_key(|event| event.time_ns);
        let is_change = changes.iter().any(|change| change.index == at);
        let share = |ns: u64| Percent::of(ns, header.db_time()).figure();
        table.row(cells![
            format!("{}{}", if is_change { "> " } else { "" }, at + 1),
            &header.begin_time,
            Decimal(header.elapsed_ns as f64 / 1e9),
            format!("{:.2}", sessions(member.record)),
            share(header.db_cpu()),
            top.map_or("", |event| event.event.as_str()),
            top.map_or(String::new(), |event| share(event.time_ns)),
            &member.name
        ]);
    }
    Section::front("reports", "Reports in Order").note("> marks the first report after a change").table(table)
}

fn busy(record: &Record) -> impl Iterator<Item = &WaitEvent> {
    record.foreground_events.iter().filter(|event| !event.is_idle())
}

/// The parts of average active sessions: CPU, events, and the rest.
fn parts(record: &Record) -> BTreeMap<String, f64> {
    let elapsed = record.header.elapsed_ns.max(1) as f64;
    let mut parts = BTreeMap::from([(CPU.to_string(), record.header.db_cpu() as f64 / elapsed)]);
    for event in busy(record) {
        *parts.entry(event.event.clone()).or_default() += event.time_ns as f64 / elapsed;
    }
    let captured: f64 = parts.values().sum();
    parts.insert(REST.to_string(), sessions(record) - captured);
    parts
}

/// The means of each part over some reports.
fn means(members: &[Member<'_>]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for member in members {
        for (name, value) in parts(member.record) {
            *sums.entry(name).or_default() += value;
        }
    }
    sums.values_mut().for_each(|sum| *sum /= members.len().max(1) as f64);
    sums
}

/// A part with its means before and after a change.
struct Moved {
    name: String,
    before: f64,
    after: f64,
}

/// The parts of a change, the largest difference first.
fn moved(before: &[Member<'_>], after: &[Member<'_>]) -> Vec<Moved> {
    let [before, after] = [before, after].map(means);
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let of = |means: &BTreeMap<String, f64>, name: &str| means.get(name).copied().unwrap_or(0.0);
    let part =
        |name: &String| Moved { name: name.clone(), before: of(&before, name), after: of(&after, name) };
    let mut parts: Vec<Moved> = names.into_iter().map(part).collect();
    parts.sort_by(|one, two| {
        let size = |part: &Moved| (part.after - part.before).abs();
        size(two).total_cmp(&size(one))
    });
    parts
}

fn explained(members: &[Member<'_>], changes: &[ChangePoint], at: usize) -> Section {
    let change = &changes[at];
    let [before, after] = around(members, changes, at);
    let parts = moved(&members[before], &members[after]);
    let mut table = Table::default()
        .column(Column::wrapped("Part of DB time", 40))
        .numbers(["Before", "After", "Difference"])
        .with_caption("Average active sessions, means of the reports before and after");
    let row = |name: &str, before: f64, after: f64| {
        // A difference that rounds to nothing has no sign.
        let two = |value: f64| format!("{:.2}", (value * 100.0).round() / 100.0 + 0.0);
        cells![name, two(before), two(after), two(after - before)]
    };
    for part in parts.iter().take(PARTS_MOST) {
        table.row(row(&part.name, part.before, part.after));
    }
    let sum = |parts: &[Moved]| {
        parts.iter().fold((0.0, 0.0), |(before, after), part| (before + part.before, after + part.after))
    };
    if parts.len() > PARTS_MOST {
        let (before, after) = sum(&parts[PARTS_MOST..]);
        table.row(row("others", before, after));
    }
    let (before, after) = sum(&parts);
    table.push(RowKind::Total, row("DB time", before, after));
    let title = format!("Change at Report {}", change.index + 1);
    Section::front(CHANGES[at.min(CHANGES.len() - 1)], title).note(sentence(members, change)).table(table)
}

/// Anchors of the changes: an anchor is unique in a report.
const CHANGES: [&str; 12] = [
    "change-1",
    "change-2",
    "change-3",
    "change-4",
    "change-5",
    "change-6",
    "change-7",
    "change-8",
    "change-9",
    "change-10",
    "change-11",
    "change-12",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;

    /// A report of an hour with these seconds of CPU, and of two events.
    fn report(day: usize, cpu_s: u64, read_s: u64, commit_s: u64) -> Record {
        let mut record = fixture::empty();
        let second = 1_000_000_000;
        record.header.begin_time = format!("2024-05-{day:02} 10:00:00");
        record.header.elapsed_ns = 3600 * second;
        record.header.db_cpu_ns = Some(cpu_s * second);
        record.header.db_time_ns = Some((cpu_s + read_s + commit_s + 10) * second);
        let event = |name: &str, class: &str, seconds: u64| WaitEvent {
            event: name.to_string(),
            wait_class: class.to_string(),
            waits: 1000,
            time_ns: seconds * second,
            max_ns: None,
            histogram: Vec::new(),
            latency: None,
        };
        record.foreground_events = vec![
            event("db file sequential read", "User I/O", read_s),
            event("log file sync", "Commit", commit_s),
            event("SQL*Net message from client", plumb_record::IDLE_CLASS, 9_000),
        ];
        record
    }

    fn shown(records: &[Record]) -> (String, String) {
        let members: Vec<Member<'_>> =
            records.iter().map(|record| Member { name: "a.html".to_string(), record }).collect();
        let document = document(&members, "0.1.0");
        (document.state.word.clone(), text::render(&document))
    }

    #[test]
    fn a_step_is_found_and_the_event_that_made_it_stands_first() {
        let steady = |day: usize| report(day, 600 + (day as u64 * 7) % 13, 900 + (day as u64 * 5) % 17, 100);
        let before: Vec<Record> = (1..=16).map(steady).collect();
        assert_eq!(shown(&before).0, "NO STEP FOUND");
        assert_eq!(shown(&before[..5]).0, "TOO FEW REPORTS: 5 of 14");
        let slow = |day: usize| {
            let steady = steady(day);
            report(day, steady.header.db_cpu() / 1_000_000_000, 900 + (day as u64 * 5) % 17, 1_300)
        };
        let all: Vec<Record> = (1..=9).map(steady).chain((10..=18).map(slow)).collect();
        let (word, page) = shown(&all);
        assert_eq!(word, "1 CHANGE");
        let section = page.split("Change at Report 10").nth(1).expect("the change");
        let place = |name: &str| section.find(name).expect("a part");
        assert!(place("log file sync") < place("db file sequential read"), "{section}");
        // The page draws the load with a ring at the change, and a line of the event behind it.
        let members: Vec<Member<'_>> =
            all.iter().map(|record| Member { name: "a.html".to_string(), record }).collect();
        let found = document(&members, "0.1.0");
        let drawn = plumb_report::html::render(&found);
        assert!(drawn.contains("<svg") && drawn.contains("log file sync"), "{drawn}");
        let data: serde_json::Value = serde_json::from_str(&found.data).expect("JSON");
        assert_eq!(
            (&data["changes"][0]["first_report"], data["reports"].as_array().map(Vec::len)),
            (&json!(10), Some(18))
        );
        assert_eq!(data["changes"][0]["parts"][0]["name"], "log file sync");
        // 1,200 s more in an hour, and the parts sum to the whole.
        assert!(section.contains("0.33") && !section.contains("SQL*Net"), "{section}");
    }
}
