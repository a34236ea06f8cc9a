//! Table scans that bypass the buffer cache or use it.
//!
//! The table is cut into granules (its extents). Scan servers take the next granule from a shared
//! counter, so a server on a slow disk takes fewer and all finish together. Within a granule,
//! several multiblock reads are in flight. Every block is verified before its rows are read. A
//! chained row is in one extent, so one server reads it.
//!
//! A serial scan with `serial_direct_read=false` is conventional: multiblock reads into the buffer
//! cache (`db file scattered read`), one at a time.

use crate::cache::CacheReader;
use crate::parallel::servers::Operation;
use crate::storage::block::{self, Expected};
use crate::storage::control::{SegmentExtent, Table};
use crate::storage::reader::{ReaderOptions, SegmentReader};
use crate::storage::tablespace::Purpose;
use crate::table::chain::Chain;
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_units::{BlockAddress, RowId};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Granules of a table, which scan servers take in turn.
#[derive(Debug)]
pub struct Granules<'t> {
    extents: &'t [SegmentExtent],
    tablespace: Purpose,
    expected: Expected,
    next: AtomicUsize,
}

impl<'t> Granules<'t> {
    /// Creates the granules of a whole table.
    #[must_use]
    pub fn new(table: &'t Table) -> Granules<'t> {
        Granules::of(&table.extents, table.tablespace, table.expected())
    }

    /// Creates the granules of these extents, whose blocks are of one kind.
    pub(crate) fn of(extents: &'t [SegmentExtent], tablespace: Purpose, expected: Expected) -> Granules<'t> {
        Granules { extents, tablespace, expected, next: AtomicUsize::new(0) }
    }

    fn take(&self) -> Option<SegmentExtent> {
        self.extents.get(self.next.fetch_add(1, Relaxed)).copied()
    }
}

/// Returns the reader options of scans of a tablespace, from the settings.
#[must_use]
pub fn reader_options(instance: &Instance, tablespace: Purpose) -> ReaderOptions {
    let tablespace = instance.tablespace(tablespace);
    let blocks = instance.settings.io.db_file_multiblock_read_count;
    ReaderOptions {
        chunk_blocks: blocks.min(tablespace.extent_blocks.0),
        buffer_count: 1 + instance.settings.io.scan_read_ahead,
        event: Event::DirectPathRead,
        stream: IoStream::TableReads,
    }
}

/// Visits every row of the granules that this server takes.
///
/// # Errors
/// If a block is corrupt, a read fails, or `visit` fails.
pub fn scan(
    instance: &Instance,
    session: &Session,
    operation: &Operation,
    granules: &Granules<'_>,
    mut visit: impl FnMut(&[u8], RowId) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let tablespace = instance.tablespace(granules.tablespace);
    let mut chain = Chain::default();
    scan_blocks(instance, session, operation, granules, |address, block| {
        let content = block::verify(block, granules.expected, address, tablespace.path(address))?;
        chain.visit(address, content, block, &mut visit)
    })?;
    chain.end()
}

/// Passes every block of the granules that this server takes to `visit`, which verifies it and
/// returns its number of rows.
///
/// # Errors
/// If a read fails, or `visit` fails.
pub(crate) fn scan_blocks(
    instance: &Instance,
    session: &Session,
    operation: &Operation,
    granules: &Granules<'_>,
    mut visit: impl FnMut(BlockAddress, &[u8]) -> Result<u64, EngineError>,
) -> Result<(), EngineError> {
    let tablespace = instance.tablespace(granules.tablespace);
    let options = reader_options(instance, granules.tablespace);
    let mut reader = SegmentReader::new(session, &instance.access, tablespace, options)?;
    let mut pieces = || granules.take();
    while let Some(chunk) = reader.next(&mut pieces)? {
        operation.check()?;
        let mut rows = 0;
        for (address, block) in chunk.unverified(tablespace) {
            rows += visit(address, block)?;
        }
        note_scanned(session, chunk.block_count(), rows);
        session.count(Statistic::BlocksVerified, u64::from(chunk.block_count()));
        reader.recycle(chunk);
    }
    Ok(())
}

/// Visits every row of the granules that this server takes, through the buffer cache.
///
/// # Errors
/// If a block is corrupt, a read fails, or `visit` fails.
pub fn scan_conventional(
    instance: &Instance,
    session: &Session,
    operation: &Operation,
    granules: &Granules<'_>,
    mut visit: impl FnMut(&[u8], RowId) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let chunk_blocks = reader_options(instance, granules.tablespace).chunk_blocks;
    let mut reader = CacheReader::new(session, instance.caches());
    let mut chain = Chain::default();
    while let Some(piece) = granules.take() {
        let mut done = 0;
        while done < piece.used {
            operation.check()?;
            let count = (piece.used - done).min(chunk_blocks);
            let first = piece.extent.address(done);
            let blocks = reader.read_multiblock(granules.tablespace, first, count, granules.expected)?;
            let mut rows = 0;
            for block in &blocks {
                rows += chain.visit(block.address(), block::content_of(block), block, &mut visit)?;
            }
            assert!(
                (1..=count as usize).contains(&blocks.len()),
                "a read goes on, and not beyond its extent"
            );
            note_scanned(session, blocks.len() as u32, rows);
            done += blocks.len() as u32;
        }
    }
    chain.end()
}

fn note_scanned(session: &Session, blocks: u32, rows: u64) {
    session.count(Statistic::TableScanBlocks, u64::from(blocks));
    session.count(Statistic::TableScanRows, rows);
}
