//! Runs studies of a PostgreSQL server whose truth is known.
//!
//! ```text
//! same       two arms that set the same: every proof is false
//! storage    places on disks whose flushes wait a known time: commits take longer by that time
//! ```
//!
//! Each study is a text like a user's, and each run a process of plumb, as in `bench studies`.

mod storage;

use super::machine::Machine;
use super::studies::laboratory::Laboratory;
use super::studies::same::{self, SameSpec};
use clap::{Args, ValueEnum};
use plumb_postgres::installation::Installation;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Same,
    Storage,
}

#[derive(Debug, Args)]
pub(crate) struct PostgresBench {
    /// Parts of the bench to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "same,storage")]
    part: Vec<Part>,
    /// Directory of the server's programs [default: the highest version found]
    #[arg(long, value_name = "DIR")]
    server: Option<String>,
    /// Number of A/A studies, those of the results included.
    #[arg(long, default_value_t = 60)]
    studies: usize,
    /// Blocks of each study; six are the fewest that can prove anything.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(6..=100))]
    blocks: u16,
    /// Rows of the A/A studies' table.
    #[arg(long, default_value = "100K", value_parser = plumb_units::parse_count)]
    rows: u64,
    /// File that keeps the outcome of each A/A study; those in it are not made again.
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// Rows of the import on slow disks.
    #[arg(long, default_value = "4K", value_parser = plumb_units::parse_count)]
    slow_rows: u64,
    /// Directory on a disk, for servers, images and mount points.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    path: PathBuf,
    /// Seed of the random orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(super) fn run(options: &PostgresBench) -> anyhow::Result<()> {
    let server = Installation::find(options.server.as_deref())?;
    let laboratory = Laboratory::open(&options.path)?;
    println!("{}\n{}\n", Machine::describe(&options.path).show(), server.describe());
    for part in &options.part {
        match part {
            Part::Same => println!("{}", same::run(&options.same(&server), &laboratory)?.show()),
            Part::Storage => storage::run(options, &server, &laboratory)?,
        }
    }
    Ok(())
}

impl PostgresBench {
    fn same(&self, server: &Installation) -> SameSpec {
        let head = format!(
            "target = \"postgres\"\n[settings]\nserver = \"{}\"\nmax_parallel_maintenance_workers = 0\n",
            server.directory.display()
        );
        SameSpec {
            text: same::text(&head, self.rows, self.blocks, "maintenance_work_mem = \"4MB\""),
            studies: self.studies,
            blocks: usize::from(self.blocks),
            seed: self.seed,
            results: self.results.clone(),
        }
    }
}
