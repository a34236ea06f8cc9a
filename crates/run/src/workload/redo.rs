//! Redo: page views are imported by array inserts with a commit after each, as an import utility
//! does.
//!
//! `buffer` is the length of an array: 1K makes many small transactions, 16M few large ones. The
//! sessions share the rows. As with such a utility, the index is made after the rows, and is not
//! part of the measured work. Then rows and index are verified.
//!
//! The log is made with the database, so that its zeros are not written during the import. Every
//! import starts in the state that [`start`] prepares. Table and rows are dropped after
//! verification, and a checkpoint ends it.

use super::{Execution, Place, sizing, start};
use crate::evidence::{self, Done, ImportDone, Measured};
use crate::place::Room;
use plumb_engine::check::CheckLine;
use plumb_engine::instance::InitialSizes;
use plumb_engine::redo::LogOptions;
use plumb_engine::transaction::check::row_hash;
use plumb_engine::transaction::import::{ImportSpec, Imported, import};
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Setting, Settings};
use plumb_events::{Phase, Role, clock};
use plumb_study::Stage;
use plumb_types::{RowBatch, RowSource};
use plumb_units::{BlockSize, Bytes, Nanos, RowCount};
use plumb_workload::specification::REDO;
use plumb_workload::{PagesSpec, PagesTable, Work, Workload};
use std::sync::atomic::AtomicU64;

/// Name of the index on the rows.
const INDEX: &str = "PAGE_VIEWS_PAGE";
const KEY: [&str; 2] = ["PAGE", "VIEW_DATE"];

pub(super) struct Redo;

impl Execution for Redo {
    fn workload(&self) -> &'static Workload {
        &REDO
    }

    fn logs(&self) -> bool {
        true
    }

    /// Sets a log with room for the transactions of all sessions at once;
    /// a checkpoint limits their number.
    fn apply_defaults(&self, work: &Work, settings: &mut Settings) -> Result<(), EngineError> {
        require_sessions(sessions(work), settings.block_size())?;
        let asked = [Setting::LogFileSize, Setting::LogFileGroups];
        let size = sizing::log_file_of_import(buffer(work), sessions(work), settings);
        if size <= settings.number(asked[0]) || asked.iter().any(|setting| settings.is_explicit(*setting)) {
            return Ok(());
        }
        require_buffer(work, settings)?;
        settings.set("log_file_size", &Bytes(size).as_setting(), REDO.name)
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let log = sizing::of_log(settings);
        Room {
            tablespaces: sizing::of_import(work.rows(), sessions(work), settings),
            beside: InitialSizes { users: Bytes(log), ..InitialSizes::NONE },
        }
    }

    /// Makes the log; the rows come with the work.
    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        place.transactions().map(|_| ())
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, work) = (place.instance, place.work);
        let transactions = place.transactions()?;
        let session = instance.recorder.session(Role::User);
        let table = rows(work);
        transactions.create_table(&session, REDO.data, table.schema(), &[])?;
        let spec = ImportSpec {
            table: REDO.data,
            array_bytes: buffer(work) as usize,
            rows_per_commit: None,
            sessions: sessions(work) as usize,
            committed: &AtomicU64::new(0),
        };
        place.observer.stage(&Stage::Import { recorder: &instance.recorder, rows: work.rows() });
        let start = start::reach(place, &session)?;
        let log = transactions.log();
        let measured = evidence::around_logged(instance, place.devices, log, Some(start), || {
            let imported = place.watched(transactions, || {
                let (imported, ended) = import(transactions, &session, &table, &spec);
                ended.map(|()| imported)
            })?;
            Ok(Done { import: Some(done(&spec, &imported)), ..Done::default() })
        })?;
        let begin = clock::now();
        let columns = KEY.map(|name| (name.to_string(), false)).to_vec();
        let index = IndexDefinition { name: INDEX.to_string(), columns, unique: false };
        transactions.create_index(&session, REDO.data, &index)?;
        instance.recorder.phase(Phase::IndexCreation, begin, work.rows());
        Ok(measured)
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        place.observer.stage(&Stage::Verify { recorder: &place.instance.recorder, blocks: 0 });
        judge(place.transactions()?, REDO.data, sum_of(&rows(place.work))?)
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        if place.instance.catalog().live_tables.iter().all(|table| table.name != REDO.data) {
            return Ok(());
        }
        let session = place.instance.recorder.session(Role::Drop);
        let transactions = place.transactions()?;
        transactions.drop_named(&session, REDO.data)?;
        transactions.checkpoint(&session)
    }
}

fn buffer(work: &Work) -> u64 {
    work.value("buffer").unwrap_or(1)
}

fn sessions(work: &Work) -> u64 {
    work.value("sessions").unwrap_or(1)
}

fn rows(work: &Work) -> PagesTable {
    PagesTable::new(PagesSpec { rows: work.rows(), seed: work.seed() })
}

/// Rejects more sessions than a checkpoint can list transactions,
/// given the database's largest blocks.
pub fn require_sessions(sessions: u64, largest: BlockSize) -> Result<(), EngineError> {
    let most = LogOptions::transactions_max(largest.bytes());
    if sessions as usize <= most {
        return Ok(());
    }
    Err(EngineError::Contradiction {
        first: format!("sessions={sessions}"),
        second: format!("at most {most} transactions"),
        why: "each session has one; ask for fewer, or for larger blocks".to_string(),
    })
}

/// Rejects an array size whose transactions exceed the largest possible log.
fn require_buffer(work: &Work, settings: &Settings) -> Result<(), EngineError> {
    let most = sizing::buffer_of_import_max(sessions(work), settings);
    if buffer(work) <= most {
        return Ok(());
    }
    Err(EngineError::Contradiction {
        first: format!("buffer={}", Bytes(buffer(work)).as_setting()),
        second: format!("{} a session at most", Bytes(most).as_setting()),
        why: format!(
            "the transactions of all {} sessions at once must fit log files of the largest size; give a smaller buffer, or fewer sessions",
            sessions(work)
        ),
    })
}

/// Returns the requested import and its counts.
pub fn done(spec: &ImportSpec<'_>, imported: &Imported) -> ImportDone {
    ImportDone {
        array_bytes: spec.array_bytes as u64,
        rows_per_commit: spec.rows_per_commit,
        sessions: spec.sessions as u64,
        row_count: imported.row_count,
        row_bytes: imported.row_bytes,
        commit_count: imported.commit_count,
    }
}

/// Verifies a table against the number of its rows and the sum of their hashes, and its indexes
/// against it. Fails on the first difference.
pub fn judge(
    transactions: &Transactions<'_>,
    table: &str,
    (row_count, row_sum): (u64, u64),
) -> Result<Vec<CheckLine>, EngineError> {
    let recorder = &transactions.instance().recorder;
    let begin = clock::now();
    let found = transactions.check(&recorder.session(Role::Check), table)?;
    let elapsed = clock::now().saturating_sub(begin);
    recorder.phase(Phase::Verify, begin, row_count);
    let require = |what: &str, found: String, expected: String| match found == expected {
        true => Ok(()),
        false => Err(EngineError::Verification { what: format!("{what} of table {table}"), found, expected }),
    };
    require("rows", found.row_count.to_string(), row_count.to_string())?;
    require("sum of the rows", format!("{:x}", found.row_sum), format!("{row_sum:x}"))?;
    let rows = RowCount(row_count);
    let mut lines = vec![
        ("all rows are there", format!("{rows} of the source and of the table"), elapsed),
        ("same rows", format!("the sums of their CRC-64 are {row_sum:x} in both"), Nanos(0)),
    ];
    if found.entry_count > 0 {
        let entries = RowCount(found.entry_count);
        let detail = format!("{entries} entries in order, each with the key of its row and a way to it");
        lines.push(("indexes = table", detail, Nanos(0)));
    }
    let line = |(name, detail, elapsed): (&str, _, _)| CheckLine { name: name.to_string(), detail, elapsed };
    Ok(lines.into_iter().map(line).collect())
}

/// Returns the number of a source's rows, and the sum of their hashes.
fn sum_of(source: &dyn RowSource) -> Result<(u64, u64), EngineError> {
    let (mut count, mut sum) = (0, 0_u64);
    let mut batch = RowBatch::new();
    while source.next_batch(&mut batch).map_err(EngineError::Source)? {
        count += batch.len() as u64;
        sum = batch.iter().fold(sum, |sum, row| sum.wrapping_add(row_hash(row)));
    }
    Ok((count, sum))
}
