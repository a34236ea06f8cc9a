//! Traces programs whose requests are known, by the code of `plumb snoop`: found, lost, cost.
//!
//! ```text
//! postgres   writes and syncs of the log, and a checkpoint: the server's counts and times
//! delay      a disk that waits before each answer: the wait is found at the disk
//! losses     a load of a fixed rate: calls found, events lost, memory
//! overhead   a load with fixed work: alone, and under `plumb snoop`, as a study
//! ```
//!
//! The first three trace in this process, by the same code as the program. The last starts the
//! program, because its own thread is part of the cost. That `plumb run --trace` and `plumb snoop`
//! agree on each request is a test of crate plumb.

mod delay;
mod load;
mod losses;
mod overhead;
mod postgres;

use super::machine::{self, Machine};
use super::stop::{Room, Stop};
use anyhow::Context;
use clap::{Args, ValueEnum};
use plumb_record::{Snoop, SnoopCalls};
use plumb_snoop::{Capture, Live, Show, SnoopError, SnoopTarget};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Postgres,
    Delay,
    Losses,
    Overhead,
}

#[derive(Debug, Args)]
pub(crate) struct SnoopBench {
    /// Parts of the bench to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "postgres,delay,losses,overhead")]
    part: Vec<Part>,
    /// Directory on a disk, for servers, loads and mount points.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    path: PathBuf,
    /// Number of PostgreSQL's commits under a trace.
    #[arg(long, default_value_t = 2000)]
    transactions: u64,
    /// Number of requests with each delay.
    #[arg(long, default_value_t = 200)]
    requests: u64,
    /// Requests a second for the losses.
    #[arg(long, default_value_t = 200_000)]
    rate: u64,
    /// Seconds of the load at that rate.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Blocks of the study of the overhead.
    #[arg(long, default_value_t = 12)]
    blocks: u64,
    #[command(flatten)]
    load: load::KnownLoad,
}

pub(super) fn run(options: &SnoopBench) -> anyhow::Result<()> {
    if options.load.load_file.is_some() {
        return load::run(&options.load);
    }
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "snoop")?;
    println!("{}\n", Machine::describe(room.path()).show());
    for part in &options.part {
        stop.check()?;
        match part {
            Part::Postgres => postgres::run(room.path(), options.transactions)?,
            Part::Delay => delay::run(room.path(), options.requests)?,
            Part::Losses => losses::run(room.path(), options.rate, options.seconds)?,
            Part::Overhead => overhead::run(room.path(), options.blocks)?,
        }
        println!("Load average after it: {}\n", machine::load_average());
    }
    Ok(())
}

/// Traces a target while `work` runs in a thread of its own; returns the sums and its result.
fn traced<T: Send>(
    target: SnoopTarget,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> Result<(Snoop, anyhow::Result<T>), SnoopError> {
    let mut capture = Capture::start(target)?;
    let mut live = Live::new(Show::Nothing, capture.begin());
    let done = std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            capture.step(&mut live)?;
        }
        Ok::<_, SnoopError>(worker.join())
    });
    let done = done?.unwrap_or_else(|_| Err(anyhow::anyhow!("the work panicked")));
    capture.finish(&mut live)?;
    Ok((capture.sums(&live), done))
}

/// Traces a command to its end.
fn traced_command(words: &[&str]) -> anyhow::Result<Snoop> {
    let words = words.iter().map(|word| word.to_string()).collect();
    let mut capture = Capture::start(SnoopTarget::Command(words))?;
    let mut live = Live::new(Show::Nothing, capture.begin());
    while capture.is_alive() {
        capture.step(&mut live)?;
    }
    let ended = capture.wait().context("the command has no end")??;
    anyhow::ensure!(ended.status.success(), "the command ended with {}", ended.status);
    capture.finish(&mut live)?;
    Ok(capture.sums(&live))
}

/// Adds up the calls of some rows.
fn calls(snoop: &Snoop, is_one: impl Fn(&SnoopCalls) -> bool) -> SnoopCalls {
    let mut sum = SnoopCalls::default();
    for row in snoop.calls.iter().filter(|row| is_one(row)) {
        sum.calls += row.calls;
        sum.bytes += row.bytes;
        sum.time_ns += row.time_ns;
        sum.disk_requests += row.disk_requests;
        sum.disk_time_ns += row.disk_time_ns;
    }
    sum
}

/// Returns the mean of a sum of nanoseconds in microseconds.
fn mean_us(time_ns: u64, count: u64) -> f64 {
    time_ns as f64 / 1e3 / count.max(1) as f64
}
