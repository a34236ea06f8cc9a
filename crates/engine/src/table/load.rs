//! Direct path load: rows straight into formatted blocks, past the buffer cache.
//!
//! Every load server takes batches from the source, fills blocks of its own
//! extents and writes them with large asynchronous requests. The table enters
//! the control file last, after its blocks are durable: a load that fails or is
//! interrupted owns no extent and leaves no table.
//!
//! There is no redo: a table that exists has all its rows on disk, and a load
//! that did not finish never existed. (What a backup would need is not kept;
//! this is NOLOGGING.)

use crate::parallel::servers::{self, Operation};
use crate::settings::Setting;
use crate::storage::block::{BlockKind, LsnRange};
use crate::storage::control::{ColumnStatistics, SegmentExtent, Table};
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::storage::writer::{SegmentWriter, WriterOptions};
use crate::table::chain;
use crate::table::heap::{BlockFill, row_bytes_max};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Phase, Role, Session, Statistic, now};
use plumb_types::{ColumnType, RowBatch, RowError, RowSource, columns};
use plumb_units::{Lsn, RowId};
use std::thread;

/// A head with fewer bytes of its row is not worth its block's end.
const HEAD_LEAST: usize = 64;
/// Bytes of a write request, and requests a load server has in flight.
const WRITE_BYTES: usize = 512 * 1024;
const WRITE_BUFFERS: usize = 4;

/// What a load did.
#[derive(Debug, Clone, Copy)]
pub struct LoadOutcome {
    /// Rows loaded.
    pub row_count: u64,
    /// Blocks they fill.
    pub block_count: u64,
    /// Bytes of the rows themselves.
    pub row_bytes: u64,
    /// Rows that no block has room for: each lies in several.
    pub chained_row_count: u64,
}

/// Loads all rows of `source` into a new table.
///
/// # Errors
/// When the table exists, the source fails, a row does not fit an extent, or a
/// write fails; nothing of the load then remains.
pub fn load(instance: &Instance, table: &str, source: &dyn RowSource) -> Result<LoadOutcome, EngineError> {
    let name = instance.catalog().require_free(table)?;
    let begin = now();
    let coordinator = instance.recorder.session(Role::LoadCoordinator);
    let lsn = instance.next_lsn(&coordinator)?;
    let operation = instance.operation();
    let tablespace = instance.tablespace(Purpose::Users);
    let extent_counts = tablespace.extent_counts();
    let pieces = thread::scope(|scope| {
        let start = |number: usize| {
            let operation = &operation;
            servers::start(scope, operation, (Role::LoadServer, number), move |session| {
                load_piece(instance, session, operation, lsn, source)
            })
        };
        let servers = (0..instance.parallel_degree()).map(start).collect();
        servers::join(&coordinator, servers)
    });
    let pieces: Vec<Piece> = pieces.into_iter().flatten().collect();
    let mut extents: Vec<SegmentExtent> =
        pieces.iter().flat_map(|piece| piece.extents.iter().copied()).collect();
    // In the order in which they lie on the disks, which is nearly that of the
    // input: a scan then reads each file from its beginning to its end, and not
    // one server's extents first, which have gaps.
    extents.sort_by_key(|extent| (extent.extent.block, extent.extent.file));
    let entered = operation
        .outcome()
        .and_then(|()| instance.sync(&coordinator, Purpose::Users))
        .and_then(|()| enter(instance, &coordinator, (name.clone(), lsn), source, &pieces, &extents));
    if entered.is_err() && !instance.has_segment(&name) {
        tablespace.release(extents.iter().map(|extent| extent.extent));
        // The error to report is the load's.
        let _ = tablespace.cut_back(&extent_counts);
    }
    let outcome = entered?;
    instance.recorder.phase(Phase::Load, begin, outcome.row_count);
    Ok(outcome)
}

fn enter(
    instance: &Instance,
    coordinator: &Session,
    (name, lsn): (String, Lsn),
    source: &dyn RowSource,
    pieces: &[Piece],
    extents: &[SegmentExtent],
) -> Result<LoadOutcome, EngineError> {
    let mut column_statistics = vec![ColumnStatistics::default(); source.schema().column_count()];
    for piece in pieces {
        for (total, part) in column_statistics.iter_mut().zip(&piece.columns) {
            total.merge(part);
        }
    }
    let outcome = LoadOutcome {
        row_count: pieces.iter().map(|piece| piece.row_count).sum(),
        block_count: extents.iter().map(|extent| u64::from(extent.used)).sum(),
        row_bytes: pieces.iter().map(|piece| piece.row_bytes).sum(),
        chained_row_count: pieces.iter().map(|piece| piece.chained_row_count).sum(),
    };
    let table = Table {
        name,
        schema: source.schema().clone(),
        row_count: outcome.row_count,
        row_bytes: outcome.row_bytes,
        chained_row_count: outcome.chained_row_count,
        column_statistics,
        extents: extents.to_vec(),
        lsns: LsnRange::only(lsn),
    };
    instance.change_catalog(coordinator, |catalog| catalog.add_table(table))?;
    Ok(outcome)
}

/// What one load server has written.
struct Piece {
    row_count: u64,
    row_bytes: u64,
    chained_row_count: u64,
    columns: Vec<ColumnStatistics>,
    extents: Vec<SegmentExtent>,
}

fn load_piece(
    instance: &Instance,
    session: &Session,
    operation: &Operation,
    lsn: Lsn,
    source: &dyn RowSource,
) -> Result<Piece, EngineError> {
    let tablespace = instance.tablespace(Purpose::Users);
    let options = WriterOptions {
        kind: BlockKind::Table,
        lsn,
        buffer_bytes: WRITE_BYTES.min(tablespace.extent_blocks.bytes(tablespace.block_size) as usize),
        buffer_count: WRITE_BUFFERS,
        event: Event::DirectPathWrite,
        stream: IoStream::DataWrites,
    };
    let mut writer = SegmentWriter::new(session, &instance.access, tablespace, options)?;
    let mut piece = Piece {
        row_count: 0,
        row_bytes: 0,
        chained_row_count: 0,
        columns: vec![ColumnStatistics::default(); source.schema().column_count()],
        extents: Vec::new(),
    };
    let types: Vec<ColumnType> = source.schema().columns.iter().map(|column| column.column_type).collect();
    let spare = spare(instance);
    let mut fill = BlockFill::default();
    let mut batch = RowBatch::new();
    let mut sealed = 0;
    while source.next_batch(&mut batch).map_err(EngineError::Source)? {
        operation.check()?;
        for row in batch.iter() {
            if row.len() > row_bytes_max(tablespace.block_size) {
                sealed += push_chained(session, tablespace, (&mut writer, &mut fill), row)?;
                piece.chained_row_count += 1;
            } else {
                while !fill.push(writer.block()?, row, spare) {
                    sealed += seal(session, &mut writer, &mut fill)?;
                }
            }
            note_columns(row, &types, &mut piece.columns)?;
        }
        piece.row_bytes += batch.byte_count() as u64;
        piece.row_count += batch.len() as u64;
        session.count(Statistic::LoadRows, batch.len() as u64);
    }
    if !fill.is_empty() {
        sealed += seal(session, &mut writer, &mut fill)?;
    }
    assert_eq!(sealed, piece.row_count, "T2: rows in blocks, and rows taken from the source");
    piece.extents = writer.finish()?;
    Ok(piece)
}

/// Bytes of a block that a load leaves free.
fn spare(instance: &Instance) -> usize {
    let percent = instance.settings.optional_number(Setting::PctFree).unwrap_or(0);
    instance.tablespace(Purpose::Users).block_size.bytes() * percent as usize / 100
}

/// Adds a row that no block has room for, in pieces; gives back the rows of the blocks that it filled.
fn push_chained(
    session: &Session,
    tablespace: &Tablespace,
    (writer, fill): (&mut SegmentWriter<'_>, &mut BlockFill),
    row: &[u8],
) -> Result<u64, EngineError> {
    let (block_size, extent) = (tablespace.block_size, tablespace.extent_blocks);
    let most = chain::row_bytes_max(block_size, extent);
    if row.len() > most {
        let extent_bytes = extent.bytes(block_size);
        return Err(EngineError::ChainTooLong {
            found: row.len(),
            extent_bytes,
            room: most,
            start: begin_of(row),
        });
    }
    let behind = chain::blocks_behind(row.len(), block_size);
    let mut sealed = 0;
    // All pieces are in one extent.
    let has_room = fill.room(writer.block()?) > HEAD_LEAST;
    if (!has_room || behind >= writer.blocks_left()?) && !fill.is_empty() {
        sealed += seal(session, writer, fill)?;
    }
    if behind >= writer.blocks_left()? {
        writer.leave_extent()?;
    }
    let mut rest = fill.push_head(writer.block()?, row);
    while !rest.is_empty() {
        sealed += seal(session, writer, fill)?;
        rest = fill.go_on(writer.block()?, rest);
    }
    Ok(sealed)
}

/// Writes the block that was filled; gives back its rows.
fn seal(session: &Session, writer: &mut SegmentWriter<'_>, fill: &mut BlockFill) -> Result<u64, EngineError> {
    let content = std::mem::take(fill).finish(writer.block()?);
    writer.seal(content)?;
    session.count(Statistic::LoadBlocks, 1);
    Ok(u64::from(content.entries))
}

fn note_columns(
    row: &[u8],
    types: &[ColumnType],
    statistics: &mut [ColumnStatistics],
) -> Result<(), EngineError> {
    assert_eq!(types.len(), statistics.len(), "each column has a type and statistics");
    let mut values = columns(row);
    for ((value, column_type), column) in values.by_ref().zip(types).zip(statistics) {
        column.note(row, value, *column_type);
    }
    let bad = |error: RowError| EngineError::BadRow { row: RowId(0), why: error.to_string() };
    values.finish().map(|_| ()).map_err(bad)
}

/// The first columns of a row, to find it by.
fn begin_of(row: &[u8]) -> String {
    let shown: Vec<String> = columns(row)
        .take(3)
        .map(|value| match value {
            Some(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(20)]).escape_debug().to_string(),
            None => "NULL".to_string(),
        })
        .collect();
    shown.join(", ")
}
