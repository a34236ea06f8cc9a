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
    let cases: [(&[&str], i32, &str); 10] = [
        (&["plans"], 2, "FILE"),
        (&["plans", "missing.txt"], 1, "missing.txt cannot be read: "),
        (&["plans", "letter.txt"], 1, "letter.txt has no plan; read are EXPLAIN"),
        (&["plans", "cut.txt"], 1, "the plan is cut off: no ruler ends its table"),
        (&["plans", "first_rows.txt", "--query", "9"], 2, "expected the number of a query, from 1 to 2"),
        (&["plans", "old.txt:1"], 1, "old.txt"),
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

#[test]
fn plans_of_a_log_are_listed_by_query_and_compared_by_number() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let entry = |second: usize, ms: usize, plan: &str| {
        format!(
            "2024-05-03 10:00:0{second}.000 UTC [1] LOG:  duration: {ms}.000 ms  plan:\n\tQuery Text: select * from t where a = {second}\n\t{plan}  (cost=0.00..8.00 rows=1 width=4)\n"
        )
    };
    let (index, table) = ("Index Scan using t_pkey on t", "Seq Scan on t");
    let log = [entry(1, 2, index), entry(2, 2, index), entry(3, 80, table), entry(4, 90, table)].concat();
    fs::write(here.join("server.log"), &log).expect("a file");
    insta::assert_snapshot!(page(here, &["server.log"]));
    fs::write(here.join("cut.log"), format!("{log}{}", &log[..140])).expect("a file");
    let of_cut = page(here, &["cut.log"]);
    assert!(of_cut.contains("1 of 5 entries are left out, such as cut.log line 13: "), "{of_cut}");
    let compared = page(here, &["server.log", "--query", "1"]);
    let answer = compared.lines().nth(1).unwrap_or_default();
    assert!(
        answer.starts_with("2.00 ms to 80.0 ms (40 times): Index Scan t_pkey on t (1) became Seq Scan t (1)"),
        "{answer}"
    );
}

/// A study whose commands print plans as a server would.
const KEPT: &str = r#"
target = "command"
name = "kept"
title = "x"
question = "x"
blocks = 5
[command]
run = "echo {scale} {level}"
explain = "cat {level}.json"
[settings]
scale = "1"
[[factor]]
name = "level"
levels = ["a", "b", "c"]
[[claim]]
name = "c"
text = "x"
factor = "level"
from = "a"
to = "b"
expect = "faster"
"#;

/// Returns a plan as JSON, of a sort that needs this memory and these temporary blocks.
fn sort(kb: u32, blocks: u32) -> String {
    format!(
        "[{{\"Plan\": {{\"Node Type\": \"Sort\", \"Actual Rows\": 9, \"Actual Loops\": 1, \"Actual Total Time\": 7.5, \
         \"Sort Space Used\": {kb}, \"Sort Space Type\": \"Memory\", \"Temp Written Blocks\": {blocks}, \
         \"Plans\": [{{\"Node Type\": \"Seq Scan\", \"Relation Name\": \"t\", \"Actual Rows\": 9, \
         \"Actual Loops\": 1}}]}}, \"Execution Time\": 8.0}}]\n"
    )
}

#[test]
fn plans_of_arms_are_kept_and_compared() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("kept.toml"), KEPT).expect("a file");
    let refuses = |words: &[&str]| refused(here, words.iter().copied()).1;
    let other = refuses(&["study", "kept.toml", "--sessions", "2"]);
    assert_eq!(other, "--sessions 2: the study kept has no sessions under [settings]; leave it out");
    for (name, kb, blocks) in [("a", 900, 0), ("b", 20, 3)] {
        fs::write(here.join(format!("{name}.json")), sort(kb, blocks)).expect("a file");
    }
    let kept = ["study", "kept.toml", "--scale", "10", "--bundle", "k"];
    let ended = crate::program::plumb(here, kept);
    assert!(ended.stdout.contains("unfinished explain: the"), "{ended:?}");
    fs::write(here.join("c.json"), "").expect("a file");
    let ended = crate::program::plumb(here, [&kept[..5], &["b"]].concat());
    assert!(ended.stdout.contains("Other values of what was fixed: scale=10."), "{ended:?}");
    for (arm, memory, temp) in [("level=a", "900 KB", "0 B"), ("level=b", "20.0 KB", "24.0 KB")] {
        let shown = ended.stdout.lines().filter(|line| line.contains(arm));
        assert!(shown.clone().any(|line| line.contains(memory) && line.contains(temp)), "{ended:?}");
    }
    let compared = page(here, &["b:1", "b:level=b"]);
    assert!(compared.contains("Sort        900 KB  20.0 KB"), "{compared}");
    let none = refuses(&["plans", "b:1", "b:3"]);
    assert!(none.starts_with("b:3 has no plan"), "{none}");
    let unknown = refuses(&["plans", "b:4"]);
    assert_eq!(unknown, "b has no arm \"4\"; its arms are 1 (level=a), 2 (level=b), 3 (level=c)");
}
