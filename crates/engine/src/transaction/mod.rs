//! Transactions: rows that change through the buffer cache, all of a transaction or nothing,
//! whatever happens.
//!
//! What it does: [`Transactions::open`] opens the log of an instance, which recovers what a crash
//! left. A [`Connection`] is a session's way to it, and [`Connection::begin`] gives a
//! [`Transaction`]: rows are inserted, updated, deleted and read, indexes follow, and it ends with
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
//!     let index = IndexDefinition { name: "ORDERS_ID".into(), columns: vec![("ID".into(), false)], unique: true };
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
//! when it began, and what its transaction has done; it never waits for a writer. A change waits
//! for the transaction that has changed the row before (`enq: TX - row lock contention`), and then
//! changes the row as it is: [`Transaction::update`] gives it to a closure, so that no update is
//! lost between reading and writing within the call. Two statements of a transaction may see
//! different moments: a row that was read may be another one when it is read again (fuzzy reads,
//! read skew and write skew can occur; lost updates can where a value is carried from one statement
//! to the next).
//!
//! How: see [`crate::redo`] for the log, [`rows`] for rows, [`row_pieces`] for those that no block
//! has room for, [`tree`] for indexes, [`active`] for who sees what, [`undo`] for how it is taken
//! back.
//!
//! Order of latches: room in the log, the log's gate, the latch of a tree, blocks (a parent before
//! its child, left before right). Nobody waits for a row while he has any of them.
//!
//! Tables and indexes come and go by calls of their own, which belong to no transaction
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
mod tree;
mod undo;
mod worker;

pub use active::Snapshot;
pub use connection::{Connection, LockWait, Row, Transaction};
pub use direct::Logging;

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

/// An index of a table that is to be made.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Its name, in any case.
    pub name: String,
    /// Column names, each with whether it is descending.
    pub columns: Vec<(String, bool)>,
    /// Whether no two rows may have one key.
    pub unique: bool,
}

/// A table of an open database.
#[derive(Debug)]
struct Table {
    name: String,
    schema: Schema,
    segment: Segment,
    indexes: Vec<Arc<Tree>>,
}

/// The table of these segments, of which nothing has been read.
fn table_of<'t>(table: &LiveTable, indexes: impl Iterator<Item = &'t LiveIndex>) -> Table {
    let trees = indexes.map(|index| Arc::new(tree_of(index, &table.schema)));
    Table {
        name: table.name.clone(),
        schema: table.schema.clone(),
        segment: Segment::new(table.tablespace, Lsn(table.created), table.extents.clone()),
        indexes: trees.collect(),
    }
}

/// The index of this segment, on a table of these columns, of which nothing has been read.
fn tree_of(index: &LiveIndex, schema: &Schema) -> Tree {
    let segment = Segment::new(Purpose::Indx, Lsn(index.created), index.extents.clone());
    let key = KeyBuilder::new(&index.columns, schema);
    Tree::new(index.name.clone(), segment, key, index.unique)
}

/// The tables by name; `None` for one whose definition is being changed.
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

/// The transactions of an open database: its log, its tables and who changes them.
#[derive(Debug)]
pub struct Transactions<'i> {
    instance: &'i Instance,
    log: Arc<Log>,
    active: Arc<Active>,
    tables: RwLock<Tables>,
    checkpoints: Arc<Checkpoints>,
    /// Taken by who gives a segment its name, an LSN that no other has.
    naming: Mutex<()>,
    /// LGWR, CKPT and ARC, as long as this is open.
    processes: LogProcesses,
    recovered: Recovered,
}

impl<'i> Transactions<'i> {
    /// Opens the transactions of an instance: makes its log if it has none, and recovers what was
    /// committed and undoes what was not if it was not closed. To be called once for an instance.
    ///
    /// # Errors
    /// When the log is damaged, a setting of the log contradicts another one, or a file cannot be
    /// read or written.
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

    /// What the recovery did that opening was.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// The instance that it works on.
    #[must_use]
    pub fn instance(&self) -> &'i Instance {
        self.instance
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Bytes of the longest row that a block of `db_block_size` takes, as an image of
    /// [`plumb_types`].
    #[must_use]
    pub fn row_bytes_max(&self) -> usize {
        rows::image_bytes_max(self.instance.tablespaces().block_size().bytes())
    }

    /// A session's own way to the tables.
    #[must_use]
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
                // Other tables can be used all the same, and this one dropped; who uses what is
                // damaged is told.
                Err(error) if error.is_damage() => {}
                read => read?,
            }
            self.enter_table(table);
        }
        Ok(())
    }

    /// Reads how high the indexes of a table are, and which block has room.
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

    /// The table, or the table of the index, that was made then.
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

    /// Undoes what transactions did that a crash left without an end.
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

    /// Writes what has changed, and lets the log be used again up to the oldest transaction. What
    /// was committed was durable before.
    ///
    /// # Errors
    /// When a write or a sync fails: the log then fails too, because what is durable is not known.
    pub fn checkpoint(&self, session: &Session) -> Result<(), EngineError> {
        self.checkpoints.take(session)
    }

    /// Ends in order: writes what has changed, so that the next opening has nothing to recover.
    /// Without it no committed change is lost: the next opening recovers it from the log.
    ///
    /// # Errors
    /// As [`Transactions::checkpoint`]; what was committed is recovered then, too.
    pub fn close(self, session: &Session) -> Result<(), EngineError> {
        self.checkpoint(session)
    }

    /// Lets the log go on at the beginning of a file, with every changed block written and every
    /// filled file copied: the state that runs that are compared begin in. What the new file has
    /// then is the record of a checkpoint.
    ///
    /// # Errors
    /// When a transaction under way needs the file that comes next, a copy cannot be made, or a
    /// write fails.
    pub fn switch_log_file(&self, session: &Session) -> Result<(), EngineError> {
        self.checkpoint(session)?;
        // Files that were filled before copies were made may all wait for theirs.
        self.checkpoints.await_copies(session)?;
        self.log.switch(session)?;
        // The file before is given back by a checkpoint that begins behind it. Its record is the
        // first in the new file, which makes another one due.
        self.checkpoint(session)?;
        if self.log.pace.is_due() {
            self.checkpoint(session)?;
        }
        self.checkpoints.await_copies(session)
    }

    /// Room for so many bytes in the log, as far as checkpoints can make it.
    fn make_room(&self, session: &Session, bytes: i64) -> Result<(), EngineError> {
        self.checkpoints.make_room(session, bytes)
    }
}
