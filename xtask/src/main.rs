//! Development commands: `cargo xtask tidy`, `lines`, `bench NAME`, `dist`.
//!
//! It depends on no crate of plumb, so that `tidy` and `lines` build in seconds.

mod dist;
mod tidy;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        /// Write the budgets and the counts of old breaches that have shrunk.
        #[arg(long)]
        shrink: bool,
    },
    /// Counts the lines of code of each crate, comments and tests apart.
    Lines,
    /// Builds the benches and runs one: `bench NAME`; `bench help` lists them.
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
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
        Chore::Bench { arguments } => bench(&arguments),
        Chore::Dist(options) => dist::run(&workspace(), &options),
    }
}

/// Builds and runs the crate of the benches. It is a program of its own, because it needs every
/// crate and `tidy` none.
fn bench(arguments: &[OsString]) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = workspace().join("Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "plumb-bench", "--manifest-path"]);
    let status = command.arg(manifest).arg("--").args(arguments).status()?;
    // The bench has printed its reason.
    std::process::exit(status.code().unwrap_or(1));
}

/// Returns the workspace's root directory.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}
