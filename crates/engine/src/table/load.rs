//! Direct path load: writes rows straight into formatted blocks, bypassing the buffer cache.
//!
//! Every load server takes rows from a source, or from another table ([`create_as_select`]). It
//! fills blocks of its own extents and writes them with large asynchronous requests. The table
//! enters the control file last, after its blocks are durable: a failed or interrupted load owns no
//! extent and leaves no table.
//!
//! A load alone has no redo (NOLOGGING): a table in the catalog has all its rows on disk, and an
//! unfinished load never existed. But a backup taken meanwhile lacks the table. A load with a
//! [`BlockLog`] logs each block whole before it is written, so that recovery can rebuild it.

use crate::parallel::servers::{self, Operation};
use crate::storage::block::{BlockKind, LsnRange};
use crate::storage::control::{
    Catalog, ColumnStatistics, SegmentExtent, Table, require_column_names, stored_name,
};
use crate::storage::tablespace::{Purpose, Tablespace};
use crate::storage::writer::{SegmentWriter, WriterOptions};
use crate::table::chain;
use crate::table::heap::{BlockFill, row_bytes_max};
use crate::table::scan::{self, Granules};
use crate::{EngineError, Instance};
use plumb_events::{Event, IoStream, Phase, Role, Session, Statistic, now};
use plumb_types::{ColumnType, RowBatch, RowSource, Schema, columns};
use plumb_units::{BlockAddress, Lsn, RowId};
use std::thread;

/// Least bytes of a row in a head; fewer do not justify using the rest of a block.
const HEAD_LEAST: usize = 64;
/// Bytes of a write request, and requests in flight per load server.
const WRITE_BYTES: usize = 512 * 1024;
const WRITE_BUFFERS: usize = 4;

/// Result of a load.
#[derive(Debug, Clone, Copy)]
pub struct LoadOutcome {
    /// Number of rows loaded.
    pub row_count: u64,
    /// Number of blocks filled.
    pub block_count: u64,
    /// Bytes of all row images.
    pub row_bytes: u64,
    /// Rows that lie in several blocks, because one block has no room for them.
    pub chained_row_count: u64,
}

/// Log for the blocks of a load.
pub trait BlockLog: Sync {
    /// Returns an LSN that all records of the load reach.
    fn begin(&self) -> Lsn;

    /// Creates the log writer of one load server.
    ///
    /// # Errors
    /// If a buffer or a channel cannot be created.
    fn server<'s>(&'s self, session: &'s Session) -> Result<Box<dyn LogsBlocks + 's>, EngineError>;

    /// Waits until all logged blocks are durable.
    ///
    /// # Errors
    /// If the log cannot be written.
    fn make_durable(&self, session: &Session) -> Result<(), EngineError>;
}

/// Logs the blocks of one load server.
pub trait LogsBlocks {
    /// Logs a filled block whole; returns the LSN of the record.
    ///
    /// # Errors
    /// If the log has no room, or has failed.
    fn log(&mut self, place: (Purpose, BlockAddress), block: &[u8]) -> Result<Lsn, EngineError>;
}

/// Destination of a new table, and the log of its blocks.
#[derive(Clone, Copy)]
pub struct LoadTarget<'a> {
    /// Name of the table, in any case.
    pub table: &'a str,
    /// Tablespace, which must exist and be for tables ([`Instance::tablespace_of`]).
    pub tablespace: Purpose,
    /// Log of its blocks; none for a load without redo.
    pub log: Option<&'a dyn BlockLog>,
}

/// Loads all rows of `source` into a new table in the tablespace USERS, without redo.
///
/// # Errors
/// As [`load_into`].
pub fn load(instance: &Instance, table: &str, source: &dyn RowSource) -> Result<LoadOutcome, EngineError> {
    let session = instance.recorder.session(Role::LoadCoordinator);
    load_into(instance, &session, LoadTarget { table, tablespace: Purpose::Users, log: None }, source)
}

/// Loads all rows of `source` into a new table. A serial load runs in this session; a parallel one
/// runs in servers that the session waits for.
///
/// # Errors
/// If the table exists, the source fails, a row does not fit an extent, or a write fails; then
/// nothing of the load remains.
///
/// # Panics
/// If the tablespace is not for tables, or does not exist.
pub fn load_into(
    instance: &Instance,
    session: &Session,
    target: LoadTarget<'_>,
    source: &dyn RowSource,
) -> Result<LoadOutcome, EngineError> {
    let begin = now();
    let load = Load::new((instance, session), target, source.schema())?;
    let outcome = load.run(session, instance.parallel_degree(), |session, operation, loader| {
        let mut batch = RowBatch::new();
        while source.next_batch(&mut batch).map_err(EngineError::Source)? {
            operation.check()?;
            batch.iter().try_for_each(|row| loader.push(row))?;
            session.count(Statistic::LoadRows, batch.len() as u64);
        }
        Ok(())
    })?;
    instance.recorder.phase(Phase::Load, begin, outcome.row_count);
    Ok(outcome)
}

/// Creates a table of all rows of another table that was loaded by direct path. One server reads
/// them through the buffer cache if `serial_direct_read` is false; otherwise the reads bypass it.
///
/// # Errors
/// As [`load_into`], and if there is no table `source` or one of its blocks is corrupt.
///
/// # Panics
/// As [`load_into`].
pub fn create_as_select(
    instance: &Instance,
    session: &Session,
    target: LoadTarget<'_>,
    source: &str,
) -> Result<LoadOutcome, EngineError> {
    let begin = now();
    let source = instance.catalog().table(source)?.clone();
    let degree = instance.parallel_degree();
    let conventional = !instance.settings.scans_directly(degree);
    let granules = Granules::new(&source).shared_by(degree);
    let load = Load::new((instance, session), target, &source.schema)?;
    let outcome = load.run(session, degree, |session, operation, loader| {
        let push = |row: &[u8], _: RowId| {
            session.count(Statistic::LoadRows, 1);
            loader.push(row)
        };
        match conventional {
            true => scan::scan_conventional(instance, session, operation, &granules, push),
            false => scan::scan(instance, session, operation, &granules, push),
        }
    })?;
    instance.recorder.phase(Phase::CreateAsSelect, begin, outcome.row_count);
    Ok(outcome)
}

/// A load of rows that the caller makes, into a new table or behind the rows of an existing one.
pub(crate) struct RowsLoad<'a>(Load<'a>);

impl<'a> RowsLoad<'a> {
    /// Prepares a load of rows with these columns. If the table exists, they are added to it.
    ///
    /// # Errors
    /// If the existing table has other columns or an index, or was loaded with another choice of
    /// redo than `target` has.
    pub(crate) fn new(
        instance: &'a Instance,
        session: &Session,
        target: LoadTarget<'a>,
        schema: &'a Schema,
    ) -> Result<RowsLoad<'a>, EngineError> {
        let stored = stored_name(target.table);
        let existing = instance.catalog().tables.iter().find(|table| table.name == stored).cloned();
        Ok(RowsLoad(match existing {
            None => Load::new((instance, session), target, schema)?,
            Some(existing) => Load::onto(instance, session, target, schema, existing)?,
        }))
    }

    /// Loads the rows that `fill` pushes, in `degree` servers, or in this session if it is one.
    /// The table has them when this returns, and is as before if it fails.
    ///
    /// # Errors
    /// If `fill` fails, a row does not fit an extent, a write fails, or the existing table was
    /// changed or dropped meanwhile.
    pub(crate) fn run(
        &self,
        session: &Session,
        degree: usize,
        fill: impl Fn(
            &Session,
            &Operation,
            &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
        ) -> Result<(), EngineError>
        + Sync,
    ) -> Result<LoadOutcome, EngineError> {
        self.0.run(session, degree, |session, operation, loader| {
            let mut push = |row: &[u8]| {
                session.count(Statistic::LoadRows, 1);
                loader.push(row)
            };
            fill(session, operation, &mut push)
        })
    }
}

struct Load<'a> {
    instance: &'a Instance,
    name: String,
    schema: &'a Schema,
    /// The table whose rows stay in front of the new ones; `None` for a new table.
    existing: Option<Table>,
    purpose: Purpose,
    log: Option<&'a dyn BlockLog>,
    /// Number of the operation, which is the LSN of blocks that are not logged.
    lsn: Lsn,
}

impl<'a> Load<'a> {
    fn new(
        (instance, coordinator): (&'a Instance, &Session),
        target: LoadTarget<'a>,
        schema: &'a Schema,
    ) -> Result<Load<'a>, EngineError> {
        assert!(target.tablespace.is_tables(), "a table is in a tablespace for tables");
        require_column_names(schema)?;
        let name = instance.catalog().require_free(target.table)?;
        let lsn = match target.log {
            Some(log) => log.begin(),
            None => instance.next_lsn(coordinator)?,
        };
        let purpose = target.tablespace;
        Ok(Load { instance, name, schema, existing: None, purpose, log: target.log, lsn })
    }

    /// Prepares a load into an existing table, whose blocks stay as they are.
    fn onto(
        instance: &'a Instance,
        coordinator: &Session,
        target: LoadTarget<'a>,
        schema: &'a Schema,
        existing: Table,
    ) -> Result<Load<'a>, EngineError> {
        require_alike(&existing, schema)?;
        let name = existing.name.clone();
        let refuse = |first: String, why: &str| {
            Err(EngineError::Contradiction {
                first,
                second: format!("table {name}, which exists"),
                why: why.to_string(),
            })
        };
        if let Some(index) = instance.catalog().indexes_of(&name).next() {
            let index = format!("index {}", index.name);
            return refuse(index, "it would lack the new rows; drop it, and build it again behind the load");
        }
        // Recovery takes the blocks of a table as logged or not: replay of old records into blocks
        // without redo would destroy them.
        match (existing.lsns.first_record().is_some(), target.log.is_some()) {
            (true, false) => {
                return refuse(
                    "a load without redo".to_string(),
                    "its blocks are in the log; load with logging, or into a new table",
                );
            }
            (false, true) => {
                return refuse(
                    "a load with redo".to_string(),
                    "its blocks are not in the log; load with nologging, or into a new table",
                );
            }
            _ => {}
        }
        let lsn = match target.log {
            Some(log) => log.begin(),
            None => instance.next_lsn(coordinator)?,
        };
        let purpose = existing.tablespace;
        Ok(Load { instance, name, schema, existing: Some(existing), purpose, log: target.log, lsn })
    }

    /// Runs the load servers, which fill their blocks, and enters the table in the catalog.
    fn run(
        &self,
        coordinator: &Session,
        degree: usize,
        fill: impl Fn(&Session, &Operation, &mut Loader<'_>) -> Result<(), EngineError> + Sync,
    ) -> Result<LoadOutcome, EngineError> {
        let instance = self.instance;
        let operation = instance.operation();
        let tablespace = instance.tablespace(self.purpose);
        let extent_counts = tablespace.extent_counts();
        let piece = |session: &Session| {
            let mut loader = Loader::new(self, session, tablespace)?;
            fill(session, &operation, &mut loader)?;
            loader.finish()
        };
        let pieces: Vec<Option<Piece>> = match degree {
            // A serial load runs in the session itself.
            1 => vec![piece(coordinator).map_err(|error| operation.fail(error)).ok()],
            degree => thread::scope(|scope| {
                let start = |number| servers::start(scope, &operation, (Role::LoadServer, number), piece);
                servers::join(coordinator, (0..degree).map(start).collect())
            }),
        };
        let pieces: Vec<Piece> = pieces.into_iter().flatten().collect();
        let mut extents: Vec<SegmentExtent> =
            pieces.iter().flat_map(|piece| piece.extents.iter().copied()).collect();
        // Disk order, so that a scan reads each file from start to end. One server's extents alone
        // have gaps. This is not the input order, because each piece goes to any free server; only
        // one server keeps that order.
        extents.sort_by_key(|extent| (extent.extent.block, extent.extent.file));
        let durable = operation.outcome().and_then(|()| {
            instance.sync(coordinator, self.purpose)?;
            self.log.map_or(Ok(()), |log| log.make_durable(coordinator))
        });
        let entered = durable.and_then(|()| self.enter(coordinator, &pieces, &extents));
        if entered.is_err() {
            tablespace.release(extents.iter().map(|extent| extent.extent));
            // The load's error is the one to report.
            let _ = tablespace.cut_back(&extent_counts);
        }
        entered
    }

    fn enter(
        &self,
        coordinator: &Session,
        pieces: &[Piece],
        extents: &[SegmentExtent],
    ) -> Result<LoadOutcome, EngineError> {
        let mut column_statistics = vec![ColumnStatistics::default(); self.schema.column_count()];
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
        if let Some(existing) = &self.existing {
            self.extend(coordinator, existing, &outcome, &column_statistics, extents)?;
            return Ok(outcome);
        }
        let table = Table {
            name: self.name.clone(),
            schema: self.schema.clone(),
            tablespace: self.purpose,
            row_count: outcome.row_count,
            row_bytes: outcome.row_bytes,
            chained_row_count: outcome.chained_row_count,
            column_statistics,
            extents: extents.to_vec(),
            lsns: if self.log.is_some() { LsnRange::from(self.lsn) } else { LsnRange::only(self.lsn) },
        };
        self.instance.change_catalog(coordinator, |catalog| catalog.add_table(table))?;
        Ok(outcome)
    }

    /// Adds the extents of a load to the existing table, in one change of the control file.
    fn extend(
        &self,
        coordinator: &Session,
        existing: &Table,
        outcome: &LoadOutcome,
        columns: &[ColumnStatistics],
        extents: &[SegmentExtent],
    ) -> Result<(), EngineError> {
        let is_indexed = |catalog: &Catalog| catalog.indexes_of(&self.name).next().is_some();
        let mut extended = false;
        self.instance.change_catalog(coordinator, |catalog| {
            if is_indexed(catalog) {
                return;
            }
            let Some(table) = catalog.tables.iter_mut().find(|table| table.is_same_data(existing)) else {
                return;
            };
            table.row_count += outcome.row_count;
            table.row_bytes += outcome.row_bytes;
            table.chained_row_count += outcome.chained_row_count;
            let statistics = table.column_statistics.iter_mut().zip(columns);
            statistics.for_each(|(total, part)| total.merge(part));
            table.extents.extend_from_slice(extents);
            if self.log.is_none() {
                table.lsns = table.lsns.up_to(self.lsn);
            }
            extended = true;
        })?;
        match extended {
            true => Ok(()),
            false => Err(EngineError::TableChanged { table: self.name.clone() }),
        }
    }
}

/// Rejects rows with other columns than the table has; names may differ.
fn require_alike(existing: &Table, schema: &Schema) -> Result<(), EngineError> {
    let types = |schema: &Schema| {
        let all = schema.columns.iter().map(|column| column.column_type.to_string());
        all.collect::<Vec<_>>().join(", ")
    };
    let (found, expected) = (types(schema), types(&existing.schema));
    if found == expected {
        return Ok(());
    }
    Err(EngineError::Verification {
        what: format!("columns of the rows for table {}", existing.name),
        found,
        expected,
    })
}

/// Result of one load server.
struct Piece {
    row_count: u64,
    row_bytes: u64,
    chained_row_count: u64,
    columns: Vec<ColumnStatistics>,
    extents: Vec<SegmentExtent>,
}

/// A load server, which fills blocks with rows.
struct Loader<'a> {
    session: &'a Session,
    tablespace: &'a Tablespace,
    types: Vec<ColumnType>,
    /// Bytes of a block that stay free.
    spare: usize,
    log: Option<Box<dyn LogsBlocks + 'a>>,
    writer: SegmentWriter<'a>,
    fill: BlockFill,
    /// Rows in blocks that are sealed.
    sealed: u64,
    piece: Piece,
}

impl<'a> Loader<'a> {
    fn new(
        load: &'a Load<'a>,
        session: &'a Session,
        tablespace: &'a Tablespace,
    ) -> Result<Loader<'a>, EngineError> {
        let options = WriterOptions {
            kind: BlockKind::Table,
            lsn: load.lsn,
            buffer_bytes: WRITE_BYTES.min(tablespace.extent_blocks.bytes(tablespace.block_size) as usize),
            buffer_count: WRITE_BUFFERS,
            event: Event::DirectPathWrite,
            stream: IoStream::DataWrites,
        };
        let percent = load.instance.settings.storage.pct_free.unwrap_or(0);
        Ok(Loader {
            session,
            tablespace,
            types: load.schema.columns.iter().map(|column| column.column_type).collect(),
            spare: tablespace.block_size.bytes() * percent / 100,
            log: load.log.map(|log| log.server(session)).transpose()?,
            writer: SegmentWriter::new(session, &load.instance.access, tablespace, options)?,
            fill: BlockFill::default(),
            sealed: 0,
            piece: Piece {
                row_count: 0,
                row_bytes: 0,
                chained_row_count: 0,
                columns: vec![ColumnStatistics::default(); load.schema.column_count()],
                extents: Vec::new(),
            },
        })
    }

    fn push(&mut self, row: &[u8]) -> Result<(), EngineError> {
        if row.len() > row_bytes_max(self.tablespace.block_size) {
            self.push_chained(row)?;
            self.piece.chained_row_count += 1;
            self.session.count(Statistic::LoadRowsChained, 1);
        } else {
            while !self.fill.push(self.writer.block()?, row, self.spare) {
                self.seal()?;
            }
        }
        note_columns(row, &self.types, &mut self.piece.columns)?;
        self.piece.row_bytes += row.len() as u64;
        self.piece.row_count += 1;
        Ok(())
    }

    /// Adds a row that is too long for a block, in pieces.
    fn push_chained(&mut self, row: &[u8]) -> Result<(), EngineError> {
        let (block_size, extent) = (self.tablespace.block_size, self.tablespace.extent_blocks);
        let most = chain::row_bytes_max(block_size, extent);
        if row.len() > most {
            return Err(chain::too_long(row, most, extent.bytes(block_size)));
        }
        let behind = chain::blocks_behind(row.len(), block_size);
        // All pieces must be in one extent.
        let has_room = self.fill.room(self.writer.block()?) > HEAD_LEAST;
        if (!has_room || behind >= self.writer.blocks_left()?) && !self.fill.is_empty() {
            self.seal()?;
        }
        if behind >= self.writer.blocks_left()? {
            self.writer.leave_extent()?;
        }
        let mut rest = self.fill.push_head(self.writer.block()?, row);
        while !rest.is_empty() {
            self.seal()?;
            rest = self.fill.go_on(self.writer.block()?, rest);
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), EngineError> {
        let content = std::mem::take(&mut self.fill).finish(self.writer.block()?);
        let purpose = self.tablespace.purpose;
        match &mut self.log {
            None => self.writer.seal(content)?,
            Some(log) => {
                self.writer.seal_logged(content, |address, block| log.log((purpose, address), block))?
            }
        };
        self.session.count(Statistic::LoadBlocks, 1);
        self.sealed += u64::from(content.entries);
        Ok(())
    }

    fn finish(mut self) -> Result<Piece, EngineError> {
        if !self.fill.is_empty() {
            self.seal()?;
        }
        assert_eq!(self.sealed, self.piece.row_count, "T2: rows in blocks, and rows taken from the source");
        self.piece.extents = self.writer.finish()?;
        Ok(self.piece)
    }
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
    values.finish().map(|_| ()).map_err(|error| EngineError::bad_row(RowId(0), error))
}
