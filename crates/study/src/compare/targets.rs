//! Runs of one workload on two targets: what is alike, and what is not.
//!
//! Workload, rows and seed are the same where parameters are. Each target does the work in its own
//! way, so a difference of times is one of programs and not of a setting. The report says that
//! before the first figure.

use plumb_record::{ParameterRow, Record};

/// Differences of a workload between the embedded engine and a server, by its name.
const WORKLOADS: [(&str, &str); 5] = [
    (
        "large-sort",
        "the server writes the index through the page cache and syncs it at the end, without a log",
    ),
    (
        "redo",
        "an array is one INSERT of the server, sent by a client; the engine's sessions are in its process",
    ),
    (
        "slob",
        "a row fills its block in the engine, and has a third of one on the server, which needs room for new versions; the \
         server's reads may come from the page cache",
    ),
    ("scan", "the server reads the table through its buffers and the page cache"),
    ("pgbench", "only the server runs it"),
];

fn target(runs: &[Record]) -> Option<&str> {
    runs.first()?.server.as_deref()
}

/// Returns sentences about what does not compare between runs of two targets; none for runs of one.
pub(super) fn remarks(first: &[Record], second: &[Record]) -> Vec<String> {
    let sides = [target(first), target(second)];
    if sides[0] == sides[1] {
        return Vec::new();
    }
    let [one, two] = sides.map(|server| server.unwrap_or("the embedded engine"));
    let mut remarks = vec![format!(
        "1st ran in {one}, 2nd in {two}: like for like are elapsed and DB time, CPU and run queue, bytes at the device and of \
         the log, commits and operations"
    )];
    let others = differing(first, second);
    remarks.extend((!others.is_empty()).then(|| format!("not the same work: {}", others.join(", "))));
    if sides.contains(&None) {
        let workload = first.first().map_or("", |run| run.header.workload.as_str());
        let own = WORKLOADS.iter().find(|(name, _)| *name == workload);
        remarks.extend(own.map(|(_, what)| format!("not like for like: {what}")));
        remarks.push(
            "not like for like: events have each program's own names; their times are measured in the engine, and shares of \
             the time off CPU by samples on the server"
                .to_string(),
        );
    }
    remarks
}

/// Returns the parameters that differ, each with both values.
fn differing(first: &[Record], second: &[Record]) -> Vec<String> {
    let parameters = |runs: &[Record]| runs.first().map(|run| run.parameters.clone()).unwrap_or_default();
    let (one, two) = (parameters(first), parameters(second));
    let value =
        |row: &ParameterRow| two.iter().find(|other| other.name == row.name).map(|row| row.value.clone());
    let differs =
        one.iter().filter_map(|row| Some((row, value(row)?))).filter(|(row, other)| row.value != *other);
    differs.map(|(row, other)| format!("{} {} and {other}", row.name, row.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(server: Option<&str>, rows: &str) -> Record {
        let mut run = plumb_record::fixture::record(1_000_000_000, 2);
        run.header.workload = "slob".to_string();
        run.server = server.map(str::to_string);
        run.parameters = vec![ParameterRow { name: "scale".to_string(), value: rows.to_string() }];
        run
    }

    #[test]
    fn runs_of_two_targets_say_what_does_not_compare() {
        let (engine, server) = (run(None, "80M"), run(Some("PostgreSQL 15.18"), "40M"));
        assert!(remarks(std::slice::from_ref(&engine), std::slice::from_ref(&engine)).is_empty());
        let found = remarks(std::slice::from_ref(&engine), std::slice::from_ref(&server));
        assert!(
            found[0]
                .starts_with("1st ran in the embedded engine, 2nd in PostgreSQL 15.18: like for like are ")
        );
        assert_eq!(found[1], "not the same work: scale 80M and 40M");
        assert!(found[2].contains("a row fills its block in the engine"), "{found:?}");
        let later = run(Some("PostgreSQL 18.1"), "40M");
        let found = remarks(&[server], &[later]);
        assert_eq!(found.len(), 1, "the same program and the same rows: {found:?}");
    }
}
