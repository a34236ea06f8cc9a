//! The costs of commits, the log buffer, an import and a recovery, with the device's own durable
//! write in the same run. Each figure is printed with its goal, and with the load of the machine
//! before and after.
//!
//! - One session: blocks of commits and of bare durable writes in turn, of the same length, method
//!   and kind of file. The median of each block; the difference of neighbours.
//! - Several sessions: commits a second over one session's, and the 99th percentile over the bare
//!   write's median, or over its 99th percentile where the device itself is uneven.
//! - Log insert: threads that append records of 100 bytes, on the null device.
//! - Import: array inserts of 42-byte rows without an index, on the null device, in CPU time.
//! - Torn blocks ([`torn`]): images in the log against writing blocks twice.
//! - Recovery: the redo of such an import on the disk, opened again without a checkpoint; then of
//!   updates of rows in random blocks, and random reads of those blocks.

mod torn;

use super::figure::{Figure, Goal};
use super::machine::load_average;
use super::on;
use anyhow::{Context, Result, bail};
use clap::Args;
use plumb_engine::instance::InitialSizes;
use plumb_engine::parallel::servers;
use plumb_engine::redo::SyncMethod;
use plumb_engine::redo::record::{RecordBytes, RecordKind};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::transaction::{Transaction, Transactions};
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::Cancel;
use plumb_events::{Event, IoStream, Role, Session, Statistic, clock, now};
use plumb_io::{Arena, Channel, Disk, File, IoBuffer, Method, MethodKind, OpenMode, Operation, Request};
use plumb_proof::random::Generator;
use plumb_types::{Column, ColumnType, Number, RowBatch, Schema, Value};
use plumb_units::{BlockAddress, Bytes, FileId, Lsn, Nanos, RowId};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// Commits, and bare writes, at a time.
const TURN: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure; a database is made below it and removed.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Pairs of blocks of commits and bare writes.
    #[arg(long, default_value_t = 12)]
    blocks: usize,
    /// Commits in each of the blocks.
    #[arg(long, default_value_t = 1000)]
    commits: usize,
    /// Sessions of the group commit.
    #[arg(long, default_value_t = 32)]
    sessions: usize,
    /// Threads that these share, where they do.
    #[arg(long, default_value_t = 1)]
    shared_servers: usize,
    /// Parts: commits, recovery, inserts, import, torn; all when none is named.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rows of the import: a recovery of fewer is mostly the opening, and more than 6 million do
    /// not fit the cache.
    #[arg(long, default_value_t = 5_000_000)]
    rows: u64,
}

pub fn run(options: &Options) -> Result<()> {
    println!("load before: {}", load_average());
    let result = measure(options);
    println!("load after: {}", load_average());
    result
}

fn measure(options: &Options) -> Result<()> {
    let home = options.path.join(format!("plumb-bench-redo-{}", std::process::id()));
    let parts: [(&str, &dyn Fn() -> Result<()>); 5] = [
        ("commits", &|| commits(options, &home)),
        ("recovery", &|| recovery(options, &home)),
        ("inserts", &inserts),
        ("import", &|| import(options)),
        ("torn", &|| torn::torn(&home, options.rows, options.blocks)),
    ];
    let names = parts.map(|(name, _)| name);
    if let Some(unknown) = options.only.iter().find(|part| !names.contains(&part.as_str())) {
        bail!("--only {unknown}: expected one of {}", names.join(", "));
    }
    let wanted = |part: &str| options.only.is_empty() || options.only.iter().any(|only| only == part);
    let result = parts.into_iter().filter(|(part, _)| wanted(part)).try_for_each(|(_, measure)| measure());
    let _ = std::fs::remove_dir_all(&home);
    result
}

fn database(home: &Path, settings: &[(&str, &str)]) -> Result<Instance> {
    let mut all = Settings::default();
    for (name, value) in settings {
        all.set(name, value, "bench redo")?;
    }
    let sizes = InitialSizes { users: Bytes(256 << 20), temp: Bytes(1 << 20), indx: Bytes(8 << 20) };
    Ok(Instance::create(&Layout::in_one(home.to_path_buf()), all, sizes, Cancel::default())?)
}

fn create_table(transactions: &Transactions<'_>, session: &Session) -> Result<()> {
    let column = |name: &str, column_type| Column::required(name, column_type);
    let columns = vec![
        column("A", ColumnType::NUMBER),
        column("B", ColumnType::NUMBER),
        column("C", ColumnType::Text { max_bytes: 100 }),
    ];
    Ok(transactions.create_table(session, "T", &Schema::new(columns)?, &[])?)
}

/// Rows of 42 bytes, header and lengths included.
fn rows(count: u64) -> RowBatch {
    let mut images = RowBatch::new();
    for row in 0..count {
        images.begin_row(3);
        let number = |value: u64| Value::Number(Number::new(i128::from(value), 0).expect("small"));
        images.push_value(&number(10_000_001 + row % 1000));
        images.push_value(&number(20_000_001 + row % 7919));
        let used = 3 + 2 * 6 + 1;
        images.push_text(&"a value that is text of some length"[..42 - used]);
        images.end_row();
    }
    images
}

/// The same as a log write: to a file of zeros, at the next place, durable.
struct Bare {
    file: Arc<File>,
    channel: Channel,
    buffer: Option<IoBuffer>,
    offset: u64,
    method: SyncMethod,
}

impl Bare {
    const BYTES: u64 = 64 << 20;

    fn new(instance: &Instance, session: &Session, home: &Path, method: SyncMethod) -> Result<Bare> {
        let path = home.join("bare.log");
        // That of the database before, if there was one.
        let _ = std::fs::remove_file(&path);
        let file = Disk::Kernel.open(&path, OpenMode::Create, instance.access.direct)?;
        let mut bare = Bare {
            file: Arc::new(file),
            channel: Method::start(MethodKind::Sync, 1)?.channel(&[])?,
            buffer: Some(Arena::buffers(1 << 20, 1)?.1.remove(0)),
            offset: 0,
            method: SyncMethod::Fdatasync,
        };
        for _ in 0..Bare::BYTES >> 20 {
            bare.write(session, 1 << 20)?;
        }
        let (direct, durability) = (instance.access.direct, method.durability());
        let file = Disk::Kernel.open_durable(&path, OpenMode::Write, direct, durability)?;
        Ok(Bare { file: Arc::new(file), method, ..bare })
    }

    fn write(&mut self, session: &Session, bytes: usize) -> Result<u64> {
        if self.offset + bytes as u64 > Bare::BYTES {
            self.offset = 0;
        }
        let request = Request {
            operation: self.method.operation(),
            file: Arc::clone(&self.file),
            offset: self.offset,
            buffer: self.buffer.take().context("a write before failed")?,
            range: 0..bytes,
            event: Event::LogFileParallelWrite,
            stream: IoStream::ProbeWrites,
            tag: 0,
        };
        let begin = now();
        self.channel.submit(session, request)?;
        self.buffer = Some(self.channel.wait(session, Event::LogFileParallelWrite)?.buffer);
        self.offset += bytes as u64;
        Ok(now().saturating_sub(begin).0)
    }
}

fn percentile(mut values: Vec<u64>, share: f64) -> f64 {
    values.sort_unstable();
    values[(values.len() as f64 * share) as usize] as f64 / 1000.0
}

fn commits(options: &Options, home: &Path) -> Result<()> {
    let instance = database(home, &[("log_file_size", "64M"), ("db_cache_size", "64M")])?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    create_table(&transactions, &session)?;
    let sync = transactions.log().sync();
    println!("log_sync_method: {} ({})", sync.method.name(), sync.reason);
    let mut bare = Bare::new(&instance, &session, home, sync.method)?;
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    let image = rows(1);
    let counted = |statistic: Statistic| -> u64 {
        instance.recorder.snapshot().sessions.iter().map(|it| it.statistics[statistic as usize]).sum()
    };
    transaction.insert_rows("T", &image)?;
    transaction.commit_and_chain()?;
    let before = [Statistic::RedoSize, Statistic::RedoBlocksWritten, Statistic::RedoWrites].map(counted);
    transaction.insert_rows("T", &image)?;
    transaction.commit_and_chain()?;
    let after = [Statistic::RedoSize, Statistic::RedoBlocksWritten, Statistic::RedoWrites].map(counted);
    let [redo, blocks, writes] = [0, 1, 2].map(|at| after[at] - before[at]);
    let bytes = blocks as usize * 512;
    println!(
        "a row and its commit: {redo} bytes of redo, {writes} write of {bytes} bytes ({})",
        instance.access.direct_reason
    );
    let mut pairs = Pairs::default();
    for block in 0..options.blocks {
        let mut commit_times = Vec::with_capacity(options.commits);
        let mut bare_times = Vec::with_capacity(options.commits);
        // In turn, a few at a time, because the device of a rented machine changes within a second.
        for turn in 0..2 * options.commits / TURN {
            if (turn + block) % 2 == 0 {
                for _ in 0..TURN {
                    bare_times.push(bare.write(&session, bytes)?);
                }
            } else {
                for _ in 0..TURN {
                    transaction.insert_rows("T", &image)?;
                    let begin = now();
                    transaction.commit_and_chain()?;
                    commit_times.push(now().saturating_sub(begin).0);
                }
            }
        }
        pairs.add(commit_times, bare_times);
    }
    pairs.print();
    drop(transaction);
    drop(connection);
    drop(transactions);
    drop(session);
    instance.destroy()?;
    [0, options.shared_servers].into_iter().try_for_each(|servers| group_commits(options, home, servers))
}

/// Commits of several sessions on shared servers, of one session, and bare writes, in turn. With no
/// servers each session has a thread.
fn group_commits(options: &Options, home: &Path, servers: usize) -> Result<()> {
    let shared = servers.to_string();
    let settings = [("log_file_size", "64M"), ("db_cache_size", "64M"), ("shared_servers", shared.as_str())];
    let instance = database(home, &settings)?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    create_table(&transactions, &session)?;
    let sync = transactions.log().sync();
    println!("{}: {} ({})", on(servers), sync.method.name(), sync.reason);
    let mut bare = Bare::new(&instance, &session, home, sync.method)?;
    let log_writes = || {
        let place = Statistic::RedoWrites as usize;
        instance.recorder.snapshot().sessions.iter().map(|session| session.statistics[place]).sum()
    };
    groups(options, servers, &transactions, &log_writes, &mut |count| {
        let times = (0..count).map(|_| bare.write(&session, 512)).collect::<Result<Vec<u64>>>()?;
        Ok((percentile(times.clone(), 0.5), percentile(times, 0.99)))
    })?;
    drop(transactions);
    drop(session);
    Ok(instance.destroy()?)
}

/// Medians of blocks of commits, and of the bare writes that alternate with them, in microseconds.
#[derive(Default)]
struct Pairs {
    commits: Vec<f64>,
    bare: Vec<f64>,
    differences: Vec<f64>,
}

impl Pairs {
    fn add(&mut self, commits: Vec<u64>, bare: Vec<u64>) {
        let (commit, bare) = (percentile(commits, 0.5), percentile(bare, 0.5));
        self.differences.push(commit - bare);
        self.commits.push(commit);
        self.bare.push(bare);
    }

    fn print(&self) {
        let bare = Figure::of(&self.bare);
        let allowed = (0.02 * bare.value).max(3.0);
        println!("bare durable write: {} us", bare.show(1));
        println!("commit, one session: {} us", Figure::of(&self.commits).show(1));
        let difference = Figure::of(&self.differences);
        println!(
            "difference: {} us; goal: at most {allowed:.1} us (3 us or 2%): {}",
            difference.show(1),
            difference.verdict(Goal::AtMost, allowed)
        );
    }
}

/// Blocks of bare writes, of commits of one session and of several, in turn. `bare` gives the
/// median and the 99th percentile of a number of writes, `log_writes` the number of writes of the
/// log.
fn groups(
    options: &Options,
    servers: usize,
    transactions: &Transactions<'_>,
    log_writes: &dyn Fn() -> u64,
    bare: &mut dyn FnMut(usize) -> Result<(f64, f64)>,
) -> Result<()> {
    let [mut times, mut rates, mut medians, mut p99s] = [const { Vec::new() }; 4];
    let [mut bares, mut bare_p99s, mut shared, mut cpu] = [const { Vec::new() }; 4];
    for _ in 0..options.blocks {
        let (bare, bare_p99) = bare(options.commits)?;
        let one = group(transactions, 1, 0, options.commits)?;
        let (writes, used) = (log_writes(), clock::process_cpu());
        let commits = options.commits * 8;
        let many = group(transactions, options.sessions, servers, commits)?;
        shared.push(commits as f64 / (log_writes() - writes) as f64);
        cpu.push(clock::process_cpu().saturating_sub(used).seconds() * 1e6 / commits as f64);
        times.push(many.0 / one.0);
        rates.push(many.0);
        medians.push(many.1);
        p99s.push(many.2);
        bares.push(bare);
        bare_p99s.push(bare_p99);
    }
    let sessions = format!("{} sessions {}", options.sessions, on(servers));
    let [bare, bare_p99] = [bares, bare_p99s].map(|values| Figure::of(values).value);
    println!(
        "{sessions}: {} commits/s, {} of them a write, {} us of CPU each",
        Figure::of(rates).show(0),
        Figure::of(shared).show(1),
        Figure::of(cpu).show(1)
    );
    println!(
        "{sessions}: {} times the commits/s of one session beside them; goal: at least {} (the bare write takes {bare:.0} us)",
        Figure::of_ratios(times).show(1),
        if bare >= 100.0 { 10 } else { 5 },
    );
    let allowed = if bare_p99 < 1.25 * bare { 2.5 * bare } else { 2.0 * bare_p99 };
    println!(
        "{sessions}: median {} us, p99 {} us; goal: p99 at most {allowed:.0} us (the bare write's median is {bare:.0}, its p99 {bare_p99:.0})",
        Figure::of(medians).show(0),
        Figure::of(p99s).show(0),
    );
    Ok(())
}

/// Commits a second, and their median and 99th percentile in microseconds.
fn group(
    transactions: &Transactions<'_>,
    sessions: usize,
    servers: usize,
    commits: usize,
) -> Result<(f64, f64, f64)> {
    let instance = transactions.instance();
    let coordinator = instance.recorder.session(Role::Coordinator);
    let operation = instance.operation().sharing(instance.sharing(servers));
    let (left, begin) = (&AtomicU64::new(commits as u64), &AtomicU64::new(u64::MAX));
    let work = move |session: &Session, _: usize| {
        let mut connection = transactions.connect(session);
        let mut transaction = connection.begin();
        let image = rows(1);
        let mut times = Vec::new();
        // What it takes to start them all is not a commit's.
        begin.fetch_min(now().0, Relaxed);
        while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            transaction.insert_rows("T", &image)?;
            let begin = now();
            transaction.commit_and_chain()?;
            times.push(now().saturating_sub(begin).0);
        }
        Ok(times)
    };
    let times = thread::scope(|scope| {
        servers::join(&coordinator, servers::start_sessions(scope, &operation, sessions, work))
    });
    operation.outcome()?;
    let seconds = now().saturating_sub(Nanos(begin.load(Relaxed))).seconds();
    // The first commit of each waits for all to have begun, which is no commit's time either.
    let later = |times: Vec<u64>| times.into_iter().skip(1);
    let all: Vec<u64> = times.into_iter().flatten().flatten().flat_map(later).collect();
    Ok((commits as f64 / seconds, percentile(all.clone(), 0.5), percentile(all, 0.99)))
}

fn inserts() -> Result<()> {
    const RECORDS: u64 = 10_000_000;
    for (threads, buffer) in [(1, "8M"), (2, "8M"), (1, "64M"), (2, "64M")] {
        let settings = [("io_method", "null"), ("log_file_size", "256M"), ("log_buffer", buffer)];
        let instance = database(Path::new("/null"), &settings)?;
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session)?;
        let work = || -> Result<()> {
            let session = instance.recorder.session(Role::User);
            let log = transactions.log();
            let mut record = RecordBytes::default();
            record.begin(RecordKind::Change, 0, Lsn(0), &[7; 72]);
            let record = record.finish();
            for _ in 0..RECORDS / threads {
                loop {
                    if let Some(mut admission) = log.admit(record.len(), 0) {
                        let gate = log.enter();
                        log.append(&session, record)?;
                        drop(gate);
                        admission.spend(record.len());
                        break;
                    }
                    transactions.checkpoint(&session)?;
                }
            }
            Ok(())
        };
        let all = || {
            thread::scope(|scope| -> Result<()> {
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
            })
        };
        // The memory of the null device is touched for the first time.
        all()?;
        let begin = now();
        all()?;
        transactions.log().make_durable(&session, transactions.log().end())?;
        let seconds = now().saturating_sub(begin).0 as f64 / 1e9;
        println!(
            "log insert, {threads} threads, log_buffer {buffer}: {:.2} GB/s, {:.1} million records of 104 bytes a second; goal: 2 GB/s from two",
            RECORDS as f64 * 104.0 / seconds / 1e9,
            RECORDS as f64 / seconds / 1e6
        );
    }
    Ok(())
}

fn load(transactions: &Transactions<'_>, session: &Session, count: u64) -> Result<()> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let images = rows(10_000);
    for _ in 0..count / 10_000 {
        transaction.insert_rows("T", &images)?;
        transaction.commit_and_chain()?;
    }
    Ok(())
}

fn import(options: &Options) -> Result<()> {
    let settings = [("io_method", "null"), ("log_file_size", "256M"), ("db_cache_size", "512M")];
    let instance = database(Path::new("/null"), &settings)?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    create_table(&transactions, &session)?;
    load(&transactions, &session, 100_000)?;
    let cpu = clock::process_cpu();
    load(&transactions, &session, options.rows)?;
    let seconds = clock::process_cpu().saturating_sub(cpu).0 as f64 / 1e9;
    println!(
        "import on the null device: {:.2} million rows a second of CPU; goal: 1 million",
        options.rows as f64 / seconds / 1e6
    );
    Ok(())
}

fn recovery(options: &Options, home: &Path) -> Result<()> {
    let instance = database(home, &RECOVERY)?;
    {
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session)?;
        create_table(&transactions, &session)?;
        let begin = now();
        load(&transactions, &session, options.rows)?;
        let seconds = now().saturating_sub(begin).0 as f64 / 1e9;
        println!(
            "import on the disk: {:.2} million rows/s, commits of 10,000",
            options.rows as f64 / seconds / 1e6
        );
    }
    drop(instance);
    let (instance, recovered, touched) = recover(home, update_at_random)?;
    println!(
        "recovery of an import: {recovered}: {:.0} MB/s; goal: 500 MB/s",
        recovered.redo_bytes / 1e6 / recovered.seconds
    );
    let rate = device_rate(&instance, &touched)?;
    drop(instance);
    let (instance, recovered, ()) = recover(home, |_, _| Ok(()))?;
    println!(
        "recovery of random updates: {recovered}: {:.0} blocks/s, {:.2} of the {rate:.0}/s at which the device reads them, 32 at a time; goal: 0.90",
        recovered.blocks / recovered.seconds,
        recovered.blocks / recovered.seconds / rate
    );
    Ok(instance.destroy()?)
}

const RECOVERY: [(&str, &str); 3] =
    [("log_file_size", "256M"), ("db_cache_size", "512M"), ("log_buffer", "16M")];

/// The work of a recovery.
struct Recovered {
    redo_bytes: f64,
    records: u64,
    blocks: f64,
    seconds: f64,
    cpu: f64,
}

impl std::fmt::Display for Recovered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Recovered { redo_bytes, records, blocks, seconds, cpu } = self;
        let megabytes = redo_bytes / 1e6;
        write!(
            out,
            "{megabytes:.0} MB of redo, {records} records, {blocks} blocks in {seconds:.2} s ({cpu:.2} s of CPU)"
        )
    }
}

/// Opens what was left open, and does `work` in it.
fn recover<T>(
    home: &Path,
    work: impl FnOnce(&Transactions<'_>, &Session) -> Result<T>,
) -> Result<(Instance, Recovered, T)> {
    let instance = Instance::open(home, super::settings(&RECOVERY, &[])?, Cancel::default())?;
    let (recovered, done) = {
        let session = instance.recorder.session(Role::User);
        let (begin, cpu) = (now(), clock::process_cpu());
        let transactions = Transactions::open(&instance, &session)?;
        let (end, cpu) = (now(), clock::process_cpu().saturating_sub(cpu));
        let recovered = transactions.recovered();
        let recovered = Recovered {
            redo_bytes: recovered.redo_bytes as f64,
            records: recovered.record_count,
            blocks: recovered.block_count as f64,
            seconds: end.saturating_sub(begin).seconds(),
            cpu: cpu.seconds(),
        };
        (recovered, work(&transactions, &session)?)
    };
    Ok((instance, recovered, done))
}

/// The first row of each block, in the order of the blocks.
fn one_row_a_block(transaction: &mut Transaction<'_, '_>) -> Result<Vec<RowId>> {
    let mut rows: Vec<RowId> = Vec::new();
    transaction.scan("T", |row| {
        if rows.last().is_none_or(|last| last.address() != row.id.address()) {
            rows.push(row.id);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Updates a row of every second block, in random order, after a checkpoint. Gives the blocks.
fn update_at_random(transactions: &Transactions<'_>, session: &Session) -> Result<Vec<BlockAddress>> {
    transactions.checkpoint(session)?;
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let mut rows = one_row_a_block(&mut transaction)?;
    Generator::new(1).shuffle(&mut rows);
    rows.truncate(rows.len() / 2);
    for (number, row) in rows.iter().enumerate() {
        let changed = transaction.update("T", *row, |values| values.swap(0, 1))?;
        anyhow::ensure!(changed == *row, "a row that stays as long stays where it is");
        if number % 100 == 99 {
            transaction.commit_and_chain()?;
        }
    }
    transaction.commit()?;
    Ok(rows.into_iter().map(RowId::address).collect())
}

/// Blocks a second that the device gives of these, in random order, 32 at a time.
fn device_rate(instance: &Instance, blocks: &[BlockAddress]) -> Result<f64> {
    const DEPTH: usize = 32;
    let users = instance.tablespace(Purpose::Users);
    let bytes = users.block_size.bytes();
    let session = instance.recorder.session(Role::User);
    let (arena, mut buffers) = Arena::buffers(bytes, DEPTH)?;
    let mut files: Vec<(FileId, Arc<File>)> = Vec::new();
    for address in blocks {
        if !files.iter().any(|(id, _)| *id == address.file) {
            let file = Disk::Kernel.open(users.path(*address), OpenMode::Read, instance.access.direct)?;
            files.push((address.file, Arc::new(file)));
        }
    }
    let open: Vec<&Arc<File>> = files.iter().map(|(_, file)| file).collect();
    let mut channel = Method::start(MethodKind::IoUring, DEPTH)?.channel_to(&open, &[&arena])?;
    let begin = now();
    let mut in_flight = 0;
    for address in blocks {
        let buffer = match buffers.pop() {
            Some(buffer) => buffer,
            None => {
                in_flight -= 1;
                channel.wait(&session, Event::DbFileSequentialRead)?.buffer
            }
        };
        let file = files.iter().find(|(id, _)| *id == address.file).context("opened above")?;
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(&file.1),
            offset: u64::from(address.block.0) * bytes as u64,
            buffer,
            range: 0..bytes,
            event: Event::DbFileSequentialRead,
            stream: IoStream::Probe,
            tag: 0,
        };
        channel.submit(&session, request)?;
        in_flight += 1;
    }
    for _ in 0..in_flight {
        channel.wait(&session, Event::DbFileSequentialRead)?;
    }
    Ok(blocks.len() as f64 / now().saturating_sub(begin).seconds())
}
