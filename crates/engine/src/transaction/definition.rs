//! Creation of tables and indexes that transactions change, and their removal.
//!
//! Each call is durable when it returns, and belongs to no transaction. The catalog is replaced
//! last when something is created, and first when it is dropped, so that a crash leaves the old
//! state or the new one. Recovery skips segments that are not in the catalog, and records older
//! than their segment (`redo/recovery`), so that the space can be reused at once.
//!
//! A session changes the definition of a table exclusively ([`Taken`]). Running statements, and
//! transactions that have changed the table, hold a reference to it ([`Arc`]). While one exists,
//! the change fails rather than waits.
//!
//! Limits: the keys of an index on a table with rows are sorted in memory.

use super::connection::key_of;
use super::tree::Tree;
use super::worker::Worker;
use super::{IndexDefinition, LockWait, Table, Tables, Transactions, table_of, tree_of};
use crate::EngineError;
use crate::storage::block::BlockKind;
use crate::storage::control::{
    Dropped, IndexColumn, LiveIndex, LiveTable, listed, require_column_names, stored_name,
};
use crate::storage::tablespace::Purpose;
use plumb_events::Session;
use plumb_types::Schema;
use plumb_units::RowId;
use std::sync::{Arc, PoisonError, RwLock};

/// A table held exclusively; it is returned on drop.
struct Taken<'t> {
    tables: &'t RwLock<Tables>,
    name: String,
    /// `None` if the table was dropped.
    table: Option<Arc<Table>>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        match self.table.take() {
            Some(table) => tables.insert(self.name.clone(), Some(table)),
            None => tables.remove(&self.name),
        };
    }
}

impl Transactions<'_> {
    /// Creates a table with its indexes in the default tablespace, durably.
    ///
    /// # Errors
    /// As [`Transactions::create_table_in`].
    pub fn create_table(
        &self,
        session: &Session,
        name: &str,
        schema: &Schema,
        indexes: &[IndexDefinition],
    ) -> Result<(), EngineError> {
        self.create_table_in(session, (name, Purpose::Users), schema, indexes)
    }

    /// Creates a table in this tablespace, which must be for tables, durably. Its indexes
    /// are in the index tablespace.
    ///
    /// # Errors
    /// If a name is taken, a column does not exist, or a file cannot be
    /// written; then nothing was created.
    ///
    /// # Panics
    /// If the tablespace is not for tables, or does not exist
    /// ([`Instance::tablespace_of`](crate::Instance::tablespace_of)).
    pub fn create_table_in(
        &self,
        session: &Session,
        (name, tablespace): (&str, Purpose),
        schema: &Schema,
        indexes: &[IndexDefinition],
    ) -> Result<(), EngineError> {
        assert!(tablespace.is_tables(), "a table is in a tablespace for tables");
        require_column_names(schema)?;
        let name = self.instance.catalog().require_free(name)?;
        let defined = |index| self.define_index(&name, schema, index);
        let mut indexes = indexes.iter().map(defined).collect::<Result<Vec<_>, EngineError>>()?;
        let mut table =
            LiveTable { name, schema: schema.clone(), tablespace, extents: Vec::new(), created: 0 };
        let made = self.make_segments(session, &mut table, &mut indexes).and_then(|()| {
            let made = table_of(&table, indexes.iter());
            self.read_table(session, &made)?;
            let (table, indexes) = (table.clone(), indexes.clone());
            self.instance.change_catalog(session, |catalog| catalog.add_live(table, indexes))?;
            self.enter_table(made);
            Ok(())
        });
        if made.is_err() {
            self.instance.release(session, tablespace, &table.extents);
            indexes.iter().for_each(|index| self.instance.release(session, Purpose::Indx, &index.extents));
        }
        made
    }

    /// Returns the catalog's entry for the index, without a segment yet.
    fn define_index(
        &self,
        table: &str,
        schema: &Schema,
        index: &IndexDefinition,
    ) -> Result<LiveIndex, EngineError> {
        let name = self.instance.catalog().require_free(&index.name)?;
        let columns = index.columns.iter().map(|(column, descending)| {
            let position = schema.position(column).ok_or_else(|| EngineError::Missing {
                kind: "column",
                name: column.clone(),
                known: listed(schema.columns.iter().map(|column| column.name.as_str())),
            })?;
            Ok(IndexColumn { position, descending: *descending })
        });
        if index.columns.is_empty() {
            let name = format!("for the key of index {}", index.name);
            return Err(EngineError::Missing {
                kind: "column",
                name,
                known: listed(schema.columns.iter().map(|column| column.name.as_str())),
            });
        }
        let (columns, table) = (columns.collect::<Result<Vec<_>, EngineError>>()?, table.to_string());
        Ok(LiveIndex { name, table, columns, unique: index.unique, extents: Vec::new(), created: 0 })
    }

    /// Formats the first blocks of the segments, durably.
    fn make_segments(
        &self,
        session: &Session,
        table: &mut LiveTable,
        indexes: &mut [LiveIndex],
    ) -> Result<(), EngineError> {
        let mut worker = self.worker_of_definition(session)?;
        (table.created, table.extents) = worker.make_segment(table.tablespace, BlockKind::Rows)?;
        for index in indexes.iter_mut() {
            (index.created, index.extents) = worker.make_segment(Purpose::Indx, BlockKind::Leaf)?;
        }
        self.log.make_durable(session, self.log.end())
    }

    /// Creates an index on a table, which may have rows, durably.
    ///
    /// # Errors
    /// If the table is in use, the name is taken, or a column does not exist. Also if two rows have
    /// the same key of a unique index, or a file cannot be written. Then nothing was created.
    pub fn create_index(
        &self,
        session: &Session,
        table: &str,
        index: &IndexDefinition,
    ) -> Result<(), EngineError> {
        self.log.check()?;
        let mut taken = self.take(&stored_name(table))?;
        let table = taken.table.as_mut().and_then(Arc::get_mut).expect("taken for itself");
        let mut live = self.define_index(&table.name, &table.schema, index)?;
        let mut worker = self.worker_of_definition(session)?;
        (live.created, live.extents) = worker.make_segment(Purpose::Indx, BlockKind::Leaf)?;
        let tree = tree_of(&live, &table.schema);
        let entered = worker.fill_index(table, &tree).and_then(|()| {
            self.log.make_durable(session, self.log.end())?;
            live.extents = tree.segment.extents();
            self.instance.change_catalog(session, |catalog| catalog.add_live_index(live))
        });
        match entered {
            Ok(()) => table.indexes.push(Arc::new(tree)),
            Err(_) => self.instance.release(session, Purpose::Indx, &tree.segment.extents()),
        }
        entered
    }

    /// Drops the table of that name with its indexes, or the index of that name. The space
    /// is free when this returns.
    ///
    /// # Errors
    /// If there is neither, the table is in use, or the control file cannot be written.
    pub fn drop_named(&self, session: &Session, name: &str) -> Result<Dropped, EngineError> {
        self.log.check()?;
        let name = stored_name(name);
        let owner = match self.index(&name) {
            Ok((table, _)) => table.name.clone(),
            Err(_) => name.clone(),
        };
        let mut taken = self.take(&owner)?;
        let mut dropped = None;
        let changed =
            self.instance.change_catalog(session, |catalog| dropped = Some(catalog.remove_live(&name)));
        if let Err(error) = changed {
            // Later commits to the table could be lost with it.
            if matches!(error, EngineError::ControlFileInDoubt { .. }) {
                self.log.fail(error.to_string());
            }
            return Err(error);
        }
        let table = taken.table.as_mut().and_then(Arc::get_mut).expect("taken for itself");
        let is_gone = |tree: &Arc<Tree>| owner == name || tree.name == name;
        let indexes: Vec<Arc<Tree>> = table.indexes.extract_if(.., |tree| is_gone(tree)).collect();
        for tree in indexes {
            self.instance.release(session, Purpose::Indx, &tree.segment.extents());
        }
        if owner == name {
            self.instance.release(session, table.segment.purpose, &table.segment.extents());
            taken.table = None;
        }
        self.instance.shorten_files();
        Ok(dropped.expect("set with the catalog"))
    }

    /// Returns a worker that never waits for another transaction.
    pub(super) fn worker_of_definition<'a>(
        &'a self,
        session: &'a Session,
    ) -> Result<Worker<'a>, EngineError> {
        let mut worker = Worker::new(self, session);
        worker.lock_wait = LockWait::Never;
        Ok(worker)
    }

    /// Takes a table exclusively, without waiting.
    ///
    /// # Errors
    /// If the table does not exist, or is in use.
    fn take(&self, name: &str) -> Result<Taken<'_>, EngineError> {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = tables.get_mut(name) else { return Err(super::no_table(&tables, name)) };
        let mut table = place.take().ok_or_else(|| super::being_defined(name))?;
        if Arc::get_mut(&mut table).is_none() {
            *place = Some(table);
            let by = "a statement or a transaction that has changed it has not ended";
            return Err(EngineError::TableInUse { table: name.to_string(), by });
        }
        Ok(Taken { tables: &self.tables, name: name.to_string(), table: Some(table) })
    }
}

impl Worker<'_> {
    /// Fills an index that nothing refers to yet with an entry for each row. No
    /// session changes the table meanwhile.
    fn fill_index(&mut self, table: &Table, tree: &Tree) -> Result<(), EngineError> {
        let mut entries: Vec<(Vec<u8>, RowId)> = Vec::new();
        let block_bytes = self.block_bytes_of(Purpose::Indx);
        let mut collect = |row: RowId, image: &[u8]| {
            entries.push((key_of(tree, (image, row), block_bytes, Vec::new())?, row));
            Ok(())
        };
        self.scan_rows(table, None, (&mut collect, &mut || Ok(())))?;
        entries.sort_unstable();
        for pair in entries.windows(2).filter(|pair| tree.unique && pair[0].0 == pair[1].0) {
            let address = table.segment.expected(BlockKind::Rows);
            let block = self.reader.get(table.segment.purpose, pair[0].1.address(), address)?;
            let stored =
                super::rows::row_at(&block, pair[0].1.slot()).map(|row| super::rows::plain_image(&row));
            drop(block);
            let image = stored.map(|stored| self.whole(table, pair[0].1, stored)).transpose()?;
            if let Some(image) = image.filter(|image| tree.must_differ(image)) {
                return Err(tree.duplicate(table, &image, pair[0].1));
            }
        }
        let mut left = entries.as_slice();
        while !left.is_empty() {
            left = &left[self.append_entries(tree, left)?..];
        }
        Ok(())
    }
}
