//! Blocks that are not in the cache: what reading them costs beside fio, and beside a bare read.

use super::{Options, Spread, TableOfBlocks, fio, fio_jobs, on, order};
use anyhow::{Context, Result};
use plumb_engine::cache::CacheReader;
use plumb_engine::parallel::servers;
use plumb_engine::storage::block;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, LatencyHistogram, Role, Session, SessionKind, clock, now};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use plumb_proof::random::Generator;
use plumb_units::{BlockAddress, Nanos};
use std::array;
use std::sync::Arc;
use std::thread;

/// Reads a second, their 99th percentile and the CPU of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) per_second: f64,
    pub(super) p99_micros: f64,
    cpu_micros: f64,
}

/// Sessions through the cache, with a thread each and on shared ones, beside both forms of fio.
pub(super) fn reads(options: &Options, table: &TableOfBlocks, beside_fio: bool) -> Result<()> {
    let mut sides: [Vec<Rate>; 4] = Default::default();
    let mut random = Generator::new(18);
    let ours = |servers| missed_reads(table, (options.sessions, servers), &for_seconds(options.seconds));
    let jobs = |jobs| fio_reads(table, jobs, options.seconds);
    // The cache has its memory from its first use on, and a ring registers what is there when it opens.
    missed_reads(table, (options.sessions, 0), &for_seconds(1))?;
    for _ in 0..options.rounds {
        for side in order(&mut random, if beside_fio { 4 } else { 2 }) {
            sides[side].push(match side {
                0 => ours(options.shared_servers)?,
                1 => ours(0)?,
                2 => jobs(Jobs::One { depth: options.sessions })?,
                _ => jobs(Jobs::Many { count: options.sessions })?,
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
    let [shared, own, one_job, many_jobs] = &sides;
    let count = options.sessions;
    let ours = [(options.shared_servers, shared), (0, own)]
        .map(|(servers, rates)| (format!("{count} sessions {}", on(servers)), rates));
    ours.iter().for_each(|(name, rates)| show(name, rates));
    if !beside_fio {
        return Ok(());
    }
    show(&format!("fio, one job with {count} outstanding"), one_job);
    show(&format!("fio, {count} jobs with one outstanding each"), many_jobs);
    for (name, ours) in ours {
        let ratio = |theirs: &[Rate], figure: fn(&Rate) -> f64| {
            let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs));
            Spread::of(ratios.collect()).show(3)
        };
        println!("{name}:");
        println!(
            "  rate over fio's one job: {}; goal: at least 0.97",
            ratio(one_job, |rate| rate.per_second)
        );
        println!("  p99 over its: {}; goal: at most 1.10", ratio(one_job, |rate| rate.p99_micros));
        println!("  CPU a read over its: {}; goal: at most 1.5", ratio(one_job, |rate| rate.cpu_micros));
        println!("  CPU a read over that of as many jobs: {}", ratio(many_jobs, |rate| rate.cpu_micros));
    }
    Ok(())
}

/// Sessions in powers of two, and fio with as many outstanding.
pub(super) fn sessions(options: &Options, table: &TableOfBlocks, beside_fio: bool) -> Result<()> {
    for (count, servers) in (0..9).flat_map(|power| [(1 << power, 0), (1 << power, options.shared_servers)]) {
        let ours = missed_reads(table, (count, servers), &for_seconds(options.seconds))?;
        let beside = if beside_fio {
            let theirs = fio_reads(table, Jobs::One { depth: count }, options.seconds)?;
            format!(
                "; fio {:.0} reads/s: {:.3} of it",
                theirs.per_second,
                ours.per_second / theirs.per_second
            )
        } else {
            String::new()
        };
        println!(
            "{count} sessions {}: {:.0} reads/s, p99 {:.0} us, {:.2} us of CPU a read{beside}",
            on(servers),
            ours.per_second,
            ours.p99_micros,
            ours.cpu_micros
        );
    }
    Ok(())
}

/// Whether so many seconds have passed since now.
pub(super) fn for_seconds(seconds: u64) -> impl Fn() -> bool + Sync {
    let end = now() + Nanos(seconds * 1_000_000_000);
    move || now() >= end
}

/// Sessions that read random blocks until it is over, on so many shared servers; 0: each has a thread of its own.
pub(super) fn missed_reads(
    table: &TableOfBlocks,
    (sessions, servers): (usize, usize),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Rate> {
    let instance = &table.instance;
    let coordinator = instance.recorder.session(Role::Coordinator);
    let operation = instance.operation().sharing(instance.sharing(servers));
    let before = instance.recorder.snapshot();
    let (begin, cpu) = (now(), clock::process_cpu());
    let work = move |session: &Session, number: usize| {
        let mut reader = CacheReader::new(session, instance.caches());
        let mut random = Generator::new(number as u64 * 977 + begin.0);
        while !is_over() {
            // Drawn together: a draw alone is a wait for memory of a quarter of a microsecond, which is no part of what is measured.
            let blocks: [_; 16] = array::from_fn(|_| table.blocks[random.below(table.blocks.len())]);
            for block in blocks {
                reader.get(Purpose::Users, block, table.expected)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        servers::join(&coordinator, servers::start_sessions(scope, &operation, sessions, work));
    });
    operation.outcome()?;
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

/// The difference between a read through the cache and a bare one, and one whose block is verified as the cache does: the first look at bytes that another
/// processor has put into memory is a wait for each of them.
pub(super) fn one(options: &Options, table: &TableOfBlocks) -> Result<()> {
    const TURN: usize = 10;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches());
    let mut bare = BareReader::open(table)?;
    let mut random = Generator::new(5);
    let mut draw = || table.blocks[random.below(table.blocks.len())];
    let mut sides: [LatencyHistogram; 3] = Default::default();
    let mut differences: [Vec<f64>; 2] = Default::default();
    for _ in 0..options.rounds {
        let mut times: [Vec<u64>; 3] = Default::default();
        for turn in 0..600 {
            for _ in 0..TURN {
                let block = draw();
                let begin = now();
                match turn % 3 {
                    0 => drop(reader.get(Purpose::Users, block, table.expected)?),
                    1 => {
                        bare.read(&session, block)?;
                    }
                    _ => {
                        let path = bare.file(block)?.path().to_path_buf();
                        block::verify(bare.read(&session, block)?, table.expected, block, &path)?;
                    }
                }
                let took = now().saturating_sub(begin);
                times[turn % 3].push(took.0);
                sides[turn % 3].add(took);
            }
        }
        let [cached, bare, verified] = times.map(|mut values| {
            values.sort_unstable();
            values[values.len() / 2] as f64 / 1000.0
        });
        differences[0].push(cached - bare);
        differences[1].push(cached - verified);
    }
    let [cached, bare, verified] = sides.map(|side| side.quantile(0.5).0 as f64 / 1000.0);
    println!(
        "one session: {cached:.1} us through the cache, {bare:.1} us bare, {verified:.1} us bare and verified"
    );
    let [bare, verified] = differences.map(|of| Spread::of(of).show(2));
    println!(
        "one session, over the bare read: {bare} us; goal: at most 2; over one that is verified: {verified} us"
    );
    Ok(())
}

/// A channel and a buffer of its own.
struct BareReader<'a> {
    table: &'a TableOfBlocks,
    channel: Channel,
    buffer: Option<IoBuffer>,
}

impl BareReader<'_> {
    fn open(table: &TableOfBlocks) -> Result<BareReader<'_>> {
        let tablespace = table.instance.tablespace(Purpose::Users);
        let (arena, mut buffers) = Arena::buffers(tablespace.block_size.bytes(), 1)?;
        let file = &tablespace.file(table.blocks[0].file)?.file;
        let channel = table.instance.access.method.channel_to(&[file], &[&arena])?;
        Ok(BareReader { table, channel, buffer: buffers.pop() })
    }

    fn file(&self, block: BlockAddress) -> Result<&Arc<File>> {
        Ok(&self.table.instance.tablespace(Purpose::Users).file(block.file)?.file)
    }

    fn read(&mut self, session: &Session, block: BlockAddress) -> Result<&[u8]> {
        let block_size = self.table.instance.tablespace(Purpose::Users).block_size;
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(self.file(block)?),
            offset: block.block.byte_offset(block_size),
            buffer: self.buffer.take().context("a read before failed")?,
            range: 0..block_size.bytes(),
            event: Event::DbFileSequentialRead,
            stream: IoStream::Probe,
            tag: 0,
        };
        self.channel.submit(session, request)?;
        Ok(self.buffer.insert(self.channel.wait(session, Event::DbFileSequentialRead)?.buffer))
    }
}

/// How fio keeps requests outstanding.
#[derive(Debug, Clone, Copy)]
enum Jobs {
    /// One thread has all of them.
    One { depth: usize },
    /// Each thread has one.
    Many { count: usize },
}

/// Random reads of fio.
fn fio_reads(table: &TableOfBlocks, jobs: Jobs, seconds: u64) -> Result<Rate> {
    let (depth, count) = match jobs {
        Jobs::One { depth } => (depth, 1),
        Jobs::Many { count } => (1, count),
    };
    let arguments = [
        fio::NAME.to_string(),
        format!("--filename={}", table.file.display()),
        "--rw=randread".to_string(),
        "--bs=8k".to_string(),
        format!("--iodepth={depth}"),
        format!("--numjobs={count}"),
        "--thread".to_string(),
        "--group_reporting".to_string(),
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
