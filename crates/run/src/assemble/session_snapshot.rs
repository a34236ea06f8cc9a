//! Waits and statistics of the session that did the work, if it was a single one.

use crate::evidence::Evidence;
use crate::rows::{self, Counted};
use plumb_events::{Period, SessionKind, SessionTotals};
use plumb_record::SessionSnapshot;
use plumb_units::Nanos;

/// Returns the session's figures; `None` if several sessions share the work.
pub(super) fn session_snapshot(seen: &Evidence) -> Option<SessionSnapshot> {
    let done = &seen.measured.outcome;
    let is_of_one = (done.ctas.is_some() && seen.inside.degree == 1)
        || done.import.as_ref().is_some_and(|import| import.sessions == 1);
    let period = &seen.measured.period;
    let foreground = period.sessions.iter().filter(|session| session.role.kind() == SessionKind::Foreground);
    let busiest = foreground.max_by_key(|session| busy(session)).filter(|_| is_of_one)?;
    let alone = Period { elapsed: period.elapsed, sessions: vec![busiest.clone()] };
    Some(SessionSnapshot {
        time: rows::sessions(&alone).into_iter().next()?,
        events: rows::events(&alone, SessionKind::Foreground),
        statistics: Counted::of(&alone).statistics(),
    })
}

/// CPU, and waits that are not idle.
fn busy(session: &SessionTotals) -> Nanos {
    Nanos(session.cpu.0 + session.waits().0)
}
