//! Processes on a real disk that are killed: what they said was committed is there.
//!
//! A child opens the database and changes table T by several sessions, each a thread with rows of its own. After each commit it writes
//! a line to its standard output, `session transaction`, and goes on. The parent reads the lines, kills it at some moment (SIGKILL), reads what is
//! left in the pipe, and opens the database. Of each session there must be what its transactions up to the last acknowledged one make,
//! or that and the one that was under way; for the rows of a transaction follow from its number.
//!
//! Limits: the kernel survives, so what was written and not synced is there. That a sync is asked for where it is needed is what the
//! simulated disk tries.

use super::world::number;
use super::{Seeded, TABLE, index, schema, unique_index};
use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::transaction::{Transaction, Transactions};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::Role;
use plumb_types::Value;
use plumb_units::{Bytes, RowId};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Sessions of a child.
pub const SESSIONS: u64 = 4;
/// Rows of a session are deleted again so many transactions later, some of them.
const LIFE: u64 = 40;
/// Longest life of a child.
const LIFE_MOST: Duration = Duration::from_millis(120);

fn settings() -> Settings {
    let mut settings = Settings::default();
    let small =
        [("log_file_size", "1M"), ("log_file_groups", "3"), ("log_buffer", "256K"), ("data_files", "1")];
    for (name, value) in small.into_iter().chain([("db_cache_size", "1M"), ("extent_size", "256K")]) {
        settings.set(name, value, "the crash harness").expect("in range");
    }
    settings
}

/// Members of a log file, for one database each.
pub const MEMBERS: [&str; 2] = ["1", "2"];

/// Makes a database with an empty table T in a directory, whose log files have so many members.
pub fn create(home: &Path, members: &str) -> Result<(), EngineError> {
    let mut settings = settings();
    settings.set("log_file_members", members, "the crash harness").expect("in range");
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1), indx: Bytes(1 << 20) };
    let layout = Layout::in_one(home.to_path_buf());
    let instance = Instance::create(&layout, settings, sizes, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    let indexes = [unique_index("T_ID", &["ID"]), index("T_K", &["K"])];
    transactions.create_table(&session, TABLE, &schema(), &indexes)
}

/// The numbers of the rows that a transaction of a session inserts.
fn inserted(session: u64, transaction: u64) -> impl Iterator<Item = i64> {
    let first = (session << 40 | transaction << 4) as i64;
    first..first + 1 + (transaction * 7 % 5) as i64
}

/// Whether a transaction deletes what the one [`LIFE`] before it has inserted.
fn deletes(transaction: u64) -> bool {
    transaction >= LIFE && !transaction.is_multiple_of(3)
}

/// The rows of a session behind so many of its transactions.
fn rows_behind(session: u64, transactions: u64) -> BTreeSet<i64> {
    let mut rows = BTreeSet::new();
    for transaction in 0..transactions {
        rows.extend(inserted(session, transaction));
        if deletes(transaction) {
            inserted(session, transaction - LIFE).for_each(|id| {
                rows.remove(&id);
            });
        }
    }
    rows
}

/// What a child does until it is killed: each session goes on behind the transaction that its argument names.
pub fn child(home: &Path, behind: &[u64]) -> Result<(), EngineError> {
    let instance = Instance::open(home, settings(), Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    thread::scope(|scope| {
        let work = |(session, next): (u64, u64)| work(&transactions, session, next);
        let threads: Vec<_> = behind
            .iter()
            .enumerate()
            .map(|(number, next)| scope.spawn(move || work((number as u64, *next))))
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })
}

fn work(transactions: &Transactions<'_>, session: u64, first: u64) -> Result<(), EngineError> {
    let recorded = transactions.instance().recorder.session(Role::User);
    let mut connection = transactions.connect(&recorded);
    let mut transaction = connection.begin();
    for number_of in first.. {
        let mut texts = Seeded(session << 32 | number_of);
        for id in inserted(session, number_of) {
            let text = Value::Text("k".repeat(1 + texts.below(200) as usize));
            // One in eight has no room in a block.
            let is_long = texts.below(8) == 0;
            let long = if is_long { Value::Text(format!("{id:020000}")) } else { Value::Null };
            transaction.insert(TABLE, &[number(id), number(id % 50), text, long])?;
        }
        if deletes(number_of) {
            for id in inserted(session, number_of - LIFE) {
                delete(&mut transaction, id)?;
            }
        }
        transaction.commit_and_chain()?;
        let line = format!("{session} {number_of}\n");
        // A parent that reads no more has seen enough.
        if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn delete(transaction: &mut Transaction<'_, '_>, id: i64) -> Result<(), EngineError> {
    let rows: Vec<RowId> = transaction.lookup("T_ID", &[number(id)])?.into_iter().map(|row| row.id).collect();
    rows.into_iter().try_for_each(|row| transaction.delete(TABLE, row))
}

/// What came of the cycles.
#[derive(Debug, Default, Clone, Copy)]
pub struct KillTally {
    pub cycles: u64,
    pub commits: u64,
    /// Commits that were there without having been acknowledged.
    pub unsaid: u64,
}

/// So many cycles in a directory where a database is; `make` gives the command of a child that goes on behind these transactions.
/// Panics when the oracle finds something.
pub fn cycles(home: &Path, seed: u64, count: u64, make: impl Fn(&[u64]) -> Command) -> KillTally {
    let mut random = Seeded(seed);
    let mut next = vec![0; SESSIONS as usize];
    let mut tally = KillTally::default();
    for cycle in 0..count {
        let before = next.clone();
        let life = Duration::from_micros(random.below(LIFE_MOST.as_micros() as u64));
        for (session, transaction) in acknowledged(make(&next), life) {
            assert_eq!(transaction, next[session as usize], "lines of a session come in order");
            next[session as usize] += 1;
        }
        let found = found(home).unwrap_or_else(|error| panic!("seed {seed} cycle {cycle}: {error}"));
        for (session, next) in next.iter_mut().enumerate() {
            let rows = found.get(&(session as u64)).cloned().unwrap_or_default();
            if rows != rows_behind(session as u64, *next) {
                *next += 1;
                tally.unsaid += 1;
                let said = || format!("seed {seed} cycle {cycle} session {session}: {next} transactions");
                assert!(rows == rows_behind(session as u64, *next), "{} are not what is there", said());
            }
        }
        tally.commits += next.iter().zip(&before).map(|(next, before)| next - before).sum::<u64>();
        tally.cycles += 1;
    }
    tally
}

/// The commits that a child has acknowledged when it was killed after so long.
fn acknowledged(mut command: Command, life: Duration) -> Vec<(u64, u64)> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a child starts");
    let pipe = BufReader::new(child.stdout.take().expect("piped"));
    let reader = thread::spawn(move || {
        let lines = pipe.lines().map_while(Result::ok);
        // The last line may be cut off, and a harness may print lines of its own.
        let parsed = lines.filter_map(|line| {
            let (session, transaction) = line.split_once(' ')?;
            Some((session.parse().ok()?, transaction.parse().ok()?))
        });
        parsed.collect::<Vec<(u64, u64)>>()
    });
    thread::sleep(life);
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    reader.join().expect("no panic")
}

/// The rows of each session, recovered; the indexes agree.
fn found(home: &Path) -> Result<BTreeMap<u64, BTreeSet<i64>>, EngineError> {
    let instance = Instance::open(home, settings(), Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    let mut found: BTreeMap<u64, BTreeSet<i64>> = BTreeMap::new();
    let mut connection = transactions.connect(&session);
    connection.begin().scan(TABLE, |row| {
        let id: i64 = row.values[0].to_string().parse().expect("a number");
        found.entry(id as u64 >> 40).or_default().insert(id);
        Ok(())
    })?;
    drop(connection);
    transactions.check(&session, TABLE)?;
    Ok(found)
}
