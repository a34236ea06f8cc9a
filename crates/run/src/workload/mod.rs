//! Execution of each workload by the embedded engine: one file each, and a row of the table below.
//!
//! ```text
//! load ──> [ prepare ──> work ──> verify ──> undo ]*
//! ```
//!
//! A single run does all of it once, in a temporary database ([`run`]). A study loads once for each
//! set of settings fixed when a database is made, and does the rest for every run ([`repeat`]).
//! Both end in the same record.

mod ctas;
pub mod large_sort;
pub mod named_file;
mod producer;
pub mod record_sort;
pub mod redo;
mod scan;
mod sizing;
mod slob;
mod start;

use crate::device_mix::{self, Mix};
use crate::device_probe::{self, Calibrated};
use crate::evidence::{self, Asked, Evidence, Measured, MixPoint, MixSeen, PlaceAsked};
use crate::place::{self, Places, Room};
use crate::{RunError, Temporary, archiving, assemble, calibration_store};
use plumb_engine::check::CheckLine;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, Instance, Settings};
use plumb_events::{Cancel, Phase, Role, clock};
use plumb_host::device::DeviceDescription;
use plumb_io::Disk;
use plumb_record::trace::RunTrace;
use plumb_record::{Check, DeviceLimits, ParameterRow, Record};
use plumb_study::Observer;
use plumb_study::sampler::Sampler;
use plumb_study::vocabulary::Assignment;
use plumb_units::{Nanos, path_text};
use plumb_workload::{Shown, Work, Workload};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// A database in which a workload runs.
pub struct Place<'a> {
    pub instance: &'a Instance,
    pub work: &'a Work,
    pub devices: &'a [DeviceDescription],
    pub observer: &'a dyn Observer,
    /// Transactions of the database, opened at the first use.
    transactions: OnceCell<Transactions<'a>>,
}

impl<'a> Place<'a> {
    /// A database for this work.
    pub fn new(
        instance: &'a Instance,
        work: &'a Work,
        devices: &'a [DeviceDescription],
        observer: &'a dyn Observer,
    ) -> Place<'a> {
        Place { instance, work, devices, observer, transactions: OnceCell::new() }
    }

    /// Returns the transactions of the database, opened at the first call.
    pub fn transactions(&self) -> Result<&Transactions<'a>, EngineError> {
        if let Some(open) = self.transactions.get() {
            return Ok(open);
        }
        let opened = Transactions::open(self.instance, &self.instance.recorder.session(Role::User))?;
        Ok(self.transactions.get_or_init(|| opened))
    }

    /// Does work with transactions, and reports why their sessions wait for the archiver.
    fn watched<T>(
        &self,
        transactions: &Transactions<'_>,
        work: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let observer = self.observer;
        archiving::watched(Some(transactions), &|why| observer.waits(why), work)
    }
}

/// Execution of a workload by the engine.
pub trait Execution: Sync {
    fn workload(&self) -> &'static Workload;

    /// True if it writes the log of transactions.
    fn logs(&self) -> bool {
        false
    }

    /// Sets values that suit the workload, unless the user set others. Fails if parameters
    /// contradict each other, or the machine.
    fn apply_defaults(&self, _: &Work, _: &mut Settings) -> Result<(), EngineError> {
        Ok(())
    }

    /// Returns the space that its files will take.
    fn room(&self, work: &Work, settings: &Settings) -> Room;

    /// Returns the tablespace of its first reads.
    fn source(&self) -> Purpose {
        Purpose::Users
    }

    /// Returns the mix of random reads and writes that it makes on the device, if it is one.
    fn mix(&self, _: &Work, _: &Settings) -> Option<Mix> {
        None
    }

    /// Makes its data, in an empty database.
    fn load(&self, place: &Place<'_>) -> Result<(), EngineError>;

    /// Does the work between two readings, on data that is not in the page cache.
    fn work(&self, place: &Place<'_>) -> Result<Measured, EngineError>;

    /// Checks the result of the work.
    fn verify(&self, place: &Place<'_>) -> Result<Vec<CheckLine>, EngineError>;

    /// Removes the result; a killed run may have left one.
    fn undo(&self, _: &Place<'_>) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Every workload that the engine carries out.
const EXECUTIONS: &[&dyn Execution] = &[
    &large_sort::LargeSort,
    &record_sort::RecordSort,
    &redo::Redo,
    &ctas::Ctas,
    &slob::Slob,
    &scan::Scan,
    &producer::Producer,
];

pub fn execution(workload: &Workload) -> &'static dyn Execution {
    let found = EXECUTIONS.iter().find(|execution| execution.workload() == workload);
    *found.expect("every workload has its execution")
}

/// A workload to run, and its directories.
#[derive(Debug)]
pub struct Request<'a> {
    pub work: &'a Work,
    /// A value for every setting.
    pub settings: Settings,
    pub places: &'a Places<'a>,
    pub devices: &'a [DeviceDescription],
    /// The command as it could be typed again.
    pub command_line: &'a str,
}

#[derive(Debug)]
pub struct Ran {
    pub record: Record,
    /// The requests, if a trace was requested.
    pub trace: Option<RunTrace>,
    /// The database, removed when this is dropped.
    pub database: Temporary,
}

/// Runs a workload from an empty directory to its record. A failed verification is not an
/// error: the record says so.
pub fn run(request: Request<'_>, cancel: Cancel, observer: &dyn Observer) -> Result<Ran, RunError> {
    let (seen, database) = observe(request, cancel, observer)?;
    Ok(Ran { record: assemble::record(&seen), trace: seen.measured.trace, database })
}

/// Runs a workload as [`run`], but returns the evidence. The guard removes all files.
pub(crate) fn observe(
    request: Request<'_>,
    cancel: Cancel,
    observer: &dyn Observer,
) -> Result<(Evidence, Temporary), RunError> {
    let Request { work, mut settings, places, devices, command_line } = request;
    let execution = execution(work.workload);
    execution.apply_defaults(work, &mut settings)?;
    let name = place::free_name(places, "plumb-run");
    let room = execution.room(work, &settings);
    let database = Temporary::create(places, &name, settings, room, cancel, observer)?;
    let place = Place::new(database.instance(), work, devices, observer);
    let begin = clock::now();
    let sampler = Sampler::start(devices);
    execution.load(&place)?;
    let calibrated = device_probe::calibrate(place.instance, execution.source())?;
    let limits = limits(place.instance, places, devices);
    let asked = Asked { placed: placed_by(places), ..asked(work, command_line, begin) };
    let before = mix_asked_of(&place, places)
        .map(|(asked, device)| (device, mix_point(&place, device, asked, Phase::MixBefore)));
    let (measured, checks) = carry_out(&place)?;
    let mix = before.map(|(device, before)| {
        let own = before.mix.as_done(device_mix::requests(&measured.period));
        let after = mix_point(&place, device, own, Phase::MixAfter);
        MixSeen { path: device.path.clone(), before, after }
    });
    let seen = Evidence::of(place.instance, asked, measured, devices, checks).with_limits(calibrated, limits);
    Ok((seen.with_mix(mix).with_beside(sampler.end()), database))
}

/// Returns the mix that a workload makes on the tables' device; `None` without a mix,
/// or for files in memory.
fn mix_asked_of<'a>(place: &Place<'a>, places: &Places<'_>) -> Option<(Mix, &'a DeviceDescription)> {
    let mix = execution(place.work.workload).mix(place.work, &place.instance.settings)?;
    let tables = places.tables().first()?.canonicalize().ok()?;
    let device = place.devices.iter().find(|device| device.path == tables)?;
    (!matches!(place.instance.access.disk, Disk::Memory(_))).then_some((mix, device))
}

fn mix_point(place: &Place<'_>, device: &DeviceDescription, mix: Mix, phase: Phase) -> MixPoint {
    let begin = clock::now();
    let rate = device_mix::measure(device, mix, place.work.seed());
    place.instance.recorder.phase(phase, begin, 0);
    MixPoint { mix, rate }
}

/// Makes a run of a study, in a database that was loaded for it.
pub fn repeat(
    place: &Place<'_>,
    places: &Places<'_>,
    placed: &[Assignment],
    (command_line, calibrated): (&str, Option<Calibrated>),
) -> Result<Record, RunError> {
    let execution = execution(place.work.workload);
    execution.undo(place)?;
    let sampler = Sampler::start(place.devices);
    let placed = placed.iter().map(|set| PlaceAsked::of(&set.name, &set.value)).collect();
    let asked = Asked { placed, ..asked(place.work, command_line, clock::now()) };
    let (measured, checks) = carry_out(place)?;
    let seen =
        Evidence::of(place.instance, asked, measured, place.devices, checks).with_beside(sampler.end());
    let limits = limits(place.instance, places, place.devices);
    let record = assemble::record(&seen.with_limits(calibrated, limits));
    execution.undo(place)?;
    Ok(record)
}

fn asked(work: &Work, command_line: &str, begin: Nanos) -> Asked {
    Asked {
        workload: work.workload.name.to_string(),
        data: work.workload.data.to_string(),
        measures: work.workload.measures,
        command_line: command_line.to_string(),
        seed: work.seed(),
        parameters: work.values().map(parameter).collect(),
        files_presized: true,
        begin,
        placed: Vec::new(),
    }
}

fn parameter((name, value): (&str, Shown)) -> ParameterRow {
    ParameterRow { name: name.to_string(), value: value.to_string() }
}

/// Returns the places that the arguments of a run give.
fn placed_by(places: &Places<'_>) -> Vec<PlaceAsked> {
    let lists = [("data_path", places.users), ("temp_path", places.temp), ("index_path", places.indx)];
    let joined = |paths: &[PathBuf]| paths.iter().map(|path| path_text(path)).collect::<Vec<_>>().join(",");
    let lists = lists.into_iter().filter(|(_, paths)| !paths.is_empty());
    let apart = (places.home_argument == "--log-path").then(|| ("log_path", path_text(places.home)));
    let asked = lists.map(|(word, paths)| (word, joined(paths))).chain(apart);
    asked.map(|(word, value)| PlaceAsked::of(word, &value)).collect()
}

/// Does the work and verifies it.
fn carry_out(place: &Place<'_>) -> Result<(Measured, Vec<Check>), EngineError> {
    let instance = place.instance;
    let execution = execution(place.work.workload);
    device_probe::learn_read_cost(instance)?;
    device_probe::make_cold(instance);
    let measured = execution.work(place)?;
    match execution.verify(place) {
        // Errors other than damaged data (an interruption, a failing device) stay errors.
        Err(error) if !error.is_damage() => Err(error),
        found => {
            let checks =
                evidence::checks(found, &format!("the result of the {}", place.work.workload.measures));
            Ok((measured, checks))
        }
    }
}

/// Returns the limits of the tables' device, from calibrations under the paths of the run.
fn limits(instance: &Instance, places: &Places<'_>, devices: &[DeviceDescription]) -> Option<DeviceLimits> {
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
    calibration_store::limits(&paths, &devices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_workload::WORKLOADS;

    #[test]
    fn every_workload_is_carried_out() {
        assert_eq!(EXECUTIONS.len(), WORKLOADS.len());
        assert!(WORKLOADS.iter().all(|workload| execution(workload).workload() == *workload));
    }
}
