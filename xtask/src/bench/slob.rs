//! What a buffer cache costs, beside the device: reads that miss, hits, scans beside a hot set, updates, checkpoints.
//!
//! - Missed reads: sessions that each read random blocks through the cache, and one fio job (io_uring, as many outstanding) on the same file, in turns
//!   whose order is drawn. Rates a physical read, 99th percentiles, CPU a read.
//! - One session: reads through the cache and bare ones of its own channel, ten at a time in turn. The difference of their medians.
//! - Hit: pin and unpin of blocks that are there, one thread.
//! - Scan: the hit ratio of a hot set of half the cache, alone and beside a scan of ten times the cache; and how soon a new hot set is admitted.
//! - Updates: SLOB at 20%, and fio with the same three streams on the same files: reads as many as there are sessions, writes and log writes at the rates
//!   that the engine had. What is compared is the rate of reads.
//! - Checkpoint: dirty blocks of a large cache written by one, against fio's random writes of as many blocks.
//!
//! Each figure stands beside the goal that it is held against, and the load of the machine before and after: on one that does other things
//! a figure of one side is worth little, a ratio of neighbours more.

use super::machine::load_average;
use super::{Spread, fio, order};
use anyhow::{Context, Result, ensure};
use clap::Args;
use plumb_engine::cache::CacheReader;
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::storage::block::Expected;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::load;
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::{Event, IoStream, LatencyHistogram, Role, Session, SessionKind, Statistic, clock, now};
use plumb_io::{Arena, Operation, Request};
use plumb_lab::place::Places;
use plumb_lab::record::Record;
use plumb_lab::{Observer, Stage, workload};
use plumb_proof::random::Generator;
use plumb_types::{Number, RowBatch, Value};
use plumb_units::{BlockAddress, Bytes, Nanos};
use plumb_workload::slob::{Rows, SLOB, Texts};
use plumb_workload::{SalesSpec, SalesTable, Work};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

/// How much, and where.
#[derive(Debug, Args)]
pub struct Options {
    /// A directory on the disk to measure; databases are made below it and removed.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Bytes of the file that is read.
    #[arg(long, default_value = "1G", value_parser = parse_bytes)]
    size: Bytes,
    /// Turns of each side.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of a turn.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Sessions that read, and requests that fio keeps outstanding.
    #[arg(long, default_value_t = 32)]
    sessions: usize,
    /// The larger cache whose hits are timed, beside one of 16M.
    #[arg(long, default_value = "1G", value_parser = parse_bytes)]
    large_cache: Bytes,
    /// Which parts: reads, one, hit, scan, updates, checkpoint; all when none is named.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    plumb_units::parse_size(text).map(Bytes).map_err(|error| error.to_string())
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<()> {
    println!("load before: {}", load_average());
    let home = options.path.join(format!("plumb-bench-slob-{}", std::process::id()));
    let result = measure(options, &home);
    let _ = std::fs::remove_dir_all(&home);
    println!("load after: {}", load_average());
    result
}

fn measure(options: &Options, home: &Path) -> Result<()> {
    let wanted = |part: &str| options.only.is_empty() || options.only.iter().any(|only| only == part);
    let fio = fio::version()?;
    match &fio {
        Some(version) => println!("{version}"),
        None => println!(
            "there is no fio in PATH to stand beside (apt-get install fio): its columns are left out"
        ),
    }
    if ["reads", "one", "hit", "scan"].into_iter().any(wanted) {
        let table = TableOfBlocks::create(home, options.size, "16M")?;
        if wanted("reads") {
            reads(options, &table, fio.is_some())?;
        }
        if wanted("one") {
            one(options, &table)?;
        }
        if wanted("hit") {
            hit(&table)?;
        }
        if wanted("scan") {
            scan(&table)?;
        }
        table.instance.destroy()?;
    }
    if wanted("hit") {
        let table = TableOfBlocks::create(home, options.large_cache, &options.large_cache.as_setting())?;
        hit(&table)?;
        table.instance.destroy()?;
    }
    if wanted("updates") {
        updates(options, fio.is_some())?;
    }
    if wanted("checkpoint") {
        checkpoint(options, home, fio.is_some())?;
    }
    Ok(())
}

/// A table in one file, written past the cache, with the addresses of its blocks.
struct TableOfBlocks {
    instance: Instance,
    blocks: Vec<BlockAddress>,
    expected: Expected,
    file: PathBuf,
}

fn settings(given: &[(&str, &str)]) -> Result<Settings> {
    super::settings(given, &[])
}

impl TableOfBlocks {
    fn create(home: &Path, size: Bytes, cache: &str) -> Result<TableOfBlocks> {
        let settings = settings(&[("data_files", "1"), ("db_cache_size", cache)])?;
        let users = Bytes(size.0 + size.0 / 10 + 64 * Bytes::M);
        let sizes = InitialSizes { users, temp: Bytes(1), indx: Bytes(1) };
        let instance =
            Instance::create(&Layout::in_one(home.to_path_buf()), settings, sizes, Cancel::default())?;
        // 46 bytes a row, its slot included.
        load(&instance, "SALES", &SalesTable::new(SalesSpec { rows: size.0 / 46, seed: 7 }))?;
        let (blocks, expected) = {
            let catalog = instance.catalog();
            let table = catalog.table("SALES")?;
            let of = |piece: &plumb_engine::storage::control::SegmentExtent| {
                let extent = piece.extent;
                (0..piece.used).map(move |block| extent.address(block)).collect::<Vec<_>>()
            };
            (table.extents.iter().flat_map(of).collect(), table.expected())
        };
        let file = instance.tablespace(Purpose::Users).files[0].file.path().to_path_buf();
        Ok(TableOfBlocks { instance, blocks, expected, file })
    }
}

/// Reads a second, their 99th percentile and the CPU of one.
#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    p99_micros: f64,
    cpu_micros: f64,
}

fn reads(options: &Options, table: &TableOfBlocks, beside_fio: bool) -> Result<()> {
    let mut sides: [Vec<Rate>; 2] = Default::default();
    let mut random = Generator::new(18);
    for _ in 0..options.rounds {
        for side in order(&mut random, if beside_fio { 2 } else { 1 }) {
            sides[side].push(match side {
                0 => missed_reads(options, table, options.sessions)?,
                _ => fio_reads(&table.file, options.sessions, options.seconds)?,
            });
        }
    }
    let show = |name: &str, rates: &[Rate]| {
        let of = |figure: fn(&Rate) -> f64| Spread::of(rates.iter().map(figure).collect());
        println!(
            "{name}: {} reads/s, p99 {} us, {} us of CPU a read",
            of(|rate| rate.per_second).show(0),
            of(|rate| rate.p99_micros).show(0),
            of(|rate| rate.cpu_micros).show(2)
        );
    };
    show(&format!("{} sessions through the cache", options.sessions), &sides[0]);
    if !beside_fio {
        return Ok(());
    }
    show(&format!("fio, {} outstanding", options.sessions), &sides[1]);
    let ratio = |figure: fn(&Rate) -> f64| {
        Spread::of(
            sides[0].iter().zip(&sides[1]).map(|(ours, theirs)| figure(ours) / figure(theirs)).collect(),
        )
    };
    println!("rate over fio's: {}; goal: at least 0.97", ratio(|rate| rate.per_second).show(3));
    println!("p99 over fio's: {}; goal: at most 1.10", ratio(|rate| rate.p99_micros).show(2));
    println!("CPU a read over fio's: {}; goal: at most 1.5", ratio(|rate| rate.cpu_micros).show(2));
    Ok(())
}

/// Sessions that read random blocks for some seconds.
fn missed_reads(options: &Options, table: &TableOfBlocks, sessions: usize) -> Result<Rate> {
    let instance = &table.instance;
    let before = instance.recorder.snapshot();
    let (begin, cpu) = (now(), clock::process_cpu());
    let end = begin + Nanos(options.seconds * 1_000_000_000);
    let work = |number: u64| -> Result<()> {
        let session = instance.recorder.session(Role::User);
        let mut reader = CacheReader::new(&session, instance.caches())?;
        let mut random = Generator::new(number * 977 + begin.0);
        while now() < end {
            for _ in 0..16 {
                let block = table.blocks[random.below(table.blocks.len())];
                reader.get(Purpose::Users, block, table.expected)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..sessions as u64).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    let seconds = now().saturating_sub(begin).seconds();
    let cpu = clock::process_cpu().saturating_sub(cpu);
    let period = instance.recorder.snapshot().since(&before);
    let waits = period.event(Event::DbFileSequentialRead, SessionKind::Foreground);
    let count = waits.count as f64;
    let latency = waits.latency.unwrap_or_default();
    Ok(Rate {
        per_second: count / seconds,
        p99_micros: latency.quantile(0.99).0 as f64 / 1000.0,
        cpu_micros: cpu.0 as f64 / 1000.0 / count,
    })
}

/// The difference between a read through the cache and a bare one.
fn one(options: &Options, table: &TableOfBlocks) -> Result<()> {
    const TURN: usize = 10;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches())?;
    let tablespace = instance.tablespace(Purpose::Users);
    let (arena, mut buffers) = Arena::buffers(tablespace.block_size.bytes(), 1)?;
    let mut channel = instance.access.method.channel(&[&arena])?;
    let mut buffer = buffers.pop();
    let mut random = Generator::new(5);
    let mut draw = || table.blocks[random.below(table.blocks.len())];
    let mut sides: [LatencyHistogram; 2] = Default::default();
    let mut differences = Vec::new();
    for _ in 0..options.rounds {
        let mut times: [Vec<u64>; 2] = Default::default();
        for turn in 0..400 {
            for _ in 0..TURN {
                let block = draw();
                let begin = now();
                if turn % 2 == 0 {
                    reader.get(Purpose::Users, block, table.expected)?;
                } else {
                    let request = Request {
                        operation: Operation::Read,
                        file: Arc::clone(&tablespace.file(block.file)?.file),
                        offset: block.block.byte_offset(tablespace.block_size),
                        buffer: buffer.take().context("a read before failed")?,
                        range: 0..tablespace.block_size.bytes(),
                        event: Event::DbFileSequentialRead,
                        stream: IoStream::Probe,
                        tag: 0,
                    };
                    channel.submit(&session, request)?;
                    buffer = Some(channel.wait(&session, Event::DbFileSequentialRead)?.buffer);
                }
                let took = now().saturating_sub(begin);
                times[turn % 2].push(took.0);
                sides[turn % 2].add(took);
            }
        }
        let median = |mut values: Vec<u64>| {
            values.sort_unstable();
            values[values.len() / 2] as f64 / 1000.0
        };
        let [cached, bare] = times.map(median);
        differences.push(cached - bare);
    }
    let shown = |side: &LatencyHistogram| side.quantile(0.5).0 as f64 / 1000.0;
    println!("one session: {:.1} us through the cache, {:.1} us bare", shown(&sides[0]), shown(&sides[1]));
    println!("one session, over the bare read: {} us; goal: at most 2", Spread::of(differences).show(2));
    Ok(())
}

/// Pin and unpin of blocks that are in the cache, in random order.
fn hit(table: &TableOfBlocks) -> Result<()> {
    const HITS: u64 = 2_000_000;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches())?;
    let frames = instance.caches().own().options().frame_count;
    let resident = &table.blocks[..table.blocks.len().min(frames / 2)];
    for block in resident {
        reader.get(Purpose::Users, *block, table.expected)?;
    }
    let mut random = Generator::new(3);
    // Drawn beforehand: a draw takes as long as part of a hit.
    let drawn: Vec<BlockAddress> = (0..HITS).map(|_| resident[random.below(resident.len())]).collect();
    let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits);
    let begin = now();
    for block in &drawn {
        reader.get(Purpose::Users, *block, table.expected)?;
    }
    let each = now().saturating_sub(begin).0 as f64 / HITS as f64;
    let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - hits;
    let goal = if frames * 8192 <= 64 << 20 { 150 } else { 400 };
    println!(
        "hit in a cache of {}: {each:.0} ns, {:.1}% hits; goal: {goal} ns",
        Bytes(frames as u64 * 8192),
        hits as f64 * 100.0 / HITS as f64
    );
    Ok(())
}

/// A hot set beside a scan.
fn scan(table: &TableOfBlocks) -> Result<()> {
    let instance = &table.instance;
    let frames = instance.caches().own().options().frame_count;
    ensure!(table.blocks.len() > 12 * frames, "the table is smaller than twelve caches: raise --size");
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches())?;
    let (hot, rest) = table.blocks.split_at(frames / 2);
    let scanned = &rest[..10 * frames];
    let pass = |reader: &mut CacheReader<'_>,
                set: &[BlockAddress],
                random: &mut Generator,
                reads: usize|
     -> Result<f64> {
        let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
        for _ in 0..reads {
            reader.get(Purpose::Users, set[random.below(set.len())], table.expected)?;
        }
        let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - before;
        Ok(hits as f64 / reads as f64)
    };
    let mut random = Generator::new(11);
    for _ in 0..3 {
        for block in hot {
            reader.get(Purpose::Users, *block, table.expected)?;
        }
    }
    let alone = pass(&mut reader, hot, &mut random, 20 * frames)?;
    // For each multiblock read of the scan as many reads of the hot set as it has blocks.
    let mut hits = Vec::new();
    let mut scan = scanned;
    while !scan.is_empty() {
        let run =
            scan.windows(2).take(63).take_while(|pair| pair[0].block.plus(1) == pair[1].block).count() + 1;
        let read = reader.read_multiblock(Purpose::Users, scan[0], run as u32, table.expected)?.len();
        hits.push((pass(&mut reader, hot, &mut random, read)?, read));
        scan = &scan[read..];
    }
    let total: usize = hits.iter().map(|(_, reads)| reads).sum();
    let beside = hits.iter().map(|(share, reads)| share * *reads as f64).sum::<f64>() / total as f64;
    println!(
        "hot set of half the cache: hit ratio {alone:.3} alone, {beside:.3} beside a scan of ten times the cache: {:.3} of it; goal: at least 0.95",
        beside / alone
    );
    let new = &rest[11 * frames..11 * frames + frames / 2];
    let passes = (0..3).map(|_| {
        let before = instance.recorder.snapshot().statistic(Statistic::CacheHits);
        for block in new {
            reader.get(Purpose::Users, *block, table.expected)?;
        }
        let hits = instance.recorder.snapshot().statistic(Statistic::CacheHits) - before;
        Ok(hits as f64 / new.len() as f64)
    });
    let passes = passes.collect::<Result<Vec<f64>>>()?;
    let shown: Vec<String> = passes.iter().map(|share| format!("{share:.3}")).collect();
    println!(
        "a new hot set of half the cache: hit ratio {} in its passes; goal: at least 0.95 in the third",
        shown.join(", ")
    );
    Ok(())
}

/// Nobody follows the runs of a benchmark.
struct Silent;

impl Observer for Silent {
    fn stage(&self, _: &Stage<'_>) {}
    fn begins(&self) {}
    fn made(&self, _: &Path) {}
}

/// SLOB at 20%, and fio with its streams.
fn updates(options: &Options, beside_fio: bool) -> Result<()> {
    let mut ratios = Vec::new();
    for round in 0..options.rounds {
        let mut work = Work::of(&SLOB);
        let (sessions, seconds) = (options.sessions.to_string(), options.seconds.to_string());
        let schemas = options.sessions.to_string();
        let given = [
            ("update-pct", "20"),
            ("sessions", &sessions),
            ("schemas", &schemas),
            ("run-time", &seconds),
            ("mix", "iid"),
        ];
        for (name, value) in given {
            work.set(name, value).map_err(anyhow::Error::msg)?;
        }
        let places = Places::in_one(&options.path);
        let devices = places.describe()?;
        let request = workload::Request {
            work: &work,
            settings: settings(&[("data_files", "1")])?,
            places: &places,
            devices: &devices,
            command_line: "bench slob",
        };
        let workload::Ran { record, database, .. } = workload::run(request, Cancel::default(), &Silent)?;
        let ours = Streams::of(&record);
        println!(
            "round {}: {} (checks passed: {})",
            round + 1,
            ours.shown(),
            record.checks.iter().all(|check| check.passed)
        );
        if beside_fio {
            let files =
                |purpose: Purpose| database.instance().tablespace(purpose).files[0].file.path().to_path_buf();
            let log = database.instance().home().join("redo01.log");
            let reads = fio_streams(&ours, (&files(Purpose::Users), &log), options)?;
            println!("  fio beside the same writes: {reads:.0} reads/s");
            ratios.push(ours.reads / reads);
        }
    }
    if !ratios.is_empty() {
        println!(
            "reads over fio's, with the same writes: {}; goal: at least 0.95",
            Spread::of(ratios).show(3)
        );
    }
    Ok(())
}

/// What a run did a second.
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
fn checkpoint(options: &Options, home: &Path, beside_fio: bool) -> Result<()> {
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
    println!("checkpoint: {} blocks/s, its log writes and syncs included", Spread::of(rates).show(0));
    if !ratios.is_empty() {
        println!("checkpoint over fio's random writes: {}; goal: at least 0.95", Spread::of(ratios).show(3));
    }
    Ok(())
}

/// A table of [`ROWS`] rows, a block each, in a drawn order of keys, with an index; all of it on disk.
fn loaded(transactions: &Transactions<'_>, session: &Session) -> Result<Rows> {
    let rows = Rows::new(transactions.row_bytes_max());
    transactions.create_table(session, "CF1", rows.schema(), &[])?;
    let mut connection = transactions.connect(session)?;
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
    let mut connection = transactions.connect(&session)?;
    // Every second block becomes dirty, so that no two writes adjoin.
    let mut transaction = connection.begin();
    for key in (1..ROWS).step_by(2) {
        let number = |key: u64| Value::Number(Number::new(i128::from(key), 0).expect("small"));
        transaction.update_range(("CF1", "I"), (&[number(key)], &[number(key + 1)]), |_, values| {
            values[1] = Value::Text("z".repeat(rows.text_bytes()));
        })?;
        transaction.commit_and_chain()?;
    }
    drop(transaction);
    let before = instance.recorder.snapshot().statistic(Statistic::PhysicalWritesFromCache);
    let begin = now();
    transactions.checkpoint(&session)?;
    let seconds = now().saturating_sub(begin).seconds();
    let written = instance.recorder.snapshot().statistic(Statistic::PhysicalWritesFromCache) - before;
    Ok(written as f64 / seconds)
}

/// One or several jobs of fio.
fn fio_jobs(own: &[String]) -> Result<fio::Answer> {
    let arguments: Vec<String> = fio::OPTIONS.map(String::from).into_iter().chain(own.to_vec()).collect();
    fio::run(&arguments)
}

/// One fio job that keeps so many random reads outstanding.
fn fio_reads(file: &Path, outstanding: usize, seconds: u64) -> Result<Rate> {
    let arguments = [
        format!("--filename={}", file.display()),
        "--rw=randread".to_string(),
        "--bs=8k".to_string(),
        format!("--iodepth={outstanding}"),
        "--ioengine=io_uring".to_string(),
        "--fixedbufs=1".to_string(),
        "--time_based".to_string(),
        format!("--runtime={seconds}"),
    ];
    let answer = fio_jobs(&arguments)?;
    let job = answer.jobs.first().context("fio told of no job")?;
    let p99 = job.read.clat_ns.percentile.get("99.000000").copied().unwrap_or(0.0);
    Ok(Rate {
        per_second: job.read.iops,
        p99_micros: p99 / 1000.0,
        cpu_micros: job.cpu_micros() / job.read.total_ios.max(1) as f64,
    })
}

/// Reads a second that fio has beside the writes of a run, at their rates.
fn fio_streams(ours: &Streams, (data, log): (&Path, &Path), options: &Options) -> Result<f64> {
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
