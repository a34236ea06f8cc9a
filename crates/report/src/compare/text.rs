//! The text of a comparison, in at most 132 columns.

use super::context::{CompareContext, Pairing};
use super::section::sections;
use crate::text::{Page, WIDTH, document, hanging, wrap};

/// The whole report.
#[must_use]
pub fn render(context: &CompareContext) -> String {
    document(masthead(context), &sections(context), &page(context))
}

/// What the sections share.
pub(crate) fn page(context: &CompareContext) -> Page {
    let run = context.second.runs.first();
    let workload = run.map_or("", |run| run.header.workload.as_str());
    Page { width: WIDTH, running_head: format!("Compare: {workload}  1st against 2nd") }
}

fn masthead(context: &CompareContext) -> Vec<String> {
    let mut lines = wrap(&title(context), WIDTH);
    lines.extend(hanging("Elapsed time: ", &verdict_line(context), WIDTH));
    let notes = context.reasons.iter().cloned().chain(warnings(context));
    lines.extend(notes.flat_map(|note| hanging("  -> ", &note, WIDTH)));
    lines.push(String::new());
    lines
}

/// The report's first line.
pub(super) fn title(context: &CompareContext) -> String {
    let workload = context.first.runs.first().map_or("", |run| run.header.workload.as_str());
    format!("PLUMB COMPARE PERIOD REPORT  Workload: {workload}")
}

/// What is proved of the elapsed time, or why nothing can be.
pub(super) fn verdict_line(context: &CompareContext) -> String {
    match (&context.verdict, context.pairing) {
        (Some(verdict), _) => verdict.line.clone(),
        (None, pairing) => format!("no verdict: {}", because(pairing)),
    }
}

fn because(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Single => "one run a side",
        Pairing::Apart => "the two sets were not interleaved",
        Pairing::Blocks => "no block in which both arms count",
    }
}

/// What makes the two sides hard to compare: a run that must not be believed, other work, other data.
pub(super) fn warnings(context: &CompareContext) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, period) in [("1st", &context.first), ("2nd", &context.second)] {
        for run in &period.runs {
            warnings.extend(
                run.validity().reasons.into_iter().map(|reason| format!("{name} is INVALID: {reason}")),
            );
        }
    }
    warnings.dedup();
    let sides = [&context.first, &context.second].map(|period| period.typical());
    if let [Some(first), Some(second)] = sides {
        let rows = |run: &crate::ReportContext| run.sort.as_ref().map(|sort| sort.rows);
        if rows(first) != rows(second) {
            let shown = |rows: Option<u64>| rows.map_or("none".to_string(), |rows| rows.to_string());
            warnings.push(format!(
                "not the same work: {} rows sorted and {}; only rates compare",
                shown(rows(first)),
                shown(rows(second))
            ));
        }
        if first.header.seed != second.header.seed {
            warnings
                .push(format!("not the same rows: seed {} and {}", first.header.seed, second.header.seed));
        }
        if first.header.host.name != second.header.host.name {
            warnings.push("not the same host: times compare hosts as well as settings".to_string());
        }
    }
    warnings
}
