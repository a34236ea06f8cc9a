//! Two periods of one report: waits that take longer or shorter in the second.
//!
//! The load may differ between the periods, so counts do not compare; the time of a wait does. If
//! reads of data files and writes of the log change in opposite directions, their devices differ.

use super::{EVENT_GATE, OWN, count, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::Signals;
use plumb_record::WaitEvent;
use plumb_units::Nanos;

pub(super) const RULES: &[FindingRule] = &[FindingRule {
    id: "B1",
    rank: Rank::Saving,
    signal: "time of a wait in the second of two periods, over that in the first",
    threshold: "by 1.5 either way, of an event with 5% of DB time",
    origin: OWN,
    caveat: "the load of the periods may differ",
    advice: "look for what changed between the periods below the data files: device, file system, mount options",
    judge: changed,
}];

/// Least waits of each period whose average is compared.
const WAITS_MIN: u64 = 20;
/// Least change of an average that is named.
const TIMES: f64 = 1.5;

/// An event of both periods.
struct Pair<'s> {
    first: &'s WaitEvent,
    second: &'s WaitEvent,
}

impl Pair<'_> {
    fn averages(&self) -> [Nanos; 2] {
        [self.first, self.second].map(|wait| Nanos(wait.time_ns / wait.waits.max(1)))
    }

    fn times(&self) -> f64 {
        let [first, second] = self.averages();
        second.0 as f64 / first.0.max(1) as f64
    }

    fn is_changed(&self) -> bool {
        let times = self.times();
        times >= TIMES || times <= 1.0 / TIMES
    }

    fn shown(&self) -> String {
        let [first, second] = self.averages();
        let [waits, then] = [self.first.waits, self.second.waits].map(count);
        format!("{}: {waits} of {first}, then {then} of {second}", self.first.event)
    }
}

fn pairs<'s>(first: &'s [WaitEvent], second: &'s [WaitEvent]) -> Vec<Pair<'s>> {
    let pair = |wait: &'s WaitEvent| {
        let other = second.iter().find(|other| other.event == wait.event)?;
        let is_judged = wait.waits >= WAITS_MIN && other.waits >= WAITS_MIN;
        is_judged.then_some(Pair { first: wait, second: other })
    };
    first.iter().filter_map(pair).collect()
}

fn changed(signals: &Signals) -> Option<Observed> {
    let second = signals.second.as_deref()?;
    let in_front = pairs(&signals.waits, &second.waits);
    let main =
        in_front.iter().filter(|pair| second.share(pair.second.time_ns) >= EVENT_GATE && pair.is_changed());
    let main = main.max_by_key(|pair| pair.second.time_ns)?;
    let behind = pairs(&signals.background, &second.background);
    let log = behind.iter().find(|pair| pair.first.event == "log file parallel write");
    let mut seen = vec![format!(
        "{} ({} and {} of DB time)",
        main.shown(),
        percent(signals.share(main.first.time_ns)),
        percent(second.share(main.second.time_ns))
    )];
    seen.extend(log.map(Pair::shown));
    let is_of_data = main.first.wait_class == "User I/O";
    let is_opposite = log.is_some_and(|log| log.is_changed() && (log.times() > 1.0) != (main.times() > 1.0));
    if is_of_data && is_opposite {
        seen.push(
            "log writes changed the other way: the data files moved, or what is below them changed"
                .to_string(),
        );
    }
    let how = if main.times() > 1.0 { "longer" } else { "shorter" };
    let what = format!("Waits for {} are {how} in the second period", main.first.event);
    let [before, after] = main.averages();
    let saves = after.0.saturating_sub(before.0).saturating_mul(main.second.waits);
    Some(Observed::new(what, seen.join("; ")).saves(saves))
}
