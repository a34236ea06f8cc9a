//! Sums by top span and by statement, before and after, and what a reader must know about them.
//!
//! Statements are without their literals, as in `plumb plans`. Of more than [`LABELS_MOST`] names
//! and statements the further ones are one, so that a hostile file fills no memory.

use crate::tree::{Tree, UNKNOWN};
use plumb_findings::plans::normalised;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Most names of top spans and statements with sums of their own.
const LABELS_MOST: usize = 100_000;
/// Most letters of a name.
const LETTERS_MOST: usize = 1000;

/// Names as numbers; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    places: HashMap<String, u32>,
    names: Vec<String>,
}

impl Labels {
    pub fn of(&mut self, name: &str) -> u32 {
        let end = name.char_indices().nth(LETTERS_MOST).map_or(name.len(), |(end, _)| end);
        if let Some(known) = self.places.get(&name[..end]) {
            return *known;
        }
        let name = if self.names.len() < LABELS_MOST { &name[..end] } else { "(all others)" };
        let next = self.names.len() as u32 + 1;
        let place = *self.places.entry(name.to_string()).or_insert(next);
        if place == next {
            self.names.push(name.to_string());
        }
        place
    }

    /// Returns the number of a statement; 0 of an empty one.
    pub fn statement(&mut self, sql: &str) -> u32 {
        let end = sql.char_indices().nth(4 * LETTERS_MOST).map_or(sql.len(), |(end, _)| end);
        let statement = normalised(&sql[..end]);
        if statement.is_empty() { 0 } else { self.of(&statement) }
    }

    fn name(&self, label: u32) -> &str {
        self.names.get(label as usize - 1).map_or("", String::as_str)
    }
}

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
    let count = tree.labels.names.len() + 1;
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
