//! Costs of the buffer cache, with the device's own in the same run: missed reads, hits, scans past
//! a hot set, updates and checkpoints.
//!
//! - Missed reads ([`reads`]): sessions that read random blocks through the cache, on threads of
//!   their own and on shared servers, and fio (io_uring) on the same file, in turns of random
//!   order. One job of fio has as many requests outstanding and takes many completions at once;
//!   as many jobs with one each switch threads as sessions do. Rates, 99th percentiles, CPU a read.
//! - One session: reads through the cache and bare ones of its own channel, ten at a time in turn,
//!   and the difference of their medians.
//! - Sessions: 1 to 256 of them, and fio with as many outstanding.
//! - Hit ([`hits`]): pin and unpin of cached blocks, one thread.
//! - Scan: the hit ratio of a hot set of half the cache, without a scan and while one of ten times
//!   the cache runs; and the passes until a new hot set is admitted.
//! - Updates ([`writes`]): SLOB at 20%, and fio with the same three streams on the same files: as
//!   many reads as there are sessions, writes and log writes at the engine's rates. The rates of
//!   reads are compared.
//! - Checkpoint: dirty blocks of a large cache, against fio's random writes of as many blocks; and
//!   the 99th percentile of reads while one runs, and without.
//!
//! Each figure is printed with its goal, and with the load of the machine before and after: on a
//! busy machine a figure of one side is worth little, a ratio of neighbours more.

mod hits;
mod reads;
mod writes;

use super::figure::Figure;
use super::machine::load_average;
use super::{fio, on, order};
use anyhow::{Context, Result};
use clap::Args;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::block::Expected;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::load;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::Cancel;
use plumb_units::{BlockAddress, Bytes};
use plumb_workload::{SalesSpec, SalesTable};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A directory on the disk to measure; databases are made below it and removed.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Bytes of the file that is read.
    #[arg(long, default_value = "1G", value_parser = parse_bytes)]
    size: Bytes,
    /// Turns of each side; six are the fewest that give an interval.
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// Seconds of each side's turn.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Sessions that read, and requests that fio keeps outstanding.
    #[arg(long, default_value_t = 32)]
    sessions: usize,
    /// Threads that sessions share, where they do.
    #[arg(long, default_value_t = 1)]
    shared_servers: usize,
    /// The larger cache whose hits are timed; the other has 16M.
    #[arg(long, default_value = "1G", value_parser = parse_bytes)]
    large_cache: Bytes,
    /// The parts to measure: reads, one, sessions, hit, scan, updates, checkpoint; all when none is
    /// named.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

fn parse_bytes(text: &str) -> Result<Bytes, String> {
    plumb_units::parse_size(text).map(Bytes).map_err(|error| error.to_string())
}

/// The parts, in the order in which they are measured.
const PARTS: [&str; 7] = ["reads", "one", "sessions", "hit", "scan", "updates", "checkpoint"];

pub fn run(options: &Options) -> Result<()> {
    if let Some(unknown) = options.only.iter().find(|part| !PARTS.contains(&part.as_str())) {
        anyhow::bail!("--only {unknown}: expected one of {}", PARTS.join(", "));
    }
    println!("load before: {}", load_average());
    let path = options.path.canonicalize().with_context(|| options.path.display().to_string())?;
    let home = path.join(format!("plumb-bench-slob-{}", std::process::id()));
    let result = measure(options, &home);
    let _ = std::fs::remove_dir_all(&home);
    println!("load after: {}", load_average());
    result
}

fn measure(options: &Options, home: &Path) -> Result<()> {
    let wanted = |part: &str| options.only.is_empty() || options.only.iter().any(|only| only == part);
    let fio = fio::version()?;
    match &fio {
        Some(version) => println!("{version}"),
        None => println!(
            "there is no fio in PATH to stand beside (apt-get install fio): its columns are left out"
        ),
    }
    let beside_fio = fio.is_some();
    if ["reads", "one", "sessions", "hit", "scan"].into_iter().any(wanted) {
        let table = TableOfBlocks::create(home, options.size, "16M")?;
        let parts: [(&str, &dyn Fn() -> Result<()>); 5] = [
            ("reads", &|| reads::reads(options, &table, beside_fio)),
            ("one", &|| reads::one(options, &table)),
            ("sessions", &|| reads::sessions(options, &table, beside_fio)),
            ("hit", &|| hits::hit(&table)),
            ("scan", &|| hits::scan(&table)),
        ];
        parts.into_iter().filter(|(part, _)| wanted(part)).try_for_each(|(_, measure)| measure())?;
        table.instance.destroy()?;
    }
    if wanted("hit") {
        let table = TableOfBlocks::create(home, options.large_cache, &options.large_cache.as_setting())?;
        hits::hit(&table)?;
        table.instance.destroy()?;
    }
    if wanted("updates") {
        writes::updates(options, beside_fio)?;
    }
    if wanted("checkpoint") {
        writes::checkpoint(options, home, beside_fio)?;
        writes::reads_beside_a_checkpoint(options, home)?;
    }
    Ok(())
}

/// A table in one file, written past the cache, with the addresses of its blocks.
struct TableOfBlocks {
    instance: Instance,
    blocks: Vec<BlockAddress>,
    expected: Expected,
    file: PathBuf,
}

fn settings(given: &[(&str, &str)]) -> Result<Settings> {
    super::settings(given, &[])
}

impl TableOfBlocks {
    fn create(home: &Path, size: Bytes, cache: &str) -> Result<TableOfBlocks> {
        let settings = settings(&[("data_files", "1"), ("db_cache_size", cache)])?;
        // With room for the rows that a checkpoint is made of.
        let users = Bytes(size.0 + size.0 / 10 + 192 * Bytes::M);
        let sizes = InitialSizes { users, temp: Bytes(1), indx: Bytes(8 << 20) };
        let instance =
            Instance::create(&Layout::in_one(home.to_path_buf()), settings, sizes, Cancel::default())?;
        // 46 bytes a row, its slot included.
        load(&instance, "SALES", &SalesTable::new(SalesSpec { rows: size.0 / 46, seed: 7 }))?;
        let (blocks, expected) = {
            let catalog = instance.catalog();
            let table = catalog.table("SALES")?;
            let of = |piece: &plumb_engine::storage::control::SegmentExtent| {
                let extent = piece.extent;
                (0..piece.used).map(move |block| extent.address(block)).collect::<Vec<_>>()
            };
            (table.extents.iter().flat_map(of).collect(), table.expected())
        };
        let file = instance.tablespace(Purpose::Users).files[0].file.path().to_path_buf();
        Ok(TableOfBlocks { instance, blocks, expected, file })
    }
}

/// Jobs of fio, each with a name and what is its own.
fn fio_jobs(own: &[String]) -> Result<fio::Answer> {
    let arguments: Vec<String> = fio::OPTIONS.map(String::from).into_iter().chain(own.to_vec()).collect();
    fio::run(&arguments)
}
