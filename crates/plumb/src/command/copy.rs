//! `plumb copy`: rows of a table into a new or an existing one.

use crate::arguments::{CopyRows, LoadWay};
use crate::database;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output;
use crate::progress::{Audience, Watch};
use crate::{settings, types};
use plumb_engine::storage::control::stored_name;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::{LoadOutcome, LoadTarget};
use plumb_engine::transaction::{Logging, Transactions};
use plumb_engine::view::copy::{self, CopySpec, LoadDegree};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::{TableView, positions};
use plumb_engine::{EngineError, Instance, Setting};
use plumb_events::{Role, Session, clock};
use plumb_run::archiving;
use plumb_study::Stage;
use plumb_units::{Bytes, Nanos, RowCount};
use serde_json::json;

/// Copies the rows.
///
/// # Errors
/// When there is no such table or column, or the target cannot have the rows; it is then as before.
pub fn run(arguments: &CopyRows) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    super::load::require_name("--to", &arguments.to)?;
    let interrupt = Interrupt::install()?;
    let instance = database::open(&arguments.path, settings, &interrupt)?;
    let session = instance.recorder.session(Role::LoadCoordinator);
    let transactions = open_log(&instance, arguments, &session)?;
    let view = TableView::open(&instance, transactions.as_ref(), &session, &arguments.table)?;
    let columns = match &arguments.columns {
        None => (0..view.schema().columns.len()).collect(),
        Some(text) => {
            let names = types::parse_columns(text)?;
            positions(view.schema(), names.iter().map(|(name, _)| name.as_str()))?
        }
    };
    let predicate = arguments.condition.as_deref().map(|text| Predicate::parse(text, view.schema()));
    let predicate = predicate.transpose()?;
    let logging = if arguments.no_logging { Logging::NoLogging } else { Logging::Logging };
    let log = transactions.as_ref().and_then(|open| open.log_of_load(logging));
    let spec = CopySpec {
        columns: &columns,
        predicate: predicate.as_ref(),
        load: if arguments.load == LoadWay::Serial { LoadDegree::Serial } else { LoadDegree::Parallel },
        target: LoadTarget { table: &arguments.to, tablespace: Purpose::Users, log },
    };
    interrupt.begin();
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });
    watch.stage(&Stage::Scan { recorder: &instance.recorder, rows: 0 });
    let begin = clock::now();
    let copy = || copy::copy(&instance, &session, &view, spec);
    let copied = archiving::watched(transactions.as_ref(), &|why| watch.line(why), copy)?;
    let elapsed = clock::now().saturating_sub(begin);
    drop(watch);
    // The next opening has nothing to recover.
    transactions.iter().try_for_each(|open| open.checkpoint(&session))?;
    output::print(&done(arguments, &instance, &copied, elapsed))?;
    Ok(Outcome::Fine)
}

/// Opens the log if rows of transactions are read, or the load has redo.
fn open_log<'i>(
    instance: &'i Instance,
    arguments: &CopyRows,
    session: &Session,
) -> Result<Option<Transactions<'i>>, EngineError> {
    let is_on = |setting| instance.settings.word(setting) == "on";
    let is_needed = database::is_live(instance, &arguments.table)
        || is_on(Setting::ForceLogging)
        || is_on(Setting::ArchiveLogMode);
    is_needed.then(|| database::open_transactions(instance, session)).transpose()
}

fn done(arguments: &CopyRows, instance: &Instance, copied: &LoadOutcome, elapsed: Nanos) -> String {
    let to = stored_name(&arguments.to);
    let total = instance.catalog().table(&to).map_or(copied.row_count, |table| table.row_count);
    if arguments.json {
        let report = json!({
            "table": to,
            "rows": copied.row_count,
            "rows_in_table": total,
            "row_bytes": copied.row_bytes,
            "blocks": copied.block_count,
            "seconds": elapsed.seconds(),
        });
        return format!("{report:#}\n");
    }
    let rate = copied.row_count as f64 / elapsed.seconds().max(1e-9);
    format!(
        "table {to}: {} copied in {elapsed} ({} rows/s), {} in {}; it has {}\n",
        output::counted(copied.row_count, "row"),
        RowCount(rate as u64),
        Bytes(copied.row_bytes),
        output::counted(copied.block_count, "block"),
        output::counted(total, "row")
    )
}
