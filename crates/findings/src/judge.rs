//! Applies the table of rules.

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
        found.extend((rule.judge)(signals).map(|seen| (rule.rank, finding(rule, seen))));
    }
    // The sort is stable: findings of one rank without a saving keep the order of the table.
    found.sort_by_key(|(rank, finding)| (*rank, Reverse(finding.saves_ns)));
    found.into_iter().map(|(_, finding)| finding).collect()
}

fn finding(rule: &FindingRule, seen: crate::Observed) -> Finding {
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
