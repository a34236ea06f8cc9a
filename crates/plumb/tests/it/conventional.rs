//! Load of the user's own files by transactions: one table among others,
//! rejections, and a killed load.

use crate::bundles::{signal, wait_for};
use crate::faults::end_of;
use crate::program::{command, fine, names, plumb, refused};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Bytes of the file that are read ahead.
const PIECE_BYTES: usize = 512 << 10;

fn towns(directory: &Path, rows: usize) {
    let mut text = String::from("id,town,people\n");
    for row in 0..rows {
        let town = ["Zürich", "Oslo", "", "東京"][row % 4];
        let _ = writeln!(text, "{row},{town} no. {row},{}", row * 7919 % 1000);
    }
    fs::write(directory.join("towns.csv"), text).expect("a file");
}

/// Starts a load whose archive directory vanishes once it has begun; returns its stderr after
/// the line that reports this.
fn waiting_load(path: &Path, copies: &Path) -> (Child, BufReader<ChildStderr>) {
    towns(path, 40_000);
    fs::create_dir(copies).expect("a directory");
    let set = |value: &str| ["--set".to_string(), value.to_string()];
    let mut load = command(path);
    load.args(LOAD).args(set("archive_log_mode=on")).args(set("log_file_size=256K"));
    load.args(set("log_buffer=128K")).args(set(&format!("archive_log_dest={}", copies.display())));
    let mut child = load.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    // The log is made when the database is open.
    wait_for(&path.join("plumb.db/redo01.log"));
    fs::rename(copies, path.join("elsewhere")).expect("moved away");
    let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut said = String::new();
    errors.read_line(&mut said).expect("a line");
    assert!(said.starts_with("sessions wait for the archiver: log sequence "), "{said}");
    assert!(said.contains(&format!(" in {}: ", copies.display())), "{said}");
    (child, errors)
}

/// Off a terminal, too, the cause of the wait is reported once; the load
/// continues when the directory exists.
#[test]
fn why_sessions_wait_for_the_archiver_is_said_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copies = directory.path().join("copies");
    let (mut child, mut errors) = waiting_load(directory.path(), &copies);
    // The wait is sampled twice more, and must not be reported again.
    sleep(Duration::from_millis(1200));
    fs::create_dir(&copies).expect("a directory");
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("the rest");
    assert_eq!(rest, "", "once");
    assert!(child.wait().expect("a child").success());
    fine(directory.path(), ["check", "towns"]);
}

#[test]
fn a_destination_of_copies_that_is_missing_is_refused_before_anything_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 10);
    for (destination, expected) in
        [("", "an empty archive_log_dest: "), ("/no/copies", "archive_log_dest=/no/copies: ")]
    {
        let destination = format!("archive_log_dest={destination}");
        let more = ["--set", "archive_log_mode=on", "--set", destination.as_str()];
        let ended = plumb(path, LOAD.into_iter().chain(more));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{}", ended.stderr);
        let begin = format!("plumb: archive_log_mode=on contradicts {expected}");
        assert!(ended.stderr.starts_with(&begin) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
    assert_eq!(names(path), ["towns.csv"]);
    let within = ["--set", "archive_log_mode=on", "--set", "archive_log_dest=copies"];
    fine(path, LOAD.into_iter().chain(within));
    assert!(path.join("plumb.db/copies").is_dir());
}

#[test]
fn an_interrupted_load_that_waits_for_the_archiver_says_what_stays_and_the_cure() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copies = directory.path().join("copies");
    let (child, mut errors) = waiting_load(directory.path(), &copies);
    signal("INT", child.id());
    let mut rest = String::new();
    errors.read_to_string(&mut rest).expect("the rest");
    let least = stays(&rest);
    assert_eq!(end_of(child).status.code(), Some(130));
    let checked = fine(directory.path(), ["check", "towns"]);
    assert!(rows_of(&checked) >= least && least > 0, "{rest}{checked}");
}

#[test]
fn an_interrupted_load_says_once_how_many_rows_stay() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 200_000);
    let arguments = LOAD.into_iter().chain(["--commit-every", "50", "--set", "log_file_size=4M"]);
    let mut load = command(path);
    load.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = load.spawn().expect("started");
    wait_until_at_work(path, &mut child);
    signal("INT", child.id());
    let ended = end_of(child);
    assert_eq!(ended.status.code(), Some(130));
    let said = String::from_utf8_lossy(&ended.stderr);
    let count = stays(&said);
    let found = rows_of(&fine(path, ["check", "towns"]));
    assert!(found == count || said.contains("at least") && found > count, "{found} rows; {said}");
}

/// The number of rows that an interrupted load says in its only line.
fn stays(said: &str) -> usize {
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("plumb: interrupted: "), "{said}");
    let (rows, rest) = said.split_once(" rows were committed and stay in table TOWNS").expect("a count");
    assert!(!rest.contains("stay"), "once: {said}");
    assert!(rest.ends_with("; `plumb drop TOWNS` removes them\n"), "{said}");
    let number = rows.split_whitespace().last().expect("a number").replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// Returns the rows found by a check.
fn rows_of(checked: &str) -> usize {
    let words = checked.lines().find(|line| line.contains("can be read")).expect("a line");
    let rows = words.split_whitespace().rev().nth(3).expect("a count").replace(',', "");
    rows.parse().unwrap_or_else(|_| panic!("{words}"))
}

/// The first log file is zeros at first, and is written from its beginning on.
fn wait_until_at_work(path: &Path, child: &mut Child) {
    let at_work = || {
        let mut byte = [0; 512];
        let log = fs::File::open(path.join("plumb.db/redo01.log"));
        log.is_ok_and(|log| log.read_exact_at(&mut byte, 256 << 10).is_ok())
            && byte.iter().any(|byte| *byte != 0)
    };
    while !at_work() {
        assert!(child.try_wait().expect("watched").is_none(), "it ended too soon");
        std::thread::yield_now();
    }
}

const LOAD: [&str; 5] = ["load", "towns.csv", "--table", "towns", "--conventional"];

#[test]
fn a_file_is_loaded_by_transactions_indexed_checked_and_dropped() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 5000);
    let arguments = || LOAD.into_iter().chain(["--commit-every", "300", "--set", "log_file_size=2M"]);
    let loaded = fine(path, arguments().chain(["--report"]));
    assert!(loaded.contains("PLUMB REPORT  Workload: load"), "{loaded}");
    assert!(loaded.contains("plumb.db: 5,000 rows, "), "{loaded}");
    assert!(loaded.contains(" in 17 transactions, "), "{loaded}");
    assert!(loaded.contains("Per Transaction") && loaded.contains(" checks passed"), "{loaded}");
    let (code, says) = refused(path, arguments());
    assert_eq!((code, says.starts_with("table TOWNS exists already")), (1, true), "{says}");
    fine(path, ["load", "towns.csv", "--table", "others"]);
    let (_, says) = refused(path, ["index", "others", "id", "--unique"]);
    assert!(says.starts_with("--unique: table others was loaded by direct path"), "{says}");
    fine(path, ["index", "towns", "id", "--unique"]);
    let (_, says) = refused(path, ["index", "towns", "people", "--unique"]);
    assert!(says.starts_with("unique index TOWNS_PEOPLE_IX: the key ("), "{says}");
    let listed = fine(path, ["list", "tables"]);
    let line =
        |start: &str| listed.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_string();
    assert!(line("TOWNS").contains("table, transactions"), "{listed}");
    assert!(line("  TOWNS_ID_IX").contains("unique index"), "{listed}");
    let checked = fine(path, ["check"]);
    assert!(checked.contains("table OTHERS\n") && checked.contains("table TOWNS\n"), "{checked}");
    assert!(checked.contains("5,000 can be read"), "{checked}");
    let checked = fine(path, ["check", "towns"]);
    let seconds = |word: &&str| word.parse::<f64>().is_ok_and(|_| word.contains('.')) || *word == "s";
    let lines = checked
        .lines()
        .map(|line| line.split_whitespace().filter(|word| !seconds(word)).collect::<Vec<_>>().join(" "));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "table TOWNS",
            "rows 5,000 can be read",
            "indexes = table 5,000 entries in order, each with the key of its row",
            "versions 0 deleted rows and entries keep their room",
            "passed: the table and its indexes are right",
        ]
    );
    assert_eq!(fine(path, ["drop", "towns_id_ix"]), "dropped index TOWNS_ID_IX\n");
    assert_eq!(fine(path, ["drop", "towns"]), "dropped table TOWNS\n");
    assert!(!fine(path, ["list", "tables"]).contains("TOWNS"), "it is gone");
    // Its name and its space are free.
    fine(path, arguments().chain(["--sessions", "2"]));
    assert!(fine(path, ["check", "towns"]).contains("5,000 can be read"));
}

#[test]
fn a_load_by_transactions_is_told_as_json_as_one_by_direct_path_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 500);
    let told = |arguments: &[&str]| -> Value {
        let all = LOAD[..2].iter().chain(arguments).copied();
        serde_json::from_str(&fine(path, all)).expect("JSON and nothing else")
    };
    let direct = told(&["--table", "others", "--json"]);
    let own = ["--table", "towns", "--conventional", "--commit-every", "200", "--json", "--bundle", "kept"];
    let towns = told(&own);
    assert_eq!((&towns["rows"], &towns["transactions"]), (&Value::from(500), &Value::from(3)));
    for same in ["rows", "columns", "file_bytes", "database", "blank_lines_skipped"] {
        assert_eq!(towns[same], direct[same], "{same}");
    }
    let checks = towns["checks"].as_array().expect("a list");
    assert!(checks.len() >= 2 && checks.iter().all(|check| check["passed"] == true), "{checks:?}");
    assert!(path.join("kept/record.json").exists());
    let (code, says) = refused(path, LOAD.into_iter().chain(["--json", "--report"]));
    assert!(code == 2 && says.contains("cannot be used with"), "{says}");
}

#[test]
fn a_load_of_one_row_is_singular_and_one_of_none_has_no_bound() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 1);
    let one = fine(path, LOAD);
    assert!(one.starts_with("towns.csv: 1 row\n"), "{one}");
    assert!(one.contains("plumb.db: 1 row, ") && one.contains(" in 1 transaction, "), "{one}");
    fine(path, ["drop", "towns"]);
    towns(path, 0);
    let none = fine(path, LOAD.into_iter().chain(["--report"]));
    assert!(none.contains("plumb.db: 0 rows, ") && none.contains(" in 0 transactions, "), "{none}");
    assert!(!none.contains("is bound by") && !none.contains("-0.0"), "{none}");
    fine(path, ["drop", "towns"]);
    assert!(fine(path, ["load", "towns.csv", "--table", "towns"]).contains(": 0 rows, "));
}

#[test]
fn rows_longer_than_a_block_are_loaded_by_transactions_and_come_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let mut text = String::from("id,notes\n");
    for row in 0..300 {
        let length = if row % 3 == 0 { 4 + row * 37 } else { 4 + row % 50 };
        let _ = writeln!(text, "{row},{:.<length$}", format!("n{row}"));
    }
    fs::write(path.join("notes.csv"), &text).expect("a file");
    let load = ["load", "notes.csv", "--table", "notes", "--conventional", "--set", "db_block_size=2K"];
    let loaded = fine(path, load.into_iter().chain(["--commit-every", "7", "--sessions", "2"]));
    assert!(loaded.contains("plumb.db: 300 rows, "), "{loaded}");
    fine(path, ["index", "notes", "id", "--unique"]);
    let checked = fine(path, ["check"]);
    let of_rows = checked.lines().find(|line| line.contains("can be read")).expect("a line");
    assert!(of_rows.ends_with("  300 can be read, 81 of them in several blocks"), "{checked}");
    let json = fine(path, ["check", "--json"]);
    assert!(json.contains("\"chained\": 81"), "{json}");
    let listed = fine(path, ["list", "tables"]);
    let line = listed.lines().find(|line| line.starts_with("NOTES")).expect("the table");
    assert!(line.contains("table, transactions") && !line.contains(" 0 "), "nobody has counted: {listed}");
    let exported = fine(path, ["export", "notes"]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_string).collect();
        lines.sort_unstable();
        lines
    };
    assert!(sorted(&exported) == sorted(&text), "the rows of the file");
}

#[test]
fn what_was_committed_before_an_error_stays() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    towns(directory.path(), 1000);
    let file = directory.path().join("towns.csv");
    let text = fs::read_to_string(&file).expect("readable");
    fs::write(&file, text + "1000,short\n").expect("a file");
    let types = ["--types", "NUMBER,VARCHAR2(60),NUMBER", "--commit-every", "100"];
    let (code, says) = refused(directory.path(), LOAD.into_iter().chain(types));
    assert_eq!(code, 1);
    // A file of one piece has none.
    assert!(
        says.contains(" 0 rows were committed and stay in table TOWNS; `plumb drop TOWNS` removes them"),
        "{says}"
    );
    fine(directory.path(), ["drop", "towns"]);
    towns(directory.path(), 100_000);
    let text = fs::read_to_string(&file).expect("readable");
    assert!(text.len() > 4 * PIECE_BYTES, "several pieces");
    fs::write(&file, text + "100000,short\n").expect("a file");
    let (_, says) = refused(directory.path(), LOAD.into_iter().chain(types));
    let (rows, _) = says.split_once(" rows were committed and stay in table TOWNS; ").expect("a count");
    let rows: usize = rows.rsplit(' ').next().expect("a number").replace(',', "").parse().expect("a number");
    assert!(rows > 50_000 && rows.is_multiple_of(100), "{says}");
    assert_eq!(rows_of(&fine(directory.path(), ["check", "towns"])), rows);
}

#[test]
fn sessions_that_run_redo_refuses_are_refused_before_anything_is_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 10);
    let cases = [
        ("0", "expected a count of 1 or more"),
        ("2133", "sessions=2133 contradicts at most 2132 transactions"),
        ("70000", "sessions=70000 contradicts at most 2132 transactions"),
    ];
    for (sessions, expected) in cases {
        let loads = refused(path, LOAD.into_iter().chain(["--sessions", sessions]));
        let runs = refused(path, ["run", "redo", "--rows", "10", "--sessions", sessions]);
        assert!(loads.1.contains(expected) && runs.1.contains(expected), "{loads:?} {runs:?}");
        assert_eq!((loads.0, runs.0), (2, 2));
    }
    assert_eq!(names(path), ["towns.csv"]);
    // Larger blocks in a tablespace of their own have room for more sessions;
    // then their cache is missing.
    let larger = ["--sessions", "2133", "--block-size", "16K"];
    let (_, says) = refused(path, LOAD.into_iter().chain(larger));
    assert!(says.contains("db_16k_cache_size"), "{says}");
}

/// The program is killed when the log shows that it is at work; then the database is opened again.
#[test]
fn what_was_committed_before_a_kill_is_there() {
    const ROWS: usize = 200_000;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, ROWS);
    let arguments = LOAD.into_iter().chain(["--commit-every", "50", "--set", "log_file_size=4M"]);
    let mut child = command(path).args(arguments).stdout(Stdio::null()).spawn().expect("started");
    wait_until_at_work(path, &mut child);
    child.kill().expect("killed");
    child.wait().expect("ended");
    let ended = plumb(path, ["check", "towns"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("recovered: ") && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    let rows = rows_of(&ended.stdout);
    assert!(rows > 0 && rows < ROWS && rows.is_multiple_of(50), "{rows} rows, whole transactions of 50");
    let again = plumb(path, ["check", "towns"]);
    assert_eq!((rows_of(&again.stdout), again.stderr.as_str()), (rows, ""), "nothing is left to recover");
    fine(path, ["drop", "towns"]);
}

#[test]
fn all_damaged_blocks_of_a_table_are_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    towns(path, 5000);
    fine(path, LOAD);
    fine(path, ["index", "towns", "id"]);
    for (file, blocks) in [("users01.dbf", 3..6), ("indx01.dbf", 4..5)] {
        let file = fs::OpenOptions::new().write(true).open(path.join("plumb.db").join(file)).expect("there");
        for block in blocks {
            file.write_all_at(&[0xA5; 100], block * 8192 + 4000).expect("written");
        }
    }
    let ended = plumb(path, ["check", "towns"]);
    assert_eq!(ended.code, Some(5), "{}", ended.stderr);
    assert!(ended.stdout.contains("DAMAGED table TOWNS: 3 blocks (checksum 3)"), "{}", ended.stdout);
    assert!(ended.stdout.contains("DAMAGED index TOWNS_ID_IX: 1 block (checksum 1)"), "{}", ended.stdout);
    assert!(ended.stderr.starts_with("plumb: 4 blocks of several tables and indexes"), "{}", ended.stderr);
    // Other tables can be used, and the damaged one can be dropped.
    fine(path, LOAD.map(|word| if word == "towns" { "others" } else { word }));
    fine(path, ["check", "others"]);
    fine(path, ["drop", "towns"]);
    fine(path, ["check"]);
}

/// The second load gives no settings, so those of the database's creation do not contradict it.
#[test]
fn settings_that_are_fixed_at_creation_are_judged_by_what_the_database_has() {
    for (name, value) in [
        ("db_block_size", "16K"),
        ("data_files", "5"),
        ("extent_size", "4M"),
        ("log_file_size", "1M"),
        ("log_file_groups", "2"),
        ("log_file_members", "2"),
        ("log_buffer", "1M"),
    ] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let here = directory.path();
        towns(here, 1_000);
        let set = format!("{name}={value}");
        fine(here, ["load", "towns.csv", "--table", "FIRST", "--conventional", "--set", &set]);
        let bundle = ["--bundle", "second"];
        fine(here, [&["load", "towns.csv", "--table", "SECOND", "--conventional"], &bundle[..]].concat());
        let second = fs::read_to_string(here.join("second/record.json")).expect("a record");
        let second: Value = serde_json::from_str(&second).expect("a record");
        let receipts = second["receipts"].as_array().expect("receipts");
        let of_setting: Vec<_> = receipts.iter().filter(|row| row["setting"] == name).collect();
        assert!(of_setting.iter().all(|row| row["held"] == "held"), "{name}: {of_setting:?}");
        let row = second["settings"].as_array().expect("settings").iter().find(|row| row["name"] == name);
        let made_with = if name == "log_buffer" { "8M" } else { value };
        assert_eq!(row.expect("all are there")["value"], made_with, "{name}");
        fine(here, ["load", "towns.csv", "--table", "THIRD"]);
        fine(here, ["index", "THIRD", "town"]);
    }
}
