//! Whether the inference keeps its promises: error rates, coverage and power on
//! synthetic studies whose truth is known.

use clap::Args;
use plumb_proof::calibration::{self, Scale};

/// How many studies, and from which seed.
#[derive(Debug, Args)]
pub struct Options {
    /// Studies in each cell of the table; a rate near 5% has then a standard
    /// error of 22 / sqrt(studies) points.
    #[arg(long, default_value_t = 20_000)]
    studies: usize,
    /// Seed of everything: the same seed gives the same table.
    #[arg(long, default_value_t = 20)]
    seed: u64,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let measured = calibration::run(Scale { studies: options.studies, seed: options.seed })?;
    println!("{measured}");
    Ok(())
}
