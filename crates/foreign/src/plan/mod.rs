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

mod json;
mod postgres;
mod text;
pub(crate) mod xplan;

use crate::source::{ForeignError, Source};
use plumb_record::plan::{ExecutionPlan, PlanOperation};

/// Most operators of a plan: a statement over some thousand partitions.
pub const OPERATIONS_MOST: usize = 10_000;
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
    let refused = |what: &str, most: usize| {
        let why = format!("the plan has more than {most} {what}; explain a part of the statement");
        Err(Fault { line, why })
    };
    if operations.len() == OPERATIONS_MOST {
        return refused("operators", OPERATIONS_MOST);
    }
    if operation.depth > DEPTH_MOST {
        return refused("levels", DEPTH_MOST);
    }
    operations.push(operation);
    Ok(())
}

#[cfg(test)]
mod tests;
