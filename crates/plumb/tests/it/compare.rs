//! `plumb compare`: real runs, and arms of a study made of one real record with other times.

use crate::program::{fine, plumb, refused};
use crate::study_file::StudyFile;
use plumb_run::embedded::Engine;
use plumb_study::bundle::{Bundle, EndFile, Environment, Reservation, Stop};
use plumb_study::definition::parse;
use plumb_study::plan::{Plan, PlanOptions, Until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Makes a run of few rows; returns its record.
fn run(directory: &Path, bundle: &str) -> Value {
    fine(directory, ["run", "large-sort", "--rows", "20K", "--bundle", bundle]);
    let text = fs::read_to_string(directory.join(bundle).join("record.json")).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

const STUDY: StudyFile<'static> = StudyFile {
    name: "made-up",
    top: "workload = \"large-sort\"\nrows = \"20K\"",
    blocks: 12,
    sections: "",
    setting: "sort_direct_writes",
    levels: ["\"FALSE\"", "\"TRUE\""],
    expect: "faster",
};

/// Makes a study of two arms. The second takes about 80% of the first's time,
/// with noise; block 3 failed.
fn study(directory: &Path, bundle: &str, record: &Value, workload: &str) {
    let study = parse("made-up.toml", &STUDY.text(), &[&Engine]).expect("well formed");
    let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 1).expect("a design");
    let environment = json!({
        "plumb_version": "0", "git_revision": null, "target": "made-up figures", "host": record["header"]["host"],
        "devices": [], "calibration_date": null, "limits": [], "settings": [], "begin_ns": 0, "begin_time": "",
        "command_line": "",
    });
    let environment: Environment = serde_json::from_value(environment).expect("an environment");
    let reserved = Reservation::named(&directory.join(bundle)).expect("an empty directory");
    let mut bundle = Bundle::create(reserved, &plan, environment).expect("a bundle");
    let cells = (0..=12).flat_map(|block| plan.block(block));
    for (number, cell) in (1..).zip(cells) {
        let mut record = record.clone();
        let wobble = 1.0 + 0.01 * ((cell.block * 7 + cell.slot * 3) % 5) as f64;
        // The third slot is the reference's second run.
        let share = [1.0, 0.8, 1.02][cell.slot];
        record["header"]["workload"] = json!(workload);
        // These rows fit in memory, where the setting of the study has no effect.
        for receipt in record["receipts"].as_array_mut().expect("receipts") {
            if receipt["setting"] == "sort_direct_writes" {
                receipt["held"] = json!("held");
            }
        }
        record["header"]["elapsed_ns"] = json!((1e9 * share * wobble) as u64);
        let failed = cell.block == 3 && cell.slot == 1;
        let ended = if failed {
            json!({ "state": "failed", "reason": "killed" })
        } else {
            json!({ "state": "finished" })
        };
        let run = json!({
            "number": number, "arm": plan.arm_name(cell.arm), "arm_index": cell.arm, "position": cell.position,
            "block": if cell.block == 0 { Value::Null } else { json!(cell.block) }, "slot": cell.slot, "start_ns": 0,
            "settled": { "waited_ns": 0, "idle": true, "resident_pages": 0, "total_pages": 1 }, "ended": ended,
            "record": if failed { Value::Null } else { record },
        });
        bundle.add(&serde_json::from_value(run).expect("a run")).expect("it is written");
    }
    bundle.end(EndFile { stop: Stop::Planned, end_ns: 1 }).expect("it is written");
}

#[test]
fn arms_of_a_study_that_has_not_ended_are_compared_by_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path(), "one");
    study(directory.path(), "study", &record, "large-sort");
    let mut bundle = Bundle::open(&directory.path().join("study"), &[&Engine]).expect("a bundle");
    bundle.end(EndFile { stop: Stop::Interrupted, end_ns: 1 }).expect("it is written");
    drop(bundle);
    let (code, message) = refused(directory.path(), ["compare", "study:1", "study:2"]);
    assert_eq!(code, 2);
    assert!(
        message.contains("study has not ended") && message.contains("plumb report --end study"),
        "{message}"
    );
    let shown = plumb(directory.path(), ["report", "study"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.stdout.contains("UNFINISHED (interrupted; no verdict before its end)"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("PROVED"), "{}", shown.stdout);
    // Once ended, it has its verdict and cannot continue.
    let ended = plumb(directory.path(), ["report", "--end", "study"]);
    assert!(ended.stdout.contains("claim"), "{}", ended.stdout);
    fine(directory.path(), ["compare", "study:1", "study:2"]);
}

/// Returns the line with this prefix.
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    text.lines()
        .find(|line| line.trim_start().starts_with(begin))
        .unwrap_or_else(|| panic!("no line {begin:?} in\n{text}"))
}

#[test]
fn two_runs_are_shown_side_by_side_with_raw_changes_and_no_test() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run(directory.path(), "one");
    run(directory.path(), "two");
    let text = fine(directory.path(), ["compare", "one", "two/record.json", "--html", "compare.html"]);
    let head = "PLUMB COMPARE PERIOD REPORT  Workload: large-sort\nlarge-sort, 2nd against 1st: 2nd takes ";
    assert!(text.starts_with(head), "{text}");
    // Other tests on the machine may disturb the runs.
    let state = text.split_once("\nElapsed time: no verdict: one run a side").map(|(_, rest)| rest);
    assert!(state.is_some_and(|rest| rest.starts_with(['\n', ','])), "{text}");
    assert!(line(&text, "%Diff:").ends_with(')'), "{text}");
    // A heading of the table of sets may begin with the same word and as many blanks.
    let elapsed = line(text.split("\nTimes\n").nth(1).expect("a section"), "Elapsed  ");
    assert!(elapsed.trim_end().ends_with("one run each") && elapsed.contains('('), "{elapsed}");
    assert!(!elapsed.contains('['), "an interval without a test: {elapsed}");
    let page = fs::read_to_string(directory.path().join("compare.html")).expect("a page");
    assert!(page.contains("Host Configuration Comparison") && page.ends_with("</html>\n"));
    let json = fine(directory.path(), ["compare", "one", "two", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON and nothing else");
    assert_eq!(json["pairing"], "single");
    let differences = json["differences"].as_array().expect("a list");
    assert!(
        !differences.is_empty()
            && differences.iter().all(|row| row["outcome"] == "raw" && row["p"].is_null())
    );
}

#[test]
fn what_was_asked_of_the_workload_is_in_the_record_and_compared() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path(), "one");
    let expected = [("rows", "20000"), ("seed", "1996"), ("sorters", "1"), ("with", "nothing")];
    let parameter = |(name, value): (&str, &str)| json!({ "name": name, "value": value });
    assert_eq!(record["parameters"], json!(expected.map(parameter)));
    fine(directory.path(), ["run", "large-sort", "--rows", "30K", "--bundle", "two"]);
    let text = fine(directory.path(), ["compare", "one", "two"]);
    let differ = text.split("Settings That Differ").nth(1).expect("a section");
    let row = line(differ, "rows").split_whitespace().collect::<Vec<_>>();
    assert_eq!(row, ["rows", "20000", "30000", "*"]);
    let same = fine(directory.path(), ["compare", "one", "one"]);
    assert!(same.contains("none: both sets have the same settings and parameters\n"), "{same}");
}

#[test]
fn arms_of_a_study_are_compared_block_by_block() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path(), "one");
    study(directory.path(), "study", &record, "large-sort");
    study(directory.path(), "other", &record, "large-sort");
    let text = fine(directory.path(), ["compare", "study:x=FALSE", "study:2"]);
    assert!(line(&text, "Elapsed time:").starts_with("Elapsed time: PROVED faster by 2"), "{text}");
    assert!(text.contains("1 of 12 blocks left out"), "{text}");
    assert!(text.contains("  -> 1 block was lost to a failed run of its arms and left out\n"), "{text}");
    let elapsed = line(&text, "Elapsed  ").split_whitespace().collect::<Vec<_>>();
    assert_eq!((elapsed[elapsed.len() - 2], elapsed[elapsed.len() - 1]), ("11", "lower"), "{elapsed:?}");
    assert!(text.contains("  -> as the claim x of the study says it\n"), "{text}");
    // The second run of the reference is no run of the arm, and the study's test knows both.
    assert!(line(&text, "First (1st)").contains("x=FALSE   11"), "{text}");
    let rows = line(&text, "sorts (rows)");
    assert!(rows.trim_end().ends_with("11 same"), "{rows}");

    let apart = fine(directory.path(), ["compare", "study:1", "other:2"]);
    assert!(apart.contains("no verdict: the two sets were not interleaved"), "{apart}");
    let elapsed = line(&apart, "Elapsed  ").split_whitespace().collect::<Vec<_>>();
    assert_eq!(elapsed.last(), Some(&"lower"), "{elapsed:?}");
    assert!(elapsed.iter().all(|word| !word.starts_with('[')), "an interval without a test: {elapsed:?}");
}

#[test]
fn a_flipped_byte_in_a_bundle_is_no_figure_but_a_refusal() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = run(directory.path(), "one");
    study(directory.path(), "study", &record, "large-sort");
    let file = directory.path().join("study/runs/0009.json");
    let text = fs::read_to_string(&file).expect("a run");
    let at = text.find("\"elapsed_ns\": ").expect("a time") + 14;
    let mut bytes = text.into_bytes();
    // Another digit: the file is still valid, with another time.
    bytes[at] ^= 1;
    fs::write(&file, bytes).expect("a file");
    let (code, message) = refused(directory.path(), ["compare", "study:1", "study:2"]);
    assert_eq!(code, 5);
    assert!(
        message.contains("runs/0009.json has changed since it was written: its SHA-256 is "),
        "{message}"
    );
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
        ["study:1", "study:x=FALSE"],
    ];
    let said = cases.map(|[first, second]| {
        let (code, message) = refused(directory.path(), ["compare", first, second]);
        format!("$ plumb compare {first} {second}\nplumb: {message}\n[{code}]\n")
    });
    insta::assert_snapshot!(said.join("\n"));
}
