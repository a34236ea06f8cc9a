//! `plumb compare`: real runs, and arms of a study made of one real record with other times.

use crate::program::{fine, plumb, refused};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A run of few rows; its record.
fn run(directory: &Path, bundle: &str) -> Value {
    fine(directory, ["run", "large-sort", "--rows", "20K", "--bundle", bundle]);
    let text = fs::read_to_string(directory.join(bundle).join("record.json")).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

/// A study of two arms: the second takes 80% of the first's time, give or take a wobble; block 3 failed.
fn study(directory: &Path, bundle: &str, record: &Value, workload: &str) {
    let runs = directory.join(bundle).join("runs");
    fs::create_dir_all(&runs).expect("a directory");
    let mut number = 0;
    for block in 0..=9u64 {
        // The third slot is the reference's second run.
        for (slot, arm, share) in [(0, 0, 1.0), (1, 1, 0.8), (2, 0, 50.0)] {
            number += 1;
            let mut record = record.clone();
            let wobble = 1.0 + 0.01 * ((block * 7 + slot * 3) % 5) as f64;
            let header = &mut record["header"];
            header["workload"] = json!(workload);
            header["elapsed_ns"] = json!((1e9 * share * wobble) as u64);
            let arms = ["direct=FALSE", "direct=TRUE"];
            let failed = block == 3 && slot == 1;
            let stored = json!({
                "number": number, "arm": arms[arm], "arm_index": arm, "block": if block == 0 { Value::Null } else { json!(block) },
                "position": slot + 1, "slot": slot, "start_ns": 0, "record": if failed { Value::Null } else { record },
            });
            fs::write(runs.join(format!("{number:04}.json")), stored.to_string()).expect("a file");
        }
    }
}

/// The line that begins so.
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    text.lines()
        .find(|line| line.trim_start().starts_with(begin))
        .unwrap_or_else(|| panic!("no line {begin:?} in\n{text}"))
}

#[test]
fn two_runs_are_shown_side_by_side_without_differences() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run(directory.path(), "one");
    run(directory.path(), "two");
    let text = fine(directory.path(), ["compare", "one", "two/record.json", "--html", "compare.html"]);
    assert!(
        text.starts_with(
            "PLUMB COMPARE PERIOD REPORT  Workload: large-sort\nElapsed time: no verdict: one run a side\n"
        ),
        "{text}"
    );
    assert_eq!(line(&text, "%Diff:"), "%Diff:");
    assert_eq!(line(&text, "Elapsed  ").split_whitespace().count(), 3, "a name and two times");
    let page = fs::read_to_string(directory.path().join("compare.html")).expect("a page");
    assert!(page.contains("Host Configuration Comparison") && page.ends_with("</html>\n"));
    let json = fine(directory.path(), ["compare", "one", "two", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON and nothing else");
    assert_eq!((&json["pairing"], &json["differences"]), (&json!("single"), &json!([])));
}

#[test]
fn arms_of_a_study_are_compared_block_by_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path(), "one");
    study(directory.path(), "study", &record, "large-sort");
    study(directory.path(), "other", &record, "large-sort");
    let text = fine(directory.path(), ["compare", "study:direct=FALSE", "study:2"]);
    assert!(line(&text, "Elapsed time:").starts_with("Elapsed time: PROVED faster by 2"), "{text}");
    assert!(text.contains("1 of 9 blocks left out"), "{text}");
    let elapsed = line(&text, "Elapsed  ").split_whitespace().collect::<Vec<_>>();
    assert_eq!((elapsed[elapsed.len() - 2], elapsed[elapsed.len() - 1]), ("8", "lower"), "{elapsed:?}");
    // The second run of the reference, fifty times as long, is no run of the arm.
    assert!(line(&text, "First (1st)").contains("direct=FALSE    8"), "{text}");
    let rows = line(&text, "sorts (rows)");
    assert!(rows.ends_with("0.0                 8 same") || rows.trim_end().ends_with("8 same"), "{rows}");

    let apart = fine(directory.path(), ["compare", "study:1", "other:2"]);
    assert!(apart.contains("no verdict: the two sets were not interleaved"), "{apart}");
    let elapsed = line(&apart, "Elapsed  ").split_whitespace().collect::<Vec<_>>();
    assert_eq!(elapsed.last(), Some(&"lower"), "{elapsed:?}");
    assert!(elapsed.iter().all(|word| !word.starts_with('[')), "an interval without a test: {elapsed:?}");
}

#[test]
fn a_run_that_must_not_be_believed_ends_in_its_exit_code() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut record = run(directory.path(), "one");
    record["receipts"][0]["held"] = json!("contradicted");
    fs::write(directory.path().join("bad.json"), record.to_string()).expect("a file");
    let ended = plumb(directory.path(), ["compare", "one", "bad.json"]);
    assert_eq!(ended.code, Some(5));
    assert!(ended.stdout.contains("  -> 2nd is INVALID: receipt contradicts"), "{}", ended.stdout);
}

#[test]
fn what_does_not_compare_is_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut record = run(directory.path(), "one");
    study(directory.path(), "study", &record, "large-sort");
    study(directory.path(), "redo", &record, "redo");
    record["schema_version"] = json!(99);
    fs::write(directory.path().join("future.json"), record.to_string()).expect("a file");
    fs::create_dir(directory.path().join("empty")).expect("a directory");
    let cases = [
        ["one", "missing"],
        ["one", "empty"],
        ["one", "future.json"],
        ["one", "study"],
        ["one", "study:3"],
        ["one", "redo:1"],
        ["study:1", "study:direct=FALSE"],
    ];
    let said = cases.map(|[first, second]| {
        let (code, message) = refused(directory.path(), ["compare", first, second]);
        format!("$ plumb compare {first} {second}\nplumb: {message}\n[{code}]\n")
    });
    insta::assert_snapshot!(said.join("\n"));
}
