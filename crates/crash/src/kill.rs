//! Killed processes on a real disk: each reported commit must survive.
//!
//! A child opens the database and changes table T in several sessions, each a thread with its own
//! rows. It reports each commit and continues. The parent kills it at some moment (SIGKILL), reads
//! the rest of the reports, and opens the database. Each session must have the rows of its
//! transactions up to the last acknowledged one, or of that and the one in flight. The number of a
//! transaction determines its rows and their values.
//!
//! Limits: the kernel survives, so unsynced writes survive too. The simulated disk tests that syncs
//! are requested where they are needed. So does `cargo xtask bench power`, which runs these
//! children.

use super::world::number;
use super::{TABLE, index, schema, unique_index};
use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::{Transaction, Transactions};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::{Cancel, Role, Session};
use plumb_types::Value;
use plumb_units::{Bytes, RowId, SplitMix};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

pub const SESSIONS: usize = 4;
/// Transactions after which some rows of a session are deleted.
const LIFE: u64 = 40;
/// Transactions after which some rows are updated, before others delete them.
const UPDATE_AFTER: u64 = 10;
/// Longest life of a child, from its start or from its first report.
const LIFE_MOST: Duration = Duration::from_millis(120);

/// Returns the settings of such a database, with additional ones.
pub fn settings(more: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    let small =
        [("log_file_size", "1M"), ("log_file_groups", "3"), ("log_buffer", "256K"), ("data_files", "1")];
    let small = small.into_iter().chain([("db_cache_size", "1M"), ("extent_size", "256K")]);
    for (name, value) in small.chain(more.iter().copied()) {
        settings.set(name, value, "the crash harness").expect("in range");
    }
    settings
}

/// Directories of log file members, for one database each.
pub const MEMBERS: [&str; 2] = ["1", "2"];

/// Creates a database with an empty table T in a directory.
pub fn create(home: &Path, settings: Settings) -> Result<(), EngineError> {
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1), indx: Bytes(1 << 20) };
    let layout = Layout::in_one(home.to_path_buf());
    let instance = Instance::create(&layout, settings, sizes, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    let indexes = [unique_index("T_ID", &["ID"]), index("T_K", &["K"])];
    transactions.create_table(&session, TABLE, &schema(), &indexes)
}

/// Returns the ids of the rows that a transaction of a session inserts.
fn inserted(session: u64, transaction: u64) -> impl Iterator<Item = i64> {
    let first = (session << 40 | transaction << 4) as i64;
    first..first + 1 + (transaction * 7 % 5) as i64
}

/// True if a transaction deletes the rows inserted [`LIFE`] transactions before it.
fn deletes(transaction: u64) -> bool {
    transaction >= LIFE && !transaction.is_multiple_of(3)
}

/// True if a transaction updates the rows inserted [`UPDATE_AFTER`] transactions before it.
fn updates(transaction: u64) -> bool {
    transaction >= UPDATE_AFTER && transaction.is_multiple_of(2)
}

/// Rows by id, each with the transaction that wrote it last.
type Versions = BTreeMap<i64, u64>;

/// Returns the rows of a session after the first `transactions` of its transactions.
fn rows_behind(session: u64, transactions: u64) -> Versions {
    let mut rows = Versions::new();
    for transaction in 0..transactions {
        rows.extend(inserted(session, transaction).map(|id| (id, transaction)));
        if updates(transaction) {
            let updated = inserted(session, transaction - UPDATE_AFTER);
            rows.extend(updated.map(|id| (id, transaction)));
        }
        if deletes(transaction) {
            inserted(session, transaction - LIFE).for_each(|id| {
                rows.remove(&id);
            });
        }
    }
    rows
}

/// Returns the columns of a row as a transaction writes it.
fn values(id: i64, transaction: u64) -> [Value; 4] {
    let mut texts = SplitMix(id as u64 ^ transaction << 20);
    let text = Value::Text("k".repeat(1 + texts.below(200) as usize));
    // One row in eight is longer than a block of 8K.
    let is_long = texts.below(8) == 0;
    let width = 9_000 + texts.below(11_000) as usize;
    let long = if is_long { Value::Text(format!("{transaction:0width$}")) } else { Value::Null };
    [number(id), number(transaction as i64), text, long]
}

/// Changes the database until the process is killed. Each session continues after its recovered
/// transactions. `report` gets the line `session transactions found` of each session, and then
/// `session transaction` of each commit.
pub fn child(
    home: &Path,
    settings: Settings,
    report: &(impl Fn(&str) -> std::io::Result<()> + Sync),
) -> Result<(), Unfit> {
    let instance = Instance::open(home, settings, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    let behind = transactions_in(&transactions, &session)?;
    for (session, behind) in behind.iter().enumerate() {
        if report(&format!("{session} {behind} found\n")).is_err() {
            return Ok(());
        }
    }
    thread::scope(|scope| {
        let work = |session, next| work(&transactions, session, next, report);
        let threads: Vec<_> =
            (0..).zip(behind).map(|(session, next)| scope.spawn(move || work(session, next))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(())
}

fn work(
    transactions: &Transactions<'_>,
    session: u64,
    first: u64,
    report: &impl Fn(&str) -> std::io::Result<()>,
) -> Result<(), EngineError> {
    let recorded = transactions.instance().recorder.session(Role::User);
    let mut connection = transactions.connect(&recorded);
    let mut transaction = connection.begin();
    for number_of in first.. {
        for id in inserted(session, number_of) {
            transaction.insert(TABLE, &values(id, number_of))?;
        }
        if updates(number_of) {
            for id in inserted(session, number_of - UPDATE_AFTER) {
                update(&mut transaction, id, number_of)?;
            }
        }
        if deletes(number_of) {
            for id in inserted(session, number_of - LIFE) {
                delete(&mut transaction, id)?;
            }
        }
        transaction.commit_and_chain()?;
        // The parent has stopped reading, so the child ends.
        if report(&format!("{session} {number_of}\n")).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn update(transaction: &mut Transaction<'_, '_>, id: i64, by: u64) -> Result<(), EngineError> {
    let rows: Vec<RowId> = transaction.lookup("T_ID", &[number(id)])?.into_iter().map(|row| row.id).collect();
    for row in rows {
        transaction.update(TABLE, row, |row| row.clone_from_slice(&values(id, by)))?;
    }
    Ok(())
}

fn delete(transaction: &mut Transaction<'_, '_>, id: i64) -> Result<(), EngineError> {
    let rows: Vec<RowId> = transaction.lookup("T_ID", &[number(id)])?.into_iter().map(|row| row.id).collect();
    rows.into_iter().try_for_each(|row| transaction.delete(TABLE, row))
}

/// Counts of cycles, and of the commits in them.
#[derive(Debug, Default, Clone, Copy)]
pub struct KillTally {
    pub cycles: u64,
    pub commits: u64,
    /// Commits that survived without a report.
    pub unsaid: u64,
}

/// Range of commits of a session that a database may have after a crash. At least the acknowledged
/// ones. At most one more than were acknowledged, or found by an earlier opening.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    pub least: u64,
    pub most: u64,
}

impl Expected {
    /// Reads a line of a child. Returns false for any other line, because a harness may print its
    /// own lines, and the last line may be cut off.
    pub fn note(all: &mut [Expected], line: &str) -> bool {
        let mut words = line.split(' ');
        let mut next = || words.next()?.parse::<u64>().ok();
        let (Some(session), Some(transaction)) = (next(), next()) else { return false };
        let Some(expected) = all.get_mut(session as usize) else { return false };
        match words.next() {
            None => {
                *expected = Expected { least: transaction + 1, most: expected.most.max(transaction + 2) };
            }
            Some(_) => expected.most = expected.most.max(transaction + 1),
        }
        true
    }
}

/// Runs `count` cycles on the database in a directory; `make` returns the command of a
/// child. Panics after a violation.
pub fn cycles(home: &Path, seed: u64, count: u64, make: impl Fn() -> Command) -> KillTally {
    let mut random = SplitMix(seed);
    let mut expected = vec![Expected { least: 0, most: 1 }; SESSIONS];
    let mut tally = KillTally::default();
    for cycle in 0..count {
        let before: Vec<u64> = expected.iter().map(|expected| expected.least).collect();
        let age = Duration::from_micros(random.below(LIFE_MOST.as_micros() as u64));
        let since = if random.below(2) == 0 { Since::Start } else { Since::FirstReport };
        for line in reports(make(), since, age) {
            Expected::note(&mut expected, &line);
        }
        let found = transactions_found(home, settings(&[]));
        let found = found.unwrap_or_else(|error| panic!("seed {seed} cycle {cycle}: {error}"));
        for (session, (expected, found)) in expected.iter_mut().zip(&found).enumerate() {
            let said = || format!("seed {seed} cycle {cycle} session {session}: {found} transactions");
            assert!((expected.least..=expected.most).contains(found), "{} are not {expected:?}", said());
            tally.unsaid += u64::from(*found > expected.least);
            // The kernel survives, so a later opening must find no less.
            *expected = Expected { least: *found, most: found + 1 };
        }
        tally.commits += found.iter().zip(&before).map(|(found, before)| found - before).sum::<u64>();
        tally.cycles += 1;
    }
    tally
}

/// Start of the measured life: with the recovery, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Start,
    FirstReport,
}

/// Returns the lines of a child that was killed at an age.
fn reports(mut command: Command, since: Since, age: Duration) -> Vec<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("a child starts");
    let pipe = BufReader::new(child.stdout.take().expect("piped"));
    let (sender, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        pipe.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).map_err(drop))
    });
    let is_report = |line: &String| Expected::note(&mut [Expected::default(); SESSIONS], line);
    let mut reports = Vec::new();
    if since == Since::FirstReport {
        // A child that has ended sends none, and fails the assertion below.
        reports.extend(lines.iter().find(is_report));
    }
    thread::sleep(age);
    child.kill().expect("killed");
    let status = child.wait().expect("ended");
    assert!(status.code().is_none(), "the child ended by itself: {status}");
    reports.extend(lines);
    // The channel was read to its end, so the thread has ended.
    let _ = reader.join().expect("no panic");
    reports
}

/// Writes a line of a child to its standard output.
pub fn to_stdout(line: &str) -> std::io::Result<()> {
    std::io::stdout().lock().write_all(line.as_bytes())
}

/// Reasons why no number of transactions explains a database.
#[derive(Debug)]
pub enum Unfit {
    /// The engine refuses to open or to read it.
    Refused(EngineError),
    /// It has rows that no number of transactions produces.
    Wrong(String),
}

impl From<EngineError> for Unfit {
    fn from(error: EngineError) -> Unfit {
        Unfit::Refused(error)
    }
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Refused(error) => write!(f, "{error}"),
            Unfit::Wrong(wrong) => f.write_str(wrong),
        }
    }
}

/// Recovers a database, and counts the transactions of each session.
pub fn transactions_found(home: &Path, settings: Settings) -> Result<Vec<u64>, Unfit> {
    let instance = Instance::open(home, settings, Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    transactions_in(&Transactions::open(&instance, &session)?, &session)
}

/// Counts the transactions of each session by its rows. Checks the values of
/// the rows, and the indexes.
fn transactions_in(transactions: &Transactions<'_>, session: &Session) -> Result<Vec<u64>, Unfit> {
    let mut found: BTreeMap<u64, Versions> = BTreeMap::new();
    let mut wrong = None;
    transactions.connect(session).begin().scan(TABLE, |row| {
        let whole = |value: &Value| value.to_string().parse::<i64>().expect("an integer");
        let (id, transaction) = (whole(&row.values[0]), whole(&row.values[1]) as u64);
        if row.values.as_slice() != values(id, transaction) {
            wrong.get_or_insert(format!("row {id} has not the values of transaction {transaction}"));
        }
        if found.entry(id as u64 >> 40).or_default().insert(id, transaction).is_some() {
            wrong.get_or_insert(format!("row {id} is there twice"));
        }
        Ok(())
    })?;
    transactions.check(session, TABLE)?;
    let counted = (0..SESSIONS as u64).map(|session| {
        let rows = found.remove(&session).unwrap_or_default();
        // The rows of a transaction outlive the next transaction.
        let count = rows.keys().next_back().map_or(0, |id| (*id as u64 >> 4 & ((1 << 36) - 1)) + 1);
        let expected = rows_behind(session, count);
        let differs = |id: &&i64| rows.get(id) != expected.get(id);
        let first = rows.keys().chain(expected.keys()).find(differs);
        first.map_or(Ok(count), |id| {
            Err(format!(
                "session {session}, {count} transactions: row {id} is of {:?}, expected {:?}",
                rows.get(id),
                expected.get(id)
            ))
        })
    });
    let counted = counted.collect::<Result<Vec<u64>, String>>();
    match (wrong, counted) {
        (Some(wrong), _) | (None, Err(wrong)) => Err(Unfit::Wrong(wrong)),
        (None, Ok(counted)) => Ok(counted),
    }
}
