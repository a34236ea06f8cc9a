//! The expected contents of a database: a model kept in step with it, and the contents read from
//! it.

use super::TABLE;
use plumb_engine::check::check_table;
use plumb_engine::transaction::Transactions;
use plumb_engine::view::totals::{Checksum, TotalsSpec, totals};
use plumb_engine::view::{ExtentShare, TableView};
use plumb_engine::{EngineError, Instance};
use plumb_events::Role;
use plumb_types::{Number, Value};
use plumb_units::RowId;
use std::collections::{BTreeMap, BTreeSet};

/// Columns of a row besides its id: the indexed key, the indexed text, and one that may
/// be longer than a block.
pub type Content = (i64, String, String);
/// Rows by id, with their row ids; `None` for a deleted row.
pub type Changes = BTreeMap<i64, Option<(RowId, Content)>>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct World {
    /// Rows of table T, by id.
    pub rows: BTreeMap<i64, (RowId, Content)>,
    pub indexes: BTreeSet<String>,
    /// Other tables that transactions change, and the ids of their rows.
    pub others: BTreeMap<String, BTreeSet<i64>>,
    /// Tables loaded by direct path, and the number of their rows.
    pub loaded: BTreeMap<String, u64>,
}

/// Changes of one commit or definition.
#[derive(Debug, Clone)]
pub enum Change {
    Rows(Changes),
    Index(String),
    NoIndex(String),
    Other(String, BTreeSet<i64>),
    NoOther(String),
    Loaded(String, u64),
    NotLoaded(String),
}

impl Default for World {
    /// An empty table with its two indexes.
    fn default() -> World {
        World {
            rows: BTreeMap::new(),
            indexes: ["T_K", "T_V"].map(String::from).into(),
            others: BTreeMap::new(),
            loaded: BTreeMap::new(),
        }
    }
}

impl World {
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Rows(rows) => {
                for (id, row) in rows {
                    match row {
                        Some(row) => self.rows.insert(id, row),
                        None => self.rows.remove(&id),
                    };
                }
            }
            Change::Index(name) => {
                self.indexes.insert(name);
            }
            Change::NoIndex(name) => {
                self.indexes.remove(&name);
            }
            Change::Other(name, rows) => self.others.entry(name).or_default().extend(rows),
            Change::NoOther(name) => {
                self.others.remove(&name);
            }
            Change::Loaded(name, rows) => {
                self.loaded.insert(name, rows);
            }
            Change::NotLoaded(name) => {
                self.loaded.remove(&name);
            }
        }
    }

    /// Returns a text with the first difference to another world.
    pub fn difference(&self, found: &World) -> String {
        let (mine, theirs) = (&self.rows, &found.rows);
        let missing = mine.iter().find(|(id, row)| theirs.get(id) != Some(row));
        let surplus = theirs.iter().find(|(id, row)| mine.get(id) != Some(row));
        format!(
            "{} rows, expected {}; not found: {missing:?}; found: {surplus:?}; others {:?}, expected {:?}",
            theirs.len(),
            mine.len(),
            (&found.indexes, &found.others, &found.loaded),
            (&self.indexes, &self.others, &self.loaded)
        )
    }
}

pub fn number(value: i64) -> Value {
    Value::Number(Number::new(i128::from(value), 0).expect("an i64 is a NUMBER"))
}

/// Reads all contents, and checks indexes against their tables.
pub fn read(instance: &Instance) -> Result<World, EngineError> {
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(instance, &session)?;
    let mut world = World { indexes: BTreeSet::new(), ..World::default() };
    let (names, indexes, loaded) = {
        let catalog = instance.catalog();
        let names: Vec<String> = catalog.live_tables.iter().map(|table| table.name.clone()).collect();
        let indexes: Vec<(String, String)> =
            catalog.live_indexes.iter().map(|index| (index.table.clone(), index.name.clone())).collect();
        let loaded: Vec<(String, u64)> =
            catalog.tables.iter().map(|table| (table.name.clone(), table.row_count)).collect();
        (names, indexes, loaded)
    };
    for name in names {
        // The check first, because it reports contradictions between blocks in words.
        let checked = transactions.check(&session, &name)?;
        let rows = rows_of(&transactions, &session, &name)?;
        let own = indexes.iter().filter(|(table, _)| *table == name).map(|(_, index)| index.clone());
        let own: BTreeSet<String> = own.collect();
        assert_eq!(checked.row_count, rows.len() as u64);
        let seen = scanned(&transactions, &session, &name)?;
        assert_eq!(seen, (checked.row_count, checked.row_sum), "a direct scan of {name}");
        assert_eq!(checked.entry_count, own.len() as u64 * checked.row_count);
        if name == TABLE {
            (world.rows, world.indexes) = (rows, own);
        } else {
            world.others.insert(name, rows.into_keys().collect());
        }
    }
    for (name, rows) in loaded {
        check_table(instance, &name)?;
        assert_eq!(scanned(&transactions, &session, &name)?.0, rows, "a direct scan of {name}");
        world.loaded.insert(name, rows);
    }
    Ok(world)
}

/// Returns the number of a table's rows and the sum of their hashes, by direct reads.
fn scanned(
    transactions: &Transactions<'_>,
    session: &plumb_events::Session,
    table: &str,
) -> Result<(u64, u64), EngineError> {
    let view = TableView::open(transactions.instance(), Some(transactions), session, table)?;
    let spec =
        TotalsSpec { columns: &[], predicate: None, checksum: Checksum::Taken, share: ExtentShare::ALL };
    totals(session, &view, spec).map(|found| (found.row_count, found.row_sum))
}

fn rows_of(
    transactions: &Transactions<'_>,
    session: &plumb_events::Session,
    table: &str,
) -> Result<BTreeMap<i64, (RowId, Content)>, EngineError> {
    let mut connection = transactions.connect(session);
    let mut found = BTreeMap::new();
    connection.begin().scan(table, |row| {
        let [Value::Number(id), Value::Number(key), Value::Text(text), long] = row.values.as_slice() else {
            panic!("a row of {:?}", row.values);
        };
        let long = if let Value::Text(long) = long { long.clone() } else { String::new() };
        let value = |number: &Number| number.to_string().parse::<i64>().expect("an integer");
        let twice = found.insert(value(id), (row.id, (value(key), text.clone(), long)));
        assert!(twice.is_none(), "row {id} twice");
        Ok(())
    })?;
    Ok(found)
}
