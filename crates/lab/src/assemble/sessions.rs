//! Where each session's time went.

use super::Story;
use crate::record::SessionTime;
use plumb_events::SessionTotals;

pub(super) fn sessions(story: &Story<'_>) -> Vec<SessionTime> {
    story.measured.period.sessions.iter().map(session_time).collect()
}

fn session_time(session: &SessionTotals) -> SessionTime {
    let (role, name) = split_name(&session.name);
    SessionTime {
        name,
        role,
        kind: session.kind,
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

/// `PX sort server p001` is the sort server p001; other sessions are named by what they do.
fn split_name(name: &str) -> (String, String) {
    match name.rsplit_once(' ') {
        Some((role, number)) if number.ends_with(|letter: char| letter.is_ascii_digit()) => {
            (role.to_string(), number.to_string())
        }
        _ => (name.to_string(), name.to_string()),
    }
}
