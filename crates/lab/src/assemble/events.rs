//! Wait events of one kind of session.

use super::Evidence;
use crate::record::WaitEvent;
use plumb_events::{Event, SessionKind};

/// Events that were waited for, in the order of their table.
pub(super) fn events(seen: &Evidence, kind: SessionKind) -> Vec<WaitEvent> {
    let waited = |event: &Event| {
        let total = seen.measured.period.event(*event, kind);
        (total.count > 0).then(|| WaitEvent {
            event: event.name().to_string(),
            wait_class: event.class().name().to_string(),
            waits: total.count,
            time_ns: total.time.0,
            max_ns: total.max.0,
            histogram: total.histogram.0.to_vec(),
            latency: total.latency,
        })
    };
    Event::ALL.iter().filter_map(waited).collect()
}
