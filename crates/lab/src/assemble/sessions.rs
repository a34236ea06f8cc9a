//! Where each session's time went.

use super::Evidence;
use crate::record::SessionTime;
use plumb_events::SessionTotals;

pub(super) fn sessions(seen: &Evidence) -> Vec<SessionTime> {
    seen.measured.period.sessions.iter().map(session_time).collect()
}

fn session_time(session: &SessionTotals) -> SessionTime {
    SessionTime {
        name: short_name(session),
        role: session.role.name().to_string(),
        kind: session.role.kind(),
        elapsed_ns: session.elapsed.0,
        cpu_ns: session.cpu.0,
        wait_cpu_ns: session.wait_cpu.0,
        wait_ns: session.waits().0,
        idle_ns: session.idle().0,
        // The kernel counts the run queue inside waits too: a session that is woken
        // queues before its wait ends for us. Only what no wait explains can be
        // queueing outside waits, so no nanosecond is counted twice.
        run_queue_ns: Some(session.run_queue.min(session.unaccounted()).0),
    }
}

/// `PX sort server p001` is the sort server p001; a session that is alone in its role is named by it.
fn short_name(session: &SessionTotals) -> String {
    let number = session.name.strip_prefix(session.role.name()).and_then(|number| number.strip_prefix(' '));
    number.unwrap_or(&session.name).to_string()
}
