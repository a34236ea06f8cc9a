//! Each rule against a period that meets its threshold.

use plumb_findings::{
    Absorbed, Advisory, DeviceSignals, Grown, JobSignals, Origin, Reached, RunFacts, Signals, SortFacts,
    TablespaceIo, UsersFacts, findings, rules,
};
use plumb_record::{
    Finding, IoTally, Snoop, SnoopAmplification, SnoopBuffer, SnoopCalls, SnoopPart, SnoopPattern,
    SnoopRequests, WaitEvent,
};
use plumb_units::ValueRange;

fn wait(event: &str, class: &str, waits: u64, ms: u64) -> WaitEvent {
    WaitEvent {
        event: event.to_string(),
        wait_class: class.to_string(),
        waits,
        time_ns: ms * 1_000_000,
        max_ns: None,
        histogram: Vec::new(),
        latency: None,
    }
}

/// A period of ten seconds in which sessions used processors and waited little.
fn healthy() -> Signals {
    Signals {
        elapsed_ns: 10_000_000_000,
        db_time_ns: Some(10_000_000_000),
        db_cpu_ns: Some(6_500_000_000),
        waits: vec![
            wait("db file sequential read", "User I/O", 14_000, 2_000),
            wait("direct path read", "User I/O", 1_000, 900),
            wait("log file sync", "Commit", 900, 600),
        ],
        ..Signals::default()
    }
}

#[test]
fn a_healthy_period_has_no_finding() {
    assert_eq!(findings(&healthy()), []);
}

#[test]
fn every_rule_says_what_it_judges() {
    let mut ids: Vec<&str> = rules().map(|rule| rule.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "names are unique");
    for rule in rules() {
        let texts = [rule.signal, rule.threshold, rule.origin];
        assert!(texts.iter().all(|text| !text.is_empty()), "{}", rule.id);
    }
    let published = (1..=30).map(|number| format!("R{number}"));
    for id in published.chain((1..=3).map(|number| format!("G{number}"))) {
        assert!(rules().any(|rule| rule.id == id), "{id} is missing");
    }
}

/// A device that answers what it is asked.
fn device() -> DeviceSignals {
    DeviceSignals {
        name: "sda".to_string(),
        requests_per_s: 900.0,
        read_s: Some(0.0004),
        queue: Some(0.4),
        busy: Some(0.3),
        ..DeviceSignals::default()
    }
}

/// A job of a load test without a fault.
fn job() -> JobSignals {
    JobSignals {
        name: "rr read".to_string(),
        requests_per_s: 8000.0,
        mean_s: Some(0.002),
        p99_s: Some(0.004),
        submission_s: Some(0.000_01),
        depth: Some(16.0),
        in_flight: Some(16.0),
        cpu: Some(0.2),
        direct: Some(true),
        runtime_s: 60.0,
        errors: 0,
        error: String::new(),
    }
}

/// Changes a healthy period so that one rule fires.
type Change = fn(&mut Signals);

const MS: u64 = 1_000_000;

fn set(signals: &mut Signals, event: &str, class: &str, waits: u64, ms: u64) {
    signals.waits.retain(|wait| wait.event != event);
    signals.waits.push(wait(event, class, waits, ms));
}

fn run(signals: &mut Signals) -> &mut RunFacts {
    signals.run.get_or_insert_default()
}

fn sort(signals: &mut Signals) -> &mut SortFacts {
    signals.uses.sort = true;
    run(signals).sort.get_or_insert_with(|| SortFacts {
        rows: 100,
        runs: 2,
        servers: 2,
        area: "4M".to_string(),
        merge_width: 2,
        merge_passes: 1,
        direct_writes: true,
        most_rows: 50,
        by_key: true,
        ..SortFacts::default()
    })
}

fn tally(requests: u64, each_bytes: u64, each_ns: u64) -> IoTally {
    IoTally { requests, bytes: requests * each_bytes, time_ns: Some(requests * each_ns) }
}

fn tablespace(name: &str, reads: IoTally) -> TablespaceIo {
    TablespaceIo { name: name.to_string(), block_bytes: Some(8192), reads, ..TablespaceIo::default() }
}

fn import(signals: &mut Signals) {
    signals.origin = Origin::Import;
}

/// Users of whose blocks the build displaces a part.
fn users(signals: &mut Signals) -> &mut UsersFacts {
    run(signals).users.get_or_insert(UsersFacts {
        operations_per_s: [8_000.0, 2_000.0],
        p99_ns: [200_000, 9_000_000],
        misses: [0.0, 0.07],
        evicted: 4_100,
        read_ns: 3_000 * MS,
        scans_through_cache: false,
    })
}

const CASES: &[(&str, Change)] = &[
    ("U1", |it| {
        sort(it).direct_writes = false;
        users(it);
    }),
    ("U2", |it| users(it).misses = [0.0, 0.001]),
    ("D1", |it| run(it).delay_ns = 1000),
    ("D2", |it| run(it).stopped_ns = Some(5)),
    ("G2", |it| {
        import(it);
        it.server.restarted = true;
    }),
    ("D3", |it| {
        run(it).grown = Some(Grown { bytes: 4096, waited_ns: 7, advice: "make it larger".to_string() })
    }),
    ("D4", |it| run(it).not_reserved_bytes = 4096),
    ("D5", |it| run(it).through_page_cache = Some("tmpfs has no direct I/O".to_string())),
    ("D6", |it| run(it).method_replaced = Some("1 of 4 channels got sync".to_string())),
    ("D7", |it| run(it).fewer_servers = Some("2 of 8: the limit of threads".to_string())),
    ("D8", |it| run(it).memory_scarce = Some("4.00 GB of 1.00 GB".to_string())),
    ("D9", |it| {
        let stream = "temp writes".to_string();
        let layer = "beneath the file system";
        run(it).absorbed = Some(Absorbed { stream, bytes_per_s: 2e9, limit_bytes_per_s: 1e9, layer });
    }),
    ("D10", |it| (run(it).sessions_ns, run(it).unaccounted_ns) = (1_000_000_000, 100_000_000)),
    ("D11", |it| it.tablespaces = vec![tablespace("TEMP_BIG", tally(1000, 630 * 1024, 10_000))]),
    ("D12", |it| {
        it.origin = Origin::Import;
        it.tablespaces = vec![tablespace("APPDATA", tally(4_105_000, 8192, 22_110_000_000))];
    }),
    ("T3", |it| {
        (it.origin, it.db_time_ns, it.db_cpu_ns) = (Origin::Import, None, None);
        it.waits.clear();
        it.tablespaces = vec![tablespace("CMOS_8K", tally(235_027, 507_986, 56_820_000))];
    }),
    ("G4", |it| {
        (it.origin, it.db_cpu_ns) = (Origin::Import, Some(100 * MS));
        it.waits.clear();
        set(it, "db file sequential read", "User I/O", 14_000, 2_000);
    }),
    ("B1", |it| {
        it.origin = Origin::Import;
        it.background = vec![wait("log file parallel write", "System I/O", 3_485, 47_400)];
        let mut second = healthy();
        set(&mut second, "db file sequential read", "User I/O", 14_000, 4_000);
        second.background = vec![wait("log file parallel write", "System I/O", 1_881, 3_200)];
        it.second = Some(Box::new(second));
    }),
    ("G1", |it| {
        it.waits.clear();
        set(it, "latch: shared pool", "Concurrency", 10, 3_500);
    }),
    ("G3", |it| it.host.busy = Some(0.97)),
    ("R24", |it| {
        it.waits.clear();
        it.db_cpu_ns = Some(9_000 * MS);
        it.db_time_ns = Some(10_000 * MS);
    }),
    ("R5", |it| {
        it.workload = Some("slob".to_string());
        (it.uses.cache, it.device_read_ns) = (true, Some(100_000));
        set(it, "db file sequential read", "User I/O", 40_000, 8_000);
    }),
    ("L1", |it| set(it, "latch free", "Concurrency", 50, 900)),
    ("L2", |it| set(it, "enq: TX - row lock contention", "Application", 50, 900)),
    ("R6", |it| {
        set(it, "log file sync", "Commit", 40, 1_300);
        it.background.push(wait("log file parallel write", "System I/O", 40, 1_200));
    }),
    ("R7", |it| {
        set(it, "log file sync", "Commit", 1_000, 1_200);
        it.background.push(wait("log file parallel write", "System I/O", 1_000, 200));
    }),
    ("R8", |it| {
        it.workload = Some("redo".to_string());
        (it.log.commits, it.log.calls) = (Some(1_000), Some(3_000));
        set(it, "log file sync", "Commit", 1_000, 1_600);
    }),
    ("R9", |it| (it.elapsed_ns, it.log.switches) = (3_600_000 * MS, Some(20))),
    ("R10", |it| set(it, "log file switch (checkpoint incomplete)", "Configuration", 20, 900)),
    ("R11", |it| set(it, "log file switch (archiving needed)", "Configuration", 20, 900)),
    ("R12", |it| set(it, "log buffer space", "Configuration", 20, 900)),
    ("L3", |it| {
        it.log.direct = Some(false);
        set(it, "log file sync", "Commit", 900, 1_600);
    }),
    ("R29", |it| it.background.push(wait("SYNC Remote Write", "Other", 900, 900))),
    ("R1", |it| {
        it.db_time_ns = Some(40_000 * MS);
        set(it, "db file sequential read", "User I/O", 2_000, 30_000);
    }),
    ("R2", |it| {
        set(it, "db file sequential read", "User I/O", 14_000, 2_500);
        let reads = it.waits.last_mut().expect("just set");
        reads.histogram = vec![0; 27];
        reads.histogram[7] = 9_000;
        reads.histogram[8] = 1_000;
        reads.histogram[12] = 4_000;
    }),
    ("R3", |it| {
        set(it, "db file scattered read", "User I/O", 200, 5_000);
        it.functions =
            vec![("Buffer Cache Reads".to_string(), [tally(200, 1 << 20, MS), IoTally::default()])];
    }),
    ("R4", |it| {
        import(it);
        set(it, "direct path read", "User I/O", 1_000, 3_000);
        it.functions = vec![("Direct Reads".to_string(), [tally(2_000, 1 << 20, MS), IoTally::default()])];
    }),
    ("R15", |it| set(it, "read by other session", "User I/O", 100, 900)),
    ("R17", |it| {
        sort(it);
        it.workload = Some("large-sort".to_string());
        set(it, "direct path write temp", "User I/O", 100, 4_000);
    }),
    ("R18", |it| it.tablespaces = vec![tablespace("USERS", tally(1_000, 8192, 30 * MS))]),
    ("T1", |it| {
        it.tablespaces = vec![
            tablespace("USERS", tally(10_000, 8192, 300_000)),
            tablespace("INDX", tally(10_000, 8192, 100_000)),
        ];
    }),
    ("T2", |it| it.tablespaces = vec![tablespace("TEMP", tally(1_773_780, 8192, 560_000))]),
    ("R19", |it| {
        import(it);
        it.functions = vec![("Direct Reads".to_string(), [tally(2_000, 1 << 20, MS), IoTally::default()])];
    }),
    ("R20", |it| it.reached = vec![reached(false)]),
    ("R21", |it| it.reached = vec![reached(true)]),
    ("R13", |it| set(it, "free buffer waits", "Configuration", 100, 900)),
    ("R14", |it| it.background.push(wait("db file async I/O submit", "System I/O", 100, 5_000))),
    ("R16", |it| set(it, "buffer busy waits", "Concurrency", 100, 900)),
    ("R22", |it| set(it, "enq: HW - contention", "Configuration", 100, 900)),
    ("R25", |it| it.cache.advisory = vec![Advisory { size_factor: 2.0, read_factor: 0.6 }]),
    ("S1", |it| (sort(it).mapped_bytes, sort(it).mapping_ns) = (1 << 26, 700 * MS)),
    ("S2", |it| {
        (sort(it).intermediate_merges, sort(it).merge_passes) = (3, 2);
        sort(it).one_pass_area = Some("16M".to_string());
        it.workload = Some("large-sort".to_string());
    }),
    ("S3", |it| sort(it).runs = 0),
    ("S4", |it| run(it).ring_workers = [0, 2]),
    ("S5", |it| sort(it).most_rows = 80),
    ("S6", |it| run(it).memory_bytes = Some([2 << 20, 1 << 20])),
    ("R23", |it| it.background.push(wait("control file parallel write", "System I/O", 100, 2_000))),
    ("R26", |it| it.server.top_sql_reads = Some([0.4, 0.7])),
    ("R27", |it| it.server.backup_bytes = Some(0.7)),
    ("R28", |it| set(it, "gc buffer busy acquire", "Cluster", 100, 900)),
    ("R30", |it| {
        import(it);
        it.settings.insert("filesystemio_options".to_string(), "NONE".to_string());
    }),
    ("P1", |it| trace(it).buffers[0].lost = 7),
    ("P2", |it| trace(it).buffers.clear()),
    ("P3", |it| trace(it).calls.push(call("fsync", "sync", [300, 0, 2_000]))),
    ("P4", |it| {
        let durable = SnoopCalls { durable: 1_500, ..call("write", "write", [1_500, 512 * 1_500, 7_000]) };
        trace(it).calls.push(durable);
    }),
    ("P5", |it| {
        trace(it).requests.push(at_disk("FWS", 4_000));
        trace(it).amplification.push(amplification(
            "write",
            750_000,
            &[("call", 6 << 20), ("journal", 6 << 20)],
        ));
    }),
    ("P6", |it| {
        trace(it).calls.push(call("read", "read", [200_000, 4096 * 200_000, 3_000]));
        trace(it).patterns.push(pattern("calls", "small sequential reads", [199_000, 200_000]));
    }),
    ("P7", |it| {
        trace(it).requests.push(at_disk("RA", 4_000));
        trace(it).amplification.push(amplification(
            "read",
            4 << 20,
            &[("call", 8 << 20), ("read-ahead", 8 << 20)],
        ));
    }),
    ("P8", |it| {
        trace(it).requests.push(at_disk("WS", 4_000));
        trace(it).patterns.push(pattern("disk", "one block written again", [70, 100]));
    }),
    ("I1", |it| it.devices = vec![DeviceSignals { queue: Some(8.1), busy: Some(0.99), ..device() }]),
    ("I2", |it| it.devices = vec![DeviceSignals { read_s: Some(0.019), ..device() }]),
    ("I3", |it| it.devices = vec![DeviceSignals { flushes: Some([120.0, 0.004]), ..device() }]),
    ("I4", |it| it.devices = vec![DeviceSignals { most_per_s: Some(6000.0), ..device() }]),
    ("I5", |it| it.devices = vec![DeviceSignals { busy: Some(0.014), ..device() }]),
    ("F1", |it| it.jobs = vec![JobSignals { errors: 1, error: "rr: error 5".to_string(), ..job() }]),
    ("F2", |it| it.jobs = vec![JobSignals { direct: Some(false), ..job() }]),
    ("F3", |it| it.jobs = vec![JobSignals { runtime_s: 2.0, ..job() }]),
    ("F4", |it| it.jobs = vec![JobSignals { depth: Some(64.0), ..job() }]),
    ("F5", |it| it.jobs = vec![JobSignals { p99_s: Some(0.020), ..job() }]),
    ("F6", |it| it.jobs = vec![JobSignals { submission_s: Some(0.001), ..job() }]),
    ("F7", |it| it.jobs = vec![JobSignals { cpu: Some(0.97), ..job() }]),
];

/// A trace without losses in which nothing took long.
fn trace(signals: &mut Signals) -> &mut Snoop {
    signals.trace.get_or_insert_with(|| Snoop {
        buffers: vec![SnoopBuffer { name: "calls".to_string(), bytes: 1, events: 9_000, lost: 0 }],
        calls: vec![call("read", "read", [50, 4096 * 50, 200])],
        ..Snoop::default()
    })
}

/// Calls with their number, bytes and milliseconds.
fn call(operation: &str, effect: &str, [calls, bytes, ms]: [u64; 3]) -> SnoopCalls {
    SnoopCalls {
        operation: operation.to_string(),
        effect: effect.to_string(),
        file: "/f".to_string(),
        calls,
        bytes,
        time_ns: ms * MS,
        disk_time_ns: ms * MS / 2,
        ..SnoopCalls::default()
    }
}

fn at_disk(flags: &str, ms: u64) -> SnoopRequests {
    let flags = flags.to_string();
    SnoopRequests { flags, requests: 100, bytes: 1 << 20, time_ns: ms * MS, ..SnoopRequests::default() }
}

fn amplification(direction: &str, call_bytes: u64, parts: &[(&str, u64)]) -> SnoopAmplification {
    let part = |(how, bytes): &(&str, u64)| SnoopPart { how: how.to_string(), bytes: *bytes };
    let parts: Vec<SnoopPart> = parts.iter().map(part).collect();
    let disk_bytes = parts.iter().map(|part| part.bytes).sum();
    SnoopAmplification { direction: direction.to_string(), call_bytes, disk_bytes, parts }
}

fn pattern(view: &str, name: &str, [requests, of]: [u64; 2]) -> SnoopPattern {
    SnoopPattern {
        view: view.to_string(),
        file: "/f".to_string(),
        name: name.to_string(),
        requests,
        of,
        arithmetic: "BLOCK 80 written 8 times in a row".to_string(),
    }
}

#[test]
fn a_trace_in_which_nothing_took_long_has_no_finding_and_no_db_time() {
    let mut signals = Signals { elapsed_ns: 10_000_000_000, ..Signals::default() };
    trace(&mut signals);
    assert_eq!((findings(&signals), signals.db_time()), (Vec::new(), 0));
}

fn reached(is_link: bool) -> Reached {
    let (what, limit) = ("table reads".to_string(), "sequential read".to_string());
    Reached { what, share: 0.9, limit, is_link }
}

/// Returns the finding of a rule in a period changed for it.
fn fired(id: &str, change: Change) -> Option<Finding> {
    let mut signals = healthy();
    change(&mut signals);
    findings(&signals).into_iter().find(|finding| finding.rule == id)
}

#[test]
fn each_rule_fires_on_its_own_signal() {
    for rule in rules() {
        assert!(CASES.iter().any(|(id, _)| *id == rule.id), "{} has no case", rule.id);
    }
    let mut shown = String::new();
    for (id, change) in CASES {
        let found = fired(id, *change).unwrap_or_else(|| panic!("{id} is silent"));
        shown += &format!("{id}: {}\n    {}\n    > {}\n", found.what, found.evidence, found.advice);
        if let Some(saves) = found.saves_ns {
            shown += &format!("    saves {} ms at most\n", saves / MS);
        }
        if !found.study.is_empty() {
            shown += &format!("    $ {}\n", found.study);
        }
    }
    insta::assert_snapshot!(shown);
}

/// Rules that say nothing of storage, or say that it is not the problem. Rules of traces have a
/// gate of their own.
const OF_ANY_LOAD: [&str; 36] = [
    "U1", "U2", "D1", "D2", "G2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12", "T3", "G4",
    "B1", "G1", "G3", "R24", "L1", "L2", "R16", "R20", "R21", "R22", "R27", "R28", "R29", "S1", "S2", "S3",
    "S4", "S5", "S6",
];

#[test]
fn rules_about_storage_are_silent_if_io_is_less_than_a_tenth() {
    let of_storage = |id: &str| !OF_ANY_LOAD.contains(&id) && !id.starts_with(['P', 'I', 'F']);
    for (id, change) in CASES.iter().filter(|(id, _)| of_storage(id)) {
        let mut signals = healthy();
        change(&mut signals);
        let io: u64 = signals.waits.iter().map(|wait| wait.time_ns).sum();
        (signals.db_time_ns, signals.db_cpu_ns) = (Some(io * 12), Some(io * 11));
        signals.elapsed_ns = signals.elapsed_ns.max(io);
        assert!(!findings(&signals).iter().any(|finding| finding.rule == *id), "{id} fires");
    }
}

#[test]
fn an_idle_system_of_a_report_has_no_finding() {
    // A report without DB time does not show that the system was idle.
    let is_timed = |id: &str| id.starts_with(['R', 'G', 'L', 'T']) && id != "T3";
    for (id, change) in CASES.iter().filter(|(id, _)| is_timed(id)) {
        let mut signals = healthy();
        change(&mut signals);
        import(&mut signals);
        signals.elapsed_ns = signals.db_time() * 100;
        assert_eq!(findings(&signals), [], "{id}");
    }
}

#[test]
fn a_read_time_that_prints_as_zero_has_a_least_rate_alone() {
    let mut signals = healthy();
    let printed = |bytes: f64, seconds: f64| {
        let range = |low, high| ValueRange { low, high };
        Some([range(bytes * 0.99, bytes * 1.01), range(0.0, seconds)])
    };
    let of = |printed_read| TablespaceIo { printed_read, ..tablespace("USERS", tally(1000, 8192, 0)) };
    let impossible = |signals: &Signals| {
        let found = findings(signals).into_iter().find(|finding| finding.rule == "D11");
        found.map(|finding| finding.evidence)
    };
    signals.tablespaces = vec![of(printed(8192.0, 50e-6))];
    assert_eq!(impossible(&signals), None, "8 KB in 0 to 0.05 ms");
    signals.tablespaces = vec![of(printed(2e6, 50e-6))];
    let said = impossible(&signals).expect("2 MB in at most 0.05 ms");
    assert!(said.contains("at least 36.9 GB/s"), "{said}");
}

#[test]
fn the_largest_saving_comes_first_after_doubts() {
    let mut signals = healthy();
    set(&mut signals, "log buffer space", "Configuration", 20, 300);
    set(&mut signals, "free buffer waits", "Configuration", 100, 900);
    run(&mut signals).memory_bytes = Some([2, 1]);
    run(&mut signals).fewer_servers = Some("a limit".to_string());
    let rules: Vec<String> = findings(&signals).into_iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["D7", "R13", "R12", "S6"]);
}

#[test]
fn no_setting_is_advised_that_the_workload_does_not_use() {
    let mut signals = healthy();
    set(&mut signals, "free buffer waits", "Configuration", 100, 900);
    set(&mut signals, "direct path write temp", "User I/O", 100, 4_000);
    run(&mut signals).memory_bytes = Some([2, 1]);
    signals.workload = Some("slob".to_string());
    for finding in findings(&signals) {
        let said = format!("{} {}", finding.advice, finding.study);
        assert!(!said.contains("sort_"), "{}: {said}", finding.rule);
    }
}

#[test]
fn a_saving_never_exceeds_db_time() {
    for (id, change) in CASES {
        let mut signals = healthy();
        change(&mut signals);
        let waits: u64 = signals.waits.iter().map(|wait| wait.time_ns).sum();
        let most = signals.db_time().max(waits);
        for finding in findings(&signals) {
            assert!(finding.saves_ns.unwrap_or(0) <= most, "{id}: {}", finding.rule);
        }
    }
}
