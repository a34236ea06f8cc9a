//! Head of a record: the program, the machine and the times of the run.

use super::Evidence;
use crate::settings;
use plumb_record::Header;
use plumb_study::machine;

pub(super) fn header(seen: &Evidence) -> Header {
    let (begin, end) = seen.measured.wall;
    let period = &seen.measured.period;
    let title = format!("PLUMB REPORT  Workload: {}", seen.asked.workload);
    Header {
        elapsed_ns: period.elapsed.0,
        db_time_ns: Some(period.db_time().0),
        db_cpu_ns: Some(period.db_cpu().0),
        command_line: seen.asked.command_line.clone(),
        seed: Some(seen.asked.seed),
        settings_hash: settings::hash(&seen.inside.settings),
        clock_precision_ns: machine::clock_precision_ns(),
        ..machine::header(title, &seen.asked.workload, [begin, end])
    }
}
