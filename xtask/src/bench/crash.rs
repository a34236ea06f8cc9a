//! Crash cycles on simulated disks, by the seed: how many, how fast, and the first that is wrong.
//!
//! The cycle itself is the one that the engine's tests go through in small.

#[path = "../../../crates/engine/tests/it/crash_cycle.rs"]
mod crash_cycle;

use clap::Args;
use crash_cycle::{Tally, chain, every_request, new_disk};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// Cycles on one disk, until a new one is taken.
const CHAIN: u64 = 8;

/// Statements of a run that is crashed at every request.
const STEPS: u64 = 40;

/// How many cycles, from which seed.
#[derive(Debug, Args)]
pub struct Options {
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Seeds; each is a chain of 8 cycles.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Short runs that are crashed at every request, besides; the first seed is the same.
    #[arg(long, default_value_t = 0)]
    exhaustive: u64,
    /// Threads, each with disks of its own.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

/// Runs the cycles; a cycle that fails ends them with its seed.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let next = AtomicU64::new(options.seed);
    let last = options.seed + options.seeds;
    let begin = plumb_events::now();
    let work = || {
        let base = new_disk(1);
        let mut tally = Tally::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= last {
                return tally;
            }
            chain(&base, seed, CHAIN, &mut tally);
        }
    };
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Result<_, _>>()
    })
    .map_err(|_| anyhow::anyhow!("a cycle failed: its seed is above"))?;
    let seconds = plumb_events::now().saturating_sub(begin).0 as f64 / 1e9;
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let cycles = sum(|tally| tally.cycles);
    println!(
        "seeds {} to {}: {cycles} cycles, {} crashes of runs, {} of recoveries, {} commits acknowledged; {:.0} cycles/s on {} threads",
        options.seed,
        last - 1,
        sum(|tally| tally.crashes),
        sum(|tally| tally.recoveries_cut_short),
        sum(|tally| tally.commits),
        cycles as f64 / seconds,
        options.threads,
    );
    let base = new_disk(1);
    let begin = plumb_events::now();
    let crashes: u64 =
        (options.seed..options.seed + options.exhaustive).map(|seed| every_request(&base, seed, STEPS)).sum();
    let seconds = plumb_events::now().saturating_sub(begin).0 as f64 / 1e9;
    println!("{} runs crashed at every request: {crashes} crashes in {seconds:.0} s", options.exhaustive);
    Ok(())
}
