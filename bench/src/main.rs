//! Benchmarks. Each measures plumb and its peer, or its limit, in one run.

mod crash;
mod dataset;
mod events;
mod figure;
mod fuzz;
mod leftovers;
mod machine;
mod postgres;
mod power;
mod proof;
mod slow_disk;
mod snoop;
mod sort_kernels;
mod stages;
mod stop;
mod studies;

use anyhow::Context;
use clap::{Parser, Subcommand};
use plumb_engine::Settings;

#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", about = "Measures and prints; never part of a test")]
struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

fn main() -> anyhow::Result<()> {
    Arguments::parse().bench.run()
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Crash cycles on simulated disks.
    Crash(crash::Options),
    /// Cost of recording a wait.
    Events,
    /// Files with valid checksums and invalid content: none may cause a panic,
    /// a hang or unbounded memory.
    Fuzz(fuzz::Options),
    /// Kills of every command that makes things which outlive a kill: `plumb clean` must leave
    /// nothing. Some need root or PostgreSQL.
    Leftovers(leftovers::Options),
    /// Verdicts on studies of a PostgreSQL server whose truth is known: A/A, and a delay in the
    /// storage, which needs root and /dev/fuse.
    Postgres(postgres::PostgresBench),
    /// Losses of power on FUSE, ext4, xfs and btrfs; needs root and /dev/fuse.
    Power(power::Options),
    /// Error rates, coverage and power of the inference, on synthetic studies.
    Proof(proof::Options),
    /// Known requests and delays under `plumb snoop`, its cost, and its losses; needs root
    /// and tracefs, and PostgreSQL for one part.
    Snoop(snoop::SnoopBench),
    /// Run generation and merge, in memory.
    SortKernels,
    /// CPU time of each stage of the index build, and the next bottleneck.
    Stages(stages::Options),
    /// Verdicts on real studies whose truth is known: A/A, and an injected delay.
    Studies(studies::Options),
}

impl Bench {
    fn run(self) -> anyhow::Result<()> {
        match self {
            Bench::Crash(options) => crash::run(&options),
            Bench::Events => events::run(),
            Bench::Fuzz(options) => fuzz::run(&options),
            Bench::Leftovers(options) => leftovers::run(&options),
            Bench::Postgres(options) => postgres::run(&options),
            Bench::Power(options) => power::run(&options),
            Bench::Proof(options) => proof::run(&options),
            Bench::Snoop(options) => snoop::run(&options),
            Bench::SortKernels => sort_kernels::run(),
            Bench::Stages(options) => stages::run(&options),
            Bench::Studies(options) => studies::run(&options),
        }
    }
}

/// Returns the settings of a bench: its own over the defaults, then those of `--set`.
fn settings(given: &[(&str, &str)], set: &[String]) -> anyhow::Result<Settings> {
    let mut settings = Settings::default();
    for (name, value) in given {
        settings.set(name, value, "bench")?;
    }
    for set in set {
        let (name, value) = set.split_once('=').context("--set takes name=value")?;
        settings.set(name, value, "--set")?;
    }
    Ok(settings)
}
