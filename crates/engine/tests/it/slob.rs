//! The access pattern of SLOB: ranges of an index are read and updated, one row a block, in a
//! cache that is too small.
//!
//! The oracle: an update adds to balances and subtracts the same sum, and counts in each row. So
//! the balances keep their sum through any failure. The counters are those of the acknowledged
//! updates, or of these and the update in progress.

use crate::support::within;
use crate::transactions::number;
use plumb_crash::{HOME, LogKind, survivors};
use plumb_engine::instance::InitialSizes;
use plumb_engine::transaction::{Connection, IndexDefinition, LockWait, Transaction, Transactions};
use plumb_engine::{EngineError, Instance, Layout, Settings};
use plumb_events::Cancel;
use plumb_events::clock::now;
use plumb_events::{Event, Role, Session, SessionKind, Statistic};
use plumb_io::Disk;
use plumb_io::sim::power::Survivors;
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_types::{Column, ColumnType, Schema, Value};
use plumb_units::{Bytes, Nanos, SplitMix};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const TABLE: &str = "CF1";
const INDEX: &str = "I_CF1";
pub const ROWS: i64 = 40;
/// Bytes of filler, so that no two rows fit a block of 2K.
const FILLER: usize = 1100;
pub const BALANCE: i64 = 500_000;

fn text(value: i64) -> Value {
    Value::Text(format!("{value:09}"))
}

fn value_of(value: &Value) -> i64 {
    value.to_string().parse().expect("digits")
}

/// Makes the table with its rows, in keys that do not follow the blocks, and its index.
pub fn create(transactions: &Transactions<'_>, session: &Session) -> Result<(), EngineError> {
    let text_column = |name: &str, max_bytes| Column::required(name, ColumnType::Text { max_bytes });
    let columns = vec![
        Column::required("K", ColumnType::NUMBER),
        text_column("COUNTER", 9),
        text_column("FILLER", FILLER as u32),
        text_column("BALANCE", 9),
    ];
    let schema = Schema::new(columns).expect("a schema");
    let index = IndexDefinition { name: INDEX.into(), columns: vec![("K".into(), false)], unique: false };
    transactions.create_table(session, TABLE, &schema, &[index])?;
    let mut connection = transactions.connect(session);
    for place in 0..ROWS {
        let key = place * 7 % ROWS + 1;
        let values = [number(key), text(0), Value::Text("x".repeat(FILLER)), text(BALANCE)];
        let mut transaction = connection.begin();
        transaction.insert(TABLE, &values)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Updates the rows of these keys: adds and subtracts the same sum, counts, and overwrites
/// a part of the filler.
fn update(transaction: &mut Transaction<'_, '_>, from: i64, rows: i64) -> Result<u64, EngineError> {
    let keys = ([number(from)], [number(from + rows)]);
    transaction.update_range((TABLE, INDEX), (&keys.0, &keys.1), |place, values| {
        let pairs = rows / 2 * 2;
        let change = if place as i64 >= pairs {
            0
        } else if place % 2 == 0 {
            1
        } else {
            -1
        };
        let counter = value_of(&values[1]) + 1;
        values[1] = text(counter);
        if let Value::Text(filler) = &mut values[2] {
            filler.replace_range(10..20, &format!("{counter:010}"));
        }
        values[3] = text(value_of(&values[3]) + change);
    })
}

/// Returns the counters by key, after checking all invariants of the table.
fn read(instance: &Instance) -> Result<Vec<i64>, EngineError> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    let checked = transactions.check(&session, TABLE)?;
    assert_eq!((checked.row_count, checked.entry_count), (ROWS as u64, ROWS as u64));
    let mut counters = vec![0; ROWS as usize];
    let mut sum = 0;
    let mut connection = transactions.connect(&session);
    connection.begin().scan(TABLE, |row| {
        counters[value_of(&row.values[0]) as usize - 1] = value_of(&row.values[1]);
        sum += value_of(&row.values[3]);
        Ok(())
    })?;
    assert_eq!(sum, ROWS * BALANCE, "the balances sum to what they began with");
    // Reads the same rows by the index, in the order of keys.
    let mut by_index = Vec::new();
    connection.begin().range(INDEX, (&[number(0)], &[number(ROWS + 1)]), |_, image| {
        let counter = plumb_types::column_at(image, 1).expect("a column").expect("a value");
        by_index.push(std::str::from_utf8(counter).expect("digits").parse::<i64>().expect("digits"));
        Ok(())
    })?;
    assert_eq!(by_index, counters);
    Ok(counters)
}

fn open(disk: &Arc<MemoryDisk>) -> Result<Instance, EngineError> {
    Instance::open_on(disk, Path::new(HOME), LogKind::Plain.settings())
}

fn new_disk(seed: u64) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::with_power(seed);
    let sizes = InitialSizes { users: Bytes(128 << 10), temp: Bytes(16 << 10), indx: Bytes(32 << 10) };
    let instance =
        Instance::create_on(&disk, Path::new(HOME), LogKind::Plain.settings(), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create(&transactions, &session).expect("a table");
    drop(transactions);
    drop(session);
    drop(instance);
    disk
}

/// Counters that are committed for certain, and those after the commit in progress.
struct Run {
    acknowledged: Vec<i64>,
    under_way: Vec<i64>,
    error: Option<EngineError>,
}

/// Steps sessions that update and select, in an order from the seed, on one thread.
fn run(instance: &Instance, random: &mut SplitMix, counters: Vec<i64>) -> Run {
    let mut run = Run { under_way: counters.clone(), acknowledged: counters, error: None };
    if let Err(error) = steps(instance, random, &mut run) {
        run.error = Some(error);
    }
    run
}

fn steps(instance: &Instance, random: &mut SplitMix, run: &mut Run) -> Result<(), EngineError> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    let mut connections = Vec::new();
    for _ in 0..3 {
        let mut connection = transactions.connect(&session);
        connection.set_lock_wait(LockWait::Never);
        connections.push(connection);
    }
    let mut actors: Vec<(Transaction<'_, '_>, Vec<i64>)> =
        connections.iter_mut().map(|connection| (connection.begin(), vec![0; ROWS as usize])).collect();
    for _ in 0..40 {
        let (transaction, changes) = &mut actors[random.below(3) as usize];
        let rows = 2 + random.below(4) as i64;
        let from = 1 + random.below((ROWS - rows) as u64) as i64;
        match random.below(8) {
            0..4 => match update(transaction, from, rows) {
                Ok(count) => {
                    assert_eq!(count, rows as u64);
                    (from..from + rows).for_each(|key| changes[key as usize - 1] += 1);
                }
                // The statement has left no change.
                Err(EngineError::RowLocked { .. } | EngineError::LogFull { .. }) => {}
                Err(error) => return Err(error),
            },
            4 | 5 => {
                let count =
                    transaction.range(INDEX, (&[number(from)], &[number(from + rows)]), |_, _| Ok(()))?;
                assert_eq!(count, rows as u64);
            }
            6 => {
                transaction.rollback_and_chain()?;
                changes.fill(0);
            }
            _ => {
                run.under_way =
                    run.acknowledged.iter().zip(&*changes).map(|(had, more)| had + more).collect();
                transaction.commit_and_chain()?;
                run.acknowledged = run.under_way.clone();
                changes.fill(0);
            }
        }
    }
    Ok(())
}

#[test]
fn updates_of_ranges_are_whole_wherever_the_power_goes() {
    let base = new_disk(1);
    let (mut crashes, mut updated) = (0, 0);
    for seed in 0..60 {
        let mut random = SplitMix(seed);
        let mut disk = base.restart(Survivors::All);
        let mut counters = vec![0; ROWS as usize];
        for cycle in 0..4 {
            let last = disk.requests() + 1 + random.below(160);
            disk.lose_power_at(Some(last));
            let run = match open(&disk) {
                Ok(instance) => run(&instance, &mut random, counters.clone()),
                Err(error) => Run { acknowledged: counters.clone(), under_way: counters, error: Some(error) },
            };
            let gone = disk.requests() >= last;
            assert!(
                gone || run.error.is_none(),
                "seed {seed} cycle {cycle}: {:?} with the power on",
                run.error
            );
            crashes += u64::from(gone);
            disk = disk.restart(survivors(&mut random, disk.unsynced()));
            let found = open(&disk).and_then(|instance| read(&instance));
            let found = found.unwrap_or_else(|error| panic!("seed {seed} cycle {cycle}: {error}"));
            let is_known = found == run.acknowledged || found == run.under_way;
            assert!(is_known, "seed {seed} cycle {cycle}: {found:?}, acknowledged {:?}", run.acknowledged);
            updated += u64::from(found.iter().sum::<i64>() > 0);
            counters = found;
        }
    }
    assert!(crashes > 60 && updated > 60, "{crashes} crashes, {updated} with updates");
}

/// A reported error loses nothing: opened again on a disk that works, the
/// database has all acknowledged updates.
#[test]
fn updates_of_ranges_are_whole_when_the_disk_fails() {
    let base = new_disk(1);
    let mut ended = 0;
    for seed in 0..80 {
        let mut random = SplitMix(seed);
        let disk = base.restart(Survivors::All);
        let nth = Some(1 + random.below(80));
        let none = Faults::default;
        disk.plan_faults(match seed % 4 {
            0 => Faults { fail_read: nth, ..none() },
            1 => Faults { fail_write: nth, ..none() },
            2 => Faults { fail_sync: nth.map(|nth| nth / 4 + 1), ..none() },
            _ => Faults { capacity: Some(random.below(300) << 10), ..none() },
        });
        let zero = vec![0; ROWS as usize];
        let run = match open(&disk) {
            Ok(instance) => run(&instance, &mut random, zero),
            Err(error) => Run { acknowledged: zero.clone(), under_way: zero, error: Some(error) },
        };
        ended += u64::from(run.error.is_some());
        let left = survivors(&mut random, disk.unsynced());
        let found = open(&disk.restart(left)).and_then(|instance| read(&instance));
        let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let is_known = found == run.acknowledged || found == run.under_way;
        assert!(is_known, "seed {seed} {:?}: {found:?}, acknowledged {:?}", run.error, run.acknowledged);
    }
    assert!(ended > 30, "{ended} runs ended by their fault");
}

/// Environment variable that gives a child of the next test its database.
const CHILD: &str = "PLUMB_TEST_SLOB_CHILD";
/// Number of rows in each of its updates.
const CHILD_ROWS: i64 = 4;

/// Runs sessions that update and report it, until they are killed.
fn child(home: &Path) -> Result<(), EngineError> {
    let instance = Instance::open(home, on_disk(), Cancel::default())?;
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    let ended = sessions(&transactions, 4, |connection, number| {
        let mut random = SplitMix(number as u64);
        loop {
            let from = 1 + random.below((ROWS - CHILD_ROWS) as u64) as i64;
            let mut transaction = connection.begin();
            update(&mut transaction, from, CHILD_ROWS)?;
            transaction.commit()?;
            // The parent has read enough and closed the pipe.
            if std::io::stdout().lock().write_all(b"updated\n").is_err() {
                return Ok(());
            }
        }
    });
    ended.into_iter().collect()
}

fn on_disk() -> Settings {
    let mut all = Settings::default();
    let small = [
        ("db_block_size", "2K"),
        ("db_cache_size", "1M"),
        ("extent_size", "256K"),
        ("log_file_size", "1M"),
        ("log_buffer", "256K"),
        ("debug_cache_blocks", "24"),
    ];
    for (name, value) in small {
        all.set(name, value, "the test").expect("in range");
    }
    all
}

/// A process on a real disk is killed during its updates: all that it reported is there,
/// and each update is whole.
#[test]
fn updates_of_a_process_that_is_killed_are_whole() {
    if let Some(home) = std::env::var_os(CHILD) {
        child(Path::new(&home)).expect("killed before it ends");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path().join("db");
    {
        let sizes = InitialSizes { users: Bytes(512 << 10), temp: Bytes(1), indx: Bytes(256 << 10) };
        let layout = Layout::in_one(home.clone());
        let instance = Instance::create(&layout, on_disk(), sizes, Cancel::default()).expect("a database");
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        create(&transactions, &session).expect("a table");
    }
    let mut acknowledged = 0;
    for cycle in 0..5 {
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        let name = "slob::updates_of_a_process_that_is_killed_are_whole";
        child.args(["--exact", name, "--nocapture"]).env(CHILD, &home).stdout(Stdio::piped());
        let mut child = child.spawn().expect("a child starts");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
        let mut said = 0;
        while said < 20 + 13 * cycle {
            let line = lines.next().expect("it goes on until it is killed");
            said += i64::from(line.contains("updated"));
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        acknowledged += said + lines.filter(|line| line.contains("updated")).count() as i64;
        let instance = Instance::open(&home, on_disk(), Cancel::default()).expect("opened");
        let counters = read(&instance).unwrap_or_else(|error| panic!("cycle {cycle}: {error}"));
        let updates = counters.iter().sum::<i64>();
        assert_eq!(updates % CHILD_ROWS, 0, "cycle {cycle}: each update is whole");
        // Each session may have one update that it had not reported yet.
        assert!(updates / CHILD_ROWS >= acknowledged, "cycle {cycle}: {updates} of {acknowledged}");
        acknowledged = updates / CHILD_ROWS;
    }
}

/// Makes a database in memory with threads of its own, whose disk can be stalled.
fn threaded(changes: &[(&str, &str)]) -> Instance {
    let mut all = Settings::default();
    let small = [
        ("io_method", "null"),
        ("db_block_size", "2K"),
        ("debug_extent_blocks", "8"),
        ("log_file_size", "512K"),
        ("log_buffer", "64K"),
    ];
    for (name, value) in small.iter().chain(changes) {
        all.set(name, value, "the test").expect("in range");
    }
    let sizes = InitialSizes { users: Bytes(256 << 10), temp: Bytes(1 << 16), indx: Bytes(64 << 10) };
    Instance::create(&Layout::in_one(PathBuf::from("/in/memory")), all, sizes, Cancel::default())
        .expect("a database in memory")
}

/// Runs `count` sessions, each in a thread, on connections of their own.
fn sessions(
    transactions: &Transactions<'_>,
    count: i64,
    work: impl Fn(&mut Connection<'_>, i64) -> Result<(), EngineError> + Sync,
) -> Vec<Result<(), EngineError>> {
    thread::scope(|scope| {
        let start = |number: i64| {
            let work = &work;
            scope.spawn(move || {
                let session = transactions.instance().recorder.session(Role::User);
                work(&mut transactions.connect(&session), number)
            })
        };
        let started: Vec<_> = (0..count).map(start).collect();
        started.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

pub fn select_and_update(connection: &mut Connection<'_>, number_of_session: i64) -> Result<(), EngineError> {
    let mut random = SplitMix(number_of_session as u64);
    for round in 0..40 {
        let from = 1 + random.below(ROWS as u64 - 5) as i64;
        let mut transaction = connection.begin();
        if round % 4 == 0 {
            update(&mut transaction, from, 4)?;
            transaction.commit()?;
        } else {
            let count = transaction.range(INDEX, (&[number(from)], &[number(from + 5)]), |_, _| Ok(()))?;
            assert_eq!(count, 5);
        }
    }
    Ok(())
}

pub fn balances(transactions: &Transactions<'_>, session: &Session) -> i64 {
    let mut sum = 0;
    let mut connection = transactions.connect(session);
    let scanned = connection.begin().scan(TABLE, |row| {
        sum += value_of(&row.values[3]);
        Ok(())
    });
    scanned.expect("scanned");
    sum
}

/// Each session holds a block while it waits for another: with fewer buffers than sessions
/// some wait, and all end.
#[test]
fn a_cache_of_fewer_buffers_than_sessions_makes_them_wait() {
    within(120, || {
        for prefetch in ["0", "4"] {
            let instance = threaded(&[("debug_cache_blocks", "12"), ("db_block_prefetch_limit", prefetch)]);
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(&instance, &session).expect("a log");
            create(&transactions, &session).expect("a table");
            let before = instance.recorder.snapshot();
            let ended = sessions(&transactions, 16, select_and_update);
            assert!(ended.iter().all(Result::is_ok), "{ended:?}");
            assert_eq!(balances(&transactions, &session), ROWS * BALANCE);
            let period = instance.recorder.snapshot().since(&before);
            let count = |event| period.event(event, SessionKind::Foreground).count;
            assert!(count(Event::DbFileSequentialRead) + count(Event::DbFileParallelRead) > 100);
            assert_eq!(count(Event::DbFileParallelRead) > 0, prefetch != "0");
        }
    });
}

/// One buffer cannot hold the blocks that one index change pins: the session fails and
/// names the setting to raise.
#[test]
fn a_cache_too_small_for_one_session_is_named() {
    within(120, || {
        let instance = threaded(&[("debug_cache_blocks", "1")]);
        let session = instance.recorder.session(Role::User);
        let made =
            Transactions::open(&instance, &session).and_then(|transactions| create(&transactions, &session));
        let error = made.expect_err("one buffer is not enough").to_string();
        assert!(
            error.contains("db_cache_size of 1 blocks") && error.contains("raise db_cache_size"),
            "{error}"
        );
    });
}

#[test]
fn updates_larger_than_the_log_are_refused_and_leave_nothing() {
    within(120, || {
        let instance = threaded(&[("log_file_size", "64K"), ("log_file_groups", "2"), ("log_buffer", "32K")]);
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        create(&transactions, &session).expect("a table");
        let mut connection = transactions.connect(&session);
        let mut transaction = connection.begin();
        let error =
            (0..50).find_map(|_| update(&mut transaction, 1, ROWS - 1).err()).expect("the log is full");
        assert!(matches!(error, EngineError::LogFull { .. }), "{error}");
        transaction.rollback().expect("there is always room to roll back");
        let mut transaction = connection.begin();
        assert_eq!(update(&mut transaction, 1, 3).expect("there is room again"), 3);
        transaction.commit().expect("committed");
        assert_eq!(balances(&transactions, &session), ROWS * BALANCE);
    });
}

/// A file does not answer for a while: the sessions that need it have that time in the wait that
/// names it, and continue. On a busy machine the sessions may not have had a processor when the
/// file stalled; then it stalls again.
#[test]
fn waits_for_a_stalled_file_have_the_right_names() {
    for (file, event) in [("redo01.log", Event::LogFileSync), ("users01.dbf", Event::DbFileSequentialRead)] {
        within(120, move || {
            let instance = threaded(&[("debug_cache_blocks", "16"), ("data_files", "1")]);
            let session = instance.recorder.session(Role::User);
            let transactions = Transactions::open(&instance, &session).expect("a log");
            create(&transactions, &session).expect("a table");
            let before = instance.recorder.snapshot();
            let longest = || {
                let period = instance.recorder.snapshot().since(&before);
                assert_eq!(period.statistic(Statistic::UserRollbacks), 0);
                period.event(event, SessionKind::Foreground).latency.map_or(Nanos(0), |waits| waits.max())
            };
            while longest() < STALL {
                let ended = during_a_stall(&transactions, file);
                assert!(ended.iter().all(Result::is_ok), "{ended:?}");
                assert_eq!(balances(&transactions, &session), ROWS * BALANCE);
            }
        });
    }
}

const STALL: Nanos = Nanos(300_000_000);

/// Lets eight sessions work while a file holds its requests for [`STALL`].
fn during_a_stall(transactions: &Transactions<'_>, file: &str) -> Vec<Result<(), EngineError>> {
    let Disk::Memory(disk) = &transactions.instance().access.disk else { panic!("a database in memory") };
    let path = disk.paths().into_iter().find(|path| path.ends_with(file)).expect("there");
    disk.stall_file(&path);
    thread::scope(|scope| {
        let working = scope.spawn(|| sessions(transactions, 8, select_and_update));
        // The first request may be DBWR's. While sessions go on, more requests are held.
        let (mut held, mut changed) = (0, now());
        while held == 0 || now().saturating_sub(changed) < STALL {
            if disk.held() != held {
                (held, changed) = (disk.held(), now());
            }
            thread::sleep(Duration::from_millis(1));
        }
        disk.resume();
        working.join().expect("no panic")
    })
}
