//! Runs studies on the real engine whose truth is known.
//!
//! `bench proof` feeds the inference synthetic figures; this bench makes real studies, end to end.
//! A/A studies compare an arm with itself, so every proof is false. Others delay every request of
//! an arm by a known time, which must be found as often as the stated power.
//!
//! A study is a text like a user's. `plumb_run` plans, runs, stores and judges it; each run is a
//! process of plumb. The delay is `debug_request_delay`. A pilot study sizes it for 2, 5 and 10% of
//! the elapsed time, and gives the noise for the number of blocks.
//!
//! Tables are small, because forty studies have a thousand runs. A run of 100K rows takes about ten
//! milliseconds. Its noise is larger than that of a long run, so the test is not easier. Delays use
//! a larger table.
//!
//! Limits: the two comparisons of an A/A study share the reference's first run, so they are not
//! independent of each other. Forty studies distinguish 5% from 20%, but not from 3%.

mod delayed;
mod document;
pub(super) mod laboratory;
pub(super) mod same;

use super::machine::Machine;
use anyhow::Context;
use clap::Args;
use laboratory::Laboratory;
use plumb_units::RowCount;
use same::SameSpec;
use std::fs;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of A/A studies to make.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=1000))]
    studies: u16,
    /// Blocks of each A/A study; six are the fewest that can prove anything.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=100))]
    blocks: u16,
    /// Rows of the A/A studies' table.
    #[arg(long, default_value = "100K", value_parser = plumb_units::parse_count)]
    rows: u64,
    /// Number of studies with delays of 2, 5 and 10%.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    delayed_studies: u16,
    /// Rows of the table whose requests are delayed.
    #[arg(long, default_value = "1M", value_parser = plumb_units::parse_count)]
    delayed_rows: u64,
    /// Parent of the databases and bundles, which are removed at the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Seed of the random orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also write the results into a part of this document.
    #[arg(long)]
    document: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let laboratory = Laboratory::open(&options.path)?;
    let machine = Machine::describe(&options.path);
    println!("{}", machine.show());
    let delayed = delayed::run(options, &laboratory)?;
    println!("{}", delayed.show());
    let same = same::run(&options.same(), &laboratory)?;
    println!("{}", same.show());
    if let Some(path) = &options.document {
        let present = fs::read_to_string(path).unwrap_or_default();
        let part = document::part(options, &machine, &same, &delayed);
        fs::write(path, document::replaced(&present, &part))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

impl Options {
    fn same(&self) -> SameSpec {
        SameSpec {
            text: same::text_of_engine(self.rows, self.blocks),
            studies: usize::from(self.studies),
            blocks: usize::from(self.blocks),
            seed: self.seed,
            results: None,
        }
    }

    /// Returns the command with these options.
    fn command(&self) -> String {
        format!(
            "cargo xtask bench studies --studies {} --blocks {} --rows {} --delayed-studies {} --delayed-rows {} --seed {}",
            self.studies,
            self.blocks,
            RowCount(self.rows),
            self.delayed_studies,
            RowCount(self.delayed_rows),
            self.seed
        )
    }
}
