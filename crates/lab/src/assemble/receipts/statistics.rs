//! What is recorded of a run.

use super::super::Evidence;
use super::{Finding, counted};
use plumb_engine::Setting;
use plumb_units::Nanos;

/// Snapshots that were taken within the work, against those that were due.
pub(super) fn snapshots(seen: &Evidence) -> Option<Finding> {
    let asked = Nanos(seen.inside.settings.number(Setting::SnapshotInterval) * 1_000_000);
    if asked.0 == 0 {
        return None;
    }
    let (elapsed, cuts) = (seen.measured.period.elapsed, seen.measured.cuts.len() as u64);
    let longest = seen.measured.cuts.iter().map(|cut| cut.end.saturating_sub(cut.begin)).max();
    let evidence = format!(
        "{} in {elapsed}, {} apart at most",
        counted(cuts + 1, "snapshot"),
        longest.unwrap_or_default()
    );
    Some(Finding::that(cuts > elapsed.0 / asked.0 / 4, evidence))
}
