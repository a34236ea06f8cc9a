//! Measures error rates, coverage and power of the inference on synthetic studies whose truth is
//! known.

mod pictures;
mod simulation;
mod situations;
mod whole;

use anyhow::Context;
use clap::Args;
use simulation::Scale;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Studies in each cell of the table; a rate near 5% then has a standard error of 22 /
    /// sqrt(studies) points. 0 skips these cells.
    #[arg(long, default_value_t = 20_000)]
    studies: usize,
    /// Studies in each cell of whole studies, from records to the report.
    #[arg(long, default_value_t = 1000)]
    whole: usize,
    /// Whole studies in each situation that is known to mislead comparisons. 0 skips them.
    #[arg(long, default_value_t = 20_000)]
    situations: usize,
    /// Seed of all studies; the same seed gives the same table.
    #[arg(long, default_value_t = 20)]
    seed: u64,
    /// Also draw the figures as SVG files in this directory.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    // Made first, so that an error does not cost the hour of simulations.
    if let Some(directory) = &options.plots {
        std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    if options.whole > 0 {
        println!("{}", whole::run(options.whole, options.seed)?);
    }
    if options.situations > 0 {
        println!("{}", situations::run(options.situations, options.seed)?);
    }
    if options.studies == 0 {
        return Ok(());
    }
    let measured = simulation::run(Scale { studies: options.studies, seed: options.seed })?;
    println!("{measured}");
    let Some(directory) = &options.plots else { return Ok(()) };
    for (name, svg) in pictures::all(&measured) {
        let file = directory.join(name);
        std::fs::write(&file, svg).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
