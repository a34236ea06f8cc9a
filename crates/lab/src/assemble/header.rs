//! What ran, where and when.

use super::Evidence;
use crate::{host, settings};
use plumb_record::Header;
use plumb_record::calendar::Moment;

pub(super) fn header(seen: &Evidence) -> Header {
    let (begin, end) = seen.measured.wall;
    let period = &seen.measured.period;
    Header {
        title: format!("PLUMB REPORT  Workload: {}", seen.asked.workload),
        workload: seen.asked.workload.clone(),
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: option_env!("PLUMB_REVISION").map(str::to_string),
        host: host::describe(),
        begin_time: Moment::of(begin).iso(),
        end_time: Moment::of(end).iso(),
        elapsed_ns: period.elapsed.0,
        db_time_ns: Some(period.db_time().0),
        db_cpu_ns: Some(period.db_cpu().0),
        command_line: seen.asked.command_line.clone(),
        seed: seen.asked.seed,
        settings_hash: settings::hash(&seen.inside.settings),
        clock_source: host::clock_source(),
        clock_precision_ns: host::clock_precision_ns(),
    }
}
