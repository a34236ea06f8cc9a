//! Whole tables: `plumb run scan` and `producer`, instances, and copies that are killed.

use crate::program::{command, fine, refused};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Loads table T of this number of rows.
fn towns(directory: &Path, rows: usize) {
    let mut text = String::from("id,town,amount\n");
    for row in 0..rows {
        let _ = writeln!(text, "{row},town {},{}.5", row % 7, row % 100);
    }
    fs::write(directory.join("t.csv"), text).expect("a file");
    fine(directory, ["load", "t.csv", "--table", "t"]);
}

/// Returns the number of a copy's target's rows, by a copy that adds none.
fn rows_of(directory: &Path, table: &str) -> u64 {
    let said = fine(
        directory,
        ["copy", "t", "--to", table, "--columns", "id,amount", "--where", "id < 0", "--json"],
    );
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    said["rows_in_table"].as_u64().expect("a count")
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

#[test]
fn a_table_is_scanned_by_streams_and_by_instances_with_all_receipts_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    for more in [
        &["--streams", "2", "--columns", "regular_qty,regular_amt"][..],
        &["--where", "store_id < 100 and prod_id >= 7", "--checksum", "true"],
        &["--filled", "conventional", "--columns", "promo_qty"],
        &["--instances", "3", "--streams", "2", "--columns", "regular_amt", "--checksum", "true"],
        // Two extents for four instances: some have nothing to read.
        &["--instances", "4", "--set", "extent_size=2M"],
        &["--streams", "2", "--set", "parallel_degree=3"],
    ] {
        let all = ["run", "scan", "--rows", "60K", "--path", ".", "--bundle", "b"].iter().chain(more);
        let report = fine(here, all);
        assert!(report.contains("\nRun: VALID"), "{report}");
        assert!(!report.contains("contradicted"), "{report}");
        assert!(report.contains("IOStat by Function (per Second)"), "{report}");
        fs::remove_dir_all(here.join("b")).expect("the bundle");
    }
}

#[test]
fn rows_are_copied_by_one_loader_or_many_with_all_receipts_held() {
    let directory = tempfile::tempdir().expect("a directory");
    for more in [
        &["--load", "serial", "--into", "existing"][..],
        &["--load", "parallel", "--where", "store_id < 1000"],
        &["--set", "force_logging=on", "--set", "parallel_degree=3"],
        // A request is as long as an extent.
        &["--load", "serial", "--set", "parallel_degree=4", "--set", "db_file_multiblock_read_count=128"],
    ] {
        let all = ["run", "producer", "--rows", "100K", "--path", ".", "--bundle", "b"].iter().chain(more);
        let report = fine(directory.path(), all);
        assert!(report.contains("\nRun: VALID"), "{report}");
        assert!(!report.contains("contradicted"), "{report}");
        assert!(!report.contains("nothing outside the engine shows"), "{report}");
        fs::remove_dir_all(directory.path().join("b")).expect("the bundle");
    }
}

#[test]
fn a_copy_declares_the_buffers_of_its_scan() {
    let directory = tempfile::tempdir().expect("a directory");
    let requests = ["--set", "db_file_multiblock_read_count=128", "--set", "scan_read_ahead=7"];
    let run =
        ["run", "producer", "--rows", "20K", "--set", "parallel_degree=3", "--path", ".", "--bundle", "b"];
    fine(directory.path(), run.iter().chain(&requests));
    let record = fs::read(directory.path().join("b/record.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
    let areas = record["memory"]["areas"].as_array().expect("areas");
    let scans = areas.iter().find(|area| area["name"] == "Buffers of the scans").expect("an area");
    // Three servers, each with seven requests of 128 blocks of 8K in flight and one that it reads.
    assert_eq!(scans["bytes"], 3 * 8 * (1 << 20));
}

#[test]
fn what_cannot_be_scanned_or_copied_is_refused_by_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    towns(here, 100);
    let check = |arguments: &[&str], expect: &str| {
        let (code, line) = refused(here, arguments);
        let expected = match &line {
            // Options that exclude each other are wrong usage, rows of other columns wrong data.
            line if line.contains(" contradicts ") => 2,
            line if line.starts_with("columns of the rows") => 5,
            _ => 1,
        };
        assert_eq!((code, line.as_str()), (expected, expect), "{arguments:?}");
    };
    let scan = ["run", "scan", "--rows", "1K", "--path", "."];
    check(
        &[&scan[..], &["--where", "store_id < 'x'"]].concat(),
        "predicate \"store_id < 'x'\": column STORE_ID is NUMBER, and the text 'x' is no value of it; write a number \
         without quotes, as in 12.5",
    );
    check(
        &[&scan[..], &["--filled", "conventional", "--instances", "2"]].concat(),
        "instances that read a closed database contradicts a database with open transactions: what they committed may be \
         in the log and the cache alone; fill the table by direct path",
    );
    check(
        &["copy", "t", "--to", "u", "--columns", "id,nope"],
        "there is no column nope in this database; it has id, town, amount",
    );
    check(&["copy", "x", "--to", "u"], "there is no table X in this database; it has T");
    fine(
        here,
        ["copy", "t", "--to", "u", "--columns", "id,town", "--where", "amount > 50 and town = 'town 3'"],
    );
    check(
        &["copy", "t", "--to", "u"],
        "columns of the rows for table U: found NUMBER(2), VARCHAR2(6), NUMBER(3,1), expected NUMBER(2), VARCHAR2(6)",
    );
    fine(here, ["load", "t.csv", "--table", "live", "--conventional"]);
    let (_, line) = refused(here, ["copy", "t", "--to", "live"]);
    assert!(line.starts_with("table LIVE exists already"), "{line}");
    let copied = fine(here, ["copy", "live", "--to", "of_live", "--load", "serial"]);
    assert!(copied.starts_with("table OF_LIVE: 100 rows copied in "), "{copied}");
    fine(here, ["check"]);
}

#[test]
fn a_killed_copy_leaves_its_target_as_it_was_or_whole() {
    const ROWS: u64 = 120_000;
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    towns(here, ROWS as usize);
    fine(here, ["copy", "t", "--to", "u", "--columns", "id,amount"]);
    let mut rows = ROWS;
    for number in 0..20 {
        let load = if number % 2 == 0 { "serial" } else { "parallel" };
        let mut copy = command(here);
        copy.args(["copy", "t", "--to", "u", "--columns", "id,amount", "--load", load]);
        let mut child = copy.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        thread::sleep(Duration::from_millis(3 + 5 * number));
        // It may have ended by itself.
        let by = if number % 5 == 4 { "INT" } else { "KILL" };
        if child.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(child.id(), by);
        }
        child.wait().expect("it ends");
        let found = rows_of(here, "u");
        assert!(found == rows || found == rows + ROWS, "{found} rows after {rows}, copy {number} by {by}");
        rows = found;
        fine(here, ["check", "u"]);
    }
    fine(here, ["copy", "t", "--to", "u", "--columns", "id,amount"]);
    assert_eq!(rows_of(here, "u"), rows + ROWS);
}

/// Returns the processes that a process has started.
fn children(process: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Starts instances that scan for some seconds, and waits until all of them run.
fn instances(directory: &Path, count: &str) -> (Child, Vec<u32>) {
    let mut run = command(directory);
    run.args(["run", "scan", "--rows", "500K", "--streams", "64", "--checksum", "true", "--path", "."]);
    run.args(["--instances", count, "--bundle", "b"]);
    let run = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let started = (0..30_000).find_map(|_| {
        thread::sleep(Duration::from_millis(2));
        Some(children(run.id())).filter(|started| started.len().to_string() == count)
    });
    (run, started.expect("no instances in a minute"))
}

/// True if a process ends within ten seconds: the kernel ends it with its parent, at its next turn.
fn is_gone(process: u32) -> bool {
    (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        !Path::new(&format!("/proc/{process}")).exists()
    })
}

#[test]
fn a_killed_instance_is_named_and_the_others_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let (run, started) = instances(directory.path(), "3");
    signal(started[1], "KILL");
    let ended = run.wait_with_output().expect("it ends");
    let said = String::from_utf8(ended.stderr).expect("text");
    let expect = format!("plumb: instance 2 failed: process {} ended with signal: 9 (SIGKILL)", started[1]);
    assert_eq!(said.lines().last(), Some(expect.as_str()), "{said}");
    assert_eq!(ended.status.code(), Some(1));
    for process in started {
        assert!(is_gone(process), "instance {process} still runs");
    }
}

#[test]
fn ctrl_c_ends_a_scan_with_its_instances() {
    let directory = tempfile::tempdir().expect("a directory");
    let (run, started) = instances(directory.path(), "2");
    signal(run.id(), "INT");
    let ended = run.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    for process in started {
        assert!(is_gone(process), "instance {process} still runs");
    }
}
