//! The difference as a sum of parts, larger or smaller in the second set.

use crate::study::why::{Parts, TimeUnit, difference};
use plumb_report::Section;
use plumb_study::compare::{Comparison, Explanation};

/// Number of parts in the sentence.
const NAMED: usize = 3;

/// Shows the origin of the difference; `None` without session times.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let explained = comparison.explanation.as_ref()?;
    let unit = unit(explained);
    let section = Section::front("explanation", "Where the Difference Comes From")
        .note(sentence(explained))
        .note(format!("{}; they and what is unaccounted sum to {}", explained.why.basis, explained.of));
    let several = comparison.first.runs.len() > 1 || comparison.second.runs.len() > 1;
    let section = match several {
        true => section.note("intervals are over pairs of runs, each alone"),
        false => section,
    };
    Some(section.table(difference(&explained.why, ["1st", "2nd"], "2nd", unit)))
}

/// Returns the unit of its times: seconds for runs, a suitable unit for operations.
fn unit(explained: &Explanation) -> TimeUnit {
    let longest_ns = explained.why.reference_elapsed_ns.max(explained.why.treatment_elapsed_ns);
    if explained.of_operation { TimeUnit::of_operation(longest_ns) } else { TimeUnit::SECONDS }
}

/// Describes the whole and its largest parts in a line.
pub(super) fn sentence(explained: &Explanation) -> String {
    let unit = unit(explained);
    let parts = Parts::of(&explained.why);
    let whole_ns = parts.difference_ns();
    let shown = |ns: i64| format!("{} {}", unit.shown(ns), unit.short);
    let signed = |ns: i64| format!("{}{}", if ns > 0 { "+" } else { "" }, shown(ns));
    let largest = parts.rows.iter().filter(|part| part.difference_ns() != 0).take(NAMED);
    let named: Vec<String> =
        largest.map(|part| format!("{} {}", part.name, signed(part.difference_ns()))).collect();
    let others: i64 = whole_ns
        - parts
            .rows
            .iter()
            .filter(|part| part.difference_ns() != 0)
            .take(NAMED)
            .map(|part| part.difference_ns())
            .sum::<i64>();
    let way = match whole_ns {
        0 => "2nd takes as long as 1st".to_string(),
        ns if ns < 0 => format!("2nd takes {} less", shown(-ns)),
        ns => format!("2nd takes {} more", shown(ns)),
    };
    if named.is_empty() {
        return format!("{way} of {}", explained.of);
    }
    format!("{way} ({}): {}, all others {}", explained.of, named.join(", "), signed(others))
}
