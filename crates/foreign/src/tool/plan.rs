//! DBMS_XPLAN's table of a plan, with vertical bars or, from a slide, with tabs. Its rows are those
//! that [`crate::plan`] reads.
//!
//! E-Rows are per start and A-Rows are of all starts. A statement that stopped early has read fewer
//! rows than expected: that is no misestimate, and neither are the zeros of parallel servers, whose
//! rows the coordinator does not see.

use super::{derived, rows};
use crate::check::{Rule, Sides};
use crate::figure::FigureUnit;
use crate::lines::{known, words};
use crate::plan::xplan::{fact, is_beside, tables};
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use crate::sheet::{Figure, Printed, Section, Sheet};
use crate::source::SourcePart;
use plumb_record::{Consistency, ImportedFact, ImportedFigure};
use std::ops::Range;

/// The reader of plans as tables.
pub(super) const READER: Reader = Reader {
    kind: "execution plan",
    begins: Begins::Ranges(ranges),
    read,
    check: checks,
    derive: estimates,
    fill: Fill::Nothing,
};

static OPERATIONS: Section = Section {
    key: "operations",
    headings: &["plan"],
    first: &[],
    columns: &[
        words("id", &["Id"]),
        words("operation", &["Operation"]),
        words("object", &["Name"]),
        known("starts", FigureUnit::COUNT, &["Starts"]),
        known("expected_rows", FigureUnit::COUNT, &["E-Rows", "Rows"]),
        known("bytes", FigureUnit::BYTES, &["Bytes", "E-Bytes"]),
        known("temp", FigureUnit::BYTES, &["TempSpc", "E-Temp"]),
        words("cost", &["Cost (%CPU)"]),
        known("expected_time", FigureUnit::S, &["Time", "E-Time"]),
        known("rows", FigureUnit::COUNT, &["A-Rows"]),
        known("time", FigureUnit::S, &["A-Time"]),
        known("gets", FigureUnit::COUNT, &["Buffers"]),
        known("reads", FigureUnit::COUNT, &["Reads"]),
        known("writes", FigureUnit::COUNT, &["Writes"]),
        words("optimal", &["OMem"]),
        words("one_pass", &["1Mem"]),
        words("used", &["Used-Mem"]),
    ],
};

/// Most lines between two plans of one report.
const BETWEEN_MOST: usize = 6;

fn lines_of<'a>(part: &SourcePart<'a>) -> Vec<(u32, &'a str)> {
    part.lines().collect()
}

/// Returns the ranges of lines, from 0, that have plans with what is printed around them.
fn ranges(part: &SourcePart<'_>) -> Vec<Range<usize>> {
    let lines = lines_of(part);
    let Some((first, _)) = lines.first().copied() else { return Vec::new() };
    let is_around = |at: &usize| {
        let text = lines[*at].1.trim();
        text.is_empty() || is_beside(text) || fact(text).is_some()
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for table in tables(&lines).into_iter().filter(|table| !table.rows.is_empty()) {
        let (begin, end) = ((table.first - first) as usize, (table.last - first) as usize + 1);
        let above =
            (0..begin).rev().take_while(is_around).filter(|at| !lines[*at].1.trim().is_empty()).last();
        let below =
            (end..lines.len()).take_while(is_around).filter(|at| !lines[*at].1.trim().is_empty()).last();
        let own = above.unwrap_or(begin)..below.map_or(end, |at| at + 1);
        match found.last_mut().filter(|last| own.start <= last.end + BETWEEN_MOST) {
            Some(last) => last.end = own.end,
            None => found.push(own),
        }
    }
    found
}

fn read(part: &SourcePart<'_>) -> Report {
    let lines = lines_of(part);
    let mut report = Report::default();
    report.run.title = "EXECUTION PLAN".to_string();
    let tables = tables(&lines);
    for table in &tables {
        let heading = Printed { raw: OPERATIONS.headings[0].to_string(), line: table.first };
        let sheet = Sheet::new(Some(&OPERATIONS), heading, table.headings.clone());
        let same = |known: &Sheet| {
            known.columns.iter().map(|column| &column.name).eq(sheet.columns.iter().map(|own| &own.name))
        };
        let at = report.sheets.iter().position(same).unwrap_or(report.sheets.len());
        if at == report.sheets.len() {
            report.sheets.push(sheet);
        }
        for (line, cells) in &table.rows {
            let line = *line;
            report.sheets[at]
                .push(line, cells.iter().map(|raw| Printed { raw: raw.clone(), line }).collect());
        }
    }
    report.sheets.retain(|sheet| !sheet.rows.is_empty());
    for (line, text) in lines {
        if tables.iter().any(|table| (table.first..=table.last).contains(&line))
            || text.trim().trim_matches('`').is_empty()
        {
            continue;
        }
        match fact(text) {
            Some((name, value)) => {
                let (name, text) = (name.to_string(), value.to_string());
                report.facts.push(ImportedFact { name, text, line });
            }
            None if is_beside(text) => {}
            None => report.leave(line, text),
        }
    }
    report
}

const GETS: Rule = Rule {
    name: "buffers of an operation <= of its plan",
    arithmetic: "an operation's buffers include those below it: none has more than the first",
};
const TIME: Rule = Rule {
    name: "time of an operation <= of its plan",
    arithmetic: "an operation's A-Time includes those below it: none has more than the first",
};

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of(OPERATIONS.key) {
        let mut plan = None;
        for row in &sheet.rows {
            // Several plans of one head follow each other.
            if plan.is_none() || sheet.text(row, "id").trim_start_matches(['*', ' ']) == "0" {
                plan = Some(row);
                continue;
            }
            for (rule, key, unit) in [(&GETS, "gets", ""), (&TIME, "time", "s")] {
                let all = plan.and_then(|plan| sheet.figure(plan, key));
                let (Some(all), Some(own)) = (all, sheet.figure(row, key)) else { continue };
                let sides = Sides { expected: all.range, found: own.range, unit };
                checks.push(rule.at_most(sheet.text(row, "operation"), sides, &[&all, &own]));
            }
        }
    }
    checks
}

/// Rows that came over those that were expected, of operations that ran.
fn estimates(report: &Report) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for (sheet, row) in rows(report, OPERATIONS.key) {
        let figure = |key: &str| sheet.figure(row, key).filter(|figure| figure.value > 0.0);
        let (Some(came), Some(each), Some(starts)) =
            (figure("rows"), figure("expected_rows"), figure("starts"))
        else {
            continue;
        };
        let expected: Figure = Figure { range: each.range.times(starts.range), ..each.clone() };
        let name =
            format!("{} {}: A-Rows / (E-Rows x Starts)", sheet.text(row, "id"), sheet.text(row, "operation"));
        let value = came.value / (each.value * starts.value);
        let range = came.range.over(expected.range);
        found.extend(range.and_then(|range| derived(name, "", came.line, value, range)));
    }
    found
}
