//! Entries of a server's log: the time, the duration and the statement above each plan.
//!
//! ```text
//! stderr    2026-01-01 10:00:00 UTC [4711] LOG:  duration: 1.3 ms  plan:
//!               Query Text: select 1            tabs before all lines but the first
//! syslog    the same, with the number of the line before each, and #011 for a tab
//! csvlog    the message is a field in quotes, with line ends
//! jsonlog   a line an entry, with the message as a string
//! ```
//!
//! [`unpacked`] makes the first form of the others, so that the readers of plans know only that.

use super::postgres::elapsed;
use plumb_findings::plans::LoggedPlan;
use plumb_record::plan::ExecutionPlan;
use std::borrow::Cow;

/// Most letters of a statement that are kept.
const QUERY_MOST: usize = 4000;
/// End of the first line of an entry.
const PLAN: &str = " ms  plan:";
/// Field of a csvlog with the message.
const MESSAGE: usize = 13;

/// The lines of a log above a plan.
#[derive(Debug, Default)]
pub(super) struct LogEntry {
    pub at: String,
    pub duration_ms: Option<f64>,
    pub query: Option<String>,
}

impl LogEntry {
    /// Takes the first line of an entry; true if a plan above it has ended.
    pub fn takes(&mut self, text: &str) -> bool {
        let logged = text.trim_end().strip_suffix(PLAN).and_then(|text| text.split_once("duration: "));
        let Some((head, duration)) = logged else {
            return match text.strip_prefix("Query Text: ") {
                Some(query) => {
                    self.query = Some(query.trim().to_string());
                    true
                }
                None => false,
            };
        };
        // syslog has a time of its own before that of the server.
        let words: Vec<&str> = head.split_whitespace().collect();
        let is_date = |word: &&str| {
            word.len() >= 10 && word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('-')
        };
        let date = words.iter().rposition(is_date).unwrap_or(words.len());
        let at = words[date..]
            .iter()
            .take(2)
            .filter(|word| word.contains(['-', ':']))
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        *self = LogEntry { at, duration_ms: milliseconds(duration), query: None };
        true
    }

    /// Takes a further line of the statement.
    pub fn goes_on(&mut self, text: &str) {
        let is_of_query = |query: &&mut String| {
            query.len() < QUERY_MOST && !text.trim_start().starts_with("Query Parameters: ")
        };
        if let Some(query) = self.query.as_mut().filter(is_of_query) {
            query.push(' ');
            query.push_str(text.trim());
        }
    }

    /// Returns the entry with the hash of another one's plan.
    pub fn logged(self, plan: &LoggedPlan) -> LoggedPlan {
        let seconds = self.duration_ms.map_or(0.0, |ms| elapsed(ms).value);
        let (hash, first) = (plan.hash.clone(), plan.first.clone());
        LoggedPlan { at: self.at, query: self.query.unwrap_or_default(), seconds, hash, first }
    }

    pub fn is_logged(&self) -> bool {
        self.duration_ms.is_some() || self.query.is_some()
    }

    /// Gives a plan what is known of its statement.
    pub fn give(self, plan: &mut ExecutionPlan) {
        let fact = |name: &str| plan.fact(name).and_then(milliseconds);
        let ms = fact("Execution Time").or_else(|| fact("Total runtime")).or(self.duration_ms);
        plan.elapsed = ms.map(elapsed);
        plan.at = self.at;
        plan.query.push_str(&self.query.unwrap_or_default());
    }
}

/// True for the first line of an entry with a plan.
pub(super) fn begins(line: &str) -> bool {
    (line.ends_with(PLAN) || line.starts_with('{') && line.contains(PLAN)) && line.contains("duration: ")
}

fn milliseconds(text: &str) -> Option<f64> {
    text.split(' ').next()?.parse::<f64>().ok().filter(|ms| ms.is_finite())
}

/// Returns the lines of the messages of a log whose form is CSV, JSON or that of syslog.
pub(super) fn unpacked<'a>(lines: &[(u32, &'a str)]) -> Option<Vec<(u32, Cow<'a, str>)>> {
    let first = lines.iter().find(|(_, line)| line.contains(PLAN) && line.contains("duration: "))?.1;
    if first.trim_start().starts_with('{') {
        let entry = |(number, line): &(u32, &str)| {
            let entry: serde_json::Value = serde_json::from_str(line).ok()?;
            let text = |name: &str| entry.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            Some(message(*number, text("timestamp"), text("message")))
        };
        return Some(lines.iter().filter_map(entry).flatten().collect());
    }
    if first.contains(",LOG,") {
        return Some(of_csv(lines));
    }
    let is_syslog = lines.iter().any(|(_, line)| line.contains("#011"));
    is_syslog.then(|| {
        let content = |line: &'a str| {
            line.find("#011").map_or(Cow::Borrowed(line), |at| Cow::Owned(line[at..].replace("#011", "\t")))
        };
        lines.iter().map(|(number, line)| (*number, content(line))).collect()
    })
}

fn message<'a>(number: u32, at: &str, message: &str) -> Vec<(u32, Cow<'a, str>)> {
    format!("{at} LOG:  {message}").lines().map(|line| (number, Cow::Owned(line.to_string()))).collect()
}

/// Returns the messages of a csvlog. A quote within a field is doubled.
fn of_csv<'a>(lines: &[(u32, &str)]) -> Vec<(u32, Cow<'a, str>)> {
    let mut found = Vec::new();
    let (mut fields, mut field, mut in_quotes) = (Vec::new(), String::new(), false);
    let mut begin = 1;
    for (number, line) in lines {
        if !in_quotes {
            (begin, fields) = (*number, Vec::new());
            field.clear();
        }
        let mut rest = *line;
        while !rest.is_empty() {
            let end = rest.find(if in_quotes { &['"'][..] } else { &['"', ','] }).unwrap_or(rest.len());
            field.push_str(&rest[..end]);
            match rest.as_bytes().get(end) {
                Some(b'"') => {
                    // The second of two quotes belongs to the text.
                    if !in_quotes && !field.is_empty() {
                        field.push('"');
                    }
                    in_quotes = !in_quotes;
                }
                Some(_) => fields.push(std::mem::take(&mut field)),
                None => break,
            }
            rest = &rest[end + 1..];
        }
        if in_quotes {
            field.push('\n');
        } else if let Some(text) = fields.get(MESSAGE).filter(|text| text.contains(PLAN)) {
            found.extend(message(begin, &fields[0], text));
        }
    }
    found
}
