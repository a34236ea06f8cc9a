//! A load of known requests: reads of 4 KiB from a file in the page cache, by pread.
//!
//! Each request is followed by work of a fixed number of turns, so that the load has a rate
//! without sleeping, and a slower call makes the whole load slower. With a rate it sleeps instead.
//! It prints what it did as JSON, or writes that to a file.

use anyhow::Context;
use clap::Args;
use plumb_events::now;
use serde_json::json;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) const BLOCK_BYTES: usize = 4096;
pub(super) const FILE_BLOCKS: u64 = 4096;

#[derive(Debug, Args)]
pub(crate) struct KnownLoad {
    /// Be the load itself: the file to read
    #[arg(long, hide = true)]
    pub(super) load_file: Option<PathBuf>,
    #[arg(long, hide = true, default_value_t = 100_000)]
    pub(super) load_requests: u64,
    /// Requests a second; 0 for no sleep.
    #[arg(long, hide = true, default_value_t = 0)]
    pub(super) load_rate: u64,
    /// Turns of work after each request.
    #[arg(long, hide = true, default_value_t = 0)]
    pub(super) load_turns: u64,
    #[arg(long, hide = true)]
    pub(super) load_result: Option<PathBuf>,
}

pub(super) fn run(options: &KnownLoad) -> anyhow::Result<()> {
    let path = options.load_file.as_deref().context("--load-file is missing")?;
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut block = [0_u8; BLOCK_BYTES];
    // All blocks are in the page cache, and the processor runs at its speed.
    for at in 0..FILE_BLOCKS {
        file.read_exact_at(&mut block, at * BLOCK_BYTES as u64)?;
    }
    let (begin, cpu) = (now(), cpu_seconds());
    let mut sum = 0_u64;
    for request in 0..options.load_requests {
        let at = request.wrapping_mul(0x9e37_79b9) % FILE_BLOCKS;
        file.read_exact_at(&mut block, at * BLOCK_BYTES as u64)?;
        sum = work(sum ^ u64::from(block[0]), options.load_turns);
        if let Some(ahead) = ahead(options.load_rate, request + 1, now().saturating_sub(begin).0) {
            std::thread::sleep(ahead);
        }
    }
    let seconds = now().saturating_sub(begin).seconds();
    let result = json!({
        "requests": options.load_requests,
        "seconds": seconds,
        "cpu_seconds": cpu_seconds() - cpu,
        "rate": options.load_requests as f64 / seconds,
        "sum": sum,
    });
    match &options.load_result {
        Some(path) => std::fs::write(path, result.to_string())?,
        None => println!("{result}"),
    }
    Ok(())
}

/// Returns the time that the load is ahead of its rate, if it is worth a sleep.
fn ahead(rate: u64, requests: u64, elapsed_ns: u64) -> Option<Duration> {
    let due = (u128::from(requests) * 1_000_000_000).checked_div(u128::from(rate))? as u64;
    let ahead = due.saturating_sub(elapsed_ns);
    (ahead > 1_000_000).then(|| Duration::from_nanos(ahead))
}

fn work(mut seed: u64, turns: u64) -> u64 {
    for _ in 0..turns {
        seed = std::hint::black_box(seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    }
    seed
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Makes the file of a load.
pub(super) fn make_file(directory: &std::path::Path) -> anyhow::Result<PathBuf> {
    let path = directory.join("load");
    std::fs::write(&path, vec![7_u8; BLOCK_BYTES * FILE_BLOCKS as usize])?;
    Ok(path)
}
