//! Treatments that do nothing, each of which a server reports as set.

use super::*;
use crate::evidence::{CachedPages, LogFacts, ProgramFacts, WorkDone};
use crate::process::{Counters, SharedMapping};
use crate::recorded;
use crate::watch::{Process, WatchedProcesses};
use plumb_host::readings::{DiskStats, OpenFlags, ProcessIo};
use plumb_units::Nanos;
use std::collections::BTreeMap;

fn in_force(name: &str, value: &str, unit: &str) -> InForce {
    InForce {
        name: name.to_string(),
        value: value.to_string(),
        unit: unit.to_string(),
        source: "session".to_string(),
        ..InForce::default()
    }
}

fn asked(name: &str, value: &str) -> GivenSetting {
    GivenSetting { name: name.to_string(), value: value.to_string(), canonical: value.to_string() }
}

fn process(pid: i32, kind: &str, grown: u64, read: [u64; 2]) -> Process {
    let io = ProcessIo { rchar: Bytes(read[0]), syscr: read[1], ..ProcessIo::default() };
    Process {
        pid,
        kind: kind.to_string(),
        leader: (kind == "parallel worker").then_some(1),
        elapsed: Nanos(1_000_000_000),
        counters: Counters { cpu: Nanos(900_000_000), queue: Nanos(0), io: Some(io) },
        memory_grown: Bytes(grown),
        samples: BTreeMap::new(),
        ended: false,
    }
}

/// An index build of a table of 100 MB with 64 MB of memory that wrote temporary files.
fn build() -> ServerEvidence {
    ServerEvidence {
        major: 18,
        asked: vec![asked("maintenance_work_mem", "65536")],
        in_force: vec![in_force("maintenance_work_mem", "65536", "kB")],
        elapsed: Nanos(1_000_000_000),
        watched: WatchedProcesses {
            processes: vec![process(1, "client backend", 60 * Bytes::M, [100 * Bytes::M, 800])],
            samples: 100,
            temporary_bytes: Bytes(70 * Bytes::M),
            ..WatchedProcesses::default()
        },
        done: WorkDone {
            table: Bytes(100 * Bytes::M),
            index: Bytes(30 * Bytes::M),
            sessions: 1,
            ..WorkDone::default()
        },
        disk: Some(DiskStats::default()),
        ..ServerEvidence::default()
    }
}

/// Sets one more setting, as asked and in force.
fn with(mut evidence: ServerEvidence, name: &str, value: &str, unit: &str) -> ServerEvidence {
    evidence.asked = vec![asked(name, value)];
    evidence.in_force.retain(|set| set.name != name);
    evidence.in_force.push(in_force(name, value, unit));
    evidence
}

#[track_caller]
fn check(evidence: &ServerEvidence, expected: Held, part: &str) {
    let receipts = receipts(evidence).receipts;
    let receipt = receipts.first().expect("one setting");
    assert_eq!(receipt.held, expected, "{receipt:?}");
    assert!(receipt.evidence.contains(part), "{}", receipt.evidence);
    assert!(!receipt.evidence.contains('\n'));
}

#[test]
fn memory_that_was_used_and_not_exceeded_holds() {
    check(&build(), Held::Held, "private memory of 1 processes grew by 60.0 MB; 70.0 MB of temporary files");
    let mut small = build();
    small.watched.processes[0].memory_grown = Bytes(20 * Bytes::M);
    check(&small, Held::Contradicted, "at least 32.0 MB");
    let mut large = build();
    large.watched.processes[0].memory_grown = Bytes(200 * Bytes::M);
    check(&large, Held::Contradicted, "grew by 200 MB");
    // A sort that fits uses what it needs.
    small.watched.temporary_bytes = Bytes(0);
    check(&small, Held::Held, "no temporary files");
}

#[test]
fn a_value_that_is_not_in_force_contradicts_whatever_else_is_seen() {
    let mut evidence = build();
    evidence.asked[0].canonical = "131072".to_string();
    check(&evidence, Held::Contradicted, "pg_settings: 64M in force, by session");
    let mut waits = build();
    waits.in_force[0].pending = true;
    check(&waits, Held::Contradicted, "another value waits for a restart");
}

#[test]
fn workers_cut_by_memory_contradict_with_the_cure() {
    let evidence = with(build(), "max_parallel_maintenance_workers", "2", "");
    check(
        &evidence,
        Held::Contradicted,
        "gives each of 3 processes 21.3 MB, and PostgreSQL takes no worker below 32.0 MB: give it 96.0 MB",
    );
    let mut enough = evidence.clone();
    enough.watched.workers = 2;
    check(&enough, Held::Held, "2 processes `parallel worker` at once, of 2");
    let mut short = evidence;
    short.sort_lines = vec!["begin index sort: unique = f, workMem = 1, randomAccess = f".to_string(); 4];
    check(&short, Held::NotChecked, "2 began by the server's word, and ended between two samples");
}

#[test]
fn reads_above_the_silent_cap_contradict() {
    let capped = with(build(), "io_combine_limit", "128", "8kB");
    let mut capped = capped;
    capped.in_force.push(in_force("io_max_combine_limit", "16", "8kB"));
    check(&capped, Held::Contradicted, "io_max_combine_limit = 128K is used instead, without a word");
    let below = with(capped, "io_combine_limit", "8", "8kB");
    check(&below, Held::Held, "a read on average");
}

#[test]
fn a_method_that_fell_back_contradicts() {
    let evidence = with(build(), "io_method", "worker", "");
    let mut idle = evidence.clone();
    idle.watched.processes.push(process(2, "io worker", 0, [0, 0]));
    check(&idle, Held::Contradicted, "processes `io worker` read 0 B of a table of 100 MB");
    let mut busy = evidence;
    busy.watched.processes.push(process(2, "io worker", 0, [99 * Bytes::M, 700]));
    check(&busy, Held::Held, "read 99.0 MB");
    let sync = with(busy, "io_method", "sync", "");
    check(&sync, Held::Contradicted, "io worker");
    let ring = with(build(), "io_method", "io_uring", "");
    check(&ring, Held::Contradicted, "0 requests through rings");
}

#[test]
fn huge_pages_that_fell_back_contradict() {
    let mut evidence = with(build(), "huge_pages", "on", "");
    evidence.shared = Some(SharedMapping { size: Bytes(80 * Bytes::M), page: Bytes(4096) });
    check(&evidence, Held::Contradicted, "pages of 4.00 KB");
    evidence.shared = Some(SharedMapping { size: Bytes(80 * Bytes::M), page: Bytes(2 * Bytes::M) });
    check(&evidence, Held::Held, "pages of 2.00 MB");
    let tried = with(evidence, "huge_pages", "try", "");
    check(&tried, Held::Contradicted, "pages of 2.00 MB");
}

#[test]
fn a_delay_with_too_few_siblings_contradicts() {
    let mut evidence = with(build(), "commit_delay", "1000", "us");
    evidence.in_force.push(in_force("commit_siblings", "5", ""));
    evidence.done = WorkDone { commits: 1000, sessions: 4, ..WorkDone::default() };
    evidence.log.syncs = Some(900);
    check(
        &evidence,
        Held::Contradicted,
        "commit_siblings = 5 other sessions are active, and there are 3; 1000 commits with 900 syncs",
    );
    evidence.done.sessions = 8;
    check(&evidence, Held::Held, "1.11 each");
}

#[test]
fn direct_files_without_a_device_below_contradict() {
    let mut evidence = with(build(), "debug_io_direct", "data", "");
    let direct = OpenFlags::of_bits(0o2_140_002);
    evidence.watched.open.insert("base/5/16384".into(), direct);
    assert!(direct.direct || cfg!(not(target_arch = "x86_64")));
    check(&evidence, Held::Held, "O_DIRECT in 1 of 1 data files, 0 of 0 files of the log");
    evidence.disk = None;
    check(&evidence, Held::Contradicted, "no device below it, as on tmpfs");
}

#[test]
fn the_flags_of_the_log_tell_the_method_of_its_syncs() {
    let mut evidence = with(build(), "wal_sync_method", "open_datasync", "");
    let segment = "pg_wal/000000010000000000000001";
    evidence.watched.open.insert(segment.into(), OpenFlags::of_bits(0o2));
    check(
        &evidence,
        Held::Contradicted,
        "of 1 open files of the log 0 with O_SYNC, 0 with O_DSYNC, 0 with O_DIRECT",
    );
    evidence.watched.open.insert(segment.into(), OpenFlags::of_bits(0o10_002));
    check(&evidence, Held::Held, "1 with O_DSYNC");
    let plain = with(evidence.clone(), "wal_sync_method", "fdatasync", "");
    check(&plain, Held::Contradicted, "1 with O_DSYNC");
    evidence.watched.open.clear();
    evidence.watched.open.insert("pg_wal/archive_status".into(), OpenFlags::of_bits(0));
    check(&evidence, Held::NotChecked, "no file of the log was open");
}

#[test]
fn only_what_is_outside_gives_a_reading_where_nothing_tells_two_values_apart() {
    let mut evidence = with(build(), "wal_sync_method", "fsync", "");
    evidence.watched.open.insert("pg_wal/000000010000000000000001".into(), OpenFlags::of_bits(0o2));
    let Receipts { receipts: found, readings } = receipts(&evidence);
    assert_eq!((found[0].held, found[0].seen, readings.len()), (Held::Held, Seen::Inside, 0));
    let Receipts { receipts: found, readings } = receipts(&build());
    assert_eq!((found[0].seen, readings[0].setting.as_str()), (Seen::Outside, "maintenance_work_mem"));
    assert!(readings[0].step < readings[0].value);
}

#[test]
fn one_request_ahead_is_not_told_from_none_by_the_device() {
    let seen = |value: &str| {
        let evidence = with(build(), "effective_io_concurrency", value, "");
        let Receipts { receipts: found, readings } = receipts(&evidence);
        (found[0].held, found[0].seen, readings.len())
    };
    assert_eq!(seen("0"), (Held::Held, Seen::Outside, 1));
    assert_eq!(seen("1"), (Held::Held, Seen::Inside, 0));
    assert_eq!(seen("16"), (Held::Held, Seen::Outside, 1));
}

#[test]
fn checksums_are_read_from_a_page() {
    let mut evidence = build();
    evidence.asked = vec![asked("data_checksums", "on")];
    evidence.page_checksum = Some(0);
    check(&evidence, Held::Contradicted, "checksum 0x0000");
    evidence.page_checksum = Some(0x1234);
    check(&evidence, Held::Held, "checksum 0x1234");
    evidence.log = LogFacts { segment: Some(Bytes(Bytes::M)), ..LogFacts::default() };
    evidence.asked = vec![asked("wal_segment_size", "1M")];
    check(&evidence, Held::Held, "files of 1.00 MB in pg_wal");
}

#[test]
fn the_program_that_runs_is_the_receipt_of_a_server() {
    let mut evidence = build();
    evidence.asked =
        vec![GivenSetting { canonical: "/a/bin/postgres".to_string(), ..asked("server", "/link") }];
    check(&evidence, Held::NotChecked, "cannot be read");
    let mut runs = |path: &str, sha256: &str, held: Held| {
        evidence.program = Some(ProgramFacts { path: path.into(), sha256: sha256.to_string() });
        check(&evidence, held, path);
        receipts(&evidence).readings[0].value
    };
    let one = runs("/a/bin/postgres", &"0123456789abcdef".repeat(4), Held::Held);
    assert_ne!(one, runs("/a/bin/postgres", &"1123456789abcdef".repeat(4), Held::Held));
    runs("/b/bin/postgres", &"0123456789abcdef".repeat(4), Held::Contradicted);
}

#[test]
fn page_images_are_counted_by_the_server_where_files_of_the_log_are_gone() {
    let mut evidence = with(build(), "wal_compression", "lz4", "");
    let log = LogFacts { bytes: Bytes(1_000_000), image_count: 250, ..LogFacts::default() };
    evidence.log = LogFacts { image_bytes: Some(Bytes(900_000)), ..log };
    check(&evidence, Held::Held, "pg_waldump: 879 KB of 250 page images in 977 KB of log");
    let by_files = receipts(&evidence).readings;
    evidence.log = log;
    check(
        &evidence,
        Held::Held,
        "pg_stat_wal: 250 page images in 977 KB of log, which pg_waldump could not read",
    );
    let Receipts { receipts: found, readings: by_server } = receipts(&evidence);
    assert_eq!(found[0].seen, Seen::Inside);
    let difference = (by_files[0].value - by_server[0].value).abs();
    assert!(difference < by_server[0].step, "the two are no evidence of a treatment: {difference}");
    evidence.log.image_count = 0;
    check(&evidence, Held::Contradicted, "0 page images");
    let mut off = with(evidence, "full_page_writes", "off", "");
    check(&off, Held::Held, "0 page images");
    off.log.image_count = 1;
    check(&off, Held::Contradicted, "1 page images");
}

#[test]
fn a_page_cache_that_is_not_as_the_study_says_contradicts() {
    let mut evidence = build();
    let mut judged = |value: &str, cached: u64, held: Held| {
        evidence.asked = vec![asked("page_cache", value)];
        evidence.page_cache = Some(CachedPages { cached, all: 1000 });
        check(&evidence, held, &format!("{cached} of 1000 pages"));
    };
    judged("filled", 950, Held::Held);
    judged("filled", 850, Held::Contradicted);
    judged("empty", 50, Held::Held);
    judged("empty", 150, Held::Contradicted);
    evidence.page_cache = None;
    check(&evidence, Held::NotChecked, "the kernel does not tell");
}

#[test]
fn a_setting_of_a_newer_version_and_every_rule_has_a_name_of_its_own() {
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
    assert_eq!(rule_of("io_method").map(|rule| rule.since), Some(18));
}

#[test]
fn each_rule_names_the_first_version_whose_server_lists_the_setting() {
    // Words of studies are no settings of a server.
    let words = crate::run::WORDS;
    for version in recorded::VERSIONS {
        let rows = recorded::rows(version, "settings.tsv");
        for rule in RULES.iter().filter(|rule| !words.contains(&rule.name)) {
            let listed = rows.iter().any(|row| row[0] == rule.name);
            assert_eq!(listed, version >= rule.since, "{} in version {version}", rule.name);
        }
    }
}

/// Evidence that a server of this version left.
fn recorded_of(version: u32) -> ServerEvidence {
    let setting = |row: Vec<String>| InForce {
        name: row[0].clone(),
        value: row[1].clone(),
        unit: row[2].clone(),
        default: row[3].clone(),
        source: row[4].clone(),
        pending: row[5] == "true",
    };
    let mut evidence = build();
    evidence.major = version;
    evidence.in_force = recorded::rows(version, "settings.tsv").into_iter().map(setting).collect();
    evidence.watched.open = recorded::open_files(version);
    evidence.shared = crate::process::mapping(&recorded::text(version, "smaps"));
    evidence
}

#[test]
fn evidence_that_each_version_left_holds_and_contradicts_another_value() {
    for version in recorded::VERSIONS {
        let mut evidence = recorded_of(version);
        let mut judged = |name: &str, value: &str| {
            evidence.asked = vec![asked(name, value)];
            let receipts = receipts(&evidence).receipts;
            (receipts[0].held, receipts[0].seen)
        };
        let (held, not) = ((Held::Held, Seen::Outside), (Held::Contradicted, Seen::Inside));
        assert_eq!(judged("wal_sync_method", "open_datasync"), held, "{version}");
        assert_eq!(judged("wal_sync_method", "fdatasync"), not, "{version}");
        // 16 MB in blocks of 8 kB.
        assert_eq!(judged("shared_buffers", "2048"), held, "{version}");
        assert_eq!(judged("shared_buffers", "4096"), not, "{version}");
        if version >= 16 {
            assert_eq!(judged("debug_io_direct", "data"), held, "{version}");
            assert_eq!(judged("debug_io_direct", "wal"), not, "{version}");
        }
    }
}
