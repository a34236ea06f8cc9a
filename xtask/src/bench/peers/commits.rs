//! Commits beside SQLite (WAL) and PostgreSQL: rows of 42 bytes without an index, in few large transactions and in many of one row.
//!
//! Each peer gets the rows as it takes them fastest: plumb as row images in arrays of 10,000, SQLite by INSERT ... SELECT from a table in memory,
//! PostgreSQL by COPY from a file; for tiny transactions a prepared insert and a commit each, in PostgreSQL within a procedure, so that no
//! message passes between two of them. All wait for the disk at each commit, keep their log of everything, and write to tables that are
//! there and empty. One session each.
//!
//! In each round all do both once, in a new random order, each from its start on. The ratio is taken within rounds; its interval is
//! that of the median by signs.
//!
//! Limits: what comes later (checkpoints, autovacuum) is not in these times.

use super::child::Watch;
use super::document;
use super::peer::{Ground, KeyFacts};
use super::postgres::Postgres;
use super::python::Script;
use crate::bench::dataset::Keys;
use crate::bench::machine::{Machine, today};
use crate::bench::redo::{create_table, median_interval, rows};
use crate::bench::stop::{Room, Stop};
use crate::bench::{Spread, order, settings};
use anyhow::Context;
use clap::Args;
use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::Transactions;
use plumb_engine::{Instance, Layout};
use plumb_events::Cancel;
use plumb_events::{Role, now};
use plumb_proof::random::Generator;
use plumb_report::format::grouped;
use plumb_units::{Bytes, RowCount};
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// Rows of a large transaction.
const LARGE: u64 = 100_000;
/// Rows of an array that plumb inserts at once.
const ARRAY: u64 = 10_000;
/// Within which tiny transactions count as equal.
const MARGIN: f64 = 0.05;

/// How much, how often, and where.
#[derive(Debug, Args)]
pub struct Options {
    /// Rows in large transactions, of 100,000 each.
    #[arg(long, default_value = "1M")]
    rows: RowCount,
    /// Transactions of one row.
    #[arg(long, default_value_t = 2000)]
    tiny: u64,
    /// Rounds.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Seed of the order of runs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the data goes, removed in the end.
    #[arg(long, default_value = ".")]
    path: PathBuf,
    /// Also writes the results there, as a part of docs/measured/peers.md.
    #[arg(long)]
    document: Option<PathBuf>,
}

#[derive(Debug)]
enum Committer {
    Plumb,
    Sqlite(Script),
    Postgres(Postgres),
}

impl Committer {
    fn name(&self) -> &'static str {
        match self {
            Committer::Plumb => "plumb",
            Committer::Sqlite(_) => "SQLite, WAL, synchronous=FULL",
            Committer::Postgres(_) => "PostgreSQL",
        }
    }

    fn prepare(&mut self, ground: &Ground) -> anyhow::Result<()> {
        match self {
            Committer::Plumb => Ok(()),
            Committer::Sqlite(script) => script.fetch(ground),
            Committer::Postgres(postgres) => postgres.make_cluster(ground),
        }
    }

    /// Seconds that so many rows took, so many a transaction; and its version.
    fn run(&mut self, ground: &Ground, (rows, per_commit): (u64, u64)) -> anyhow::Result<(f64, String)> {
        let job = json!({
            "action": "commits", "directory": ground.directory, "rows": rows, "per_commit": per_commit,
            "data": ground.keys.job(),
        });
        match self {
            Committer::Plumb => Ok((plumb(ground, rows, per_commit)?, env!("CARGO_PKG_VERSION").to_string())),
            Committer::Sqlite(script) => {
                let answer = script.call(ground, &job, Watch::Nobody)?.0;
                Ok((answer.seconds, answer.version))
            }
            Committer::Postgres(postgres) => postgres.commits(ground, job),
        }
    }
}

/// What a committer took, round by round.
#[derive(Debug)]
struct Record {
    committer: Committer,
    version: String,
    large: Vec<f64>,
    tiny: Vec<f64>,
    failure: Option<String>,
}

pub(in crate::bench) fn run(options: &Options) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    let room = Room::create(&options.path, "commits")?;
    let ground = Ground {
        directory: room.path().to_path_buf(),
        packages: super::packages::directory()?,
        stop,
        keys: Keys::Numbers,
        rows: options.rows,
        seed: options.seed,
        degree: 1,
        csv: room.path().join("rows.csv"),
        facts: KeyFacts::default(),
    };
    let sqlite = Script::new("sqlite", include_str!("commits_sqlite.py"), &["apsw==3.54.1.0"]);
    let committers = [Committer::Plumb, Committer::Sqlite(sqlite), Committer::Postgres(Postgres::new())];
    let mut records: Vec<Record> = committers
        .into_iter()
        .map(|committer| Record {
            committer,
            version: String::new(),
            large: vec![],
            tiny: vec![],
            failure: None,
        })
        .collect();
    for record in &mut records {
        record.failure = record.committer.prepare(&ground).err().map(|error| ground.show(&error));
    }
    let machine = Machine::describe(&ground.directory);
    let mut random = Generator::new(options.seed);
    for round in 0..options.repeat {
        for index in order(&mut random, 2 * records.len()) {
            let (record, is_tiny) = (&mut records[index / 2], index % 2 == 1);
            if record.failure.is_some() {
                continue;
            }
            rustix::fs::sync();
            let work = if is_tiny { (options.tiny, 1) } else { (options.rows.0, LARGE) };
            let ran = record.committer.run(&ground, work);
            ground.stop.check()?;
            match ran {
                Ok((seconds, version)) => {
                    record.version = version;
                    eprintln!(
                        "round {}: {}, {} rows: {seconds:.3} s",
                        round + 1,
                        record.committer.name(),
                        work.0
                    );
                    if is_tiny { &mut record.tiny } else { &mut record.large }.push(seconds);
                }
                Err(error) => record.failure = Some(ground.show(&error)),
            }
        }
    }
    let text = part(options, &machine, &records);
    println!("{text}");
    if let Some(path) = &options.document {
        let present = fs::read_to_string(path).unwrap_or_default();
        fs::write(path, document::with_commits(&present, &text))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// plumb, in this process, on a database of its own.
fn plumb(ground: &Ground, count: u64, per_commit: u64) -> anyhow::Result<f64> {
    let home = ground.directory.join("plumb");
    let bytes = Bytes((count * 80).max(Bytes::M));
    let sizes = InitialSizes { users: bytes, temp: Bytes(Bytes::M), indx: Bytes(Bytes::M) };
    let layout = Layout::in_one(home);
    let instance = Instance::create(&layout, settings(&[], &[])?, sizes, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    create_table(&transactions, &session)?;
    let mut connection = transactions.connect(&session);
    let mut transaction = connection.begin();
    let array = rows(per_commit.min(ARRAY));
    let begin = now();
    for _ in 0..count / per_commit {
        for _ in 0..per_commit.div_ceil(ARRAY) {
            transaction.insert_rows("T", &array)?;
        }
        transaction.commit_and_chain()?;
    }
    let seconds = now().saturating_sub(begin).seconds();
    drop(transaction);
    drop(connection);
    let found = transactions.check(&session, "T")?.row_count;
    anyhow::ensure!(found == count, "wrong result: {found} rows of {count}");
    drop(transactions);
    drop(session);
    instance.destroy()?;
    Ok(seconds)
}

/// The table, as text and as a part of the document.
fn part(options: &Options, machine: &Machine, records: &[Record]) -> String {
    let mut text = format!(
        "## Commits\n\nMade on {} by `cargo xtask bench commits --rows {} --tiny {} --repeat {}`: rows of 42 bytes, no index, one session; {} rows in \
         transactions of {LARGE}, and {} transactions of one row.\n\n{}\n",
        today(),
        options.rows.0,
        options.tiny,
        options.repeat,
        options.rows.0,
        options.tiny,
        machine.show()
    );
    let per_second = |count: u64, seconds: &[f64]| {
        let rates: Vec<f64> = seconds.iter().map(|seconds| count as f64 / seconds).collect();
        let Some(spread) = (!rates.is_empty()).then(|| Spread::of(rates)) else { return "-".to_string() };
        let [median, least, most] = [spread.median, spread.least, spread.most].map(|rate| grouped(rate, 0));
        format!("{median} [{least} .. {most}]")
    };
    let mut cells = Vec::new();
    for record in records {
        let ratio = |own: &[f64], of_plumb: &[f64]| match own.is_empty() || own.len() != of_plumb.len() {
            true => "-".to_string(),
            false => compared(own.iter().zip(of_plumb).map(|(own, plumb)| own / plumb).collect()),
        };
        cells.push(vec![
            record.committer.name().to_string(),
            record.version.clone(),
            per_second(options.rows.0, &record.large),
            ratio(&record.large, &records[0].large),
            per_second(options.tiny, &record.tiny),
            ratio(&record.tiny, &records[0].tiny),
            record.failure.clone().unwrap_or_default(),
        ]);
    }
    let head = [
        "",
        "version",
        "rows/s, large",
        "times plumb's time",
        "commits/s, one row",
        "times plumb's time",
        "note",
    ];
    text.push_str(&super::table::markdown(&head, &cells));
    let _ = writeln!(
        text,
        "\nMedian [least .. most] of {} rounds; of ratios the 95% interval of the median by signs, and what it says. All wait for the disk at \
         each commit and log everything: plumb with defaults; SQLite with pages of 8K, INSERT ... SELECT from a table in memory; PostgreSQL with \
         wal_level=minimal, COPY from a file, and a procedure that inserts and commits.",
        options.repeat
    );
    text
}

/// `2.31 [2.20, 2.45] plumb is ahead`
pub(super) fn compared(ratios: Vec<f64>) -> String {
    let mut sorted = ratios.clone();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = median_interval(sorted.len());
    let (low, high) = (sorted[least], sorted[most]);
    let says = match () {
        () if sorted.len() < 6 => "too few rounds to say",
        () if low > 1.0 => "plumb is ahead",
        () if low > 1.0 - MARGIN && high < 1.0 + MARGIN => "equal within 5%",
        () if high < 1.0 => "plumb is behind",
        () => "open",
    };
    format!("{:.2} [{low:.2}, {high:.2}] {says}", Spread::of(ratios).median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_called_what_its_interval_shows() {
        let said = |ratios: &[f64]| compared(ratios.to_vec());
        assert_eq!(said(&[2.0; 5]), "2.00 [2.00, 2.00] too few rounds to say");
        assert_eq!(said(&[2.0; 9]), "2.00 [2.00, 2.00] plumb is ahead");
        assert_eq!(said(&[0.99; 9]), "0.99 [0.99, 0.99] equal within 5%");
        assert_eq!(said(&[0.9; 9]), "0.90 [0.90, 0.90] plumb is behind");
        assert_eq!(said(&[0.8, 0.8, 0.8, 0.9, 1.0, 1.1, 1.2, 1.2, 1.2]), "1.00 [0.80, 1.20] open");
    }
}
