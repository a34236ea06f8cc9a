//! Producer: some columns of a wide table go by direct path into a new or an existing table, as
//! `INSERT /*+ APPEND */ ... SELECT` does.
//!
//! The source is read directly from disk by the servers of a parallel scan. Either each of them
//! loads the rows that it scans, or one session loads the rows of all: the usual trap of a
//! statement whose scan is parallel and whose load is not. Waits and rows by session show which it
//! was.
//!
//! Every run starts in the state that [`start`] prepares. The new rows are read back and compared
//! with those of the generator.

use super::scan::{Asked, require_same};
use super::{Execution, Place, sizing, start};
use crate::evidence::{self, CopyDone, Done, Measured};
use crate::place::Room;
use plumb_engine::check::CheckLine;
use plumb_engine::instance::InitialSizes;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{self, LoadTarget};
use plumb_engine::transaction::Logging;
use plumb_engine::transaction::check::row_hash;
use plumb_engine::view::copy::{self, CopySpec, LoadDegree};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::totals::{self, Checksum, Totals, TotalsSpec};
use plumb_engine::view::{ExtentShare, TableView};
use plumb_engine::{EngineError, Settings, drop as dropping};
use plumb_events::{Phase, Role, Session, clock};
use plumb_study::Stage;
use plumb_types::{ColumnType, RowBatch, RowSource, columns};
use plumb_units::{Bytes, RowCount};
use plumb_workload::specification::PRODUCER;
use plumb_workload::{SalesSpec, WideTable, Work, Workload};

/// Name of the table that gets the rows.
const TABLE: &str = "PRODUCT";
/// Rows that an existing table has: those of one store in fifty.
const OLD_ROWS: &str = "store_id <= 40";
/// Bytes of a row with its slot, and a few for the end of a block.
const ROW_BYTES: u64 = 152;

pub(super) struct Producer;

impl Execution for Producer {
    fn workload(&self) -> &'static Workload {
        &PRODUCER
    }

    fn logs(&self) -> bool {
        true
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let log = sizing::of_log(settings);
        let slack = sizing::of_sales(1, settings).users.0;
        // The target has at most all columns, and a fiftieth of the rows before.
        let tables = work.rows().saturating_mul(ROW_BYTES).saturating_mul(2).saturating_add(3 * slack);
        let users = Bytes(tables.saturating_add(tables / 16));
        Room {
            tablespaces: InitialSizes { users, temp: Bytes(1), indx: Bytes(1) },
            beside: InitialSizes { users: Bytes(log), ..InitialSizes::NONE },
        }
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let (instance, work) = (place.instance, place.work);
        Asked::of(work, rows(work).schema())?;
        place.observer.stage(&Stage::Load { recorder: &instance.recorder, rows: work.rows() });
        load::load(instance, PRODUCER.data, &rows(work))?;
        place.transactions().map(|_| ())
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, work) = (place.instance, place.work);
        let session = instance.recorder.session(Role::LoadCoordinator);
        let transactions = place.transactions()?;
        let view = TableView::open(instance, None, &session, PRODUCER.data)?;
        let asked = Asked::of(work, view.schema())?;
        let load = if work.value("load") == Some(1) { LoadDegree::Parallel } else { LoadDegree::Serial };
        let logging = if work.value("logging") == Some(1) { Logging::NoLogging } else { Logging::Logging };
        let log = transactions.log_of_load(logging);
        let target = LoadTarget { table: TABLE, tablespace: Purpose::Users, log };
        let some = Predicate::parse(OLD_ROWS, view.schema())?;
        let spec = |predicate| CopySpec { columns: &asked.columns, predicate, load, target };
        let old = match is_existing(work) {
            false => 0,
            true => copy::copy(instance, &session, &view, spec(Some(&some)))?.row_count,
        };
        place.observer.stage(&Stage::Load { recorder: &instance.recorder, rows: work.rows() });
        let start = start::reach(place, &session)?;
        evidence::around_logged(instance, place.devices, transactions.log(), Some(start), || {
            let make = || copy::copy(instance, &session, &view, spec(asked.predicate.as_ref()));
            let begin = clock::now();
            let loaded = place.watched(transactions, make)?;
            instance.recorder.phase(Phase::TableCopy, begin, loaded.row_count);
            let done = CopyDone {
                load,
                logging,
                logged: log.is_some(),
                old,
                block_bytes: instance.tablespace(view.tablespace()).block_size.bytes() as u64,
                source_blocks: view.block_count(ExtentShare::ALL),
                loaded,
            };
            Ok(Done { copy: Some(done), ..Done::default() })
        })
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        let (instance, work) = (place.instance, place.work);
        place.observer.stage(&Stage::Verify { recorder: &instance.recorder, blocks: 0 });
        let begin = clock::now();
        let session = instance.recorder.session(Role::Check);
        let (names, found) = totals_of(place, &session)?;
        let expected = expected(work)?;
        instance.recorder.phase(Phase::Verify, begin, found.row_count);
        require_same(&names, &found, &expected)?;
        let detail = format!(
            "{} as projected, with the sums of {} columns; the sums of their CRC-64 are {:x}",
            RowCount(found.row_count),
            names.len(),
            found.row_sum
        );
        let elapsed = clock::now().saturating_sub(begin);
        Ok(vec![CheckLine { name: "new rows = projected rows".to_string(), detail, elapsed }])
    }

    fn undo(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let exists = place.instance.catalog().tables.iter().any(|table| table.name == TABLE);
        if exists { dropping::drop_named(place.instance, TABLE).map(|_| ()) } else { Ok(()) }
    }
}

fn is_existing(work: &Work) -> bool {
    work.value("into") == Some(1)
}

fn rows(work: &Work) -> WideTable {
    WideTable::new(SalesSpec { rows: work.rows(), seed: work.seed() })
}

/// Scans the new table: its NUMBER columns and all of its rows.
fn totals_of(place: &Place<'_>, session: &Session) -> Result<(Vec<String>, Totals), EngineError> {
    let view = TableView::open(place.instance, None, session, TABLE)?;
    let all = view.schema().columns.iter().enumerate();
    let numbers = all.filter(|(_, column)| matches!(column.column_type, ColumnType::Number { .. }));
    let (columns, names): (Vec<usize>, Vec<String>) =
        numbers.map(|(at, column)| (at, column.name.clone())).unzip();
    let spec =
        TotalsSpec { columns: &columns, predicate: None, checksum: Checksum::Taken, share: ExtentShare::ALL };
    Ok((names, totals::totals(session, &view, spec)?))
}

/// Adds the rows that the table must have, from the generator: the projected ones, and the old ones
/// of an existing table.
fn expected(work: &Work) -> Result<Totals, EngineError> {
    let source = rows(work);
    let asked = Asked::of(work, source.schema())?;
    let old = is_existing(work).then(|| Predicate::parse(OLD_ROWS, source.schema())).transpose()?;
    let types: Vec<ColumnType> = source.schema().columns.iter().map(|column| column.column_type).collect();
    let is_number = |place: &usize| matches!(types[*place], ColumnType::Number { .. });
    let numbers = asked.columns.iter().filter(|place| is_number(place)).count();
    let bad = |why: String| EngineError::Verification {
        what: "a generated row".to_string(),
        found: why,
        expected: "a row of the wide sales".to_string(),
    };
    let (mut totals, mut made, mut batch) = (Totals::of_none(numbers), RowBatch::new(), RowBatch::new());
    while source.next_batch(&mut batch).map_err(EngineError::Source)? {
        for row in batch.iter() {
            let holds = |condition: Option<&Predicate>, without: bool| {
                condition.map_or(Ok(without), |condition| condition.holds(row))
            };
            let is_new = holds(asked.predicate.as_ref(), true).map_err(|error| bad(error.to_string()))?;
            let is_old = holds(old.as_ref(), false).map_err(|error| bad(error.to_string()))?;
            let times = u64::from(is_new) + u64::from(is_old);
            if times == 0 {
                continue;
            }
            let values: Vec<Option<&[u8]>> = columns(row).collect();
            made.clear();
            made.begin_row(asked.columns.len() as u8);
            for place in &asked.columns {
                match values[*place] {
                    Some(value) => made.push_bytes(value),
                    None => made.push_null(),
                }
            }
            made.end_row();
            totals.row_count += times;
            totals.row_sum = totals.row_sum.wrapping_add(row_hash(made.row(0)).wrapping_mul(times));
            let numbers = asked.columns.iter().filter(|place| is_number(place));
            for (place, sum) in numbers.zip(&mut totals.sums) {
                for value in std::iter::repeat_n(values[*place], times as usize).flatten() {
                    sum.add(value).map_err(|error| bad(error.to_string()))?;
                }
            }
        }
    }
    Ok(totals)
}
