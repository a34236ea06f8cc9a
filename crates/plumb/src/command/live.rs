//! Tables that transactions change: their part of `plumb load --conventional`,
//! `plumb index` and `plumb check`.

use super::check::{Report, Wrong, damaged};
use super::index::{devices, under_tables};
use super::load::{as_json, audience, skipped, tablespace};
use crate::arguments::{Check, Index, Load};
use crate::database::{self, Target};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::progress::Watch;
use crate::{bundle, command_line, run, settings, types};
use plumb_engine::storage::control::stored_name;
use plumb_engine::transaction::import::{ImportSpec, Imported, import as import_rows};
use plumb_engine::transaction::{IndexDefinition, Transactions};
use plumb_engine::{EngineError, Instance};
use plumb_events::{Role, Session, clock};
use plumb_host::device::DeviceDescription;
use plumb_run::evidence::{self, Asked, Done, Evidence, Measured};
use plumb_run::workload::redo;
use plumb_run::{archiving, assemble, calibration_store};
use plumb_study::Stage;
use plumb_study::bundle::Reservation;
use plumb_types::RowSource;
use plumb_units::{Bytes, Nanos, RowCount};
use plumb_workload::CsvFile;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of an array insert.
const ARRAY_BYTES: usize = 64 * Bytes::K as usize;
/// Rows of a transaction by default.
const COMMIT_EVERY: u64 = 1000;

/// Fails on more sessions than the log takes, before a large file is read.
pub fn require_sessions(arguments: &Load, target: &Target<'_>) -> Result<(), EngineError> {
    let largest = target.largest_block();
    redo::require_sessions(sessions(arguments), arguments.block_size.map_or(largest, |own| own.max(largest)))
}

fn sessions(arguments: &Load) -> u64 {
    arguments.sessions.unwrap_or(1)
}

/// Inserts the rows of a file into a new table, and verifies them. Committed rows stay in any case.
pub fn import(
    arguments: &Load,
    target: &mut Target<'_>,
    (source, file_bytes): (&CsvFile, u64),
    bundle: Option<&Reservation>,
    interrupt: &Interrupt,
) -> Result<Outcome, Failure> {
    target.make()?;
    let instance = target.instance();
    let devices = devices(instance)?;
    let limits = calibration_store::limits(&[&arguments.path], &under_tables(instance, &devices));
    let session = instance.recorder.session(Role::LoadCoordinator);
    let tablespace = tablespace(instance, arguments.block_size)?;
    let transactions = database::open_transactions(instance, &session)?;
    transactions.create_table_in(&session, (&arguments.table, tablespace), source.schema(), &[])?;
    let home = target.keep();
    let table = stored_name(&arguments.table);
    let committed = Arc::new(AtomicU64::new(0));
    interrupt.say_as_it_is(interrupted(arguments, home, Arc::clone(&committed)));
    let spec = ImportSpec {
        table: &table,
        array_bytes: ARRAY_BYTES,
        rows_per_commit: Some(arguments.commit_every.unwrap_or(COMMIT_EVERY)),
        sessions: sessions(arguments) as usize,
        committed: &committed,
    };
    let watch = Watch::start(audience(arguments));
    watch.stage(&Stage::Import { recorder: &instance.recorder, rows: source.row_count().unwrap_or(0) });
    let begin = clock::now();
    let (imported, measured) = measured(&transactions, &session, source, &spec, &devices, &watch);
    let measured = measured.map_err(|error| ended_early(&error, &imported, &table))?;
    let judged = redo::judge(&transactions, &table, (imported.row_count, imported.row_sum));
    drop(watch);
    // The next opening has nothing to recover.
    transactions.checkpoint(&session)?;
    let asked = Asked {
        workload: "load".to_string(),
        data: table.clone(),
        measures: "import",
        command_line: command_line::typed(),
        ..Asked::of_own_data(begin)
    };
    let checks = evidence::checks(judged, "the result of the import");
    let elapsed = measured.period.elapsed;
    let seen = Evidence::of(instance, asked, measured, &devices, checks).with_limits(None, limits);
    let record = assemble::record(&seen);
    let document = plumb_pages::run::document(&record);
    if arguments.json {
        let own = json!({ "transactions": imported.commit_count, "checks": record.checks });
        let facts = (imported.row_count, imported.row_bytes, elapsed);
        output::print(&as_json(arguments, home, (source, file_bytes), facts, own))?;
        bundle::keep(bundle, &record, &document)?;
        return Ok(run::outcome(&record));
    }
    let report = if arguments.report { output::report(&document) + "\n" } else { String::new() };
    bundle::show(&(report + &output::summary(&document)), bundle, &record, &document)?;
    output::print(&(done(&table, home, &imported, elapsed) + &skipped(source.skipped_lines())))?;
    Ok(run::outcome(&record))
}

/// Measures the import; with an error also returns the committed rows.
fn measured(
    transactions: &Transactions<'_>,
    session: &Session,
    source: &CsvFile,
    spec: &ImportSpec<'_>,
    devices: &[DeviceDescription],
    watch: &Watch,
) -> (Imported, Result<Measured, EngineError>) {
    let mut imported = Imported::default();
    let log = transactions.log();
    let measured = evidence::around_logged(transactions.instance(), devices, log, None, || {
        let ended;
        (imported, ended) = archiving::watched(Some(transactions), &|why| watch.line(why), || {
            import_rows(transactions, session, source, spec)
        });
        ended?;
        Ok(Done { import: Some(redo::done(spec, &imported)), ..Done::default() })
    });
    (imported, measured)
}

fn done(table: &str, home: &Path, imported: &Imported, elapsed: Nanos) -> String {
    let (home, seconds) = (home.display(), elapsed.seconds());
    format!(
        "table {table} in {home}: {}, {} in {}, {seconds:.2} s, {} rows/s\n",
        output::counted(imported.row_count, "row"),
        Bytes(imported.row_bytes),
        output::counted(imported.commit_count, "transaction"),
        RowCount((imported.row_count as f64 / seconds.max(1e-9)) as u64),
    )
}

/// Returns the message for an engine that does not stop in time, as while it waits for the
/// archiver. It counts the rows committed so far.
fn interrupted(
    arguments: &Load,
    home: &Path,
    committed: Arc<AtomicU64>,
) -> impl Fn() -> String + Send + 'static {
    let (table, path) = (stored_name(&arguments.table), arguments.path.clone());
    let home = home.display().to_string();
    move || {
        let stays = staying(committed.load(Relaxed), &table);
        let what = format!("interrupted: at least {stays} of {home}; `plumb drop {table}` removes them");
        command_line::with_path(&what, &path)
    }
}

/// Returns the error of an import, with the rows that it left.
fn ended_early(error: &EngineError, imported: &Imported, table: &str) -> Failure {
    let why = match error {
        EngineError::Interrupted => "interrupted:".to_string(),
        error => format!("{error};"),
    };
    let in_doubt = match imported.doubtful_row_count {
        0 => String::new(),
        rows => {
            format!("up to {} more, whose commit failed, may be there once it is recovered; ", RowCount(rows))
        }
    };
    let stays = staying(imported.row_count, table);
    Failure::run(format!("{why} {stays}; {in_doubt}`plumb drop {table}` removes them"))
}

fn staying(rows: u64, table: &str) -> String {
    let verbs = if rows == 1 { "was committed and stays" } else { "were committed and stay" };
    format!("{} {verbs} in table {table}", output::counted(rows, "row"))
}

/// Makes an index on a table that may have rows. Fails if a name is taken, a column is missing, or
/// two rows have a key that must be unique.
pub fn index(
    instance: &Instance,
    arguments: &Index,
    columns: Vec<(String, bool)>,
) -> Result<Outcome, Failure> {
    let of_builds = [("--report", arguments.report), ("--bundle", arguments.bundle.is_some())];
    if let Some((option, _)) = of_builds.into_iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{option}: transactions change table {}, and its index is made by them, without a report; leave it out",
            arguments.table
        )));
    }
    let session = instance.recorder.session(Role::User);
    let transactions = database::open_transactions(instance, &session)?;
    let name = arguments.name.clone().unwrap_or_else(|| types::index_name(&arguments.table, &columns));
    let begin = clock::now();
    let definition = IndexDefinition { name, columns, unique: arguments.unique };
    archiving::watched(Some(&transactions), &|why| output::remark(&format!("{why}\n")), || {
        transactions.create_index(&session, &arguments.table, &definition)
    })?;
    transactions.checkpoint(&session)?;
    let (table, name) = (&arguments.table, stored_name(&definition.name));
    let seconds = clock::now().saturating_sub(begin).seconds();
    let made = format!("index {name}: made in {seconds:.2} s; run `plumb check {table}` to verify it\n");
    output::print(&command_line::with_path(&made, &arguments.path))?;
    Ok(Outcome::Fine)
}

/// Checks tables after recovery from a crash, and notes damage.
pub fn check(
    arguments: &Check,
    tables: &[String],
    interrupt: &Interrupt,
    report: &mut Report,
    wrong: &mut Wrong,
) -> Result<(), Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    let instance = database::open(&arguments.path, settings, interrupt)?;
    let session = instance.recorder.session(Role::Check);
    let transactions = database::open_transactions(&instance, &session)?;
    for table in tables {
        let begin = clock::now();
        let found = transactions.check(&session, table);
        let text = match &found {
            Ok(found) => {
                let seconds = format!("{:.2} s", clock::now().saturating_sub(begin).seconds());
                let entries = RowCount(found.entry_count);
                let chained = match found.chained_row_count {
                    0 => String::new(),
                    chained => format!(", {} of them in several blocks", RowCount(chained)),
                };
                aligned(&[
                    vec![
                        "  rows".to_string(),
                        seconds,
                        format!("{} can be read{chained}", RowCount(found.row_count)),
                    ],
                    vec![
                        "  indexes = table".to_string(),
                        String::new(),
                        format!("{entries} entries in order, each with the key of its row"),
                    ],
                    vec![
                        "  versions".to_string(),
                        String::new(),
                        format!("{} deleted rows and entries keep their room", RowCount(found.version_count)),
                    ],
                ])
            }
            Err(error) => format!("  {} {error}\n", if error.is_damage() { "DAMAGED" } else { "UNREACHED" }),
        };
        let damage = match &found {
            Err(error) if error.is_damage() => transactions.damage(&session, table)?,
            _ => Vec::new(),
        };
        let text = if damage.is_empty() { text } else { damage.iter().map(damaged).collect() };
        report.live_table(table, &text, found.as_ref(), &damage)?;
        match &found {
            Err(error) if damage.is_empty() => wrong.note(error),
            _ => damage.iter().for_each(|damage| wrong.note_segment(table, damage)),
        }
    }
    // The next opening has nothing to recover.
    if wrong.is_nothing() { Ok(transactions.checkpoint(&session)?) } else { Ok(()) }
}
