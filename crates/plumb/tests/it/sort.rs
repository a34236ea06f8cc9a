//! `plumb sort`: the output of sort(1), larger than memory or not, with receipts that hold. The
//! input stays unchanged, and the output is whole or missing.

use crate::program::{fine, names, plumb, refused};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Lines of three fields, the same every time.
fn lines(count: u64) -> String {
    let mut text = String::new();
    let mut random = 7_u64;
    for line in 0..count {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = ["alpha", "Beta", "gamma", "\u{e9}t\u{e9}", ""][(random >> 33) as usize % 5];
        let number = (random >> 20) as i32 % 1_000;
        let _ = writeln!(text, "{word}{},{number}.{},tail {line}", (random >> 40) % 97, (random >> 50) % 10);
    }
    text
}

/// Returns the output of sort(1) for a file.
fn by_coreutils(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut sort = Command::new("sort");
    sort.current_dir(directory).env("LC_ALL", "C").args(arguments).arg("in.txt");
    let ended = sort.output().expect("coreutils are there");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    ended.stdout
}

fn same(directory: &Path, ours: &[&str], theirs: &[&str]) {
    let before = fs::read(directory.join("in.txt")).expect("there");
    fine(directory, [&["sort", "in.txt", "out.txt"], ours].concat());
    let found = fs::read(directory.join("out.txt")).expect("made");
    assert!(found == by_coreutils(directory, theirs), "{ours:?} differs from sort {theirs:?}");
    assert!(fs::read(directory.join("in.txt")).expect("there") == before, "the input is only read");
    fs::remove_file(directory.join("out.txt")).expect("removed");
    assert_eq!(names(directory), ["in.txt"], "nothing else stays");
}

#[test]
fn lines_are_sorted_as_sort_does() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = lines(60_000);
    // The last line has no end.
    fs::write(directory.path().join("in.txt"), text.trim_end()).expect("a file");
    let small = ["--set", "sort_area_size=256K", "--set", "db_block_size=8K"];
    same(directory.path(), &[], &[]);
    same(directory.path(), &small, &[]);
    same(
        directory.path(),
        &[&["--lines", "--key", "2,2", "--delimiter", ",", "--numeric"], &small[..]].concat(),
        &["-t,", "-k2,2", "-n"],
    );
    same(directory.path(), &["--key", "2", "--delimiter", ","], &["-t,", "-k2"]);
    same(directory.path(), &["--key", "1,1", "--delimiter", ",", "--stable"], &["-t,", "-k1,1", "-s"]);
    same(directory.path(), &["--key", "2,2"], &["-k2,2"]);
    same(directory.path(), &["--numeric"], &["-n"]);
}

#[test]
fn receipts_of_a_sort_hold_and_its_report_is_that_of_a_run() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("in.txt"), lines(60_000)).expect("a file");
    for set in [
        &["sort_area_size=256K"][..],
        &["parallel_degree=1"],
        &["filesystemio_options=none", "sort_area_size=512K"],
    ] {
        let mut arguments = vec!["sort", "in.txt", "out.txt", "--json"];
        set.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let record: Value = serde_json::from_str(&fine(directory.path(), &arguments)).expect("a record");
        for receipt in record["receipts"].as_array().expect("a list") {
            assert_ne!(receipt["held"], "contradicted", "{set:?}: {receipt}");
        }
        let checks = record["checks"].as_array().expect("a list");
        assert!(checks.len() >= 3 && checks.iter().all(|check| check["passed"] == true), "{checks:?}");
        assert_eq!(record["sort"]["rows"], 60_000);
        fs::remove_file(directory.path().join("out.txt")).expect("made");
    }
    let shown = fine(directory.path(), ["sort", "in.txt", "out.txt", "--report", "--bundle", "b"]);
    assert!(shown.contains("SQL Work Area: Sort") && shown.ends_with("out.txt is sorted\n"), "{shown}");
    assert_eq!(names(&directory.path().join("b")), ["record.json", "report.html", "report.txt"]);
}

#[test]
fn records_are_sorted_by_any_of_their_bytes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text: Vec<u8> = lines(30_000).bytes().filter(|byte| *byte != b'\n').collect();
    for (record, key) in [(100, 0..10), (100, 90..100), (16, 3..5)] {
        let whole = text.len() / record * record;
        fs::write(directory.path().join("in.dat"), &text[..whole]).expect("a file");
        let (bytes, range) = (record.to_string(), format!("{}..{}", key.start, key.end));
        fine(directory.path(), ["sort", "in.dat", "out.dat", "--record", &bytes, "--key", &range]);
        let output = fs::read(directory.path().join("out.dat")).expect("made");
        let mut found: Vec<&[u8]> = output.chunks(record).collect();
        assert!(found.is_sorted_by_key(|record| &record[key.clone()]), "{range} of {bytes}");
        let mut expected: Vec<&[u8]> = text[..whole].chunks(record).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert!(found == expected, "{range} of {bytes}: the records are others");
        fs::remove_file(directory.path().join("out.dat")).expect("removed");
    }
}

#[test]
fn what_cannot_be_sorted_is_refused_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("in.txt"), lines(10)).expect("a file");
    fs::write(directory.path().join("there.txt"), "kept").expect("a file");
    fs::write(directory.path().join("long.txt"), "x".repeat(40_000)).expect("a file");
    let mut said = String::new();
    for case in [
        &["sort", "in.txt", "there.txt"][..],
        &["sort", "missing.txt", "out.txt"],
        &["sort", ".", "out.txt"],
        &["sort", "in.txt", "-"],
        &["sort", "-", "out.txt"],
        &["sort", "in.txt", "missing/out.txt"],
        &["sort", "long.txt", "out.txt"],
        &["sort", "in.txt", "out.txt", "--record", "100"],
        &["sort", "in.txt", "out.txt", "--record", "100", "--key", "0..10"],
        &["sort", "in.txt", "out.txt", "--record", "100", "--key", "95..101"],
        &["sort", "in.txt", "out.txt", "--record", "100", "--key", "0..10", "--stable"],
        &["sort", "in.txt", "out.txt", "--key", "0..10"],
        &["sort", "in.txt", "out.txt", "--key", "3,2"],
        &["sort", "in.txt", "out.txt", "--key", "2", "--delimiter", "::"],
        &["sort", "in.txt", "out.txt", "--delimiter", ","],
        &["sort", "in.txt", "out.txt", "--set", "sort_area_size=64K"],
    ] {
        let (code, line) = refused(directory.path(), case);
        said.push_str(&format!("$ plumb {}\n{line} [{code}]\n\n", case.join(" ")));
    }
    assert_eq!(names(directory.path()), ["in.txt", "long.txt", "there.txt"]);
    assert_eq!(fs::read(directory.path().join("there.txt")).expect("there"), b"kept");
    insta::assert_snapshot!(said.replace(&directory.path().display().to_string(), "DIR"));
}

#[test]
fn random_records_are_sorted_too() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record =
        fine(directory.path(), ["run", "record-sort", "--rows", "20K", "--form", "random", "--json"]);
    let record: Value = serde_json::from_str(&record).expect("a record");
    assert!(record["checks"].as_array().expect("a list").iter().all(|check| check["passed"] == true));
    let ended = plumb(directory.path(), ["run", "record-sort", "--form", "other"]);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(2), "plumb: --form other: expected gensort or random\n")
    );
}
