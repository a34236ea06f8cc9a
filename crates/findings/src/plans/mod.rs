//! Findings about plans of execution: rules over one plan, and the matching of two.
//!
//! | rule | fires if | caveat |
//! |---|---|---|
//! | P1 | rows of an input are off by ten, and an operator above was chosen by them | early stops |
//! | P2 | one process loads what parallel servers read | - |
//! | P3 | a work area went to disk | - |
//!
//! These rules are no rows of [`crate::rules`]: they judge a tree of operators, and those the
//! figures of a period.

mod estimates;
mod matching;

pub use matching::{MatchedRow, OPERATIONS_MOST, PlanDifference, matched};

use plumb_record::Finding;
use plumb_record::plan::{ExecutionPlan, PlanOperation, PlanSource};

/// Returns the findings of a plan, those about estimates first.
#[must_use]
pub fn of_plan(plan: &ExecutionPlan) -> Vec<Finding> {
    let mut found = estimates::findings(plan);
    found.extend(serial_load(plan));
    found.extend(spills(plan));
    found
}

/// Returns an operator for a sentence: `TABLE ACCESS FULL T1 (4)`.
fn called(operation: &PlanOperation) -> String {
    let object = if operation.name.is_empty() { String::new() } else { format!(" {}", operation.name) };
    format!("{}{object} ({})", operation.titled(), operation.id)
}

fn finding(rule: &str, what: String, evidence: String, advice: String) -> Finding {
    let (caveat, study) = (String::new(), String::new());
    Finding { rule: rule.to_string(), what, evidence, advice, caveat, saves_ns: None, study }
}

/// P2: a load above the coordinator of the servers that read for it.
fn serial_load(plan: &ExecutionPlan) -> Option<Finding> {
    let load = plan.operations.iter().position(|operation| operation.operation.starts_with("LOAD "))?;
    let below = plan.operations[load + 1..].iter();
    let mut below = below.take_while(|operation| operation.depth > plan.operations[load].depth);
    let coordinator = below.find(|operation| operation.operation.starts_with("PX COORDINATOR"))?;
    let load = &plan.operations[load];
    let times = load.time.as_ref().zip(coordinator.time.as_ref()).map_or(String::new(), |(all, rows)| {
        let own = all.value - rows.value;
        format!(
            "; of {:.2} s, {:.2} s are the time to get the rows and {own:.2} s that of the load",
            all.value, rows.value
        )
    });
    let evidence = format!("{} is above {}{times}", called(load), called(coordinator));
    let advice = "`alter session enable parallel dml` lets the servers load, too: the load then is below the coordinator";
    let what = "Servers read in parallel, and one process loads".to_string();
    Some(finding("P2", what, evidence, advice.to_string()))
}

/// P3: work areas that went to disk.
fn spills(plan: &ExecutionPlan) -> Option<Finding> {
    let spilled: Vec<&PlanOperation> = plan.operations.iter().filter(|operation| operation.spilled).collect();
    let one = |operation: &&PlanOperation| {
        let used = operation.used_memory.as_ref().map_or("", |used| used.text.as_str());
        format!("{}: {used}", called(operation))
    };
    let evidence = spilled.iter().map(one).collect::<Vec<_>>().join("; ");
    let advice = match plan.source {
        PlanSource::Oracle => "a larger work area (pga_aggregate_target) keeps them in memory",
        PlanSource::Postgres => "a larger work_mem keeps them in memory; it holds for each of them",
    };
    let what = match spilled.len() {
        0 => return None,
        1 => "A work area went to disk".to_string(),
        count => format!("{count} work areas went to disk"),
    };
    Some(finding("P3", what, evidence, advice.to_string()))
}

#[cfg(test)]
mod tests;
