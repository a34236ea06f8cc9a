//! Consequences of one failure: no session waits for an event that cannot come, and no half-done
//! change is acknowledged. Data that a device has dropped is not taken for durable later.

use crate::support::within;
use crate::transactions::number;
use plumb_crash::operation::{Operation, run};
use plumb_crash::world::read;
use plumb_crash::{Base, LogKind};
use plumb_engine::transaction::{Connection, Transaction, Transactions};
use plumb_engine::{EngineError, Instance};
use plumb_events::{Role, Session};
use plumb_io::sim::power::Survivors;
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_types::Value;
use plumb_units::{RowId, SplitMix};
use std::sync::Arc;
use std::thread;

fn open(disk: &Arc<MemoryDisk>) -> (Instance, Session) {
    let instance = LogKind::Plain.open(disk).expect("open");
    let session = instance.recorder.session(Role::User);
    (instance, session)
}

fn connect<'a>(transactions: &'a Transactions<'a>, session: &'a Session) -> Connection<'a> {
    transactions.connect(session)
}

fn insert(transaction: &mut Transaction<'_, '_>, id: i64) -> Result<RowId, EngineError> {
    // A block holds a few of these rows, and the cache twelve blocks.
    let filler = Value::Text("v".repeat(500));
    transaction.insert("T", &[number(id), number(id), filler, Value::Null])
}

fn touch(transaction: &mut Transaction<'_, '_>, row: RowId) -> Result<(), EngineError> {
    transaction.update("T", row, |row| row[1] = number(1000)).map(|_| ())
}

fn is_stopped(error: &EngineError) -> bool {
    error.to_string().starts_with("the redo log cannot be written, and transactions are stopped: ")
}

/// Returns the number of rows that a new opening finds.
fn rows_behind(disk: &Arc<MemoryDisk>) -> usize {
    let disk = disk.restart(Survivors::All);
    read(&LogKind::Plain.open(&disk).expect("open")).expect("recovered").rows.len()
}

#[test]
fn a_waiter_for_a_row_learns_of_its_holders_failure() {
    within(60, || {
        let disk = Base::new(LogKind::Plain).copy();
        {
            let (instance, session) = open(&disk);
            let transactions = Transactions::open(&instance, &session).expect("open");
            let mut one = connect(&transactions, &session);
            let mut holder = one.begin();
            let row = insert(&mut holder, 1).expect("inserted");
            holder.commit_and_chain().expect("committed");
            touch(&mut holder, row).expect("changed");
            let waited = thread::scope(|scope| {
                let waits = scope.spawn(|| {
                    let session = transactions.instance().recorder.session(Role::User);
                    let mut two = connect(&transactions, &session);
                    touch(&mut two.begin(), row)
                });
                disk.plan_faults(Faults { fail_sync: Some(1), ..Faults::default() });
                holder.commit_and_chain().expect_err("the sync failed");
                waits.join().expect("no panic")
            });
            assert!(is_stopped(&waited.expect_err("the holder never ends")));
        }
        disk.plan_faults(Faults::default());
        assert_eq!(rows_behind(&disk), 1);
    });
}

#[test]
fn a_failed_rollback_stops_all_sessions_until_the_next_opening() {
    within(60, || {
        let disk = Base::new(LogKind::Plain).copy();
        {
            let (instance, session) = open(&disk);
            let transactions = Transactions::open(&instance, &session).expect("open");
            let [mut one, mut two] = [connect(&transactions, &session), connect(&transactions, &session)];
            let (mut first, mut other) = (one.begin(), two.begin());
            let mut rows = Vec::new();
            for id in 0..60 {
                rows.push(insert(&mut first, id).expect("inserted"));
                first.commit_and_chain().expect("committed");
            }
            let row = rows[0];
            touch(&mut first, row).expect("changed");
            // Far more blocks than the cache has, so that the row's block must be
            // read again for the undo.
            rows[1..].iter().for_each(|row| assert!(other.get("T", *row).expect("read").is_some()));
            disk.plan_faults(Faults { fail_read: Some(1), ..Faults::default() });
            let error = first.rollback_and_chain().expect_err("a block cannot be read");
            assert!(error.to_string().contains("Input/output error"), "{error}");
            disk.plan_faults(Faults::default());
            for error in [
                touch(&mut other, row).expect_err("its holder is neither there nor gone"),
                insert(&mut other, 200).expect_err("stopped"),
                transactions.checkpoint(&session).expect_err("stopped"),
            ] {
                assert!(is_stopped(&error), "{error}");
                assert!(error.to_string().contains(" cannot be undone: "), "{error}");
            }
        }
        assert_eq!(rows_behind(&disk), 60);
    });
}

#[test]
fn a_checkpoint_distrusts_a_file_after_a_failed_sync() {
    let disk = Base::new(LogKind::Plain).copy();
    {
        let (instance, session) = open(&disk);
        let transactions = Transactions::open(&instance, &session).expect("open");
        let mut connection = connect(&transactions, &session);
        let mut transaction = connection.begin();
        insert(&mut transaction, 1).expect("inserted");
        transaction.commit_and_chain().expect("committed");
        let users = &instance.tablespaces().iter().next().expect("a tablespace").files[0];
        disk.plan_faults(Faults { fail_sync: Some(1), ..Faults::default() });
        users.sync(&session).expect_err("as planned");
        disk.plan_faults(Faults::default());
        let error = transactions
            .checkpoint(&session)
            .expect_err("what the device dropped may be in the file's blocks");
        assert!(
            error.to_string().contains("a sync failed before, and what it was to save may be lost: "),
            "{error}"
        );
        insert(&mut transaction, 2).and_then(|_| transaction.commit_and_chain()).expect_err("stopped");
    }
    assert_eq!(rows_behind(&disk), 1);
}

/// Fails each write or sync while a table grows: the rest continues or stops, and
/// no extent has two owners.
#[test]
fn extents_whose_entry_failed_are_not_handed_out_twice() {
    let mut failed = 0;
    for at in 1..60 {
        for is_sync in [false, true] {
            let disk = Base::new(LogKind::Plain).copy();
            let mut committed = 0;
            {
                let (instance, session) = open(&disk);
                let transactions = Transactions::open(&instance, &session).expect("open");
                let mut connection = connect(&transactions, &session);
                let mut transaction = connection.begin();
                let fault = Some(at);
                disk.plan_faults(match is_sync {
                    true => Faults { fail_sync: fault, ..Faults::default() },
                    false => Faults { fail_write: fault, ..Faults::default() },
                });
                for id in 0..120 {
                    let done = insert(&mut transaction, id).and_then(|_| transaction.commit_and_chain());
                    committed += usize::from(done.is_ok());
                    failed += u64::from(done.is_err_and(|error| !is_stopped(&error)));
                }
            }
            disk.plan_faults(Faults::default());
            // A commit that was not acknowledged may be there.
            let found = rows_behind(&disk);
            assert!(
                (committed..=committed + 1).contains(&found),
                "{at} {is_sync}: {found} rows of {committed}"
            );
        }
    }
    assert!(failed > 20, "some statements failed and others went on: {failed}");
}

/// Fails each sync: a definition is done, or has changed nothing, or all later changes fail. A loss
/// of power then leaves the acknowledged changes.
#[test]
fn a_definition_without_a_durable_control_file_changes_nothing() {
    let (empty, filled) = (Base::new(LogKind::Plain), Base::filled(LogKind::Plain));
    let mut doubts = 0;
    for (base, definition) in [
        (&empty, Operation::CreateTable),
        (&empty, Operation::CreateIndex),
        (&empty, Operation::Load),
        (&filled, Operation::DropTable),
        (&filled, Operation::DropIndex),
        (&filled, Operation::DropLoaded),
    ] {
        for nth in 1.. {
            let mut failed = 0;
            for all in [false, true] {
                let disk = base.copy();
                let run = {
                    let instance = base.open(&disk).expect("open");
                    let nth = Some(nth);
                    disk.plan_faults(match all {
                        false => Faults { fail_sync: nth, ..Faults::default() },
                        true => Faults { fail_syncs: nth, ..Faults::default() },
                    });
                    run(&instance, &mut SplitMix(1), base.world(), vec![definition], 1)
                };
                failed += u64::from(run.error.is_some());
                if let Some(error @ EngineError::ControlFileInDoubt { .. }) = &run.error {
                    assert!(all, "the old control file was put back: {error}");
                    assert_eq!(
                        error.to_string(),
                        "a failed change of the database /in/memory/db may or may not have taken effect, and no \
                         more changes are accepted: cannot sync /in/memory/db: Input/output error (os error 5); the \
                         device reports an error: look at the kernel's log (dmesg); open it again once the cause is \
                         removed"
                    );
                    doubts += 1;
                }
                for survivors in [Survivors::None, Survivors::All, Survivors::Random(nth)] {
                    let found = base.read(&disk.restart(survivors)).expect("recovered");
                    run.require(&found).unwrap_or_else(|wrong| panic!("{definition:?} {nth} {all}: {wrong}"));
                }
            }
            if failed == 0 {
                break;
            }
        }
    }
    assert_eq!(doubts, 6, "one of each definition");
}
