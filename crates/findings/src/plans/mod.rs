//! Findings about plans of execution: rules over one plan, and the matching of two.
//!
//! | rule | fires if | caveat |
//! |---|---|---|
//! | P1 | rows of an input are off by ten, and an operator above was chosen by them | early stops |
//! | P2 | one process loads what parallel servers read | - |
//! | P3 | a work area went to disk | - |
//! | P4 | workers were planned and not launched | - |
//! | P5 | a predicate of access in one plan is a filter in the other | - |
//! | P6 | the cost of the other plan is ten times that of the first | costs are no times |
//! | P7 | reads have half of the time, or nine in ten buffers were read | the cache of the system |
//!
//! These rules are no rows of [`crate::rules`]: they judge a tree of operators, and those the
//! figures of a period.

mod answer;
mod estimates;
mod history;
mod matching;

pub use answer::{answers, of_pair, own_times};
pub use history::{LoggedPlan, PlanChange, QueryPlans, by_query, normalised};

pub use matching::{MatchedRow, OPERATIONS_MOST, PlanDifference, matched};

use plumb_record::Finding;
use plumb_record::plan::{ExecutionPlan, PlanOperation, PlanSource};

/// Returns the findings of a plan, those about estimates first.
#[must_use]
pub fn of_plan(plan: &ExecutionPlan) -> Vec<Finding> {
    let mut found = estimates::findings(plan);
    found.extend(serial_load(plan));
    found.extend(spills(plan));
    found.extend(not_launched(plan));
    found.extend(reads(plan));
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

/// P4: workers that were planned and not launched.
fn not_launched(plan: &ExecutionPlan) -> Option<Finding> {
    let (planned, launched) = answer::workers(plan);
    let has_launched = plan.operations.iter().any(|it| it.detail("workers launched").is_some());
    if !has_launched || launched >= planned {
        return None;
    }
    let what = format!("{} of {planned:.0} workers were planned and not launched", planned - launched);
    let gathers = plan.operations.iter().filter(|it| it.detail("workers planned").is_some());
    let one = |it: &PlanOperation| {
        let figure = |name: &str| it.detail(name).unwrap_or(0.0);
        format!(
            "{}: {:.0} planned, {:.0} launched",
            called(it),
            figure("workers planned"),
            figure("workers launched")
        )
    };
    let evidence = gathers.map(one).collect::<Vec<_>>().join("; ");
    let advice =
        "other sessions had them: raise max_parallel_workers and max_worker_processes, or plan fewer";
    Some(finding("P4", what, evidence, advice.to_string()))
}

/// Least share of the time, and of the buffers, from which reads dominate.
const READ_TIME: f64 = 0.5;
const READ_SHARE: f64 = 0.9;
/// Least blocks that are worth a finding.
const READS_LEAST: f64 = 100.0;

/// P7: reads that take most of the time, or of which most buffers are without a time.
fn reads(plan: &ExecutionPlan) -> Option<Finding> {
    let root = plan.operations.first()?;
    let (buffers, reads) =
        (root.buffers.as_ref()?, root.reads.as_ref().filter(|reads| reads.value >= READS_LEAST)?);
    let read_time = root.read_time.as_ref();
    // Times of several processes are summed, as in the operator below the Gather.
    let times = plan.operations.iter().filter_map(|it| it.time.as_ref()).map(|time| time.value);
    let whole = times.chain(plan.time().map(|time| time.value)).reduce(f64::max);
    let (what, evidence) = match read_time.zip(whole) {
        Some((time, whole)) if time.value < READ_TIME * whole => return None,
        Some((time, whole)) => {
            let share = (100.0 * time.value / whole).min(100.0);
            (format!("{share:.0}% of the time are reads"), format!("{} of reads", time.text))
        }
        None if reads.value < READ_SHARE * buffers.value => return None,
        None => ("Nearly all buffers were read from disk".to_string(), "their time is not known".to_string()),
    };
    let most = plan.operations.iter().filter(|it| !it.name.is_empty());
    let most = most.max_by(|one, two| {
        let of = |it: &PlanOperation| it.reads.as_ref().map_or(0.0, |reads| reads.value);
        of(one).total_cmp(&of(two))
    });
    let most = most.map_or(String::new(), |it| format!(", most by {}", called(it)));
    let evidence = format!("{} blocks were read for {} buffers{most}; {evidence}", reads.text, buffers.text);
    let advice =
        "execute it again: without these reads the cache was cold, otherwise its blocks do not fit the cache";
    Some(finding("P7", what, evidence, advice.to_string()))
}

#[cfg(test)]
mod tests;
