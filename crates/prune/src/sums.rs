//! Sums by top span and by statement, before and after, and what a reader must know about them.
//!
//! Each span adds to the sums of its top span and of its statement, twice if it is kept.

use crate::tree::{Tree, UNKNOWN};
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts and times of a set of spans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SpanSums {
    pub spans: u64,
    pub executions: u64,
    /// `None` if no span says them: unknown, and not 0.
    pub fetches: Option<u64>,
    /// Nanoseconds: of top spans, or of the spans that execute the statement.
    pub duration_ns: u64,
    /// Nanoseconds in spans that execute a statement, without those below them.
    pub sql_ns: u64,
}

/// Sums of one top span or statement, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SumsRow {
    pub name: String,
    pub before: SpanSums,
    pub after: SpanSums,
}

/// Counts and durations of a trace, before and after.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PruneReport {
    pub all: SumsRow,
    /// Those that lost most are first.
    pub tops: Vec<SumsRow>,
    pub statements: Vec<SumsRow>,
    /// The rules, each with the number of spans that satisfy it.
    pub rules: Vec<(String, u64)>,
    /// Sentences about what is unknown or was cut to a bound.
    pub notes: Vec<String>,
}

/// Sums of all spans, and by name.
#[derive(Debug, Default)]
pub(crate) struct NamedSums {
    pub all: SpanSums,
    pub tops: BTreeMap<String, SpanSums>,
    pub statements: BTreeMap<String, SpanSums>,
}

impl SpanSums {
    fn add(&mut self, other: &SpanSums) {
        self.spans += other.spans;
        self.executions += other.executions;
        self.fetches = match (self.fetches, other.fetches) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        self.duration_ns = self.duration_ns.saturating_add(other.duration_ns);
        self.sql_ns = self.sql_ns.saturating_add(other.sql_ns);
    }
}

/// Returns the sums of all spans of a tree, and of those that are kept.
pub(crate) fn of(tree: &Tree) -> [NamedSums; 2] {
    let mut sums = [NamedSums::default(), NamedSums::default()];
    let count = tree.labels.count() + 1;
    let mut by_top = vec![[SpanSums::default(), SpanSums::default()]; count];
    let mut by_statement = by_top.clone();
    for (span, times) in tree.spans.iter().zip(&tree.times) {
        let durations = [span.duration as u64, times.duration as u64];
        let sides = if span.removed { 1 } else { 2 };
        for (side, duration_ns) in durations.into_iter().enumerate().take(sides) {
            let is_top = tree.spans.get(span.parent as usize).is_none();
            let own = SpanSums {
                spans: 1,
                executions: span.executions.into(),
                fetches: Some(span.fetches).filter(|fetches| *fetches != UNKNOWN),
                duration_ns,
                sql_ns: if span.statement == 0 { 0 } else { times.own as u64 },
            };
            if span.statement != 0 {
                by_statement[span.statement as usize][side].add(&own);
            }
            let own = SpanSums { duration_ns: if is_top { duration_ns } else { 0 }, ..own };
            by_top[span.top as usize][side].add(&own);
            sums[side].all.add(&own);
        }
    }
    for (side, sums) in sums.iter_mut().enumerate() {
        let named = |rows: &[[SpanSums; 2]]| {
            let rows = rows.iter().enumerate().filter(|(_, row)| row[side].spans > 0);
            rows.map(|(label, row)| (tree.labels.name(label as u32).to_string(), row[side].clone())).collect()
        };
        sums.tops = named(&by_top);
        sums.statements = named(&by_statement);
    }
    sums
}

impl PruneReport {
    pub(crate) fn of(sums: [NamedSums; 2], rules: Vec<(String, u64)>, notes: Vec<String>) -> PruneReport {
        let [before, after] = sums;
        let all = SumsRow { name: "all".to_string(), before: before.all, after: after.all };
        let (tops, statements) = (rows(before.tops, after.tops), rows(before.statements, after.statements));
        PruneReport { all, tops, statements, rules, notes }
    }
}

fn rows(before: BTreeMap<String, SpanSums>, mut after: BTreeMap<String, SpanSums>) -> Vec<SumsRow> {
    let paired = |(name, before): (String, SpanSums)| {
        let after = after.remove(&name).unwrap_or_default();
        SumsRow { name, before, after }
    };
    let mut rows: Vec<SumsRow> = before.into_iter().map(paired).collect();
    rows.extend(after.into_iter().map(|(name, after)| SumsRow { name, before: SpanSums::default(), after }));
    let lost = |row: &SumsRow| row.before.duration_ns.abs_diff(row.after.duration_ns);
    rows.sort_by_key(|row| std::cmp::Reverse((lost(row), row.before.spans, row.before.duration_ns)));
    rows
}
