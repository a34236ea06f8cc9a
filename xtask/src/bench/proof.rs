//! Whether the inference keeps its promises: error rates, coverage and power on
//! synthetic studies whose truth is known.

mod pictures;

use anyhow::Context;
use clap::Args;
use plumb_proof::calibration::{self, Scale};
use std::path::PathBuf;

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
    /// Also draw the figures, as SVG files in this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let measured = calibration::run(Scale { studies: options.studies, seed: options.seed })?;
    println!("{measured}");
    let Some(directory) = &options.plots else { return Ok(()) };
    for (name, svg) in pictures::all(&measured) {
        let file = directory.join(name);
        std::fs::write(&file, svg).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
