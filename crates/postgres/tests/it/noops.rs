//! Treatments that do nothing are never PROVED, whatever the times say.
//!
//! Each study here runs on made-up evidence: the second level takes half the time of the first in
//! every block, so without receipts its claim would be proved. No server is needed.

use plumb_events::Cancel;
use plumb_host::readings::{OpenFlags, ProcessIo};
use plumb_postgres::Postgres;
use plumb_postgres::assemble::{self, MadeRun};
use plumb_postgres::evidence::{GivenSetting, LogFacts, ServerEvidence, WorkDone};
use plumb_postgres::process::{Counters, SharedMapping};
use plumb_postgres::session::InForce;
use plumb_postgres::watch::{Process, WatchedProcesses};
use plumb_postgres::workload::{self, WorkOutcome};
use plumb_record::{Check, Record};
use plumb_study::analysis::analyse;
use plumb_study::bundle::{Bundle, Environment, Reservation, Settled};
use plumb_study::canary::Canary;
use plumb_study::definition::parse;
use plumb_study::disturbance::Stretch;
use plumb_study::execution::execute;
use plumb_study::plan::{Plan, PlanOptions, Until};
use plumb_study::targets::{NoRecord, Preparation, Target};
use plumb_study::vocabulary::Assignment;
use plumb_study::{Observer, Stage, StudyError};
use plumb_units::{Bytes, Nanos};
use plumb_workload::Work;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// Makes the evidence of a run with this value of the varied setting.
type Evidence = fn(&str) -> ServerEvidence;

/// A server whose runs are made up.
struct MadeUp {
    evidence: Evidence,
    /// The value that takes half the time.
    fast: &'static str,
    runs: u64,
}

impl Target for MadeUp {
    fn environment(&mut self) -> Result<Environment, StudyError> {
        Ok(Environment::now("a made-up server".to_string(), Vec::new(), None, "plumb study"))
    }

    fn prepare(&mut self, _: &Preparation<'_>) -> Result<(), StudyError> {
        Ok(())
    }

    fn ready(&mut self, _: &[Assignment]) -> Result<Settled, StudyError> {
        Ok(Settled { idle: true, total_pages: 100, ..Settled::default() })
    }

    fn sing(&self) -> Canary {
        Canary { cpu_ns: 3_000_000, read_ns: None }
    }

    fn run(&mut self, settings: &[Assignment], _: &Cancel) -> Result<Record, NoRecord> {
        self.runs += 1;
        let Assignment { name, value } = &settings[0];
        let mut evidence = (self.evidence)(value);
        evidence.major = 18;
        let canonical = value.trim_end_matches("kB").replace("64MB", "65536");
        evidence.asked = vec![GivenSetting { name: name.clone(), value: value.clone(), canonical }];
        let elapsed = if value == self.fast { 500_000_000 } else { 1_000_000_000 };
        // Some microseconds of noise.
        evidence.elapsed = Nanos(elapsed + self.runs * 7_919 % 100_000);
        let execution = workload::execution("large-sort").expect("a workload");
        let check = Check { name: "rows".into(), passed: true, detail: String::new(), elapsed_ns: 0 };
        Ok(assemble::record(&MadeRun {
            evidence,
            outcome: WorkOutcome::default(),
            checks: vec![check],
            devices: Vec::new(),
            work: Work::of(execution.workload()),
            command_line: String::new(),
            begin: Nanos(0),
            wall: (Duration::ZERO, Duration::ZERO),
            host_cpu: None,
            stretch: Stretch::default(),
            title: "made up".to_string(),
            server: "PostgreSQL 18.0".to_string(),
        }))
    }
}

fn in_force(name: &str, value: &str, unit: &str) -> InForce {
    InForce {
        name: name.to_string(),
        value: value.to_string(),
        unit: unit.to_string(),
        source: "command line".to_string(),
        ..InForce::default()
    }
}

/// A backend with this growth of memory and these bytes read.
fn backend(grown: u64, read: u64) -> Process {
    Process {
        pid: 1,
        kind: "client backend".to_string(),
        leader: None,
        elapsed: Nanos(1_000_000_000),
        counters: Counters {
            cpu: Nanos(400_000_000),
            queue: Nanos(0),
            io: Some(ProcessIo { rchar: Bytes(read), syscr: read / 8_192, ..ProcessIo::default() }),
        },
        memory_grown: Bytes(grown),
        samples: BTreeMap::new(),
        ended: false,
    }
}

/// Evidence of a run with this value in force.
fn plain(settings: Vec<InForce>) -> ServerEvidence {
    ServerEvidence {
        in_force: settings,
        watched: WatchedProcesses {
            processes: vec![backend(30 * Bytes::M, 100 * Bytes::M)],
            samples: 100,
            ..WatchedProcesses::default()
        },
        done: WorkDone { table: Bytes(100 * Bytes::M), sessions: 1, ..WorkDone::default() },
        ..ServerEvidence::default()
    }
}

/// Runs a study of one setting with two values; returns the line of its verdict with the reasons.
fn verdict(setting: &str, levels: [&'static str; 2], evidence: Evidence) -> String {
    let text = format!(
        "target = \"postgres\"\nname = \"x\"\ntitle = \"x\"\nquestion = \"x\"\nworkload = \"large-sort\"\nblocks = 8\n\
         [[factor]]\nname = \"f\"\nlevels = [{{ label = \"a\", set = {{ {setting} = \"{}\" }} }}, {{ label = \"b\", set = {{ \
         {setting} = \"{}\" }} }}]\n[[claim]]\nname = \"c\"\ntext = \"x\"\nfactor = \"f\"\nfrom = \"a\"\nto = \"b\"\nexpect = \
         \"faster\"\n",
        levels[0], levels[1]
    );
    let study = parse("x.toml", &text, &[&Postgres]).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(study, PlanOptions::default(), Until::Blocks, 7).expect("a design");
    let place = tempfile::tempdir().expect("a directory");
    let reserved = Reservation::named(&place.path().join("kept")).expect("a new directory");
    let mut target = MadeUp { evidence, fast: levels[1], runs: 0 };
    let environment = Environment { settings: plan.setting_facts(), ..target.environment().expect("one") };
    let mut bundle = Bundle::create(reserved, &plan, environment).expect("a bundle");
    execute(&mut bundle, &mut target, None, &Cancel::default(), &Silent).expect("it runs");
    let claim = analyse(bundle.contents()).claims.remove(0);
    format!("{} {}", claim.shown(), claim.reasons.join(" "))
}

#[track_caller]
fn check(setting: &str, levels: [&'static str; 2], evidence: Evidence, reason: &str) {
    let found = verdict(setting, levels, evidence);
    assert!(found.starts_with("INVALID"), "{found}");
    assert!(found.contains(reason), "{found}");
}

#[test]
fn a_treatment_with_its_receipt_is_proved() {
    let found = verdict("wal_sync_method", ["fdatasync", "open_datasync"], |value| {
        let mut evidence = plain(vec![in_force("wal_sync_method", value, "")]);
        let flags = if value == "open_datasync" { 0o10_002 } else { 0o2 };
        let segment = "pg_wal/000000010000000000000001".into();
        evidence.watched.open.insert(segment, OpenFlags::of_bits(flags));
        evidence
    });
    assert!(found.starts_with("PROVED faster"), "{found}");
}

#[test]
fn a_delay_with_too_few_siblings_is_invalid() {
    check(
        "commit_delay",
        ["0", "1000"],
        |value| {
            let mut evidence =
                plain(vec![in_force("commit_delay", value, ""), in_force("commit_siblings", "5", "")]);
            evidence.done = WorkDone { commits: 1000, sessions: 4, ..evidence.done };
            evidence.log = LogFacts { syncs: Some(900), ..LogFacts::default() };
            evidence
        },
        "it acts while commit_siblings = 5 other sessions are active, and there are 3",
    );
}

#[test]
fn huge_pages_that_fell_back_are_invalid() {
    check(
        "huge_pages",
        ["off", "on"],
        |value| ServerEvidence {
            shared: Some(SharedMapping { size: Bytes(150 * Bytes::M), page: Bytes(4096) }),
            ..plain(vec![in_force("huge_pages", value, "")])
        },
        "the shared mapping has pages of 4.00 KB",
    );
}

#[test]
fn a_value_equal_to_the_default_is_invalid() {
    check(
        "maintenance_work_mem",
        ["64MB", "65536kB"],
        |_| plain(vec![in_force("maintenance_work_mem", "65536", "kB")]),
        "the evidence of maintenance_work_mem is alike on both sides",
    );
}

#[test]
fn workers_cut_by_memory_are_invalid() {
    check(
        "max_parallel_maintenance_workers",
        ["0", "2"],
        |value| {
            plain(vec![
                in_force("max_parallel_maintenance_workers", value, ""),
                in_force("maintenance_work_mem", "65536", "kB"),
            ])
        },
        "PostgreSQL takes no worker below 32.0 MB: give it 96.0 MB",
    );
}

#[test]
fn a_setting_that_waits_for_a_restart_is_invalid() {
    check(
        "max_wal_size",
        ["1024", "64"],
        |_| {
            let waits = InForce { pending: true, ..in_force("max_wal_size", "1024", "MB") };
            plain(vec![waits])
        },
        "1G in force, by command line; another value waits for a restart",
    );
}

#[test]
fn reads_above_the_silent_cap_are_invalid() {
    check(
        "io_combine_limit",
        ["16", "128"],
        |value| {
            plain(vec![
                in_force("io_combine_limit", value, "8kB"),
                in_force("io_max_combine_limit", "16", "8kB"),
            ])
        },
        "io_max_combine_limit = 128K is used instead, without a word",
    );
}

#[test]
fn a_method_that_fell_back_is_invalid() {
    check(
        "io_method",
        ["sync", "worker"],
        |value| plain(vec![in_force("io_method", value, "")]),
        "processes `io worker` read 0 B of a table of 100 MB",
    );
}

#[test]
fn direct_files_in_memory_are_invalid() {
    check(
        "debug_io_direct",
        ["wal", "data"],
        |value| plain(vec![in_force("debug_io_direct", value, "")]),
        "the data directory has no device below it, as on tmpfs",
    );
}
