//! Wait events of one kind of session.

use super::Story;
use crate::record::WaitEvent;
use plumb_events::{Event, SessionKind};

/// Events that were waited for, in the order of their table.
pub(super) fn events(story: &Story<'_>, kind: SessionKind) -> Vec<WaitEvent> {
    let waited = |event: &Event| {
        let total = story.measured.period.event(*event, kind);
        (total.count > 0).then(|| WaitEvent {
            event: event.name().to_string(),
            wait_class: event.class().name().to_string(),
            waits: total.count,
            time_ns: total.time.0,
            max_ns: total.max.0,
            histogram: total.histogram.0.to_vec(),
        })
    };
    Event::ALL.iter().filter_map(waited).collect()
}
