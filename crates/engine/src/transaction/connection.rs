//! Connections of sessions, with their transactions and statements.

use super::active::Snapshot;
use super::row_pieces::{Found, Stored};
use super::segment::format_header;
use super::tree::{EntryChange, Tree};
use super::undo::Undo;
use super::worker::{END_BYTES, Thread, Worker};
use super::{Table, Transactions, patch, rows};
use crate::EngineError;
use crate::redo::edit::Edit;
use crate::redo::record::RecordKind;
use crate::redo::recovery::Unended;
use crate::storage::block::{BlockKind, LsnRange};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Purpose;
use crate::table::chain;
use plumb_events::{Session, Statistic, locked};
use plumb_types::{RowBatch, Value, column_at, columns};
use plumb_units::{BlockAddress, Lsn, RowId};
use std::cell::RefCell;
use std::sync::Arc;

/// Choice for a change of a row that another running transaction has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Waits until that transaction ends.
    Forever,
    /// Fails with [`EngineError::RowLocked`].
    Never,
}

/// A row that a statement has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Row id. An update that makes the row too long for its block moves it to another id.
    pub id: RowId,
    /// Values of the columns, in the order of the schema.
    pub values: Vec<Value>,
}

/// A session's access to the tables, with one transaction at a time.
#[derive(Debug)]
pub struct Connection<'a> {
    pub(super) worker: Worker<'a>,
    images: RowBatch,
}

impl<'a> Connection<'a> {
    pub(super) fn new(store: &'a Transactions<'a>, session: &'a Session) -> Connection<'a> {
        Connection { worker: Worker::new(store, session), images: RowBatch::new() }
    }

    /// Sets if later changes wait for rows that other transactions have changed.
    pub fn set_lock_wait(&mut self, lock_wait: LockWait) {
        self.worker.lock_wait = lock_wait;
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> Transaction<'_, 'a> {
        self.worker.own = 0;
        Transaction { connection: self, thread: None, changed: Vec::new() }
    }
}

/// A running transaction, rolled back on drop.
#[derive(Debug)]
pub struct Transaction<'c, 'a> {
    pub(super) connection: &'c mut Connection<'a>,
    /// State in the log; `None` until the first change.
    thread: Option<Thread<'a>>,
    /// Tables that it has changed, referenced so that no session drops them.
    changed: Vec<Arc<Table>>,
}

impl<'a> Transaction<'_, 'a> {
    /// Returns the transaction's number; `None` until the first change.
    pub fn number(&self) -> Option<u64> {
        self.thread.as_ref().map(|thread| thread.transaction)
    }

    /// Inserts a row and returns its row id.
    ///
    /// # Errors
    /// If the table does not exist, the row does not match it or is too long, or
    /// the log has no room.
    pub fn insert(&mut self, table: &str, values: &[Value]) -> Result<RowId, EngineError> {
        let mut images = std::mem::take(&mut self.connection.images);
        images.clear();
        push(&mut images, values);
        let inserted = self.insert_rows(table, &images);
        self.connection.images = images;
        inserted.map(|rows| rows[0])
    }

    /// Inserts row images of [`plumb_types`] as an array insert: one record for all rows of a
    /// block. Returns their row ids.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; then no row was inserted.
    pub fn insert_rows(&mut self, table: &str, images: &RowBatch) -> Result<Vec<RowId>, EngineError> {
        let table = self.connection.worker.store.table(table)?;
        for image in images.iter() {
            self.connection.worker.require_row(&table, image)?;
        }
        self.statement(&table, |worker, thread| {
            let rows = worker.insert_rows(thread, &table, images)?;
            worker.session.count(Statistic::RowsInserted, rows.len() as u64);
            Ok(rows)
        })
    }

    /// Updates a row and returns its row id, which may be new. If another transaction has
    /// changed the row, waits for its end. Then `change` gets the current columns, so
    /// that no update is lost.
    ///
    /// # Errors
    /// [`EngineError::RowGone`] if the row does not exist, [`EngineError::Deadlock`], and as
    /// [`Transaction::insert`].
    pub fn update(
        &mut self,
        table: &str,
        row: RowId,
        change: impl Fn(&mut [Value]),
    ) -> Result<RowId, EngineError> {
        let table = self.connection.worker.store.table(table)?;
        self.statement(&table, |worker, thread| {
            let changed = worker.update_row(thread, (&table, row), &|_| Ok(true), &change)?;
            worker.session.count(Statistic::RowsUpdated, 1);
            changed.ok_or_else(|| EngineError::RowGone { row, table: table.name.clone() })
        })
    }

    /// Deletes a row; waits like [`Transaction::update`].
    ///
    /// # Errors
    /// As [`Transaction::update`].
    pub fn delete(&mut self, table: &str, row: RowId) -> Result<(), EngineError> {
        let table = self.connection.worker.store.table(table)?;
        self.statement(&table, |worker, thread| {
            worker.delete_row(thread, &table, row)?;
            worker.session.count(Statistic::RowsDeleted, 1);
            Ok(())
        })
    }

    /// Returns the row as committed when the call began, or as this transaction has changed it;
    /// `None` if there is none.
    ///
    /// # Errors
    /// If a block or the log cannot be read, or the log no longer holds the version.
    pub fn get(&mut self, table: &str, row: RowId) -> Result<Option<Row>, EngineError> {
        let table = self.connection.worker.store.table(table)?;
        let snapshot = self.snapshot()?;
        let image = self.connection.worker.fetch(&table, row, &snapshot)?;
        image.map(|image| read_row(&table, row, &image)).transpose()
    }

    /// Visits all rows of the table as of one moment, with their values.
    ///
    /// # Errors
    /// As [`Transaction::get`], or the error of `visit`.
    pub fn scan(
        &mut self,
        table: &str,
        mut visit: impl FnMut(Row) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let table = self.connection.worker.store.table(table)?;
        let snapshot = self.snapshot()?;
        // Rows are shown after all blocks are unpinned, because `visit` may change rows.
        let rows = RefCell::new(Vec::new());
        let mut collect = |row: RowId, image: &[u8]| {
            rows.borrow_mut().push(read_row(&table, row, image)?);
            Ok(())
        };
        let mut show = || rows.take().into_iter().try_for_each(&mut visit);
        self.connection.worker.scan_rows(&table, Some(&snapshot), (&mut collect, &mut show))
    }

    /// Visits all rows of one moment as images. The images lie in pinned blocks, so
    /// `visit` must not change rows.
    ///
    /// # Errors
    /// As [`Transaction::scan`].
    pub fn scan_images(
        &mut self,
        table: &str,
        mut visit: impl FnMut(RowId, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let table = self.connection.worker.store.table(table)?;
        let snapshot = self.snapshot()?;
        self.connection.worker.scan_rows(&table, Some(&snapshot), (&mut visit, &mut || Ok(())))
    }

    /// Returns the rows with this key, which has one value for each column of the index.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn lookup(&mut self, index: &str, key: &[Value]) -> Result<Vec<Row>, EngineError> {
        let (table, tree) = self.connection.worker.store.index(index)?;
        let snapshot = self.snapshot()?;
        let normalised = tree.key_of_values(&table.schema, key)?;
        let worker = &mut self.connection.worker;
        let mut rows = Vec::new();
        let mut own = Vec::new();
        for row in worker.rows_of(&tree, &normalised)? {
            let Some(image) = worker.fetch(&table, row, &snapshot)? else { continue };
            tree.key.build(&image, &mut own).map_err(|error| EngineError::bad_row(row, error))?;
            // The entry may belong to another version of the row.
            if own == normalised {
                rows.push(read_row(&table, row, &image)?);
            }
        }
        Ok(rows)
    }

    /// Commits: waits until all changes are durable, and then shows them to others.
    ///
    /// # Errors
    /// If the log cannot be written. Opening the database again then decides if it was committed.
    pub fn commit(mut self) -> Result<(), EngineError> {
        self.commit_and_chain()
    }

    /// Commits, and begins the next transaction of the connection.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_and_chain(&mut self) -> Result<(), EngineError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let committed = self.connection.worker.commit(thread);
        self.changed.clear();
        committed
    }

    /// Rolls back: undoes all changes of the transaction.
    ///
    /// # Errors
    /// If a block or the log cannot be read or written. The next opening of
    /// the database undoes the rest.
    pub fn rollback(mut self) -> Result<(), EngineError> {
        self.rollback_and_chain()
    }

    /// Rolls back, and begins the next transaction of the connection.
    ///
    /// # Errors
    /// As [`Transaction::rollback`].
    pub fn rollback_and_chain(&mut self) -> Result<(), EngineError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let rolled_back = self.connection.worker.roll_back(thread);
        self.changed.clear();
        rolled_back
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot<'a>, EngineError> {
        let worker = &self.connection.worker;
        worker.log.check()?;
        Ok(worker.active.snapshot(self.number().unwrap_or(0), || worker.log.end()))
    }

    /// Runs a statement that changes a table, completely or not at all.
    pub(super) fn statement<T>(
        &mut self,
        table: &Arc<Table>,
        work: impl FnOnce(&mut Worker<'a>, &mut Thread<'a>) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let worker = &mut self.connection.worker;
        let thread = match &mut self.thread {
            Some(thread) => thread,
            none => none.insert(worker.begin_thread()?),
        };
        if !self.changed.iter().any(|changed| Arc::ptr_eq(changed, table)) {
            self.changed.push(Arc::clone(table));
        }
        let before = thread.last;
        let result = work(worker, thread);
        if result.is_err() && thread.last != before && worker.log.check().is_ok() {
            worker.undo_or_stop(thread, before)?;
        }
        result
    }
}

impl Drop for Transaction<'_, '_> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // If this fails, the log has failed, and the next opening of the database undoes the
            // rest.
            let _ = self.connection.worker.roll_back(thread);
        }
    }
}

/// Builds the key of a row in an index, reusing the memory of `key`.
pub(super) fn key_of(
    tree: &Tree,
    (image, row): (&[u8], RowId),
    block_size: usize,
    mut key: Vec<u8>,
) -> Result<Vec<u8>, EngineError> {
    tree.key.build(image, &mut key).map_err(|error| EngineError::bad_row(row, error))?;
    let (found, limit) = (key.len(), crate::index::block::key_bytes_max(block_size));
    if found > limit {
        return Err(EngineError::KeyTooLong { found, limit, block_size, row });
    }
    Ok(key)
}

fn push(images: &mut RowBatch, values: &[Value]) {
    images.begin_row(values.len() as u8);
    values.iter().for_each(|value| images.push_value(value));
    images.end_row();
}

fn read_row(table: &Table, id: RowId, image: &[u8]) -> Result<Row, EngineError> {
    let mut found = columns(image);
    let mut values = Vec::with_capacity(table.schema.columns.len());
    for (column, bytes) in table.schema.columns.iter().zip(&mut found) {
        let value = Value::from_encoded(&column.column_type, bytes);
        values.push(value.map_err(|error| EngineError::bad_row(id, error))?);
    }
    // Reports the error that ended the row early, if there was one.
    let count = found.finish().map_err(|error| EngineError::bad_row(id, error))?;
    if count != table.schema.column_count() {
        let why = format!("it has {count} columns, expected {}", table.schema.column_count());
        return Err(EngineError::bad_row(id, why));
    }
    Ok(Row { id, values })
}

impl Tree {
    /// True if no other row may have the key of this one.
    pub(super) fn must_differ(&self, image: &[u8]) -> bool {
        let is_null = |position: usize| column_at(image, position).is_ok_and(|value| value.is_none());
        self.unique && !self.key.positions().into_iter().any(is_null)
    }

    /// Returns the error for a row whose key another row, with this image, has already.
    pub(super) fn duplicate(&self, table: &Table, image: &[u8], row: RowId) -> EngineError {
        let values = match read_row(table, row, image) {
            Ok(found) => found.values,
            Err(error) => return error,
        };
        let key = self.key.positions().into_iter().map(|position| values[position].to_string());
        let key = format!("({})", key.collect::<Vec<_>>().join(", "));
        EngineError::DuplicateKey { index: self.name.clone(), key, row }
    }

    /// Returns the normalised key of values, one for each column of the key.
    pub(super) fn key_of_values(
        &self,
        schema: &plumb_types::Schema,
        key: &[Value],
    ) -> Result<Vec<u8>, EngineError> {
        let positions = self.key.positions();
        if positions.len() != key.len() {
            return Err(EngineError::Verification {
                what: format!("values for a key of index {}", self.name),
                found: key.len().to_string(),
                expected: positions.len().to_string(),
            });
        }
        let mut values = vec![Value::Null; schema.column_count()];
        positions.iter().zip(key).for_each(|(position, value)| values[*position] = value.clone());
        let mut images = RowBatch::new();
        push(&mut images, &values);
        let mut normalised = Vec::new();
        self.key
            .build(images.row(0), &mut normalised)
            .map_err(|error| EngineError::bad_row(RowId(0), error))?;
        Ok(normalised)
    }
}

impl<'a> Worker<'a> {
    /// Creates a segment that nothing refers to yet: a header, and a root for an index. Returns the
    /// LSN of its creation and its extents.
    pub(super) fn make_segment(
        &mut self,
        purpose: Purpose,
        kind: BlockKind,
    ) -> Result<(u64, Vec<SegmentExtent>), EngineError> {
        let extents = self.allocate(purpose, 1)?;
        let extent = extents[0];
        let admission = self.admit(2 * self.block_bytes_of(purpose), 0)?;
        // The LSN names the segment. The lock, held for microseconds, keeps other segments from
        // taking the LSN before a record of this one follows it.
        let _naming = locked(&self.store.naming);
        let gate = self.log.enter();
        let created = self.log.end();
        let has_root = kind == BlockKind::Leaf;
        let mut changes = Vec::new();
        let header = extent.extent.address(0);
        let mut block = self.reader.change_new(purpose, header)?;
        let mut edit = Edit::format(purpose, header, &mut block, BlockKind::Segment);
        format_header(&mut edit, &mut block, 1 + u32::from(has_root));
        changes.push((edit, block));
        if has_root {
            let root = extent.extent.address(1);
            let mut block = self.reader.change_new(purpose, root)?;
            let mut edit = Edit::format(purpose, root, &mut block, kind);
            edit.write(&mut block, 14, &8_u16.to_le_bytes());
            changes.push((edit, block));
        }
        self.log_system(admission, changes)?;
        drop(gate);
        Ok((created.0, extents))
    }

    fn begin_thread(&mut self) -> Result<Thread<'a>, EngineError> {
        let promised = self.admit(END_BYTES, 0)?;
        let log = self.log;
        let (transaction, _) = self.active.enter(|| log.end())?;
        self.own = transaction;
        Ok(Thread { transaction, last: Lsn(0), promised })
    }

    fn require_row(&self, table: &Table, image: &[u8]) -> Result<(), EngineError> {
        let (found, expected) = (image.get(2).copied().map_or(0, usize::from), table.schema.column_count());
        if found != expected {
            return Err(EngineError::Verification {
                what: format!("columns of a row for table {}", table.name),
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
        let room = self.row_bytes_max(table.segment.purpose);
        if image.len() > room {
            let tablespace = self.instance.tablespace(table.segment.purpose);
            return Err(chain::too_long(image, room, tablespace.extent_blocks.bytes(tablespace.block_size)));
        }
        Ok(())
    }

    fn insert_rows(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        images: &RowBatch,
    ) -> Result<Vec<RowId>, EngineError> {
        let stored = self.store_rows(thread, table, images)?;
        let ids = self.place_rows(thread, table, &stored)?;
        self.add_entries(thread, table, (images, &ids))?;
        Ok(ids)
    }

    /// Inserts rows, or the heads of chained rows, wherever there is room.
    fn place_rows(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        stored: &RowBatch,
    ) -> Result<Vec<RowId>, EngineError> {
        let mut ids: Vec<RowId> = Vec::with_capacity(stored.len());
        while ids.len() < stored.len() {
            let address = match table.segment.take_from_pool() {
                Some(address) => address,
                None => self.empty_block(&table.segment)?,
            };
            let first = ids.len();
            let slots = self.insert_into(thread, table, address, stored.iter().skip(first))?;
            ids.extend(slots.iter().map(|slot| RowId::new(address, *slot)));
            if ids.len() == stored.len() && !slots.is_empty() {
                table.segment.add_to_pool(address);
            }
        }
        Ok(ids)
    }

    /// Adds the index entries of new rows.
    fn add_entries(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        (images, ids): (&RowBatch, &[RowId]),
    ) -> Result<(), EngineError> {
        for tree in &table.indexes {
            for (image, row) in images.iter().zip(ids) {
                let key = self.key_of(tree, image, *row)?;
                let rivals = tree.must_differ(image).then_some(table);
                self.add_entry(thread, (tree, rivals), (&key, *row))?;
                self.key = key;
            }
        }
        Ok(())
    }

    /// Inserts rows into a block while it has room; returns their slots.
    pub(super) fn insert_into<'r>(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        address: BlockAddress,
        images: impl Iterator<Item = &'r [u8]> + Clone,
    ) -> Result<Vec<u16>, EngineError> {
        let purpose = table.segment.purpose;
        let (block_bytes, spare) = (self.block_bytes_of(purpose), self.spare_of(purpose));
        // First into the block as it is, then after removal of dead rows, which may free too
        // little.
        for _ in 0..2 {
            let promise = self.promise(purpose, block_bytes / 4);
            let admission = self.admit(2 * block_bytes + 256, promise)?;
            let gate = self.log.enter();
            let expected = table.segment.expected(BlockKind::Rows);
            let mut block = self.reader.change(table.segment.purpose, address, expected)?;
            let mut edit = Edit::new(table.segment.purpose, address, &block, gate.floor());
            let slots = rows::insert(&mut edit, (&mut block, spare), images.clone());
            if !slots.is_empty() {
                let undo = Undo::Inserted { block: address, slots: slots.clone() };
                let undo = (table.segment.created, &undo);
                self.log_change(thread, (admission, promise), undo, vec![(edit, block)])?;
                return Ok(slots);
            }
            let horizon = self.active.horizon(self.log.end());
            if !rows::compact(&mut edit, &mut block, horizon) {
                if rows::has_deleted(&block) {
                    table.segment.add_left(address);
                }
                break;
            }
            self.log_system(admission, vec![(edit, block)])?;
        }
        Ok(Vec::new())
    }

    pub(super) fn key_of(&mut self, tree: &Tree, image: &[u8], row: RowId) -> Result<Vec<u8>, EngineError> {
        let key = std::mem::take(&mut self.key);
        key_of(tree, (image, row), self.block_bytes_of(Purpose::Indx), key)
    }

    /// Waits until no other transaction holds the row, and returns it. The block is not kept, so
    /// the caller must check it again.
    fn claim_row(&mut self, thread: &Thread<'a>, table: &Table, row: RowId) -> Result<Found, EngineError> {
        let gone = || EngineError::RowGone { row, table: table.name.clone() };
        loop {
            if !self.is_block_of(table, row)? {
                return Err(gone());
            }
            let expected = table.segment.expected(BlockKind::Rows);
            let block = self.reader.get(table.segment.purpose, row.address(), expected)?;
            let stored = rows::row_at(&block, row.slot()).ok_or_else(gone)?;
            // While the block is pinned, no session undoes the version (R4 of row pieces).
            let holder = self.holder(stored.version, thread.transaction)?;
            let (deleted, stored) = (stored.deleted, rows::plain_image(&stored));
            drop(block);
            match holder {
                None if deleted => return Err(gone()),
                None => return self.find_row(table, row, stored),
                Some(holder) => self.await_end(thread, (holder, row))?,
            }
        }
    }

    /// Waits for the end of a transaction that has changed a row, unless the session never waits.
    pub(super) fn await_end(
        &self,
        thread: &Thread<'a>,
        (holder, row): (u64, RowId),
    ) -> Result<(), EngineError> {
        match self.lock_wait {
            LockWait::Never => Err(EngineError::RowLocked { row, holder }),
            LockWait::Forever => {
                let still = || self.log.check();
                self.active.wait_for(self.session, thread.transaction, (holder, row), still)
            }
        }
    }

    /// True if the block of the row id holds rows of the table.
    fn is_block_of(&mut self, table: &Table, row: RowId) -> Result<bool, EngineError> {
        let number = table.segment.index_of(row.address()).filter(|number| *number > 0);
        let Some(number) = number else { return Ok(false) };
        Ok(number < self.used_blocks(&table.segment)?)
    }

    /// Updates a row after it is claimed; `None` if `is_meant` rejects the claimed row. Returns its
    /// row id, which may be new.
    pub(super) fn update_row(
        &mut self,
        thread: &mut Thread<'a>,
        (table, row): (&Table, RowId),
        is_meant: &dyn Fn(&[u8]) -> Result<bool, EngineError>,
        change: &dyn Fn(&mut [Value]),
    ) -> Result<Option<RowId>, EngineError> {
        loop {
            let before = self.claim_row(thread, table, row)?;
            if !is_meant(before.image())? {
                return Ok(None);
            }
            let mut values = read_row(table, row, before.image())?.values;
            change(&mut values);
            let mut images = RowBatch::new();
            push(&mut images, &values);
            let after = images.row(0);
            self.require_row(table, after)?;
            let without_pieces = thread.last;
            let stored = self.store_row(thread, table, (after, Some(&before)))?;
            let place = match self.replace_row(thread, table, row, (&before.stored, Some(&stored.image)))? {
                Replaced::No => None,
                Replaced::Yes => {
                    self.update_entries(thread, table, row, (before.image(), Some(after)))?;
                    Some(row)
                }
                Replaced::NoRoom => self.move_row(thread, table, (row, &before), (&images, &stored))?,
            };
            let Some(place) = place else {
                // The row has changed, so the pieces inserted for it are undone.
                self.undo_until(thread, without_pieces)?;
                continue;
            };
            let old = before.pieces();
            self.delete_pieces(thread, table, &old[..old.len() - stored.kept])?;
            return Ok(Some(place));
        }
    }

    /// Deletes a row and inserts it elsewhere; `None` if the row has changed meanwhile.
    fn move_row(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        (row, before): (RowId, &Found),
        (images, stored): (&RowBatch, &Stored<'_>),
    ) -> Result<Option<RowId>, EngineError> {
        if self.replace_row(thread, table, row, (&before.stored, None))? == Replaced::No {
            return Ok(None);
        }
        table.segment.add_to_pool(row.address());
        self.update_entries(thread, table, row, (before.image(), None))?;
        let mut placed = RowBatch::new();
        placed.push_row(&stored.image);
        let ids = self.place_rows(thread, table, &placed)?;
        self.add_entries(thread, table, (images, &ids))?;
        Ok(Some(ids[0]))
    }

    fn delete_row(&mut self, thread: &mut Thread<'a>, table: &Table, row: RowId) -> Result<(), EngineError> {
        loop {
            let before = self.claim_row(thread, table, row)?;
            if self.replace_row(thread, table, row, (&before.stored, None))? != Replaced::No {
                table.segment.add_to_pool(row.address());
                self.delete_pieces(thread, table, before.pieces())?;
                return self.update_entries(thread, table, row, (before.image(), None));
            }
        }
    }

    /// Replaces the image of a row, or deletes it; for a chained row, the image is its head.
    fn replace_row(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        row: RowId,
        (before, after): (&[u8], Option<&[u8]>),
    ) -> Result<Replaced, EngineError> {
        let (address, slot) = (row.address(), row.slot());
        let purpose = table.segment.purpose;
        let promise = self.promise(purpose, before.len() + 32);
        let admission = self.admit(2 * self.block_bytes_of(purpose) + before.len() + 256, promise)?;
        let gate = self.log.enter();
        let expected = table.segment.expected(BlockKind::Rows);
        let mut block = self.reader.change(table.segment.purpose, address, expected)?;
        let Some(stored) = rows::row_at(&block, slot) else { return Ok(Replaced::No) };
        let version = stored.version;
        if stored.deleted || rows::plain_image(&stored) != before {
            return Ok(Replaced::No);
        }
        if self.holder(version, thread.transaction)?.is_some() {
            return Ok(Replaced::No);
        }
        let mut edit = Edit::new(table.segment.purpose, address, &block, gate.floor());
        let pieces = after.and_then(|after| patch::pieces(before, after));
        let undo = match after {
            Some(image) if !rows::update(&mut edit, &mut block, slot, image) => return Ok(Replaced::NoRoom),
            Some(_) => match &pieces {
                Some(pieces) => Undo::Patched { block: address, slot, version, pieces },
                None => Undo::Updated { block: address, slot, version, image: before },
            },
            None => {
                rows::delete(&mut edit, &mut block, slot);
                Undo::Deleted { block: address, slot, version }
            }
        };
        self.log_change(thread, (admission, promise), (table.segment.created, &undo), vec![(edit, block)])?;
        Ok(Replaced::Yes)
    }

    /// Marks the index entries of a row's old image, and adds those of its new one.
    fn update_entries(
        &mut self,
        thread: &mut Thread<'a>,
        table: &Table,
        row: RowId,
        (before, after): (&[u8], Option<&[u8]>),
    ) -> Result<(), EngineError> {
        for tree in &table.indexes {
            let old = self.key_of(tree, before, row)?;
            let new = after.map(|after| self.key_of(tree, after, row)).transpose()?;
            if new.as_ref() == Some(&old) {
                continue;
            }
            self.mark_entry(thread, tree, (&old, row))?;
            if let Some((new, after)) = new.zip(after) {
                let rivals = tree.must_differ(after).then_some(table);
                self.add_entry(thread, (tree, rivals), (&new, row))?;
            }
        }
        Ok(())
    }

    /// Returns the image of a row as a snapshot sees it.
    fn fetch(
        &mut self,
        table: &Table,
        row: RowId,
        snapshot: &Snapshot<'_>,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        if !self.is_block_of(table, row)? {
            return Ok(None);
        }
        self.session.count(Statistic::RowsFetchedByRowId, 1);
        let expected = table.segment.expected(BlockKind::Rows);
        let block = self.reader.get(table.segment.purpose, row.address(), expected)?;
        let Some(stored) = rows::row_at(&block, row.slot()) else { return Ok(None) };
        let Some(image) = self.version_for(snapshot, row, &stored)? else { return Ok(None) };
        drop(block);
        self.whole(table, row, image).map(Some)
    }

    fn commit(&mut self, mut thread: Thread<'a>) -> Result<(), EngineError> {
        let end = self.log_end(&mut thread, RecordKind::Commit)?;
        self.log.commit(self.session, end)?;
        self.active.leave(thread.transaction);
        self.own = 0;
        self.session.count(Statistic::UserCommits, 1);
        Ok(())
    }

    fn roll_back(&mut self, mut thread: Thread<'a>) -> Result<(), EngineError> {
        self.undo_or_stop(&mut thread, Lsn(0))?;
        self.log_end(&mut thread, RecordKind::RolledBack)?;
        self.active.leave(thread.transaction);
        self.own = 0;
        self.session.count(Statistic::UserRollbacks, 1);
        Ok(())
    }

    /// Rolls back a transaction that recovery found.
    pub(super) fn roll_back_found(&mut self, unended: &Unended) -> Result<(), EngineError> {
        // Its room was promised before the crash, and the files still have it.
        let promised = self.log.room.promise_of_the_past();
        self.roll_back(Thread { transaction: unended.transaction, last: unended.last, promised })
    }

    /// Undoes a statement, or fails the log if that is impossible. Half a statement
    /// must not be committed, and other sessions would wait forever for its rows. The
    /// next opening undoes the rest.
    fn undo_or_stop(&mut self, thread: &mut Thread<'a>, stays: Lsn) -> Result<(), EngineError> {
        let undone = self.undo_until(thread, stays);
        if let Err(error) = &undone {
            self.log.fail(format!("transaction {} cannot be undone: {error}", thread.transaction));
        }
        undone
    }

    /// Undoes the records of a transaction, the last first, down to LSN `stays`.
    pub(super) fn undo_until(&mut self, thread: &mut Thread<'a>, stays: Lsn) -> Result<(), EngineError> {
        while thread.last != stays {
            let lsn = thread.last;
            let Some(record) = self.read_log(lsn)? else {
                return Err(EngineError::Log {
                    path: self.instance.home().to_path_buf(),
                    why: format!(
                        "the record of LSN {} of transaction {} is no longer there to be undone; restore the database from a copy",
                        lsn.0, thread.transaction
                    ),
                });
            };
            let (previous, undo) = (record.previous, record.undo.to_vec());
            self.require_older(previous, lsn)?;
            self.undo_record(thread, previous, &undo)?;
            self.session.count(Statistic::UndoApplied, 1);
        }
        Ok(())
    }

    fn undo_record(
        &mut self,
        thread: &mut Thread<'a>,
        previous: Lsn,
        undo: &[u8],
    ) -> Result<(), EngineError> {
        let nonsense = |transaction: u64| EngineError::Log {
            path: self.instance.home().to_path_buf(),
            why: format!(
                "an undo of transaction {transaction} makes no sense; restore the database from a copy"
            ),
        };
        let (segment, undo) = Undo::parse(undo).ok_or_else(|| nonsense(thread.transaction))?;
        let Some((table, tree)) = self.store.segment_of(segment) else {
            // The table was dropped after its transaction's commit could not be made durable.
            thread.last = previous;
            self.active.note(thread.transaction, previous);
            return Ok(());
        };
        if tree.is_some() != undo.is_of_index() {
            return Err(nonsense(thread.transaction));
        }
        let entry = |tree: Option<std::sync::Arc<Tree>>| tree.expect("just seen to be an index");
        match undo {
            Undo::Inserted { block, slots } => {
                let mut is_piece = false;
                self.undo_rows(thread, (&table, block, &slots), previous, |edit, bytes| {
                    is_piece = slots.iter().any(|slot| rows::piece_at(bytes, *slot).is_some());
                    rows::remove(edit, bytes, &slots);
                    true
                })?;
                match is_piece {
                    true => table.segment.add_left(block),
                    false => table.segment.add_to_pool(block),
                }
                Ok(())
            }
            Undo::Updated { block, slot, version, image } => {
                self.undo_rows(thread, (&table, block, &[slot]), previous, |edit, bytes| {
                    rows::restore(edit, bytes, slot, version, image)
                })
            }
            Undo::Patched { block, slot, version, pieces } => {
                self.undo_rows(thread, (&table, block, &[slot]), previous, |edit, bytes| {
                    rows::restore_pieces(edit, bytes, slot, version, pieces)
                })
            }
            Undo::Deleted { block, slot, version } => {
                self.undo_rows(thread, (&table, block, &[slot]), previous, |edit, bytes| {
                    rows::restore(edit, bytes, slot, version, &[])
                })
            }
            Undo::EntryAdded { row, key } => {
                self.undo_entry(thread, &entry(tree), (key, row), (EntryChange::Remove, previous))
            }
            Undo::EntryMarked { row, key } => {
                self.undo_entry(thread, &entry(tree), (key, row), (EntryChange::TakeMarkOff, previous))
            }
            Undo::MarkTakenOff { row, key } => {
                self.undo_entry(thread, &entry(tree), (key, row), (EntryChange::Mark, previous))
            }
        }
    }

    fn undo_rows(
        &mut self,
        thread: &mut Thread<'a>,
        (table, address, slots): (&Table, BlockAddress, &[u16]),
        previous: Lsn,
        undo: impl FnOnce(&mut Edit, &mut [u8]) -> bool,
    ) -> Result<(), EngineError> {
        let tablespace = self.instance.tablespace(table.segment.purpose);
        let corrupt = |what, found, expected| EngineError::CorruptBlock {
            path: tablespace.path(address).to_path_buf(),
            address,
            what,
            found,
            expected,
        };
        if table.segment.index_of(address).is_none() {
            return Err(EngineError::Log {
                path: self.instance.home().to_path_buf(),
                why: format!(
                    "an undo of transaction {} is of {address}, expected a block of table {}; restore the database from a copy",
                    thread.transaction, table.name
                ),
            });
        }
        let gate = self.log.enter();
        let expected = table.segment.expected(BlockKind::Rows);
        debug_assert_eq!(expected.lsns, LsnRange::from(table.segment.created));
        let mut block = self.reader.change(table.segment.purpose, address, expected)?;
        // Otherwise a write of the block was lost, and its contents leave no room for the undo.
        let version_of = |slot: &u16| rows::version_at(&block, *slot);
        if let Some(slot) = slots.iter().find(|slot| version_of(slot) != Some(thread.last)) {
            let found = version_of(slot).map_or("no row".to_string(), |version| version.0.to_string());
            let what = "version of a row that a transaction has changed";
            return Err(corrupt(what, found, thread.last.0.to_string()));
        }
        let mut edit = Edit::new(table.segment.purpose, address, &block, gate.floor());
        if !undo(&mut edit, &mut block) {
            let found = "a row without room for what it was before".to_string();
            return Err(corrupt(
                "what the log would undo in it",
                found,
                "a row that keeps its room".to_string(),
            ));
        }
        self.log_undoing(thread, previous, vec![(edit, block)])
    }
}

/// Outcome of an attempt to replace a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replaced {
    Yes,
    /// The row has changed meanwhile.
    No,
    /// The block has no room for the longer row.
    NoRoom,
}
