//! What a table shows of made-up records.

use super::*;

fn record(peer: &'static str, work: &'static str, mb: u64, reach: Reach, seconds: &[f64]) -> Record {
    let task = Task { action: "", work, produces: "index", memory: Bytes(mb * Bytes::M), reach };
    let run = |seconds: &f64| Run {
        seconds: *seconds,
        memory_start: Bytes(10 * Bytes::M),
        memory_peak: Bytes(90 * Bytes::M),
        output: Bytes(200 * Bytes::M),
        ..Run::default()
    };
    Record {
        peer,
        version: "1.0".to_string(),
        task: Some(task),
        runs: seconds.iter().map(run).enumerate().collect(),
        failure: None,
    }
}

fn records() -> Vec<Record> {
    let mut failed = record("sorter", "sort", 64, Reach::OwnLimit, &[]);
    failed.failure = Some("no memory |\nleft".to_string());
    let missing = Record {
        peer: "absent",
        version: String::new(),
        task: None,
        runs: Vec::new(),
        failure: Some("not fetched".to_string()),
    };
    vec![
        record("plumb", "create_index", 64, Reach::OwnLimit, &[0.5, 0.4, 0.6]),
        record("plumb", "create_index", 256, Reach::OwnLimit, &[0.4, 0.4, 0.4]),
        record("elephant", "serial", 64, Reach::Sweep, &[4.0, 4.0, 4.2]),
        record("elephant", "serial", 256, Reach::Sweep, &[3.0, 3.0, 3.0]),
        record("elephant", "serial", 1024, Reach::Sweep, &[3.5, 3.5, 3.5]),
        failed,
        missing,
    ]
}

#[test]
fn a_limit_shows_its_own_tasks_and_the_best_of_each_sweep() {
    let settings = |mb: u64| -> Vec<String> {
        let rows = rows(&records(), Bytes(mb * Bytes::M));
        rows.into_iter().map(|row| format!("{} {}", row.peer, row.setting)).collect()
    };
    assert_eq!(
        settings(64),
        [
            "plumb create_index",
            "elephant serial, best within limit: 64.0 MB",
            "elephant serial, best of all: 256 MB",
            "sorter sort",
            "absent ",
        ]
    );
    assert_eq!(
        settings(256),
        ["plumb create_index", "elephant serial, best within limit: 256 MB", "absent "]
    );
}

#[test]
fn ratios_are_of_medians_and_their_range_of_rounds() {
    let rows = rows(&records(), Bytes(64 * Bytes::M));
    let ratio = rows[1].ratio.expect("both ran");
    assert!((ratio.median - 8.0).abs() < 1e-9);
    assert!((ratio.least - 7.0).abs() < 1e-9);
    assert!((ratio.most - 10.0).abs() < 1e-9);
    assert!(rows[3].ratio.is_none());
}

#[test]
fn a_ratio_is_of_the_rounds_that_both_ran() {
    let standard = record("plumb", "create_index", 64, Reach::OwnLimit, &[1.0, 2.0]);
    let failed_later = record("sorter", "sort", 64, Reach::OwnLimit, &[3.0]);
    let ratio = ratio(&failed_later, &standard).expect("one round");
    assert_eq!((ratio.median, ratio.least, ratio.most), (3.0, 3.0, 3.0));
}

#[test]
fn what_failed_is_a_row_that_says_why() {
    let text = show(&rows(&records(), Bytes(64 * Bytes::M)));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7);
    assert!(lines[5].ends_with("| failed: no memory / left |"), "{}", lines[5]);
    assert!(lines[6].contains("| failed: not fetched "), "{}", lines[6]);
    assert!(lines[2].contains("| 0.500    | 0.400 .. 0.600 | 1.00 [1.00 .. 1.00]"), "{}", lines[2]);
    let width = lines[0].chars().count();
    assert!(lines.iter().all(|line| line.chars().count() == width), "\n{text}");
}
