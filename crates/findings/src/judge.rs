//! Applies the table of rules.

use crate::Observed;
use crate::rule::{FindingRule, Rank};
use crate::rules;
use crate::signals::Signals;
use plumb_record::Finding;
use std::cmp::Reverse;

/// Returns the findings of a period: doubts about the figures first, then the largest saving. A
/// reported system that was idle has none.
#[must_use]
pub fn findings(signals: &Signals) -> Vec<Finding> {
    if signals.is_idle() {
        return Vec::new();
    }
    let mut found: Vec<(Rank, Finding)> =
        rules::of_circumstances(signals).map(|finding| (Rank::Doubt, finding)).collect();
    for rule in rules::all() {
        let seen = (rule.judge)(signals).map(|seen| bounded(signals, seen));
        let seen = seen.filter(|seen| signals.matters(seen.saves_ns));
        found.extend(seen.map(|seen| (seen.rank.unwrap_or(rule.rank), finding(rule, seen))));
    }
    // The sort is stable: findings of one rank without a saving keep the order of the table.
    found.sort_by_key(|(rank, finding)| (*rank, Reverse(finding.saves_ns)));
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Bounds a saving by DB time: nothing saves more than there is. The bound is the same for all
/// rules, because each adds up other figures, and any of them may be wrong.
fn bounded(signals: &Signals, seen: Observed) -> Observed {
    let most = signals.db_time();
    // A trace is judged by its elapsed time; of a report without DB time nothing is a saving.
    let has_time = most > 0 || signals.trace.is_some();
    let saves_ns = seen.saves_ns.filter(|_| has_time).map(|ns| if most > 0 { ns.min(most) } else { ns });
    Observed { saves_ns, ..seen }
}

fn finding(rule: &FindingRule, seen: Observed) -> Finding {
    let advice = if seen.advice.is_empty() { rule.advice.to_string() } else { seen.advice };
    Finding {
        rule: rule.id.to_string(),
        what: seen.what,
        evidence: seen.evidence,
        advice,
        caveat: rule.caveat.to_string(),
        saves_ns: seen.saves_ns,
        study: seen.study,
    }
}
