//! Tools that print lines: what the device did, what a benchmark measured, what a statement did.

use crate::{figure, fixture, imports, only, sheet, with};
use plumb_foreign::Import;
use plumb_record::Consistent::{Fails, Habit, Holds, Impossible};

/// Kinds of checks that held, each once.
fn held(import: &Import) -> Vec<&str> {
    let mut names: Vec<&str> = with(&import.report.checks, Holds).into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Every line of the fixture is read, and its arithmetic holds.
fn sound(text: &str, kind: &str) -> Import {
    let import = only(text);
    assert_eq!(import.report.kind, kind);
    assert!(import.report.unread.is_empty(), "{:?}", import.report.unread);
    for outcome in [Fails, Impossible] {
        assert!(with(&import.report.checks, outcome).is_empty(), "{:?}", import.report.checks);
    }
    import
}

fn near(import: &Import, name: &str, expected: f64) {
    let found = figure(import, name);
    assert!((found.value - expected).abs() <= 1e-9 * expected.abs(), "{name}: {}", found.value);
    assert!(found.low <= found.value && found.value <= found.high, "{found:?}");
}

/// One figure is changed, and its check fails.
fn contradicted(text: &str, changes: &[(&str, &str, &str)]) {
    for (from, to, check) in changes {
        assert!(text.contains(from), "{from}");
        let all = imports(&text.replacen(from, to, 1));
        let mut bad = all.iter().flat_map(|import| {
            [Fails, Impossible, Habit].into_iter().flat_map(|outcome| with(&import.report.checks, outcome))
        });
        assert!(bad.any(|(name, _)| name == *check), "{from} -> {to}: {check}");
    }
}

#[test]
fn iostat_of_both_generations_and_its_json_are_read() {
    let new = sound(fixture!("iostat12.txt"), "iostat");
    let json = sound(fixture!("iostat.json"), "iostat JSON");
    for import in [&new, &json] {
        // The first sample is since the start of the machine.
        near(import, "sda: reads", 500.0);
        near(import, "sda: bytes read", 4000.0 * 1024.0);
        near(import, "sda: time of a read", 0.002);
        near(import, "sda: busy", 80.0);
        let record = import.record.as_ref().expect("stamps say the interval");
        assert_eq!(record.header.elapsed_ns, 10_000_000_000);
        assert_eq!((record.header.host.name.as_str(), record.header.host.cpus), ("dbhost1", Some(8)));
        assert!(record.measures.iter().any(|measure| measure.name == "sda: writes"));
        assert_eq!(held(import), held(&json));
    }
    assert_eq!(sheet(&new.report, "devices").rows.len(), 2);
    let old = sound(fixture!("iostat10.txt"), "iostat");
    near(&old, "sda: time of a request", 0.002_33);
    assert!(old.record.is_none(), "one sample without a stamp has no interval");
    assert!(held(&old).contains(&"await is between r_await and w_await"), "{:?}", held(&old));
    contradicted(
        fixture!("iostat12.txt"),
        &[
            ("500.00   4000.00", "500.00   4400.00", "bytes / reads = size of a read"),
            ("1.41  80.00", "1.51  80.00", "requests x time = queue"),
            ("1.41  80.00", "1.41 180.00", "%util <= 100%"),
            ("2.00     8.00", "0.00 1024000.00", "a request is possible"),
        ],
    );
    contradicted(
        fixture!("iostat10.txt"),
        &[("2.33    2.00", "2.43    2.00", "await is between r_await and w_await")],
    );
}

#[test]
fn sar_and_collectl_are_read_with_their_intervals() {
    let sar = sound(fixture!("sar.txt"), "sar -d");
    near(&sar, "sda: requests", 450.0);
    let elapsed = |import: &Import| import.record.as_ref().expect("an interval").header.elapsed_ns;
    assert_eq!(elapsed(&sar), 1_200_000_000_000, "the head has the begin");
    let collectl = only(fixture!("collectl.txt"));
    near(&collectl, "sdb: reads", 43_000.0 / 3.0);
    assert_eq!(elapsed(&collectl), 15_000_000_000);
    assert!(held(&collectl).contains(&"bytes / requests = size of a request"));
    assert!(with(&collectl.report.checks, Fails).is_empty(), "{:?}", collectl.report.checks);
    contradicted(
        fixture!("collectl.txt"),
        &[("160000      0  20K", "190000      0  20K", "bytes / reads = size of a read")],
    );
}

#[test]
fn requests_of_a_device_show_their_pattern() {
    let bio = sound(fixture!("biosnoop.txt"), "requests of a device");
    near(&bio, "log writer:1 W: requests", 3.0);
    near(&bio, "log writer:1 W: next to the one before", 1.0);
    near(&bio, "log writer:1 W: at the place of the one before", 1.0);
    near(&bio, "reader R: time of a request", 0.001);
    assert_eq!(bio.record.as_ref().expect("an interval").header.elapsed_ns, 2_000_000_000);
    let lines = sound(fixture!("iosnoop.txt"), "requests of a device");
    let one = only(fixture!("iosnoop_line.txt"));
    assert_eq!(one.report.kind, "iosnoop on one line");
    for import in [&lines, &one] {
        near(import, "ora_lgwr_X\\0 W: requests", 3.0);
        near(import, "ora_lgwr_X\\0 W: time of a request", 0.004);
        near(import, "ora_lgwr_X\\0 W: next to the one before", 2.0);
        assert_eq!(import.record.as_ref().expect("stamps").header.elapsed_ns, 2_000_000_000);
    }
    contradicted(
        fixture!("biosnoop.txt"),
        &[
            ("1142408    512 ", "1142408    500 ", "whole sectors"),
            ("0.00    1.00", "0.00    0.00", "a request is possible"),
        ],
    );
}

#[test]
fn flows_and_times_of_commands_are_read_from_one_line() {
    let all = imports(fixture!("dtrace.txt"));
    let kinds: Vec<&str> = all.iter().map(|import| import.report.kind.as_str()).collect();
    assert_eq!(kinds, ["time of a command", "flow of calls", "iosnoop on one line", "aggregation of DTrace"]);
    near(&all[0], "elapsed", 144.5);
    near(&all[0], "CPU of elapsed", 100.0 * 12.7 / 144.5);
    assert_eq!(all[0].record.as_ref().expect("an interval").header.elapsed_ns, 144_500_000_000);
    near(&all[1], "ufs_write: time", 0.004);
    near(&all[1], "directio_wait: own share of ufs_write", 72.5);
    let calls = sheet(&all[1].report, "flow");
    let depths: Vec<&str> = calls.rows.iter().map(|row| calls.text(row, "depth")).collect();
    assert_eq!(depths, ["0", "1", "1", "2"]);
    assert_eq!(held(&all[1]), ["calls within a function <= the function"]);
    // A head without times: requests have a size and a place alone.
    near(&all[2], "ora_lgwr_X\\0 W: requests", 2.0);
    near(&all[2], "ora_lgwr_X\\0 W: next to the one before", 1.0);
    let own = sheet(&all[3].report, "aggregates");
    assert_eq!(own.figure(&own.rows[0], "value").expect("a value").value, 3_932_139.0);
    let changed = fixture!("dtrace.txt").replace("directio_wait 2900", "directio_wait 3900");
    let failed = imports(&changed).remove(1).report.checks;
    assert_eq!(with(&failed, Fails), [("calls within a function <= the function", "ufs_directio_write")]);
}

#[test]
fn pgbench_is_read_in_its_old_and_its_new_form() {
    let new = sound(fixture!("pgbench15.txt"), "pgbench");
    let run = sheet(&new.report, "pgbench");
    let value = |key: &str| run.figure(&run.rows[0], key).expect("a value").value;
    assert_eq!((value("rate"), value("clients")), (1002.506266, 2.0));
    assert!((value("latency") - 0.001_995).abs() < 1e-12);
    assert_eq!(sheet(&new.report, "pgbench_statements").rows.len(), 3);
    assert_eq!(sheet(&new.report, "pgbench_progress").rows.len(), 2);
    let record = new.record.as_ref().expect("transactions over their rate");
    assert!((record.header.elapsed_ns as f64 / 1e9 - 1.995).abs() < 1e-6);
    assert_eq!(held(&new).len(), 3);
    let old = sound(fixture!("pgbench10.txt"), "pgbench");
    let run = sheet(&old.report, "pgbench");
    let text = |key: &str| run.text(&run.rows[0], key).to_string();
    assert_eq!(
        ["rate", "rate_with_connecting", "transactions"].map(text),
        ["10000.000000", "9950.000000", "4000"]
    );
    contradicted(
        fixture!("pgbench15.txt"),
        &[
            ("average = 1.995", "average = 2.995", "tps x latency <= clients"),
            ("processed: 2000", "processed: 1900", "transactions / tps >= duration"),
            ("1.480  ", "1.580  ", "statements <= transaction"),
        ],
    );
    let both = format!("{}\n{}", fixture!("pgbench10.txt"), fixture!("pgbench10.txt"));
    let sheets: usize = imports(&both).iter().map(|import| import.report.sheets.len()).sum();
    assert_eq!(sheets, 2);
}

#[test]
fn calibrations_are_read() {
    let orion = sound(fixture!("orion.txt"), "ORION");
    let run = sheet(&orion.report, "orion");
    let value = |key: &str| run.figure(&run.rows[0], key).expect("a value").value;
    assert_eq!(
        (value("throughput"), value("throughput_large"), value("rate"), value("rate_small")),
        (1500.25 * 1_048_576.0, 64.0, 20_000.0, 40.0)
    );
    assert!((value("latency") - 0.001_000_5).abs() < 1e-12);
    let own = sound(fixture!("calibrate.txt"), "I/O calibration");
    let files = sheet(&own.report, "iostat_file");
    let asynchronous: Vec<&str> = files.rows.iter().map(|row| files.text(row, "asynchronous")).collect();
    assert_eq!(asynchronous, ["ASYNCH_ON", "ASYNCH_OFF"]);
    let run = sheet(&own.report, "calibrated");
    assert_eq!(run.figure(&run.rows[0], "rate").expect("a rate").value, 20_000.0);
    contradicted(fixture!("calibrate.txt"), &[("900", "1900", "one process <= all")]);
    contradicted(fixture!("orion.txt"), &[("IOPS=20000", "IOPS=90000", "IOPS x latency <= outstanding")]);
    let matrix = "Large/Small,    1,    2,    3\n    0,  100.00,  190.50,\n    1,   90.00\n";
    assert_eq!(sheet(&only(matrix).report, "orion_matrix").rows.len(), 2);
}

#[test]
fn a_trace_becomes_events_of_a_record() {
    let trace = sound(fixture!("trace.txt"), "SQL trace");
    let record = trace.record.as_ref().expect("times");
    assert_eq!(record.header.elapsed_ns, 904_100_000);
    assert_eq!((record.header.db_time_ns, record.header.db_cpu_ns), (Some(3_555_000), Some(2_000_000)));
    let read = record.foreground_events.iter().find(|event| event.event == "db file sequential read");
    let read = read.expect("the event");
    assert_eq!((read.waits, read.time_ns, read.wait_class.as_str()), (1, 812_000, "User I/O"));
    let idle = record.foreground_events.iter().filter(|event| event.is_idle()).count();
    assert_eq!(idle, 1, "{:?}", record.foreground_events);
    contradicted(
        fixture!("trace.txt"),
        &[
            ("ela= 1200", "ela= 2200", "waits <= elapsed"),
            ("FETCH #140:c=1000", "FETCH #140:c=91000", "CPU <= elapsed"),
        ],
    );
}

#[test]
fn pg_profile_is_read_from_its_script_alone() {
    let page = sound(fixture!("pg_profile.html"), "pg_profile page");
    let record = page.record.as_ref().expect("an interval");
    assert_eq!((record.header.elapsed_ns, record.header.workload.as_str()), (100_000_000_000, "local"));
    assert_eq!(record.transactions(), Some(1500));
    let kinds = held(&page);
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    contradicted(
        fixture!("pg_profile.html"),
        &[
            ("\"xact_commit\": 1500", "\"xact_commit\": 1501", "sum of rows = Total"),
            ("\"blks_hit_pct\": 90.0", "\"blks_hit_pct\": 91.0", "hits / (hits + reads) = hit share"),
            ("\"wal_sync_per_sec\": 15.0", "\"wal_sync_per_sec\": 16.0", "total / interval = per second"),
            ("\"181 MB\"", "\"182 MB\"", "bytes = size as text"),
            ("\"tot_waited_pct\": 25.0", "\"tot_waited_pct\": 26.0", "time / Total = share"),
            ("\"4032 kB\"", "\"4132 kB\"", "reads x block = bytes"),
        ],
    );
}

#[test]
fn tools_one_behind_the_other_are_imports_of_their_own() {
    let all = [
        fixture!("iostat12.txt"),
        "\nThen the benchmark:\n",
        fixture!("pgbench15.txt"),
        "\nThe report:\n",
        fixture!("statspack.txt"),
    ]
    .concat();
    let imports = imports(&all);
    let kinds: Vec<&str> = imports.iter().map(|import| import.report.kind.as_str()).collect();
    assert_eq!(kinds, ["iostat", "pgbench", "Statspack report"]);
}
