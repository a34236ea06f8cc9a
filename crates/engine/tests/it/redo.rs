//! The log as settings shape it: how its writes become durable, what checkpoints leave to do again.

use plumb_engine::instance::{Cancel, InitialSizes};
use plumb_engine::redo::SyncMethod;
use plumb_engine::transaction::Transactions;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::{Event, Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_types::{Column, ColumnType, Number, Schema, Value};
use plumb_units::Bytes;
use std::path::Path;

fn settings(more: &[(&str, &str)]) -> Settings {
    let mut all = Settings::default();
    let small = [("debug_extent_blocks", "8"), ("log_file_size", "1M"), ("log_buffer", "256K")];
    for (name, value) in small.iter().chain(more) {
        all.set(name, value, "the test").expect("in range");
    }
    all
}

fn create(home: &Path, more: &[(&str, &str)]) -> Instance {
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 20) };
    let layout = Layout::in_one(home.to_path_buf());
    Instance::create(&layout, settings(more), sizes, Cancel::default()).expect("a database")
}

fn open(home: &Path, more: &[(&str, &str)]) -> Instance {
    Instance::open(home, settings(more), Cancel::default()).expect("opened")
}

fn create_table(transactions: &Transactions<'_>, session: &Session) {
    let columns = vec![
        Column::required("ID", ColumnType::NUMBER),
        Column::required("V", ColumnType::Text { max_bytes: 1000 }),
    ];
    let schema = Schema::new(columns).expect("a schema");
    transactions.create_table(session, "T", &schema, &[]).expect("a table");
}

fn insert(transactions: &Transactions<'_>, session: &Session, rows: i64) {
    let mut connection = transactions.connect(session).expect("connected");
    let mut transaction = connection.begin();
    for id in 0..rows {
        let id = Value::Number(Number::new(i128::from(id), 0).expect("small"));
        transaction.insert("T", &[id, Value::Text("v".repeat(500))]).expect("inserted");
        transaction.commit_and_chain().expect("committed");
    }
}

fn count(transactions: &Transactions<'_>, session: &Session) -> usize {
    let mut connection = transactions.connect(session).expect("connected");
    let mut rows = 0;
    let scanned = connection.begin().scan("T", |_| {
        rows += 1;
        Ok(())
    });
    scanned.expect("scanned");
    rows
}

#[test]
fn each_method_of_making_a_log_write_durable_is_what_was_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("db");
    let methods = SyncMethod::ALL.map(SyncMethod::name);
    for (round, word) in methods.into_iter().chain(["auto"]).enumerate() {
        let asked = [("log_sync_method", word), ("filesystemio_options", "none")];
        let instance = if round == 0 { create(&home, &asked) } else { open(&home, &asked) };
        let session = instance.recorder.session(Role::User);
        let transactions = Transactions::open(&instance, &session).expect("a log");
        if round == 0 {
            create_table(&transactions, &session);
        }
        let sync = transactions.log().sync();
        if word == "auto" {
            assert!(sync.reason.starts_with("auto measured, in microseconds: fdatasync "), "{}", sync.reason);
        } else {
            assert_eq!((sync.method.name(), &sync.reason), (word, &format!("log_sync_method={word}")));
        }
        assert_eq!(count(&transactions, &session), 10 * round, "before {word}");
        insert(&transactions, &session, 10);
    }
}

/// Rows in a database on a disk that can lose power, where sessions step the checkpoints; and the most log that a recovery would
/// have gone through after any of them.
fn most_to_recover(interval: &str, rows: i64) -> (u64, u64) {
    let disk = MemoryDisk::with_power(1);
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 16), indx: Bytes(1 << 16) };
    let more = [("io_method", "null"), ("log_file_size", "256K"), ("log_checkpoint_interval", interval)];
    let home = Path::new("/in/memory/db");
    let instance = Instance::create_on(&disk, home, settings(&more), sizes).expect("a database");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    create_table(&transactions, &session);
    let mut most = 0;
    for _ in 0..rows {
        insert(&transactions, &session, 1);
        most = most.max(transactions.log().to_recover().0);
    }
    let period = instance.recorder.snapshot();
    let waited =
        period.sessions.iter().map(|it| it.events[Event::LogFileSwitchCheckpoint as usize].count).sum();
    (most, waited)
}

#[test]
fn checkpoints_follow_the_log_as_closely_as_they_are_told() {
    // Each commit is a log write of two blocks; a batch of 512 bytes is the finest that can be told.
    let (most, waited) = most_to_recover("128K", 2000);
    assert!((64 << 10..=(128 << 10) + 8192).contains(&most), "{most}");
    assert_eq!(waited, 0);
    // Two megabytes of log through three files of a quarter: nobody has to wait for a file.
    let (most, waited) = most_to_recover("0", 2000);
    assert!((256 << 10..=640 << 10).contains(&most), "{most}");
    assert_eq!(waited, 0);
}
