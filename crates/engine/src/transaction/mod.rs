//! Transactions: rows change through the buffer cache, atomically and durably.
//!
//! [`Transactions::open`] opens the log of an instance and recovers from a crash. A [`Connection`]
//! is a session's access, and [`Connection::begin`] returns a [`Transaction`]. A transaction
//! inserts, updates, deletes and reads rows, and maintains their indexes. It ends with
//! [`Transaction::commit`] or [`Transaction::rollback`]; dropped, it is rolled back.
//!
//! ```no_run
//! use plumb_engine::transaction::{IndexDefinition, Transactions};
//! use plumb_engine::{EngineError, Instance};
//! use plumb_events::Role;
//! use plumb_types::{Column, ColumnType, Schema, Value};
//!
//! fn orders(instance: &Instance) -> Result<(), EngineError> {
//!     let session = instance.recorder.session(Role::User);
//!     let transactions = Transactions::open(instance, &session)?;
//!     let columns = vec![
//!         Column::required("ID", ColumnType::NUMBER),
//!         Column::nullable("WHAT", ColumnType::Text { max_bytes: 100 }),
//!     ];
//!     let schema = Schema::new(columns).expect("two columns with names");
//!     let columns = vec![("ID".into(), false)];
//!     let index = IndexDefinition { name: "ORDERS_ID".into(), columns, unique: true };
//!     transactions.create_table(&session, "ORDERS", &schema, &[index])?;
//!
//!     let mut connection = transactions.connect(&session);
//!     let mut transaction = connection.begin();
//!     let id = Value::Number(plumb_types::Number::new(7, 0).expect("small"));
//!     transaction.insert("ORDERS", &[id.clone(), Value::Text("a plumb".into())])?;
//!     transaction.commit()?;
//!
//!     let mut transaction = connection.begin();
//!     for row in transaction.lookup("ORDERS_ID", &[id])? {
//!         transaction.update("ORDERS", row.id, |values| values[1] = Value::Text("two".into()))?;
//!     }
//!     transaction.commit()?;
//!     drop(connection);
//!     transactions.close(&session)
//! }
//! ```
//!
//! **Isolation** is read committed. A statement (a call of [`Transaction`]) sees what was committed
//! when it began, and the changes of its own transaction; it never waits for a writer. A change
//! waits for the transaction that changed the row before (`enq: TX - row lock contention`), and
//! then changes the current row. [`Transaction::update`] passes the row to a closure, so that no
//! update is lost within the call. Two statements of a transaction may see different moments. Fuzzy
//! reads, read skew and write skew can occur. Lost updates can occur if a value is carried from one
//! statement to the next.
//!
//! Modules: [`crate::redo`] has the log, [`rows`] the rows in a block, [`row_pieces`] the rows
//! longer than a block, and [`tree`] the indexes. [`active`] decides visibility, and [`undo`]
//! describes how changes are undone.
//!
//! Order of latches: room in the log, the log's gate, the latch of a tree, blocks (a parent before
//! its child, left before right). No session waits for a row while it holds any of them.
//!
//! Tables and indexes are created and dropped by calls that belong to no transaction
//! ([`definition`]).
//!
//! Limits: the direct path does not know these tables. In a unique index a key with a NULL may
//! repeat.

mod active;
pub mod check;
mod checkpoints;
mod connection;
mod definition;
mod direct;
pub mod import;
mod patch;
mod range;
mod row_pieces;
mod rows;
mod segment;
mod statement;
mod tree;
mod undo;
mod worker;

pub use active::Snapshot;
pub use connection::{Connection, LockWait, Row, Transaction};
pub use direct::Logging;
pub(crate) use statement::Statement;

use crate::cache::WriteAhead;
use crate::redo::recovery::Recovered;
use crate::redo::{LiveExtent, Log, LogHome, LogOptions, log_access, log_home};
use crate::sort::key::KeyBuilder;
use crate::storage::control::{LiveIndex, LiveTable, listed, stored_name};
use crate::storage::tablespace::Purpose;
use crate::{EngineError, Instance};
use active::Active;
use checkpoints::{Checkpoints, LogProcesses};
use plumb_events::Session;
use plumb_types::Schema;
use plumb_units::Lsn;
use segment::Segment;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tree::Tree;
use worker::Worker;

/// Definition of an index to create.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Name of the index, case-insensitive.
    pub name: String,
    /// Names of the key columns, each with `true` for descending.
    pub columns: Vec<(String, bool)>,
    /// True if no two rows may have the same key.
    pub unique: bool,
}

#[derive(Debug)]
struct Table {
    name: String,
    schema: Schema,
    segment: Segment,
    indexes: Vec<Arc<Tree>>,
}

/// Returns the table of these segments; reads no block.
fn table_of<'t>(table: &LiveTable, indexes: impl Iterator<Item = &'t LiveIndex>) -> Table {
    let trees = indexes.map(|index| Arc::new(tree_of(index, &table.schema)));
    Table {
        name: table.name.clone(),
        schema: table.schema.clone(),
        segment: Segment::new(table.tablespace, Lsn(table.created), table.extents.clone()),
        indexes: trees.collect(),
    }
}

/// Returns the index of this segment, on a table of these columns; reads no block.
fn tree_of(index: &LiveIndex, schema: &Schema) -> Tree {
    let segment = Segment::new(Purpose::Indx, Lsn(index.created), index.extents.clone());
    let key = KeyBuilder::new(&index.columns, schema);
    Tree::new(index.name.clone(), segment, key, index.unique)
}

/// Tables by name; `None` while the definition of one is being changed.
type Tables = BTreeMap<String, Option<Arc<Table>>>;

fn no_table(tables: &Tables, name: &str) -> EngineError {
    EngineError::Missing {
        kind: "table that transactions change, named",
        name: name.to_string(),
        known: listed(tables.keys().map(String::as_str)),
    }
}

fn being_defined(name: &str) -> EngineError {
    EngineError::TableInUse { table: name.to_string(), by: "it is being dropped or gets an index" }
}

/// The transactions of an open database: its log, its tables and the running transactions.
#[derive(Debug)]
pub struct Transactions<'i> {
    instance: &'i Instance,
    log: Arc<Log>,
    active: Arc<Active>,
    tables: RwLock<Tables>,
    checkpoints: Arc<Checkpoints>,
    /// Held while a segment takes an LSN as its name, which no other segment has.
    naming: Mutex<()>,
    /// LGWR, CKPT and ARC, which run while this is open.
    processes: LogProcesses,
    recovered: Recovered,
}

impl<'i> Transactions<'i> {
    /// Opens the transactions of an instance, once. Creates its log if it has none. If it was not
    /// closed, recovers committed changes and undoes the others.
    ///
    /// # Errors
    /// If the log is damaged, settings of the log contradict each other, or a file
    /// cannot be read or written.
    pub fn open(instance: &'i Instance, session: &Session) -> Result<Transactions<'i>, EngineError> {
        instance.require_writable()?;
        if instance.caches().log().is_some() {
            return Err(EngineError::Contradiction {
                first: "an opening of the transactions".to_string(),
                second: "the one before".to_string(),
                why: "an instance opens its transactions once; open the instance again".to_string(),
            });
        }
        let (live, database, reaches, mut places) = {
            let catalog = instance.catalog();
            let cached = catalog.live_extents().map(|segment| (segment, true));
            let all = cached.chain(catalog.logged_extents().map(|segment| (segment, false)));
            let live = all.flat_map(|((purpose, extents, created), cached)| {
                extents.iter().map(move |piece| LiveExtent { extent: piece.extent, purpose, created, cached })
            });
            (live.collect::<Vec<_>>(), catalog.database, Lsn(catalog.log_reaches), catalog.log_places.clone())
        };
        let has_log = log_home::has_log(&instance.access.disk, instance.home(), reaches)?;
        if !has_log {
            places = instance.name_log_places(session)?;
        }
        let access = log_access::of_log(&instance.settings, &instance.access, instance.home())?;
        let canonical = instance.canonical_home();
        let home = LogHome {
            home: instance.home(),
            canonical: &canonical,
            places: &places,
            database,
            access: &access,
            settings: &instance.settings,
            tablespaces: instance.tablespaces(),
            above: instance.next_lsn(session)?,
            reaches,
            caches: instance.caches(),
            live: &live,
        };
        let (log, recovered) = if has_log {
            home.recover(session)?
        } else {
            (home.create(session)?, Recovered { next_transaction: 1, ..Recovered::default() })
        };
        let log = Arc::new(log);
        let write_ahead: Arc<dyn WriteAhead> = Arc::clone(&log) as _;
        instance.caches().log_first(&write_ahead)?;
        write_ahead.note_definitions(session, instance.catalog().definitions);
        let most = LogOptions::transactions_max(log.options().block_bytes);
        let active = Arc::new(Active::new(most, recovered.next_transaction));
        let changed = (instance.caches().changed(), instance.caches().is_written_by_sessions());
        let tablespaces = instance.share_tablespaces();
        let checkpoints = Checkpoints::new(Arc::clone(&log), Arc::clone(&active), changed, tablespaces);
        let mut transactions = Transactions {
            instance,
            log,
            active,
            tables: RwLock::default(),
            checkpoints: Arc::new(checkpoints),
            naming: Mutex::default(),
            processes: LogProcesses::default(),
            recovered,
        };
        transactions.open_tables(session)?;
        transactions.undo_unended(session)?;
        transactions.checkpoints.begin_one(session)?;
        let threads = &instance.access.servers.threads;
        let priority = instance.settings.log.high_priority_processes;
        transactions.processes =
            LogProcesses::start(&transactions.checkpoints, &instance.recorder, threads, priority)?;
        Ok(transactions)
    }

    /// Returns the result of the recovery that opening did.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Returns the instance that these transactions belong to.
    pub fn instance(&self) -> &'i Instance {
        self.instance
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the most bytes of a row image of [`plumb_types`] in one block of `db_block_size`.
    pub fn row_bytes_max(&self) -> usize {
        rows::image_bytes_max(self.instance.tablespaces().block_size().bytes())
    }

    /// Connects a session to the tables.
    pub fn connect<'a>(&'a self, session: &'a Session) -> Connection<'a> {
        Connection::new(self, session)
    }

    fn open_tables(&self, session: &Session) -> Result<(), EngineError> {
        let (tables, indexes) = {
            let catalog = self.instance.catalog();
            (catalog.live_tables.clone(), catalog.live_indexes.clone())
        };
        for table in tables {
            let of_table = indexes.iter().filter(|index| index.table == table.name);
            let table = table_of(&table, of_table);
            match self.read_table(session, &table) {
                // Other tables stay usable, and this one can be dropped; its users get the error.
                Err(error) if error.is_damage() => {}
                read => read?,
            }
            self.enter_table(table);
        }
        Ok(())
    }

    /// Reads the height of each index of a table, and remembers the last block as one with room.
    fn read_table(&self, session: &Session, table: &Table) -> Result<(), EngineError> {
        let mut worker = Worker::new(self, session);
        table.indexes.iter().try_for_each(|tree| worker.find_height(tree).map(drop))?;
        let used = worker.used_blocks(&table.segment)?;
        if let Some(last) = table.segment.address(used - 1).filter(|_| used > 1) {
            table.segment.add_to_pool(last);
        }
        Ok(())
    }

    fn enter_table(&self, table: Table) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.insert(table.name.clone(), Some(Arc::new(table)));
    }

    fn table(&self, name: &str) -> Result<Arc<Table>, EngineError> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let found = tables.get(&stored_name(name)).ok_or_else(|| no_table(&tables, name))?;
        found.clone().ok_or_else(|| being_defined(name))
    }

    fn index(&self, name: &str) -> Result<(Arc<Table>, Arc<Tree>), EngineError> {
        let stored = stored_name(name);
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let trees = || {
            let open = tables.values().flatten();
            open.flat_map(|table| table.indexes.iter().map(move |tree| (table, tree)))
        };
        let found = trees().find(|(_, tree)| tree.name == stored);
        found.map(|(table, tree)| (Arc::clone(table), Arc::clone(tree))).ok_or_else(|| EngineError::Missing {
            kind: "index that transactions change, named",
            name: name.to_string(),
            known: listed(trees().map(|(_, tree)| tree.name.as_str())),
        })
    }

    /// Returns the table, or the table and index, of the segment created at that LSN.
    fn segment_of(&self, created: Lsn) -> Option<(Arc<Table>, Option<Arc<Tree>>)> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.values().flatten().find_map(|table| {
            if table.segment.created == created {
                return Some((Arc::clone(table), None));
            }
            let tree = table.indexes.iter().find(|tree| tree.segment.created == created)?;
            Some((Arc::clone(table), Some(Arc::clone(tree))))
        })
    }

    /// Undoes the transactions that a crash left without an end.
    fn undo_unended(&self, session: &Session) -> Result<(), EngineError> {
        for unended in &self.recovered.unended {
            self.active.enter_again(unended.transaction, unended.first, unended.last);
        }
        let mut worker = Worker::new(self, session);
        for unended in &self.recovered.unended {
            worker.roll_back_found(unended)?;
        }
        Ok(())
    }

    /// Writes all changed blocks, and frees the log up to the oldest
    /// transaction. Commits were durable before.
    ///
    /// # Errors
    /// If a write or a sync fails. The log fails too, because it is unknown what is durable.
    pub fn checkpoint(&self, session: &Session) -> Result<(), EngineError> {
        self.checkpoints.take(session)
    }

    /// Closes in order: writes all changed blocks, so that the next opening has nothing to recover.
    /// Without this call no commit is lost, because the next opening recovers it from the log.
    ///
    /// # Errors
    /// As [`Transactions::checkpoint`]; then the next opening recovers the commits.
    pub fn close(self, session: &Session) -> Result<(), EngineError> {
        self.checkpoint(session)
    }

    /// Switches to a new log file, with every changed block written and every filled file copied.
    /// Compared runs begin in this state. The new file then holds the record of a checkpoint.
    ///
    /// # Errors
    /// If a running transaction needs the next file, a copy cannot be made, or a write fails.
    pub fn switch_log_file(&self, session: &Session) -> Result<(), EngineError> {
        self.checkpoint(session)?;
        // If files were filled before copies were made, all may wait for theirs.
        self.checkpoints.await_copies(session)?;
        self.log.switch(session)?;
        // Only a checkpoint that begins after the switch frees the file before it. Its record is
        // the first of the new file, which makes another one due.
        self.checkpoint(session)?;
        if self.log.pace.is_due() {
            self.checkpoint(session)?;
        }
        self.checkpoints.await_copies(session)
    }

    /// Makes room for `bytes` of log, as far as checkpoints can.
    fn make_room(&self, session: &Session, bytes: i64) -> Result<(), EngineError> {
        self.checkpoints.make_room(session, bytes)
    }
}
