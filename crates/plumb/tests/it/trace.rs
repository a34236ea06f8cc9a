//! `plumb run --trace` and `plumb trace`: every request of the work, from the bundle.

use crate::program::{fine, plumb, refused};
use serde_json::Value;
use std::fs;

#[test]
fn every_log_write_of_an_import_is_kept_and_printed() {
    let directory = tempfile::tempdir().expect("a directory");
    fine(directory.path(), ["run", "redo", "--rows", "3K", "--trace", "--bundle", "b"]);
    let record = fs::read_to_string(directory.path().join("b/record.json")).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    let total = |name: &str| {
        let rows = record["statistics"].as_array().expect("a list").iter();
        rows.filter(|row| row["name"] == name).map(|row| row["total"].as_u64().expect("a count")).sum::<u64>()
    };
    let writes = total("redo writes");
    assert!(writes > 100, "{writes}");
    let trace = &record["trace"];
    assert_eq!(
        (&trace["dropped"], trace["requests"].as_u64() >= Some(writes)),
        (&Value::from(0), true),
        "{trace}"
    );
    let receipts = record["receipts"].as_array().expect("a list");
    let held = receipts.iter().find(|receipt| receipt["setting"] == "trace").expect("a receipt");
    assert_ne!(held["held"], "contradicted", "{held}");
    assert!(record["log"]["writes"].as_u64() == Some(writes), "{}", record["log"]);

    let lines = fine(directory.path(), ["trace", "b", "--session", "p000"]);
    let of_log =
        lines.lines().filter(|line| line.contains(" W ") && line.contains("log file parallel write")).count();
    assert_eq!(of_log as u64, writes, "one line each");
    assert!(
        lines.contains("TIME(s)") && lines.contains("PATHNAME") && lines.contains("Requests by service time")
    );
    let sums = fine(directory.path(), ["trace", "b/trace.bin", "--summary"]);
    assert!(sums.starts_with("Requests by length") && sums.contains("0 were dropped"), "{sums}");
}

#[test]
fn a_trace_that_is_missing_or_damaged_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a directory");
    fine(directory.path(), ["run", "redo", "--rows", "1K", "--trace", "--bundle", "b"]);
    let (code, says) = refused(directory.path(), ["trace", "b", "--session", "LGWR"]);
    assert!(
        code == 1 && says.starts_with("--session: no session has \"LGWR\" in its name; there are "),
        "{code} {says}"
    );
    let path = directory.path().join("b/trace.bin");
    let mut bytes = fs::read(&path).expect("a trace");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("written");
    let (code, says) = refused(directory.path(), ["trace", "b"]);
    let expected = "b/trace.bin: its bytes are not those that were written: the SHA-256 in its head differs";
    assert_eq!((code, says.as_str()), (1, expected));
    fs::remove_file(&path).expect("removed");
    let (code, says) = refused(directory.path(), ["trace", "b"]);
    assert!(code == 1 && says.ends_with("; `plumb run --trace` keeps one in its bundle"), "{code} {says}");
}

#[test]
fn other_workloads_are_traced_too_and_runs_without_it_keep_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    fine(directory.path(), ["run", "large-sort", "--rows", "100K", "--trace", "--bundle", "sort"]);
    let sums = fine(directory.path(), ["trace", "sort", "--summary"]);
    // One server may read all of a small table by chance.
    assert!(sums.contains("PX scan server p00") && sums.contains("Average by session"), "{sums}");
    let plain = plumb(directory.path(), ["run", "redo", "--rows", "1K", "--bundle", "plain"]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    assert!(!directory.path().join("plain/trace.bin").exists());
}
