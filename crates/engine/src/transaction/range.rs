//! Many rows at once: those between two keys of an index, and all of a table.
//!
//! A range reads its entries first and then their rows, in the order of keys. With
//! `db_block_prefetch_limit` the blocks of so many rows are asked for together, those that are
//! missing in flight at once (`db file parallel read`); without it each is read when it is its
//! row's turn (`db file sequential read`), which is what a test of single reads wants. A scan reads
//! `db_file_multiblock_read_count` adjacent blocks by one request (`db file scattered read`), and
//! its blocks are the first to leave the cache.
//!
//! Rows are shown as images, without a copy where nobody is changing them: taking one apart costs
//! more than finding it.

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

/// Entries of an index, in order: their keys behind each other, and where each ends.
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
    /// Shows the rows whose keys lie between two, the first included and the second not, in the
    /// order of keys: row id and image. Gives how many there were. An image lies in a block that is
    /// pinned meanwhile: `visit` changes nothing.
    ///
    /// # Errors
    /// As [`Transaction::get`], or what `visit` gives.
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
    /// Changes the rows of a table whose keys lie between two, the first included and the second
    /// not: one statement, all of it or nothing. `change` gets the place of a row among them, from
    /// 0, and its columns, as [`Transaction::update`] gives them, and leaves the key as it is.
    /// Gives how many there were. They are those that were committed when the statement began, or
    /// its transaction's; of one that another transaction is changing its end is waited for, and if
    /// it has gone or left the range then, the statement begins anew.
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

/// The rows whose keys lie between two, the first included and the second not.
struct Range<'r> {
    table: &'r Table,
    tree: &'r Tree,
    from: &'r [u8],
    to: &'r [u8],
}

impl<'a> Worker<'a> {
    /// Changes the rows of a range as they are seen now. `None` when one of them has gone, or has
    /// left the range, while its holder was waited for: where it went cannot be told from a
    /// snapshot taken before, so the statement begins anew.
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

/// Rows in pieces whose heads a scan has found.
pub(super) type Heads = Vec<(RowId, Vec<u8>)>;

/// What is called with each row.
pub(super) type Visit<'v> = &'v mut dyn FnMut(RowId, &[u8]) -> Result<(), EngineError>;

impl<'a> Worker<'a> {
    /// The entries from one key to another, marked ones too, of rows that are gone or have another
    /// key now: an older version may be seen.
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

    /// Has the blocks of the next rows read at once, when that is due at this place.
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

    /// Shows the row of an entry, if the snapshot sees one there that has the entry's key.
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
        // The entry may be that of another version of the row.
        if own != key {
            return Ok(false);
        }
        visit(row, &image)?;
        Ok(true)
    }

    /// The image of a row as a snapshot sees it: as it lies in the block, where nobody has changed
    /// it since. Without a snapshot it is as it lies there, for who has the table for himself: all
    /// that others did to it has ended, and what the log had of that may be gone.
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

    /// Shows all rows of a table as a snapshot sees them, in the order of blocks, of a read those
    /// in pieces last; without one as they are ([`Worker::seen`]). `unpinned` is called behind each
    /// read, when no block of it is pinned.
    pub(super) fn scan_rows(
        &mut self,
        table: &Table,
        snapshot: Option<&Snapshot<'_>>,
        (visit, unpinned): (Visit<'_>, &mut dyn FnMut() -> Result<(), EngineError>),
    ) -> Result<(), EngineError> {
        self.scan_blocks(table, |worker, blocks| {
            let mut heads = Heads::new();
            for block in blocks {
                worker.show_block(&block, snapshot, (&mut *visit, &mut heads))?;
            }
            for (row, head) in heads {
                visit(row, &worker.assemble(table, row, &head)?.image)?;
            }
            unpinned()
        })
    }

    /// Shows the rows of a block; of those in pieces it only keeps the heads.
    pub(super) fn show_block(
        &mut self,
        block: &PinnedBlock<'_>,
        snapshot: Option<&Snapshot<'_>>,
        (visit, heads): (Visit<'_>, &mut Heads),
    ) -> Result<(), EngineError> {
        for slot in 0..rows::slot_count(block) {
            let Some(stored) = rows::row_at(block, slot) else { continue };
            let row = RowId::new(block.address(), slot);
            let Some(image) = self.seen(snapshot, row, &stored)? else { continue };
            self.session.count(Statistic::TableScanRows, 1);
            match is_head(&image) {
                true => heads.push((row, image.into_owned())),
                false => visit(row, &image)?,
            }
        }
        Ok(())
    }

    /// Shows the blocks of a table in their order, those of a read together.
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
