//! Uses a changed database in all ways of the commands, and continues after every error.

use super::base::{Left, number, row};
use plumb_engine::cache::CacheReader;
use plumb_engine::index::btree::BTree;
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::storage::control::{Index, Table};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::fetch::{RowFetcher, values};
use plumb_engine::table::scan::{Granules, scan};
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Instance, check, drop::drop_named};
use plumb_events::{Role, Session};
use plumb_io::sim::MemoryDisk;
use plumb_types::Value;
use std::cell::RefCell;
use std::ops::Bound;
use std::sync::Arc;

/// Rows that a statement fetches at a time.
const FETCHED: usize = 64;

/// Errors, as the command line would print them.
#[derive(Debug, Default)]
pub(super) struct Refusals(pub(super) Vec<String>);

impl Refusals {
    fn note<T>(&mut self, result: Result<T, EngineError>) -> Option<T> {
        result.map_err(|error| self.0.push(error.to_string())).ok()
    }
}

/// Opens the database as a command does, reads all of it, changes it, and opens it again.
pub(super) fn exercise(disk: &Arc<MemoryDisk>, left: Left) -> Refusals {
    let mut refusals = Refusals::default();
    for opening in 0..2 {
        let Some(instance) = refusals.note(left.open(disk)) else { continue };
        let (tables, indexes, live) = {
            let catalog = instance.catalog();
            let live: Vec<String> = catalog.live_tables.iter().map(|table| table.name.clone()).collect();
            (catalog.tables.clone(), catalog.indexes.clone(), live)
        };
        for table in &tables {
            loaded(&instance, table, &indexes, &mut refusals);
        }
        let session = instance.recorder.session(Role::User);
        let Some(transactions) = refusals.note(Transactions::open(&instance, &session)) else { continue };
        for table in &live {
            changing(&transactions, &session, table, opening, &mut refusals);
        }
        refusals.note(transactions.checkpoint(&session));
    }
    refusals
}

/// Checks and scans a table loaded by direct path, reads it in the order of its indexes, and
/// builds and drops an index.
fn loaded(instance: &Instance, table: &Table, indexes: &[Index], refusals: &mut Refusals) {
    if let Some(found) = refusals.note(check::examine_table(instance, &table.name)) {
        let damage = found.damage.iter().flat_map(|damage| &damage.first);
        refusals.0.extend(damage.chain(&found.unreached).map(ToString::to_string));
    }
    let session = instance.recorder.session(Role::User);
    let (operation, granules) = (instance.operation(), Granules::new(table));
    refusals.note(scan(instance, &session, &operation, &granules, |image, id| {
        values(&table.schema, image, id).map(drop)
    }));
    for index in indexes.iter().filter(|index| index.table == table.name) {
        refusals.note(in_order(instance, &session, table, index));
    }
    for columns in [&["K", "V"][..], &["A"][..]] {
        let columns = columns.iter().map(|name| ((*name).to_string(), false)).collect();
        let spec = IndexSpec { name: "FUZZ_IX".to_string(), table: table.name.clone(), columns };
        if refusals.note(create_index(instance, &spec)).is_some() {
            refusals.note(drop_named(instance, "FUZZ_IX"));
        }
    }
}

fn in_order(instance: &Instance, session: &Session, table: &Table, index: &Index) -> Result<(), EngineError> {
    let blocks = RefCell::new(CacheReader::new(session, instance.caches()));
    let tree = BTree::new(index, instance.tablespace(Purpose::Indx), &blocks);
    let mut range = tree.range(Bound::Unbounded, Bound::Unbounded)?;
    let mut fetcher = RowFetcher::new(instance, session, table)?;
    loop {
        let mut rows = Vec::new();
        while rows.len() < FETCHED
            && let Some(entry) = range.next_entry()?
        {
            rows.push(entry.row);
        }
        if rows.is_empty() {
            return Ok(());
        }
        fetcher.fetch(&rows)?;
    }
}

/// Checks a table that transactions change, reads and changes it, and creates and drops an index.
fn changing(
    transactions: &Transactions<'_>,
    session: &Session,
    table: &str,
    opening: i64,
    refusals: &mut Refusals,
) {
    refusals.note(transactions.check(session, table));
    if let Some(damage) = refusals.note(transactions.damage(session, table)) {
        refusals.0.extend(damage.iter().flat_map(|damage| &damage.first).map(ToString::to_string));
    }
    for key in [1, 3, 7, 9, 100, 250, 10_003, 20_001] {
        refusals.note(change_one(transactions, session, table, key, opening));
    }
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    let mut ids = Vec::new();
    refusals.note(transaction.scan(table, |row| {
        ids.push(row.id);
        Ok(())
    }));
    refusals.note(transaction.range("L_V", (&[Value::Null], &[Value::Null]), |_, _| Ok(())));
    let all = [Value::Text("a".to_string())];
    refusals.note(transaction.update_range((table, "L_V"), (&all, &[Value::Null]), |_, values| {
        values[2] = Value::Text("changed".to_string());
    }));
    for id in ids.iter().step_by(7) {
        refusals.note(transaction.delete(table, *id));
    }
    refusals.note(transaction.rollback());
    drop(connection);
    let index =
        IndexDefinition { name: "FUZZ_L".to_string(), columns: vec![("V".to_string(), true)], unique: false };
    let narrow = IndexDefinition { columns: vec![("K".to_string(), true)], ..index.clone() };
    for index in [index, narrow] {
        if refusals.note(transactions.create_index(session, table, &index)).is_some() {
            refusals.note(transactions.drop_named(session, "FUZZ_L"));
        }
    }
}

/// Finds rows by a key, makes them longer, inserts others, deletes, and commits.
fn change_one(
    transactions: &Transactions<'_>,
    session: &Session,
    table: &str,
    key: i64,
    opening: i64,
) -> Result<(), EngineError> {
    let mut connection = transactions.connect(session);
    let mut transaction = connection.begin();
    for found in transaction.lookup("L_K", &[number(key)])? {
        transaction.get(table, found.id)?;
        let place = transaction.update(table, found.id, |values| {
            values[2] = Value::Text("long ".repeat(if key == 7 { 900 } else { 40 }));
        })?;
        if key == 9 {
            transaction.delete(table, place)?;
        }
    }
    for new in 0..5 {
        transaction
            .insert(table, &row((1 + opening) * 1_000_000 + key * 10 + new, 100 + 900 * new as usize))?;
    }
    if key % 2 == 0 { transaction.rollback() } else { transaction.commit() }
}
