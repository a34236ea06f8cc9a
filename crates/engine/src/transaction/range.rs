//! Many rows at once: those between two keys of an index, and all rows of a table.
//!
//! A range reads its entries first, and then their rows in key order. With
//! `db_block_prefetch_limit`, the blocks of that many rows are requested together, and the missing
//! ones are in flight at once (`db file parallel read`). Without it each block is read when its row
//! is reached (`db file sequential read`), which a test of single reads requires. A scan reads
//! `db_file_multiblock_read_count` adjacent blocks by one request (`db file scattered read`), and
//! its blocks leave the cache first.
//!
//! Rows are passed as images, without a copy if no transaction is changing them, because decoding a
//! row costs more than finding it.

use super::connection::key_of;
use super::row_pieces::is_head;
use super::rows::{self, StoredRow};
use super::tree::Tree;
use super::worker::{Thread, Worker};
use super::{Snapshot, Table, Transaction};
use crate::EngineError;
use crate::cache::PinnedBlock;
use crate::storage::block::BlockKind;
use crate::storage::tablespace::Purpose;
use plumb_events::Statistic;
use plumb_types::Value;
use plumb_units::{BlockAddress, RowId};
use std::borrow::Cow;

/// Entries of an index in order: their concatenated keys, and the end of each.
#[derive(Debug, Default)]
struct Entries {
    keys: Vec<u8>,
    ends: Vec<usize>,
    rows: Vec<RowId>,
}

impl Entries {
    fn key(&self, index: usize) -> &[u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.keys[begin..self.ends[index]]
    }
}

impl Transaction<'_, '_> {
    /// Visits the rows with keys from the first (inclusive) to the second (exclusive), in
    /// key order: row id and image. Returns their number. Images lie in pinned blocks, so
    /// `visit` must not change rows.
    ///
    /// # Errors
    /// As [`Transaction::get`], or the error of `visit`.
    pub fn range(
        &mut self,
        index: &str,
        (from, to): (&[Value], &[Value]),
        mut visit: impl FnMut(RowId, &[u8]) -> Result<(), EngineError>,
    ) -> Result<u64, EngineError> {
        let (table, tree) = self.connection.worker.store.index(index)?;
        let snapshot = self.snapshot()?;
        let bounds = (tree.key_of_values(&table.schema, from)?, tree.key_of_values(&table.schema, to)?);
        let worker = &mut self.connection.worker;
        let entries = worker.entries_between(&tree, (&bounds.0, &bounds.1))?;
        let ahead = worker.instance.settings.cache.db_block_prefetch_limit;
        let (mut count, mut own) = (0, Vec::new());
        for (index, row) in entries.rows.iter().enumerate() {
            worker.prefetch_rows(&table, &entries.rows[index..], (index, ahead))?;
            count += u64::from(worker.show_entry(
                (&table, &tree),
                (entries.key(index), *row),
                &snapshot,
                (&mut own, &mut visit),
            )?);
        }
        Ok(count)
    }
}

impl Transaction<'_, '_> {
    /// Updates the rows with keys from the first (inclusive) to the second (exclusive), in one
    /// statement: all or none. Returns their number. `change` gets the position of a row in the
    /// range, from 0, and its columns, as in [`Transaction::update`]; it must not change the key.
    ///
    /// The rows are those committed when the statement began, or changed by its own transaction. If
    /// another transaction is changing a row, the statement waits for its end. If the row is
    /// deleted or leaves the range then, the statement starts over.
    ///
    /// # Errors
    /// As [`Transaction::update`].
    pub fn update_range(
        &mut self,
        (table, index): (&str, &str),
        (from, to): (&[Value], &[Value]),
        change: impl Fn(u64, &mut [Value]),
    ) -> Result<u64, EngineError> {
        let (of_index, tree) = self.connection.worker.store.index(index)?;
        let bounds = (tree.key_of_values(&of_index.schema, from)?, tree.key_of_values(&of_index.schema, to)?);
        drop(of_index);
        let table = self.connection.worker.store.table(table)?;
        let range = Range { table: &table, tree: &tree, from: &bounds.0, to: &bounds.1 };
        self.statement(&table, |worker, thread| {
            let before = thread.last;
            loop {
                if let Some(count) = worker.update_range(thread, &range, &change)? {
                    return Ok(count);
                }
                worker.undo_until(thread, before)?;
            }
        })
    }
}

/// The rows with keys from the first (inclusive) to the second (exclusive).
struct Range<'r> {
    table: &'r Table,
    tree: &'r Tree,
    from: &'r [u8],
    to: &'r [u8],
}

impl<'a> Worker<'a> {
    /// Updates the rows of a range as a new snapshot sees them. `None` if a row was deleted or
    /// left the range while its holder was waited for. The snapshot cannot tell where it went,
    /// so the statement starts over.
    fn update_range(
        &mut self,
        thread: &mut Thread<'a>,
        range: &Range<'_>,
        change: &dyn Fn(u64, &mut [Value]),
    ) -> Result<Option<u64>, EngineError> {
        let Range { table, tree, from, to } = *range;
        let snapshot = self.active.snapshot(thread.transaction, || self.log.end());
        let entries = self.entries_between(tree, (from, to))?;
        let ahead = self.instance.settings.cache.db_block_prefetch_limit;
        let (mut count, mut own) = (0, Vec::new());
        for (place, row) in entries.rows.iter().enumerate() {
            self.prefetch_rows(table, &entries.rows[place..], (place, ahead))?;
            let entry = (entries.key(place), *row);
            if !self.show_entry((table, tree), entry, &snapshot, (&mut own, &mut |_, _| Ok(())))? {
                continue;
            }
            let block_size = self.block_bytes_of(Purpose::Indx);
            let is_meant = |image: &[u8]| {
                key_of(tree, (image, *row), block_size, Vec::new())
                    .map(|key| from <= &key[..] && &key[..] < to)
            };
            let changed = self.update_row(thread, (table, *row), &is_meant, &|values| change(count, values));
            match changed {
                Ok(Some(_)) => count += 1,
                Ok(None) | Err(EngineError::RowGone { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        self.session.count(Statistic::RowsUpdated, count);
        Ok(Some(count))
    }
}

/// Heads of chained rows that a scan has found.
pub(super) type Heads = Vec<(RowId, Vec<u8>)>;

pub(super) type Visit<'v> = &'v mut dyn FnMut(RowId, &[u8]) -> Result<(), EngineError>;

impl<'a> Worker<'a> {
    /// Returns the entries between two keys. Marked ones are included, because the snapshot may see
    /// an older version of a row that is deleted or has another key now.
    fn entries_between(&mut self, tree: &Tree, (from, to): (&[u8], &[u8])) -> Result<Entries, EngineError> {
        let mut entries = Entries::default();
        self.walk(tree, from, |entry| {
            let is_below = entry.key < to;
            if is_below {
                entries.keys.extend_from_slice(entry.key);
                entries.ends.push(entries.keys.len());
                entries.rows.push(entry.row_id());
            }
            is_below
        })?;
        Ok(entries)
    }

    /// Reads the blocks of the next `ahead` rows at once, if `place` is a multiple of `ahead`.
    fn prefetch_rows(
        &mut self,
        table: &Table,
        next: &[RowId],
        (place, ahead): (usize, usize),
    ) -> Result<(), EngineError> {
        if ahead < 2 || place % ahead != 0 {
            return Ok(());
        }
        let blocks: Vec<BlockAddress> = next.iter().take(ahead).map(|row| row.address()).collect();
        self.reader.prefetch(table.segment.purpose, &blocks, table.segment.expected(BlockKind::Rows))
    }

    /// Visits the row of an entry, if the snapshot sees a version with the entry's
    /// key. Returns if it did.
    fn show_entry(
        &mut self,
        (table, tree): (&Table, &Tree),
        (key, row): (&[u8], RowId),
        snapshot: &Snapshot<'_>,
        (own, visit): (&mut Vec<u8>, Visit<'_>),
    ) -> Result<bool, EngineError> {
        self.session.count(Statistic::RowsFetchedByRowId, 1);
        let expected = table.segment.expected(BlockKind::Rows);
        let block = self.reader.get(table.segment.purpose, row.address(), expected)?;
        let Some(stored) = rows::row_at(&block, row.slot()) else { return Ok(false) };
        let Some(mut image) = self.seen(Some(snapshot), row, &stored)? else { return Ok(false) };
        if is_head(&image) {
            let head = image.into_owned();
            drop(block);
            image = Cow::Owned(self.assemble(table, row, &head)?.image);
        }
        let built = tree.key.build(&image, own);
        built.map_err(|error| EngineError::bad_row(row, error))?;
        // The entry may belong to another version of the row.
        if own != key {
            return Ok(false);
        }
        visit(row, &image)?;
        Ok(true)
    }

    /// Returns the image of a row as a snapshot sees it, borrowed from the block if no later
    /// change exists. Without a snapshot, returns the row as stored. That is for a session
    /// that holds the table exclusively: all other transactions have ended, and the log may
    /// no longer hold their records.
    fn seen<'r>(
        &mut self,
        snapshot: Option<&Snapshot<'_>>,
        row: RowId,
        stored: &StoredRow<'r>,
    ) -> Result<Option<Cow<'r, [u8]>>, EngineError> {
        match snapshot {
            Some(snapshot) if stored.deleted || stored.version >= snapshot.horizon() => {
                Ok(self.version_for(snapshot, row, stored)?.map(Cow::Owned))
            }
            None if stored.deleted => Ok(None),
            _ => {
                let length = rows::image_length(stored.image).unwrap_or(stored.image.len());
                Ok(Some(Cow::Borrowed(&stored.image[..length])))
            }
        }
    }

    /// Visits all rows of a table as a snapshot sees them, in block order; chained rows of one read
    /// come last. Without a snapshot, visits them as stored ([`Worker::seen`]). Calls `unpinned`
    /// after each read, when none of its blocks is pinned.
    pub(super) fn scan_rows(
        &mut self,
        table: &Table,
        snapshot: Option<&Snapshot<'_>>,
        (visit, unpinned): (Visit<'_>, &mut dyn FnMut() -> Result<(), EngineError>),
    ) -> Result<(), EngineError> {
        self.scan_blocks(table, |worker, blocks| {
            let mut heads = Heads::new();
            for block in blocks {
                worker.show_block((block.address(), &block), snapshot, (&mut *visit, &mut heads))?;
            }
            for (row, head) in heads {
                visit(row, &worker.assemble(table, row, &head)?.image)?;
            }
            unpinned()
        })
    }

    /// Visits the rows of a block, but collects the heads of chained rows in `heads`.
    pub(super) fn show_block(
        &mut self,
        (address, block): (BlockAddress, &[u8]),
        snapshot: Option<&Snapshot<'_>>,
        (visit, heads): (Visit<'_>, &mut Heads),
    ) -> Result<(), EngineError> {
        for slot in 0..rows::slot_count(block) {
            let Some(stored) = rows::row_at(block, slot) else { continue };
            let row = RowId::new(address, slot);
            let Some(image) = self.seen(snapshot, row, &stored)? else { continue };
            self.session.count(Statistic::TableScanRows, 1);
            match is_head(&image) {
                true => heads.push((row, image.into_owned())),
                false => visit(row, &image)?,
            }
        }
        Ok(())
    }

    /// Passes the blocks of a table to `show` in order, those of one read together.
    pub(super) fn scan_blocks(
        &mut self,
        table: &Table,
        mut show: impl FnMut(&mut Self, Vec<PinnedBlock<'a>>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let expected = table.segment.expected(BlockKind::Rows);
        let at_once = self.instance.settings.io.db_file_multiblock_read_count;
        let mut left = self.used_blocks(&table.segment)?;
        for (index, piece) in table.segment.extents().into_iter().enumerate() {
            let end = piece.extent.blocks.min(left);
            // The first block of the first extent is the segment's header.
            let mut next = u32::from(index == 0).min(end);
            while next < end {
                let count = at_once.min(end - next);
                let blocks = self.reader.read_multiblock(
                    table.segment.purpose,
                    piece.extent.address(next),
                    count,
                    expected,
                )?;
                next += blocks.len() as u32;
                self.session.count(Statistic::TableScanBlocks, blocks.len() as u64);
                show(self, blocks)?;
            }
            left -= end;
        }
        Ok(())
    }
}
