//! Tables and indexes that transactions change: made, given another index, dropped.
//!
//! All of it is durable when the call returns, and belongs to no transaction. The catalog is replaced last when something is made, and first
//! when it is dropped, so a crash leaves what was there or what is to be; recovery does nothing again in a segment that the catalog does not
//! have, nor in one that is younger than the record (`redo/recovery`), so that the space can be used again at once.
//!
//! Who changes the definition of a table has it for himself ([`Taken`]): a statement that runs, and a transaction that has changed the table,
//! keep a reference to it ([`Arc`]), and with one of them under way the change is refused. Nobody waits.
//!
//! Limits: the keys of an index on a table that has rows are sorted in memory.

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

/// A table that nobody else uses. It is given back when dropped.
struct Taken<'t> {
    tables: &'t RwLock<Tables>,
    name: String,
    /// `None` when there is no such table any more.
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
    /// Makes a table with its indexes; it is durable when this returns.
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

    /// The same in this tablespace, which is one for tables; the indexes are in that of indexes.
    ///
    /// # Errors
    /// When a name is taken, a column is not there, or a file cannot be written; then nothing was made.
    ///
    /// # Panics
    /// When the tablespace is not for tables, or has not been made ([`Instance::tablespace_of`](crate::Instance::tablespace_of)).
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

    /// The index as the catalog will have it, still without a segment.
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

    /// Formats the first blocks of the segments and has that durable.
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

    /// Makes an index on a table that may have rows; it is durable when this returns.
    ///
    /// # Errors
    /// When the table is in use, the name is taken, a column is not there, two rows have one key of a unique index, or a file cannot be
    /// written; then nothing was made.
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

    /// Drops the table of that name with its indexes, or the index of that name. Their space is free when this returns.
    ///
    /// # Errors
    /// When there is neither, the table is in use, or the control file cannot be written.
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
            // What is committed in it from now on may be gone with it.
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

    /// One that does not wait for transactions, not even for the log that they keep.
    pub(super) fn worker_of_definition<'a>(
        &'a self,
        session: &'a Session,
    ) -> Result<Worker<'a>, EngineError> {
        let mut worker = Worker::new(self, session);
        worker.lock_wait = LockWait::Never;
        Ok(worker)
    }

    /// Takes a table away from all others.
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
    /// Fills an index that nothing refers to yet with an entry for each row of the table, which nobody changes meanwhile.
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
