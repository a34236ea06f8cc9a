//! Output of the program: help, lists and errors, as snapshots.

use crate::program::{command, fine, plumb};
use std::fs;
use std::path::Path;

/// Compares the program's output in an empty directory with a snapshot.
macro_rules! printed {
    ($name:literal, $($argument:expr),* $(,)?) => {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let arguments: Vec<&str> = vec![$($argument),*];
        insta::assert_snapshot!($name, fine(directory.path(), arguments));
    };
}

#[test]
fn nothing_asked_says_what_to_try() {
    printed!("welcome",);
}

#[test]
fn help_is_plain_and_complete() {
    printed!("help", "--help");
    printed!("help_run", "run", "--help");
    printed!("help_study", "study", "--help");
    printed!("help_compare_commands", "compare-commands", "--help");
    printed!("help_verify", "verify", "--help");
    printed!("help_audit", "audit", "--help");
    printed!("help_share", "share", "--help");
    printed!("help_prune", "prune", "--help");
    printed!("help_calibrate", "calibrate", "--help");
    printed!("help_load", "load", "--help");
    printed!("help_index", "index", "--help");
    printed!("help_check", "check", "--help");
    printed!("help_drop", "drop", "--help");
    printed!("help_clean", "clean", "--help");
    printed!("help_undo", "undo", "--help");
    printed!("help_list", "list", "--help");
    printed!("help_report", "report", "--help");
    printed!("help_compare", "compare", "--help");
}

#[test]
fn columns_make_pages_as_narrow_as_they_say_and_a_pipe_has_no_colour() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for arguments in [&["load", "--help"][..], &["study", "--help"], &["--help"], &["list", "studies"]] {
        let ended = command(directory.path()).args(arguments).env("COLUMNS", "80").output().expect("it ends");
        let text = String::from_utf8(ended.stdout).expect("UTF-8");
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert_eq!(wide, Vec::<&str>::new(), "{arguments:?}");
        assert!(!text.contains('\u{1b}'), "{arguments:?}");
    }
}

#[test]
fn rules_are_listed_one_below_the_other_where_a_line_would_not_fit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = fine(directory.path(), ["list", "rules"]);
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert_eq!(wide, Vec::<&str>::new());
    assert!(text.lines().any(|line| line.starts_with("  advice  ")), "{text}");
}

#[test]
fn lists_come_from_the_tables() {
    printed!("list_workloads", "list", "workloads");
    printed!("list_studies", "list", "studies");
    printed!("list_claims", "list", "claims");
    printed!("list_settings", "list", "settings");
    printed!("list_events", "list", "events");
    printed!("list_statistics", "list", "statistics");
    printed!("list_streams", "list", "streams");
}

#[test]
fn errors_are_one_line_and_name_the_cure() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("file"), "").expect("a file");
    fs::write(directory.path().join("fields.csv"), "a,b\n1,2\n3,4,5\n").expect("a file");
    fs::write(directory.path().join("twelve.csv"), "a\n12\n").expect("a file");
    fs::create_dir(directory.path().join("bundle")).expect("a directory");
    fs::write(directory.path().join("bundle/record.json"), "{\"schema_version\": 99}").expect("a file");
    let cases: &[&[&str]] = &[
        &["sorted"],
        &["run"],
        &["run", "large"],
        &["run", "large-sort", "--rows", "many"],
        &["run", "large-sort", "--rows", "0"],
        &["run", "large-sort", "--path", "missing"],
        &["run", "large-sort", "--path", "file"],
        &["run", "large-sort", "--temp-path", ".,missing"],
        &["run", "large-sort", "--set", "sort_area_size"],
        &["run", "large-sort", "--set", "sort_area_sise=1M"],
        &["run", "large-sort", "--set", "sort_area_size=1K"],
        &["run", "large-sort", "--set", "sort_area_size=huge"],
        &["run", "large-sort", "--set", "io_method=aio"],
        &["run", "large-sort", "--set", "io_method=threads", "--set", "filesystemio_options=directio"],
        &["run", "redo", "--trace", "--json"],
        &["run", "ctas", "--block-size", "3K"],
        &["load", "twelve.csv", "--table", "t", "--block-size", "3K"],
        &["calibrate", "--run", "fast"],
        &["calibrate", "--max-latency", "10"],
        &["calibrate", "--max-latency", "0ms"],
        &["calibrate", "--file-size", "many"],
        &["calibrate", "--test-name", "a/b"],
        &["calibrate", "--path", "missing"],
        &["calibrate", "--path", "file"],
        &["load", "missing.csv", "--table", "t"],
        &["load", "fields.csv", "--table", "t"],
        &["load", "twelve.csv", "--table", "two words"],
        &["load", "twelve.csv", "--table", "t", "--types", "BLOB"],
        &["load", "twelve.csv", "--table", "t", "--types", "b=DATE"],
        &["load", "twelve.csv", "--table", "t", "--set", "io_method=null"],
        &["load", "twelve.csv", "--table", "t", "--delimiter", "pipes"],
        &["index", "t", "a,,b"],
        &["index", "t", "a"],
        &["check", "t"],
        &["drop", "t"],
        &["list", "tables"],
        &["report", "missing"],
        &["head", "t", "--limit", "3"],
        &["report", "bundle"],
        &["audit", "block-sice"],
        &["audit", "missing.toml"],
        &["audit", "file"],
        &["audit", "bundle"],
        &["audit", "bundle/record.json"],
        &["audit", "block-size", "--bundle", "missing"],
        &["audit", "slow-reads", "--bundle", "bundle"],
        &["audit", "block-size", "ext4-xfs", "--bundle", "bundle"],
        &["share", "missing", "--output", "copy"],
        &["share", "bundle", "--output", "copy"],
        &["share", "fields.csv", "--output", "bundle"],
    ];
    let mut said = String::new();
    for case in cases {
        let ended = plumb(directory.path(), *case);
        let code = ended.code.expect("the program exits by itself");
        assert_eq!(ended.stderr.lines().count(), 1, "{case:?}: {}", ended.stderr);
        said.push_str(&format!("$ plumb {}\n{}[{code}]\n\n", case.join(" "), ended.stderr));
    }
    assert!(!directory.path().join("plumb.db").exists(), "a command that fails makes no database");
    insta::assert_snapshot!(without_place(&said, directory.path()));
}

/// The text with the test's own directory as `DIR`.
fn without_place(text: &str, directory: &Path) -> String {
    let place = directory.canonicalize().expect("the directory is there");
    text.replace(&place.display().to_string(), "DIR")
}

#[test]
fn a_database_of_another_shape_is_not_silently_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("twelve.csv"), "a\n12\n").expect("a file");
    fine(directory.path(), ["load", "twelve.csv", "--table", "t"]);
    let mut said = String::new();
    let settings = ["db_block_size=16K", "data_files=5", "extent_size=2M"];
    for setting in settings {
        let ended = plumb(directory.path(), ["load", "twelve.csv", "--table", "u", "--set", setting]);
        assert_eq!(ended.code, Some(2));
        said.push_str(&ended.stderr);
    }
    for missing in [&["index", "t", "b"][..], &["index", "u", "a"], &["check", "u"], &["drop", "u"]] {
        let ended = plumb(directory.path(), missing);
        assert_eq!(ended.code, Some(1));
        said.push_str(&ended.stderr);
    }
    insta::assert_snapshot!(without_place(&said, directory.path()));
}
