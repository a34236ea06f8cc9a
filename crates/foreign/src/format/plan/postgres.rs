//! Operators of PostgreSQL, from either form of EXPLAIN.
//!
//! EXPLAIN prints rows and times of one loop; a plan has them of all loops. Up to version 17 rows
//! of a loop are whole, so that 0 rows in 1,000 loops are any number below 500.

use plumb_record::plan::{PlanFigure, PlanOperation, PlanTrigger};
use plumb_units::{Bytes, Nanos, RowCount, ValueRange};

/// An operator as EXPLAIN has it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub depth: usize,
    pub role: String,
    pub operation: String,
    pub name: String,
    pub object: String,
    pub cost: String,
    pub plan_rows: Option<f64>,
    pub actual: Option<Actual>,
    pub buffers: Option<f64>,
    pub work: Work,
    pub access: Vec<String>,
    pub filter: Vec<String>,
}

/// Rows and time of one loop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Actual {
    pub time_ms: Option<f64>,
    pub rows: f64,
    /// True if the rows have two decimals, as from version 18 on.
    pub has_decimals: bool,
    pub loops: f64,
}

/// The work area of an operator and of its workers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    pub memory_kb: f64,
    pub disk_kb: f64,
    pub batches: f64,
}

/// Conditions that find rows; all others drop rows.
const ACCESS: [&str; 5] = ["Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "TID Cond"];
const FILTER: [&str; 3] = ["One-Time Filter", "Join Filter", "Filter"];

/// Returns the names of conditions in the order of EXPLAIN's text.
pub(super) fn conditions() -> impl Iterator<Item = &'static str> {
    ACCESS.into_iter().chain(FILTER)
}

impl Node {
    /// Takes a condition; true if the name is that of one.
    pub fn takes_condition(&mut self, name: &str, condition: &str) -> bool {
        let is_access = ACCESS.contains(&name);
        let conditions = if is_access { &mut self.access } else { &mut self.filter };
        let known = is_access || FILTER.contains(&name);
        conditions.extend(known.then(|| condition.to_string()));
        known
    }

    /// Returns the operator with figures of all loops.
    pub fn operation(self, id: u32) -> PlanOperation {
        let actual = self.actual;
        let rows = actual.map(|actual| {
            let half = match (actual.has_decimals, actual.loops) {
                (true, loops) => 0.005 * loops,
                (false, loops) if loops > 1.0 => 0.5 * loops,
                _ => 0.0,
            };
            let value = actual.rows * actual.loops;
            let range = ValueRange { low: (value - half).max(0.0), high: value + half };
            PlanFigure { value, range, text: counted(value) }
        });
        let time = actual.and_then(|actual| Some(elapsed(actual.time_ms? * actual.loops)));
        PlanOperation {
            id,
            depth: self.depth,
            starts: actual.map(|actual| count(actual.loops)),
            expected_rows: self.plan_rows.map(count),
            rows,
            time,
            buffers: self.buffers.map(count),
            used_memory: self.work.figure(),
            spilled: self.work.disk_kb > 0.0 || self.work.batches > 1.0,
            temp_space: String::new(),
            role: self.role,
            operation: self.operation,
            name: self.name,
            object: self.object,
            cost: self.cost,
            access: self.access,
            filter: self.filter,
        }
    }
}

impl Work {
    fn figure(self) -> Option<PlanFigure> {
        let size = |kb: f64| Bytes((kb * 1024.0) as u64);
        let text = match self {
            Work { memory_kb: 0.0, disk_kb: 0.0, .. } => return None,
            Work { disk_kb, .. } if disk_kb > 0.0 => format!("{} on disk", size(disk_kb)),
            Work { memory_kb, batches, .. } if batches > 1.0 => {
                format!("{} in {batches} batches", size(memory_kb))
            }
            Work { memory_kb, .. } => size(memory_kb).to_string(),
        };
        Some(PlanFigure::exactly(self.memory_kb.max(self.disk_kb) * 1024.0, text))
    }
}

/// Returns a trigger with the time and the number of its calls.
pub(super) fn trigger(name: String, time_ms: Option<f64>, calls: f64) -> PlanTrigger {
    PlanTrigger { name, time: time_ms.map(elapsed), calls: count(calls) }
}

/// Returns a fact about the time of compilation, which no operator has.
pub(super) fn compilation(ms: f64) -> (String, String) {
    ("JIT".to_string(), format!("{ms:.3} ms"))
}

fn elapsed(ms: f64) -> PlanFigure {
    PlanFigure::exactly(ms / 1e3, Nanos((ms * 1e6).max(0.0) as u64).to_string())
}

fn count(value: f64) -> PlanFigure {
    PlanFigure::exactly(value, counted(value))
}

fn counted(value: f64) -> String {
    RowCount(value.round().max(0.0) as u64).to_string()
}

/// Returns the role of a part of a statement: `InitPlan 1 (returns $0)` is `InitPlan 1`.
pub(super) fn role(printed: &str) -> String {
    printed.split(" (returns").next().unwrap_or_default().trim().to_string()
}

impl Work {
    /// Adds the work area of another process.
    pub fn with(self, other: Work) -> Work {
        Work {
            memory_kb: self.memory_kb + other.memory_kb,
            disk_kb: self.disk_kb + other.disk_kb,
            batches: self.batches.max(other.batches),
        }
    }
}
