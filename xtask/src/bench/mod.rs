//! Benchmarks: what is measured, the peer or the limit it is measured against, in one run.

mod beside_hyperfine;
mod calibrate;
mod commands;
mod crash;
mod dataset;
mod events;
mod fio;
mod fuzz;
mod large_sort;
mod lines;
mod machine;
mod memory_sweep;
mod peers;
mod power;
mod proof;
mod record_sort;
mod redo;
mod slob;
mod sort_kernels;
mod stages;
mod stop;
mod studies;

use anyhow::Context;
use clap::Subcommand;
use plumb_engine::Settings;
use plumb_proof::random::Generator;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// plumb's measuring and fio's at the same points of the same file; needs fio.
    Calibrate(calibrate::Options),
    /// Studies of commands whose truth is known: A/A, and 2, 5 and 10% more work.
    Commands(commands::Options),
    /// Rows and commits a second beside SQLite and PostgreSQL; needs network access.
    Commits(peers::commits::Options),
    /// Crash cycles on simulated disks.
    Crash(crash::Options),
    /// What recording a wait costs.
    Events,
    /// Files with right checksums and wrong content: none may end in a panic, a hang, or all
    /// memory.
    Fuzz(fuzz::Options),
    /// The index build from end to end, against the device's sequential read.
    LargeSort(large_sort::Options),
    /// Sorting a file of lines, beside GNU sort.
    Lines(lines::Options),
    /// Loading a CSV file beside DuckDB, types found from the file; needs network access.
    Load(peers::load::Options),
    /// The index build over the memory of its sort, from 1 MB to all in memory.
    MemorySweep(memory_sweep::Options),
    /// plumb and its peers on the same rows, memory and degree; needs network access.
    Peers(peers::Options),
    /// Losses of power on FUSE, ext4, xfs and btrfs; needs root and /dev/fuse.
    Power(power::Options),
    /// Error rates, coverage and power of the inference, on synthetic studies.
    Proof(proof::Options),
    /// Sorting a file of 100-byte records.
    RecordSort(record_sort::Options),
    /// Commits beside bare durable writes, group commit, log insert, import and recovery.
    Redo(redo::Options),
    /// The buffer cache beside the device: missed reads, hits, scans, updates and checkpoints, with fio on the same file where there is one.
    Slob(slob::Options),
    /// Run generation and merge alone, in memory.
    SortKernels,
    /// CPU time of each stage of the index build, and the next bottleneck.
    Stages(stages::Options),
    /// What the laboratory says of real studies whose truth is known: A/A, and an injected delay.
    Studies(studies::Options),
}

impl Bench {
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Bench::Calibrate(options) => calibrate::run(&options),
            Bench::Commands(options) => commands::run(&options),
            Bench::Commits(options) => peers::commits::run(&options),
            Bench::Crash(options) => crash::run(&options),
            Bench::Events => events::run(),
            Bench::Fuzz(options) => fuzz::run(&options),
            Bench::LargeSort(options) => large_sort::run(&options),
            Bench::Lines(options) => lines::run(&options),
            Bench::Load(options) => peers::load::run(&options),
            Bench::MemorySweep(options) => memory_sweep::run(&options),
            Bench::Peers(options) => peers::run(&options),
            Bench::Power(options) => power::run(&options),
            Bench::Proof(options) => proof::run(&options),
            Bench::RecordSort(options) => record_sort::run(&options),
            Bench::Redo(options) => redo::run(&options),
            Bench::Slob(options) => slob::run(&options),
            Bench::SortKernels => sort_kernels::run(),
            Bench::Stages(options) => stages::run(&options),
            Bench::Studies(options) => studies::run(&options),
        }
    }
}

/// The settings of a bench: what it gives beside the defaults, then what its `--set` names.
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

/// Whose the threads of sessions are.
fn on(servers: usize) -> String {
    match servers {
        0 => "on threads of their own".to_string(),
        servers => format!("on {servers} shared servers"),
    }
}

/// The numbers below `count` in random order.
fn order(random: &mut Generator, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    order
}

/// The median of some measurements, and the smallest and largest.
#[derive(Debug, Clone, Copy)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        assert!(!values.is_empty());
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, least: values[0], most: values[values.len() - 1] }
    }

    fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} [{:.decimals$} .. {:.decimals$}]", self.median, self.least, self.most)
    }
}
