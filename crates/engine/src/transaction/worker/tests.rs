//! Room in the log while a device does not answer: a session waits for it. It does not give up on a
//! transaction that waits for the device too.

use super::super::Transactions;
use super::ROOM_PATIENCE;
use crate::instance::InitialSizes;
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance, Layout, Settings};
use plumb_events::{Cancel, Event, Role, Session, SessionKind};
use plumb_io::Disk;
use plumb_types::{Column, ColumnType, Number, Schema, Value};
use plumb_units::{Bytes, FileId, RowId};
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

const FILLER: usize = 1100;

/// Creates a database in memory with two data files and a log of 128K.
fn instance() -> Instance {
    let mut settings = Settings::default();
    let small = [
        ("io_method", "null"),
        ("db_block_size", "2K"),
        ("data_files", "2"),
        ("debug_extent_blocks", "8"),
        ("log_file_size", "64K"),
        ("log_file_groups", "2"),
        ("log_buffer", "32K"),
    ];
    for (name, value) in small {
        settings.set(name, value, "the test").expect("in range");
    }
    let sizes = InitialSizes { users: Bytes(256 << 10), temp: Bytes(1 << 16), indx: Bytes(64 << 10) };
    Instance::create(&Layout::in_one(PathBuf::from("/in/memory")), settings, sizes, Cancel::default())
        .expect("a database in memory")
}

/// Creates a table with one row. Returns the row, and the file that it is in.
fn table(transactions: &Transactions<'_>, session: &Session, name: &str) -> (RowId, FileId) {
    let columns = vec![
        Column::required("K", ColumnType::NUMBER),
        Column::required("V", ColumnType::Text { max_bytes: FILLER as u32 }),
    ];
    let schema = Schema::new(columns).expect("a schema");
    transactions.create_table(session, name, &schema, &[]).expect("a table");
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let key = Value::Number(Number::new(1, 0).expect("small"));
    let row = transaction.insert(name, &[key, Value::Text("a".repeat(FILLER))]).expect("inserted");
    transaction.commit().expect("committed");
    (row, row.address().file)
}

/// Updates the row and commits, often enough to reuse the log several times.
fn fill_the_log(transactions: &Transactions<'_>, table: &str, row: RowId) -> Result<(), EngineError> {
    let session = transactions.instance().recorder.session(Role::User);
    let mut connection = transactions.connect(&session);
    for round in 0..200 {
        let mut transaction = connection.begin();
        let text = ["b", "c"][round % 2].repeat(FILLER);
        transaction.update(table, row, |values| values[1] = Value::Text(text.clone()))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The oldest transaction waits for a read without answer, and so keeps its log from being reused.
#[test]
fn room_is_waited_for_while_a_device_does_not_answer() {
    let instance = instance();
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let (slow, slow_file) = table(&transactions, &session, "SLOW");
    let (other, other_file) = table(&transactions, &session, "OTHER");
    assert_ne!(slow_file, other_file, "extents are taken from the files in turn");
    let Disk::Memory(disk) = &instance.access.disk else { panic!("a database in memory") };
    let mut connection = transactions.connect(&session);
    let mut oldest = connection.begin();
    oldest.update("SLOW", slow, |values| values[1] = Value::Text("z".repeat(FILLER))).expect("updated");
    // Its table is written and no longer in the cache.
    let own = instance.recorder.session(Role::User);
    transactions.checkpoint(&own).expect("written");
    let extents = transactions.table("SLOW").expect("a table").segment.extents();
    instance.caches().discard(&own, Purpose::Users, extents.iter().map(|piece| piece.extent));
    let files = &instance.tablespace(Purpose::Users).files;
    let file = files.iter().find(|file| file.id == slow_file).expect("one of them");
    disk.stall_file(file.file.path());
    let before = instance.recorder.snapshot();
    thread::scope(|scope| {
        let filling = scope.spawn(|| {
            while disk.held() == 0 {
                thread::yield_now();
            }
            fill_the_log(&transactions, "OTHER", other)
        });
        scope.spawn(|| {
            while disk.held() == 0 {
                thread::yield_now();
            }
            thread::sleep(3 * Duration::from_nanos(ROOM_PATIENCE.0));
            disk.resume();
        });
        assert!(oldest.get("SLOW", slow).expect("read in the end").is_some());
        oldest.commit().expect("committed");
        filling.join().expect("no panic").expect("nobody gave up");
    });
    let period = instance.recorder.snapshot().since(&before);
    // Waits for the slow file's header, in which a checkpoint notes itself, or for the end of the
    // oldest transaction.
    let waits = [Event::ControlFileSequentialRead, Event::LogFileSwitchCheckpoint];
    let kinds = [SessionKind::Foreground, SessionKind::Background];
    let time: u64 = waits.iter().flat_map(|wait| kinds.map(|kind| period.event(*wait, kind).time.0)).sum();
    assert!(
        time > ROOM_PATIENCE.0,
        "it was waited for longer than for a transaction that does nothing: {time}"
    );
}

/// A session gives up on a transaction that does nothing.
#[test]
fn a_transaction_that_stands_by_itself_is_named() {
    let instance = instance();
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let (idle, _) = table(&transactions, &session, "IDLE");
    let (other, _) = table(&transactions, &session, "OTHER");
    let mut connection = transactions.connect(&session);
    let mut oldest = connection.begin();
    oldest.update("IDLE", idle, |values| values[1] = Value::Text("z".repeat(FILLER))).expect("updated");
    let number = oldest.number().expect("it has changed something");
    let error = fill_the_log(&transactions, "OTHER", other).expect_err("the log is full");
    assert!(matches!(error, EngineError::LogFull { oldest, .. } if oldest == number), "{error}");
    oldest.commit().expect("committed");
    fill_the_log(&transactions, "OTHER", other).expect("there is room again");
}

/// A session that waits for the log gets an error once its writer is gone.
#[test]
fn a_log_writer_that_panics_ends_the_log() {
    let instance = instance();
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let (row, _) = table(&transactions, &session, "T");
    let (begun, waited_for) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let session = instance.recorder.session(Role::User);
            transactions.log().as_writer(&session, || -> Result<(), EngineError> {
                begun.wait();
                waited_for.wait();
                panic!("as the test wants it");
            })
        });
        begun.wait();
        let committing = scope.spawn(|| fill_the_log(&transactions, "T", row));
        waited_for.wait();
        assert!(writer.join().is_err(), "it panicked");
        let error = committing.join().expect("no panic").expect_err("nothing is written any more");
        assert!(
            matches!(&error, EngineError::LogFailed { first } if first.ends_with("ended by a panic")),
            "{error}"
        );
    });
}
