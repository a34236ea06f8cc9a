//! Requests at a block device, one a line: iosnoop and biosnoop.
//!
//! iosnoop of DTrace prints `STRTIME DEVICE MAJ MIN DELTA UID PID D BLOCK SIZE PATHNAME ARGS`,
//! times in microseconds, blocks of 512 bytes. biosnoop of bcc prints seconds since its start,
//! sectors, and milliseconds; biosnoop.bt has no sizes. iosnoop of perf-tools prints `COMM PID TYPE
//! DEV BLOCK BYTES LATms`, with stamps only if asked. A page of the web may put all rows of iosnoop
//! on one line: it is cut where a date begins.

use super::lines::{self, Between, LineFormat, LineTable, seconds_between, seconds_cell};
use super::{derived, quotient};
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Sheet, SheetRow};
use crate::figure::shown::scaled;
use crate::format::sections::with_columns;
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::bound::REQUEST_RATE_MOST;
use plumb_record::{Consistency, Consistent, ImportedFigure};
use plumb_units::ValueRange;
use std::collections::BTreeMap;
use std::ops::Range;

/// The readers of both tools.
pub(super) const READERS: [Reader; 2] = [
    Reader::new("iosnoop on one line", Begins::Ranges(on_one_line), of_one_line)
        .checked(checks)
        .filling(figures, Fill::Derived),
    Reader::new("requests of a device", Begins::Ranges(|part| lines::ranges(part, &SNOOP)), |part| {
        ended(lines::read(part, &SNOOP))
    })
    .checked(checks)
    .filling(figures, Fill::Derived),
];

static SNOOP: LineFormat = LineFormat {
    tables: &[
        LineTable {
            section: "requests",
            between: Between::Blanks,
            needs: &["STRTIME", "BLOCK", "SIZE"],
            loose: "STRTIME",
        },
        LineTable {
            section: "requests",
            between: Between::Blanks,
            needs: &["COMM", "PID", "LAT(ms)"],
            loose: "COMM",
        },
        LineTable {
            section: "requests",
            between: Between::Blanks,
            needs: &["COMM", "PID", "BYTES", "LATms"],
            loose: "COMM",
        },
    ],
    pairs: "",
    aside: |_, text, _| {
        let begins = ["#", "Tracing ", "Attaching ", "Ending tracing"];
        begins.iter().any(|head| text.trim_start().starts_with(head)) || text.contains("iosnoop")
    },
    stamped: false,
};

/// The headings of iosnoop. Options leave some of them out.
const HEADINGS: [&str; 13] = [
    "STRTIME", "DEVICE", "INS", "MAJ", "MIN", "DELTA", "UID", "PID", "D", "BLOCK", "SIZE", "PATHNAME", "ARGS",
];

/// Splits a line with a head and rows behind it; `None` if it has no such head.
fn head_and_rows(line: &str) -> Option<(Vec<&str>, &str)> {
    let mut rest = &line[line.find("STRTIME DEVICE ")?..];
    let mut names = Vec::new();
    loop {
        let behind = rest.trim_start();
        let end = behind.find(' ').unwrap_or(behind.len());
        if !HEADINGS.contains(&&behind[..end]) {
            break;
        }
        names.push(&behind[..end]);
        rest = &behind[end..];
    }
    let is_head = ["BLOCK", "SIZE"].iter().all(|needed| names.contains(needed)) && !rest.trim().is_empty();
    is_head.then_some((names, rest))
}

fn on_one_line(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let own = part.lines().enumerate().filter(|(_, (_, line))| head_and_rows(line).is_some());
    own.map(|(at, _)| at..at + 1).collect()
}

/// Reads rows that stand behind their head on one line, each from a date such as
/// `2009 May 27 11:42:56` to the next one.
fn of_one_line(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    for (line, text) in part.lines() {
        let Some((names, rows)) = head_and_rows(text) else { continue };
        let mut sheet = with_columns("requests", line, names.iter().copied());
        let words: Vec<&str> = rows.split_whitespace().collect();
        let begins = |at: usize| {
            let is = |at: usize, is_it: fn(&str) -> bool| words.get(at).is_some_and(|word| is_it(word));
            is(at, |word| word.len() == 4 && word.starts_with("20"))
                && is(at + 1, |word| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_alphabetic()))
                && is(at + 3, |word| word.matches(':').count() == 2)
        };
        for at in (0..words.len()).filter(|at| begins(*at)) {
            // A date has four words. The last row may be cut off.
            let Some(row) = words.get(at..at + names.len() + 3) else { continue };
            let cells = std::iter::once(row[..4].join(" ")).chain(row[4..].iter().map(ToString::to_string));
            sheet.push(line, cells.map(|raw| Printed { raw, line }).collect());
        }
        report.sheets.extend((!sheet.rows.is_empty()).then_some(sheet));
    }
    ended(report)
}

fn ended(mut report: Report) -> Report {
    report.run.title = "REQUESTS OF A DEVICE".to_string();
    let Some(sheet) = report.sheets.first() else { return report };
    let (Some(first), Some(last)) = (sheet.rows.first(), sheet.rows.last()) else { return report };
    let second = |row: &SheetRow| sheet.figure(row, "second").map(|figure| figure.value);
    let by_stamp = || seconds_between(sheet.rows.iter().map(|row| sheet.text(row, "begin")));
    let seconds = match (second(first), second(last)) {
        (Some(first), Some(last)) => Some(last - first).filter(|seconds| *seconds > 0.0),
        _ => by_stamp(),
    };
    let [begin, end] = [first, last].map(|row| sheet.text(row, "begin").to_string());
    report.run.elapsed = seconds.map(|seconds| seconds_cell(seconds, 1.0, sheet.line));
    report.run.workload = sheet.text(first, "program").to_string();
    (report.run.begin, report.run.end) = (begin, end);
    answer(&mut report);
    report
}

/// Programs and directions that figures are derived of.
const KINDS_MOST: usize = 1000;
/// Programs and directions that the first lines answer for.
const ANSWERS_MOST: usize = 4;

/// Says of the programs with most requests how many they made, and of which time and size.
fn answer(report: &mut Report) {
    let figures = figures(report);
    let mut kinds: Vec<(String, f64)> = Vec::new();
    for figure in &figures {
        kinds.extend(figure.name.strip_suffix(": requests").map(|kind| (kind.to_string(), figure.value)));
    }
    kinds.sort_by(|one, two| two.1.total_cmp(&one.1));
    for (kind, count) in kinds.into_iter().take(ANSWERS_MOST) {
        let parts = [("mean", "time of a request"), ("size", "size of a request")];
        let aside = parts.iter().filter_map(|(name, what)| {
            let figure = figures.iter().find(|figure| figure.name == format!("{kind}: {what}"))?;
            Some(format!("{name} {}", scaled(figure.value, &figure.unit)))
        });
        let aside = aside.collect::<Vec<_>>().join(", ");
        report.answer(&kind, format!("{count} requests"), aside);
    }
}

const SECTOR: Rule = Rule::new(
    "whole sectors",
    "size of a request / 512 bytes is a whole number, because a device moves whole sectors",
);
const POSSIBLE: Rule = Rule::new(
    "a request is possible",
    "size of a request / its time <= 20 GB/s, more than any device or link moves",
);

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("requests") {
        let Some(size) = sheet.figure(row, "size").filter(|size| size.value > 0.0) else { continue };
        let of = format!("{} at {}", sheet.text(row, "direction"), sheet.text(row, "sector"));
        let rest = ValueRange::exactly(size.value % 512.0);
        let sides = Sides { expected: ValueRange::exactly(0.0), found: rest, unit: "bytes" };
        checks.push(SECTOR.meets(&of, sides, &[&size]));
        if let Some(time) = sheet.figure(row, "time") {
            let found = ValueRange { low: size.range.low / time.range.high, high: f64::MAX };
            let expected = ValueRange { low: 0.0, high: REQUEST_RATE_MOST };
            let is_possible = found.may_be_at_most(expected);
            let outcome = if is_possible { Consistent::Holds } else { Consistent::Impossible };
            let sides = Sides { expected, found, unit: "bytes/s" };
            checks.push(POSSIBLE.judged(&of, sides, &[&size, &time], outcome));
        }
    }
    checks
}

/// Counts, sizes, times and the pattern of the requests of each direction and program.
fn figures(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for sheet in report.sheets_of("requests") {
        let mut kinds: BTreeMap<(&str, &str), Vec<&SheetRow>> = BTreeMap::new();
        for row in &sheet.rows {
            let kind = (sheet.text(row, "program"), sheet.text(row, "direction"));
            kinds.entry(kind).or_default().push(row);
        }
        for ((program, direction), own) in kinds.into_iter().take(KINDS_MOST) {
            // DTrace prints the end of a name that fills its field.
            let kind = format!("{} {direction}", program.trim_end_matches("\\0"));
            let of = |what: &str| format!("{}: {what}", kind.trim());
            let all =
                |key: &str| -> Vec<Figure> { own.iter().filter_map(|row| sheet.figure(row, key)).collect() };
            let [sizes, times] = ["size", "time"].map(all);
            let one = |figures: &[Figure]| -> Vec<Figure> {
                let exactly = |figure: &Figure| Figure {
                    range: ValueRange::exactly(1.0),
                    value: 1.0,
                    ..figure.clone()
                };
                figures.iter().map(exactly).collect()
            };
            let Some(line) = sizes.first().or(times.first()).map(|figure| figure.line) else { continue };
            let count = own.len() as f64;
            found.extend(derived(of("requests"), "", line, count, ValueRange::exactly(count)));
            found.extend(quotient(of("size of a request"), "bytes", [&sizes, &one(&sizes)]));
            found.extend(quotient(of("time of a request"), "s", [&times, &one(&times)]));
            found.extend(patterns(
                sheet,
                &own,
                [&of("next to the one before"), &of("at the place of the one before")],
            ));
        }
    }
    found
}

/// The numbers of requests that append to the one before them, and that begin where it began.
fn patterns(sheet: &Sheet, own: &[&SheetRow], names: [&str; 2]) -> Vec<ImportedFigure> {
    let at = |row: &SheetRow| Some((sheet.figure(row, "sector")?, sheet.figure(row, "size")?.value / 512.0));
    let pairs: Vec<(Figure, f64, f64)> = own
        .windows(2)
        .filter_map(|pair| {
            let ((first, sectors), (next, _)) = (at(pair[0])?, at(pair[1])?);
            let step = next.value - first.value;
            Some((first, sectors, step))
        })
        .collect();
    let Some(line) = pairs.first().map(|(figure, ..)| figure.line) else { return Vec::new() };
    let appended = pairs.iter().filter(|(_, sectors, step)| sectors == step).count() as f64;
    let repeated = pairs.iter().filter(|(.., step)| *step == 0.0).count() as f64;
    [(names[0], appended), (names[1], repeated)]
        .into_iter()
        .filter_map(|(name, count)| derived(name.to_string(), "", line, count, ValueRange::exactly(count)))
        .collect()
}
