//! Plans of execution as trees of operators: EXPLAIN of PostgreSQL as JSON or text, and DBMS_XPLAN.
//!
//! | file | format | recognised by | tried on |
//! |---|---|---|---|
//! | `json` | EXPLAIN (FORMAT JSON), also as psql and auto_explain print it | `"Node Type"` | 15 |
//! | `text` | EXPLAIN, also as psql and auto_explain print it | `(cost=`, `(actual ` | 15 |
//! | `xplan` | DBMS_XPLAN with bars, also wrapped, or with tabs | `Id`, `Operation` | 11.2, 12.1 |
//!
//! `postgres` has what both forms of EXPLAIN share, so that one plan read from either is the same.
//!
//! `plumb import` keeps the cells of a table, and a plan is a tree whose indentation and predicates
//! decide what is compared. Both take the rows from `xplan`.
//!
//! Limits: [`OPERATIONS_MOST`] operators, [`DEPTH_MOST`] levels, and 60 levels of JSON. A plan that
//! ends in its middle is refused, because half a tree matches nothing.

pub(crate) use text::has_figures;

mod json;
mod postgres;
mod text;
pub(crate) mod xplan;

use crate::source::{ForeignError, Source};
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
    let lines: Vec<(u32, &str)> = part.lines().collect();
    let unquoted = unquoted(&lines);
    let lines: Vec<(u32, &str)> = unquoted.iter().map(|(number, line)| (*number, line.as_ref())).collect();
    let plans = if part.text.contains("\"Node Type\"") {
        json::read(part.text)
    } else {
        xplan::read(&lines).and_then(|plans| if plans.is_empty() { text::read(&lines) } else { Ok(plans) })
    };
    let path = || source.path.clone();
    let mut plans = plans.map_err(|Fault { line, why }| ForeignError::Plan { path: path(), line, why })?;
    if plans.is_empty() {
        return Err(ForeignError::NoPlan { path: path(), lines: source.len() });
    }
    let file = source.path.file_name().unwrap_or(source.path.as_os_str()).to_string_lossy();
    let count = plans.len();
    for (number, plan) in (1..).zip(&mut plans).filter(|(_, plan)| plan.name.is_empty()) {
        plan.name = if count == 1 { file.to_string() } else { format!("{file} ({number})") };
    }
    Ok(plans)
}

/// Reads the plans of a JSON text that a server printed.
///
/// # Errors
/// A line about what is not a plan.
pub fn read_json(printed: &str) -> Result<Vec<ExecutionPlan>, String> {
    json::read(printed).map_err(|fault| fault.why)
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

/// Returns the lines without the quotes that pgAdmin puts around each line of a plan. Quotes of
/// lines without an operator stay, because predicates may begin and end with one.
fn unquoted<'a>(lines: &Lines<'a>) -> Vec<(u32, Cow<'a, str>)> {
    let inside = |line: &'a str| line.trim().strip_prefix('"').and_then(|line| line.strip_suffix('"'));
    let mut plain = Vec::with_capacity(lines.len());
    for block in lines.chunk_by(|(_, one), (_, next)| inside(one).is_some() == inside(next).is_some()) {
        let is_quoted = block.iter().any(|(_, line)| {
            inside(line).is_some_and(|line| text::has_figures(line) || xplan::may_be_heading(line))
        });
        plain.extend(block.iter().map(|(number, line)| match inside(line).filter(|_| is_quoted) {
            Some(line) => (*number, Cow::Owned(line.replace("\"\"", "\""))),
            None => (*number, Cow::Borrowed(*line)),
        }));
    }
    plain
}

#[cfg(test)]
mod tests;
