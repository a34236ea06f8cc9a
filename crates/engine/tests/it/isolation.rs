//! Isolation, anomaly by anomaly, under the names of Adya and of the Hermitage tests. Each test
//! shows that its anomaly is prevented, or that it can occur. `docs/reliability.md` has the table.
//!
//! Each test steps two or three transactions in one thread; a change that would have
//! to wait is refused (`LockWait::Never`).

use crate::transactions::{add, number, with_table};
use plumb_engine::EngineError;
use plumb_engine::transaction::{Connection, LockWait, Transaction, Transactions};
use plumb_events::Session;
use plumb_types::Value;
use plumb_units::RowId;

/// Runs `work` with the rows 1 and 2, of the keys 10 and 20, and three sessions.
fn check(work: impl FnOnce([RowId; 2], [Transaction<'_, '_>; 3])) {
    with_table(&[], |transactions, session| {
        let mut connection = connect(transactions, session);
        let mut setup = connection.begin();
        let rows = [(1, 10), (2, 20)].map(|(id, key)| add(&mut setup, id, key, "first"));
        setup.commit().expect("committed");
        let [mut one, mut two, mut three] = [(); 3].map(|()| connect(transactions, session));
        work(rows, [one.begin(), two.begin(), three.begin()]);
        transactions.check(session, "T").expect("indexes equal the table");
    });
}

fn connect<'a>(transactions: &'a Transactions<'a>, session: &'a Session) -> Connection<'a> {
    let mut connection = transactions.connect(session);
    connection.set_lock_wait(LockWait::Never);
    connection
}

fn put(transaction: &mut Transaction<'_, '_>, row: RowId, key: i64) -> Result<(), EngineError> {
    transaction.update("T", row, |row| row[1] = number(key)).map(|_| ())
}

fn key(transaction: &mut Transaction<'_, '_>, row: RowId) -> i64 {
    let row = transaction.get("T", row).expect("read").expect("there");
    row.values[1].to_string().parse().expect("a number")
}

fn keys(transaction: &mut Transaction<'_, '_>) -> Vec<i64> {
    let mut keys = Vec::new();
    let scanned = transaction.scan("T", |row| {
        keys.push(row.values[1].to_string().parse().expect("a number"));
        Ok(())
    });
    scanned.expect("scanned");
    keys
}

fn is_locked(result: Result<(), EngineError>) -> bool {
    matches!(result, Err(EngineError::RowLocked { .. }))
}

/// Prevented: writes of two transactions to the same rows are not mixed.
#[test]
fn g0_dirty_writes() {
    check(|[one, two], [mut first, mut second, mut reader]| {
        put(&mut first, one, 11).expect("written");
        assert!(is_locked(put(&mut second, one, 12)), "it waits");
        put(&mut first, two, 21).expect("written");
        first.commit().expect("committed");
        put(&mut second, one, 12).expect("its turn");
        put(&mut second, two, 22).expect("written");
        assert_eq!(keys(&mut reader), [11, 21]);
        second.commit().expect("committed");
        assert_eq!(keys(&mut reader), [12, 22]);
    });
}

/// Prevented: a change that is rolled back is never read.
#[test]
fn g1a_aborted_reads() {
    check(|[one, _], [mut writer, mut reader, _]| {
        put(&mut writer, one, 101).expect("written");
        assert_eq!(keys(&mut reader), [10, 20]);
        assert!(reader.lookup("T_K", &[number(101)]).expect("read").is_empty());
        writer.rollback().expect("rolled back");
        assert_eq!(keys(&mut reader), [10, 20]);
    });
}

/// Prevented: a value that its writer replaces before it commits is never read.
#[test]
fn g1b_intermediate_reads() {
    check(|[one, _], [mut writer, mut reader, _]| {
        put(&mut writer, one, 101).expect("written");
        assert_eq!(keys(&mut reader), [10, 20]);
        put(&mut writer, one, 11).expect("written");
        writer.commit().expect("committed");
        assert_eq!(keys(&mut reader), [11, 20]);
    });
}

/// Prevented: two transactions do not read each other's writes.
#[test]
fn g1c_circular_information_flow() {
    check(|[one, two], [mut first, mut second, _]| {
        put(&mut first, one, 11).expect("written");
        put(&mut second, two, 22).expect("written");
        assert_eq!(key(&mut first, two), 20);
        assert_eq!(key(&mut second, one), 10);
        first.commit().expect("committed");
        second.commit().expect("committed");
    });
}

/// Prevented: changes of an observed transaction do not vanish behind a later one, because
/// a statement sees one moment.
#[test]
fn otv_observed_transaction_vanishes() {
    check(|[one, two], [mut first, mut second, mut reader]| {
        put(&mut first, one, 11).expect("written");
        put(&mut first, two, 19).expect("written");
        assert!(is_locked(put(&mut second, one, 12)));
        first.commit().expect("committed");
        put(&mut second, one, 12).expect("written");
        assert_eq!(keys(&mut reader), [11, 19]);
        put(&mut second, two, 18).expect("written");
        assert_eq!(keys(&mut reader), [11, 19]);
        second.commit().expect("committed");
        assert_eq!(keys(&mut reader), [12, 18]);
    });
}

/// Prevented within a statement. Between two statements it can occur: the second
/// finds a row inserted meanwhile.
#[test]
fn pmp_predicate_many_preceders() {
    check(|_, [mut reader, mut writer, _]| {
        let mut once = true;
        let mut seen = Vec::new();
        let scanned = reader.scan("T", |row| {
            if std::mem::take(&mut once) {
                add(&mut writer, 3, 30, "a phantom");
                writer.commit_and_chain()?;
            }
            seen.push(row.values[1].clone());
            Ok(())
        });
        scanned.expect("scanned");
        assert_eq!(seen, [number(10), number(20)], "the statement began before");
        assert_eq!(reader.lookup("T_K", &[number(30)]).expect("read").len(), 1, "the next one sees it");
    });
}

/// Can occur if a value is carried from one statement to the next. Within `update` it is prevented,
/// because the closure gets the current row.
#[test]
fn p4_lost_update() {
    check(|[one, two], [mut first, mut second, mut reader]| {
        let add_to = |key: i64| move |row: &mut [Value]| row[1] = number(key);
        let (read_first, read_second) = (key(&mut first, one), key(&mut second, one));
        first.update("T", one, add_to(read_first + 1)).expect("written");
        first.commit_and_chain().expect("committed");
        second.update("T", one, add_to(read_second + 1)).expect("written");
        second.commit_and_chain().expect("committed");
        assert_eq!(key(&mut reader, one), 11, "one of two additions is lost");
        let increment = |row: &mut [Value]| {
            let key: i64 = row[1].to_string().parse().expect("a number");
            row[1] = number(key + 1);
        };
        assert_eq!((key(&mut first, two), key(&mut second, two)), (20, 20));
        for transaction in [&mut first, &mut second] {
            transaction.update("T", two, increment).expect("written");
            transaction.commit_and_chain().expect("committed");
        }
        assert_eq!(key(&mut reader, two), 22, "none is");
    });
}

/// Can occur (read skew): two statements of a transaction see two moments. Within
/// a statement it is prevented.
#[test]
fn g_single_read_skew() {
    check(|[one, two], [mut reader, mut writer, _]| {
        let mut once = true;
        assert_eq!(key(&mut reader, one), 10);
        put(&mut writer, one, 12).expect("written");
        put(&mut writer, two, 18).expect("written");
        writer.commit_and_chain().expect("committed");
        assert_eq!(key(&mut reader, two), 18, "10 and 18 were never there together");
        let mut seen = Vec::new();
        let scanned = reader.scan("T", |row| {
            if std::mem::take(&mut once) {
                put(&mut writer, one, 0)?;
                put(&mut writer, two, 0)?;
                writer.commit_and_chain()?;
            }
            seen.push(row.values[1].clone());
            Ok(())
        });
        scanned.expect("scanned");
        assert_eq!(seen, [number(12), number(18)], "one statement, one moment");
    });
}

/// Can occur (write skew): each of two transactions reads rows that the other one changes.
#[test]
fn g2_write_skew() {
    check(|[one, two], [mut first, mut second, mut reader]| {
        let sum = |transaction: &mut Transaction<'_, '_>| keys(transaction).iter().sum::<i64>();
        assert_eq!((sum(&mut first), sum(&mut second)), (30, 30));
        // Each subtracts 30 if the sum stays at 0 or above.
        put(&mut first, one, 10 - 30).expect("written");
        put(&mut second, two, 20 - 30).expect("written");
        first.commit().expect("committed");
        second.commit().expect("committed");
        assert_eq!(sum(&mut reader), -30, "both looked before either wrote");
    });
}
