//! From the evidence of a run to its record.
//!
//! One file a part of the report; each is a pure function of the [`Evidence`].
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

pub use devices::device;
pub(crate) use receipts::seen_of;

use crate::evidence::Evidence;
use crate::record::{Record, SCHEMA_VERSION};
use phases::Timeline;

/// The record of a run of which this was seen.
#[must_use]
pub fn record(seen: &Evidence) -> Record {
    let timeline = Timeline::of(seen);
    let mut record = Record {
        schema_version: SCHEMA_VERSION,
        header: header::header(seen),
        devices: devices::devices(seen),
        calibration: calibration::calibration(seen),
        limits: seen.limits.clone(),
        checks: seen.checks.clone(),
        receipts: receipts::receipts(seen),
        findings: Vec::new(),
        phases: phases::phases(seen, &timeline),
        memory: memory::memory(seen),
        load_profile: load_profile::rows(seen),
        host_cpu: seen.measured.host_cpu.clone(),
        foreground_events: events::events(seen, plumb_events::SessionKind::Foreground),
        background_events: events::events(seen, plumb_events::SessionKind::Background),
        sessions: sessions::sessions(seen),
        statistics: load_profile::statistics(seen),
        io_functions: io::functions(seen),
        io_files: io::files(seen),
        io_devices: io::devices(seen),
        completion: io::completion(seen),
        io_profile: phases::profile(&timeline),
        responses: load_profile::responses(seen),
        sort: sort::sort(seen),
        settings: settings::settings(seen),
        measures: Vec::new(),
        command: None,
    };
    record.findings = findings::findings(seen, &record);
    record
}
