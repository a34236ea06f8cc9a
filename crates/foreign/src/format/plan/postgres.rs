//! Operators of PostgreSQL, from either form of EXPLAIN.
//!
//! EXPLAIN prints rows and times of one loop; a plan has them of all loops. Up to version 17 rows
//! of a loop are whole, so that 0 rows in 1,000 loops are any number below 500. Blocks and times of
//! I/O are of all loops in EXPLAIN, too.
//!
//! Details have the names of the JSON form in small letters. `shared` and `local` times of I/O are
//! one, because versions up to 16 do not separate them.

use plumb_record::plan::{PlanDetail, PlanFigure, PlanOperation, PlanTrigger};
use plumb_units::{Bytes, Nanos, RowCount, ValueRange};
use std::sync::LazyLock;

/// An operator as EXPLAIN has it.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub depth: usize,
    pub role: String,
    pub operation: String,
    pub name: String,
    pub object: String,
    pub cost: Option<PlanFigure>,
    pub plan_rows: Option<f64>,
    pub actual: Option<Actual>,
    pub work: Work,
    pub access: Vec<String>,
    pub filter: Vec<String>,
    pub details: Vec<Detail>,
}

/// A detail as printed, with its place in [`DETAILS`].
#[derive(Debug)]
pub(super) struct Detail {
    place: usize,
    value: f64,
    text: String,
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

/// Figures that not all operators have, in the order in which they are shown.
const DETAIL_NAMES: &str = "\
    workers planned, workers launched, rows removed by filter, rows removed by join filter, \
    rows removed by index recheck, heap fetches, index searches, exact heap blocks, \
    lossy heap blocks, cache hits, cache misses, cache evictions, cache overflows, sort method, \
    full-sort groups, pre-sorted groups, hash buckets, hash batches, planned partitions, \
    disabled, shared hit blocks, shared read blocks, shared dirtied blocks, \
    shared written blocks, local hit blocks, local read blocks, local dirtied blocks, \
    local written blocks, temp read blocks, temp written blocks, i/o read time, i/o write time, \
    temp i/o read time, temp i/o write time, wal records, wal fpi, wal bytes";
static DETAILS: LazyLock<Vec<&str>> = LazyLock::new(|| DETAIL_NAMES.split(", ").collect());

/// True for a detail that is a word and no figure.
fn is_word(name: &str) -> bool {
    ["sort method", "disabled"].contains(&name)
}

/// Returns the names of conditions in the order of EXPLAIN's text.
pub(super) fn conditions() -> impl Iterator<Item = &'static str> {
    ACCESS.into_iter().chain(FILTER)
}

impl Node {
    /// Takes a named value of an operator; true if the name is known.
    pub fn takes(&mut self, name: &str, value: &str) -> bool {
        if ACCESS.contains(&name) || FILTER.contains(&name) {
            let conditions = if ACCESS.contains(&name) { &mut self.access } else { &mut self.filter };
            conditions.extend(Some(value.to_string()).filter(|value| !value.is_empty()));
            return true;
        }
        let lower = name.to_lowercase();
        let behind = lower.strip_prefix("shared ").or(lower.strip_prefix("local "));
        let name = behind.filter(|name| name.starts_with("i/o")).unwrap_or(&lower);
        let Some(place) = DETAILS.iter().position(|known| name == *known) else {
            return false;
        };
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        if is_word(name) || number.is_some() {
            let (value, text) = (number.unwrap_or(0.0), value.to_string());
            match self.details.iter_mut().find(|known| known.place == place) {
                Some(known) => known.value += value,
                None => self.details.push(Detail { place, value, text }),
            }
        }
        true
    }

    /// Returns the sum of the details with these names; `None` if there is none.
    fn sum(&self, names: &[&str]) -> Option<f64> {
        let named = self.details.iter().filter(|detail| names.contains(&DETAILS[detail.place]));
        named.map(|detail| detail.value).reduce(|sum, value| sum + value)
    }

    /// Returns the details of all loops. EXPLAIN's text leaves out zeros.
    fn details(&mut self, loops: f64) -> Vec<PlanDetail> {
        self.details.sort_by_key(|detail| detail.place);
        let shown = |detail: &Detail| {
            let name = DETAILS[detail.place];
            // EXPLAIN prints these as a mean of the loops.
            let is_mean = name.starts_with("rows removed");
            let value = if is_mean { detail.value * loops.max(1.0) } else { detail.value };
            let text = match name {
                name if is_word(name) => detail.text.clone(),
                name if name.ends_with(" time") => elapsed(value).text,
                _ => counted(value),
            };
            // Columns of their own have the others.
            let is_column = ["shared hit blocks", "shared read blocks", "i/o read time"].contains(&name);
            let is_shown = (is_word(name) || value > 0.0 || name == "workers launched") && !is_column;
            is_shown.then(|| PlanDetail { name: name.to_string(), value, text })
        };
        self.details.iter().filter_map(shown).collect()
    }

    /// Returns the operator with figures of all loops.
    pub fn operation(mut self, id: u32) -> PlanOperation {
        let actual = self.actual;
        let buffers = ["shared hit blocks", "shared read blocks", "local hit blocks", "local read blocks"];
        let reads = [buffers[1], buffers[3]];
        let has_buffers = self.sum(&buffers).is_some();
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
            buffers: self.sum(&buffers).map(count),
            reads: has_buffers.then(|| count(self.sum(&reads).unwrap_or(0.0))),
            read_time: self.sum(&["i/o read time"]).filter(|ms| *ms > 0.0).map(elapsed),
            used_memory: self.work.figure(),
            spilled: self.work.disk_kb > 0.0 || self.work.batches > 1.0,
            temp_space: None,
            details: self.details(actual.map_or(1.0, |actual| actual.loops)),
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

pub(super) fn elapsed(ms: f64) -> PlanFigure {
    PlanFigure::exactly(ms / 1e3, Nanos((ms * 1e6).max(0.0) as u64).to_string())
}

pub(super) fn count(value: f64) -> PlanFigure {
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

/// Operators without their variants, which [`is_operator`] removes.
const OPERATORS: &str = "\
    Aggregate, Append, Bitmap Heap Scan, Bitmap Index Scan, BitmapAnd, BitmapOr, CTE Scan, \
    Delete, Foreign Scan, Function Scan, Gather, Gather Merge, Group, GroupAggregate, Hash, \
    HashAggregate, HashSetOp, Incremental Sort, Insert, Limit, LockRows, Materialize, Memoize, \
    Merge, Merge Append, MixedAggregate, Named Tuplestore Scan, Nested Loop, ProjectSet, \
    Recursive Union, Result, Sort, Subquery Scan, Unique, Update, Values Scan, WindowAgg, \
    WorkTable Scan";
/// Scans of a table or of an index.
const SCANS: [&str; 7] = ["Index Only", "Index", "Sample", "Seq", "Table Function", "Tid Range", "Tid"];

/// True for an operator in the words of EXPLAIN's text that some PostgreSQL from 8 on has.
pub(super) fn is_operator(operation: &str) -> bool {
    const LENGTH_MOST: usize = 200;
    // Few lines of a log may be one: a look at the first letter saves the lists.
    if operation.len() > LENGTH_MOST || !operation.starts_with(|first: char| first.is_ascii_uppercase()) {
        return false;
    }
    let mut name = operation;
    for variant in ["Async ", "Parallel ", "Partial ", "Finalize ", "Foreign "] {
        name = name.strip_prefix(variant).filter(|rest| *rest != "Scan").unwrap_or(name);
    }
    let name = name.strip_suffix(" Backward").unwrap_or(name);
    let join = name.strip_suffix(" Join").and_then(|name| {
        let kinds = ["Hash", "Merge", "Nested Loop"];
        kinds.into_iter().find_map(|kind| name.strip_prefix(kind))
    });
    let sides = ", Left, Right, Full, Semi, Anti, Right Semi, Right Anti, Unique Outer, IN";
    join.is_some_and(|side| is_listed(sides, side.trim_start()))
        || is_listed(OPERATORS, name)
        || name.strip_suffix(" Scan").is_some_and(|scan| SCANS.contains(&scan))
        || ["SetOp ", "HashSetOp ", "Custom Scan ("].iter().any(|word| name.starts_with(word))
}

fn is_listed(list: &str, name: &str) -> bool {
    list.split(", ").any(|listed| listed == name)
}

/// True if the operator reads from no other one.
pub(super) fn is_leaf(operation: &str) -> bool {
    let reads_others = ["Subquery Scan", "Bitmap Heap Scan", "Custom Scan", "Foreign Scan"];
    (operation.contains("Scan") && !reads_others.iter().any(|name| operation.contains(name)))
        || operation == "Result"
        || operation.contains("Foreign Scan")
}
