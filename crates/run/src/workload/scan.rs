//! Scan: streams read the whole sales table at once, count the rows that satisfy a condition, and
//! add columns.
//!
//! Every stream is a session with servers of its own, which read all extents of the table directly.
//! The table is filled by direct path, or by transactions; a scan sees it through the same view
//! ([`plumb_engine::view`]).
//!
//! The verification makes the rows again from their seed, and adds them with decoded values. It
//! shares neither blocks nor sums with the scans. One more scan, not measured, compares the
//! checksum of all rows that satisfy the condition.

use super::{Execution, Place, sizing};
use crate::evidence::{self, Done, InstanceDone, Measured, ScanDone, StreamDone};
use crate::instances::{self, Together};
use crate::place::Room;
use plumb_engine::check::CheckLine;
use plumb_engine::instance::InitialSizes;
use plumb_engine::table::load;
use plumb_engine::transaction::check::row_hash;
use plumb_engine::transaction::import::{ImportSpec, import};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::totals::{self, Checksum, Totals, TotalsSpec};
use plumb_engine::view::{ExtentShare, TableView};
use plumb_engine::{EngineError, Settings};
use plumb_events::{Event, Phase, Role, Session, clock};
use plumb_study::Stage;
use plumb_types::{ColumnType, RowBatch, RowSource, Schema, Value, columns};
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::specification::SCAN;
use plumb_workload::{SalesSpec, SalesTable, Work, Workload};
use std::sync::atomic::AtomicU64;

/// Bytes of an array insert of a conventional load.
const ARRAY_BYTES: usize = 64 << 10;
/// Sessions of a conventional load.
const LOAD_SESSIONS: usize = 2;

pub(super) struct Scan;

impl Execution for Scan {
    fn workload(&self) -> &'static Workload {
        &SCAN
    }

    fn room(&self, work: &Work, settings: &Settings) -> Room {
        let direct = sizing::of_sales(work.rows(), settings).users;
        // Rows of transactions have a version each, and a tenth of a block stays free.
        let users = if is_conventional(work) { Bytes(direct.0.saturating_mul(3) / 2) } else { direct };
        let log = sizing::of_log(settings);
        let beside = if is_conventional(work) { log } else { 0 };
        Room {
            tablespaces: InitialSizes { users, temp: Bytes(1), indx: Bytes(1) },
            beside: InitialSizes { users: Bytes(beside), ..InitialSizes::NONE },
        }
    }

    fn load(&self, place: &Place<'_>) -> Result<(), EngineError> {
        let (instance, work) = (place.instance, place.work);
        // A wrong column or condition is found before rows are loaded.
        Asked::of(work, rows(work).schema())?;
        let stage = Stage::Load { recorder: &instance.recorder, rows: work.rows() };
        if !is_conventional(work) {
            place.observer.stage(&stage);
            return load::load(instance, SCAN.data, &rows(work)).map(|_| ());
        }
        let session = instance.recorder.session(Role::User);
        let (transactions, source) = (place.transactions()?, rows(work));
        transactions.create_table(&session, SCAN.data, source.schema(), &[])?;
        place.observer.stage(&Stage::Import { recorder: &instance.recorder, rows: work.rows() });
        let spec = ImportSpec {
            table: SCAN.data,
            array_bytes: ARRAY_BYTES,
            rows_per_commit: None,
            sessions: LOAD_SESSIONS,
            committed: &AtomicU64::new(0),
        };
        import(transactions, &session, &source, &spec).1?;
        transactions.checkpoint(&session)
    }

    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError> {
        let (instance, work) = (place.instance, place.work);
        let streams = work.value("streams").unwrap_or(1) as usize;
        place.observer.stage(&Stage::Scan {
            recorder: &instance.recorder,
            rows: work.rows().saturating_mul(streams as u64),
        });
        let session = instance.recorder.session(Role::Coordinator);
        let transactions = if is_conventional(work) { Some(place.transactions()?) } else { None };
        let view = TableView::open(instance, transactions, &session, SCAN.data)?;
        let asked = Asked::of(work, view.schema())?;
        let checksum = if work.value("checksum") == Some(1) { Checksum::Taken } else { Checksum::Skipped };
        let streams = Streams { count: streams, checksum, asked: &asked, view: &view };
        let instances = work.value("instances").unwrap_or(1) as usize;
        if instances > 1 {
            let scans = instances::Scans {
                table: SCAN.data.to_string(),
                streams: streams.count,
                columns: asked.names.clone(),
                predicate: asked.predicate.as_ref().map(ToString::to_string),
                is_hashed: checksum == Checksum::Taken,
            };
            return instances::scan(instance, &scans, instances, |scan| {
                evidence::around(instance, place.devices, || {
                    // The instances are the servers of this session.
                    let Together { streams: found, instances } =
                        session.wait_long(Event::PxDeqExecuteReply, &mut *scan)?;
                    let done = streams.done(found, instances);
                    Ok((Done { scan: Some(done), ..Done::default() }, Vec::new()))
                })
            });
        }
        let scan = || {
            let scan = streams.done(streams.run(&session)?, Vec::new());
            Ok(Done { scan: Some(scan), ..Done::default() })
        };
        match transactions {
            Some(open) => evidence::around_logged(instance, place.devices, open.log(), None, scan),
            None => evidence::around(instance, place.devices, || Ok((scan()?, Vec::new()))),
        }
    }

    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError> {
        let (instance, work) = (place.instance, place.work);
        place.observer.stage(&Stage::Verify { recorder: &instance.recorder, blocks: 0 });
        let begin = clock::now();
        let session = instance.recorder.session(Role::Check);
        let transactions = if is_conventional(work) { Some(place.transactions()?) } else { None };
        let view = TableView::open(instance, transactions, &session, SCAN.data)?;
        let asked = Asked::of(work, view.schema())?;
        let expected = expected(&rows(work), &asked)?;
        let found = totals::totals(&session, &view, asked.spec(Checksum::Taken))?;
        instance.recorder.phase(Phase::Verify, begin, found.row_count);
        require_same(&asked.names, &found, &expected)?;
        let sums = asked.names.iter().zip(&found.sums).map(|(name, sum)| format!(", {name} {sum}"));
        let detail = format!(
            "{} of {}{}; the sums of their CRC-64 are {:x}",
            RowCount(found.row_count),
            RowCount(work.rows()),
            sums.collect::<String>(),
            found.row_sum
        );
        let elapsed = clock::now().saturating_sub(begin);
        Ok(vec![CheckLine { name: "scan = rows as generated".to_string(), detail, elapsed }])
    }
}

fn is_conventional(work: &Work) -> bool {
    work.value("filled") == Some(1)
}

fn rows(work: &Work) -> SalesTable {
    SalesTable::new(SalesSpec { rows: work.rows(), seed: work.seed() })
}

/// The columns to add and the condition, as positions and encoded values.
pub(super) struct Asked {
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<usize>,
    pub(super) predicate: Option<Predicate>,
}

impl Asked {
    pub(super) fn of(work: &Work, schema: &Schema) -> Result<Asked, EngineError> {
        let text = work.text("columns").unwrap_or_default();
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_uppercase).collect();
        let columns = plumb_engine::view::positions(schema, names.iter().map(String::as_str))?;
        let predicate = work.text("where").map(|text| Predicate::parse(&text, schema)).transpose()?;
        Ok(Asked { names, columns, predicate })
    }

    fn spec(&self, checksum: Checksum) -> TotalsSpec<'_> {
        let predicate = self.predicate.as_ref();
        TotalsSpec { columns: &self.columns, predicate, checksum, share: ExtentShare::ALL }
    }
}

/// Scans of the whole table at once.
struct Streams<'s> {
    count: usize,
    checksum: Checksum,
    asked: &'s Asked,
    view: &'s TableView<'s>,
}

impl Streams<'_> {
    /// Runs the streams in this process; returns the totals and the time of each.
    fn run(&self, coordinator: &Session) -> Result<Vec<(Totals, Nanos)>, EngineError> {
        let spec = self.asked.spec(self.checksum);
        let begin = clock::now();
        let found = instances::streams(coordinator, self.view, self.count, spec)?;
        let elapsed = clock::now().saturating_sub(begin);
        Ok(found.into_iter().map(|totals| (totals, elapsed)).collect())
    }

    fn done(&self, streams: Vec<(Totals, Nanos)>, instances: Vec<InstanceDone>) -> ScanDone {
        let (view, asked) = (self.view, self.asked);
        ScanDone {
            columns: asked.names.clone(),
            predicate: asked.predicate.as_ref().map(ToString::to_string),
            checksum: self.checksum,
            block_count: view.block_count(ExtentShare::ALL),
            block_bytes: view.instance().tablespace(view.tablespace()).block_size.bytes() as u64,
            extents: view.extents().len() as u64,
            streams: streams.into_iter().map(|(totals, elapsed)| StreamDone { totals, elapsed }).collect(),
            instances,
        }
    }
}

/// Adds the rows of the generator by their decoded values.
fn expected(source: &SalesTable, asked: &Asked) -> Result<Totals, EngineError> {
    let types: Vec<ColumnType> = source.schema().columns.iter().map(|column| column.column_type).collect();
    let mut totals = Totals::of_none(asked.columns.len());
    let bad = |why: String| EngineError::Verification {
        what: "a generated row".to_string(),
        found: why,
        expected: "a row of the sales table".to_string(),
    };
    let mut batch = RowBatch::new();
    while source.next_batch(&mut batch).map_err(EngineError::Source)? {
        for row in batch.iter() {
            let holds = asked.predicate.as_ref().map_or(Ok(true), |predicate| predicate.holds(row));
            if !holds.map_err(|error| bad(error.to_string()))? {
                continue;
            }
            totals.row_count += 1;
            totals.row_sum = totals.row_sum.wrapping_add(row_hash(row));
            for (place, sum) in asked.columns.iter().zip(&mut totals.sums) {
                let value = Value::from_encoded(&types[*place], columns(row).nth(*place).flatten());
                if let Value::Number(number) = value.map_err(|error| bad(error.to_string()))? {
                    sum.add(number.as_bytes()).map_err(|error| bad(error.to_string()))?;
                }
            }
        }
    }
    Ok(totals)
}

/// Fails on the first difference of two totals.
pub(super) fn require_same(names: &[String], found: &Totals, expected: &Totals) -> Result<(), EngineError> {
    let differs = |what: String, found: String, expected: String| match found == expected {
        true => Ok(()),
        false => Err(EngineError::Verification { what, found, expected }),
    };
    differs(
        "rows that satisfy the condition".to_string(),
        RowCount(found.row_count).to_string(),
        RowCount(expected.row_count).to_string(),
    )?;
    for (name, (found, expected)) in names.iter().zip(found.sums.iter().zip(&expected.sums)) {
        differs(format!("sum of {name}"), found.to_string(), expected.to_string())?;
    }
    let text = |sum: u64| format!("{sum:x}");
    differs("checksum of the rows".to_string(), text(found.row_sum), text(expected.row_sum))
}
