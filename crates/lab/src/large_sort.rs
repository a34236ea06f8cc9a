//! The large sort: the sales table, an index on it by a parallel disk sort, and the
//! verification of one against the other.

use crate::assemble::{self, Story};
use crate::measure::{self, Measured};
use crate::observer::{Observer, Stage};
use crate::place::{self, Places};
use crate::record::DeviceLimits;
use crate::record::Record;
use crate::{LabError, Temporary, sizing, stored};
use plumb_engine::check::{self, CheckLine};
use plumb_engine::index::build::IndexSpec;
use plumb_engine::instance::Cancel;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load;
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::clock;
use plumb_io::Disk;
use plumb_io::device::DeviceDescription;
use plumb_workload::{SalesSpec, SalesTable};
use std::path::Path;

/// The workload's name, in titles and paths.
pub const NAME: &str = "large-sort";
/// The sales table.
pub(crate) const TABLE: &str = "SALES";
/// The index that the workload builds.
pub(crate) const INDEX: &str = "SALES_STORE_PROD";
/// Its key.
const KEY: [&str; 2] = ["STORE_ID", "PROD_ID"];

/// What is to be run, and where.
#[derive(Debug)]
pub struct Request<'a> {
    /// Rows of the table.
    pub rows: u64,
    /// Seed of the rows.
    pub seed: u64,
    /// A value for every setting.
    pub settings: Settings,
    /// Where the database goes.
    pub places: &'a Places<'a>,
    /// What lies under these places.
    pub devices: &'a [DeviceDescription],
    /// The command as it could be typed again.
    pub command_line: &'a str,
}

/// Runs the workload from nothing to the context of its report. The database is
/// removed with its guard.
///
/// # Errors
/// When it cannot run to its end. A failed verification is no error but a check of the context.
pub fn run(
    request: Request<'_>,
    cancel: Cancel,
    observer: &dyn Observer,
) -> Result<(Record, Temporary), LabError> {
    let Request { rows, seed, settings, places, devices, command_line } = request;
    let sizes = sizing::sizes(rows, &settings);
    let name = place::free_name(places, "plumb-run");
    let database = Temporary::create(places, &name, settings, sizes, cancel, observer)?;
    let instance = database.instance();
    let begin = clock::now();
    load(instance, rows, seed, observer)?;
    let calibrated = assemble::calibrate(instance, Purpose::Users)?;
    let limits = limits(instance, places, devices);
    let measured = build_index(instance, devices, rows, observer)?;
    let checks = verify(instance, observer)?;
    let context = assemble::context(&Story {
        workload: NAME,
        command_line,
        seed,
        table: TABLE,
        begin,
        instance,
        devices,
        measured: &measured,
        checks: &checks,
        calibrated: calibrated.as_ref(),
        limits: limits.as_ref(),
        files_presized: true,
    });
    Ok((context, database))
}

/// What the device under the tables can do, by what is stored under the paths of the run.
pub(crate) fn limits(
    instance: &Instance,
    places: &Places<'_>,
    devices: &[DeviceDescription],
) -> Option<DeviceLimits> {
    if matches!(instance.access.disk, Disk::Memory(_)) {
        return None;
    }
    let tables = places.tables();
    let under = |path: &&Path| {
        let path = path.canonicalize().ok()?;
        devices.iter().find(|device| device.path == path)
    };
    let devices: Vec<&DeviceDescription> = tables.iter().filter_map(under).collect();
    let mut paths = tables.clone();
    if !paths.contains(&places.home) {
        paths.push(places.home);
    }
    stored::limits(&paths, &devices)
}

/// Loads the table.
///
/// # Errors
/// As the load fails.
pub fn load(instance: &Instance, rows: u64, seed: u64, observer: &dyn Observer) -> Result<(), EngineError> {
    let source = SalesTable::new(SalesSpec { rows, seed });
    observer.stage(&Stage::Load { instance, rows });
    load::load(instance, TABLE, &source).map(|_| ())
}

/// Builds the index on a table that is not in the page cache.
///
/// # Errors
/// As the build fails.
pub fn build_index(
    instance: &Instance,
    devices: &[DeviceDescription],
    rows: u64,
    observer: &dyn Observer,
) -> Result<Measured, EngineError> {
    let columns = KEY.map(|name| (name.to_string(), false)).to_vec();
    let spec = IndexSpec { name: INDEX.to_string(), table: TABLE.to_string(), columns };
    assemble::learn_read_cost(instance)?;
    measure::make_cold(instance);
    observer.stage(&Stage::Build { instance, rows });
    measure::build(instance, &spec, devices)
}

/// The checks that passed, or the one that did not. What is no finding about
/// the data (an interruption, a device that fails) stays an error.
///
/// # Errors
/// When the data cannot be reached.
pub fn verify(
    instance: &Instance,
    observer: &dyn Observer,
) -> Result<Result<Vec<CheckLine>, EngineError>, EngineError> {
    observer.stage(&Stage::Verify { instance, blocks: blocks_in_use(instance) });
    match check::check_table(instance, TABLE) {
        Err(error) if !error.is_damage() => Err(error),
        checked => Ok(checked),
    }
}

/// Blocks of all tables and indexes: what a check reads, and the table once more for its keys.
#[must_use]
pub fn blocks_in_use(instance: &Instance) -> u64 {
    let catalog = instance.catalog();
    let tables = catalog.tables.iter().flat_map(|table| &table.extents);
    let indexes = catalog.indexes.iter().flat_map(|index| index.leaves.iter().chain(&index.branches));
    tables.chain(indexes).map(|extent| u64::from(extent.used)).sum()
}
