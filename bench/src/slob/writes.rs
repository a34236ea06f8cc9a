//! Blocks that change: updates and checkpoints, and fio with the same streams.

use super::reads::{Readers, for_seconds, missed_reads};
use super::{Figure, Options, TableOfBlocks, fio, fio_jobs, on, settings};
use anyhow::{Context, Result};
use plumb_engine::cache::BlockCheck;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{Instance, Layout};
use plumb_events::Cancel;
use plumb_events::{IoStream, Role, Session, Statistic, now};
use plumb_proof::random::Generator;
use plumb_record::Record;
use plumb_run::place::Places;
use plumb_run::workload;
use plumb_study::{Observer, Stage};
use plumb_types::{Number, RowBatch, Value};
use plumb_units::Bytes;
use plumb_workload::Work;
use plumb_workload::slob::{Rows, SLOB, Texts};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Observer of a benchmark's runs, which shows nothing.
struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// Schemas of the updates, of 80 MB each.
const SCHEMAS: usize = 8;

/// SLOB at 20%, on shared servers and on a thread for each session, each time with fio's turn after
/// it.
pub(super) fn updates(options: &Options, beside_fio: bool) -> Result<()> {
    let forms = [options.shared_servers, 0];
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for round in 0..options.rounds {
        for (servers, ratios) in forms.into_iter().zip(&mut ratios) {
            print!("round {}, {}: ", round + 1, on(servers));
            ratios.extend(updates_once(options, servers, beside_fio)?);
        }
    }
    for (servers, ratios) in forms.into_iter().zip(ratios).filter(|(_, ratios)| !ratios.is_empty()) {
        let ratio = Figure::of_ratios(ratios).show(3);
        println!("reads over fio's, with the same writes, {}: {ratio}; goal: at least 0.95", on(servers));
    }
    Ok(())
}

/// The rate of its reads over that of fio's.
fn updates_once(options: &Options, servers: usize, beside_fio: bool) -> Result<Option<f64>> {
    let [sessions, each, seconds] =
        [options.sessions, options.sessions.div_ceil(SCHEMAS), options.seconds as usize]
            .map(|number| number.to_string());
    let schemas = SCHEMAS.to_string();
    let given = [
        ("update-pct", "20"),
        ("sessions", sessions.as_str()),
        ("schemas", &schemas),
        ("threads-per-schema", &each),
        ("run-time", &seconds),
        ("mix", "iid"),
    ];
    let workload::Ran { record, database, .. } = slob(&options.path, &given, servers)?;
    let ours = Streams::of(&record);
    let passed = record.checks.iter().all(|check| check.passed);
    println!("{} (checks passed: {passed})", ours.shown());
    if !beside_fio {
        return Ok(None);
    }
    let files = |purpose: Purpose| database.instance().tablespace(purpose).files[0].file.path().to_path_buf();
    let log = database.instance().home().join("redo01.log");
    let reads = fio_streams(&ours, &files(Purpose::Users), &log, options)?;
    println!("  fio beside the same writes: {reads:.0} reads/s");
    Ok(Some(ours.reads / reads))
}

/// Runs SLOB with these parameters and shared servers, in a database that is removed with the
/// result.
fn slob(path: &Path, given: &[(&str, &str)], servers: usize) -> Result<workload::Ran> {
    let mut work = Work::of(&SLOB);
    for (name, value) in given {
        work.set(name, value).map_err(anyhow::Error::msg)?;
    }
    let places = Places::in_one(path);
    let devices = places.describe()?;
    let request = workload::Request {
        work: &work,
        settings: settings(&[("data_files", "1"), ("shared_servers", &servers.to_string())])?,
        places: &places,
        devices: &devices,
        command_line: "bench slob",
    };
    Ok(workload::run(request, Cancel::default(), &Silent)?)
}

/// Work of a run per second.
struct Streams {
    reads: f64,
    writes: f64,
    log_writes: f64,
    log_bytes: f64,
    cpu_micros: f64,
}

impl Streams {
    fn of(record: &Record) -> Streams {
        let seconds = record.header.elapsed_ns as f64 / 1e9;
        let statistic = |name: &str| {
            let found = record.statistics.iter().find(|row| row.name == name);
            found.map_or(0.0, |row| row.total as f64 / seconds)
        };
        let log = record.io_functions.iter().find(|row| row.function == IoStream::LogWrites.name());
        let cpu: u64 = record.sessions.iter().map(|session| session.cpu_ns + session.wait_cpu_ns).sum();
        let reads = statistic("physical reads");
        Streams {
            reads,
            writes: statistic("physical writes from cache"),
            log_writes: statistic("redo writes"),
            log_bytes: log.map_or(0.0, |log| log.writes.bytes as f64 / seconds),
            cpu_micros: cpu as f64 / 1000.0 / seconds / reads.max(1.0),
        }
    }

    fn shown(&self) -> String {
        format!(
            "{:.0} reads/s, {:.0} writes/s, {:.0} log writes/s of {:.0} KB, {:.1} us of CPU a read with all that goes with it",
            self.reads,
            self.writes,
            self.log_writes,
            self.log_bytes / self.log_writes.max(1.0) / 1024.0,
            self.cpu_micros
        )
    }
}

/// Rows of the table of the checkpoint.
const ROWS: u64 = 12_000;

/// Dirty blocks of a large cache, written by a checkpoint, against as many random writes of fio.
pub(super) fn checkpoint(options: &Options, home: &Path, beside_fio: bool) -> Result<()> {
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..options.rounds {
        let given = [
            ("data_files", "1"),
            ("db_cache_size", "256M"),
            ("log_file_size", "512M"),
            ("log_buffer", "32M"),
        ];
        let sizes = InitialSizes { users: Bytes(160 << 20), temp: Bytes(1), indx: Bytes(8 << 20) };
        let instance = Instance::create(
            &Layout::in_one(home.to_path_buf()),
            settings(&given)?,
            sizes,
            Cancel::default(),
        )?;
        let rate = checkpoint_rate(&instance)?;
        rates.push(rate);
        if beside_fio {
            let file = instance.tablespace(Purpose::Users).files[0].file.path().to_path_buf();
            let arguments = [
                fio::NAME,
                "--rw=randwrite",
                "--bs=8k",
                "--iodepth=128",
                "--ioengine=io_uring",
                "--number_ios=6000",
                "--end_fsync=1",
            ];
            let mut arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            arguments.push(format!("--filename={}", file.display()));
            let answer = fio_jobs(&arguments)?;
            let job = answer.jobs.first().context("fio told of no job")?;
            ratios.push(rate / job.write.iops);
        }
        instance.destroy()?;
    }
    println!("checkpoint: {} blocks/s, its log writes and syncs included", Figure::of(rates).show(0));
    if !ratios.is_empty() {
        println!(
            "checkpoint over fio's random writes: {}; goal: at least 0.95",
            Figure::of_ratios(ratios).show(3)
        );
    }
    Ok(())
}

/// Makes a table of [`ROWS`] rows, a block each, in a drawn order of keys, with an index, on disk.
fn loaded(transactions: &Transactions<'_>, session: &Session) -> Result<Rows> {
    let rows = Rows::new(transactions.row_bytes_max());
    transactions.create_table(session, "CF1", rows.schema(), &[])?;
    let mut connection = transactions.connect(session);
    let mut keys: Vec<u64> = (1..=ROWS).collect();
    Generator::new(9).shuffle(&mut keys);
    let (mut texts, mut batch) = (Texts::new(4), RowBatch::new());
    let mut transaction = connection.begin();
    for keys in keys.chunks(64) {
        batch.clear();
        keys.iter().for_each(|key| rows.push(&mut texts, *key, &mut batch));
        transaction.insert_rows("CF1", &batch)?;
        transaction.commit_and_chain()?;
    }
    drop(transaction);
    let columns = vec![("CUSTID".to_string(), false)];
    transactions.create_index(
        session,
        "CF1",
        &IndexDefinition { name: "I".into(), columns, unique: false },
    )?;
    transactions.checkpoint(session)?;
    Ok(rows)
}

/// Blocks a second that a checkpoint writes, where every second block of a table is dirty.
fn checkpoint_rate(instance: &Instance) -> Result<f64> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    let rows = loaded(&transactions, &session)?;
    make_dirty(&transactions, &session, &rows)?;
    let before = instance.recorder.snapshot().statistic(Statistic::PhysicalWritesFromCache);
    let begin = now();
    transactions.checkpoint(&session)?;
    let seconds = now().saturating_sub(begin).seconds();
    let written = instance.recorder.snapshot().statistic(Statistic::PhysicalWritesFromCache) - before;
    Ok(written as f64 / seconds)
}

/// Changes every second row, each in a block of its own, so that no two writes adjoin.
fn make_dirty(transactions: &Transactions<'_>, session: &Session, rows: &Rows) -> Result<()> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    for key in (1..ROWS).step_by(2) {
        let number = |key: u64| Value::Number(Number::new(i128::from(key), 0).expect("small"));
        transaction.update_range(("CF1", "I"), (&[number(key)], &[number(key + 1)]), |_, values| {
            values[1] = Value::Text("z".repeat(rows.text_bytes()));
        })?;
        transaction.commit_and_chain()?;
    }
    Ok(())
}

/// Measures sessions that read blocks past the cache while a checkpoint runs.
pub(super) fn reads_beside_a_checkpoint(options: &Options, home: &Path) -> Result<()> {
    let table = TableOfBlocks::create(home, Bytes(512 << 20), "64M")?;
    let readers = Readers { sessions: options.sessions, shared_servers: 0, check: BlockCheck::Whole };
    let [mut alone, mut beside, mut times] = [const { Vec::new() }; 3];
    {
        let session = table.instance.recorder.session(Role::User);
        let transactions = Transactions::open(&table.instance, &session)?;
        let rows = loaded(&transactions, &session)?;
        for _ in 0..options.rounds {
            let without = missed_reads(&table, readers, &for_seconds(1))?;
            make_dirty(&transactions, &session, &rows)?;
            let is_over = AtomicBool::new(false);
            let with = thread::scope(|scope| {
                let checkpoint = scope.spawn(|| {
                    let session = table.instance.recorder.session(Role::User);
                    let result = transactions.checkpoint(&session);
                    is_over.store(true, Relaxed);
                    result
                });
                let with = missed_reads(&table, readers, &|| is_over.load(Relaxed));
                checkpoint.join().expect("no panic")?;
                with
            })?;
            alone.push(without.p99_micros);
            beside.push(with.p99_micros);
            times.push(with.p99_micros / without.p99_micros);
        }
    }
    table.instance.destroy()?;
    println!(
        "reads of {} sessions beside a checkpoint: p99 {} us, without one {} us: {} times",
        options.sessions,
        Figure::of(beside).show(0),
        Figure::of(alone).show(0),
        Figure::of_ratios(times).show(2)
    );
    Ok(())
}

/// Returns the reads a second of fio while it also writes at the rates of a run.
fn fio_streams(ours: &Streams, data: &Path, log: &Path, options: &Options) -> Result<f64> {
    let common = |name: &str, file: &Path| {
        vec![
            format!("--name={name}"),
            format!("--filename={}", file.display()),
            "--time_based".to_string(),
            format!("--runtime={}", options.seconds),
        ]
    };
    let mut arguments = common("reads", data);
    arguments.extend(["--rw=randread", "--bs=8k", "--ioengine=io_uring", "--fixedbufs=1"].map(String::from));
    arguments.push(format!("--iodepth={}", options.sessions));
    arguments.extend(common("writes", data));
    let writes = [
        "--rw=randwrite",
        "--bs=8k",
        "--ioengine=io_uring",
        "--iodepth=128",
        "--iodepth_batch_submit=128",
        "--iodepth_batch_complete_max=128",
    ];
    arguments.extend(writes.map(String::from));
    arguments.push(format!("--rate_iops={}", ours.writes.max(1.0) as u64));
    arguments.extend(common("log", log));
    arguments.extend(["--rw=write", "--ioengine=psync", "--fdatasync=1"].map(String::from));
    let bytes = (ours.log_bytes / ours.log_writes.max(1.0)) as u64 / 512 * 512;
    arguments.push(format!("--bs={}", bytes.max(512)));
    arguments.push(format!("--rate_iops={}", ours.log_writes.max(1.0) as u64));
    let answer = fio_jobs(&arguments)?;
    Ok(answer.jobs.iter().map(|job| job.read.iops).sum())
}
