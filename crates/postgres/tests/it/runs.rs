//! Runs of workloads on a real server: the work, its verification, its receipts and its record.

use crate::server::{PLAIN, installed, place};
use plumb_events::Cancel;
use plumb_postgres::cluster::Cluster;
use plumb_postgres::installation::Installation;
use plumb_postgres::run::PostgresRun;
use plumb_postgres::session::ServerSession;
use plumb_postgres::workload;
use plumb_record::{Held, Record, Seen};
use plumb_study::vocabulary::Assignment;
use plumb_units::path_text;
use plumb_workload::Work;
use std::path::Path;

/// A loaded data directory, as a study makes it.
struct Loaded {
    cluster: Cluster,
    work: Work,
    path: String,
}

impl Loaded {
    fn make(path: &Path, installation: &Installation, work: Work) -> Loaded {
        let cluster = Cluster::create(path, "it", installation, &PLAIN).expect("a cluster");
        let server = cluster.borrowed().start(&[], &Cancel::default()).expect("it starts");
        let mut session = ServerSession::connect(&server, "load").expect("a session");
        let execution = workload::execution(work.workload.name).expect("a workload");
        execution.load(&mut session, &work, &Cancel::default()).expect("loaded");
        drop(session);
        server.stop().expect("a clean stop");
        Loaded { cluster, work, path: path_text(path) }
    }

    fn run(&self, settings: &[(&str, &str)]) -> Record {
        let settings = settings
            .iter()
            .map(|(name, value)| Assignment { name: name.to_string(), value: value.to_string() });
        let run = PostgresRun {
            home: path_text(self.cluster.home()),
            path: self.path.clone(),
            server: path_text(&self.cluster.installation.directory),
            settings: settings.collect(),
            workload: self.work.workload.name.to_string(),
            parameters: self
                .work
                .values()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            command_line: "plumb study".to_string(),
        };
        run.execute().unwrap_or_else(|error| panic!("{error}"))
    }
}

fn work(name: &str, values: &[(&str, &str)]) -> Work {
    let execution = workload::execution(name).expect("a workload");
    let mut work = Work::of(execution.workload());
    values.iter().for_each(|(name, value)| work.set(name, value).expect("a parameter"));
    work
}

#[track_caller]
fn receipt(record: &Record, setting: &str) -> (Held, Seen) {
    let found = record.receipts.iter().find(|receipt| receipt.setting == setting);
    let found = found.unwrap_or_else(|| panic!("{setting}: {:?}", record.receipts));
    println!("{setting} = {}: {:?} by {:?}: {}", found.asked, found.held, found.seen, found.evidence);
    (found.held, found.seen)
}

fn reading(record: &Record, setting: &str) -> f64 {
    record
        .readings
        .iter()
        .find(|reading| reading.setting == setting)
        .map_or(f64::NAN, |reading| reading.value)
}

#[test]
fn an_index_build_leaves_receipts_from_outside_and_its_time_adds_up() {
    let Some(installation) = installed() else { return };
    let place = place();
    let loaded = Loaded::make(place.path(), &installation, work("large-sort", &[("rows", "400K")]));
    let small = [("maintenance_work_mem", "2MB"), ("max_parallel_maintenance_workers", "0")];
    let record = loaded.run(&small);
    assert!(
        record.checks.len() == 2 && record.checks.iter().all(|check| check.passed),
        "{:?}",
        record.checks
    );
    assert_eq!(receipt(&record, "maintenance_work_mem"), (Held::Held, Seen::Outside));
    assert_eq!(receipt(&record, "max_parallel_maintenance_workers"), (Held::Held, Seen::Outside));
    let temporary = record.statistics.iter().find(|row| row.name == "temporary file bytes").expect("a row");
    assert!(temporary.total > 1 << 20, "{temporary:?}");
    let backend = record.sessions.iter().find(|session| session.role == "client backend").expect("a session");
    assert!(
        backend.cpu_ns > 0 && backend.unaccounted_ns().abs() < backend.elapsed_ns as i64 / 20,
        "{backend:?}"
    );
    assert!(record.header.db_time() > 0 && record.header.elapsed_ns > 0);
    assert_eq!(record.phases.len(), 2, "{:?}", record.phases);
    let sampling = record.sampling.as_ref().expect("samples");
    assert!(sampling.samples > 3, "{sampling:?}");

    let large = loaded.run(&[("maintenance_work_mem", "64MB"), ("max_parallel_maintenance_workers", "0")]);
    assert_eq!(receipt(&large, "maintenance_work_mem").0, Held::Held);
    let step = large.readings.iter().map(|reading| reading.step).fold(0.0, f64::max);
    let grown = reading(&large, "maintenance_work_mem") - reading(&record, "maintenance_work_mem");
    assert!(grown > step, "{grown} {step}");

    // Three processes share 64 MB, and PostgreSQL takes no worker for less than 32 MB each.
    let cut = loaded.run(&[("maintenance_work_mem", "64MB"), ("max_parallel_maintenance_workers", "2")]);
    assert_eq!(receipt(&cut, "max_parallel_maintenance_workers"), (Held::Contradicted, Seen::Outside));
    let serial = loaded.run(&[("maintenance_work_mem", "64MB"), ("sampler", "off")]);
    assert_eq!(receipt(&serial, "sampler").0, Held::Held);
    drop(loaded);
    assert!(std::fs::read_dir(place.path()).expect("a directory").next().is_none());
}

#[test]
fn commits_are_counted_with_their_syncs_and_the_flags_of_the_log() {
    let Some(installation) = installed() else { return };
    let place = place();
    let parameters = [("rows", "3000"), ("buffer", "1K"), ("sessions", "2")];
    for (method, value) in [("open_datasync", 1.0), ("fdatasync", 0.0)] {
        let loaded = Loaded::make(place.path(), &installation, work("redo", &parameters));
        let record = loaded.run(&[("wal_sync_method", method)]);
        assert!(record.checks.iter().all(|check| check.passed), "{:?}", record.checks);
        assert_eq!(receipt(&record, "wal_sync_method"), (Held::Held, Seen::Outside));
        assert_eq!(reading(&record, "wal_sync_method"), value);
        // Both sessions commit, although one batch of the generator has all rows.
        let worked = record.sessions.iter().filter(|session| session.role == "client backend");
        assert_eq!(worked.count(), 2, "{:?}", record.sessions);
        let total =
            |name: &str| record.statistics.iter().find(|row| row.name == name).map_or(0, |row| row.total);
        assert!(total("user commits") > 100 && total("redo size") > 100_000, "{:?}", record.statistics);
        assert_eq!(method == "fdatasync", total("redo synch writes") > 0, "{:?}", record.statistics);
    }
}

fn total(record: &Record, name: &str) -> u64 {
    record.statistics.iter().find(|row| row.name == name).map_or(0, |row| row.total)
}

#[track_caller]
fn is_right(record: &Record) {
    assert!(record.checks.iter().all(|check| check.passed), "{:?}", record.checks);
    assert!(record.server.as_ref().is_some_and(|server| server.starts_with("PostgreSQL ")));
}

const SMALL_SLOB: [(&str, &str); 6] = [
    ("scale", "300"),
    ("schemas", "2"),
    ("sessions", "3"),
    ("work-unit", "16"),
    ("work-loop", "20"),
    ("update-pct", "30"),
];

#[test]
fn slob_reads_and_updates_single_blocks_and_keeps_the_balances() {
    let Some(installation) = installed() else { return };
    let place = place();
    let loaded = Loaded::make(place.path(), &installation, work("slob", &SMALL_SLOB));
    let record = loaded.run(&[("shared_buffers", "1MB")]);
    is_right(&record);
    // Rows, operations, balances, and the index of each schema.
    assert_eq!(record.checks.len(), 5, "{:?}", record.checks);
    assert_eq!(receipt(&record, "shared_buffers"), (Held::Held, Seen::Outside));
    assert_eq!(total(&record, "execute count"), 60);
    let [gets, hits, reads] =
        ["session logical reads", "buffer cache hits", "physical reads"].map(|name| total(&record, name));
    assert!(reads > 100 && hits > 100 && gets == hits + reads, "{gets} {hits} {reads}");
    let updates = total(&record, "user commits");
    assert!((10..50).contains(&updates), "{updates}");
    let counts: u64 = record.responses.iter().map(|response| response.latency.count()).sum();
    assert_eq!((counts, record.responses.len()), (60, 2));
    drop(loaded);

    // Buffers that hold all blocks are filled before the work.
    let loaded = Loaded::make(place.path(), &installation, work("slob", &SMALL_SLOB));
    let cached = loaded.run(&[("shared_buffers", "32MB")]);
    is_right(&cached);
    // Maps of free space are not among them.
    assert!(total(&cached, "physical reads") < 10, "{:?}", cached.statistics);
}

#[test]
fn scans_count_and_add_the_rows_that_the_generator_makes() {
    let Some(installation) = installed() else { return };
    let place = place();
    let parameters = [
        ("rows", "20000"),
        ("streams", "2"),
        ("columns", "regular_qty,regular_amt"),
        ("where", "store_id < 100 and prod_id >= 7"),
    ];
    let loaded = Loaded::make(place.path(), &installation, work("scan", &parameters));
    let record = loaded.run(&[("max_parallel_workers_per_gather", "0")]);
    is_right(&record);
    assert_eq!(record.checks.len(), 2, "{:?}", record.checks);
    assert_eq!(total(&record, "table scan rows gotten"), 40_000);
    assert_eq!(receipt(&record, "max_parallel_workers_per_gather"), (Held::Held, Seen::Outside));
    assert_eq!(record.phases[0].name, "table scan");
}

#[test]
fn pgbench_makes_its_transactions_and_the_balances_agree_with_the_history() {
    let Some(installation) = installed() else { return };
    let place = place();
    for (script, checks) in [("tpcb-like", 5), ("simple-update", 3), ("select-only", 3)] {
        let parameters = [("rows", "100K"), ("sessions", "2"), ("transactions", "30"), ("script", script)];
        let loaded = Loaded::make(place.path(), &installation, work("pgbench", &parameters));
        let record = loaded.run(&[("commit_delay", "10"), ("commit_siblings", "1")]);
        is_right(&record);
        assert_eq!(record.checks.len(), checks, "{:?}", record.checks);
        assert_eq!(total(&record, "user commits"), 60);
    }
}
