//! The plans of a file; of a log, each is read when it is shown.
//!
//! ```text
//! entry of a log ── lines without numbers and literals ── known? ── hash of that plan
//!                                                          └ no ── read ── hash
//! ```
//!
//! Entries are independent: one that is cut off or damaged is left out and counted. A log of 64 MiB
//! has tens of thousands of plans, and most differ from an earlier one by figures and literals
//! alone. These have its hash without being read: reading all takes four times as long, and their
//! operators take eight times the memory of the file.
//!
//! Limits: a file with three entries or fewer is read as one text, as from a client. A plan that
//! a client printed between the entries of a server is not seen.

use super::client::Numbered;
use super::log::{LogEntry, begins, unpacked};
use super::text::has_figures;
use super::{Fault, borrowed, of_messages, refused};
use crate::source::{ForeignError, Source};
use plumb_findings::plans::LoggedPlan;
use plumb_record::plan::ExecutionPlan;
use std::collections::HashMap;
use std::ops::Range;

/// Most plans that are compared; more are a log.
pub const COMPARED_MOST: usize = 3;

/// The plans of a file, in its order.
#[derive(Debug)]
pub struct PlanFile {
    pub plans: Vec<LoggedPlan>,
    /// Lines of the file and reasons why the plans in them are left out.
    pub left_out: Vec<String>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Whole(Vec<ExecutionPlan>),
    /// Of each plan the lines of its entry, and its place among the plans there.
    Entries(Source, Vec<(Range<usize>, usize)>),
}

impl PlanFile {
    pub fn of(plans: Vec<ExecutionPlan>) -> PlanFile {
        let logged = plans.iter().map(LoggedPlan::of).collect();
        PlanFile { plans: logged, left_out: Vec::new(), content: Content::Whole(plans) }
    }

    /// Reads the plans of a file, or of a log those of a new shape.
    ///
    /// # Errors
    /// If it has no plan, or if its only plan cannot be read.
    pub fn read(source: Source) -> Result<PlanFile, ForeignError> {
        let ranges = entries(&source);
        if ranges.len() <= COMPARED_MOST {
            return Ok(PlanFile::of(super::read(&source)?));
        }
        let mut shapes = HashMap::new();
        let (mut plans, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
        for range in ranges {
            match logged(&source, range.clone(), &mut shapes) {
                Ok(found) => {
                    places.extend((0..found.len()).map(|at| (range.clone(), at)));
                    plans.extend(found);
                }
                Err(fault) => faults.push(fault),
            }
        }
        let mut faults = faults.into_iter().map(|fault| refused(&source, fault));
        if plans.is_empty()
            && let Some(fault) = faults.next()
        {
            return Err(fault);
        }
        let left_out = faults.map(|fault| fault.to_string()).collect();
        Ok(PlanFile { plans, left_out, content: Content::Entries(source, places) })
    }

    /// Returns a plan, by its place in the file.
    ///
    /// # Errors
    /// If its entry cannot be read. Of a log, `read` may know it only by its shape.
    pub fn plan(&self, at: usize) -> Result<ExecutionPlan, ForeignError> {
        let (source, (range, place)) = match &self.content {
            Content::Whole(plans) => return Ok(plans[at].clone()),
            Content::Entries(source, places) => (source, &places[at]),
        };
        let lines: Vec<(u32, &str)> = source.part(range.start, range.end).lines().collect();
        let mut plan = super::of_lines(&lines).map_err(|fault| refused(source, fault))?.swap_remove(*place);
        plan.name = format!("{} ({})", super::file_name(source), at + 1);
        Ok(plan)
    }
}

/// A statement with its plan, as an entry of a log has it.
#[derive(Debug)]
pub struct LoggedStatement {
    /// Time of its end as printed, without a zone; empty if the log has none.
    pub at: String,
    /// Number of the process that executed it.
    pub process: Option<String>,
    pub duration_ms: f64,
    /// Statement in one line, cut at 4,000 letters.
    pub query: String,
}

impl LoggedStatement {
    /// True for the first line of an entry with a plan.
    #[must_use]
    pub fn begins(line: &str) -> bool {
        begins(line)
    }

    /// Reads the lines of one entry.
    #[must_use]
    pub fn of(entry: &str) -> Option<LoggedStatement> {
        let lines: Vec<(u32, &str)> = (1..).zip(entry.lines()).collect();
        let first = lines.first()?.1;
        let process = match first.starts_with('{') {
            true => {
                let entry: serde_json::Value = serde_json::from_str(first).ok()?;
                entry.get("pid").map(ToString::to_string)
            }
            false if first.contains(",LOG,") => first.split(',').nth(3).map(str::to_string),
            false => {
                let inner = first.split("LOG:").next()?.split_once('[').map(|(_, inner)| inner);
                inner.and_then(|inner| inner.split([']', '-']).next()).map(str::to_string)
            }
        };
        let process = process.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let lines = unpacked(&lines).unwrap_or_else(|| borrowed(&lines));
        let (entry, _) = above(&lines);
        // A plan in JSON has its statement within.
        let within = || of_messages(lines.clone()).ok()?.first().map(|plan| plan.query.clone());
        let query = entry.query.or_else(within).unwrap_or_default();
        Some(LoggedStatement { at: entry.at, process, duration_ms: entry.duration_ms?, query })
    }
}

/// Reads the lines above a plan; returns their number, too.
fn above(lines: &[Numbered<'_>]) -> (LogEntry, usize) {
    let begin = lines.iter().position(|(_, line)| has_figures(line)).unwrap_or(lines.len());
    let mut entry = LogEntry::default();
    for (_, line) in &lines[..begin] {
        if !entry.takes(line.trim_start()) {
            entry.goes_on(line);
        }
    }
    (entry, begin)
}

/// Returns the lines of each entry of a log with a plan.
fn entries(source: &Source) -> Vec<Range<usize>> {
    let all: Vec<&str> = source.part(0, source.len()).lines().map(|(_, line)| line).collect();
    let starts: Vec<usize> = (0..all.len()).filter(|at| begins(all[*at])).collect();
    let ends = starts.iter().skip(1).copied().chain(std::iter::once(all.len()));
    let entry = |(start, end): (&usize, usize)| {
        // A server begins all further lines of an entry with a tab.
        let further = all[start + 1..end].iter().take_while(|line| line.starts_with('\t') || line.is_empty());
        *start..if all[start + 1..end].first().is_some_and(|line| line.starts_with('\t')) {
            start + 1 + further.count()
        } else {
            end
        }
    };
    starts.iter().zip(ends).map(entry).collect()
}

/// Reads the plans of an entry, or takes the hash of one of the same shape.
fn logged(
    source: &Source,
    range: Range<usize>,
    shapes: &mut HashMap<String, LoggedPlan>,
) -> Result<Vec<LoggedPlan>, Fault> {
    let lines: Vec<(u32, &str)> = source.part(range.start, range.end).lines().collect();
    let lines = unpacked(&lines).unwrap_or_else(|| borrowed(&lines));
    let (entry, begin) = above(&lines);
    let mut shape = String::new();
    lines[begin..].iter().for_each(|(_, line)| add_shape(line, &mut shape));
    if let Some(known) = shapes.get(&shape) {
        return Ok(vec![entry.logged(known)]);
    }
    let is_text = begin < lines.len() && entry.is_logged();
    let plans = of_messages(lines)?;
    if plans.is_empty() {
        let line = u32::try_from(range.start + 1).unwrap_or(u32::MAX);
        return Err(Fault { line, why: "the entry is cut off or has no plan that is read".to_string() });
    }
    let found: Vec<LoggedPlan> = plans.iter().map(LoggedPlan::of).collect();
    // The time of a plan that has its own is not that of the log.
    let is_timed = ["Execution Time", "Total runtime"].iter().any(|name| plans[0].fact(name).is_some());
    if let [only] = &found[..]
        && is_text
        && !is_timed
    {
        shapes.insert(shape, only.clone());
    }
    Ok(found)
}

/// Adds a line without its numbers and its literals in quotes. Names keep their digits.
fn add_shape(line: &str, shape: &mut String) {
    let (mut quote, mut before, mut kept) = (None, ' ', 0);
    for (at, letter) in line.char_indices() {
        let is_left_out = match quote {
            Some(end) => {
                quote = (letter != end).then_some(end);
                end == '\''
            }
            None if matches!(letter, '\'' | '"') => {
                quote = Some(letter);
                false
            }
            None => {
                (letter.is_ascii_digit() || letter == '.') && !(before.is_alphanumeric() || before == '_')
            }
        };
        if is_left_out {
            shape.push_str(&line[kept..at]);
            kept = at + letter.len_utf8();
        } else {
            before = letter;
        }
    }
    shape.push_str(&line[kept..]);
    shape.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Time, milliseconds, statement and the plan's lines.
    type Entry<'a> = (u32, &'a str, &'a str, &'a str);

    const ENTRIES: [Entry<'_>; 7] = [
        (
            1,
            "1.5",
            "select 1 from t_1 where a = 'x, \"y\"'",
            "Seq Scan on t_1  (cost=0.00..8.00 rows=1 width=4)\n  Filter: (a = 'x'::text)",
        ),
        (
            2,
            "2.5",
            "select 1 from t_1 where a = 'z'\n  limit 1",
            "Seq Scan on t_1  (cost=1.00..9.25 rows=77 width=4)\n  Filter: (a = 'z 8'::text)",
        ),
        (
            3,
            "3.5",
            "select 1 from t_2",
            "Seq Scan on t_2  (cost=0.00..8.00 rows=1 width=4)\n  Filter: (a = 'x'::text)",
        ),
        (4, "4.5", "select 1 from u", "Seq Scan on \"u 1\"  (cost=0.00..8.00 rows=1 width=4)"),
        (5, "5.5", "select 1 from u", "Seq Scan on \"u 2\"  (cost=0.00..8.00 rows=1 width=4)"),
        (
            6,
            "6.5",
            "select 1 from u",
            "Seq Scan on \"u 2\"  (cost=0.00..8.00 rows=1 width=4)\nExecution Time: 6.25 ms",
        ),
        (
            7,
            "7.5",
            "select 1 from u",
            "Seq Scan on \"u 2\"  (cost=0.00..8.00 rows=1 width=4)\nExecution Time: 0.75 ms",
        ),
    ];

    fn message((_, ms, query, plan): &Entry<'_>) -> String {
        format!("duration: {ms} ms  plan:\nQuery Text: {query}\n{plan}")
    }

    fn at(entry: &Entry<'_>) -> String {
        format!("2024-05-03 10:00:0{} UTC", entry.0)
    }

    fn stderr(entry: &Entry<'_>) -> String {
        let other = "2024-05-03 10:00:09 UTC [2] LOG:  connection authorized";
        format!("{} [1] LOG:  {}\n{other}\n", at(entry), message(entry).replace('\n', "\n\t"))
    }

    fn csv(entry: &Entry<'_>) -> String {
        let message = message(entry).replace('"', "\"\"");
        format!("{},\"u\",\"d\",1,,x,3,\"SELECT\",,,0,LOG,00000,\"{message}\",,,\"psql\"\n", at(entry))
    }

    fn json(entry: &Entry<'_>) -> String {
        serde_json::json!({"timestamp": at(entry), "message": message(entry)}).to_string() + "\n"
    }

    fn read(log: &str) -> PlanFile {
        PlanFile::read(Source::of(Path::new("a.log"), log.as_bytes())).expect("plans")
    }

    #[test]
    fn the_list_of_a_log_has_each_plan_as_it_is_read() {
        for form in [stderr, csv, json] {
            let file = read(&ENTRIES.iter().map(form).collect::<String>());
            let seconds: Vec<f64> = file.plans.iter().map(|plan| plan.seconds * 1e3).collect();
            assert_eq!(seconds, [1.5, 2.5, 3.5, 4.5, 5.5, 6.25, 0.75]);
            for (at, (logged, entry)) in file.plans.iter().zip(&ENTRIES).enumerate() {
                let plan = file.plan(at).expect("a plan");
                assert_eq!(&LoggedPlan::of(&plan), logged);
                assert_eq!(plan.name, format!("a.log ({})", at + 1));
                assert_eq!(logged.query, entry.2.split_whitespace().collect::<Vec<_>>().join(" "));
            }
            // Names keep their digits, and literals are no part of a plan.
            let hash = |at: usize| &file.plans[at].hash;
            assert_eq!(hash(0), hash(1));
            assert!(hash(0) != hash(2) && hash(3) != hash(4));
        }
    }

    #[test]
    fn a_damaged_entry_is_left_out() {
        for form in [stderr, csv, json] {
            let mut log: Vec<String> = ENTRIES.iter().map(form).collect();
            log[2] = log[2].replace("Seq Scan", "Quick Scan");
            let cut = log[6].find("width").expect("a width");
            log[6].truncate(cut);
            let file = read(&log.concat());
            assert_eq!((file.plans.len(), file.left_out.len()), (5, 2), "{:?}", file.left_out);
            assert!(file.left_out[0].contains("no PostgreSQL has an operator `Quick Scan`"));
            assert!(file.left_out[1].contains("cut off"), "{:?}", file.left_out);
            assert_eq!(LoggedPlan::of(&file.plan(4).expect("a plan")), file.plans[4]);
        }
        let none: String = ENTRIES.iter().map(stderr).collect();
        let error = PlanFile::read(Source::of(Path::new("a.log"), none.replace("Seq", "Q").as_bytes()));
        assert!(error.expect_err("no plan").to_string().starts_with("a.log line 3: "));
    }
}
