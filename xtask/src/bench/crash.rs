//! Crash cycles: on simulated disks, by the seed: how many, how fast, and the first that is wrong; and on the real one, with processes that
//! are killed.
//!
//! The cycles are those that the engine's tests go through in small.

#[path = "../../../crates/engine/tests/it/crash_cycle/mod.rs"]
mod crash_cycle;

use clap::Args;
use crash_cycle::faults::{FAULTS, FaultTally, faulty};
use crash_cycle::operation::{OPERATIONS, Operation, steps};
use crash_cycle::{Base, LOG_KINDS, Tally, chain, every_request, kill, pair};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

/// Cycles on one disk, until a new one is taken.
const CHAIN: u64 = 8;

/// Operations of a run that is crashed at every request.
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
    /// All pairs of operations, each crashed at every request, besides.
    #[arg(long)]
    pairs: bool,
    /// Runs on disks with a fault, so many of each kind of fault, besides.
    #[arg(long, default_value_t = 0)]
    faults: u64,
    /// Processes that are killed, besides, on a real disk.
    #[arg(long, default_value_t = 0)]
    kill: u64,
    /// Where their database is made.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Threads, each with disks of its own.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Is such a process: the database, and behind which transactions its sessions go on.
    #[arg(long, hide = true, num_args = 2)]
    child: Option<Vec<String>>,
}

/// Runs the cycles; a cycle that fails ends them with its seed.
pub fn run(options: &Options) -> anyhow::Result<()> {
    if let Some([home, behind]) = options.child.as_deref() {
        let behind = behind.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
        return Ok(kill::child(&PathBuf::from(home), &behind)?);
    }
    chains(options)?;
    let first = options.seed;
    if options.exhaustive > 0 {
        let counts = share(options, options.exhaustive, |bases, number| {
            every_request(of_kind(bases, number), first + number, &steps(STEPS), 2)
        })?;
        println!("{} runs crashed at every request: {} crashes{}", options.exhaustive, counts.0, counts.1);
    }
    if options.pairs {
        let pairs: Vec<(Operation, Operation)> =
            OPERATIONS.iter().flat_map(|one| OPERATIONS.iter().map(move |other| (*one, *other))).collect();
        let filled = LOG_KINDS.map(Base::filled);
        let counts = share(options, pairs.len() as u64, |bases, number| {
            let (one, other) = pairs[number as usize];
            bases.iter().chain(&filled).map(|base| pair(base, one, other)).sum()
        })?;
        println!(
            "{} pairs of operations, on each kind of log, in an empty database and in a filled one, crashed at every request: {} crashes{}",
            pairs.len(),
            counts.0,
            counts.1
        );
    }
    for fault in FAULTS.iter().filter(|_| options.faults > 0) {
        let tally = std::sync::Mutex::new(FaultTally::default());
        let counts = share(options, options.faults, |bases, number| {
            let mut one = FaultTally::default();
            faulty(of_kind(bases, number), first + number, *fault, &mut one);
            tally.lock().expect("no panic").add(&one);
            one.cycles
        })?;
        let FaultTally { ended, named, shorter, older, .. } = *tally.lock().expect("no panic");
        println!(
            "fault {fault:?}: {} runs, {ended} ended by it, {named} databases said so, {shorter} logs ended early, {older} databases had rows of an earlier commit in columns that no index has{}",
            counts.0, counts.1
        );
    }
    if options.kill > 0 { killed(options) } else { Ok(()) }
}

/// Chains of cycles.
fn chains(options: &Options) -> anyhow::Result<()> {
    if options.seeds == 0 {
        return Ok(());
    }
    let tally = std::sync::Mutex::new(Tally::default());
    let counts = share(options, options.seeds, |bases, number| {
        let mut one = Tally::default();
        chain(of_kind(bases, number), options.seed + number, CHAIN, &mut one);
        tally.lock().expect("no panic").add(&one);
        one.cycles
    })?;
    let tally = *tally.lock().expect("no panic");
    println!(
        "seeds {} to {}: {} cycles, {} crashes of runs, {} of recoveries, {} commits acknowledged{}",
        options.seed,
        options.seed + options.seeds - 1,
        counts.0,
        tally.crashes,
        tally.recoveries_cut_short,
        tally.commits,
        counts.1
    );
    Ok(())
}

/// Plain logs, those that are copied and mirrored ones in turn.
fn of_kind(bases: &[Base], number: u64) -> &Base {
    &bases[number as usize % bases.len()]
}

/// Has the threads do `work` for each number below `count`, each with disks of its own. Gives the sum of what it gives, and
/// how fast that went.
fn share(
    options: &Options,
    count: u64,
    work: impl Fn(&[Base], u64) -> u64 + Sync,
) -> anyhow::Result<(u64, String)> {
    let next = AtomicU64::new(0);
    let begin = plumb_events::now();
    let elapsed = || plumb_events::now().saturating_sub(begin).0 as f64 / 1e9;
    let twentieth = (count / 20).max(1);
    let thread_of = || {
        let bases = Base::of_each_kind();
        let mut sum = 0;
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= count {
                return sum;
            }
            if number > 0 && number.is_multiple_of(twentieth) {
                eprintln!("{number} of {count} begun after {:.0} s", elapsed());
            }
            sum += work(&bases, number);
        }
    };
    let sums: Result<Vec<u64>, _> = thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads).map(|_| scope.spawn(thread_of)).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let sum = sums.map_err(|_| anyhow::anyhow!("a cycle failed: its seed is above"))?.iter().sum::<u64>();
    Ok((sum, format!("; {:.0} a second on {} threads", sum as f64 / elapsed(), options.threads)))
}

/// Processes that are killed.
fn killed(options: &Options) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("plumb-crash-").tempdir_in(&options.path)?;
    let home = directory.path().join("db");
    std::fs::create_dir(&home)?;
    kill::create(&home)?;
    let program = std::env::current_exe()?;
    let begin = plumb_events::now();
    let make = |behind: &[u64]| {
        let behind = behind.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let mut child = Command::new(&program);
        child.args(["bench", "crash", "--child"]).arg(&home).arg(behind);
        child
    };
    let tally = kill::cycles(&home, options.seed, options.kill, make);
    let seconds = plumb_events::now().saturating_sub(begin).0 as f64 / 1e9;
    println!(
        "{} processes killed: {} commits, {} of them there without having been acknowledged; {seconds:.0} s",
        tally.cycles, tally.commits, tally.unsaid
    );
    Ok(())
}
