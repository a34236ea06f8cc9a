//! Rows by their ids, many at a time: what an index names in its order, the table has elsewhere.
//!
//! How: the ids of a batch are sorted by place, each block is read once, several at a time, and rows are handed out
//! in the order in which they were asked for. A row of 8K blocks that lie anywhere costs a random read; of blocks that several
//! rows of the batch share, a part of one.
//!
//! Rows in pieces are read on when all others are there, block after block.
//!
//! Limits: direct reads past the buffer cache, of tables that were loaded by direct path.

use crate::storage::block::{self, Content};
use crate::storage::control::Table;
use crate::table::chain::{Chain, chained_length};
use crate::table::heap;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request};
use plumb_types::{Schema, Value, ValueError, columns};
use plumb_units::{BlockAddress, RowId};
use std::sync::Arc;

/// Reads in flight.
const READS: usize = 32;

/// Reads rows of a table.
pub struct RowFetcher<'a> {
    instance: &'a Instance,
    session: &'a Session,
    table: &'a Table,
    channel: Channel,
    free: Vec<IoBuffer>,
}

impl<'a> RowFetcher<'a> {
    /// A fetcher with buffers of its own.
    ///
    /// # Errors
    /// When there is no memory, or no way to the files.
    pub fn new(
        instance: &'a Instance,
        session: &'a Session,
        table: &'a Table,
    ) -> Result<RowFetcher<'a>, EngineError> {
        let block_bytes = instance.tablespace(table.tablespace).block_size.bytes();
        let (arena, free) = Arena::buffers(block_bytes, READS)?;
        let channel = instance.access.method.channel(&[&arena])?;
        Ok(RowFetcher { instance, session, table, channel, free })
    }

    /// The values of these rows, in this order.
    ///
    /// # Errors
    /// When a block cannot be read or has no such row.
    pub fn fetch(&mut self, rows: &[RowId]) -> Result<Vec<Vec<Value>>, EngineError> {
        let mut wanted: Vec<(RowId, usize)> = rows.iter().copied().zip(0..).collect();
        wanted.sort_unstable();
        let blocks: Vec<&[(RowId, usize)]> =
            wanted.chunk_by(|one, two| one.0.address() == two.0.address()).collect();
        let mut found: Vec<Vec<Value>> = vec![Vec::new(); rows.len()];
        let mut in_pieces = Vec::new();
        let mut next = 0;
        while next < blocks.len() || self.channel.outstanding() > 0 {
            while next < blocks.len()
                && let Some(buffer) = self.free.pop()
            {
                self.ask(blocks[next][0].0.address(), buffer, next as u64)?;
                next += 1;
            }
            self.channel.flush(self.session)?;
            let completion = self.channel.wait(self.session, Event::DirectPathRead)?;
            let wanted = blocks[completion.tag as usize];
            self.take(wanted, &completion.buffer, (&mut found, &mut in_pieces))?;
            self.free.push(completion.buffer);
        }
        for (chain, place) in in_pieces {
            found[place] = self.read_on(chain)?;
        }
        self.session.count(Statistic::RowsFetchedByRowId, rows.len() as u64);
        Ok(found)
    }

    fn ask(&mut self, address: BlockAddress, buffer: IoBuffer, tag: u64) -> Result<(), EngineError> {
        let tablespace = self.instance.tablespace(self.table.tablespace);
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(&tablespace.file(address.file)?.file),
            offset: address.block.byte_offset(tablespace.block_size),
            range: 0..buffer.len(),
            buffer,
            event: Event::DirectPathRead,
            stream: IoStream::TableReads,
            tag,
        };
        self.channel.submit(self.session, request)?;
        self.session.count(Statistic::PhysicalReadBlocks, 1);
        self.session.count(Statistic::PhysicalReadsDirect, 1);
        Ok(())
    }

    /// Takes the rows of a block.
    fn take(
        &self,
        wanted: &[(RowId, usize)],
        bytes: &[u8],
        (found, in_pieces): (&mut [Vec<Value>], &mut Vec<(Chain, usize)>),
    ) -> Result<(), EngineError> {
        let content = self.verify(wanted[0].0.address(), bytes)?;
        for (row, place) in wanted {
            let image = heap::row_at(bytes, content, row.slot()).ok_or_else(|| EngineError::BadRow {
                row: *row,
                why: "the index names it, and its block has no such row; `plumb check` finds what is wrong"
                    .to_string(),
            })?;
            match chained_length(image) {
                None => found[*place] = values(&self.table.schema, image, *row)?,
                Some(length) => {
                    let mut chain = Chain::default();
                    chain.begin(image, *row, length);
                    in_pieces.push((chain, *place));
                }
            }
        }
        Ok(())
    }

    /// The values of a row of which some blocks are missing.
    fn read_on(&mut self, mut chain: Chain) -> Result<Vec<Value>, EngineError> {
        while let Some(address) = chain.next() {
            let buffer = self.free.pop().expect("nothing is in flight");
            self.ask(address, buffer, 0)?;
            self.channel.flush(self.session)?;
            let completion = self.channel.wait(self.session, Event::DirectPathRead)?;
            let content = self.verify(address, &completion.buffer)?;
            let whole = chain.go_on(address, content, &completion.buffer)?;
            let values = whole.map(|(row, image)| values(&self.table.schema, image, row)).transpose()?;
            self.free.push(completion.buffer);
            if let Some(values) = values {
                return Ok(values);
            }
        }
        unreachable!("a chain goes on until its row is whole, or fails")
    }

    fn verify(&self, address: BlockAddress, bytes: &[u8]) -> Result<Content, EngineError> {
        let path = self.instance.tablespace(self.table.tablespace).path(address);
        let content = block::verify(bytes, self.table.expected(), address, path)?;
        self.session.count(Statistic::BlocksVerified, 1);
        Ok(content)
    }
}

/// The values of a row of this schema; its image may go on behind it.
///
/// # Errors
/// When a column breaks off, or is no value of its type.
pub fn values(schema: &Schema, image: &[u8], row: RowId) -> Result<Vec<Value>, EngineError> {
    let value = |(column, bytes): (&plumb_types::Column, Option<&[u8]>)| {
        Value::from_encoded(&column.column_type, bytes)
    };
    let found: Result<Vec<Value>, ValueError> =
        schema.columns.iter().zip(columns(image)).map(value).collect();
    let found = found.map_err(|error| EngineError::BadRow { row, why: error.to_string() })?;
    if found.len() == schema.columns.len() {
        return Ok(found);
    }
    let why = format!("it breaks off after {} of {} columns", found.len(), schema.columns.len());
    Err(EngineError::BadRow { row, why })
}

impl Drop for RowFetcher<'_> {
    fn drop(&mut self) {
        self.channel.abandon(self.session, Event::DirectPathRead);
    }
}
