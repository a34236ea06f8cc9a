//! Benchmarks: what is measured, the peer or the limit it is measured against, in one run.

mod events;
mod large_sort;
mod peers;
mod proof;
mod sort_kernels;

use clap::Subcommand;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// What recording a wait costs.
    Events,
    /// The index build from end to end, against the device's sequential read.
    LargeSort(large_sort::Options),
    /// plumb and its peers on the same rows, memory and degree; needs network access.
    Peers(peers::Options),
    /// Error rates, coverage and power of the inference, on synthetic studies.
    Proof(proof::Options),
    /// Run generation and merge alone, in memory.
    SortKernels,
}

impl Bench {
    /// Measures and prints.
    pub fn run(self) -> anyhow::Result<()> {
        match self {
            Bench::Events => events::run(),
            Bench::LargeSort(options) => large_sort::run(&options),
            Bench::Peers(options) => peers::run(&options),
            Bench::Proof(options) => proof::run(&options),
            Bench::SortKernels => sort_kernels::run(),
        }
    }
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

    /// `0.912 [0.874 .. 0.951]`
    fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} [{:.decimals$} .. {:.decimals$}]", self.median, self.least, self.most)
    }
}
