//! Output of DTrace, and the time of a command as a shell prints it.
//!
//! ```text
//! 1 -> ufs_write 0 1 -> ufs_lockfs_begin 0 1 <- ufs_lockfs_begin 135 1 <- ufs_write 3894
//! dtrace: script './mean.d' matched 2 probes ^C oracle 3932139
//! real 1:48.09 user 11.03 sys 1.62
//! ```
//!
//! A flow of calls has a processor, an arrow, a function, and at a return the microseconds since
//! its entry. It may be on one line, as a page of the web shows it, or a call a line. Times of a
//! function include the functions that it calls.
//!
//! Limit: an aggregation has no unit; only its script says it.

use super::derived;
use super::lines::seconds_cell;
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Sheet, SheetRow, added};
use crate::format::sections::table;
use crate::reader::{Begins, CELLS_MOST, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::is_number;
use plumb_record::{Consistency, ImportedFigure};
use plumb_units::ValueRange;
use std::ops::Range;

/// The readers of the three forms.
pub(super) const READERS: [Reader; 3] = [
    Reader::new("flow of calls", Begins::Ranges(flows), flow).checked(nested).filling(longest, Fill::Nothing),
    Reader::new(
        "aggregation of DTrace",
        Begins::Ranges(|part| matching(part, |line| aggregates(line).is_some())),
        aggregation,
    ),
    Reader::new(
        "time of a command",
        Begins::Ranges(|part| matching(part, |line| times(line).is_some())),
        timed,
    )
    .filling(shares, Fill::Derived),
];

/// Fewest calls of a flow.
const CALLS_LEAST: usize = 4;
/// Most calls of a flow that are kept.
const CALLS_MOST: usize = CELLS_MOST / 4;
/// Most calls within calls; deeper ones are left out.
const DEPTH_MOST: usize = 256;

/// Returns each line that has a form, as a range of its own.
fn matching(part: &SourcePart<'_>, has: fn(&str) -> bool) -> Vec<Range<usize>> {
    part.lines().enumerate().filter(|(_, (_, line))| has(line)).map(|(at, _)| at..at + 1).collect()
}

/// An entry to a function, or its return with a time.
struct Step<'l> {
    is_entry: bool,
    function: &'l str,
    time: &'l str,
}

/// Returns the steps of a line.
fn steps(line: &str) -> Vec<Step<'_>> {
    if !line.contains("-> ") && !line.contains("<- ") {
        return Vec::new();
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_count = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let step = |four: &[&'_ str]| {
        let [cpu, arrow, function, time] = four else { return false };
        is_count(cpu) && ["->", "<-"].contains(arrow) && !is_count(function) && is_count(time)
    };
    let found = words.windows(4).filter(|four| step(four));
    found.map(|four| Step { is_entry: four[1] == "->", function: four[2], time: four[3] }).collect()
}

/// Returns the ranges of adjacent lines with steps.
fn flows(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let mut found: Vec<(Range<usize>, usize)> = Vec::new();
    for (at, (_, line)) in part.lines().enumerate() {
        let count = steps(line).len();
        match found.last_mut().filter(|(range, _)| range.end == at) {
            Some((range, all)) if count > 0 => (range.end, *all) = (at + 1, *all + count),
            _ if count > 0 => found.push((at..at + 1, count)),
            _ => {}
        }
    }
    found.into_iter().filter(|(_, count)| *count >= CALLS_LEAST).map(|(range, _)| range).collect()
}

/// Reads a flow: a row a call in the order of the entries, with the time of its return.
fn flow(part: &SourcePart<'_>) -> Report {
    let mut calls: Vec<(u32, Vec<Printed>)> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (line, text) in part.lines() {
        for step in steps(text) {
            let of = |raw: &str| Printed { raw: raw.to_string(), line };
            if step.is_entry && (open.len() >= DEPTH_MOST || calls.len() >= CALLS_MOST) {
                continue;
            }
            if step.is_entry {
                open.push(calls.len());
                calls.push((line, vec![of(step.function), of(&(open.len() - 1).to_string()), of("")]));
            } else if let Some(at) = open.iter().rposition(|call| calls[*call].1[0].raw == step.function) {
                calls[open[at]].1[2] = of(step.time);
                open.truncate(at);
            }
        }
    }
    let mut report = Report::default();
    report.run.title = "FLOW OF CALLS".to_string();
    let mut sheet = table("flow", part.first_line());
    calls.into_iter().for_each(|(line, cells)| sheet.push(line, cells));
    report.sheets.extend((!sheet.rows.is_empty()).then_some(sheet));
    report
}

/// A call with the figures of its time and of those that it calls itself.
struct Timed<'s> {
    row: &'s SheetRow,
    time: Figure,
    inner: Vec<Figure>,
}

/// Returns the calls that returned, in the order of their entries.
fn timed_calls(sheet: &Sheet) -> Vec<Timed<'_>> {
    let mut calls: Vec<Timed<'_>> = Vec::new();
    // The place among `calls` of the open call of each depth; a call without a return has none.
    let mut open: Vec<Option<usize>> = Vec::new();
    for row in &sheet.rows {
        let depth = sheet.figure(row, "depth").map_or(0, |depth| depth.value as usize);
        open.truncate(depth);
        let Some(time) = sheet.figure(row, "time") else {
            open.push(None);
            continue;
        };
        if let Some(outer) = open.last().copied().flatten() {
            calls[outer].inner.push(time.clone());
        }
        open.push(Some(calls.len()));
        calls.push(Timed { row, time, inner: Vec::new() });
    }
    calls
}

const NESTED: Rule = Rule::new(
    "calls within a function <= the function",
    "times of the calls that a function makes sum to no more than its own time",
);

fn nested(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("flow") {
        for call in timed_calls(sheet).iter().filter(|call| !call.inner.is_empty()) {
            let sides = Sides { expected: call.time.range, found: added(&call.inner), unit: "s" };
            let figures: Vec<&Figure> = call.inner.iter().chain([&call.time]).collect();
            checks.push(NESTED.at_most(sheet.text(call.row, "function"), sides, &figures));
        }
    }
    checks
}

/// Returns the time of each outermost call, and the function below it whose own time is longest.
fn longest(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for sheet in report.sheets_of("flow") {
        let calls = timed_calls(sheet);
        let own = |call: &Timed<'_>| {
            let inner: f64 = call.inner.iter().map(|figure| figure.value).sum();
            (call.time.value - inner).max(0.0)
        };
        let is_outermost = |call: &Timed<'_>| sheet.text(call.row, "depth") == "0";
        let begins: Vec<usize> = (0..calls.len()).filter(|at| is_outermost(&calls[*at])).collect();
        for (number, begin) in begins.iter().enumerate() {
            let end = begins.get(number + 1).copied().unwrap_or(calls.len());
            let outer = &calls[*begin];
            let name = sheet.text(outer.row, "function");
            let (line, time) = (outer.time.line, &outer.time);
            found.extend(derived(format!("{name}: time"), "s", line, time.value, time.range));
            let most = calls[*begin..end].iter().max_by(|one, two| own(one).total_cmp(&own(two)));
            let Some(most) = most.filter(|_| time.value > 0.0) else { continue };
            let (whole, inner) = (most.time.range, added(&most.inner));
            let range = ValueRange { low: (whole.low - inner.high).max(0.0), high: whole.high - inner.low };
            let share = range.over(time.range).map(|share| share.times(ValueRange::exactly(100.0)));
            let of = format!("{}: own share of {name}", sheet.text(most.row, "function"));
            let value = 100.0 * own(most) / time.value;
            found.extend(share.and_then(|share| derived(of, "%", line, value, share)));
        }
    }
    found
}

/// Returns the pairs behind `matched 2 probes ^C`.
fn aggregates(line: &str) -> Option<Vec<(&str, &str)>> {
    let (_, rest) = line.split_once("dtrace: script")?.1.split_once("matched")?;
    let words: Vec<&str> = rest.split_whitespace().skip(2).filter(|word| *word != "^C").collect();
    let pairs: Vec<(&str, &str)> = words
        .chunks_exact(2)
        .map(|pair| (pair[0], pair[1]))
        .take_while(|(_, value)| is_number(value))
        .collect();
    (!pairs.is_empty()).then_some(pairs)
}

fn aggregation(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    report.run.title = "AGGREGATION OF DTRACE".to_string();
    for (line, text) in part.lines() {
        let mut sheet = table("aggregates", line);
        for (name, value) in aggregates(text).unwrap_or_default() {
            sheet.push(line, [name, value].map(|raw| Printed { raw: raw.to_string(), line }).to_vec());
        }
        report.sheets.extend((!sheet.rows.is_empty()).then_some(sheet));
    }
    report
}

/// Returns the times behind `real`, `user` and `sys`, which follow each other.
fn times(line: &str) -> Option<[&str; 3]> {
    // A cheap test first, because most lines are others.
    let (_, rest) = line.split_once("real ")?;
    let words: Vec<&str> = rest.split_whitespace().take(5).collect();
    let [real, "user", user, "sys", sys] = words.as_slice() else { return None };
    [real, user, sys].iter().all(|time| plumb_figures::is_figure(time)).then_some([*real, *user, *sys])
}

fn timed(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    report.run.title = "TIME OF A COMMAND".to_string();
    for (line, text) in part.lines() {
        let Some(found) = times(text) else { continue };
        let mut sheet = table("command_times", line);
        sheet.push(line, found.map(|raw| Printed { raw: raw.to_string(), line }).to_vec());
        let real = sheet.figure(&sheet.rows[0], "real");
        report.run.elapsed = real.map(|real| seconds_cell(real.value, real.range.high - real.value, line));
        report.sheets.push(sheet);
    }
    report
}

/// Returns the elapsed time, and the share of it that the command computed.
fn shares(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for (sheet, row) in report.rows("command_times") {
        let all = ["real", "user", "sys"].map(|key| sheet.figure(row, key));
        let [Some(real), Some(user), Some(sys)] = all else { continue };
        found.extend(derived("elapsed".to_string(), "s", real.line, real.value, real.range));
        let cpu = user.range.plus(sys.range);
        let share = cpu.over(real.range).map(|share| share.times(ValueRange::exactly(100.0)));
        let value = 100.0 * (user.value + sys.value) / real.value;
        found.extend(
            share.and_then(|share| derived("CPU of elapsed".to_string(), "%", real.line, value, share)),
        );
    }
    found
}
