//! Intervals between snapshots, on the run's clock.

use super::phases::Timeline;
use super::{Evidence, io, load_profile};
use crate::rows::Counted;
use plumb_record::Interval;
use plumb_units::Nanos;

/// Returns the differences between consecutive snapshots.
pub(super) fn intervals(seen: &Evidence, timeline: &Timeline) -> Vec<Interval> {
    seen.measured.cuts.iter().map(|cut| interval(seen, cut, timeline)).collect()
}

fn interval(seen: &Evidence, cut: &Interval, timeline: &Timeline) -> Interval {
    Interval {
        begin_ns: timeline.since_start(Nanos(cut.begin_ns)),
        end_ns: timeline.since_start(Nanos(cut.end_ns)),
        load_profile: load_profile::rows(&Counted::of_rows(cut), &seen.measured.outcome),
        kernel_io: io::kernel(seen, cut.kernel_io),
        ..cut.clone()
    }
}
