//! `plumb import`: reports of other programs from a file to a bundle.

use crate::program::{fine, refused};
use std::fs;

/// A report in text, made up, in the shape of AWR 11.2.0.4.
const TEXT: &str = include_str!("../../../foreign/tests/it/fixtures/awr_11204.txt");
/// The same report as HTML.
const HTML: &str = include_str!("../../../foreign/tests/it/fixtures/awr_11204.html");

#[test]
fn a_report_becomes_a_bundle_that_all_pages_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    fs::write(here.join("b.html"), HTML).expect("a file");
    let page = fine(here, ["import", "a.txt"]);
    assert!(page.contains("db file sequential read"), "{page}");
    let list = fine(here, ["import", "a.txt", "--list"]);
    assert!(list.starts_with("a.txt: ") && list.contains("SECTION"), "{list}");
    let json: serde_json::Value =
        serde_json::from_str(&fine(here, ["import", "a.txt", "b.html", "--json"])).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    drop(fine(here, ["import", "a.txt", "--bundle", "one"]));
    drop(fine(here, ["import", "b.html", "--bundle", "two"]));
    drop(fine(here, ["report", "one"]));
    assert!(here.join("one/report.html").is_file());
    let lines = fine(here, ["info", "one", "two"]);
    assert_eq!(lines.lines().count(), 3, "a head and a line a report: {lines}");
    let compared = fine(here, ["compare", "one", "two"]);
    assert!(compared.contains("an imported report"), "{compared}");
}

#[test]
fn a_file_that_is_no_report_is_refused_in_one_line_and_the_others_are_read() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    fs::write(here.join("letter.txt"), "Dear colleague,\nthe database is slow.\n").expect("a file");
    let (code, error) = refused(here, ["import", "letter.txt"]);
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
    assert!(error.contains("letter.txt"), "{error}");
    let (_, error) = refused(here, ["import", "letter.txt", "a.txt", "--json"]);
    assert_eq!(error.lines().count(), 1, "{error}");
    let (_, error) = refused(here, ["import", "missing.txt"]);
    assert!(error.contains("missing.txt") && error.lines().count() == 1, "{error}");
}
