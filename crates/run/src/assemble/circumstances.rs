//! Work of others during the run, and caches that answered instead of the device.

use super::Evidence;
use plumb_events::{SessionKind, Statistic};
use plumb_record::{Circumstance, LimitShare, MixLimit, Record};
use plumb_study::disturbance::{self, Stretch};
use plumb_units::Nanos;

/// Judges the counters around the work, with the sessions' waits, the requests
/// and the device's own rate.
pub(super) fn circumstances(seen: &Evidence, record: &Record) -> Vec<Circumstance> {
    let foreground = || record.sessions.iter().filter(|session| session.kind == SessionKind::Foreground);
    let known = foreground().any(|session| session.run_queue_ns.is_some());
    let queued = Nanos(foreground().filter_map(|session| session.run_queue_ns).sum());
    let active = foreground().map(|session| session.elapsed_ns.saturating_sub(session.idle_ns));
    let asked = seen.measured.period.statistic(Statistic::PhysicalReadBytes);
    disturbance::judge(&Stretch {
        queued: known.then(|| [queued, Nanos(active.sum())]),
        asked_read: (!seen.inside.in_memory()).then_some(asked),
        above: above(record),
        ..seen.measured.machine.clone()
    })
}

/// Returns the highest measured share of the device's own rate for the same mix,
/// otherwise of its sequential read.
fn above(record: &Record) -> Option<(f64, String)> {
    if let Some([_, of_most, _]) = record.mix.as_ref().and_then(MixLimit::share) {
        return Some((
            of_most,
            "reads and writes against the device's own rate for the same mix".to_string(),
        ));
    }
    let shares = record.calibration.iter().flat_map(|found| &found.shares);
    // Writes are excluded: they may end in the device's own cache, which another rule reports.
    let reads = shares.filter(|share| share.limit.ends_with("read") && share.what.contains("reads"));
    let of_most = |share: &LimitShare| match share.shares() {
        (_, Some([of_most, _])) => of_most,
        (share, None) => share,
    };
    let reached = reads.map(|share| (of_most(share), format!("{} against {}", share.what, share.limit)));
    reached.max_by(|one, two| one.0.total_cmp(&two.0))
}
