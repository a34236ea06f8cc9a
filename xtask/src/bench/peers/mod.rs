//! Side by side in one run: plumb and what others sort and index with.
//!
//! What it does: gives each program the same rows ([`Keys`]), the same memory and
//! the same degree, and measures the index on their key, or a sorted copy where
//! a peer has no such index, cold, several times.
//!
//! How:
//!
//! 1. The rows are written once as CSV. Each peer is fetched and loads them in
//!    its own best form; then the CSV is removed.
//! 2. Rounds: every task of every peer once, in a new random order. What the
//!    machine does meanwhile so meets all alike, and ratios are taken within
//!    rounds.
//! 3. A table for each memory limit, and the same as a document.
//!
//! A peer that cannot be fetched, started or loaded is a row that says why; a
//! task that fails is not tried again. Everything lies in one directory, which
//! is removed in any case, Ctrl-C included; only what was fetched stays, in the
//! target directory. Children end with this program (`child`).
//!
//! Why Python: DuckDB, DataFusion and SQLite are libraries, and their Python
//! packages are the builds that most people use. The scripts only issue
//! commands and read the clock; no row passes through Python while it runs.
//!
//! Limits: Linux; needs network access for what was not fetched yet; no part
//! of the tests. What the host of a virtual machine caches is out of reach.

pub(super) mod child;
pub(super) mod commits;
mod document;
mod gnu_sort;
mod libraries;
pub(super) mod load;
mod packages;
pub(super) mod peer;
mod plumb;
pub(super) mod postgres;
mod python;
mod records;
mod rows_text;
mod table;

use super::dataset::Keys;
use super::machine::Machine;
use super::order;
use super::stop::{Room, Stop};
use anyhow::Context;
use clap::Args;
use document::Findings;
use libraries::Library;
use peer::{Ground, KeyFacts, Peer};
use plumb_proof::random::Generator;
use plumb_units::{Bytes, RowCount};
pub(super) use records::DuckRecords;
use std::fs;
use std::path::PathBuf;
use table::{Record, STANDARD};

/// Whom to compare, on what, and how often.
#[derive(Debug, Args)]
pub struct Options {
    /// Keys: of two numbers (the sales), or text with long shared beginnings (page views).
    #[arg(long, value_enum, default_value_t = Keys::Numbers)]
    keys: Keys,
    /// Rows of the table.
    #[arg(long, default_value = "10M")]
    rows: RowCount,
    /// Memory limits, each a table.
    #[arg(long, value_delimiter = ',', default_value = "64M,256M")]
    memory: Vec<Bytes>,
    /// Threads or processes that sort.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=9))]
    degree: u8,
    /// Rounds.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Seed of the rows and of the order of runs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the data goes, removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Only these peers (PostgreSQL, DuckDB, SQLite, "GNU sort", DataFusion), and plumb.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also writes the results there, as docs/measured/peers.md; the part of other keys stays.
    #[arg(long)]
    document: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let mut peers = selected(&options.only)?;
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "peers")?;
    let mut ground = ground(options, &room, stop)?;
    ground.facts = rows_text::write_csv(&ground.csv, ground.text_rows(), &ground.stop)?;
    let mut records = prepare(&mut peers, &ground, &options.memory)?;
    fs::remove_file(&ground.csv)?;
    let machine = Machine::describe(&ground.directory);
    rounds(&mut peers, &ground, &mut records, options)?;
    println!("\n{}", machine.show());
    for limit in &options.memory {
        println!(
            "keys of {}: {} rows, {limit}, degree {}, {} rounds",
            options.keys.name(),
            options.rows,
            options.degree,
            options.repeat
        );
        println!("{}", table::show(&table::rows(&records, *limit)));
    }
    if let Some(path) = &options.document {
        let present = fs::read_to_string(path).unwrap_or_default();
        let text = document::render(options, &Findings { machine, records }, &peers, &present);
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// plumb and those of its peers that were asked for, or all.
fn selected(only: &[String]) -> anyhow::Result<Vec<Box<dyn Peer>>> {
    let all: Vec<Box<dyn Peer>> = vec![
        Box::new(plumb::Plumb),
        Box::new(postgres::Postgres::new()),
        Box::new(Library::duckdb()),
        Box::new(Library::sqlite()),
        Box::new(gnu_sort::GnuSort),
        Box::new(Library::datafusion()),
    ];
    let is = |peer: &dyn Peer, name: &String| {
        peer.name().replace(' ', "").eq_ignore_ascii_case(&name.replace([' ', '-', '_'], ""))
    };
    if let Some(unknown) = only.iter().find(|name| !all.iter().any(|peer| is(peer.as_ref(), name))) {
        let names: Vec<&str> = all.iter().map(|peer| peer.name()).collect();
        anyhow::bail!("--only: there is no peer {unknown}; there are {}", names.join(", "));
    }
    let wanted = |peer: &dyn Peer| {
        only.is_empty() || peer.name() == STANDARD || only.iter().any(|name| is(peer, name))
    };
    Ok(all.into_iter().filter(|peer| wanted(peer.as_ref())).collect())
}

fn ground(options: &Options, room: &Room, stop: Stop) -> anyhow::Result<Ground> {
    Ok(Ground {
        directory: room.path().to_path_buf(),
        packages: packages::directory()?,
        stop,
        keys: options.keys,
        rows: options.rows,
        seed: options.seed,
        degree: usize::from(options.degree),
        csv: room.path().join("rows.csv"),
        facts: KeyFacts::default(),
    })
}

/// Fetches and loads; a record for each task, and one for a peer that has none.
fn prepare(peers: &mut [Box<dyn Peer>], ground: &Ground, limits: &[Bytes]) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    for peer in peers {
        eprintln!("{}: fetching, loading", peer.name());
        let prepared = peer.prepare(ground);
        ground.stop.check()?;
        let record = |version: &str, task, failure| Record {
            peer: peer.name(),
            version: version.to_string(),
            task,
            runs: Vec::new(),
            failure,
        };
        match prepared {
            Ok(version) => {
                records.extend(peer.tasks(limits).into_iter().map(|task| record(&version, Some(task), None)));
            }
            Err(error) => {
                let why = ground.show(&error);
                eprintln!("{}: {why}", peer.name());
                records.push(record("", None, Some(why)));
            }
        }
    }
    Ok(records)
}

fn rounds(
    peers: &mut [Box<dyn Peer>],
    ground: &Ground,
    records: &mut [Record],
    options: &Options,
) -> anyhow::Result<()> {
    let mut random = Generator::new(options.seed);
    for round in 0..usize::from(options.repeat) {
        for index in order(&mut random, records.len()) {
            let record = &mut records[index];
            let (Some(task), None) = (&record.task, &record.failure) else { continue };
            let Some(peer) = peers.iter_mut().find(|peer| peer.name() == record.peer) else { continue };
            let what = format!("round {}: {}, {}, {}", round + 1, record.peer, task.work, task.memory);
            // Nothing of the run before is left to be written in this one.
            rustix::fs::sync();
            let ran = peer.run(ground, task);
            ground.stop.check()?;
            match ran {
                Ok(run) => {
                    eprintln!("{what}: {:.3} s", run.seconds);
                    record.runs.push((round, run));
                }
                Err(error) => {
                    let why = ground.show(&error);
                    eprintln!("{what}: {why}");
                    record.failure = Some(why);
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_peers_in_any_spelling_and_plumb_always_runs() {
        let names = |only: &[&str]| -> Vec<&'static str> {
            let only: Vec<String> = only.iter().map(|name| (*name).to_string()).collect();
            selected(&only).expect("known").iter().map(|peer| peer.name()).collect()
        };
        assert_eq!(names(&[]).len(), 6);
        assert_eq!(names(&["gnu-sort", "duckdb"]), ["plumb", "DuckDB", "GNU sort"]);
        assert!(selected(&["oracle".to_string()]).is_err());
    }
}
