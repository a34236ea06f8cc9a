//! The workload under many settings: it succeeds, its record is verified, no receipt contradicts a
//! setting, and nothing is left behind.

use crate::program::{fine, names, plumb};
use serde_json::Value;

/// Runs the workload with these settings and returns the record.
fn run(rows: &str, settings: &[&str]) -> Value {
    run_with(rows, &[], settings)
}

fn receipts<'a>(record: &'a Value, setting: &str) -> Vec<&'a Value> {
    let receipts = record["receipts"].as_array().expect("a list");
    receipts.iter().filter(|receipt| receipt["setting"] == setting).collect()
}

fn held(record: &Value, setting: &str) -> bool {
    receipts(record, setting).iter().any(|receipt| receipt["held"] == "held")
}

/// Returns the receipt of a setting with this text, which must exist.
#[track_caller]
fn receipt<'a>(record: &'a Value, setting: &str, saying: &str) -> &'a Value {
    let receipts = receipts(record, setting);
    let says = |receipt: &&&Value| receipt["evidence"].as_str().is_some_and(|text| text.contains(saying));
    receipts
        .iter()
        .find(says)
        .unwrap_or_else(|| panic!("no receipt of {setting} says {saying:?}: {receipts:?}"))
}

/// Returns the finding with this prefix, which must exist.
#[track_caller]
fn finding<'a>(record: &'a Value, what: &str) -> &'a Value {
    let findings = record["findings"].as_array().expect("a list");
    let begins = |finding: &&Value| finding["what"].as_str().is_some_and(|text| text.starts_with(what));
    findings.iter().find(begins).unwrap_or_else(|| panic!("no finding {what:?}: {findings:?}"))
}

#[track_caller]
fn phase_bytes(record: &Value, name: &str) -> u64 {
    let phases = record["phases"].as_array().expect("a list");
    let phase = phases.iter().find(|phase| phase["name"] == name).expect("a phase of that name");
    phase["bytes"].as_u64().expect("a count")
}

fn statistic(record: &Value, name: &str) -> u64 {
    let statistics = record["statistics"].as_array().expect("a list");
    let row = statistics.iter().find(|row| row["name"] == name).expect("a statistic of that name");
    row["total"].as_u64().expect("a count")
}

/// Runs the workload with parameters and settings and returns the record.
fn run_with(rows: &str, parameters: &[&str], settings: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = vec!["run", "large-sort", "--json", "--rows", rows];
    arguments.extend(parameters);
    for setting in settings {
        arguments.extend(["--set", setting]);
    }
    let record = fine(directory.path(), arguments);
    assert_eq!(names(directory.path()), Vec::<String>::new(), "the temporary database is removed");
    let record: Value = serde_json::from_str(&record).expect("stdout is the record and nothing else");
    let list = |name: &str| record[name].as_array().expect("a list").clone();
    assert!(!list("checks").is_empty());
    for check in list("checks") {
        assert_eq!(check["passed"], true, "{settings:?}: {check}");
    }
    for receipt in list("receipts") {
        assert_ne!(receipt["held"], "contradicted", "{settings:?}: {receipt}");
    }
    record
}

/// Enough rows that sort areas of 64K spill.
const ROWS: &str = "20000";
const SMALL_AREA: &str = "sort_area_size=64K";

#[test]
fn defaults_sort_and_verify() {
    let record = run(ROWS, &[]);
    assert_eq!(statistic(&record, "index entries"), 20_000);
    assert!(held(&record, "parallel_degree"));
}

#[test]
fn every_io_method_sorts_on_disk() {
    for (method, options) in [
        ("sync", "directio"),
        ("sync", "none"),
        ("threads", "setall"),
        ("threads", "asynch"),
        ("auto", "setall"),
    ] {
        let method = format!("io_method={method}");
        let options = format!("filesystemio_options={options}");
        let record = run(ROWS, &[&method, &options, SMALL_AREA]);
        assert!(statistic(&record, "sort runs") > 2);
        assert!(held(&record, "io_method"), "{method} {options}: {:?}", receipts(&record, "io_method"));
    }
}

#[test]
fn io_uring_sorts_where_the_machine_has_it() {
    let record = run(ROWS, &[]);
    let state = &record["devices"][0]["io_uring"]["state"];
    if state != "available" {
        eprintln!("skipped: no io_uring here: {}", record["devices"][0]["io_uring"]);
        return;
    }
    let record = run(ROWS, &["io_method=io_uring", "filesystemio_options=asynch", SMALL_AREA]);
    assert!(statistic(&record, "ring requests") > 0);
    assert!(held(&record, "io_method"));
}

#[test]
fn every_filesystemio_option_leaves_its_receipt() {
    for options in ["none", "asynch", "directio", "setall"] {
        let record = run(ROWS, &[&format!("filesystemio_options={options}"), SMALL_AREA]);
        assert!(held(&record, "filesystemio_options"), "{options}");
    }
}

fn counted_ns(session: &Value) -> i64 {
    let of = |name: &str| session[name].as_i64().expect("nanoseconds");
    ["cpu_ns", "wait_ns", "idle_ns", "run_queue_ns"].map(of).iter().sum()
}

/// True if at least half of each session's time is counted.
fn is_counted(record: &Value) -> bool {
    let sessions = record["sessions"].as_array().expect("a list");
    sessions
        .iter()
        .all(|session| counted_ns(session) >= session["elapsed_ns"].as_i64().expect("nanoseconds") / 2)
}

#[test]
fn the_time_of_every_session_adds_up() {
    for (settings, buffered) in [
        (&["filesystemio_options=none", "sort_direct_writes=true", SMALL_AREA][..], true),
        (&["filesystemio_options=asynch", "io_method=threads", SMALL_AREA], false),
        (&["filesystemio_options=setall", "sort_direct_writes=false", SMALL_AREA], false),
        (&["parallel_degree=1", SMALL_AREA], false),
    ] {
        // No thread can see the time that the hypervisor takes, which is sometimes more than half.
        // Time that is never counted is missing in every run.
        let mut runs = std::iter::repeat_with(|| run("400000", settings)).take(5);
        let record = runs.find(is_counted).expect("at least half of each session's time is counted");
        let (mut db_cpu, mut db_time, mut inside) = (0, 0, 0);
        for session in record["sessions"].as_array().expect("a list") {
            let of = |name: &str| session[name].as_i64().expect("nanoseconds");
            let parts = counted_ns(session);
            // The CPU inside waits is extrapolated from a sample, so the sum may be too large.
            let tolerance = of("elapsed_ns") / 100 + 200_000;
            assert!(parts <= of("elapsed_ns") + tolerance, "{settings:?}: counted twice in {session}");
            assert!(of("wait_cpu_ns") <= of("wait_ns") + of("idle_ns"), "{settings:?}: {session}");
            if session["kind"] == "foreground" {
                db_cpu += of("cpu_ns");
                db_time += of("cpu_ns") + of("wait_ns");
                inside += of("wait_cpu_ns");
            }
        }
        assert_eq!(record["header"]["db_cpu_ns"].as_i64(), Some(db_cpu));
        assert_eq!(record["header"]["db_time_ns"].as_i64(), Some(db_time));
        // A buffered read copies, so its CPU could be counted both as CPU and as a wait.
        assert!(!buffered || inside > 2_000_000, "{inside}");
    }
}

#[test]
fn files_in_memory_leave_nothing_to_observe() {
    let record = run(ROWS, &["io_method=null", SMALL_AREA]);
    for setting in ["io_method", "filesystemio_options"] {
        let receipts = receipts(&record, setting);
        assert!(receipts.iter().all(|receipt| receipt["held"] == "not_checked"), "{receipts:?}");
    }
    assert!(statistic(&record, "sort runs") > 2);
}

#[test]
fn serial_and_parallel_sorts_give_the_same_index() {
    for degree in ["1", "2", "3"] {
        let record = run(ROWS, &[&format!("parallel_degree={degree}"), SMALL_AREA]);
        assert_eq!(statistic(&record, "index entries"), 20_000);
        assert!(held(&record, "parallel_degree"), "{degree}");
    }
}

#[test]
fn the_smallest_sort_area_merges_more_than_once() {
    let record = run("100000", &[SMALL_AREA, "parallel_degree=1"]);
    assert!(statistic(&record, "sort intermediate merges") > 0);
    assert!(record["sort"]["multi_pass"].as_u64() > Some(0));
    assert!(held(&record, "sort_area_size"));
}

#[test]
fn following_the_advice_gives_one_pass() {
    for settings in [
        &["sort_area_size=64K", "parallel_degree=1"][..],
        &["sort_area_size=64K", "parallel_degree=2", "sort_direct_writes=true"],
        &["sort_area_size=128K", "parallel_degree=2", "sort_read_fac=1"],
    ] {
        let record = run("400000", settings);
        assert!(statistic(&record, "sort intermediate merges") > 0, "{settings:?}");
        let advice =
            finding(&record, "The sort needed intermediate merges")["advice"].as_str().expect("a text");
        let area = advice.split_whitespace().next().expect("a setting");
        assert!(area.starts_with("sort_area_size="), "{advice}");
        let followed: Vec<&str> = [area].into_iter().chain(settings[1..].iter().copied()).collect();
        let record = run("400000", &followed);
        assert_eq!(statistic(&record, "sort intermediate merges"), 0, "{followed:?}");
        assert!(record["sort"]["merge_passes"].as_u64() <= Some(1), "{followed:?}");
    }
}

#[test]
fn phases_share_no_bytes() {
    let record = run("400000", &["parallel_degree=2", SMALL_AREA]);
    let [scan, sample] = ["table scan", "sample"].map(|name| phase_bytes(&record, name));
    let functions = record["io_functions"].as_array().expect("a list");
    let moved = |name: &str| {
        let row = functions.iter().find(|row| row["function"] == name).expect("a function of that name");
        row["reads"]["bytes"].as_u64().expect("a count") + row["writes"]["bytes"].as_u64().expect("a count")
    };
    assert_eq!(scan + sample, moved("table reads"));
    assert!(sample > 0 && sample <= 256 * 8192, "{sample}");
    let sorted = ["run generation", "intermediate merges", "merge and index", "join"];
    let bytes: u64 = sorted.iter().map(|name| phase_bytes(&record, name)).sum();
    assert_eq!(bytes, moved("temp writes") + moved("temp reads") + moved("index writes"));
}

#[test]
fn a_run_of_some_size_is_judged_by_what_the_kernel_counted() {
    let record = run("2M", &[]);
    let receipt = receipt(&record, "filesystemio_options", "asked: ");
    let evidence = receipt["evidence"].as_str().expect("a text");
    let filesystem = record["devices"][0]["filesystem"].as_str().expect("a text");
    if !["ext4", "xfs"].contains(&filesystem) || evidence.contains("no block device") {
        println!("skipped: {filesystem} moves other bytes than it is asked for");
        return;
    }
    assert!(evidence.contains("/proc/self/io: ") && evidence.contains("by all processes"), "{evidence}");
    assert_eq!(receipt["held"], "held", "{receipt}");
}

#[test]
fn requests_overlap_only_when_they_are_asynchronous() {
    for (method, options) in [("sync", "directio"), ("threads", "setall"), ("auto", "setall")] {
        let settings = [&format!("io_method={method}"), &format!("filesystemio_options={options}")];
        let record = run("400000", &[settings[0], settings[1], SMALL_AREA]);
        let receipt = receipt(&record, "filesystemio_options", "times as long");
        assert_eq!(receipt["held"], "held", "{method}: {receipt}");
    }
}

#[test]
fn read_ahead_is_bounded_by_its_setting() {
    for (ahead, options) in [("1", "setall"), ("2", "setall"), ("4", "asynch")] {
        let ahead = format!("scan_read_ahead={ahead}");
        let record = run("400000", &[&ahead, &format!("filesystemio_options={options}")]);
        receipt(&record, "scan_read_ahead", "in flight on average");
    }
}

#[test]
fn memory_is_held_against_what_was_declared() {
    let record = run("400000", &["sort_area_size=1M"]);
    let receipt = receipt(&record, "memory budget", "peak resident set");
    assert_eq!(receipt["held"], "held", "{receipt}");
}

#[test]
fn a_read_cost_is_judged_by_the_merges_that_followed() {
    let given = ["sort_read_fac=40", "parallel_degree=1"];
    let record = run("400000", &[given[0], given[1], SMALL_AREA]);
    assert_eq!(receipt(&record, "sort_read_fac", "planned ")["held"], "held");
    let record = run("90000", &[given[0], given[1], "sort_area_size=512K"]);
    assert_eq!(receipt(&record, "sort_read_fac", "no merge plan depended on it")["held"], "not_checked");
}

#[test]
fn the_cache_and_its_writers_leave_receipts() {
    let conventional =
        ["sort_direct_writes=false", SMALL_AREA, "db_cache_size=1M", "db_block_write_batch=16"];
    let record = run("100000", &conventional);
    assert_eq!(receipt(&record, "db_cache_size", "128 buffers of 8K")["held"], "held");
    assert_eq!(receipt(&record, "db_block_write_batch", "each on average")["held"], "held");
    assert_eq!(receipt(&record, "db_writer_processes", "1 session of DBWR")["held"], "held");
    let record = run(ROWS, &["db_cache_size=1M"]);
    assert_eq!(receipt(&record, "db_cache_size", "the cache was not used")["held"], "not_checked");
}

#[test]
fn a_serial_scan_reads_as_asked() {
    for asked in ["true", "false"] {
        let setting = format!("serial_direct_read={asked}");
        let record = run(ROWS, &[&setting, "parallel_degree=1"]);
        assert_eq!(receipt(&record, "serial_direct_read", "the scan read ")["held"], "held", "{asked}");
        let record = run(ROWS, &[&setting, "parallel_degree=2"]);
        let receipt =
            receipt(&record, "serial_direct_read", "no effect: parallel scans always read directly");
        assert_eq!(receipt["held"], "not_checked");
    }
}

#[test]
fn runs_go_directly_or_through_the_cache_as_asked() {
    let direct = run(ROWS, &["sort_direct_writes=true", SMALL_AREA]);
    assert!(statistic(&direct, "physical writes direct temporary tablespace") > 0);
    assert!(held(&direct, "sort_direct_writes"));
    let conventional = run("100000", &["sort_direct_writes=false", SMALL_AREA, "db_cache_size=1M"]);
    assert_eq!(statistic(&conventional, "physical writes direct temporary tablespace"), 0);
    assert!(statistic(&conventional, "physical writes from cache") > 0);
    assert!(held(&conventional, "sort_direct_writes"));
}

#[test]
fn a_sort_that_fits_says_that_the_spill_settings_had_no_effect() {
    let record = run("1000", &["sort_area_size=16M", "sort_direct_writes=true"]);
    assert_eq!(statistic(&record, "sort runs"), 0);
    let receipt = receipts(&record, "sort_direct_writes")[0];
    assert_eq!(receipt["held"], "not_checked");
    assert_eq!(receipt["evidence"], "the sort fitted in memory: this setting had no effect");
}

#[test]
fn block_extent_and_file_settings_are_those_of_the_files() {
    for block in ["2K", "16K", "32K"] {
        let block_size = format!("db_block_size={block}");
        let record = run(ROWS, &[&block_size, "data_files=3", "extent_size=512K", "sort_area_size=256K"]);
        for setting in ["db_block_size", "data_files", "extent_size"] {
            assert!(held(&record, setting), "{block}: {:?}", receipts(&record, setting));
        }
    }
}

/// Users of three sessions for a fifth of a second before the build, and after it.
const USERS: [&str; 12] = [
    "--with",
    "slob",
    "--scale",
    "512",
    "--sessions",
    "3",
    "--work-unit",
    "8",
    "--alone",
    "0.2",
    "--hot-pct",
    "40",
];

#[test]
fn users_read_before_during_and_after_a_build_that_goes_through_their_cache() {
    let settings = [SMALL_AREA, "db_cache_size=4M", "sort_direct_writes=false", "parallel_degree=1"];
    let record = run_with(ROWS, &USERS, &settings);
    let parts = record["users"]["parts"].as_array().expect("a list");
    let names: Vec<&str> = parts.iter().filter_map(|part| part["name"].as_str()).collect();
    assert_eq!(names, ["before", "during", "after"]);
    for part in parts {
        assert!(part["gets"].as_u64() > Some(0), "{part}");
    }
    assert_eq!(parts[0]["reads"], 0, "all their blocks are in the cache");
    assert!(!held_text(&record, "sort_direct_writes").contains(" 0 B of runs through the cache"));
    let checks = record["checks"].as_array().expect("a list");
    let of =
        |name: &str| checks.iter().any(|check| check["name"].as_str().is_some_and(|it| it.starts_with(name)));
    assert!(of("users: all rows are there") && of("entries = rows"), "{checks:?}");
    let measures = record["measures"].as_array().expect("a list");
    assert!(measures.iter().any(|row| row["name"] == "users p50 during"), "{measures:?}");
    let direct = [SMALL_AREA, "db_cache_size=4M", "sort_direct_writes=true", "sort_write_buffer_size=32K"];
    let record = run_with(ROWS, &USERS, &direct);
    assert!(held_text(&record, "sort_direct_writes").contains(": 0 B of runs through the cache"));
}

/// Returns the evidence of a setting's first receipt.
fn held_text<'a>(record: &'a Value, setting: &str) -> &'a str {
    receipts(record, setting)[0]["evidence"].as_str().expect("a text")
}

#[test]
fn sorters_at_once_share_their_memory_and_are_verified_each() {
    let settings = ["parallel_degree=2"];
    let record = run_with("100000", &["--sorters", "3", "--sort-memory", "600K"], &settings);
    let sorters = record["sort"]["sorters"].as_array().expect("a list");
    assert_eq!(sorters.len(), 3);
    for (sorter, index) in
        sorters.iter().zip(["SALES_STORE_PROD", "SALES_2_STORE_PROD", "SALES_3_STORE_PROD"])
    {
        assert_eq!((&sorter["index"], &sorter["rows"]), (&Value::from(index), &Value::from(100_000)));
        assert_eq!(sorter["area_bytes"], 2 * 96 * 1024, "each server gets a sixth, in whole blocks");
        assert!(sorter["runs"].as_u64() > Some(0), "{sorter}");
    }
    assert_eq!(statistic(&record, "index entries"), 300_000);
    assert!(held(&record, "sort-memory") && held(&record, "parallel_degree"));
    let checks = record["checks"].as_array().expect("a list");
    let of = |table: &str| {
        let names = checks.iter().filter_map(|check| check["name"].as_str());
        names.filter(|name| name.starts_with(table)).count()
    };
    assert_eq!(of("SALES_3: "), of("SALES: "));
    let sessions = record["sessions"].as_array().expect("a list");
    let mut servers: Vec<&Value> =
        sessions.iter().filter(|it| it["role"] == "PX sort server").map(|it| &it["name"]).collect();
    servers.sort_by_key(|name| name.to_string());
    servers.dedup();
    assert_eq!(servers.len(), 6, "each server has a name of its own");
}

#[test]
fn a_single_row_is_a_table_too() {
    let record = run("1", &[]);
    assert_eq!(statistic(&record, "index entries"), 1);
}

#[test]
fn tablespaces_go_where_they_are_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for name in ["data", "data2", "temp", "index"] {
        std::fs::create_dir(directory.path().join(name)).expect("a directory");
    }
    let paths = ["--data-path", "data,data2", "--temp-path", "temp", "--index-path", "index", "--keep"];
    let arguments = ["run", "large-sort", "--rows", "5000", "--json"].into_iter().chain(paths);
    fine(directory.path(), arguments);
    let home = names(directory.path()).into_iter().find(|name| name.starts_with("plumb-run-")).expect("kept");
    for (place, file) in
        [("data", "users01.dbf"), ("data2", "users02.dbf"), ("temp", "temp01.dbf"), ("index", "indx02.dbf")]
    {
        assert!(directory.path().join(place).join(&home).join(file).exists(), "{place}/{file}");
    }
    let checked = fine(directory.path(), ["check", "sales", "--path", &home]);
    assert!(checked.starts_with("table SALES\n"), "{checked}");
}

#[test]
fn a_bundle_holds_record_and_reports_and_renders_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let printed = fine(directory.path(), ["run", "large-sort", "--rows", ROWS, "--bundle", "kept"]);
    assert!(printed.starts_with("PLUMB REPORT  Workload: large-sort\n"));
    assert!(printed.contains("large-sort on "));
    let bundle = directory.path().join("kept");
    assert_eq!(names(&bundle), ["beside.csv", "record.json", "report.html", "report.txt"]);
    let text = std::fs::read_to_string(bundle.join("report.txt")).expect("a report");
    assert!(printed.starts_with(&text));
    std::fs::remove_file(bundle.join("report.txt")).expect("a report");
    fine(directory.path(), ["report", "kept"]);
    assert_eq!(std::fs::read_to_string(bundle.join("report.txt")).expect("a report"), text);
}

#[test]
fn a_contradicted_receipt_makes_a_run_invalid() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let record = fine(directory.path(), ["run", "large-sort", "--rows", "1000", "--json"]);
    let contradicted = record.replacen("\"held\": \"held\"", "\"held\": \"contradicted\"", 1);
    assert_ne!(record, contradicted);
    std::fs::write(directory.path().join("record.json"), contradicted).expect("a file");
    let ended = plumb(directory.path(), ["report", "record.json"]);
    assert_eq!(ended.code, Some(5));
    assert!(ended.stdout.contains(": INVALID"), "{}", ended.stdout);
    assert!(ended.stdout.contains("receipt contradicts "), "{}", ended.stdout);
}
