//! The record sort under several settings: it succeeds, its record is verified, no receipt
//! contradicts a setting, and nothing is left behind.

use crate::program::{fine, names, refused};
use serde_json::Value;

/// Runs the workload with these arguments and returns the record.
fn run(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let all = ["run", "record-sort", "--json"].iter().chain(arguments).copied();
    let record = fine(directory.path(), all.collect::<Vec<_>>());
    assert_eq!(names(directory.path()), Vec::<String>::new(), "all files of the run are removed");
    let record: Value = serde_json::from_str(&record).expect("stdout is the record and nothing else");
    let list = |name: &str| record[name].as_array().expect("a list").clone();
    assert!(list("checks").len() >= 4);
    for check in list("checks") {
        assert_eq!(check["passed"], true, "{arguments:?}: {check}");
    }
    for receipt in list("receipts") {
        assert_ne!(receipt["held"], "contradicted", "{arguments:?}: {receipt}");
    }
    record
}

/// Bytes of a phase, of all servers together.
fn phase_bytes(record: &Value, name: &str) -> u64 {
    let phases = record["phases"].as_array().expect("a list");
    let phase = phases.iter().find(|phase| phase["name"] == name);
    phase.unwrap_or_else(|| panic!("a phase {name}: {phases:?}"))["bytes"].as_u64().expect("a count")
}

#[test]
fn defaults_sort_and_verify() {
    let record = run(&["--rows", "200K"]);
    assert_eq!(record["header"]["workload"], "record-sort");
    assert_eq!(record["sort"]["rows"], 200_000);
    let (input, checks) = (200_000 * 100, record["checks"].to_string());
    assert!(checks.contains("200,000 records of the output"), "{checks}");
    // Input read and runs written; runs read and output written.
    assert!(phase_bytes(&record, "run generation") > 2 * input);
    assert!(phase_bytes(&record, "merge and write") > 2 * input);
    assert!(phase_bytes(&record, "merge and write") < 2 * input + input / 4);
}

#[test]
fn ways_to_the_disk_hold_what_they_say() {
    for settings in [
        &["filesystemio_options=none"][..],
        &["filesystemio_options=directio"],
        &["io_method=threads"],
        &["io_method=null"],
        &["sort_direct_writes=false"],
        &["sort_direct_writes=true", "sort_write_buffers=8"],
        &["parallel_degree=1"],
        &["parallel_degree=3", "sort_area_size=1M"],
        &["sort_area_size=256K", "db_block_size=4K", "sort_read_fac=10"],
        &["sort_area_size=64M", "data_files=1"],
    ] {
        let mut arguments = vec!["--size", "10M"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        let record = run(&arguments);
        assert_eq!(record["sort"]["rows"], 10 * 1024 * 1024 / 100);
    }
}

#[test]
fn what_cannot_be_sorted_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (arguments, code, says) in [
        (&["run", "record-sort", "--size", "99"][..], 2, "--size 99: expected 100 B or more"),
        (
            &["run", "large-sort", "--size", "1G"],
            2,
            "--size: large-sort has no such parameter; it has rows, seed",
        ),
        (&["run", "record-sort", "--size", "1G", "--rows", "5"], 2, "say the same in two ways"),
        (
            &["run", "record-sort", "--rows", "5", "--set", "sort_area_size=64K"],
            2,
            "set sort_area_size to at least 240K",
        ),
        (&["run", "record-sort", "--rows", "1000G"], 1, "free"),
    ] {
        let (found, error) = refused(directory.path(), arguments);
        assert_eq!(found, code, "{arguments:?}: {error}");
        assert!(error.contains(says), "{arguments:?}: {error}");
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }
}
