//! The answer of a comparison: the verdict, or the raw change of two runs with its doubts.

use super::{Pairing, because, explain, named, shown, warnings};
use plumb_record::figures::{ELAPSED, FigureGroup};
use plumb_record::{Record, RunState};
use plumb_report::ReportAnswer;
use plumb_report::format::{Change, Count, Figure, Reading};
use plumb_study::compare::Comparison;

pub(super) fn answer(comparison: &Comparison, workload: &str) -> ReportAnswer {
    let runs = || comparison.sides().into_iter().flat_map(|period| &period.runs);
    if runs().any(|run| run.validity().state == RunState::Invalid) {
        return ReportAnswer {
            asked: format!("{workload}, 2nd against 1st"),
            found: "nothing can be compared".to_string(),
            sure: warnings(comparison).into_iter().next().unwrap_or_default(),
            advice: "repeat the invalid run".to_string(),
            lines: Vec::new(),
        };
    }
    let verdict = comparison.judged.first().map(|judged| format!("{}: {}", named(judged), shown(judged)));
    let explained = comparison.explanation.as_ref().map(explain::sentence);
    let change = explained.or_else(|| elapsed(comparison));
    let found = [verdict, per_row(comparison), change].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let doubt = warnings(comparison).into_iter().next();
    let basis = match comparison.pairing {
        Pairing::Blocks => {
            format!("{} and {} runs, in blocks", comparison.first.runs.len(), comparison.second.runs.len())
        }
        other => format!("no verdict: {}", because(other)),
    };
    ReportAnswer {
        asked: format!("{workload}, 2nd against 1st"),
        found: if found.is_empty() { "no time is known of both".to_string() } else { found },
        sure: [Some(basis), doubt].into_iter().flatten().collect::<Vec<_>>().join("; "),
        advice: match comparison.pairing {
            Pairing::Blocks => String::new(),
            _ if runs().any(|run| run.imported.is_some()) => {
                "read the differences below as observations".to_string()
            }
            _ => "repeat both in random order for a verdict: plumb study".to_string(),
        },
        lines: Vec::new(),
    }
}

/// Returns the change of the elapsed time, where both are known.
fn elapsed(comparison: &Comparison) -> Option<String> {
    let [first, second] = comparison.sides().map(|period| period.figure(FigureGroup::Time, ELAPSED));
    (first > 0.0 && second > 0.0).then(|| {
        let change = Change(second / first).figure();
        format!("elapsed {} s to {} s ({change})", Reading(first).figure(), Reading(second).figure())
    })
}

/// Returns the change of the time of a row, where the runs did different work.
fn per_row(comparison: &Comparison) -> Option<String> {
    let work = |run: &Record| {
        let rows = run.sort.as_ref().map(|sort| ("row", sort.rows));
        rows.or_else(|| Some(("transaction", run.transactions()?))).filter(|(_, count)| *count > 0)
    };
    let [first, second] = comparison.sides().map(|period| period.typical());
    let (first, second) = (first?, second?);
    let ((of, one), (also, two)) = (work(first)?, work(second)?);
    let is_timed = comparison.explanation.as_ref().is_some_and(|explained| explained.of_operation);
    if one == two || of != also || is_timed || first.header.elapsed_ns == 0 {
        return None;
    }
    let of_one = |run: &Record, count: u64| run.header.elapsed_ns as f64 / count as f64;
    let change = Change(of_one(second, two) / of_one(first, one)).figure();
    Some(format!(
        "the time of a {of} changes by {change} ({} and {} of them)",
        Count(one).figure(),
        Count(two).figure()
    ))
}
