//! Too few threads, rings or memory. A default is replaced and the report says so; a method given
//! by name is rejected in one line. Nothing hangs or is left behind.

use crate::program::{fine, names, refused};
use serde_json::Value;

/// Runs a workload with these settings and returns the record; no receipt may contradict one.
fn run(workload: &str, settings: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut all = vec!["run", workload, "--rows", "200K", "--json"];
    settings.iter().for_each(|setting| all.extend(["--set", *setting]));
    let record = fine(directory.path(), all);
    assert_eq!(names(directory.path()), Vec::<String>::new(), "all files of the run are removed");
    let record: Value = serde_json::from_str(&record).expect("stdout is the record and nothing else");
    for receipt in record["receipts"].as_array().expect("a list") {
        assert_ne!(receipt["held"], "contradicted", "{settings:?}: {receipt}");
    }
    record
}

/// Returns the evidence of a finding; `None` if there is no such finding.
fn finding<'r>(record: &'r Value, what: &str) -> Option<&'r str> {
    let findings = record["findings"].as_array().expect("a list");
    findings.iter().find(|finding| finding["what"] == what)?["evidence"].as_str()
}

/// Returns the error of a run with these settings.
fn refusal(settings: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut all = vec!["run", "large-sort", "--rows", "20K", "--json"];
    settings.iter().for_each(|setting| all.extend(["--set", *setting]));
    let (code, line) = refused(directory.path(), all);
    assert_eq!(code, 1, "{line}");
    assert_eq!(names(directory.path()), Vec::<String>::new(), "nothing is left");
    line
}

const REPLACED: &str = "Some sessions did not get the best I/O method";

#[test]
fn threads_asked_for_by_name_are_refused_with_the_number_needed() {
    let line = refusal(&["parallel_degree=64", "debug_thread_limit=80"]);
    assert!(
        line.starts_with("cannot start the 131 threads that parallel_degree=64 takes, but only 80: "),
        "{line}"
    );
    let line = refusal(&["io_method=threads", "debug_thread_limit=9"]);
    assert!(line.starts_with("cannot start the 32 threads of io_method=threads, but only 9: "), "{line}");
}

#[test]
fn a_default_degree_runs_with_the_servers_that_could_be_started() {
    for workload in ["large-sort", "record-sort"] {
        let record = run(workload, &["debug_thread_limit=4"]);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let fewer = finding(&record, "Fewer servers were started than there are processors");
        assert_eq!(fewer.is_some(), processors > 1, "{fewer:?}");
        assert!(fewer.is_none_or(|said| said.starts_with("1 instead of ")), "{fewer:?}");
    }
}

#[test]
fn io_method_auto_goes_on_where_a_later_ring_is_refused() {
    let record = run("large-sort", &["parallel_degree=4", "sort_area_size=256K"]);
    if record["devices"][0]["io_method"] != "io_uring" {
        println!("skipped: io_uring does not work here");
        return;
    }
    for workload in ["large-sort", "record-sort"] {
        let few = ["parallel_degree=4", "sort_area_size=1M", "debug_ring_limit=3"];
        let record = run(workload, &few);
        let said = finding(&record, REPLACED).expect("rings ran out");
        assert!(said.contains(" go by threads, because io_uring_setup"), "{said}");
        let reason = record["devices"][0]["io_method_reason"].as_str().expect("a reason");
        assert!(reason.contains(said), "{reason}");
        // Neither rings nor threads for the pool.
        let record = run(workload, &[&few[..], &["debug_thread_limit=13"]].concat());
        let said = finding(&record, REPLACED).expect("rings ran out");
        assert!(said.contains(" go by plain calls, because io_uring_setup"), "{said}");
    }
    let line = refusal(&["io_method=io_uring", "parallel_degree=4", "debug_ring_limit=1"]);
    assert!(line.starts_with("io_method=io_uring does not work here: io_uring_setup"), "{line}");
    assert!(line.contains("RLIMIT_MEMLOCK") && line.contains("set ulimit -l to "), "{line}");
}

#[test]
fn memory_that_no_machine_has_is_refused_before_the_run() {
    let line = refusal(&["sort_area_size=1T", "parallel_degree=64"]);
    assert!(
        line.starts_with("the settings ask for 64.0 TB of memory (sort areas 64 x 1.00 TB = 64.0 TB + "),
        "{line}"
    );
    assert!(line.contains(": lower sort_area_size=1t (--set), parallel_degree=64 (--set)"), "{line}");
}

#[test]
fn a_cache_of_small_blocks_takes_what_was_declared() {
    let small = ["db_block_size=2K", "db_cache_size=64M", "sort_direct_writes=false", "sort_area_size=64K"];
    let record = run("large-sort", &small);
    let receipts = record["receipts"].as_array().expect("a list");
    let budget = receipts.iter().find(|receipt| receipt["setting"] == "memory budget").expect("one");
    assert_ne!(budget["held"], "contradicted", "{budget}");
}
