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

#[test]
fn a_report_is_diagnosed_from_its_file_and_from_its_bundle() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    // A sixth of the reads in the same time: each is slow.
    let slow = TEXT.replace("617,937", "102,989").replace("900       1", "900       9");
    let slow = slow.replace("900       9   50.0", "900      20   50.0");
    fs::write(here.join("a.txt"), &slow).expect("a file");
    let page = fine(here, ["diagnose", "a.txt"]);
    assert!(page.contains("Diagnosis") && page.contains("R5"), "{page}");
    drop(fine(here, ["import", "a.txt", "--bundle", "one"]));
    let of_bundle = fine(here, ["diagnose", "one", "--json"]);
    assert_eq!(of_bundle, fine(here, ["diagnose", "a.txt", "--json"]));
    let written = fine(here, ["diagnose", "a.txt", "--study", "proof.toml"]);
    assert!(written.contains("plumb study"), "{written}");
    let study = fs::read_to_string(here.join("proof.toml")).expect("a study");
    assert!(study.contains("[[factor]]"), "{study}");
    let (_, error) = refused(here, ["diagnose", "a.txt", "--study", "proof.toml"]);
    assert!(error.contains("proof.toml"), "an existing file is kept: {error}");
    fs::write(here.join("line.txt"), "no report\n").expect("a file");
    let (code, error) = refused(here, ["diagnose", "line.txt"]);
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
}

#[test]
fn reports_over_weeks_are_a_series_in_the_order_of_their_begin() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let later = TEXT.replace("03-May-24", "04-May-24");
    fs::write(here.join("b.txt"), later).expect("a file");
    fs::write(here.join("a.txt"), TEXT).expect("a file");
    let page = fine(here, ["report", "--series", "b.txt", "a.txt"]);
    assert!(page.contains("TOO FEW REPORTS: 2 of 14"), "{page}");
    let place = |date: &str| page.find(date).expect("a report");
    assert!(place("03-May-24") < place("04-May-24"), "{page}");
    let other = TEXT.replace("DEMO ", "PROD ");
    fs::write(here.join("c.txt"), other).expect("a file");
    let (_, error) = refused(here, ["report", "--series", "a.txt", "c.txt"]);
    assert!(error.contains("of one database"), "{error}");
}
