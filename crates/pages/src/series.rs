//! Reports of one database over weeks: where its load changed, and the events that explain it.
//!
//! ```text
//! records in order ──> average active sessions, as logarithms ──> change points
//! each change ──> means of CPU and of every event before and after it ──> differences that sum up
//! ```
//!
//! Time adds up in every report: CPU, the waits that it lists, and the rest. So the difference of
//! two means of active sessions is the sum of the differences of these parts.
//!
//! Limits: fewer reports than [`Search::values_needed`] cannot show a change at its level of error,
//! and a change has four reports at least on either side. Reports are taken as equally far apart.

use plumb_proof::change_point::{self, ChangePoint, Search};
use plumb_record::{Record, WaitEvent};
use plumb_report::format::{Decimal, Figure, Percent};
use plumb_report::table::{Column, RowKind, Table, Tone};
use plumb_report::{Document, Section, State, Summary, cells, text};
use std::collections::BTreeMap;
use std::ops::Range;

/// The seed of the search: the same reports give the same changes.
const SEED: u64 = 1996;
/// Parts of a change that are shown at most.
const PARTS_MOST: usize = 12;
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
#[must_use]
pub fn document(members: &[Member<'_>], plumb_version: &str) -> Document {
    let search = Search::usual(SEED);
    let loads: Vec<f64> = members.iter().map(|member| sessions(member.record)).collect();
    // A report without load has no logarithm; it is far below every other one.
    let series: Vec<f64> = loads.iter().map(|load| load.max(1e-6).ln()).collect();
    let changes = change_point::find(&series, &search);
    let needed = search.values_needed();
    let (word, tone) = match (changes.len(), members.len() < needed) {
        (0, true) => (format!("TOO FEW REPORTS: {} of {needed}", members.len()), Tone::Open),
        (0, false) => ("NO CHANGE FOUND".to_string(), Tone::Good),
        (1, _) => ("1 CHANGE".to_string(), Tone::Open),
        (count, _) => (format!("{count} CHANGES"), Tone::Open),
    };
    let workload = members.first().map_or("", |member| member.record.header.workload.as_str());
    let mut sections = vec![reports(members, &changes)];
    sections.extend((0..changes.len()).map(|at| explained(members, &changes, at)));
    let lines = changes.iter().map(|change| ("-".to_string(), sentence(members, change)));
    Document {
        title: format!("SERIES  {workload}, {} reports", members.len()),
        question: String::new(),
        running_head: format!("Series: {workload}"),
        width: text::WIDTH,
        state: State { of: "Series".to_string(), word, tone },
        basis: format!("p = {} and a change of 5% at least, by shuffles of the reports", search.p),
        reasons: Vec::new(),
        headline: Vec::new(),
        sections,
        summary: Summary { subject: workload.to_string(), lines: lines.collect(), facts: Vec::new() },
        footer: format!("plumb {plumb_version}"),
        data: serde_json::to_string(&loads).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Average active sessions: DB time over the interval.
fn sessions(record: &Record) -> f64 {
    record.header.db_time() as f64 / record.header.elapsed_ns.max(1) as f64
}

fn sentence(members: &[Member<'_>], change: &ChangePoint) -> String {
    let begin = &members[change.index].record.header.begin_time;
    format!(
        "{} in average active sessions from {begin} on (report {})",
        format_args!("{:+.1}%", 100.0 * (change.shift.exp() - 1.0)),
        change.index + 1
    )
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
fn moved(members: &[Member<'_>], before: Range<usize>, after: Range<usize>) -> Vec<Moved> {
    let [before, after] = [before, after].map(|range| means(&members[range]));
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
    let start = at.checked_sub(1).map_or(0, |before| changes[before].index);
    let end = changes.get(at + 1).map_or(members.len(), |next| next.index);
    let parts = moved(members, start..change.index, change.index..end);
    let mut table = Table::default()
        .column(Column::wrapped("Part of DB time", 40))
        .numbers(["Before", "After", "Difference"])
        .with_caption("Average active sessions, means of the reports before and after");
    let row = |name: &str, before: f64, after: f64| {
        let two = |value: f64| format!("{value:.2}");
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
        assert_eq!(shown(&before).0, "NO CHANGE FOUND");
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
        // 1,200 s more in an hour, and the parts sum to the whole.
        assert!(section.contains("0.33") && !section.contains("SQL*Net"), "{section}");
    }
}
