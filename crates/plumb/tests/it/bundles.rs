//! Bundles are never overwritten: not by name, not by a second run at the same time, not inside a
//! study's. An unused reservation is removed.

use crate::faults::end_of;
use crate::program::{command, fine, names, plumb, refused, wait_until};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const SMALL: [&str; 6] = ["run", "large-sort", "--rows", "1000", "--set", "io_method=null"];

#[test]
fn runs_at_the_same_time_never_share_a_bundle() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let start = || command(here).args(SMALL).stdout(Stdio::null()).spawn().expect("the program starts");
    let children: Vec<_> = (0..6).map(|_| start()).collect();
    children.into_iter().for_each(|child| assert!(end_of(child).status.success()));
    let bundles = names(&here.join("plumb-reports"));
    assert_eq!(bundles.len(), 6, "{bundles:?}");
    for bundle in &bundles {
        let files = names(&here.join("plumb-reports").join(bundle));
        assert_eq!(files, ["beside.csv", "record.json", "report.html", "report.txt"], "{bundle}");
    }
    assert_eq!(names(here), ["plumb-reports"]);
}

#[test]
fn what_holds_anything_is_refused_before_the_work_begins() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::create_dir(here.join("full")).expect("a directory");
    fs::write(here.join("full/report.txt"), "of another run").expect("a file");
    fs::write(here.join("t.csv"), "a\n1\n").expect("a file");
    fine(here, ["load", "t.csv", "--table", "t"]);
    // Many rows, so that the run lasts a while.
    let commands: [&[&str]; 5] = [
        &["run", "large-sort", "--rows", "10M"],
        &["run", "record-sort", "--size", "1G", "--json"],
        &["study", "large-sort"],
        &["calibrate"],
        &["index", "t", "a"],
    ];
    for arguments in commands {
        let (code, line) = refused(here, arguments.iter().chain(&["--bundle", "full"]));
        assert_eq!(code, 1, "{line}");
        assert_eq!(line, "full: it has contents, and nothing is overwritten: name a new directory");
    }
    assert_eq!(names(&here.join("full")), ["report.txt"]);
    assert_eq!(names(here), ["full", "plumb.db", "t.csv"]);
    // An empty one is as good as a new one.
    fs::create_dir(here.join("empty")).expect("a directory");
    fine(here, SMALL.iter().chain(&["--bundle", "empty"]));
    assert_eq!(names(&here.join("empty")), ["beside.csv", "record.json", "report.html", "report.txt"]);
    // A bundle's own reports may be written again.
    fine(here, ["report", "empty"]);
}

#[test]
fn nothing_is_written_into_the_bundle_of_a_study() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let study = directory.path().join("study");
    fs::create_dir_all(study.join("runs")).expect("a directory");
    ["manifest.sha256", "order.json"]
        .iter()
        .for_each(|name| fs::write(study.join(name), "").expect("a file"));
    let before = names(&study);
    for bundle in ["study/mine", "study/runs/mine"] {
        let (code, line) = refused(directory.path(), SMALL.iter().chain(&["--bundle", bundle]));
        assert_eq!(code, 1);
        assert!(line.starts_with(&format!("{bundle} lies in the bundle of a study, ")), "{line}");
    }
    // Without --bundle it would go below the current directory.
    let (_, line) = refused(&study, SMALL);
    assert!(line.contains("lies in the bundle of a study"), "{line}");
    assert_eq!(names(&study), before);
}

#[test]
fn what_was_reserved_goes_when_the_run_fails_or_is_interrupted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for bundle in [&[][..], &["--bundle", "a/b"]] {
        let all = ["run", "large-sort", "--rows", "1000G", "--path", "."].iter().chain(bundle);
        let (code, line) = refused(here, all);
        assert_eq!(code, 1, "{line}");
        assert_eq!(names(here), Vec::<String>::new());
        let mut run = command(here);
        run.args(["run", "large-sort", "--rows", "20M"])
            .args(bundle)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = run.spawn().expect("the program starts");
        wait_until("a directory of its own", || names(here).iter().any(|it| it.starts_with("plumb-run-")));
        signal("INT", child.id());
        assert_eq!(end_of(child).status.code(), Some(130));
        assert_eq!(names(here), Vec::<String>::new());
    }
}

#[test]
fn a_comparison_replaces_no_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    ["one", "two"].iter().for_each(|bundle| drop(fine(here, SMALL.iter().chain(&["--bundle", bundle]))));
    let compare = ["compare", "one", "two", "--html", "page.html"];
    fine(here, compare);
    let page = fs::read(here.join("page.html")).expect("a page");
    fs::write(here.join("page.html"), "mine").expect("a file");
    let ended = plumb(here, compare);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.ends_with("nothing is overwritten: name a new file\n"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(here.join("page.html")).expect("a file"), "mine");
    assert!(page.len() > 1000);
}

/// Makes a bundle in the form that a suite leaves.
#[test]
fn a_directory_of_bundles_is_none_and_those_below_it_are_the_cure() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for file in ["st/slob/study.toml", "st/sort/record.json", "st/claims.txt"] {
        let file = here.join(file);
        fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
        fs::write(file, "").expect("a file");
    }
    for command in ["info", "report", "verify"] {
        let (code, says) = refused(here, [command, "st"]);
        assert_eq!(code, 1, "{says}");
        assert!(says.ends_with("; bundles lie below it, name one of them: st/slob, st/sort"), "{says}");
    }
}

pub fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

/// Waits until a file or directory is there.
pub fn wait_for(path: &Path) {
    wait_until(&path.display().to_string(), || path.exists());
}

/// A foreign bundle may contain links with the names that `report` writes.
#[test]
fn a_report_is_not_written_through_a_link() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fine(here, ["run", "redo", "--rows", "1000", "--bundle", "b"]);
    fs::write(here.join("precious"), "precious").expect("a file");
    for (name, to) in [("report.txt", "../precious"), ("report.html", "../made")] {
        fs::remove_file(here.join("b").join(name)).expect("a report");
        std::os::unix::fs::symlink(to, here.join("b").join(name)).expect("a link");
    }
    fine(here, ["report", "b"]);
    assert_eq!(fs::read_to_string(here.join("precious")).expect("read"), "precious");
    assert!(!here.join("made").exists());
    for name in ["report.txt", "report.html"] {
        assert!(fs::symlink_metadata(here.join("b").join(name)).expect("there").is_file(), "{name}");
    }
}

/// Opening a pipe waits until another process writes to it.
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_waited_for_by_nobody() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::create_dir_all(here.join("plumb-reports/b")).expect("a directory");
    let pipes = ["plumb-reports/b/record.json", "plumb-reports/b/manifest.sha256", "plumb-calibration.json"];
    let made = Command::new("mkfifo").args(pipes).current_dir(here).status();
    assert!(made.expect("mkfifo is there").success());
    for arguments in [["report", "plumb-reports/b"], ["verify", "plumb-reports/b"]] {
        let (_, line) = refused(here, arguments);
        assert!(line.contains("it is a pipe, expected a regular file"), "{line}");
    }
    fine(here, ["list", "bundles"]);
    let said = fine(here, ["run", "redo", "--rows", "1000"]);
    assert!(said.contains("./plumb-calibration.json does not hold"), "{said}");
}

#[test]
fn a_list_finds_a_run_by_what_was_asked_of_it_and_shows_what_ended_early() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let refused_early = ["run", "large-sort", "--rows", "1000G"];
    assert_eq!(plumb(here, refused_early).code, Some(1));
    assert_eq!(names(here), Vec::<String>::new(), "nothing is noted where nothing is kept");
    fine(here, ["run", "redo", "--rows", "100"]);
    let quiet = fine(here, ["run", "redo", "--rows", "100", "--set", "log_file_io=buffered", "--quiet"]);
    assert!(
        quiet.starts_with("redo: ") && quiet.contains("\nredo on ") && !quiet.contains("PLUMB REPORT"),
        "{quiet}"
    );
    assert_eq!(plumb(here, refused_early).code, Some(1));
    let listed = |more: &[&str]| {
        let text = fine(here, ["list", "bundles", "--json"].iter().chain(more));
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON").as_array().expect("a list").clone()
    };
    let all = listed(&[]);
    assert_eq!(all.len(), 3, "{all:?}");
    let [asked, early] = ["redo rows=100 log_file_io=buffered", "plumb run large-sort --rows 1000G"];
    let found = listed(&["--where", "REDO", "--where", "log_file_io=buffered"]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["asked"], asked);
    assert!(found[0]["elapsed"].as_f64().is_some_and(|seconds| seconds > 0.0));
    let found = listed(&["--where", "1000g"]);
    assert_eq!((&found[0]["asked"], &found[0]["bundle"]), (&early.into(), &serde_json::Value::Null));
    assert!(found[0]["says"].as_str().is_some_and(|says| says.contains("are needed there")), "{found:?}");
    assert_eq!(fine(here, ["list", "bundles", "--where", "nothing has this"]), "none of 3 rows has that\n");
}

/// The decision does not depend on the text of a message: the first one
/// advises to resume another study.
#[test]
fn an_early_end_is_noted_unless_the_study_can_go_on_from_its_bundle() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    for made in ["plumb-reports", "taken"] {
        fs::create_dir(here.join(made)).expect("a directory");
    }
    for made in ["study.toml", "order.json"] {
        fs::write(here.join("taken").join(made), "").expect("a file");
    }
    let noted = || fs::read_to_string(here.join("plumb-reports/ended-early.jsonl")).unwrap_or_default();
    let (_, line) = refused(here, ["study", "redo-direct", "--bundle", "taken"]);
    assert!(line.contains("`plumb study --resume taken`"), "{line}");
    assert!(noted().lines().count() == 1 && noted().contains("\"kind\":\"study\""), "{}", noted());

    let mut study = command(here);
    study.args(["study", "--command", "sleep 0.1{x}", "--factor", "x=1,2", "--bundle", "b"]);
    let child = study.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for(&here.join("b/runs/0001.json"));
    signal("INT", child.id());
    let ended = end_of(child);
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(stderr.contains("`plumb study --resume b` goes on"), "{stderr}");
    assert_eq!(noted().lines().count(), 1, "{}", noted());
}
