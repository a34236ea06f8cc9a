//! Places as factors: two directories compared, each file where it was
//! requested, nothing left in either.

use crate::program::{fine, names, plumb, refused};
use crate::study_file::StudyFile;
use serde_json::Value;
use std::fs;

const STUDY: StudyFile<'static> = StudyFile {
    name: "places",
    top: "workload = \"redo\"",
    blocks: 6,
    sections: "[parameters]\nrows = 2000",
    setting: "",
    levels: [
        r#"{ label = "beside", set = { path = "@1" } }"#,
        r#"{ label = "apart", set = { path = "@1", log_path = "@2" } }"#,
    ],
    expect: "differs",
};

#[test]
fn each_run_lies_where_its_arm_says_and_both_places_are_empty_afterwards() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for place in ["a", "b"] {
        fs::create_dir(directory.path().join(place)).expect("a place");
    }
    STUDY.write(directory.path());
    let study = ["study", "places.toml", "--path", "a", "--path", "b", "--bundle", "kept", "--seed", "1"];
    let ended = plumb(directory.path(), study);
    assert!(
        matches!(ended.code, Some(0 | 3 | 4 | 8)),
        "{:?}\n{}\n{}",
        ended.code,
        ended.stdout,
        ended.stderr
    );
    let mut seen = 0;
    for file in names(&directory.path().join("kept/runs")) {
        let text = fs::read_to_string(directory.path().join("kept/runs").join(&file)).expect("a run");
        let run: Value = serde_json::from_str(&text).expect("JSON");
        let apart = run["arm"] == "x=apart";
        let receipts = run["record"]["receipts"].as_array().expect("a list");
        let of = |name: &str| receipts.iter().find(|receipt| receipt["setting"] == name);
        assert_eq!(of("path").expect("a receipt")["held"], "held", "{file}");
        assert_eq!(of("log_path").is_some(), apart, "{file}");
        assert!(!apart || of("log_path").expect("a receipt")["held"] == "held", "{file}");
        for log in run["record"]["io_files"].as_array().expect("a list") {
            if log["tablespace"] == "(log)" {
                let place = if apart { "/b/" } else { "/a/" };
                assert!(log["path"].as_str().expect("a path").contains(place), "{log}");
            }
        }
        seen += 1;
    }
    assert_eq!(seen, 21, "a warm-up and six blocks of three runs");
    for place in ["a", "b"] {
        assert_eq!(names(&directory.path().join(place)), Vec::<String>::new());
    }
}

#[test]
fn a_study_of_places_says_which_are_missing_and_any_other_gets_a_factor_of_two() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    STUDY.write(directory.path());
    let (code, says) = refused(directory.path(), ["study", "places.toml", "--path", "."]);
    assert!(code == 2 && says.contains("compares 2 places, and 1 was named"), "{says}");
    let twice = format!("{}", directory.path().display());
    let (code, says) = refused(directory.path(), ["study", "storage", "--path", ".", "--path", &twice]);
    assert!(
        code == 2 && says.starts_with(&format!("--path . and --path {twice} are one directory")),
        "{says}"
    );
    let (code, says) = refused(directory.path(), ["study", "large-sort", "--path", ".", "--path", "nowhere"]);
    assert!(code == 1 && says.contains("there is no such directory"), "{says}");
    let (code, says) = refused(
        directory.path(),
        ["study", "--command", "true {x}", "--factor", "x=1,2", "--path", ".", "--path", "."],
    );
    assert!(code == 2 && says.contains("a command has one"), "{says}");
    assert!(
        fine(directory.path(), ["list", "studies"]).contains("storage-slob, storage-commits, storage-sort")
    );
}

#[test]
fn a_log_apart_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for place in ["a", "b"] {
        fs::create_dir(directory.path().join(place)).expect("a place");
    }
    let record =
        fine(directory.path(), ["run", "redo", "--rows", "2K", "--path", "a", "--log-path", "b", "--json"]);
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let receipts = record["receipts"].as_array().expect("a list");
    let log = receipts.iter().find(|receipt| receipt["setting"] == "log_path").expect("a receipt");
    assert_eq!(log["held"], "held", "{log}");
    for place in ["a", "b"] {
        assert_eq!(names(&directory.path().join(place)), Vec::<String>::new());
    }
}
