//! `plumb plans`: plans in the shapes in which people have them, as the page shows them.

use crate::program::{fine, refused};
use std::fs;
use std::path::Path;

const FIRST_ROWS: &str = include_str!("../../../foreign/src/format/plan/fixtures/first_rows.txt");
const OLD: &str = include_str!("../../../foreign/src/format/plan/fixtures/upgrade_old.txt");
const NEW: &str = include_str!("../../../foreign/src/format/plan/fixtures/upgrade_new.txt");
const ROLLUP: &str = include_str!("../../../foreign/src/format/plan/fixtures/rollup.txt");
const COPIED: &str = include_str!("../../../foreign/src/format/plan/fixtures/copied.txt");
const TRIGGERS: &str = include_str!("../../../foreign/src/format/plan/fixtures/triggers.txt");
const EXPLAIN: &str = include_str!("../../../foreign/src/format/plan/fixtures/explain.txt");

fn write(here: &Path) {
    let files = [
        ("first_rows.txt", FIRST_ROWS),
        ("old.txt", OLD),
        ("new.txt", NEW),
        ("rollup.txt", ROLLUP),
        ("copied.txt", COPIED),
        ("explain.txt", EXPLAIN),
        ("triggers.txt", TRIGGERS),
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
fn a_join_with_its_sides_exchanged_keeps_its_tables() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let join = |condition: &str, first: &str, second: &str| {
        let cost = "(cost=1.09..2.19 rows=4 width=8)";
        format!(
            "Hash Join  {cost}\n  Hash Cond: {condition}\n  ->  Seq Scan on {first}  {cost}\n  ->  Hash  {cost}\n        ->  Seq Scan on {second}  {cost}\n"
        )
    };
    fs::write(here.join("1.txt"), join("(a.id = b.id)", "a", "b")).expect("a file");
    fs::write(here.join("2.txt"), join("(b.id = a.id)", "b", "a")).expect("a file");
    insta::assert_snapshot!(page(here, &["1.txt", "2.txt"]));
}

#[test]
fn triggers_notes_and_a_missing_end_are_shown() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    write(here);
    insta::assert_snapshot!(page(here, &["triggers.txt"]));
    let cut: String = TRIGGERS.lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(here.join("cut.txt"), cut).expect("a file");
    let page_of_cut = page(here, &["cut.txt"]);
    assert!(page_of_cut.contains("cut.txt may be cut off: it has no Execution Time"), "{page_of_cut}");
    let note = "\nNote\n-----\n   - dynamic statistics used: dynamic sampling (level=2)\n";
    let adaptive = "   - this is an adaptive plan\n";
    fs::write(here.join("one.txt"), format!("{OLD}{note}")).expect("a file");
    fs::write(here.join("two.txt"), format!("{OLD}{note}{adaptive}")).expect("a file");
    insta::assert_snapshot!(page(here, &["one.txt", "two.txt"]));
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
