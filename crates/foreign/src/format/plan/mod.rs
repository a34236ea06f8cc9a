//! Plans of execution as trees of operators: EXPLAIN of PostgreSQL as JSON or text, and DBMS_XPLAN.
//!
//! | file | format | recognised by |
//! |---|---|---|
//! | `json` | EXPLAIN (FORMAT JSON) | `"Node Type"` |
//! | `markup` | EXPLAIN (FORMAT YAML) and (FORMAT XML) | `Node Type: `, `<Node-Type>` |
//! | `text` | EXPLAIN | `(cost=`, `(actual `, an operator above others |
//! | `xplan` | DBMS_XPLAN with bars, also wrapped, or with tabs; SQL Monitor | `Id`, `Operation` |
//!
//! `file` has the plans of a file, which may be a log of thousands. `log` has the entries of
//! auto_explain in the three forms of a server's log, and `client` what psql, pgAdmin and pages put
//! around the lines of a plan.
//!
//! `postgres` has what both forms of EXPLAIN share, so that one plan read from either is the same.
//!
//! `plumb import` keeps the cells of a table, and a plan is a tree whose indentation and predicates
//! decide what is compared. Both take the rows from `xplan`.
//!
//! Limits: [`OPERATIONS_MOST`] operators, [`DEPTH_MOST`] levels, and 60 levels of JSON. A plan that
//! ends in its middle is refused, because half a tree matches nothing.

mod client;
mod file;
mod json;
mod log;
mod markup;
mod postgres;
mod text;
pub(crate) mod xplan;

pub use file::{COMPARED_MOST, LoggedStatement, PlanFile};
pub(crate) use text::has_figures;

use crate::source::{ForeignError, Source};
use client::Numbered;
use plumb_record::plan::{ExecutionPlan, PlanOperation};
use std::borrow::Cow;

/// Most operators of a plan: a statement over some thousand partitions.
pub const OPERATIONS_MOST: usize = 10_000;
/// Most triggers of a plan: a foreign key has one for each partition.
const TRIGGERS_MOST: usize = OPERATIONS_MOST;
/// Most notes of a plan.
const NOTES_MOST: usize = 1_000;
/// Most levels of a plan.
const DEPTH_MOST: usize = 500;

/// A fault of a plan, with the line of the file.
#[derive(Debug)]
struct Fault {
    line: u32,
    why: String,
}

type Lines<'a> = [(u32, &'a str)];

/// Reads all plans of a file.
///
/// # Errors
/// If the file has no plan, or one that is cut off, too deep or too large.
pub fn read(source: &Source) -> Result<Vec<ExecutionPlan>, ForeignError> {
    let part = source.part(0, source.len());
    let refused = |Fault { line, why }| {
        let other = other_form(part.text).filter(|_| why.starts_with(NO_OPERATOR));
        let looks =
            other.map_or(String::new(), |form| format!("; the file looks like {form}, which is not read"));
        refused(source, Fault { line, why: why + &looks })
    };
    let mut plans = of_lines(&part.lines().collect::<Vec<_>>()).map_err(refused)?;
    if plans.is_empty() {
        return Err(ForeignError::NoPlan { path: source.path.clone(), seen: other_form(part.text) });
    }
    let file = file_name(source);
    let count = plans.len();
    for (number, plan) in (1..).zip(&mut plans).filter(|(_, plan)| plan.name.is_empty()) {
        plan.name = if count == 1 { file.to_string() } else { format!("{file} ({number})") };
    }
    Ok(plans)
}

fn refused(source: &Source, Fault { line, why }: Fault) -> ForeignError {
    ForeignError::Plan { path: source.path.clone(), line, why }
}

fn file_name(source: &Source) -> Cow<'_, str> {
    source.path.file_name().unwrap_or(source.path.as_os_str()).to_string_lossy()
}

/// Reads the plans of a JSON text that a server printed.
///
/// # Errors
/// A line about what is not a plan.
pub fn read_json(printed: &str) -> Result<Vec<ExecutionPlan>, String> {
    of_lines(&(1..).zip(printed.lines()).collect::<Vec<_>>()).map_err(|fault| fault.why)
}

fn of_lines(lines: &Lines<'_>) -> Result<Vec<ExecutionPlan>, Fault> {
    of_messages(log::unpacked(lines).unwrap_or_else(|| borrowed(lines)))
}

fn borrowed<'a>(lines: &Lines<'a>) -> Vec<Numbered<'a>> {
    lines.iter().map(|(number, line)| (*number, Cow::Borrowed(*line))).collect()
}

/// Reads the plans of lines in the form of a server's log or of a client.
fn of_messages(lines: Vec<Numbered<'_>>) -> Result<Vec<ExecutionPlan>, Fault> {
    if has(&lines, "<Node-Type>") {
        return of_documents(markup::xml(&client::plain(lines))?);
    }
    let lines = client::opened(lines);
    if has(&lines, "Operation") {
        let plans = xplan::read(&shared(&client::unquoted(lines.clone())))?;
        if !plans.is_empty() {
            return Ok(plans);
        }
    }
    let plain = client::plain(lines);
    match () {
        () if has(&plain, "\"Node Type\"") => json::read(&plain),
        () if has(&plain, "Node Type: ") => of_documents(markup::yaml(&plain)?),
        // A page has entities for its brackets.
        () if has(&plain, "<Node-Type>") => of_documents(markup::xml(&plain)?),
        () => text::read(&shared(&plain)),
    }
}

fn has(lines: &[Numbered<'_>], mark: &str) -> bool {
    lines.iter().any(|(_, line)| line.contains(mark))
}

fn shared<'a>(lines: &'a [Numbered<'_>]) -> Vec<(u32, &'a str)> {
    lines.iter().map(|(number, line)| (*number, line.as_ref())).collect()
}

fn of_documents(documents: Vec<(u32, serde_json::Value)>) -> Result<Vec<ExecutionPlan>, Fault> {
    let plans =
        documents.iter().map(|(line, document)| json::of_document(document, *line, log::LogEntry::default()));
    Ok(plans.collect::<Result<Vec<_>, Fault>>()?.into_iter().flatten().collect())
}

/// Begin of the fault of an operator that is not known.
const NO_OPERATOR: &str = "no PostgreSQL has an operator";

fn unknown_operator(line: u32, operation: &str) -> Fault {
    let short: String = operation.chars().take(60).collect();
    Fault { line, why: format!("{NO_OPERATOR} `{short}`") }
}

/// Forms that are recognised and not read, each with words that a text of the form has. A text that
/// has the word behind a `!` is of another form.
const OTHER_FORMS: [(&str, &[&str]); 24] = [
    ("a row source of TKPROF", &["Row Source Operation"]),
    ("a plan of TKPROF", &["Rows     Execution Plan"]),
    ("a report of TKPROF", &["TKPROF: "]),
    ("a plan of AUTOTRACE before Oracle 10", &["Execution Plan", "SELECT STATEMENT Optimizer"]),
    // PostgreSQL has a width behind the rows.
    ("EXPLAIN FORMAT=TREE of MySQL", &["-> ", " rows=", "!width=", "!\"", "!QUERY PLAN", "!Index Cond"]),
    ("EXPLAIN of MySQL", &["select_type", "possible_keys"]),
    ("EXPLAIN FORMAT=JSON of MySQL", &["\"query_block\""]),
    ("EXPLAIN FORMAT=JSON of MySQL", &["\"query_plan\"", "\"access_type\""]),
    ("EXPLAIN of Redshift", &["XN ", "(cost="]),
    ("EXPLAIN of Greenplum", &[" Motion ", "(slice"]),
    ("a plan of SQL Server", &["|--", "OBJECT:("]),
    ("a plan of SQL Server", &["|--", "DEFINE:("]),
    ("a plan of SQL Server", &["|--Constant Scan"]),
    ("a plan of SQL Server", &["ShowPlanXML"]),
    ("an XML report of SQL Monitor", &["<report", "sql_monitor"]),
    ("EXPLAIN QUERY PLAN of SQLite", &["QUERY PLAN", "--SCAN "]),
    ("EXPLAIN QUERY PLAN of SQLite", &["QUERY PLAN", "--SEARCH "]),
    ("EXPLAIN QUERY PLAN of SQLite", &["0|0|0|S"]),
    ("a plan of DuckDB", &["┌─", "SEQ_SCAN"]),
    ("a plan of MongoDB", &["\"winningPlan\""]),
    ("a plan of Spark", &["== Physical Plan =="]),
    ("a plan of Trino", &["Fragment 0 ["]),
    ("EXPLAIN of CockroachDB", &["distribution: ", "vectorized: "]),
    ("a plan of Db2", &["Access Plan:", "Total Cost:"]),
];

fn other_form(text: &str) -> Option<&'static str> {
    let has = |word: &&str| word.strip_prefix('!').map_or(text.contains(word), |word| !text.contains(word));
    let found = OTHER_FORMS.iter().find(|(_, words)| words.iter().all(has));
    found.map(|(form, _)| *form)
}

/// Adds an operator, unless the plan is too large.
fn push(operations: &mut Vec<PlanOperation>, line: u32, operation: PlanOperation) -> Result<(), Fault> {
    if operation.depth > DEPTH_MOST {
        return Err(too_large(line, "levels", DEPTH_MOST));
    }
    add(operations, operation, line, "operators", OPERATIONS_MOST)
}

/// Adds one to a list of a plan, unless it has its most.
fn add<T>(all: &mut Vec<T>, one: T, line: u32, what: &str, most: usize) -> Result<(), Fault> {
    if all.len() == most {
        return Err(too_large(line, what, most));
    }
    all.push(one);
    Ok(())
}

fn too_large(line: u32, what: &str, most: usize) -> Fault {
    Fault { line, why: format!("the plan has more than {most} {what}; explain a part of the statement") }
}

#[cfg(test)]
mod tests;
