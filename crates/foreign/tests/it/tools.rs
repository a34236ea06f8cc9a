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
    let names = sheet(&json.report, "devices").columns.iter().map(|column| column.name.as_str());
    assert_eq!(
        names.take(4).collect::<Vec<_>>(),
        ["time", "disk_device", "r/s", "w/s"],
        "as the document has them"
    );
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
        near(import, "ora_lgwr_X W: requests", 3.0);
        near(import, "ora_lgwr_X W: time of a request", 0.004);
        near(import, "ora_lgwr_X W: next to the one before", 2.0);
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
    near(&all[2], "ora_lgwr_X W: requests", 2.0);
    near(&all[2], "ora_lgwr_X W: next to the one before", 1.0);
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
    let answers: Vec<&str> = orion.imported.answers.iter().map(|answer| answer.value.as_str()).collect();
    assert_eq!((answers[0], answers.len()), ("1.465 GB/s", 4));
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

/// The one error of a text that no report is read from.
fn refused(text: &str) -> String {
    let source = plumb_foreign::Source::of(std::path::Path::new("x.txt"), text.as_bytes());
    let read = plumb_foreign::import(&source, plumb_foreign::READERS, "0");
    read.map(|all| all.len()).expect_err("no report").to_string()
}

/// A head of iostat -x, and rows of a device with reads, their bytes and the busy share.
fn samples(rows: &[&[(&str, f64, f64)]]) -> String {
    let mut text = "Linux 6.8.0 (vm7) \t06/11/25 \t_x86_64_\t(2 CPU)\n".to_string();
    for sample in rows {
        text += "\nDevice  r/s  rkB/s  r_await  w/s  wkB/s  w_await  aqu-sz  %util\n";
        for (device, reads, busy) in *sample {
            text += &format!(
                "{device}  {reads:.2}  {:.2}  0.20  0.00  0.00  0.00  0.00  {busy:.2}\n",
                reads * 8.0
            );
        }
    }
    text
}

/// `-z` leaves idle devices out of a sample, and `-y` the mean since the start of the machine.
#[test]
fn a_mean_of_iostat_is_of_all_samples_of_the_interval() {
    let idle = only(&samples(&[
        &[("vda", 3.17, 0.21)],
        &[("vda", 20.0, 0.4)],
        &[("vda", 20.0, 0.4), ("vdb", 900.0, 60.0)],
        &[("vda", 20.0, 0.4)],
    ]));
    near(&idle, "vdb: reads", 300.0);
    near(&idle, "vdb: busy", 20.0);
    near(&idle, "vdb: requests in the busiest sample", 900.0);
    near(&idle, "vda: reads", 20.0);
    let said = |import: &Import| {
        import.report.facts.iter().find(|fact| fact.name == "Samples").expect("a fact").text.clone()
    };
    assert!(said(&idle).starts_with("3 of 4; the first is left out"), "{}", said(&idle));
    // Whole requests and milliseconds in the first sample, as in those of a second.
    let whole = only(&samples(&[&[("vda", 900.0, 60.0)], &[("vda", 100.0, 6.0)]]));
    near(&whole, "vda: reads", 500.0);
    assert_eq!(said(&whole), "2");
    let named = format!("$ iostat -xy 1 2\n{}", samples(&[&[("vda", 3.17, 0.21)], &[("vda", 1.0, 0.1)]]));
    near(&only(&named), "vda: reads", 2.085);
    // A sample without any device.
    let none = only(&samples(&[&[("vda", 3.17, 0.21)], &[], &[("vda", 50.0, 5.0)], &[]]));
    near(&none, "vda: reads", 50.0 / 3.0);
}

#[test]
fn samples_of_sar_weigh_by_their_seconds_over_a_restart() {
    let text = "\
Linux 6.8.0 (vm7) \t06/11/2025 \t_x86_64_\t(2 CPU)

08:00:00          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     %util
08:05:00          vda     40.00    160.00    160.00      8.00      0.20      5.00      4.00
08:10:00          vda     60.00    240.00    240.00      8.00      0.30      5.00      6.00
Average:          vda     50.00    200.00    200.00      8.00      0.25      5.00      5.00

08:40:00     LINUX RESTART\t(2 CPU)

08:41:00          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     %util
08:42:00          vda    600.00   2400.00   2400.00      8.00      3.00      5.00     60.00
Average:          vda    600.00   2400.00   2400.00      8.00      3.00      5.00     60.00
";
    let sar = sound(text, "sar -d");
    near(&sar, "vda: requests", (300.0 * 40.0 + 300.0 * 60.0 + 60.0 * 600.0) / 660.0);
    near(&sar, "vda: time of a request", 0.005);
    assert_eq!(sar.record.as_ref().expect("stamps").header.elapsed_ns, 660_000_000_000);
    assert!(held(&sar).contains(&"mean of the samples = Average"));
    contradicted(
        text,
        &[(
            "Average:          vda     50.00",
            "Average:          vda     58.00",
            "mean of the samples = Average",
        )],
    );
    let csv = "\
# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;areq-sz;aqu-sz;await;%util
vm7;300;2025-06-11 08:05:00 UTC;vda;40.00;160.00;160.00;8.00;0.20;5.00;4.00
vm7;300;2025-06-11 08:05:00 UTC;vdb;1.00;4.00;4.00;8.00;0.00;1.00;0.10
vm7;-1;2025-06-11 08:06:00 UTC;LINUX-RESTART\t(2 CPU)
vm7;60;2025-06-11 08:10:00 UTC;vda;100.00;400.00;400.00;8.00;0.50;5.00;10.00
";
    let csv = sound(csv, "sadf -d");
    near(&csv, "vda: requests", 50.0);
    near(&csv, "vdb: requests", 300.0 / 360.0);
    assert_eq!(csv.record.as_ref().expect("intervals").header.elapsed_ns, 360_000_000_000);
}

#[test]
fn json_of_sadf_has_devices_and_json_without_disks_is_refused() {
    let disk = |name: &str, tps: u32| {
        format!(
            r#"{{"disk-device": "{name}", "tps": {tps}.00, "rkB": {}.00, "wkB": 0.00, "areq-sz": 4.00, "aqu-sz": 0.01, "await": 0.50, "util": 1.00}}"#,
            tps * 4
        )
    };
    let sample = |seconds: u32, rows: &str| {
        format!(
            r#"{{"timestamp": {{"date": "2025-06-11", "time": "08:05:00", "interval": {seconds}}}, "disk": [{rows}]}}"#
        )
    };
    let text = |samples: &str| {
        format!(
            "{{\"sysstat\": {{\n\"hosts\": [{{\"nodename\": \"vm7\", \"statistics\": [{samples}]}}]}}}}\n"
        )
    };
    let two = [sample(30, &[disk("vda", 10), disk("vdb", 800)].join(",")), sample(10, &disk("vda", 50))];
    let import = sound(&text(&two.join(",")), "sadf JSON");
    near(&import, "vda: requests", 20.0);
    near(&import, "vdb: requests", 600.0);
    near(&import, "vdb: bytes read", 600.0 * 4096.0);
    let cpu = r#"{"timestamp": {"date": "2025-06-11"}, "cpu-load": [{"cpu": "all", "usr": 1.00}]}"#;
    let said = refused(&text(cpu));
    assert!(said.contains("(iostat JSON) without a table"), "{said}");
}

#[test]
fn iostat_is_read_without_x_with_h_with_s_and_with_decimal_commas() {
    let plain = "\
Linux 6.8.0 (vm7) \t06/11/25 \t_x86_64_\t(2 CPU)

Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn
vda              11.31       220.40        80.05   22040000    8005000

Device             tps    kB_read/s    kB_wrtn/s    kB_read    kB_wrtn
vda             250.00      2000.00       400.00      10000       2000
";
    let plain = sound(plain, "iostat");
    near(&plain, "vda: requests", 250.0);
    near(&plain, "vda: bytes read", 2000.0 * 1024.0);
    assert_eq!(plain.record.as_ref().expect("totals over rates").header.elapsed_ns, 5_000_000_000);
    let people = "\
Linux 6.8.0 (vm7) \t06/11/25 \t_x86_64_\t(2 CPU)

     r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device
  512.00      4.0M     0.00   0.0%    0.40     8.0k vda

     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device
   64.00      1.0M     0.00   0.0%    0.50    16.0k vda

     f/s f_await  aqu-sz  %util Device
    0.00    0.00    0.24  21.5% vda
";
    let people = sound(people, "iostat");
    near(&people, "vda: reads", 512.0);
    near(&people, "vda: bytes written", 1_048_576.0);
    near(&people, "vda: busy", 21.5);
    let short = "Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util\nvda             100.00    800.00     0.00    0.50     8.00    0.05   4.00\n";
    near(&sound(short, "iostat"), "vda: bytes moved", 800.0 * 1024.0);
    let comma = "Device            r/s     w/s     rkB/s     wkB/s r_await w_await aqu-sz rareq-sz wareq-sz  %util\nvda           1250,00   12,50  10000,00    100,00    0,20    2,00   0,28     8,00     8,00  26,04\n";
    let comma = sound(comma, "iostat");
    near(&comma, "vda: reads", 1250.0);
    near(&comma, "vda: busy", 26.04);
    // A name that is wider than its column.
    let wide = "Device:            r/s     w/s     rkB/s     wkB/s r_await w_await %util\nmapper-vg_data-lv_redo\n                  5,00    2,00     40,00     16,00    0,10    0,10  0,07\n";
    near(&sound(wide, "iostat"), "mapper-vg_data-lv_redo: reads", 5.0);
}

#[test]
fn requests_of_perf_tools_and_of_bpftrace_are_read() {
    let perf = "\
Tracing block I/O. Ctrl-C to end.
COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
log writer   91     WS   253,0    880000       4096       0.50
log writer   91     WS   253,0    880008       4096       0.70
reader       92     R    253,0    12000        8192       2.00
";
    let perf = sound(perf, "requests of a device");
    near(&perf, "log writer WS: requests", 2.0);
    near(&perf, "log writer WS: time of a request", 0.0006);
    near(&perf, "log writer WS: next to the one before", 1.0);
    let trace = "Attaching 4 probes...\nTIME(ms)     DISK    COMM             PID    LAT(ms)\n10           vda     reader           92           3\n60           vda     reader           92           5\n";
    let trace = sound(trace, "requests of a device");
    near(&trace, "reader: time of a request", 0.004);
    assert_eq!(trace.record.as_ref().expect("stamps").header.elapsed_ns, 50_000_000);
}

const SYSBENCH: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0)

Running the test with following options:
Number of threads: 8
Initializing random number generator from current time


Threads started!

SQL statistics:
    queries performed:
        read:                            70014
        write:                           20004
        other:                           10002
        total:                           100020
    transactions:                        5001   (500.06 per sec.)
    queries:                             100020 (10001.17 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0008s
    total number of events:              5001

Latency (ms):
         min:                                    3.10
         avg:                                   15.99
         max:                                   91.20
         95th percentile:                       24.83
         sum:                                79966.01

Threads fairness:
    events (avg/stddev):           625.1250/3.10
    execution time (avg/stddev):   9.9958/0.00
";

#[test]
fn sysbench_answers_with_its_rate_and_its_arithmetic_holds() {
    let import = sound(SYSBENCH, "sysbench");
    let answer = &import.imported.answers[0];
    assert_eq!((answer.name.as_str(), answer.value.as_str()), ("tps", "500.06"));
    assert!(answer.aside.contains("mean 15.99 ms") && answer.aside.contains("p95 24.83 ms"), "{answer:?}");
    assert_eq!(held(&import).len(), 3, "{:?}", held(&import));
    contradicted(
        SYSBENCH,
        &[
            ("(500.06 per sec.)", "(600.06 per sec.)", "total / time = per second"),
            ("15.99", "17.99", "sum / events = average"),
            ("(500.06 per sec.)", "(590.06 per sec.)", "tps x latency <= clients"),
        ],
    );
    let failed = only(
        &SYSBENCH.replace("ignored errors:                      0", "ignored errors:                      7"),
    );
    assert_eq!(failed.imported.failed, ["7 errors were ignored"]);
}

#[test]
fn a_run_of_pgbench_that_failed_says_so_first() {
    let text = fixture!("pgbench15.txt")
        .replace("failed transactions: 0 (0.000%)", "failed transactions: 90 (4.306%)");
    let failed = only(&text);
    assert_eq!(failed.imported.failed, ["90 transactions failed"]);
    let page = failed.page(Vec::new());
    assert!(page.state.word.starts_with("OF A RUN THAT FAILED, "), "{}", page.state.word);
    assert_eq!(page.reasons[0], "90 transactions failed");
    assert_eq!(page.headline[0].name, "tps");
    assert!(only(fixture!("pgbench15.txt")).imported.failed.is_empty());
}

#[test]
fn findings_say_what_the_device_did_against_what_it_was_asked() {
    let rules = |text: &str| -> Vec<String> {
        let import = only(text);
        import.judged().expect("a record").findings.iter().map(|finding| finding.rule.clone()).collect()
    };
    let busy = "Device  r/s  w/s  rkB/s  wkB/s  r_await  w_await  aqu-sz  %util\nvda  900.00  0.00  7200.00  0.00  9.00  0.00  8.10  99.00\n";
    assert_eq!(rules(busy), ["I1"]);
    assert_eq!(rules(&busy.replace("9.00  0.00  8.10  99.00", "19.00  0.00  1.10  50.00")), ["I2"]);
    assert_eq!(rules(&busy.replace("9.00  0.00  8.10  99.00", "0.10  0.00  0.09  5.00")), ["I5"]);
    assert!(rules(&busy.replace("9.00  0.00  8.10  99.00", "0.30  0.00  0.27  25.00")).is_empty());
}

#[test]
fn two_files_of_fio_compare_although_their_jobs_have_other_names() {
    let json = |name: &str, rate: u32| {
        format!(
            "{{\n\"fio version\": \"fio-3.33\",\n\"jobs\": [{{\"jobname\": \"{name}\", \"error\": 0, \"read\": {{\"io_bytes\": 40960000, \
             \"bw\": {}, \"iops\": {rate}.0, \"runtime\": 1000, \"total_ios\": {rate}, \"clat_ns\": {{\"min\": 1, \"max\": 900000, \
             \"mean\": 50000.0, \"percentile\": {{\"99.000000\": 70000}}}}}}}}]}}\n",
            rate * 4
        )
    };
    for (name, rate) in [("old", 10_000), ("new", 20_000)] {
        let record = only(&json(name, rate)).record.expect("a runtime");
        let of = |what: &str| record.measures.iter().find(|own| own.name == what).map(|own| own.value);
        assert_eq!(of("all read requests"), Some(f64::from(rate)));
        assert!(of("all read mean latency").is_some_and(|mean| (mean - 50e-6).abs() < 1e-9));
    }
}
