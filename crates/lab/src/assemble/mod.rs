//! From a measured build to the context of its report.
//!
//! One file a part of the report; each is a pure function of the [`Story`].
//! The measured period (load profile, events, sessions, I/O statistics) is the
//! index build; phases and I/O profile show load, build and verification on one
//! clock that starts with the first of them.

mod calibration;
mod devices;
mod events;
mod findings;
mod header;
mod io;
mod load_profile;
mod memory;
mod one_pass;
mod phases;
mod receipts;
mod sessions;
mod settings;
mod sort;

pub use calibration::{Calibrated, calibrate, learn_read_cost};
pub use devices::device;

use crate::measure::Measured;
use crate::record::Record;
use crate::record::{Check, DeviceLimits, SCHEMA_VERSION};
use phases::Timeline;
use plumb_engine::check::CheckLine;
use plumb_engine::{EngineError, Instance};
use plumb_io::device::DeviceDescription;
use plumb_units::Nanos;

/// What a report is made of.
#[derive(Debug)]
pub struct Story<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// The command as it could be typed again.
    pub command_line: &'a str,
    /// The seed of its rows; 0 where none were made.
    pub seed: u64,
    /// The table.
    pub table: &'a str,
    /// When the first phase began, on the monotonic clock.
    pub begin: Nanos,
    /// The database, still open.
    pub instance: &'a Instance,
    /// What lies under its paths.
    pub devices: &'a [DeviceDescription],
    /// The build.
    pub measured: &'a Measured,
    /// What verification found; empty where none ran.
    pub checks: &'a Result<Vec<CheckLine>, EngineError>,
    /// The device's limits, where they were measured.
    pub calibrated: Option<&'a Calibrated>,
    /// What the device under the tables can do, or why that is not known; `None` where
    /// there is no device.
    pub limits: Option<&'a DeviceLimits>,
    /// Whether the files were made large enough beforehand, so that growth is an error of the run.
    pub files_presized: bool,
}

impl Story<'_> {
    /// Whether the files are in memory, so that nothing about files can be observed.
    #[must_use]
    pub fn in_memory(&self) -> bool {
        matches!(self.instance.access.disk, plumb_io::Disk::Memory(_))
    }
}

/// The context of the report.
#[must_use]
pub fn context(story: &Story<'_>) -> Record {
    let timeline = Timeline::of(story);
    let mut context = Record {
        schema_version: SCHEMA_VERSION,
        header: header::header(story),
        devices: devices::devices(story),
        calibration: calibration::calibration(story),
        limits: story.limits.cloned(),
        checks: checks(story),
        receipts: receipts::receipts(story),
        findings: Vec::new(),
        phases: phases::phases(story, &timeline),
        memory: memory::memory(story),
        load_profile: load_profile::rows(story),
        host_cpu: story.measured.host_cpu.clone(),
        foreground_events: events::events(story, plumb_events::SessionKind::Foreground),
        background_events: events::events(story, plumb_events::SessionKind::Background),
        sessions: sessions::sessions(story),
        statistics: load_profile::statistics(story),
        io_functions: io::functions(story),
        io_files: io::files(story),
        io_devices: io::devices(story),
        completion: io::completion(story),
        io_profile: phases::profile(&timeline),
        sort: Some(sort::sort(story)),
        settings: settings::settings(story),
    };
    context.findings = findings::findings(story, &context);
    context
}

fn checks(story: &Story<'_>) -> Vec<Check> {
    match story.checks {
        Ok(lines) => {
            let check = |line: &CheckLine| Check {
                name: line.name.clone(),
                passed: true,
                detail: line.detail.clone(),
                elapsed_ns: line.elapsed.0,
            };
            lines.iter().map(check).collect()
        }
        Err(error) => vec![Check {
            name: match story.measured.outcome.index {
                Some(_) => format!("table {} and its indexes", story.table),
                None => "the sorted file".to_string(),
            },
            passed: false,
            detail: error.to_string(),
            elapsed_ns: 0,
        }],
    }
}
