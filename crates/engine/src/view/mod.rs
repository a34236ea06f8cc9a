//! One view of a table, whichever way its rows were written, and work that reads whole tables.
//!
//! ```text
//! direct path load   Table blocks   ──┐
//!                                     ├── TableView ── rows as images ──> sums, copies, exports
//! transactions       Rows blocks    ──┘
//! ```
//! Both kinds are read the same way ([`crate::table::scan`]): granules of the table's extents,
//! large direct requests, several in flight. They differ in finding the rows of a block. A loaded
//! block has its rows in sequence and never changes. A block of transactions has versions, and a
//! statement sees one of each row ([`crate::transaction`]).
//!
//! [`predicate`] tests rows, [`totals`] counts and adds them, and [`copy`] loads them into another
//! table.
//!
//! Rejected: a scan of tables that transactions change through the buffer cache, because a table
//! larger than the cache would push all other blocks out of it, and one thread would read it.
//!
//! Limits: rows come in no order. A view of a loaded table does not keep it from being dropped;
//! [`TableView::require_unchanged`] finds that out.

pub mod copy;
pub mod predicate;
pub mod totals;

use crate::parallel::servers::Operation;
use crate::storage::block::Expected;
use crate::storage::control::{SegmentExtent, Table, listed, stored_name};
use crate::storage::tablespace::Purpose;
use crate::table::scan::{self, Granules};
use crate::transaction::{Statement, Transactions};
use crate::{EngineError, Instance};
use plumb_events::Session;
use plumb_types::Schema;
use plumb_units::RowId;

/// A table to read: its columns, its blocks, and the way to find rows in them.
#[derive(Debug)]
pub struct TableView<'t> {
    instance: &'t Instance,
    rows: Rows<'t>,
}

#[derive(Debug)]
enum Rows<'t> {
    Loaded(Box<Table>),
    Live(Statement<'t>),
}

/// A part of a table's extents, for one of several instances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtentShare {
    /// Number of the part, from 0.
    pub part: usize,
    /// Number of parts of the table.
    pub of: usize,
}

impl ExtentShare {
    /// The whole table as one part.
    pub const ALL: ExtentShare = ExtentShare { part: 0, of: 1 };

    /// Returns this part of a list: parts differ by one element at most, and may be empty.
    fn of_extents(self, extents: &[SegmentExtent]) -> &[SegmentExtent] {
        assert!(self.part < self.of, "part {} of {}", self.part, self.of);
        let end = |part: usize| extents.len() * part / self.of;
        &extents[end(self.part)..end(self.part + 1)]
    }
}

impl<'t> TableView<'t> {
    /// Opens a table. One that transactions change is seen as of now, without uncommitted changes.
    ///
    /// # Errors
    /// If there is no such table, or it is one that transactions change and none are given.
    pub fn open(
        instance: &'t Instance,
        transactions: Option<&'t Transactions<'_>>,
        session: &Session,
        name: &str,
    ) -> Result<TableView<'t>, EngineError> {
        let stored = stored_name(name);
        let (loaded, live, known) = {
            let catalog = instance.catalog();
            let loaded = catalog.tables.iter().find(|table| table.name == stored).cloned();
            let live = catalog.live_tables.iter().any(|table| table.name == stored);
            let tables = catalog.tables.iter().map(|table| table.name.as_str());
            let all = tables.chain(catalog.live_tables.iter().map(|table| table.name.as_str()));
            (loaded, live, listed(all))
        };
        let rows = match (loaded, live, transactions) {
            (Some(table), ..) => Rows::Loaded(Box::new(table)),
            (None, true, Some(transactions)) => Rows::Live(transactions.statement(session, &stored)?),
            (None, true, None) => {
                return Err(EngineError::Contradiction {
                    first: format!("table {stored}, which transactions change"),
                    second: "a database opened without its log".to_string(),
                    why: "its committed rows may be in the log alone; open the transactions first"
                        .to_string(),
                });
            }
            (None, false, _) => return Err(EngineError::Missing { kind: "table", name: stored, known }),
        };
        Ok(TableView { instance, rows })
    }

    /// Returns the name of the table in its stored form.
    pub fn name(&self) -> &str {
        match &self.rows {
            Rows::Loaded(table) => &table.name,
            Rows::Live(statement) => statement.name(),
        }
    }

    /// Returns the columns of the table.
    pub fn schema(&self) -> &Schema {
        match &self.rows {
            Rows::Loaded(table) => &table.schema,
            Rows::Live(statement) => statement.schema(),
        }
    }

    /// Returns the tablespace of the table.
    pub fn tablespace(&self) -> Purpose {
        match &self.rows {
            Rows::Loaded(table) => table.tablespace,
            Rows::Live(statement) => statement.tablespace(),
        }
    }

    /// Returns the extents with rows.
    pub fn extents(&self) -> &[SegmentExtent] {
        match &self.rows {
            Rows::Loaded(table) => &table.extents,
            Rows::Live(statement) => statement.pieces(),
        }
    }

    /// Returns the extents of a part of the table.
    pub fn extents_of(&self, share: ExtentShare) -> &[SegmentExtent] {
        share.of_extents(self.extents())
    }

    /// Returns the number of blocks that a scan of this part reads.
    pub fn block_count(&self, share: ExtentShare) -> u64 {
        self.extents_of(share).iter().map(|piece| u64::from(piece.used)).sum()
    }

    /// Returns the database of the table.
    pub fn instance(&self) -> &'t Instance {
        self.instance
    }

    fn expected(&self) -> Expected {
        match &self.rows {
            Rows::Loaded(table) => table.expected(),
            Rows::Live(statement) => statement.expected(),
        }
    }

    /// Creates the granules of a part of the table, which the servers of a scan take.
    pub fn granules(&self, share: ExtentShare) -> Granules<'_> {
        Granules::of(self.extents_of(share), self.tablespace(), self.expected())
    }

    /// Visits every row of the granules that this server takes, by direct reads.
    ///
    /// # Errors
    /// If a block is corrupt, a read fails, or `visit` fails.
    pub fn scan(
        &self,
        session: &Session,
        operation: &Operation,
        granules: &Granules<'_>,
        mut visit: impl FnMut(&[u8], RowId) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        match &self.rows {
            Rows::Loaded(_) => scan::scan(self.instance, session, operation, granules, visit),
            Rows::Live(statement) => {
                let mut reader = statement.reader(session);
                let mut show = |row: RowId, image: &[u8]| visit(image, row);
                scan::scan_blocks(self.instance, session, operation, granules, |address, block| {
                    // The reader counts the rows, because a block may show none.
                    reader.visit(address, block, &mut show).map(|()| 0)
                })
            }
        }
    }

    /// Fails if the table was changed or dropped since the view was opened. A table of transactions
    /// cannot be dropped while a statement reads it.
    ///
    /// # Errors
    /// [`EngineError::TableChanged`].
    pub fn require_unchanged(&self) -> Result<(), EngineError> {
        let Rows::Loaded(seen) = &self.rows else { return Ok(()) };
        let catalog = self.instance.catalog();
        match catalog.tables.iter().any(|table| table.is_same_data(seen)) {
            true => Ok(()),
            false => Err(EngineError::TableChanged { table: seen.name.clone() }),
        }
    }
}

/// Returns the positions of these columns, which are named in any case.
///
/// # Errors
/// If there is no column of one of these names.
pub fn positions<'n>(
    schema: &Schema,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Vec<usize>, EngineError> {
    names.into_iter().map(|name| position(schema, name)).collect()
}

/// Returns the position of a column.
pub(crate) fn position(schema: &Schema, name: &str) -> Result<usize, EngineError> {
    schema.position(name).ok_or_else(|| EngineError::Missing {
        kind: "column",
        name: name.to_string(),
        known: listed(schema.columns.iter().map(|column| column.name.as_str())),
    })
}

#[cfg(test)]
mod tests {
    use super::ExtentShare;
    use crate::storage::control::SegmentExtent;
    use crate::storage::tablespace::Extent;

    #[test]
    fn parts_cover_every_extent_once_even_if_some_are_empty() {
        for (count, of) in [(0, 1), (3, 1), (7, 3), (2, 5), (0, 4)] {
            let extent = |number: u32| SegmentExtent {
                extent: Extent { file: 1, block: number * 8, blocks: 8 },
                used: 8,
            };
            let extents: Vec<SegmentExtent> = (0..count).map(extent).collect();
            let parts = (0..of).flat_map(|part| ExtentShare { part, of }.of_extents(&extents)).copied();
            assert_eq!(parts.collect::<Vec<_>>(), extents, "{count} extents in {of} parts");
        }
    }
}
