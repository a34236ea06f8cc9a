//! Studies on the real engine: what the laboratory says where the truth is known.
//!
//! What it does: `bench proof` feeds the inference with synthetic figures; this one has the
//! laboratory make real studies, end to end, of which the answer is known beforehand. Many compare
//! an arm with itself (A/A): whatever they prove is false. Others slow every request of an arm
//! by a known delay: that has to be found as often as is stated.
//!
//! How: a study is a text, as a user's would be; `plumb_run` plans, runs, keeps and judges it, each
//! run a process of the program that is beside this one. The delays are `debug_request_delay`,
//! sized by a pilot study so that the elapsed time grows by 2, 5 and 10%, and the number of blocks
//! by the pilot's noise.
//!
//! Why small tables: forty studies have a thousand runs. A run of 100K rows lasts some ten
//! milliseconds, so that the noise is larger than that of a long run, and the tests are no easier
//! for it. Delays are looked for in a larger one.
//!
//! Limits: the two comparisons of an A/A study share the reference's first run, so that they are
//! not independent of each other; each alone is. Forty studies tell 5% from 20%, and not from 3%:
//! the interval says so.

mod delayed;
mod document;
mod laboratory;
mod same;

use super::machine::Machine;
use anyhow::Context;
use clap::Args;
use laboratory::Laboratory;
use plumb_units::RowCount;
use std::fs;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Options {
    /// A/A studies, whose truth is no difference.
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=1000))]
    studies: u16,
    /// Blocks of each; six are the fewest that can prove anything.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=100))]
    blocks: u16,
    /// Rows of the table of A/A studies.
    #[arg(long, default_value = "100K", value_parser = plumb_units::parse_count)]
    rows: u64,
    /// Studies of delays of 2, 5 and 10%.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    delayed_studies: u16,
    /// Rows of the table whose requests are delayed.
    #[arg(long, default_value = "1M", value_parser = plumb_units::parse_count)]
    delayed_rows: u64,
    /// Directory of databases and bundles, which are removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Seed of the orders of runs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also writes the results there, in a part of its own.
    #[arg(long)]
    document: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let laboratory = Laboratory::open(&options.path)?;
    let machine = Machine::describe(&options.path);
    println!("{}", machine.show());
    let delayed = delayed::run(options, &laboratory)?;
    println!("{}", delayed.show());
    let same = same::run(options, &laboratory)?;
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
    /// As it could be typed again.
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
