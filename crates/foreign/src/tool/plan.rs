//! DBMS_XPLAN's table of a plan, with vertical bars or, from a slide, with tabs.
//!
//! E-Rows are per start and A-Rows are of all starts. A statement that stopped early has read fewer
//! rows than expected: that is no misestimate, and neither are the zeros of parallel servers, whose
//! rows the coordinator does not see.

use super::{derived, rows};
use crate::check::{Rule, Sides};
use crate::figure::FigureUnit;
use crate::lines::{self, Between, LineFormat, LineTable, known, words};
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use crate::sheet::{Figure, Section};
use plumb_record::{Consistency, ImportedFact, ImportedFigure};

/// The reader of plans as tables.
pub(super) const READER: Reader = Reader {
    kind: "execution plan",
    begins: Begins::Ranges(|part| lines::ranges(part, &PLAN)),
    read: |part| {
        let mut report = lines::read(part, &PLAN);
        report.run.title = "EXECUTION PLAN".to_string();
        report
    },
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

static PLAN: LineFormat = LineFormat {
    tables: &[
        LineTable { section: &OPERATIONS, between: Between::Pipes, needs: &["Id", "Operation"], loose: "" },
        LineTable { section: &OPERATIONS, between: Between::Tabs, needs: &["Id", "Operation"], loose: "" },
    ],
    pairs: None,
    aside,
    stamped: false,
};

fn aside(line: u32, text: &str, report: &mut Report) -> bool {
    let text = text.trim();
    let fact =
        ["Plan hash value:", "SQL_ID"].into_iter().find_map(|name| Some((name, text.strip_prefix(name)?)));
    if let Some((name, value)) = fact {
        let (name, text) = (name.trim_end_matches(':').to_string(), value.trim().to_string());
        report.facts.push(ImportedFact { name, text, line });
    }
    let (id, rest) = text.split_once(" - ").unwrap_or(("", ""));
    let is_predicate =
        id.parse::<u32>().is_ok() && (rest.starts_with("access(") || rest.starts_with("filter("));
    fact.is_some()
        || is_predicate
        || text.len() > 8 && text.bytes().all(|byte| byte == b'-')
        || text.starts_with("Predicate Information")
        // An operation without figures, such as UNION-ALL in a plan without statistics.
        || text.starts_with('|') && text.ends_with('|')
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
