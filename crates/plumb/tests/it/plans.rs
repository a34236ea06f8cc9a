//! `plumb plans`: plans in the shapes in which people have them, as the page shows them.

use crate::program::{fine, refused};
use std::fs;
use std::path::Path;

const FIRST_ROWS: &str = include_str!("../../../foreign/src/plan/fixtures/first_rows.txt");
const OLD: &str = include_str!("../../../foreign/src/plan/fixtures/upgrade_old.txt");
const NEW: &str = include_str!("../../../foreign/src/plan/fixtures/upgrade_new.txt");
const ROLLUP: &str = include_str!("../../../foreign/src/plan/fixtures/rollup.txt");
const COPIED: &str = include_str!("../../../foreign/src/plan/fixtures/copied.txt");
const EXPLAIN: &str = include_str!("../../../foreign/src/plan/fixtures/explain.txt");

fn write(here: &Path) {
    let files = [
        ("first_rows.txt", FIRST_ROWS),
        ("old.txt", OLD),
        ("new.txt", NEW),
        ("rollup.txt", ROLLUP),
        ("copied.txt", COPIED),
        ("explain.txt", EXPLAIN),
    ];
    files.iter().for_each(|(name, text)| fs::write(here.join(name), text).expect("a file"));
}

fn page(here: &Path, files: &[&str]) -> String {
    let page = fine(here, std::iter::once("plans").chain(files.iter().copied()));
    page.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

#[test]
fn plans_of_one_file_stand_side_by_side() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path());
    insta::assert_snapshot!(page(directory.path(), &["first_rows.txt"]));
}

#[test]
fn a_predicate_that_is_no_longer_pushed_is_seen() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path());
    insta::assert_snapshot!(page(directory.path(), &["old.txt", "new.txt"]));
}

#[test]
fn a_single_plan_is_shown_with_its_findings() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write(directory.path());
    insta::assert_snapshot!(page(directory.path(), &["rollup.txt"]));
    insta::assert_snapshot!(page(directory.path(), &["copied.txt"]));
    insta::assert_snapshot!(page(directory.path(), &["explain.txt"]));
}

#[test]
fn plans_are_json_and_a_page_with_their_indentation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    write(here);
    let json: serde_json::Value =
        serde_json::from_str(&fine(here, ["plans", "old.txt", "new.txt", "--json", "--html", "p.html"]))
            .expect("JSON");
    assert_ne!(json["arms"][0]["hash"], json["arms"][1]["hash"]);
    assert_eq!(json["arms"][0]["plan"]["operations"][2]["object"], "A1");
    let html = fs::read_to_string(here.join("p.html")).expect("a page");
    assert!(html.contains("&nbsp;&nbsp;TABLE ACCESS FULL"));
    let (_, twice) = refused(here, ["plans", "old.txt", "--html", "p.html"]);
    assert_eq!(twice.lines().count(), 1, "{twice}");
}

#[test]
fn what_cannot_be_shown_is_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    write(here);
    fs::write(here.join("letter.txt"), "Dear colleague\n").expect("a file");
    fs::write(here.join("cut.txt"), &OLD[..800]).expect("a file");
    fs::write(here.join("empty.sql"), " ;\n").expect("a file");
    let server = "postgres://me:geheim@127.0.0.1:1/d";
    let cases: [(&[&str], i32, &str); 9] = [
        (&["plans"], 2, "FILE"),
        (&["plans", "missing.txt"], 1, "missing.txt cannot be read: "),
        (&["plans", "letter.txt"], 1, "letter.txt has no plan: no line of 1 is of EXPLAIN"),
        (&["plans", "cut.txt"], 1, "the plan is cut off: no ruler ends its table"),
        (&["plans", "first_rows.txt", "old.txt", "new.txt"], 2, "3 files have 4 plans, expected 3 at most"),
        (&["plans", "old.txt", "--set", "a=1"], 2, "--target"),
        (&["plans", "--target", server], 2, "--query"),
        (
            &["plans", "--target", server, "--query", "empty.sql"],
            1,
            "the file is empty, expected one statement",
        ),
        (
            &["plans", "--target", "postgres://me@127.0.0.1:1/d", "--query", "letter.txt"],
            1,
            "postgres://me@127.0.0.1:1/d: a session connects failed: ",
        ),
    ];
    for (arguments, code, expected) in cases {
        let (found, error) = refused(here, arguments.iter().copied());
        assert_eq!(found, code, "{arguments:?}: {error}");
        assert!(error.contains(expected) && !error.contains("geheim"), "{arguments:?}: {error}");
    }
}
