//! Output for other programs: `--json` of each command, forms of a study, named baselines.

use crate::program::{fine, refused};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Runs a command with `--json`; standard output must be JSON and nothing else.
#[track_caller]
fn json(directory: &Path, arguments: &str) -> Value {
    let printed = fine(directory, arguments.split(' ').chain(["--json"]));
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{arguments}: {error}: {printed}"))
}

#[test]
fn commands_of_a_database_print_json() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("t.csv"), "town,people\nBern,134\nRome,\n").expect("a file");
    json(here, "load t.csv --table t");
    let rows = json(here, "head t");
    assert_eq!(rows[0]["TOWN"], "Bern");
    assert_eq!(rows[1]["PEOPLE"], Value::Null);
    let index = json(here, "index t town");
    assert_eq!(index["header"]["workload"], "index");
    assert_eq!(json(here, "export t --output out.csv")["rows"], 2);
    let copied = json(here, "backup kept");
    assert!(copied["files"].as_u64() > Some(2), "{copied}");
    fs::create_dir(here.join("again")).expect("a directory");
    assert_eq!(json(here, "restore kept --path again")["files"], copied["files"]);
    assert_eq!(json(here, "drop t")["table"], "T");
    assert_eq!(json(here, "clean")["freed_bytes"], 0);
}

#[test]
fn bundles_print_json_and_have_names_to_compare_with() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for bundle in ["one", "two"] {
        fine(here, ["run", "redo", "--rows", "2K", "--trace", "--quiet", "--bundle", bundle]);
    }
    let rows = json(here, "info one two");
    assert_eq!(rows[1]["file"], "two");
    assert!(rows[0]["elapsed"].as_f64() > Some(0.0), "{rows}");
    assert_eq!(json(here, "report one")["header"]["workload"], "redo");
    assert!(json(here, "trace one")["requests"].as_u64() > Some(0));
    assert!(json(here, "share one --output copy")["files"].as_u64() > Some(0));
    fine(here, ["compare", "one", "--save-baseline", "before"]);
    let named = json(here, "compare two --baseline before");
    let paths = json(here, "compare one two");
    assert_eq!(named["judged"], paths["judged"]);
    let (code, said) = refused(here, ["compare", "two", "--baseline", "befor"]);
    assert!(code == 2 && said.contains("did you mean before?"), "{said}");
    let (code, said) = refused(here, ["compare", "one"]);
    assert!(code == 2 && said.contains("<SECOND>"), "{said}");
}

#[test]
fn a_study_is_printed_for_a_review_and_for_a_build_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let study = ["study", "--command", "true {n}", "--factor", "n=1,2,4", "--blocks", "2", "--bundle", "s"];
    let ended = crate::program::plumb(here, study.into_iter().chain(["--format", "markdown"]));
    assert!(ended.stdout.starts_with("# PLUMB STUDY REPORT"), "{}{}", ended.stdout, ended.stderr);
    let xml = fine(here, ["report", "s", "--format", "junit"]);
    assert!(xml.starts_with("<?xml") && xml.contains("<testcase classname="), "{xml}");
    assert_eq!(json(here, "verify s")["runs"], 8);
    assert!(json(here, "report s")["arms"].as_array().is_some_and(|arms| arms.len() == 3));
    let best = json(here, "report s --best n");
    assert_eq!(best["levels"].as_array().map(Vec::len), Some(3));
    assert!(["1", "2", "4"].contains(&best["best"].as_str().expect("a level")), "{best}");
    let shown = fine(here, ["report", "s", "--best", "n", "--limit", "elapsed<=1000"]);
    assert!(shown.contains("the first level at 95% of the best"), "{shown}");
    let (code, said) = refused(here, ["report", "s", "--best", "m"]);
    assert!(code == 2 && said.contains("the study varies n"), "{said}");
}

#[test]
fn rules_and_reasons_are_listed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let rules = json(directory.path(), "list rules");
    let ids = rules.as_array().expect("a list").iter().map(|row| row["rule"].as_str());
    assert!(ids.flatten().any(|id| id == "R7"), "{rules}");
    let reasons = json(directory.path(), "list reasons");
    assert!(reasons.as_array().is_some_and(|rows| rows.len() > 10), "{reasons}");
}
