//! Measurements by plumb and by fio, at the same points of the same file.
//!
//! They show if the laboratory costs anything: a calibrator that is slower than a trusted tool
//! measures itself.
//!
//! Steps: a file of random bytes and a log of zeros are made once, by the code that
//! calibrations use (`plumb_calibrate::TaskSession`). A round measures each point by both
//! tools, the points in a new random order, the two tools of a point one right after the
//! other in an order that a coin decides. The ratio is taken within the round; its
//! interval is that of the signed-rank test over the rounds (`plumb-proof`).
//!
//! Like with like: both use the same method (io_uring, or pwrite and fdatasync for the
//! log), O_DIRECT, request size, depth, one thread or process, time and ramp; both take
//! the time of every request; both register their buffers with the ring; neither keeps a map of
//! the blocks it has visited; both have a second thread that wakes every 10 ms.
//! Processor time is that of the process, or of fio's job process, over its requests.
//!
//! One request at a time depends on where the thread happens to run: a disk with one queue
//! interrupts one processor, and a thread on another one has to be woken from there. fio held
//! on either processor made 13,000 reads a second on the one and 8,300 on the other. So
//! `--processor` holds both tools on one; otherwise each draws its luck in each round.
//!
//! Limits: needs fio (a Debian package) and a path on a disk; no part of the tests. A
//! machine that does other work meanwhile widens the intervals, and both tools pay for
//! it; before each pair the bench waits for a quiet moment, and says how many it had.

mod document;
mod fio;
mod point;
mod quiet;
mod round;

use super::machine::Machine;
use super::stop::Stop;
use anyhow::Context;
use clap::Args;
use fio::Fio;
use plumb_calibrate::{ProgressObserver, TaskSession};
use plumb_units::{Bytes, Nanos};
use point::{Comparison, RingChoice};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Directory of the file, which is removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Seconds of each measurement, without its ramp of an eighth.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Rounds; six are the fewest that give an interval of 95%.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Seconds at most to wait before each pair until others leave the processors alone.
    #[arg(long, default_value_t = 10.0)]
    wait: f64,
    /// Set-up of plumb's rings: the calibrator's own way is deferred; fio's is plain or
    /// cooperative.
    #[arg(long, value_enum, default_value = "deferred")]
    ring: RingChoice,
    /// Holds both tools on this processor; otherwise they run where the kernel puts them.
    #[arg(long)]
    processor: Option<usize>,
    /// Length of the file that both tools use.
    #[arg(long, default_value = "2G")]
    file_size: Bytes,
    /// Seed of the data, of the places and of the order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also writes the results there, as docs/measured/calibrate.md.
    #[arg(long)]
    document: Option<PathBuf>,
}

/// Length of the log that durable writes go to.
const LOG: Bytes = Bytes(256 * Bytes::M);

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    anyhow::ensure!(options.seconds >= 0.1, "--seconds {}: at least 0.1", options.seconds);
    if let Some(processor) = options.processor {
        hold_on(processor)?;
    }
    let fio = Fio::find()?;
    let stop = Stop::on_signals()?;
    let device = plumb_io::describe_device(&options.path)?;
    point::require(&device)?;
    let machine = Machine::describe(&device.path);
    println!("{}{}\n", machine.show(), fio.version());
    let bench = TaskSession::create(&device, options.file_size, LOG, options.seed, &stop)?;
    let time = Nanos((options.seconds * 1e9) as u64);
    let mut comparisons = Comparison::all(options.ring);
    let times = round::Times { each: time, wait: Nanos((options.wait.max(0.0) * 1e9) as u64) };
    for round in 0..options.repeat {
        match round::run(&mut comparisons, &bench, &fio, times, options.seed, round) {
            // What was measured until then counts.
            Err(_) if stop.cancelled() && round > 0 => break,
            ended => ended?,
        }
        eprintln!("round {} of {} done", round + 1, options.repeat);
    }
    drop(bench);
    println!("{}", document::table(&comparisons));
    if let Some(path) = &options.document {
        let text = document::render(options, &machine, &fio, &comparisons);
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Holds this thread on one processor, and with it the threads and processes that it
/// will start.
fn hold_on(processor: usize) -> anyhow::Result<()> {
    let mut processors = CpuSet::new();
    anyhow::ensure!(processor < CpuSet::MAX_CPU, "--processor {processor}: less than {}", CpuSet::MAX_CPU);
    processors.set(processor);
    sched_setaffinity(None, &processors)
        .with_context(|| format!("--processor {processor}: this process may not run there"))
}
