//! A table that transactions change, as one statement sees it, for readers that bypass the cache.
//!
//! ```text
//! snapshot ──> number of blocks in use ──> checkpoint ──> direct reads
//! ```
//! The checkpoint writes every block with a change from before the snapshot, so the disk has all
//! that the statement may see. Versions that are newer are undone as in any statement
//! ([`Worker::seen`]). Blocks that come into use later hold only newer rows.
//!
//! A block that is being written during its read may arrive torn. It is then read through the
//! cache, which has the block that is being written.

use super::active::Snapshot;
use super::range::{Heads, Visit};
use super::worker::Worker;
use super::{Table, Transactions};
use crate::EngineError;
use crate::storage::block::{self, BlockKind, Expected};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Purpose;
use plumb_events::Session;
use plumb_types::Schema;
use plumb_units::BlockAddress;
use std::sync::Arc;

/// A table as of one moment.
#[derive(Debug)]
pub(crate) struct Statement<'t> {
    store: &'t Transactions<'t>,
    table: Arc<Table>,
    snapshot: Snapshot<'t>,
    pieces: Vec<SegmentExtent>,
}

impl<'i> Transactions<'i> {
    /// Begins a statement that reads a whole table directly, and makes the blocks on disk new
    /// enough for it.
    ///
    /// # Errors
    /// If there is no such table, or a block or the log cannot be written.
    pub(crate) fn statement<'t>(
        &'t self,
        session: &Session,
        table: &str,
    ) -> Result<Statement<'t>, EngineError> {
        self.log.check()?;
        let table = self.table(table)?;
        let snapshot = self.active.snapshot(0, || self.log.end());
        let mut worker = Worker::new(self, session);
        let mut left = worker.used_blocks(&table.segment)?;
        drop(worker);
        let mut pieces = table.segment.extents();
        for (index, piece) in pieces.iter_mut().enumerate() {
            let end = piece.extent.blocks.min(left);
            // The first block of the first extent is the segment's header.
            let skipped = u32::from(index == 0).min(end);
            piece.extent.block += skipped;
            piece.extent.blocks -= skipped;
            piece.used = end - skipped;
            left -= end;
        }
        pieces.retain(|piece| piece.used > 0);
        self.checkpoint(session)?;
        Ok(Statement { store: self, table, snapshot, pieces })
    }
}

impl Statement<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.table.name
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.table.schema
    }

    pub(crate) fn tablespace(&self) -> Purpose {
        self.table.segment.purpose
    }

    /// Returns the extents of blocks with rows.
    pub(crate) fn pieces(&self) -> &[SegmentExtent] {
        &self.pieces
    }

    pub(crate) fn expected(&self) -> Expected {
        self.table.segment.expected(BlockKind::Rows)
    }

    /// Creates the reader of one server.
    pub(crate) fn reader<'a>(&'a self, session: &'a Session) -> StatementReader<'a> {
        StatementReader { statement: self, worker: Worker::new(self.store, session) }
    }
}

/// Finds the rows in blocks that were read directly.
pub(crate) struct StatementReader<'a> {
    statement: &'a Statement<'a>,
    worker: Worker<'a>,
}

impl StatementReader<'_> {
    /// Visits the rows of a block that the statement sees, the chained ones last.
    pub(crate) fn visit(
        &mut self,
        address: BlockAddress,
        read: &[u8],
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        let Statement { table, snapshot, .. } = self.statement;
        let (purpose, expected) = (table.segment.purpose, self.statement.expected());
        let path = self.worker.instance.tablespace(purpose).path(address);
        let mut heads = Heads::new();
        match block::verify(read, expected, address, path) {
            Ok(_) => {
                self.worker.show_block((address, read), Some(snapshot), (&mut *visit, &mut heads))?;
            }
            Err(_) => {
                let block = self.worker.reader.get(purpose, address, expected)?;
                self.worker.show_block((address, &block), Some(snapshot), (&mut *visit, &mut heads))?;
            }
        }
        for (row, head) in heads {
            visit(row, &self.worker.assemble(table, row, &head)?.image)?;
        }
        Ok(())
    }
}
