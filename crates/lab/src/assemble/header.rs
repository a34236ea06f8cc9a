//! What ran, where and when.

use super::Story;
use crate::calendar::Moment;
use crate::record::Header;
use crate::{host, settings};

pub(super) fn header(story: &Story<'_>) -> Header {
    let (begin, end) = story.measured.wall;
    let period = &story.measured.period;
    Header {
        title: format!("PLUMB REPORT  Workload: {}", story.workload),
        workload: story.workload.to_string(),
        plumb_version: env!("CARGO_PKG_VERSION").to_string(),
        git_revision: option_env!("PLUMB_REVISION").map(str::to_string),
        host: host::describe(),
        begin_time: Moment::of(begin).iso(),
        end_time: Moment::of(end).iso(),
        elapsed_ns: period.elapsed.0,
        db_time_ns: period.db_time().0,
        db_cpu_ns: period.db_cpu().0,
        command_line: story.command_line.to_string(),
        seed: story.seed,
        settings_hash: settings::hash(&story.instance.settings),
        clock_source: host::clock_source(),
        clock_precision_ns: host::clock_precision_ns(),
    }
}
