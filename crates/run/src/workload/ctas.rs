//! Create table as select: rows of a cached table go by direct path into a new table, with any
//! block size.
//!
//! Two source tables are loaded, of the two shapes of [`plumb_workload::TextShape`]. A parameter
//! selects one, so that one database serves all arms of a study. One session reads the source
//! through the cache and writes the new table directly, as a serial statement does. The work is the
//! writing, and reads nothing from a device.
//!
//! With archiving, a load without redo needs a backup, because no copy of the log has its rows. The
//! backup follows at once, and is part of the measured work. It is of the whole database, because a
//! single tablespace cannot be restored.
//!
//! Every run starts in the state that [`start`] prepares. The new table is read back through the
//! cache of its block size, and dropped after verification.

use super::{Execution, Place, sizing, start};
use crate::evidence::{self, CtasDone, Done, Measured};
use crate::place::Room;
use plumb_engine::backup::{self, Copied, Verification};
use plumb_engine::check::CheckLine;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::control::Table;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{self, LoadTarget};
use plumb_engine::table::scan::{self, Granules};
use plumb_engine::transaction::check::row_hash;
use plumb_engine::transaction::{Logging, Transactions};
use plumb_engine::{EngineError, Instance, Setting, Settings, drop as dropping};
use plumb_events::{Phase, Role, Session, clock};
use plumb_io::Disk;
use plumb_study::Stage;
use plumb_types::columns;
use plumb_units::{BlockSize, Bytes, RowCount};
use plumb_workload::specification::CTAS;
use plumb_workload::{TextShape, TextsSpec, TextsTable, Work, Workload};
use std::path::PathBuf;

/// Name of the table that is made.
const TABLE: &str = "CTAS";
/// Size of the cache for another block size, unless it is set.
const SIZED_CACHE: &str = "4M";

pub(super) struct Ctas;

impl Execution for Ctas {
    fn workload(&self) -> &'static Workload {
        &CTAS
    }

    fn logs(&self) -> bool {
        true
    }

    /// One session that reads through a cache as large as the source, and a cache for
    /// the new table's block size.
    fn apply_defaults(&self, work: &Work, settings: &mut Settings) -> Result<(), EngineError> {
        let bytes = TextShape::ALL.map(|shape| sizing::of_texts(work.rows(), shape)).into_iter().max();
        let cache = Bytes((bytes.unwrap_or(0) / 8 * 9).next_multiple_of(Bytes::M)).as_setting();
        let mut wanted = vec![
            (Setting::ParallelDegree, "1".to_string()),
            (Setting::SerialDirectRead, "false".to_string()),
            (Setting::DbCacheSize, cache),
        ];
        if block_size(work) != settings.block_size() {
            wanted.push((Setting::cache_of(block_size(work)), SIZED_CACHE.to_string()));
        }
        wanted.retain(|(setting, _)| !settings.is_explicit(*setting));
        wanted.iter().try_for_each(|(setting, value)| settings.set(setting.row().name, value, CTAS.name))
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let log = sizing::of_log(settings);
        let table = |shape| sizing::of_texts(work.rows(), shape);
        let sources = TextShape::ALL.map(table).into_iter().sum::<u64>();
        let made = new_table_bytes(work).0;
        let own = InitialSizes { users: Bytes(sources + made), temp: Bytes(1), indx: Bytes(1) };
        // The tablespace of another block size, the log, and a backup of both.
        let beside = made + log + if is_backed_up(work, settings) { sources + 2 * made + log } else { 0 };
        Room { tablespaces: own, beside: InitialSizes { users: Bytes(beside), ..InitialSizes::NONE } }
    }

    /// Loads the two source tables, and makes the log.
    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let (instance, work) = (place.instance, place.work);
        target(place)?;
        for shape in TextShape::ALL {
            place.observer.stage(&Stage::Load { recorder: &instance.recorder, rows: work.rows() });
            load::load(instance, source_name(shape), &rows(work, shape))?;
        }
        place.transactions().map(|_| ())
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, work) = (place.instance, place.work);
        let session = instance.recorder.session(Role::User);
        // Must precede opening the log, because it may lengthen the log's records.
        let tablespace = target(place)?;
        let transactions = place.transactions()?;
        let source = source_name(shape(work));
        let read_before = warm(instance, &session, source)?;
        let log = transactions.log_of_load(logging(work));
        let to = is_backed_up(work, &instance.settings).then(|| backup_directory(instance));
        if to.is_some() && matches!(instance.access.disk, Disk::Memory(_)) {
            return Err(EngineError::Contradiction {
                first: "logging=nologging with archive_log_mode=on".to_string(),
                second: "io_method=null".to_string(),
                why: "a backup is measured with it, and files in memory have none; leave io_method out"
                    .to_string(),
            });
        }
        place.observer.stage(&Stage::Load { recorder: &instance.recorder, rows: work.rows() });
        let start = start::reach(place, &session)?;
        evidence::around_logged(instance, place.devices, transactions.log(), Some(start), || {
            let target = LoadTarget { table: TABLE, tablespace, log };
            let make = || load::create_as_select(instance, &session, target, source);
            let loaded = place.watched(transactions, make)?;
            let copied = to.as_deref().map(|to| back_up(transactions, &session, to)).transpose()?;
            let ctas = CtasDone {
                block_size: block_size(work),
                shape: shape(work),
                logging: logging(work),
                logged: log.is_some(),
                source_cached: read_before,
                loaded,
                backup: copied,
            };
            Ok(Done { ctas: Some(ctas), ..Done::default() })
        })
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        let instance = place.instance;
        place.observer.stage(&Stage::Verify { recorder: &instance.recorder, blocks: 0 });
        let begin = clock::now();
        let session = instance.recorder.session(Role::Check);
        let found = sum_of(instance, &session, &table(instance, TABLE)?)?;
        let expected = sum_of(instance, &session, &table(instance, source_name(shape(place.work)))?)?;
        instance.recorder.phase(Phase::Verify, begin, found.0);
        if found != expected {
            let text = |(rows, sum): (u64, u64)| format!("{} with sum {sum:x}", RowCount(rows));
            let what = format!("rows of table {TABLE}");
            return Err(EngineError::Verification { what, found: text(found), expected: text(expected) });
        }
        let detail = format!("{} of both; the sums of their CRC-64 are {:x}", RowCount(found.0), found.1);
        let elapsed = clock::now().saturating_sub(begin);
        Ok(vec![CheckLine { name: "new table = source".to_string(), detail, elapsed }])
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        // The next backup reports a directory that could not be removed.
        let _ = std::fs::remove_dir_all(backup_directory(place.instance));
        let exists = place.instance.catalog().tables.iter().any(|table| table.name == TABLE);
        if exists { dropping::drop_named(place.instance, TABLE).map(|_| ()) } else { Ok(()) }
    }
}

fn block_size(work: &Work) -> BlockSize {
    BlockSize::ALL[work.value("block-size").unwrap_or(2) as usize]
}

fn shape(work: &Work) -> TextShape {
    TextShape::ALL[work.value("shape").unwrap_or(0) as usize]
}

fn logging(work: &Work) -> Logging {
    if work.value("logging") == Some(1) { Logging::NoLogging } else { Logging::Logging }
}

/// True if the load needs a backup: log files are archived, without redo of the load.
fn is_backed_up(work: &Work, settings: &Settings) -> bool {
    let is_on = |setting| settings.word(setting) == "on";
    logging(work) == Logging::NoLogging && is_on(Setting::ArchiveLogMode) && !is_on(Setting::ForceLogging)
}

fn backup_directory(instance: &Instance) -> PathBuf {
    instance.home().join("backup")
}

fn back_up(
    transactions: &Transactions<'_>,
    session: &Session,
    to: &std::path::Path,
) -> Result<Copied, EngineError> {
    let begin = clock::now();
    let copied =
        backup::backup(transactions.instance(), Some(transactions), session, to, Verification::Blocks)?;
    transactions.instance().recorder.phase(Phase::Backup, begin, 0);
    Ok(copied)
}

const fn source_name(shape: TextShape) -> &'static str {
    match shape {
        TextShape::Short => "TEXTS_SHORT",
        TextShape::Tail => "TEXTS_TAIL",
    }
}

fn rows(work: &Work, shape: TextShape) -> TextsTable {
    TextsTable::new(TextsSpec { rows: work.rows(), shape, seed: work.seed() })
}

/// Largest size of the new table in bytes.
fn new_table_bytes(work: &Work) -> Bytes {
    Bytes(sizing::of_texts(work.rows(), shape(work)))
}

/// Returns the new table's tablespace, with files large enough for the largest table.
fn target(place: &Place<'_>) -> Result<Purpose, EngineError> {
    let session = place.instance.recorder.session(Role::User);
    let most = TextShape::ALL.map(|shape| sizing::of_texts(place.work.rows(), shape)).into_iter().max();
    place.instance.tablespace_of(&session, block_size(place.work), Bytes(most.unwrap_or(0)))
}

fn table(instance: &Instance, name: &str) -> Result<Table, EngineError> {
    instance.catalog().table(name).cloned()
}

/// Reads the source into the cache, from which the statement reads it. Returns true if the cache
/// holds all of it; `None` for direct reads.
fn warm(instance: &Instance, session: &Session, source: &str) -> Result<Option<bool>, EngineError> {
    if instance.parallel_degree() > 1 || instance.settings.word(Setting::SerialDirectRead) == "true" {
        return Ok(None);
    }
    let table = table(instance, source)?;
    sum_of(instance, session, &table)?;
    let blocks: u64 = table.extents.iter().map(|piece| u64::from(piece.used)).sum();
    Ok(Some(instance.caches().of(table.tablespace)?.cached_blocks(table.tablespace) >= blocks))
}

/// Returns the number of a table's rows and the sum of their hashes, read through the cache.
fn sum_of(instance: &Instance, session: &Session, table: &Table) -> Result<(u64, u64), EngineError> {
    let (mut count, mut sum) = (0, 0_u64);
    let (operation, granules) = (instance.operation(), Granules::new(table));
    scan::scan_conventional(instance, session, &operation, &granules, |row, id| {
        let end =
            columns(row).end().map_err(|error| EngineError::BadRow { row: id, why: error.to_string() })?;
        (count, sum) = (count + 1, sum.wrapping_add(row_hash(&row[..end])));
        Ok(())
    })?;
    Ok((count, sum))
}
