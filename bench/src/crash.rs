//! Runs crash cycles on simulated disks, by seed, and with killed processes on a real disk. Prints
//! their number, their rate and the first failure.
//!
//! The cycles are those of `plumb_crash`; the engine's tests run a few of them.

use anyhow::Context as _;
use clap::Args;
use plumb_crash::faults::{FAULTS, Fault, FaultTally, faulty};
use plumb_crash::operation::{OPERATIONS, steps};
use plumb_crash::{Base, LOG_KINDS, LogKind, Tally, chain, every_request, kill, pair};
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Cycles on one disk, before the next seed takes a new disk.
const CHAIN: u64 = 8;

/// Operations of a run that crashes at every request.
const STEPS: u64 = 40;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// First seed of the cycles.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds; each is a chain of 8 cycles.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// Number of short runs that crash at every request, in addition, from the same first seed.
    #[arg(long, default_value_t = 0)]
    exhaustive: u64,
    /// Also run all pairs of operations, each crashed at every request.
    #[arg(long)]
    pairs: bool,
    /// Use only log files outside the home, instead of all other kinds of logs.
    #[arg(long)]
    outside: bool,
    /// Number of runs with each kind of disk fault, in addition.
    #[arg(long, default_value_t = 0)]
    faults: u64,
    /// Number of processes killed on a real disk, in addition.
    #[arg(long, default_value_t = 0)]
    kill: u64,
    /// Directory of the killed processes' database.
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
    /// Number of processes that share the work on simulated disks.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    processes: u64,
    /// Run as the process of this number.
    #[arg(long, hide = true)]
    share: Option<u64>,
    /// Run as a process to be killed, on this database.
    #[arg(long, hide = true)]
    child: Option<PathBuf>,
}

/// Runs the cycles. The first failure ends them and prints its seed.
pub fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(home) = &options.child {
        return kill::child(home, kill::settings(&[]), &kill::to_stdout)
            .map_err(|unfit| anyhow::anyhow!("{unfit}"));
    }
    if let Some(share) = options.share {
        take_share(options, share);
        return Ok(());
    }
    run_shares(options)?;
    if options.kill > 0 { killed(options) } else { Ok(()) }
}

/// A part of the work on simulated disks.
#[derive(Debug, Clone, Copy)]
enum Part {
    Chains,
    Exhaustive,
    Pairs,
    Fault(Fault),
}

/// Result of a part: first the count whose rate is printed, then those that [`Part::show`] names.
type Counts = [u64; 5];

impl Part {
    /// Returns the requested parts, each with its number of units.
    fn all(options: &Options) -> Vec<(Part, u64)> {
        let pairs = if options.pairs { OPERATIONS.len().pow(2) as u64 } else { 0 };
        let mut all =
            vec![(Part::Chains, options.seeds), (Part::Exhaustive, options.exhaustive), (Part::Pairs, pairs)];
        all.extend(FAULTS.map(|fault| (Part::Fault(fault), options.faults)));
        all.retain(|(_, count)| *count > 0);
        all
    }

    /// Runs the unit of this number. Units take the kinds of logs in turn.
    fn run(self, first: u64, number: u64, bases: &[Base], filled: &[Base]) -> Counts {
        let (base, seed) = (&bases[number as usize % bases.len()], first + number);
        let _names_itself = NamesItself(self, seed);
        match self {
            Part::Chains => {
                let mut tally = Tally::default();
                chain(base, seed, CHAIN, &mut tally);
                [tally.cycles, tally.crashes, tally.recoveries_cut_short, tally.commits, 0]
            }
            Part::Exhaustive => [every_request(base, seed, &steps(STEPS), 2), 0, 0, 0, 0],
            Part::Pairs => {
                let [one, other] = [number as usize / OPERATIONS.len(), number as usize % OPERATIONS.len()];
                let crashes =
                    bases.iter().chain(filled).map(|base| pair(base, OPERATIONS[one], OPERATIONS[other]));
                [crashes.sum(), 0, 0, 0, 0]
            }
            Part::Fault(fault) => {
                let mut tally = FaultTally::default();
                faulty(base, seed, fault, &mut tally);
                [tally.cycles, tally.ended, tally.named, tally.shorter, tally.older]
            }
        }
    }

    fn show(self, first: u64, count: u64, [done, a, b, c, d]: Counts) -> String {
        match self {
            Part::Chains => format!(
                "seeds {first} to {}: {done} cycles, {a} crashes of runs, {b} of recoveries, {c} commits acknowledged",
                first + count - 1
            ),
            Part::Exhaustive => format!("{count} runs crashed at every request: {done} crashes"),
            Part::Pairs => format!(
                "{count} pairs of operations, on each kind of log, in an empty database and in a filled one, crashed at every request: {done} crashes"
            ),
            Part::Fault(fault) => format!(
                "fault {fault:?}: {done} runs, {a} ended by it, {b} databases said so, {c} logs ended early, {d} databases had rows of an earlier commit in columns that no index has"
            ),
        }
    }
}

/// Prints the part and seed if the work panics, because the panicking code knows no seed.
struct NamesItself(Part, u64);

impl Drop for NamesItself {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{:?}, seed {}", self.0, self.1);
        }
    }
}

/// Runs one process's share of each part and prints its counts, a line per part.
fn take_share(options: &Options, share: u64) {
    // Otherwise this process outlives a parent that was killed.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let bases = if options.outside { vec![Base::new(LogKind::Outside)] } else { Base::of_each_kind() };
    let filled = match (options.pairs, options.outside) {
        (false, _) => Vec::new(),
        (true, false) => LOG_KINDS.map(Base::filled).into(),
        (true, true) => vec![Base::filled(LogKind::Outside)],
    };
    for (part, count) in Part::all(options) {
        let (mut sum, begin) = (Counts::default(), plumb_events::now());
        let twentieth = (count / options.processes / 20).max(1);
        for (done, number) in (0..).zip((share..count).step_by(options.processes as usize)) {
            if share == 0 && done > 0 && done % twentieth == 0 {
                let seconds = plumb_events::now().saturating_sub(begin).seconds();
                eprintln!("{number} of {count} begun after {seconds:.0} s");
            }
            let counts = part.run(options.seed, number, &bases, &filled);
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        println!("{}", sum.map(|count| count.to_string()).join(" "));
    }
}

/// A process with a share of the work; dropping it kills the process.
struct Sharer(Child, Lines<BufReader<ChildStdout>>);

impl Drop for Sharer {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs the shares in processes. Rejected: threads make two thirds of the cycles, because each
/// return of memory to the kernel interrupts all threads of the process.
fn run_shares(options: &Options) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let given: Vec<_> = std::env::args_os().skip(1).collect();
    let start = |share: u64| -> anyhow::Result<Sharer> {
        let mut command = Command::new(&program);
        command.args(&given).args(["--share", &share.to_string()]).stdout(Stdio::piped());
        let mut child = command.spawn().context("starting a process of the harness")?;
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Ok(Sharer(child, lines))
    };
    let mut sharers = (0..options.processes).map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let mut begin = plumb_events::now();
    for (part, count) in Part::all(options) {
        let mut sum = Counts::default();
        for Sharer(_, lines) in &mut sharers {
            let line = lines.next().context("a cycle failed: its seed is above")??;
            for (sum, count) in sum.iter_mut().zip(line.split(' ')) {
                *sum += count.parse::<u64>().with_context(|| format!("{line:?} is no line of counts"))?;
            }
        }
        let now = plumb_events::now();
        let rate = sum[0] as f64 / now.saturating_sub(begin).seconds();
        begin = now;
        println!(
            "{}; {rate:.0} a second by {} processes",
            part.show(options.seed, count, sum),
            options.processes
        );
    }
    Ok(())
}

/// Kills processes, half of them with one member of each log file, half with two.
fn killed(options: &Options) -> anyhow::Result<()> {
    let half = options.kill / 2;
    for (members, count) in kill::MEMBERS.into_iter().zip([options.kill - half, half]) {
        killed_with(options, members, count)?;
    }
    Ok(())
}

fn killed_with(options: &Options, members: &str, count: u64) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("plumb-crash-").tempdir_in(&options.path)?;
    let home = directory.path().join("db");
    std::fs::create_dir(&home)?;
    kill::create(&home, kill::settings(&[("log_file_members", members)]))?;
    let program = std::env::current_exe()?;
    let begin = plumb_events::now();
    let make = || {
        let mut child = Command::new(&program);
        child.args(["crash", "--child"]).arg(&home);
        child
    };
    let tally = kill::cycles(&home, options.seed, count, make);
    let seconds = plumb_events::now().saturating_sub(begin).0 as f64 / 1e9;
    println!(
        "log_file_members={members}: {} processes killed, {} commits, {} of them there without having been acknowledged; {seconds:.0} s",
        tally.cycles, tally.commits, tally.unsaid
    );
    Ok(())
}
