//! `plumb index`: an index on a table, measured like a run.

use super::live;
use crate::arguments::Index;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::progress::{Audience, Watch};
use crate::{bundle, command_line, database, output, run, settings, types};
use plumb_engine::Instance;
use plumb_engine::index::build::IndexSpec;
use plumb_engine::storage::control::stored_name;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::clock;
use plumb_host::device::DeviceDescription;
use plumb_record::Record;
use plumb_run::evidence::{Asked, Evidence};
use plumb_run::{assemble, calibration_store, device_probe, workload};
use plumb_study::Stage;

/// Builds the index, as a measured run.
pub fn run(arguments: &Index) -> Result<Outcome, Failure> {
    let settings = settings::parse_for_files(&arguments.set)?;
    let columns = types::parse_columns(&arguments.columns.join(" "))?;
    let interrupt = Interrupt::install()?;
    let bundle = bundle::reserve(arguments.bundle.as_deref(), None, &interrupt)?;
    let instance = database::open(&arguments.path, settings, &interrupt)?;
    interrupt.begin();
    if instance.catalog().live_tables.iter().any(|table| table.name == stored_name(&arguments.table)) {
        return live::index(&instance, arguments, columns);
    }
    if arguments.unique {
        let why = "which has no transactions that could break it; leave it out";
        return Err(Failure::usage(format!(
            "--unique: table {} was loaded by direct path, {why}",
            arguments.table
        )));
    }
    let name = arguments.name.clone().unwrap_or_else(|| types::index_name(&arguments.table, &columns));
    let rows = instance.catalog().table(&arguments.table)?.row_count;
    let devices = devices(&instance)?;
    let limits = calibration_store::limits(&[&arguments.path], &under_tables(&instance, &devices));
    let watch = Watch::start(if arguments.json { Audience::Nobody } else { Audience::Terminal });
    let begin = clock::now();
    device_probe::make_cold(&instance);
    watch.stage(&Stage::Build { recorder: &instance.recorder, rows });
    let spec = IndexSpec { name, table: arguments.table.clone(), columns };
    let measured = workload::large_sort::build(&instance, &spec, &devices)?;
    drop(watch);
    let built = measured.outcome.index.clone().unwrap_or_default();
    let asked = Asked {
        workload: "index".to_string(),
        data: arguments.table.clone(),
        measures: "index build",
        command_line: command_line::typed(),
        ..Asked::of_own_data(begin)
    };
    let seen = Evidence::of(&instance, asked, measured, &devices, Vec::new()).with_limits(None, limits);
    let record = assemble::record(&seen);
    let document = plumb_pages::run::document(&record);
    if arguments.json {
        bundle::keep(bundle.as_ref(), &record, &document)?;
        output::print(&(record.to_json()? + "\n"))?;
        return Ok(run::outcome(&record));
    }
    let report = if arguments.report { output::report(&document) + "\n" } else { String::new() };
    let shown = report + &output::summary(&document);
    bundle::show(&shown, bundle.as_ref(), &record, &document)?;
    output::print(&command_line::with_path(&verdict(&built, &arguments.table, &record), &arguments.path))?;
    Ok(run::outcome(&record))
}

/// Returns the state of the run, and the command that verifies it.
fn verdict(index: &str, table: &str, record: &Record) -> String {
    let state = record.validity().words();
    format!("index {index}: {state}; run `plumb check {table}` to verify it\n")
}

/// Returns the devices that hold files of tables.
pub fn under_tables<'a>(instance: &Instance, devices: &'a [DeviceDescription]) -> Vec<&'a DeviceDescription> {
    let files = &instance.tablespace(Purpose::Users).files;
    let has_one = |device: &&DeviceDescription| {
        files.iter().any(|file| {
            file.file
                .path()
                .parent()
                .and_then(|path| path.canonicalize().ok())
                .is_some_and(|path| path == device.path)
        })
    };
    devices.iter().filter(has_one).collect()
}

/// Returns the devices under the data files.
pub fn devices(instance: &Instance) -> Result<Vec<DeviceDescription>, Failure> {
    let mut described: Vec<DeviceDescription> = Vec::new();
    for file in instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files) {
        let directory = file.file.path().parent().unwrap_or(instance.home());
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_path_buf());
        if described.iter().all(|known| known.path != directory) {
            described.push(plumb_io::describe_device(&directory)?);
        }
    }
    Ok(described)
}
