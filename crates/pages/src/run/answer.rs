//! The answer of a run: the figures of its workload, the largest cost, and what would lower it.

use super::{events, head, work};
use plumb_record::{Record, RunState, Validity};
use plumb_report::answer::LINES_MAX;
use plumb_report::format::{Average, Figure, Percent, Seconds};
use plumb_report::{Headline, ReportAnswer};

const EVENTS_MAX: usize = 3;
/// Headline figures below the sentence; the line of the top events follows them.
const FIGURES_MAX: usize = LINES_MAX - 1;
/// A shorter run is mostly start and end.
const SHORT_NS: u64 = 1_000_000_000;

pub(super) fn answer(record: &Record) -> ReportAnswer {
    let header = &record.header;
    let mut lines = head::headline(record);
    lines.truncate(FIGURES_MAX);
    let events = Headline { name: "Top events".to_string(), value: top_events(record), aside: String::new() };
    lines.extend(Some(events).filter(|events| !events.value.is_empty()));
    let validity = record.validity();
    let asked = header.workload.clone();
    if let Some(reason) = validity.reasons.first().filter(|_| validity.state == RunState::Invalid) {
        let found = format!("INVALID, its figures must not be used: {reason}");
        return ReportAnswer { asked, found, lines, ..ReportAnswer::default() };
    }
    // The state names the first doubt; the cost is what takes the time.
    let is_named = !validity.doubtful.is_empty();
    let finding = record.findings.iter().find(|finding| finding.saves_ns.is_some() || !is_named);
    let cost = finding.map(|finding| ReportAnswer::part(&finding.what)).or_else(|| largest(record));
    let advice = record.findings.first().map_or(String::new(), crate::advice);
    ReportAnswer {
        asked,
        found: result(record) + &cost.map_or(String::new(), |cost| format!("; {cost}")),
        sure: sure(record, &validity),
        advice,
        lines,
    }
}

/// Returns the first figure of the workload with the time that it took.
fn result(record: &Record) -> String {
    let elapsed = format!("{} s", Seconds(record.header.elapsed_ns).figure());
    match work::figures(record).first() {
        Some(figure) => format!("{} {}, in {elapsed}", ReportAnswer::part(&figure.name), figure.line()),
        None => format!("took {elapsed}"),
    }
}

fn sure(record: &Record, validity: &Validity) -> String {
    match record.header.elapsed_ns < SHORT_NS {
        true => format!("{}, but a run below 1 s is short", validity.words()),
        false => validity.words(),
    }
}

fn largest(record: &Record) -> Option<String> {
    let top = events::top_events(record);
    let event = top.first()?;
    let share = Percent::of(event.time_ns, record.header.db_time()).figure();
    (!share.is_empty()).then(|| format!("{} is {share}% of DB time", event.event))
}

fn top_events(record: &Record) -> String {
    let top = events::top_events(record);
    let shown = top.iter().take(EVENTS_MAX).map(|event| {
        let share = Percent::of(event.time_ns, record.header.db_time()).figure();
        let average = event.waits.map(|count| Average { total_ns: event.time_ns, count }.figure());
        let average = average.map(|average| format!(" (avg {average})")).unwrap_or_default();
        format!("{} {share}%{average}", event.event)
    });
    shown.collect::<Vec<_>>().join(", ")
}
