//! Costs of reading blocks that are not in the cache, against fio and against a bare read.

use super::{Figure, Options, TableOfBlocks, fio, fio_jobs, on, order};
use anyhow::{Context, Result};
use plumb_engine::cache::{BlockCheck, CacheReader};
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

/// The sessions that read through the cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Readers {
    pub(super) sessions: usize,
    /// 0: each has a thread of its own.
    pub(super) shared_servers: usize,
    pub(super) check: BlockCheck,
}

/// Sessions through the cache, with a thread each and on shared ones, both forms of fio, and one
/// thread that verifies what it reads past any cache.
pub(super) fn reads(options: &Options, table: &TableOfBlocks, beside_fio: bool) -> Result<()> {
    let count = options.sessions;
    let readers = |shared_servers, check| Readers { sessions: count, shared_servers, check };
    let ours = [
        readers(options.shared_servers, BlockCheck::Whole),
        readers(0, BlockCheck::Whole),
        readers(options.shared_servers, BlockCheck::Header),
    ];
    let mut sides: [Vec<Rate>; 7] = Default::default();
    let mut random = Generator::new(18);
    let jobs = |jobs| fio_reads(table, jobs, options.seconds);
    // The cache gets its memory at its first use, and a ring registers the memory present when it
    // opens.
    missed_reads(table, ours[1], &for_seconds(1))?;
    for _ in 0..options.rounds {
        for side in order(&mut random, if beside_fio { 7 } else { 5 }) {
            sides[side].push(match side {
                0..=2 => missed_reads(table, ours[side], &for_seconds(options.seconds))?,
                3 => bare_reads(table, count, BlockCheck::Whole, &for_seconds(options.seconds))?,
                4 => bare_reads(table, count, BlockCheck::Header, &for_seconds(options.seconds))?,
                5 => jobs(Jobs::One { depth: count })?,
                _ => jobs(Jobs::Many { count })?,
            });
        }
    }
    let show = |name: &str, rates: &[Rate]| {
        let of = |figure: fn(&Rate) -> f64| Figure::of(rates.iter().map(figure).collect::<Vec<_>>());
        println!(
            "{name}: {} reads/s, p99 {} us, {} us of CPU a read",
            of(|rate| rate.per_second).show(0),
            of(|rate| rate.p99_micros).show(0),
            of(|rate| rate.cpu_micros).show(2)
        );
    };
    let [.., whole, header, one_job, many_jobs] = &sides;
    let name = |of: &Readers| match of.check {
        BlockCheck::Whole => format!("{count} sessions {}", on(of.shared_servers)),
        BlockCheck::Header => format!("{count} sessions {}, db_block_checksum=off", on(of.shared_servers)),
    };
    let mut ours: Vec<(String, &Vec<Rate>)> = ours.iter().map(name).zip(&sides).collect();
    let bare = |of| format!("one ring with {count} outstanding, no cache, {of} verified");
    ours.extend([(bare("each block"), whole), (bare("each header"), header)]);
    ours.iter().for_each(|(name, rates)| show(name, rates));
    if !beside_fio {
        return Ok(());
    }
    show(&format!("fio, one job with {count} outstanding"), one_job);
    show(&format!("fio, {count} jobs with one outstanding each"), many_jobs);
    for (name, ours) in ours {
        let ratio = |theirs: &[Rate], figure: fn(&Rate) -> f64| {
            let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| figure(ours) / figure(theirs));
            Figure::of_ratios(ratios.collect::<Vec<_>>()).show(3)
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
        let readers = Readers { sessions: count, shared_servers: servers, check: BlockCheck::Whole };
        let ours = missed_reads(table, readers, &for_seconds(options.seconds))?;
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

/// Returns a function that is true when this many seconds have passed.
pub(super) fn for_seconds(seconds: u64) -> impl Fn() -> bool + Sync {
    let end = now() + Nanos(seconds * 1_000_000_000);
    move || now() >= end
}

/// Sessions that read random blocks until it is over.
pub(super) fn missed_reads(
    table: &TableOfBlocks,
    readers: Readers,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Rate> {
    let instance = &table.instance;
    let coordinator = instance.recorder.session(Role::Coordinator);
    let operation = instance.operation().sharing(instance.sharing(readers.shared_servers));
    let before = instance.recorder.snapshot();
    let (begin, cpu) = (now(), clock::process_cpu());
    let work = move |session: &Session, number: usize| {
        let mut reader = CacheReader::checking(readers.check, session, instance.caches());
        let mut random = Generator::new(number as u64 * 977 + begin.0);
        while !is_over() {
            // Drawn together, because a single draw waits a quarter of a microsecond for memory,
            // which is not to be measured.
            let blocks: [_; 16] = array::from_fn(|_| table.blocks[random.below(table.blocks.len())]);
            for block in blocks {
                reader.get(Purpose::Users, block, table.expected)?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        servers::join(&coordinator, servers::start_sessions(scope, &operation, readers.sessions, work));
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

/// Random reads of one thread past any cache, each verified as the cache does: the part of the
/// distance to fio that is the first access to bytes that another processor put into memory.
fn bare_reads(
    table: &TableOfBlocks,
    depth: usize,
    check: BlockCheck,
    is_over: &dyn Fn() -> bool,
) -> Result<Rate> {
    let session = table.instance.recorder.session(Role::User);
    let mut bare = BareReader::open(table, depth)?;
    let mut random = Generator::new(now().0);
    let (begin, cpu) = (now(), clock::process_cpu());
    let mut draw = || (table.blocks[random.below(table.blocks.len())], now());
    let mut asked: Vec<_> = (0..depth).map(|_| draw()).collect();
    for (tag, (block, _)) in asked.iter().enumerate() {
        bare.submit(&session, *block, tag)?;
    }
    bare.channel.flush(&session)?;
    let mut latency = LatencyHistogram::default();
    while bare.channel.outstanding() > 0 {
        let completion = bare.channel.wait(&session, Event::DbFileSequentialRead)?;
        let tag = completion.tag as usize;
        let (block, since) = asked[tag];
        latency.add(now().saturating_sub(since));
        let verify = match check {
            BlockCheck::Whole => block::verify,
            BlockCheck::Header => block::verify_header,
        };
        verify(&completion.buffer, table.expected, block, bare.file(block)?.path())?;
        bare.buffers.push(completion.buffer);
        if !is_over() {
            asked[tag] = draw();
            bare.submit(&session, asked[tag].0, tag)?;
            bare.channel.flush(&session)?;
        }
    }
    let (seconds, count) = (now().saturating_sub(begin).seconds(), latency.count() as f64);
    let cpu = clock::process_cpu().saturating_sub(cpu);
    Ok(Rate {
        per_second: count / seconds,
        p99_micros: latency.quantile(0.99).0 as f64 / 1000.0,
        cpu_micros: cpu.0 as f64 / 1000.0 / count,
    })
}

/// The difference between a read through the cache and a bare one, with the block verified on both
/// sides, on one, and on none: the first access to bytes that another processor put into memory is
/// a wait.
pub(super) fn one(options: &Options, table: &TableOfBlocks) -> Result<()> {
    const TURN: usize = 10;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut readers = [BlockCheck::Whole, BlockCheck::Header]
        .map(|check| CacheReader::checking(check, &session, instance.caches()));
    let mut bare = BareReader::open(table, 1)?;
    let mut random = Generator::new(5);
    let mut draw = || table.blocks[random.below(table.blocks.len())];
    let mut sides: [LatencyHistogram; 4] = Default::default();
    let mut differences: [Vec<f64>; 3] = Default::default();
    for _ in 0..options.rounds {
        let mut times: [Vec<u64>; 4] = Default::default();
        for turn in 0..800 {
            for _ in 0..TURN {
                let block = draw();
                let begin = now();
                match turn % 4 {
                    side @ (0 | 1) => drop(readers[side].get(Purpose::Users, block, table.expected)?),
                    2 => {
                        bare.read(&session, block)?;
                    }
                    _ => {
                        let path = bare.file(block)?.path().to_path_buf();
                        block::verify(bare.read(&session, block)?, table.expected, block, &path)?;
                    }
                }
                let took = now().saturating_sub(begin);
                times[turn % 4].push(took.0);
                sides[turn % 4].add(took);
            }
        }
        let [cached, unverified, bare, verified] = times.map(|mut values| {
            values.sort_unstable();
            values[values.len() / 2] as f64 / 1000.0
        });
        differences[0].push(cached - bare);
        differences[1].push(unverified - bare);
        differences[2].push(cached - verified);
    }
    let [cached, unverified, bare, verified] = sides.map(|side| side.quantile(0.5).0 as f64 / 1000.0);
    println!(
        "one session: {cached:.1} us through the cache, {unverified:.1} us with db_block_checksum=off, {bare:.1} us bare, {verified:.1} us bare and verified"
    );
    let [whole, header, both] = differences.map(|of| Figure::of(of).show(2));
    println!(
        "one session, over the bare read: {whole} us, {header} us with db_block_checksum=off; goal: at most 2; over one that is verified: {both} us"
    );
    Ok(())
}

/// A channel and buffers of its own.
struct BareReader<'a> {
    table: &'a TableOfBlocks,
    channel: Channel,
    buffers: Vec<IoBuffer>,
}

impl BareReader<'_> {
    fn open(table: &TableOfBlocks, depth: usize) -> Result<BareReader<'_>> {
        let tablespace = table.instance.tablespace(Purpose::Users);
        let (arena, buffers) = Arena::buffers(tablespace.block_size.bytes(), depth)?;
        let file = &tablespace.file(table.blocks[0].file)?.file;
        let channel = table.instance.access.method.channel_of(depth, &[file], &[&arena])?;
        Ok(BareReader { table, channel, buffers })
    }

    fn file(&self, block: BlockAddress) -> Result<&Arc<File>> {
        Ok(&self.table.instance.tablespace(Purpose::Users).file(block.file)?.file)
    }

    /// Queues a read of a block; the next flush or wait submits it.
    fn submit(&mut self, session: &Session, block: BlockAddress, tag: usize) -> Result<()> {
        let block_size = self.table.instance.tablespace(Purpose::Users).block_size;
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(self.file(block)?),
            offset: block.block.byte_offset(block_size),
            buffer: self.buffers.pop().context("a read before failed")?,
            range: 0..block_size.bytes(),
            event: Event::DbFileSequentialRead,
            stream: IoStream::Probe,
            tag: tag as u64,
        };
        Ok(self.channel.submit(session, request)?)
    }

    fn read(&mut self, session: &Session, block: BlockAddress) -> Result<&[u8]> {
        self.submit(session, block, 0)?;
        self.buffers.push(self.channel.wait(session, Event::DbFileSequentialRead)?.buffer);
        Ok(&self.buffers[0])
    }
}

/// Ways in which fio keeps requests outstanding.
#[derive(Debug, Clone, Copy)]
enum Jobs {
    /// One thread has all of them.
    One {
        depth: usize,
    },
    Many {
        count: usize,
    },
}

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
