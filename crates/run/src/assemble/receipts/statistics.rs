//! Receipts of the recording: snapshots and the request trace.

use super::super::Evidence;
use super::{Ruling, counted};
use plumb_engine::Setting;
use plumb_events::IoStream;
use plumb_units::Nanos;

/// Compares the snapshots taken during the work with those due.
pub(super) fn snapshots(seen: &Evidence) -> Option<Ruling> {
    let asked = Nanos(seen.inside.settings.number(Setting::SnapshotInterval) * 1_000_000);
    if asked.0 == 0 {
        return None;
    }
    let (elapsed, cuts) = (seen.measured.period.elapsed, seen.measured.cuts.len() as u64);
    let longest = seen.measured.cuts.iter().map(|cut| Nanos(cut.end_ns.saturating_sub(cut.begin_ns))).max();
    let evidence = format!(
        "{} in {elapsed}, {} apart at most",
        counted(cuts + 1, "snapshot"),
        longest.unwrap_or_default()
    );
    Some(Ruling::that(cuts > elapsed.0 / asked.0 / 4, evidence))
}

/// Compares the requests in a trace with those that sessions counted.
pub(super) fn traced(seen: &Evidence) -> Option<Ruling> {
    if !seen.inside.settings.is_explicit(Setting::DebugTraceRequests) {
        return None;
    }
    let counted_: u64 = IoStream::ALL.iter().map(|stream| seen.measured.period.stream(*stream).count).sum();
    let is_asked = seen.inside.settings.number(Setting::DebugTraceRequests) > 0;
    let Some(trace) = &seen.measured.trace else {
        return Some(Ruling::that(
            !is_asked,
            format!("no trace was kept of {}", counted(counted_, "request")),
        ));
    };
    let (kept, dropped) = (trace.request_count(), trace.dropped);
    let evidence = format!(
        "{} in the trace and {dropped} dropped, of {} that were counted",
        counted(kept, "request"),
        counted_
    );
    // A session may be between its statistics and its trace when a snapshot is taken.
    let apart = counted_.abs_diff(kept + dropped);
    Some(Ruling::that(is_asked && kept > 0 && apart <= trace.sessions.len() as u64, evidence))
}
