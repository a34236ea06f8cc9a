//! Table scans that bypass the buffer cache or use it.
//!
//! The table is cut into granules (its extents). Scan servers take the next granule from a shared
//! counter, so a server on a slow disk takes fewer and all finish together. A server keeps several
//! multiblock reads in flight, for which it takes granules before it needs them. It leaves the
//! others their share of those that are left: with requests as long as an extent, one server would
//! take a whole table. Every block is verified before its rows are read. A chained row is in one
//! extent, so one server reads it.
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
    /// Number of servers that take granules of the table.
    servers: usize,
    next: AtomicUsize,
}

impl<'t> Granules<'t> {
    /// Creates the granules of a whole table, for one server.
    pub fn new(table: &'t Table) -> Granules<'t> {
        Granules::of(&table.extents, table.tablespace, table.expected())
    }

    /// Creates the granules of these extents, whose blocks are of one kind, for one server.
    pub(crate) fn of(extents: &'t [SegmentExtent], tablespace: Purpose, expected: Expected) -> Granules<'t> {
        Granules { extents, tablespace, expected, servers: 1, next: AtomicUsize::new(0) }
    }

    /// Returns the granules for this number of servers.
    #[must_use]
    pub fn shared_by(self, servers: usize) -> Self {
        Granules { servers, ..self }
    }

    fn take(&self) -> Option<SegmentExtent> {
        self.extents.get(self.next.fetch_add(1, Relaxed)).copied()
    }

    /// Takes the next granule for a server that awaits this many blocks, unless it has its share of
    /// the granules that are left.
    fn take_ahead(&self, awaited_blocks: u64) -> Option<SegmentExtent> {
        let rest = self.extents.get(self.next.load(Relaxed)..).unwrap_or_default();
        let granule_blocks = u64::from(rest.first()?.extent.blocks);
        let held = awaited_blocks.div_ceil(granule_blocks);
        let has_share = held > 0 && held.saturating_mul(self.servers as u64 - 1) >= rest.len() as u64;
        if has_share { None } else { self.take() }
    }
}

/// Returns the reader options of scans of a tablespace, from the settings.
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
    let mut pieces = |awaited_blocks| granules.take_ahead(awaited_blocks);
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

#[cfg(test)]
mod tests {
    use super::Granules;
    use crate::storage::block::{BlockKind, Expected, LsnRange};
    use crate::storage::control::SegmentExtent;
    use crate::storage::tablespace::{Extent, Purpose};

    const EXPECTED: Expected = Expected { kind: BlockKind::Table, lsns: LsnRange::ANY };

    fn extents(count: u32) -> Vec<SegmentExtent> {
        let extent = |number: u32| Extent { file: 1, block: number * 8, blocks: 8 };
        (0..count).map(|number| SegmentExtent { extent: extent(number), used: 8 }).collect()
    }

    /// Servers that fill up one after the other, each with at most 16 granules in flight.
    #[test]
    fn a_server_takes_no_more_ahead_than_its_share_of_what_is_left() {
        for (count, servers) in [(18, 4), (3, 4), (1, 2), (16, 2), (1000, 3), (18, 1)] {
            let extents = extents(count);
            let granules = Granules::of(&extents, Purpose::Users, EXPECTED).shared_by(servers);
            let mut taken = 0;
            for server in 0..servers {
                let left = count as usize - taken;
                let mut held = 0;
                while held < 16 && granules.take_ahead(held as u64 * 8).is_some() {
                    held += 1;
                }
                assert!(held >= left.min(1), "server {server} of {servers} is idle, {count} granules");
                assert!(held <= left.div_ceil(servers).max(1), "{held} of {left} for one of {servers}");
                if left >= 16 * (servers + 1) {
                    assert_eq!(held, 16, "a large table is read as far ahead as buffers allow");
                }
                taken += held;
            }
            let rest = std::iter::from_fn(|| granules.take_ahead(0)).count();
            assert_eq!(taken + rest, count as usize, "every granule once");
        }
    }
}
