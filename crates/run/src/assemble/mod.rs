//! Derives the record of a run from its evidence.
//!
//! Each file makes a part of the report, as a pure function of the [`Evidence`]. The measured
//! period (load profile, events, sessions, I/O statistics) is that of the work. Phases and I/O
//! profile show load, work and verification on one clock that starts with the first of them.

mod accounting;
mod calibration;
mod circumstances;
mod devices;
mod findings;
mod header;
mod intervals;
mod io;
mod load_profile;
mod log_io;
mod memory;
mod mix;
pub mod one_pass;
mod phases;
mod receipts;
mod scan;
mod session_snapshot;
mod settings;
mod sort;
mod users;

pub(crate) use receipts::seen_of;
pub(crate) use users::{measure as users_measure, measures_in_words as users_measures};

use crate::evidence::Evidence;
use crate::rows::{self, Counted};
use phases::Timeline;
use plumb_events::SessionKind;
use plumb_record::{Receipts, Record, trace};
use plumb_units::Nanos;

/// Time for which the process was suspended during the measurement.
fn stopped(seen: &Evidence) -> Option<Nanos> {
    let begin = seen.measured.begin;
    seen.beside.as_ref()?.stopped((begin, begin + seen.measured.period.elapsed))
}

pub fn record(seen: &Evidence) -> Record {
    let timeline = Timeline::of(seen);
    let period = &seen.measured.period;
    let counted = Counted::of(period);
    let trace = seen.measured.trace.as_ref();
    let users = users::users(seen, &timeline);
    let Receipts { receipts, readings } = receipts::receipts(seen);
    let mut record = Record {
        devices: devices::devices(seen),
        calibration: calibration::calibration(seen),
        limits: seen.limits.clone(),
        mix: mix::mix(seen),
        stopped_ns: stopped(seen).map(|stopped| stopped.0),
        receipts,
        readings,
        phases: phases::phases(seen, &timeline),
        memory: memory::memory(seen),
        load_profile: load_profile::rows(&counted, &seen.measured.outcome),
        host_cpu: seen.measured.host_cpu.clone(),
        process: seen.measured.process,
        foreground_events: rows::events(period, SessionKind::Foreground),
        background_events: rows::events(period, SessionKind::Background),
        sessions: rows::sessions(period),
        session: session_snapshot::session_snapshot(seen),
        statistics: counted.statistics(),
        io_functions: rows::functions(period),
        io_files: seen.measured.files.iter().map(|file| file.io.clone()).collect(),
        kernel_io: io::kernel(seen, seen.measured.process_io.map(rows::kernel)),
        tablespaces: io::tablespaces(seen),
        buffer_pools: io::pools(seen),
        io_devices: rows::devices(&seen.measured.disks),
        completion: io::completion(seen),
        io_profile: phases::profile(&timeline),
        beside: seen.beside.as_ref().map(|looks| looks.beside(|at| timeline.since_start(at))),
        intervals: intervals::intervals(seen, &timeline),
        responses: [load_profile::responses(seen), users::responses(users.as_ref())].concat(),
        sort: sort::sort(seen),
        scan: scan::scan(seen),
        log: log_io::log_io(seen, trace),
        trace: trace.map(|kept| trace::summary(kept, timeline.since_start(seen.measured.begin))),
        parameters: seen.asked.parameters.clone(),
        settings: settings::settings(seen),
        measures: users::measured(users.as_ref()),
        users,
        ..Record::of(header::header(seen))
    };
    // A run whose result was not verified stays so: its accounts prove nothing about it.
    if !seen.checks.is_empty() {
        record.checks = seen.checks.iter().cloned().chain(accounting::checks(seen, &record)).collect();
    }
    record.load_profile.extend(load_profile::behind(seen));
    record.circumstances = Some(circumstances::circumstances(seen, &record));
    record.findings = findings::findings(seen, &record);
    record
}
