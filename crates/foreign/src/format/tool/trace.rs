//! Oracle's SQL trace (event 10046): waits and calls with their times.
//!
//! ```text
//! PARSING IN CURSOR #140 len=20 dep=0 uid=81 oct=3 lid=81 tim=1001 hv=1 ad='7' sqlid='8'
//! select count(*) from t
//! END OF STMT
//! EXEC #140:c=0,e=45,p=0,cr=0,cu=0,mis=0,r=0,dep=0,og=1,plh=0,tim=1100
//! WAIT #140: nam='db file sequential read' ela= 812 file#=4 block#=130 blocks=1 obj#=7 tim=2000
//! ```
//!
//! Times are microseconds from release 9 on. A wait stands before the call that it belongs to.
//! Waits for the client stand between calls. The end of the last line is the end of the trace.

use super::lines::seconds_cell;
use crate::figure::check::{Rule, Sides};
use crate::figure::rounding::{nanoseconds, whole};
use crate::figure::sheet::{Figure, Printed, Remark, Sheet, added};
use crate::format::sections::table;
use crate::reader::{Begins, CELLS_MOST, Fill, Reader};
use crate::report::Report;
use crate::source::SourcePart;
use plumb_events::Event;
use plumb_record::{Consistency, IDLE_CLASS, ImportedFact, Record, WaitEvent};
use plumb_units::ValueRange;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The reader of SQL traces as text.
pub(super) const READER: Reader = Reader::new("SQL trace", Begins::Ranges(range), read)
    .checked(checks)
    .filling(|_| Vec::new(), Fill::With(fill));

const CALL_NAMES: [&str; 6] = ["PARSE", "EXEC", "FETCH", "CLOSE", "UNMAP", "SORT UNMAP"];

/// A wait: its cursor, its event, and the text behind it.
fn wait(line: &str) -> Option<(&str, &str, &str)> {
    let (cursor, rest) = line.strip_prefix("WAIT #")?.split_once(": nam='")?;
    let (event, rest) = rest.split_once('\'')?;
    Some((cursor, event, rest))
}

/// A call: its name, its cursor, and the text behind it.
fn call(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once(" #")?;
    let (cursor, rest) = rest.split_once(':')?;
    (CALL_NAMES.contains(&name) && rest.contains("e=")).then_some((name, cursor, rest))
}

fn range(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let is_own = |line: &str| {
        line.starts_with(['W', 'P', 'E', 'F', 'C'])
            && (wait(line).is_some() || call(line).is_some() || line.starts_with("PARSING IN CURSOR #"))
    };
    let mut own = part.lines().enumerate().filter(|(_, (_, line))| is_own(line)).map(|(at, _)| at);
    let Some(first) = own.next() else { return Vec::new() };
    let last = own.last().unwrap_or(first);
    // The head of the trace stands above its first line.
    let is_head = |line: &str| line.starts_with("Trace file") || line.starts_with("*** ");
    let head = part.lines().take(first).position(|(_, line)| is_head(line));
    std::iter::once(head.unwrap_or(first)..last + 1).collect()
}

/// The value of `name=` in a text; blanks may stand before it.
fn value<'t>(text: &'t str, name: &str) -> &'t str {
    let ends = |at: usize| text[..at].ends_with([' ', ',']) || at == 0;
    let found =
        text.match_indices(name).find(|(at, _)| ends(*at) && text[at + name.len()..].starts_with('='));
    let Some((at, _)) = found else { return "" };
    let rest = text[at + name.len() + 1..].trim_start();
    &rest[..rest.find([' ', ',']).unwrap_or(rest.len())]
}

fn read(part: &SourcePart<'_>) -> Report {
    let (mut report, mut waits, mut calls) =
        (Report::default(), table("trace_waits", part.first_line()), table("trace_calls", part.first_line()));
    let mut is_statement = false;
    for (line, text) in part.lines() {
        let printed = |raw: &str| Printed { raw: raw.to_string(), line };
        if let Some((cursor, event, rest)) = wait(text) {
            let figures = ["ela", "blocks", "tim"].map(|name| printed(value(rest, name)));
            waits.push(line, [printed(cursor), printed(event)].into_iter().chain(figures).collect());
        } else if let Some((name, cursor, rest)) = call(text) {
            let figures =
                ["c", "e", "p", "cr", "cu", "r", "dep", "tim"].map(|name| printed(value(rest, name)));
            calls.push(line, [printed(cursor), printed(name)].into_iter().chain(figures).collect());
        } else if text.starts_with("PARSING IN CURSOR #") || text == "END OF STMT" {
            is_statement = text != "END OF STMT";
        } else if let Some((name, text)) = fact(text) {
            report.facts.push(ImportedFact { name: name.to_string(), text: text.to_string(), line });
        } else if !is_statement && !is_known(text) {
            report.unread.push(Remark { line, text: plumb_units::cut(text, 200).into_owned() });
        } else if !text.trim_matches('=').is_empty() {
            report.skipped.push(line);
        }
        let cells = waits.rows.len() * waits.columns.len() + calls.rows.len() * calls.columns.len();
        if cells > CELLS_MOST {
            break;
        }
    }
    report.run.title = "SQL TRACE".to_string();
    let workload = report.facts.iter().find(|fact| fact.name == "MODULE NAME");
    report.run.workload = workload.map_or("SQL trace", |fact| fact.text.as_str()).to_string();
    report.run.elapsed = length(&waits, &calls).map(|seconds| seconds_cell(seconds, 1e-6, part.first_line()));
    report.sheets.extend([waits, calls].into_iter().filter(|sheet| !sheet.rows.is_empty()));
    report
}

/// A fact of the head: `*** MODULE NAME:(x)`, `Node name: host`, `Instance name: ORCL`.
fn fact(text: &str) -> Option<(&str, &str)> {
    const FACTS: [&str; 6] =
        ["Trace file", "System name", "Node name", "Release", "Instance name", "ORACLE_HOME"];
    if let Some(marked) = text.strip_prefix("*** ") {
        let (name, value) = marked.split_once(":(")?;
        return Some((name, value.split(')').next().unwrap_or("")));
    }
    FACTS.iter().find_map(|name| {
        let rest = text.strip_prefix(name)?.trim_start_matches([' ', '\t', ':', '=']);
        Some((*name, rest))
    })
}

/// Lines that have no time, or one that others have too.
fn is_known(text: &str) -> bool {
    const STARTS: [&str; 12] = [
        "STAT #",
        "XCTEND",
        "*** ",
        "BINDS #",
        " Bind#",
        "  oac",
        "  value",
        "=====",
        "CLOSE #",
        "LOBREAD",
        "PARSE ERROR",
        "Oracle",
    ];
    text.trim().is_empty() || STARTS.iter().any(|start| text.starts_with(start))
}

/// Seconds from the start of the first line with a time to the last one.
fn length(waits: &Sheet, calls: &Sheet) -> Option<f64> {
    let ends = |sheet: &Sheet| -> Vec<(f64, f64)> {
        let row = |row| Some((sheet.figure(row, "at")?.value, sheet.figure(row, "time")?.value));
        sheet.rows.iter().filter_map(row).collect()
    };
    let all: Vec<(f64, f64)> = [waits, calls].into_iter().flat_map(ends).collect();
    let begin = all.iter().map(|(at, time)| at - time).fold(f64::INFINITY, f64::min);
    let end = all.iter().map(|(at, _)| *at).fold(f64::NEG_INFINITY, f64::max);
    Some(end - begin).filter(|seconds| *seconds > 0.0 && seconds.is_finite())
}

const CPU: Rule =
    Rule::new("CPU <= elapsed", "c <= e of a call; c is counted in ticks of 10 ms, and e is exact");
const WITHIN: Rule =
    Rule::new("waits <= elapsed", "sum of the waits of a cursor since its last call <= e of the call");

/// True of a wait for the client, which stands between calls.
fn is_idle(event: &str) -> bool {
    event.starts_with("SQL*Net message from client")
}

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    let mut waited: HashMap<&str, Vec<Figure>> = HashMap::new();
    let mut waits = report.rows("trace_waits").peekable();
    for (sheet, row) in report.rows("trace_calls") {
        let Some(time) = sheet.figure(row, "time") else { continue };
        while let Some((waits_sheet, wait)) = waits.next_if(|(_, wait)| wait.cells[0].line < time.line) {
            let figure =
                waits_sheet.figure(wait, "time").filter(|_| !is_idle(waits_sheet.text(wait, "event")));
            waited.entry(waits_sheet.text(wait, "cursor")).or_default().extend(figure);
        }
        let (cursor, name) = (sheet.text(row, "cursor"), sheet.text(row, "call"));
        let of = format!("{name} #{cursor}, line {}", time.line);
        if let Some(cpu) = sheet.figure(row, "cpu") {
            let most = ValueRange { high: time.range.high + 0.01, ..time.range };
            let sides = Sides { expected: most, found: cpu.range, unit: "s" };
            checks.push(CPU.at_most(&of, sides, &[&cpu, &time]));
        }
        let own = waited.remove(cursor).unwrap_or_default();
        if !own.is_empty() {
            let found = added(&own);
            let figures: Vec<&Figure> = own.iter().chain([&time]).collect();
            let sides = Sides { expected: time.range, found, unit: "s" };
            checks.push(WITHIN.at_most(&of, sides, &figures));
        }
    }
    checks
}

fn fill(report: &Report, record: &mut Record) {
    let mut events: BTreeMap<&str, (u64, f64, f64)> = BTreeMap::new();
    for (sheet, row) in report.rows("trace_waits") {
        let Some(time) = sheet.figure(row, "time") else { continue };
        let (waits, sum, most) = events.entry(sheet.text(row, "event")).or_default();
        (*waits, *sum, *most) = (*waits + 1, *sum + time.value, most.max(time.value));
    }
    let event = |(event, (waits, sum, most)): (&str, (u64, f64, f64))| {
        let known = Event::ALL.iter().find(|own| own.name() == event).map(|event| event.class().name());
        WaitEvent {
            event: event.to_string(),
            wait_class: if is_idle(event) { IDLE_CLASS } else { known.unwrap_or("Other") }.to_string(),
            waits,
            time_ns: nanoseconds(sum),
            max_ns: Some(nanoseconds(most)),
            histogram: Vec::new(),
            latency: None,
        }
    };
    record.foreground_events = events.into_iter().map(event).collect();
    // Calls of other calls are part of them.
    let outer =
        || report.rows("trace_calls").filter(|(sheet, row)| matches!(sheet.text(row, "depth"), "" | "0"));
    let sum = |key: &str| {
        outer().filter_map(|(sheet, row)| sheet.figure(row, key)).map(|one| one.value).sum::<f64>()
    };
    record.header.db_time_ns = Some(whole(sum("time") * 1e9));
    record.header.db_cpu_ns = Some(whole(sum("cpu") * 1e9));
}
