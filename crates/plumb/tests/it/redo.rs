//! The import workload: small and large commits, one session and several, single and in
//! a study; nothing is left.

use crate::program::{fine, names, refused};
use crate::study_file::StudyFile;
use serde_json::Value;
use std::fs;

/// Runs the workload with these arguments and returns the record.
fn run(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let all = ["run", "redo", "--json"].iter().chain(arguments).copied();
    let record = fine(directory.path(), all.collect::<Vec<_>>());
    assert_eq!(names(directory.path()), Vec::<String>::new(), "all files of the run are removed");
    let record: Value = serde_json::from_str(&record).expect("stdout is the record and nothing else");
    let checks = record["checks"].as_array().expect("a list");
    // The result, and that the figures of I/O add up.
    assert!(checks.len() >= 5, "{checks:?}");
    for check in checks {
        assert_eq!(check["passed"], true, "{arguments:?}: {check}");
    }
    for receipt in record["receipts"].as_array().expect("a list") {
        assert_ne!(receipt["held"], "contradicted", "{arguments:?}: {receipt}");
    }
    record
}

fn statistic(record: &Value, name: &str) -> u64 {
    let found = record["statistics"].as_array().expect("a list").iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("a statistic {name}"))["total"].as_u64().expect("a count")
}

#[test]
fn small_arrays_make_many_commits_and_large_ones_few() {
    let small = run(&["--rows", "5K"]);
    assert_eq!(statistic(&small, "rows inserted"), 5000);
    let commits = statistic(&small, "user commits");
    assert!((5000 / 25..5000 / 10).contains(&commits), "{commits} commits of arrays of 1K");
    assert_eq!(statistic(&small, "redo synch writes"), commits);
    assert!(statistic(&small, "redo writes") >= commits);
    let blocks = 512 * statistic(&small, "redo blocks written");
    let written = statistic(&small, "redo size") + statistic(&small, "redo wastage");
    assert!(blocks == written || 8 * blocks == written, "{blocks} {written}");
    let large = run(&["--rows", "40K", "--buffer", "16M", "--set", "filesystemio_options=none"]);
    assert_eq!((statistic(&large, "user commits"), statistic(&large, "rows inserted")), (1, 40_000));
    assert!(statistic(&large, "redo size") > 40_000 * 45);
}

#[test]
fn sessions_share_the_rows() {
    let record = run(&["--rows", "50K", "--buffer", "4K", "--sessions", "4"]);
    assert_eq!(statistic(&record, "rows inserted"), 50_000);
    let sessions = record["sessions"].as_array().expect("a list");
    let inserting = sessions.iter().filter(|session| session["role"] == "session").count();
    assert!(inserting >= 4, "{sessions:?}");
    run(&["--rows", "20K", "--sessions", "3", "--set", "io_method=null", "--set", "log_file_size=1M"]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (code, says) = refused(directory.path(), ["run", "redo", "--rows", "10", "--sessions", "2133"]);
    assert_eq!(code, 2, "{says}");
    assert!(says.starts_with("sessions=2133 contradicts at most 2132 transactions"), "{says}");
}

#[test]
fn a_buffer_that_no_log_takes_is_refused_by_its_own_name() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cases = [
        ("1T", "1", "buffer=1T contradicts 512G a session at most: "),
        ("8000P", "2", "buffer=8000P contradicts 256G a session at most: "),
    ];
    for (buffer, sessions, expected) in cases {
        let run = ["run", "redo", "--buffer", buffer, "--sessions", sessions];
        let (code, says) = refused(directory.path(), run);
        assert!(code == 2 && says.starts_with(expected) && says.contains("give a smaller buffer"), "{says}");
    }
}

/// Arguments for a small log, which is switched and freed by checkpoints.
#[test]
fn a_log_that_is_smaller_than_the_import_is_used_again_and_again() {
    let small = ["--set", "log_file_size=1M", "--set", "log_file_groups=2", "--set", "log_buffer=256K"];
    let cache = ["--set", "db_cache_size=1M"];
    let mut arguments = vec!["--rows", "60K", "--buffer", "8K"];
    arguments.extend(small.iter().chain(&cache));
    let record = run(&arguments);
    assert!(statistic(&record, "redo size") > 2 << 20);
    let receipts = record["receipts"].to_string();
    for setting in ["log_file_size", "log_file_groups", "buffer", "sessions"] {
        let held = record["receipts"].as_array().expect("a list").iter();
        let mut of = held.filter(|receipt| receipt["setting"] == setting);
        assert!(of.any(|receipt| receipt["held"] == "held"), "{setting}: {receipts}");
    }
}

#[test]
fn the_report_has_figures_a_transaction() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = fine(directory.path(), ["run", "redo", "--rows", "2K", "--set", "io_method=null"]);
    let line = |start: &str| report.lines().find(|line| line.starts_with(start)).unwrap_or_default();
    assert!(line("Load  ").contains("Per Transaction"), "{report}");
    assert!(line("Redo size (bytes)").split_whitespace().count() == 6, "{report}");
    assert!(line("Statistic ").contains("per Transaction"), "{report}");
    assert!(line("redo synch writes").split_whitespace().count() >= 6, "{report}");
    assert!(report.contains("log file parallel write"), "{report}");
    assert!(!report.contains("Rows sorted"), "{report}");
}

#[test]
fn a_study_varies_the_buffer_and_the_sessions() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let study = StudyFile {
        name: "commits",
        top: "workload = \"redo\"\nrows = 2000",
        blocks: 2,
        setting: "buffer",
        levels: ["\"1K\"", "\"64K\""],
        ..StudyFile::default()
    };
    study.write(directory.path());
    let ended = crate::program::plumb(directory.path(), ["study", "commits.toml", "--bundle", "out"]);
    assert!(matches!(ended.code, Some(0 | 3..=8)), "{ended:?}");
    let report = fs::read_to_string(directory.path().join("out/report.txt")).expect("a report");
    assert!(!report.contains("INVALID"), "{report}");
    assert!(report.contains("x=64K"), "{report}");
    let refused = refused(directory.path(), ["study", "commits.toml", "--rows", "0"]);
    assert_eq!(refused.0, 2, "{}", refused.1);
    StudyFile { name: "wrong", levels: ["\"1K\"", "\"many\""], ..study }.write(directory.path());
    let (code, says) = crate::program::refused(directory.path(), ["study", "wrong.toml"]);
    assert_eq!(code, 2, "{says}");
    assert!(says.starts_with("wrong.toml:"), "{says}");
}
