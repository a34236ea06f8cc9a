//! Logs of auto_explain: each entry with a plan is a span.
//!
//! A statement that a function executes is logged before the statement that called the function,
//! by the same process and within its time: it is a span below that one. A log has only the end of
//! an entry, rounded down to its last digit, so a short statement next to the start of another one
//! may be inside or before it. Such statements count as top spans, and a note says how many.
//!
//! Removed are the lines of entries; the others stay, except the durations of statements that
//! called removed ones. Figures in their plans stay as logged, because no log says which operator
//! called a statement. Operators are no spans: a plan without one of them would return other rows.
//!
//! Limits: entries without a plan stay. Of syslog, entries are known by their `#011`.

use crate::Chosen;
use crate::input::{Fault, FaultKind, Input, TEXT_MOST, has_open_quote, too_long};
use crate::rule::SpanFields;
use crate::tree::{NONE, SPANS_MOST, Span, TIME_MOST, Tree, UNKNOWN};
use plumb_foreign::figure::stamp;
use plumb_foreign::plan::LoggedStatement;
use std::collections::HashMap;
use std::io::Write;

/// Nanoseconds of a millisecond, the unit of a log.
const MS: f64 = 1e6;
/// Most statements of a process that may be below one to come.
const OPEN_MOST: usize = 10_000;

/// True if the first bytes of a file have an entry, or are those of a jsonlog.
pub(crate) fn is_log(head: &str) -> bool {
    head.contains(" ms  plan:") || head.contains("\"error_severity\"")
}

/// A part of a log: an entry with a plan, or a line that belongs to none.
#[derive(Debug, Default)]
struct Part {
    lines: Vec<u8>,
    line: u64,
    is_entry: bool,
}

/// Splits a log into its parts.
struct Parts<'a> {
    input: &'a mut Input,
    /// The line behind the current part.
    next: Vec<u8>,
}

impl Parts<'_> {
    fn next(&mut self) -> Result<Option<Part>, Fault> {
        let line = self.input.line;
        let mut lines = std::mem::take(&mut self.next);
        if lines.is_empty() && !self.input.read_line(&mut lines)? {
            return Ok(None);
        }
        let first = String::from_utf8_lossy(&lines).trim_end().to_string();
        let is_entry = LoggedStatement::begins(&first);
        let is_csv = first.contains(",LOG,");
        let mut is_open = is_csv && has_open_quote(&lines);
        // An entry of a jsonlog is a line, and one of a csvlog ends with its quotes.
        let mut may_go_on = is_entry && !first.starts_with('{') && (is_open || !is_csv);
        while may_go_on {
            let mut next = Vec::new();
            if !self.input.read_line(&mut next)? {
                match is_open {
                    true => return Err(self.input.fault(FaultKind::Cut("an entry"))),
                    false => break,
                }
            }
            if !is_csv && !next.starts_with(b"\t") && !String::from_utf8_lossy(&next).contains("#011") {
                self.next = next;
                break;
            }
            is_open ^= has_open_quote(&next);
            may_go_on = is_open || !is_csv;
            lines.append(&mut next);
            if lines.len() > TEXT_MOST {
                return Err(self.input.fault(too_long("entry")));
            }
        }
        Ok(Some(Part { lines, line, is_entry }))
    }
}

/// A statement that ended, whose caller may follow: its place, its start, and its duration.
struct Ended {
    at: u32,
    start: i64,
    duration: i64,
    /// True if the log's times do not say whether it is below another one.
    is_in_doubt: bool,
}

/// Reads the entries of a log; returns a note about statements whose caller is not known.
pub(crate) fn read(input: &mut Input, tree: &mut Tree, chosen: &mut Chosen) -> Result<Option<String>, Fault> {
    let mut parts = Parts { input, next: Vec::new() };
    let mut open: HashMap<String, Vec<Ended>> = HashMap::new();
    let (mut unplaced, mut in_doubt) = (0_u64, 0_u64);
    while let Some(Part { lines, line, is_entry }) = parts.next()? {
        if !is_entry {
            continue;
        }
        let refused = |why: &str| Fault { line, why: FaultKind::Other(why.to_string()) };
        let text = String::from_utf8_lossy(&lines);
        let logged = LoggedStatement::of(&text).ok_or_else(|| refused("the entry has no duration"))?;
        let duration = (logged.duration_ms * MS).round();
        if !(0.0..=TIME_MOST as f64 / 4.0).contains(&duration) {
            return Err(refused("the duration is negative or too long, expected milliseconds of 0 or more"));
        }
        if tree.spans.len() == SPANS_MOST {
            return Err(refused("the log has more than 50,000,000 plans; cut it by time"));
        }
        let duration = duration as i64;
        let at = tree.spans.len() as u32;
        let statement = tree.labels.statement(&logged.query);
        let top = if statement == 0 { tree.labels.of("(a plan without its statement)") } else { statement };
        let fields = SpanFields { sql: Some(logged.query.clone()), ..SpanFields::default() };
        let removed = chosen.takes(&fields);
        match (&logged.process, moment(&logged.at)) {
            (Some(process), Some((end, coarse))) => {
                let own = Ended { at, start: end - duration, duration, is_in_doubt: false };
                let before = open.entry(process.clone()).or_default();
                while let Some(last) = before.last_mut() {
                    let distance = last.start - own.start;
                    if distance < coarse - last.duration {
                        let is_close = distance > -coarse && last.duration < own.duration;
                        in_doubt += u64::from(is_close && !last.is_in_doubt);
                        last.is_in_doubt |= is_close;
                        break;
                    }
                    tree.spans[last.at as usize].parent = at;
                    before.pop();
                }
                before.push(own);
                if before.len() > OPEN_MOST {
                    before.drain(..OPEN_MOST / 2);
                }
            }
            _ => unplaced += 1,
        }
        let (start, fetches, parent) = (0, UNKNOWN, NONE);
        tree.add(Span { start, duration, fetches, parent, top, statement, executions: 1, removed }, 0, 0);
    }
    let notes = [
        (unplaced, "statements without a process or a time in the log", "none is below another one"),
        (
            in_doubt,
            "statements that may be below another one",
            "the times are too coarse, and they count as top spans",
        ),
    ];
    let notes = notes.iter().filter(|(count, ..)| *count > 0);
    let notes: Vec<String> = notes.map(|(count, what, then)| format!("{what}: {count}; {then}")).collect();
    Ok((!notes.is_empty()).then(|| notes.join("; ")))
}

/// Returns a printed moment and the length of its last digit, in nanoseconds.
fn moment(at: &str) -> Option<(i64, i64)> {
    let second = stamp::second(at)?;
    let part: String = at.split_once('.').map_or("", |(_, part)| part).chars().take(3).collect();
    let ms = part.parse::<i64>().ok().filter(|_| part.len() == 3);
    // From the year 2000 on, so that nanoseconds have room.
    let since = second.checked_sub(stamp::second("2000-01-01 00:00:00")?)?.checked_mul(1_000_000_000)?;
    let since = since.checked_add(ms.unwrap_or(0) * 1_000_000).filter(|since| since.abs() < TIME_MOST / 2)?;
    Some((since, if ms.is_some() { 1_000_000 } else { 1_000_000_000 }))
}

/// Writes a log without the removed entries.
pub(crate) fn write(input: &mut Input, tree: &Tree, to: &mut impl Write) -> Result<(), Fault> {
    let mut parts = Parts { input, next: Vec::new() };
    let mut at = 0;
    while let Some(Part { lines, is_entry, .. }) = parts.next()? {
        let mut bytes = lines;
        if is_entry {
            let span = tree.spans.get(at);
            at += 1;
            let Some(span) = span.filter(|span| !span.removed) else { continue };
            let times = tree.times[at - 1];
            if times.duration != span.duration {
                let mark = b"duration: ";
                let start =
                    bytes.windows(mark.len()).position(|part| part == mark).map_or(0, |at| at + mark.len());
                let digits = bytes[start..].iter().take_while(|byte| **byte != b' ').count();
                let new = format!("{:.3}", times.duration as f64 / MS);
                bytes.splice(start..start + digits, new.into_bytes());
            }
        }
        to.write_all(&bytes).map_err(|error| parts.input.fault(error))?;
    }
    Ok(())
}
