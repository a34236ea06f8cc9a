//! Blocks that are not in the cache: what reading them costs beside fio, and beside a bare read.

use super::{Options, Spread, TableOfBlocks, fio, fio_jobs, on, order};
use anyhow::{Context, Result};
use plumb_engine::cache::CacheReader;
use plumb_engine::parallel::servers;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::{Event, IoStream, LatencyHistogram, Role, Session, SessionKind, clock, now};
use plumb_io::{Arena, Operation, Request};
use plumb_proof::random::Generator;
use plumb_units::Nanos;
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
            for _ in 0..16 {
                let block = table.blocks[random.below(table.blocks.len())];
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

/// The difference between a read through the cache and a bare one.
pub(super) fn one(options: &Options, table: &TableOfBlocks) -> Result<()> {
    const TURN: usize = 10;
    let instance = &table.instance;
    let session = instance.recorder.session(Role::User);
    let mut reader = CacheReader::new(&session, instance.caches());
    let tablespace = instance.tablespace(Purpose::Users);
    let (arena, mut buffers) = Arena::buffers(tablespace.block_size.bytes(), 1)?;
    let file = &tablespace.file(table.blocks[0].file)?.file;
    let mut channel = instance.access.method.channel_to(&[file], &[&arena])?;
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
