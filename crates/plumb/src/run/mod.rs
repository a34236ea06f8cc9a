//! `plumb run`: a workload from nothing to its report.

mod sizing;

use crate::arguments::Run;
use crate::assemble::{self, Story};
use crate::database::{Places, Temporary};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::measure::{self, Measured};
use crate::outcome::Outcome;
use crate::progress::{Audience, Watch};
use crate::{bundle, output, settings};
use plumb_engine::check::{self, CheckLine};
use plumb_engine::index::build::IndexSpec;
use plumb_engine::table::load;
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::clock;
use plumb_io::device::DeviceDescription;
use plumb_report::{ReportContext, RunState, summary, text};
use plumb_workload::{SalesSpec, SalesTable};
use std::path::{Path, PathBuf};

/// The workload's name, in titles and paths.
const LARGE_SORT: &str = "large-sort";
/// The sales table.
const TABLE: &str = "SALES";
/// The index that the workload builds.
const INDEX: &str = "SALES_STORE_PROD";
/// Its key.
const KEY: [&str; 2] = ["STORE_ID", "PROD_ID"];

/// Runs the workload.
///
/// # Errors
/// When it cannot run to its end. A failed verification is no error but an outcome.
pub fn run(arguments: &Run) -> Result<Outcome, Failure> {
    let settings = settings::parse(&arguments.set)?;
    let places = places(arguments);
    let devices = places.describe()?;
    let bundle = bundle_directory(arguments);
    bundle.as_deref().map_or(Ok(()), bundle::require_writable)?;
    let interrupt = Interrupt::install()?;
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });

    let mut database = make_database(arguments, &places, settings, &interrupt, &watch)?;
    let begin = clock::now();
    let source = load_table(database.instance(), arguments, &watch)?;
    let calibrated = assemble::calibrate(database.instance())?;
    let measured = build_index(database.instance(), &devices, arguments.rows, &watch)?;
    let checks = verify(database.instance(), &watch)?;
    drop(watch);

    let story = Story {
        workload: LARGE_SORT,
        seed: source.spec().seed,
        table: TABLE,
        begin,
        instance: database.instance(),
        devices: &devices,
        measured: &measured,
        checks: &checks,
        calibrated: calibrated.as_ref(),
        files_presized: true,
    };
    let context = assemble::context(&story);
    if arguments.keep {
        output::remark(&format!("the database stays in {}\n", database.keep(&interrupt).display()));
    }
    drop(database);
    show(arguments, bundle.as_deref(), &context)?;
    Ok(outcome(&context))
}

/// Where the bundle goes, if there is to be one.
fn bundle_directory(arguments: &Run) -> Option<PathBuf> {
    let default = || (!arguments.json).then(|| bundle::default_directory(LARGE_SORT));
    arguments.bundle.clone().or_else(default)
}

fn places(arguments: &Run) -> Places<'_> {
    Places {
        home: &arguments.path,
        users: &arguments.data_path,
        temp: &arguments.temp_path,
        indx: &arguments.index_path,
    }
}

fn make_database(
    arguments: &Run,
    places: &Places<'_>,
    settings: Settings,
    interrupt: &Interrupt,
    watch: &Watch,
) -> Result<Temporary, Failure> {
    let sizes = sizing::sizes(arguments.rows, &settings);
    let total = sizes.users.0.saturating_add(sizes.temp.0).saturating_add(sizes.indx.0);
    Temporary::create(places, settings, sizes, interrupt, |directories| watch.files(directories, total))
}

fn load_table(instance: &Instance, arguments: &Run, watch: &Watch) -> Result<SalesTable, EngineError> {
    let source = SalesTable::new(SalesSpec { rows: arguments.rows, seed: arguments.seed });
    watch.load(instance, arguments.rows);
    load::load(instance, TABLE, &source)?;
    Ok(source)
}

fn build_index(
    instance: &Instance,
    devices: &[DeviceDescription],
    rows: u64,
    watch: &Watch,
) -> Result<Measured, EngineError> {
    let columns = KEY.map(|name| (name.to_string(), false)).to_vec();
    let spec = IndexSpec { name: INDEX.to_string(), table: TABLE.to_string(), columns };
    measure::make_cold(instance);
    watch.build(instance, rows);
    measure::build(instance, &spec, devices, watch)
}

/// The checks that passed, or the one that did not. What is no finding about
/// the data (an interruption, a device that fails) stays an error.
pub fn verify(
    instance: &Instance,
    watch: &Watch,
) -> Result<Result<Vec<CheckLine>, EngineError>, EngineError> {
    watch.verify(instance, blocks_in_use(instance));
    match check::check_table(instance, TABLE) {
        Err(error) if !is_finding(&error) => Err(error),
        checked => Ok(checked),
    }
}

/// Whether an error of a check says something about the data.
#[must_use]
pub fn is_finding(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Verification { .. } | EngineError::CorruptBlock { .. } | EngineError::BadRow { .. }
    )
}

/// Blocks of all tables and indexes: what a check reads, and the table once more for its keys.
#[must_use]
pub fn blocks_in_use(instance: &Instance) -> u64 {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().flat_map(|table| &table.extents);
    let indexes = catalog.indexes.iter().flat_map(|index| index.leaves.iter().chain(&index.branches));
    tables.chain(indexes).map(|extent| u64::from(extent.used)).sum()
}

fn show(arguments: &Run, bundle: Option<&Path>, context: &ReportContext) -> Result<(), Failure> {
    if arguments.json {
        output::print(&(context.to_json()? + "\n"))?;
        return bundle.map_or(Ok(()), |directory| bundle::write(directory, context).map(|_| ()));
    }
    bundle::show(&(text::render(context) + "\n" + &summary::render(context)), bundle, context)
}

/// What the exit code is to say of a report.
#[must_use]
pub fn outcome(context: &ReportContext) -> Outcome {
    match context.validity().state {
        RunState::Invalid => Outcome::Invalid,
        RunState::Valid | RunState::Unverified => Outcome::Fine,
    }
}
