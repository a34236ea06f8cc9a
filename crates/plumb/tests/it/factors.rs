//! Studies of a workload given on the command line.

use crate::program::{fine, names, plumb, refused};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// Makes a directory in memory, or on disk if there is no tmpfs.
fn place() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory")
}

/// Runs one block of such a study. Returns its analysis, and the receipts of
/// all runs for a setting.
fn study(here: &Path, words: &[&str], setting: &str) -> (Value, Vec<String>) {
    let all =
        ["study"].iter().chain(words).chain(&["--blocks", "1", "--seed", "1", "--bundle", "kept", "--json"]);
    let ended = plumb(here, all);
    assert_eq!(ended.code, Some(3), "one block proves nothing: {}", ended.stderr);
    let analysis: Value = serde_json::from_str(&ended.stdout).expect("an analysis");
    assert_eq!(
        analysis["design"]["blocks_used"], 1,
        "{words:?}: {}",
        analysis["claims"][0]["verdict"]["line"]
    );
    fine(here, ["verify", "kept"]);
    let runs = names(&here.join("kept/runs")).into_iter().map(|name| {
        let text = std::fs::read_to_string(here.join("kept/runs").join(name)).expect("a record");
        serde_json::from_str::<Value>(&text).expect("JSON")
    });
    let held = runs.flat_map(|run| run["record"]["receipts"].as_array().cloned().unwrap_or_default());
    let held =
        held.filter(|receipt| receipt["setting"] == setting).map(|receipt| receipt["held"].to_string());
    let held = held.collect();
    std::fs::remove_dir_all(here.join("kept")).expect("a bundle");
    assert_eq!(names(here), Vec::<String>::new(), "nothing else stays");
    (analysis, held)
}

#[test]
fn every_workload_is_studied_by_values_of_a_setting_or_a_parameter() {
    let directory = place();
    let cases: [(&[&str], &str, &str); 5] = [
        (
            &[
                "large-sort",
                "--rows",
                "20K",
                "--factor",
                "sort_area_size=64K,256K",
                "--set",
                "parallel_degree=1",
            ],
            "sort_area_size",
            "sort_area_size-256K",
        ),
        (
            &[
                "record-sort",
                "--size",
                "2M",
                "--factor",
                "parallel_degree=1,2",
                "--set",
                "sort_area_size=256K",
            ],
            "parallel_degree",
            "parallel_degree-2",
        ),
        (&["redo", "--rows", "2K", "--factor", "buffer=1K,4K", "--data-seed", "7"], "buffer", "buffer-4K"),
        (&["ctas", "--rows", "1K", "--factor", "logging=logging,nologging"], "logging", "logging-nologging"),
        (
            &[
                "slob",
                "--scale",
                "200",
                "--schemas",
                "2",
                "--work-unit",
                "16",
                "--work-loop",
                "20",
                "--factor",
                "sessions=1,2",
                "--measure",
                "db time",
            ],
            "sessions",
            "sessions-2",
        ),
    ];
    for (words, setting, claim) in cases {
        let (analysis, held) = study(directory.path(), words, setting);
        assert_eq!(analysis["claims"][0]["name"], claim);
        assert_eq!(held.len() % 6, 0, "each of six runs has its receipts: {held:?}");
        assert!(held.iter().all(|held| held != "\"contradicted\""), "{words:?}: {held:?}");
        assert!(!held.is_empty(), "{words:?}: a receipt of {setting}");
    }
}

#[test]
fn factors_are_crossed_and_each_value_is_a_claim_against_the_first() {
    let directory = place();
    let words = [
        "slob",
        "--scale",
        "200",
        "--schemas",
        "2",
        "--work-unit",
        "16",
        "--run-time",
        "50ms",
        "--sessions",
        "2",
        "--factor",
        "update-pct=0,50",
        "--factor",
        "db_cache_size=1M,2M,4M",
    ];
    let (analysis, _) = study(directory.path(), &words, "db_cache_size");
    assert_eq!(analysis["arms"].as_array().map(Vec::len), Some(6));
    let claims: Vec<&str> = analysis["claims"]
        .as_array()
        .expect("claims")
        .iter()
        .map(|it| it["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(claims, ["update-pct-50", "db_cache_size-2M", "db_cache_size-4M"]);
    assert_eq!(analysis["study"]["name"], "slob-update-pct-db_cache_size");
    assert_eq!(analysis["study"]["measure"]["name"], "execute count/s");
}

#[test]
fn what_cannot_be_stated_is_refused_with_what_can() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("own.toml"), "name = \"own\"\n").expect("a file");
    let io = "filesystemio_options=none,setall";
    let cases: [(&[&str], &str); 9] = [
        (
            &["own.toml", "--factor", io],
            "--factor: own.toml is a study file, which has its own factors; write another",
        ),
        (
            &["fio-engines", "--factor", "x=1,2"],
            "--factor: the study fio-engines has its own factors; name a workload",
        ),
        (&["slob"], "slob is a workload, and a study varies something: `plumb study slob --factor "),
        (
            &["larg-sort", "--factor", io],
            "plumb study larg-sort: there is no workload \"larg-sort\"; it takes ",
        ),
        (
            &["slob", "--factor", "filesystemio_options"],
            "--factor filesystemio_options: expected a name with its values",
        ),
        (
            &["slob", "--factor", "io_method=sync"],
            "--factor io_method=sync: one value is not varied; give it two",
        ),
        (
            &["slob", "--factor", "hotspot-size=8M,16M"],
            "--factor hotspot-size: it has no effect, for there is no hot spot",
        ),
        (
            &["slob", "--factor", io, "--think-min", "1"],
            "--think-min: it has no effect, for there are no pauses; give think-frequency too; or leave it out",
        ),
        (
            &["--command", "true {x}", "--factor", "x=1,2", "--path", "."],
            "--path: no command of the study has the word {path}",
        ),
    ];
    for (words, why) in cases {
        let (code, said) = refused(directory.path(), ["study"].iter().chain(words));
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.starts_with(why), "{words:?}: {said}");
    }
    assert_eq!(names(directory.path()), ["own.toml"], "nothing is begun");
}

#[test]
fn options_that_only_the_data_can_tell_idle_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    std::fs::write(here.join("t.csv"), "a\n1\n2\n").expect("a file");
    fine(here, ["load", "t.csv", "--table", "t", "--conventional"]);
    for option in [&["--report"][..], &["--bundle", "b"]] {
        let (code, said) = refused(here, ["index", "t", "a"].iter().chain(option));
        assert_eq!(code, 2);
        assert!(said.starts_with(&format!("{}: transactions change table t", option[0])), "{said}");
    }
    fine(here, ["run", "redo", "--rows", "100", "--bundle", "run"]);
    let (code, said) = refused(here, ["report", "run", "--end"]);
    assert_eq!((code, said.as_str()), (2, "--end: run is no study, and has ended; leave it out"));
    let (code, said) = refused(here, ["run", "slob", "--hotspot-size", "8M"]);
    assert_eq!(code, 2);
    assert_eq!(
        said,
        "--hotspot-size: it has no effect, for there is no hot spot; give hotspot too; or leave it out"
    );
    assert!(!here.join("b").exists());
}
