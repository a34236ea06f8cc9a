//! Snapshots within a run: reports and comparisons of periods, a line a run, samples during it.

use crate::program::{fine, names, plumb, refused};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Makes an import with frequent snapshots, so that a fast one has some, too; returns its record.
fn run(directory: &Path) -> Value {
    fine(
        directory,
        ["run", "redo", "--rows", "60K", "--sessions", "3", "--snapshot", "10ms", "--bundle", "run"],
    );
    let text = fs::read_to_string(directory.join("run/record.json")).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

fn total(row: &Value, name: &str) -> u64 {
    let rows = row["statistics"].as_array().expect("a list");
    rows.iter().find(|it| it["name"] == name).map_or(0, |it| it["total"].as_u64().expect("a count"))
}

#[test]
fn what_happened_between_snapshots_adds_up_to_the_run_and_any_two_of_them_make_a_report() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path());
    let intervals = record["intervals"].as_array().expect("a list");
    assert!(intervals.len() >= 2, "{} intervals of 10 ms", intervals.len());
    for name in ["user commits", "rows inserted", "redo size"] {
        let sum: u64 = intervals.iter().map(|interval| total(interval, name)).sum();
        assert_eq!(sum, total(&record, name), "{name}");
    }
    let ends = |index: usize| (intervals[index]["begin_ns"].as_u64(), intervals[index]["end_ns"].as_u64());
    assert_eq!(ends(0).1, ends(1).0, "no gap between two intervals");
    let receipt =
        record["receipts"].as_array().expect("a list").iter().find(|it| it["setting"] == "snapshot_interval");
    assert_eq!(receipt.expect("a receipt")["held"], "held");

    let report = fine(directory.path(), ["report", "run", "--begin", "1", "--end", "2"]);
    assert!(report.starts_with("PLUMB REPORT  Workload: redo  Snapshots: 1 to 2"), "{}", &report[..80]);
    assert!(names(&directory.path().join("run")).contains(&"report-1-2.html".to_string()));
    let compared = fine(directory.path(), ["compare", "run:1-2", "run:2-3"]);
    // A period of 10 ms may have no request of its own.
    for section in ["Snapshot Sets", "Where the Difference Comes From", "Load Profile", "Time Model"] {
        assert!(compared.contains(section), "{section}\n{compared}");
    }

    let last = intervals.len() + 1;
    let beyond = (last + 1).to_string();
    let (code, says) = refused(directory.path(), ["report", "run", "--begin", "1", "--end", &beyond]);
    assert_eq!(code, 1);
    let expected =
        format!("run: there is no period from snapshot 1 to {beyond}: its snapshots are 1 to {last}");
    assert!(says.starts_with(&expected), "{says}");
    for (arguments, why) in [
        (&["report", "run", "--end", "7"][..], "a period has a --begin too"),
        (&["report", "run", "--end", "seven"], "--end seven: expected the number of a snapshot"),
        (
            &["report", "run", "--begin=-1", "--end=2"],
            "--begin -1: expected the number of a snapshot, from 1",
        ),
        (&["report", "run", "--begin=x", "--end=2"], "--begin x: expected the number of a snapshot, from 1"),
    ] {
        let (code, says) = refused(directory.path(), arguments);
        assert!(code == 2 && says.contains(why), "{says}");
    }
}

/// A run of SLOB of three seconds, because its response times, trace, log and session
/// are of the whole run.
#[test]
fn a_period_leaves_out_what_is_known_of_the_whole_run_alone_and_says_so() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let small = ["--scale", "200", "--schemas", "2", "--work-unit", "16", "--sessions", "2"];
    let run = ["run", "slob", "--run-time", "3", "--update-pct", "20", "--snapshot", "1s", "--trace"];
    fine(directory.path(), run.into_iter().chain(small).chain(["--bundle", "run"]));
    let whole = fs::read_to_string(directory.path().join("run/report.txt")).expect("a report");
    let period = fine(directory.path(), ["report", "run", "--begin", "2", "--end", "3"]);
    let has = |report: &str, section: &str| {
        let heads = |line: &str| line == section || line.starts_with(&format!("{section}   "));
        report.lines().any(heads)
    };
    for section in ["Response Times", "Log I/O", "Requests"] {
        assert!(has(&whole, section), "{section}");
        assert!(!has(&period, section), "{section} of the whole run in a period's report:\n{period}");
    }
    assert!(!whole.contains("Left Out") && !whole.contains("Part of the Run"), "{whole}");
    let flat = period.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("from snapshot 2 to 3; checks and receipts are the run's"), "{period}");
    assert!(
        flat.contains("Left Out: response times, ") && flat.contains("log I/O, requests: kept for"),
        "{period}"
    );
    let table = period.split("Snapshots\n").nth(1).expect("the snapshots");
    let row = table.lines().find(|line| line.trim_start().starts_with("2 "));
    assert!(row.is_some(), "the snapshots keep their numbers:\n{table}");
}

#[test]
fn beside_a_run_its_devices_and_processors_are_seen_and_a_table_has_each_look() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path());
    let samples = record["beside"]["samples"].as_array().expect("a list");
    assert!(!samples.is_empty());
    let ends: Vec<u64> = samples.iter().map(|sample| sample["end_ns"].as_u64().expect("a time")).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    let csv = fs::read_to_string(directory.path().join("run/beside.csv")).expect("a table");
    let columns = |line: &str| line.matches(',').count();
    let mut lines = csv.lines();
    let head = columns(lines.next().expect("a head"));
    assert!(csv.lines().count() > samples.len() && lines.all(|line| columns(line) == head), "{csv}");
}

#[test]
fn a_line_a_run_has_the_figures_of_awr_info_and_what_an_operation_cost() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run(directory.path());
    let lines = fine(directory.path(), ["info", "run", "run/record.json"]);
    let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(rows.len(), 3, "{lines}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{lines}");
    let field = |name: &str| rows[1][rows[0].iter().position(|head| *head == name).expect("a column")];
    assert_eq!((field("FILE"), field("SESSIONS"), field("OP")), ("run", "3", "row inserted"));
    for name in ["ELAPSED", "DB Tm", "LIO", "REDO_MBS", "LFPW_LAT", "CPU_US/OP", "CS/OP", "WKB/OP"] {
        assert!(field(name).parse::<f64>().is_ok_and(|value| value > 0.0), "{name}: {lines}");
    }
    fs::create_dir(directory.path().join("measured")).expect("a directory");
    fs::write(directory.path().join("measured/calibration.json"), "{}").expect("a file");
    let ended = plumb(directory.path(), ["info", "nowhere", "measured", "run"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 2, "what can be read is shown: {}", ended.stdout);
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(said[0], "measured is a calibration and no run; `plumb report measured` shows it");
    assert!(said.len() == 2 && said[1].starts_with("plumb: cannot read nowhere"), "{said:?}");
}
