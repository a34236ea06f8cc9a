//! Development commands: `cargo xtask tidy`, `lines`, `bench NAME`, `dist`.

mod bench;
mod dist;
mod tidy;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};

#[derive(Debug, Parser)]
#[command(about = "The chores of this repository")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Checks the rules of the code that a program can check.
    Tidy {
        /// Write the counts of old breaches that have shrunk.
        #[arg(long)]
        shrink: bool,
    },
    /// Counts the lines of code of each crate, comments and tests apart.
    Lines,
    /// Measures and prints; never part of a test.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Makes one static program with its manual page, completions and checksums.
    Dist(dist::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Tidy { shrink } => {
            if shrink {
                tidy::shrink(&workspace())?;
            }
            let complaints = tidy::check(&workspace());
            for complaint in &complaints {
                println!("{complaint}");
            }
            anyhow::ensure!(complaints.is_empty(), "{} complaints", complaints.len());
            Ok(())
        }
        Chore::Lines => {
            tidy::print_lines(&workspace());
            Ok(())
        }
        Chore::Bench(bench) => bench.run(),
        Chore::Dist(options) => dist::run(&workspace(), &options),
    }
}

/// Returns the workspace's root directory.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}
