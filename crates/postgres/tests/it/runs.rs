//! Runs of workloads on a real server: the work, its verification, its receipts and its record.

use crate::server::{PLAIN, has_segment, installed, place, processes_in};
use plumb_events::Cancel;
use plumb_postgres::PostgresError;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::cluster::Cluster;
use plumb_postgres::installation::Installation;
use plumb_postgres::run::PostgresRun;
use plumb_postgres::session::{Served, ServerSession};
use plumb_postgres::workload;
use plumb_record::{Fact, Held, Record, Seen};
use plumb_study::vocabulary::Assignment;
use plumb_units::path_text;
use plumb_workload::Work;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

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
        self.try_run(settings).unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_run(&self, settings: &[(&str, &str)]) -> Result<Record, PostgresError> {
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
        run.execute()
    }

    /// Waits until a run has started the server.
    fn wait_until_ready(&self) {
        let file = self.cluster.data().join("postmaster.pid");
        let is_ready = || fs::read_to_string(&file).is_ok_and(|text| text.contains("ready"));
        while !is_ready() {
            thread::sleep(Duration::from_millis(1));
        }
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
    let blocks = |record: &Record| {
        ["writes", "reads"].map(|what| total(record, &format!("physical {what} direct temporary tablespace")))
    };
    let [written, read] = blocks(&record);
    // Files are removed as they are merged, so that fewer bytes lie there at once.
    assert!(written * 8192 >= temporary.total && read > 100, "{written} {read} {temporary:?}");
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
    assert_eq!(blocks(&large), [0, 0], "it fits into memory");
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
    let program = path_text(&installation.directory);
    let record = loaded.run(&[("max_parallel_workers_per_gather", "0"), ("server", &program)]);
    is_right(&record);
    assert_eq!(receipt(&record, "server"), (Held::Held, Seen::Outside));
    assert_eq!(record.checks.len(), 2, "{:?}", record.checks);
    assert_eq!(total(&record, "table scan rows gotten"), 40_000);
    assert_eq!(receipt(&record, "max_parallel_workers_per_gather"), (Held::Held, Seen::Outside));
    assert_eq!(record.phases[0].name, "table scan");
}

#[test]
fn the_page_cache_has_the_files_of_a_scan_or_not_as_the_study_says() {
    let Some(installation) = installed() else { return };
    let place = place();
    let loaded = Loaded::make(place.path(), &installation, work("scan", &[("rows", "20000")]));
    let state = |value: &str| receipt(&loaded.run(&[("page_cache", value)]), "page_cache");
    assert_eq!(state("filled"), (Held::Held, Seen::Outside));
    assert_eq!(state("empty"), (Held::Contradicted, Seen::Outside), "the run before has read them");
    let settled = plumb_study::settle::settle(&loaded.cluster.borrowed().files(), &[]);
    assert!(settled.resident_pages < settled.total_pages / 10, "{settled:?}");
    assert_eq!(state("empty"), (Held::Held, Seen::Outside));
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

#[test]
fn a_server_that_is_killed_during_a_run_is_one_line_and_leaves_nothing() {
    let Some(installation) = installed() else { return };
    let place = place();
    let parameters = [("rows", "2M"), ("buffer", "1K"), ("sessions", "2")];
    let loaded = Loaded::make(place.path(), &installation, work("redo", &parameters));
    let data = loaded.cluster.data();
    let (error, maker) = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            loaded.wait_until_ready();
            thread::sleep(Duration::from_millis(700));
            let text = fs::read_to_string(data.join("postmaster.pid")).expect("it runs");
            let number = text.lines().next().and_then(|line| line.parse().ok()).expect("a number");
            kill_process(Pid::from_raw(number).expect("a process"), Signal::KILL).expect("killed");
            number
        });
        (loaded.try_run(&[]).expect_err("it is gone").to_string(), killer.join().expect("killed"))
    });
    // The step depends on the time that the start and the first readings took.
    assert!(error.starts_with("the server ended while ") && !error.contains('\n'), "{error}");
    assert!(error.ends_with(": signal 9 killed its first process"), "{error}");
    assert!(processes_in(&data) == 0 && !has_segment(maker), "no process and no memory is left");
    drop(loaded);
    assert!(fs::read_dir(place.path()).expect("a directory").next().is_none());
}

#[test]
fn another_client_at_work_is_a_disturbance_and_no_part_of_the_run() {
    let Some(installation) = installed() else { return };
    let place = place();
    let loaded = Loaded::make(place.path(), &installation, work("large-sort", &[("rows", "400K")]));
    let serial = [("max_parallel_maintenance_workers", "0")];
    let of_clients = |record: &Record| {
        record.circumstances.iter().flatten().find(|found| found.fact == Fact::Clients).cloned()
    };
    assert_eq!(of_clients(&loaded.run(&serial)), None, "no other client");
    let url = format!("postgres:///postgres?host={}", loaded.cluster.data().display());
    let address = ServerAddress::parse(&url, &|_| None).expect("an address");
    let record = thread::scope(|scope| {
        scope.spawn(|| {
            loaded.wait_until_ready();
            let mut client = address.open("psql", Box::new(|_| {})).expect("a session");
            while client.batch_execute("select count(*) from generate_series(1, 100000)").is_ok() {}
        });
        loaded.run(&serial)
    });
    let found = of_clients(&record).expect("another client worked");
    assert!(found.doubtful && found.share > 0.3, "{found:?}");
    assert!(found.evidence.starts_with("1 session of other clients worked in "), "{found:?}");
    let backends = record.sessions.iter().filter(|session| session.role == "client backend");
    assert_eq!(backends.count(), 1, "{:?}", record.sessions);
}

/// A small file system on a loop device; dropping it unmounts it.
struct Mounted {
    place: TempDir,
}

impl Mounted {
    /// Makes one; `None` skips a test.
    fn new(megabytes: u64) -> Option<Mounted> {
        let place = place();
        let (image, mount) = (place.path().join("image"), place.path().join("mounted"));
        File::create(&image).and_then(|file| file.set_len(megabytes << 20)).expect("an image");
        fs::create_dir(&mount).expect("a directory");
        let run = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let made = run(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(&image))
            && run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&mount));
        if !made {
            println!("skipped: no file system can be mounted here (root, mkfs.ext4, mount)");
        }
        made.then_some(Mounted { place })
    }

    fn path(&self) -> std::path::PathBuf {
        self.place.path().join("mounted")
    }

    /// Fills it until this much is left.
    fn fill(&self, left_kilobytes: u64) {
        let mut filler = File::create(self.path().join("filler")).expect("a file");
        let page = vec![1; 4096];
        while filler.write_all(&page).is_ok() {}
        let length = filler.metadata().expect("a length").len();
        filler.set_len(length.saturating_sub(left_kilobytes << 10)).expect("a shorter file");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[test]
fn a_disk_that_fills_during_a_run_is_one_line_with_the_cure_and_leaves_nothing() {
    let Some(installation) = installed() else { return };
    // The sort lacks room for temporary files, the import for the log.
    let sort = [("maintenance_work_mem", "1MB"), ("max_parallel_maintenance_workers", "0")];
    let cases = [
        (work("large-sort", &[("rows", "300K")]), &sort[..], 3_000),
        (work("redo", &[("rows", "1M"), ("buffer", "256K")]), &[][..], 20_000),
    ];
    for (work, settings, left) in cases {
        let Some(mounted) = Mounted::new(160) else { return };
        let loaded = Loaded::make(&mounted.path(), &installation, work);
        mounted.fill(left);
        let error = loaded.try_run(settings).expect_err("no room").to_string();
        assert!(error.contains("No space left on device"), "{error}");
        assert!(error.ends_with("; name a --path with more room, or use fewer --rows"), "{error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(processes_in(&loaded.cluster.data()), 0);
        drop(loaded);
        let left: Vec<_> = fs::read_dir(mounted.path()).expect("a directory").flatten().collect();
        assert_eq!(left.len(), 2, "the filler and lost+found: {left:?}");
    }
}
