//! The SLOB workload by arguments and by a slob.conf, under several settings, in a
//! study; rejections; nothing is left.

use crate::program::{fine, names, plumb, refused};
use crate::study_file::StudyFile;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Small arguments: three schemas of 200 blocks, and loops instead of a time.
const SMALL: [&str; 8] = ["--scale", "200", "--schemas", "3", "--work-unit", "16", "--sessions", "4"];

fn record_of(directory: &Path, arguments: &[&str]) -> Value {
    let all = ["run", "slob", "--json"].iter().chain(&SMALL).chain(arguments).copied();
    let record = fine(directory, all.collect::<Vec<_>>());
    let record: Value = serde_json::from_str(&record).expect("stdout is the record and nothing else");
    let checks = record["checks"].as_array().expect("a list");
    assert!(checks.len() >= 3, "{checks:?}");
    assert!(checks.iter().all(|check| check["passed"] == true), "{arguments:?}: {checks:?}");
    for receipt in record["receipts"].as_array().expect("a list") {
        assert_ne!(receipt["held"], "contradicted", "{arguments:?}: {receipt}");
    }
    record
}

fn run(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = record_of(directory.path(), arguments);
    assert_eq!(names(directory.path()), Vec::<String>::new(), "all files of the run are removed");
    record
}

fn statistic(record: &Value, name: &str) -> u64 {
    let found = record["statistics"].as_array().expect("a list").iter().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("a statistic {name}"))["total"].as_u64().expect("a count")
}

fn waits(record: &Value, event: &str) -> u64 {
    let all = ["foreground_events", "background_events"].map(|kind| record[kind].as_array().expect("a list"));
    let of = all.into_iter().flatten().filter(|found| found["event"] == event);
    of.map(|found| found["waits"].as_u64().expect("a count")).sum()
}

/// Returns the number of operations of a kind, from their response times.
fn operations(record: &Value, kind: &str) -> u64 {
    let found = record["responses"].as_array().expect("a list").iter().find(|it| it["operation"] == kind);
    let buckets = found.and_then(|response| response["latency"]["buckets"].as_array().cloned());
    buckets.unwrap_or_default().iter().map(|bucket| bucket[1].as_u64().expect("a count")).sum()
}

#[test]
fn loops_have_their_quota_of_updates_and_each_row_is_a_read_of_one_block() {
    let record = run(&["--work-loop", "200", "--update-pct", "20", "--set", "db_cache_size=1M"]);
    assert_eq!((operations(&record, "select"), operations(&record, "update")), (640, 160));
    assert_eq!(statistic(&record, "user commits"), 160);
    assert_eq!(statistic(&record, "rows updated"), 160 * 15);
    assert_eq!(waits(&record, "db file sequential read"), statistic(&record, "physical reads"));
    assert!(statistic(&record, "physical reads") > 3000, "a cache of 128 blocks holds a fifth of the rows");
    assert!(waits(&record, "db file async I/O submit") > 0, "every submission of the database writer");
    assert!(waits(&record, "log file parallel write") > 0);
}

#[test]
fn a_cache_that_holds_all_leaves_no_reads() {
    let record = run(&["--work-loop", "50", "--update-pct", "0", "--set", "db_cache_size=64M"]);
    assert_eq!(statistic(&record, "physical reads"), 0);
    assert_eq!(operations(&record, "select"), 200);
    assert_eq!(statistic(&record, "redo entries"), 0);
}

#[test]
fn blocks_are_asked_for_together_where_that_is_set() {
    let set = ["--set", "db_cache_size=1M", "--set", "db_block_prefetch_limit=8"];
    let mut arguments = vec!["--work-loop", "50"];
    arguments.extend(set);
    let record = run(&arguments);
    let (parallel, single) =
        (waits(&record, "db file parallel read"), waits(&record, "db file sequential read"));
    assert!(parallel > 100 && single < parallel, "{parallel} and {single}");
}

#[test]
fn checksums_are_left_alone_where_that_is_set() {
    let off = ["--work-loop", "50", "--set", "db_cache_size=1M", "--set", "db_block_checksum=off"];
    let record = run(&off);
    let ignored = statistic(&record, "block checksums not verified");
    assert_eq!(ignored, statistic(&record, "physical reads"));
    assert!(ignored > 100, "{ignored}");
    let receipts = record["receipts"].as_array().expect("receipts");
    let receipt = receipts.iter().find(|it| it["setting"] == "db_block_checksum").expect("its receipt");
    assert_eq!(receipt["held"], "held");
}

#[test]
fn scans_hot_spots_pauses_and_heavy_updates_leave_their_receipts() {
    let record = run(&[
        "--work-loop",
        "100",
        "--update-pct",
        "30",
        "--scan-pct",
        "5",
        "--scan-table-size",
        "100",
        "--redo-stress",
        "heavy",
        "--hotspot",
        "all",
        "--hotspot-offset",
        "50",
        "--hotspot-size",
        "50",
        "--hot-schema-frequency",
        "7",
        "--think-frequency",
        "9",
        "--think-min",
        "1ms",
        "--think-max",
        "2ms",
        "--threads-per-schema",
        "2",
        "--mix",
        "iid",
        "--obfuscate",
        "false",
        "--placement",
        "ordered",
        "--set",
        "db_block_size=4K",
        "--set",
        "db_cache_size=1M",
    ]);
    assert!(operations(&record, "scan") > 0 && waits(&record, "db file scattered read") > 0);
    assert!(waits(&record, "SQL*Net message from client") > 4, "pauses, and the wait at the start");
}

#[test]
fn operations_that_arrive_by_themselves_are_timed_from_when_they_were_due() {
    let record = run(&["--run-time", "2", "--rate", "200", "--set", "db_cache_size=8M"]);
    let count = operations(&record, "select") + operations(&record, "update");
    assert!((200..=600).contains(&count), "{count} of some 400");
}

/// The unchanged file of SLOB's source, except for its size.
#[test]
fn a_slob_conf_is_read_and_what_has_no_effect_is_said() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let conf = "UPDATE_PCT=20\nRUN_TIME=120\nWORK_LOOP=100\nSCALE=10000\nWORK_UNIT=256\nREDO_STRESS=HEAVY\nLOAD_PARALLEL_DEGREE=8\n\
                SHARED_DATA_MODULUS=0\n#SYSDBA_PASSWD=\"change_on_install\"\nDATABASE_STATISTICS_TYPE=awr\nSECRET=hunter2\n\
                export UPDATE_PCT RUN_TIME WORK_LOOP SCALE WORK_UNIT LOAD_PARALLEL_DEGREE REDO_STRESS SHARED_DATA_MODULUS\n";
    fs::write(directory.path().join("slob.conf"), conf).expect("a file");
    let all = ["run", "slob", "--json", "--conf", "slob.conf"].iter().chain(&SMALL);
    let ended = plumb(directory.path(), all);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(
        ended.stderr,
        "slob.conf:10: DATABASE_STATISTICS_TYPE has no effect: the report of the run takes the place of what it collects\n\
         slob.conf:11: SECRET is no parameter of SLOB and has no effect; its value is not shown\n"
    );
    let record: Value = serde_json::from_str(&ended.stdout).expect("the record");
    assert_eq!((operations(&record, "select"), operations(&record, "update")), (320, 80));
    let receipts = record["receipts"].as_array().expect("a list");
    let asked = |name: &str| receipts.iter().find(|it| it["setting"] == name).map(|it| it["asked"].clone());
    assert_eq!(asked("redo-stress"), Some(Value::from("heavy")));
    assert_eq!(asked("work-unit"), Some(Value::from("16")), "the command line counts");
}

#[test]
fn what_a_slob_conf_contradicts_is_told_with_file_and_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let check = |conf: &[u8], more: &[&str], expected: &str| {
        fs::write(directory.path().join("slob.conf"), conf).expect("a file");
        let run = ["run", "slob", "--json", "--conf", "slob.conf"].iter().chain(more);
        let (_, says) = refused(directory.path(), run);
        assert!(says.ends_with(expected), "{says}");
        assert_eq!(names(directory.path()), ["slob.conf"]);
    };
    // In Latin-1, as older editors write it.
    let think = b"# Z\xfcrich\nTHINK_TM_MIN=.5\nTHINK_TM_MAX=.1\nTHINK_TM_FREQUENCY=5\n";
    let both = " (THINK_TM_MIN, slob.conf:2; THINK_TM_MAX, slob.conf:3)";
    check(think, &[], &format!("the shortest pause is the longer one{both}"));
    check(think, &["--think-max", "0.2"], "the shortest pause is the longer one (THINK_TM_MIN, slob.conf:2)");
    check(b"SCALE=64\nWORK_UNIT=64", &[], " (SCALE, slob.conf:1; WORK_UNIT, slob.conf:2)");
    check(b"SCALE=4000000P\n", &[], "a size (a number with K, M, G, T or P after it, as in 64K or 5T)");
    check(b"\nSCALE=1000P\n", &[], " (SCALE, slob.conf:2)");
    check(b"\nSCALE=9000000000000000000\n", &[], " (SCALE, slob.conf:2)");
    check(b"UPDATE_PCT=2\xb2\n", &[], "expected a whole number from 0 to 100");
}

#[test]
fn what_cannot_be_is_refused_in_one_line_before_anything_is_made() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("slob.conf"), "UPDATE_PCT=$PCT\n").expect("a file");
    fs::write(directory.path().join("high.conf"), "\nUPDATE_PCT=120\n").expect("a file");
    let cases: [(&[&str], &str); 9] = [
        (&["--conf", "missing.conf"], "--conf missing.conf: No such file or directory (os error 2)"),
        (
            &["--conf", "slob.conf"],
            "slob.conf:1: a shell would expand this line: the file is read, and nothing in it is run; write the value itself",
        ),
        (&["--conf", "high.conf"], "high.conf:2: UPDATE_PCT=120: expected a whole number from 0 to 100"),
        (&["--update-pct", "101"], "--update-pct 101: expected a whole number from 0 to 100"),
        (&["--work-unit", "1"], "--work-unit 1: expected a count of 2 or more"),
        (
            &["--work-unit", "600", "--scale", "1000"],
            "scale=1000 blocks contradicts work-unit=600: a key has a work unit on both sides; give a scale of 1201 or more, or a smaller work unit",
        ),
        (&["--sessions", "2133"], "sessions=2133 contradicts at most 2132 transactions"),
        (&["--run-time", "0"], "run-time=0 contradicts work-loop=0: neither ends the run; give one of them"),
        (&["--sessions", "100M", "--update-pct", "0"], "sessions=100000000 contradicts "),
    ];
    for (arguments, expected) in cases {
        let (code, says) = refused(directory.path(), ["run", "slob"].iter().chain(arguments));
        assert_eq!(code, 2, "{says}");
        assert!(says.starts_with(expected), "{says}");
    }
    let (_, says) = refused(directory.path(), ["run", "redo", "--conf", "slob.conf"]);
    assert_eq!(says, "--conf slob.conf: redo takes no slob.conf; it is for plumb run slob");
    assert_eq!(names(directory.path()), ["high.conf", "slob.conf"]);
}

#[test]
fn sessions_that_cannot_have_a_thread_end_the_run_with_the_limit() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let few = ["--sessions", "30", "--set", "debug_thread_limit=20"];
    let all = ["run", "slob"].iter().chain(&SMALL[..6]).chain(&few);
    let (code, says) = refused(directory.path(), all);
    assert_eq!(code, 1, "{says}");
    assert!(says.contains("thread"), "{says}");
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn a_study_varies_how_the_work_is_done_and_how_the_files_lie() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let study = StudyFile {
        name: "updates",
        top: "workload = \"slob\"",
        blocks: 2,
        sections: r#"[parameters]
scale = 200
schemas = 2
work_unit = 16
work-loop = 20
redo-stress = "heavy"
sessions = 2

[[factor]]
name = "files"
setting = "data_files"
levels = [1, 2]"#,
        setting: "update_pct",
        levels: ["0", "50"],
        expect: "slower",
    };
    study.write(directory.path());
    let ended = plumb(directory.path(), ["study", "updates.toml", "--bundle", "out"]);
    assert!(matches!(ended.code, Some(0 | 3..=8)), "{ended:?}");
    let report = fs::read_to_string(directory.path().join("out/report.txt")).expect("a report");
    assert!(!report.contains("INVALID"), "{report}");
    // The number of rows follows from the schemas and is not given twice.
    let again = plumb(directory.path(), ["study", "updates.toml", "--resume", "out"]);
    assert_eq!(again.code, ended.code, "{}", again.stderr);
}
