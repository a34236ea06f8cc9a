//! Operations of a workload: the statistic that counts them.

use crate::Record;

/// Statistics that count operations, with the name of one; the first that is not zero is used.
const OPERATIONS: [(&str, &str); 5] = [
    ("execute count", "statement"),
    ("rows inserted", "row inserted"),
    ("sorts (rows)", "row sorted"),
    ("direct load rows", "row loaded"),
    ("user commits", "commit"),
];

/// Returns the name of the workload's operations and their number; `None` if nothing counts them.
pub fn operations(run: &Record) -> Option<(&'static str, u64)> {
    OPERATIONS.iter().find_map(|(statistic, name)| Some((*name, total(run, statistic)?)))
}

/// Returns the growth of a statistic; `None` if it is zero.
pub fn total(run: &Record, name: &str) -> Option<u64> {
    run.statistics.iter().find(|row| row.name == name).map(|row| row.total).filter(|total| *total > 0)
}
