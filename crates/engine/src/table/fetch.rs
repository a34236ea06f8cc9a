//! Fetches rows by their ids, many at a time, because an index lists rows in another order than the
//! table stores them.
//!
//! The ids of a batch are sorted by place. Each block is read once, several at a time, and the rows
//! are returned in the order of the request. A row in a scattered block costs a random read; rows
//! that share a block share its read.
//!
//! Chained rows are completed after all others, block by block.
//!
//! Limits: direct reads that bypass the buffer cache, of tables loaded by direct path.

use crate::storage::block::{self, Content};
use crate::storage::control::Table;
use crate::storage::scattered_reader::{Piece, ScatteredOptions, ScatteredReader};
use crate::storage::tablespace::Tablespace;
use crate::table::chain::{Chain, chained_length};
use crate::table::heap;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_types::{RowError, Schema, Value, ValueError, columns};
use plumb_units::{BlockAddress, RowId};

const READS: usize = 32;

/// Values of a row; `None` if it is left out.
type Fetched = Option<Vec<Value>>;

/// A test of a row's image.
pub type RowFilter<'f> = &'f dyn Fn(&[u8]) -> Result<bool, RowError>;

/// Reads rows of a table by row id.
pub struct RowFetcher<'a> {
    blocks: TableBlocks<'a>,
    reader: ScatteredReader<'a>,
}

impl<'a> RowFetcher<'a> {
    /// Creates a fetcher with its own buffers.
    ///
    /// # Errors
    /// If there is no memory, or the files cannot be accessed.
    pub fn new(
        instance: &'a Instance,
        session: &'a Session,
        table: &'a Table,
    ) -> Result<RowFetcher<'a>, EngineError> {
        let tablespace = instance.tablespace(table.tablespace);
        let options = ScatteredOptions {
            piece_bytes: tablespace.block_size.bytes(),
            in_flight: READS,
            event: Event::DirectPathRead,
            stream: IoStream::TableReads,
        };
        let reader = ScatteredReader::new(session, &instance.access, options)?;
        Ok(RowFetcher { blocks: TableBlocks { tablespace, session, table, filter: None }, reader })
    }

    /// Leaves rows out that fail a test of their image.
    #[must_use]
    pub fn filtered(mut self, filter: RowFilter<'a>) -> RowFetcher<'a> {
        self.blocks.filter = Some(filter);
        self
    }

    /// Returns the values of these rows, in this order, without those that fail the filter.
    ///
    /// # Errors
    /// If a block cannot be read, or has no such row.
    pub fn fetch(&mut self, rows: &[RowId]) -> Result<Vec<Vec<Value>>, EngineError> {
        let mut wanted: Vec<(RowId, usize)> = rows.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let by_block: Vec<&[(RowId, usize)]> =
            wanted.chunk_by(|one, two| one.0.address() == two.0.address()).collect();
        let mut found: Vec<Fetched> = vec![None; rows.len()];
        let mut in_pieces = Vec::new();
        let blocks = &self.blocks;
        self.reader.read(
            by_block.len(),
            |number| blocks.piece(by_block[number][0].0.address()),
            |number, block| blocks.take(by_block[number], block, (&mut found, &mut in_pieces)),
        )?;
        for (chain, place) in in_pieces {
            found[place] = self.read_on(chain)?;
        }
        self.blocks.session.count(Statistic::RowsFetchedByRowId, rows.len() as u64);
        Ok(found.into_iter().flatten().collect())
    }

    /// Returns the values of a row of which some blocks are missing.
    fn read_on(&mut self, mut chain: Chain) -> Result<Fetched, EngineError> {
        let blocks = &self.blocks;
        let mut values = None;
        while let Some(address) = chain.next() {
            self.reader.read(
                1,
                |_| blocks.piece(address),
                |_, block| {
                    let content = blocks.verify(address, block)?;
                    blocks.session.count(Statistic::RowPiecesFetched, 1);
                    let whole = chain.go_on(address, content, block)?;
                    values = whole.map(|(row, image)| blocks.values(image, row)).transpose()?;
                    Ok(())
                },
            )?;
        }
        Ok(values.expect("a chain goes on until its row is whole, or fails"))
    }
}

/// The table that is read.
struct TableBlocks<'a> {
    tablespace: &'a Tablespace,
    session: &'a Session,
    table: &'a Table,
    filter: Option<RowFilter<'a>>,
}

impl TableBlocks<'_> {
    fn piece(&self, address: BlockAddress) -> Result<Piece, EngineError> {
        Piece::of_blocks(self.session, self.tablespace, address, 1)
    }

    /// Takes the rows of a block; chained rows go to `in_pieces`.
    fn take(
        &self,
        wanted: &[(RowId, usize)],
        bytes: &[u8],
        (found, in_pieces): (&mut [Fetched], &mut Vec<(Chain, usize)>),
    ) -> Result<(), EngineError> {
        let content = self.verify(wanted[0].0.address(), bytes)?;
        for (row, place) in wanted {
            let image = heap::row_at(bytes, content, row.slot()).ok_or_else(|| {
                let why =
                    "the index names it, and its block has no such row; a check of the table finds what is wrong";
                EngineError::bad_row(*row, why)
            })?;
            match chained_length(image) {
                None => found[*place] = self.values(image, *row)?,
                Some(length) => {
                    let mut chain = Chain::default();
                    chain.begin(image, *row, length);
                    in_pieces.push((chain, *place));
                }
            }
        }
        Ok(())
    }

    /// Returns the values of a row; `None` if it fails the filter.
    fn values(&self, image: &[u8], row: RowId) -> Result<Fetched, EngineError> {
        let holds = self.filter.map_or(Ok(true), |filter| filter(image));
        match holds.map_err(|error| EngineError::bad_row(row, error))? {
            true => values(&self.table.schema, image, row).map(Some),
            false => Ok(None),
        }
    }

    fn verify(&self, address: BlockAddress, bytes: &[u8]) -> Result<Content, EngineError> {
        let content = block::verify(bytes, self.table.expected(), address, self.tablespace.path(address))?;
        self.session.count(Statistic::BlocksVerified, 1);
        Ok(content)
    }
}

/// Decodes the values of a row; other bytes may follow its image.
///
/// # Errors
/// If a column is cut off, or is no value of its type.
pub fn values(schema: &Schema, image: &[u8], row: RowId) -> Result<Vec<Value>, EngineError> {
    let value = |(column, bytes): (&plumb_types::Column, Option<&[u8]>)| {
        Value::from_encoded(&column.column_type, bytes)
    };
    let found: Result<Vec<Value>, ValueError> =
        schema.columns.iter().zip(columns(image)).map(value).collect();
    let found = found.map_err(|error| EngineError::bad_row(row, error))?;
    if found.len() == schema.columns.len() {
        return Ok(found);
    }
    let why = format!("it breaks off after {} of {} columns", found.len(), schema.columns.len());
    Err(EngineError::bad_row(row, why))
}
