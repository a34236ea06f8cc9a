//! A plan of execution: its operators as a tree, with the rows that were expected and those that
//! came.
//!
//! One form for the databases whose plans are read. Expected rows are of one start, and all other
//! figures of all starts together, as DBMS_XPLAN has them. Operators are in the order in which a
//! plan prints them, each above its inputs, so that their depths give the tree.

use plumb_units::{ValueRange, hex};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Bytes of a plan hash.
const HASH_BYTES: usize = 8;

/// Database that made a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    Oracle,
    Postgres,
}

/// Origin of the operators' depths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanTree {
    Printed,
    /// Follows from the number of inputs that each operator takes.
    Inferred,
    /// All operators are at the top.
    Unknown,
}

/// A figure with its printed text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanFigure {
    pub value: f64,
    /// Values with the printed text.
    pub range: ValueRange,
    pub text: String,
}

impl PlanFigure {
    pub fn exactly(value: f64, text: String) -> PlanFigure {
        PlanFigure { value, range: ValueRange::exactly(value), text }
    }
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct PlanOperation {
    /// Number of the operator as printed, otherwise its place from 1.
    pub id: u32,
    /// Number of operators above it.
    pub depth: usize,
    /// Part of a statement that it begins, such as `InitPlan 1`; otherwise empty.
    pub role: String,
    pub operation: String,
    /// Object as shown: table, index, alias.
    pub name: String,
    /// The object without schema and alias: `t1`, or `t1_n1 on t1`.
    pub object: String,
    pub starts: Option<PlanFigure>,
    /// Rows of one start, and not of all as the other figures.
    pub expected_rows: Option<PlanFigure>,
    pub rows: Option<PlanFigure>,
    /// Seconds in it and below it; a sum over processes if several worked.
    pub time: Option<PlanFigure>,
    /// Blocks got from the cache, in it and below it.
    pub buffers: Option<PlanFigure>,
    /// Blocks of these that were read from outside of the cache; SQL Monitor has requests instead.
    pub reads: Option<PlanFigure>,
    /// Seconds in which it waited for these reads.
    pub read_time: Option<PlanFigure>,
    /// Bytes of its work area.
    pub used_memory: Option<PlanFigure>,
    /// True if the work area did not suffice and rows went to disk.
    pub spilled: bool,
    /// Bytes that the planner expects its work area to need on disk.
    pub temp_space: Option<PlanFigure>,
    /// Cost with all below it; it has no unit.
    pub cost: Option<PlanFigure>,
    /// Conditions by which it finds rows.
    pub access: Vec<String>,
    /// Conditions by which it drops rows that it has found.
    pub filter: Vec<String>,
    /// All other figures, in the order of the plan.
    pub details: Vec<PlanDetail>,
}

/// A figure that not all operators have, such as `rows removed by filter`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanDetail {
    pub name: String,
    /// Zero if it is a word.
    pub value: f64,
    pub text: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct ExecutionPlan {
    pub source: PlanSource,
    /// Name of the arm: its file, or the line above the plan.
    pub name: String,
    /// Statement as printed with the plan; otherwise empty.
    pub query: String,
    /// Time at which a log has it; otherwise empty.
    pub at: String,
    /// Seconds of the statement, as a log or the line below the plan has them.
    pub elapsed: Option<PlanFigure>,
    /// Names and values that are printed with the plan.
    pub facts: Vec<(String, String)>,
    pub tree: PlanTree,
    pub operations: Vec<PlanOperation>,
    /// Triggers that the statement fired; no operator has the time of those that fire after it.
    pub triggers: Vec<PlanTrigger>,
    /// Remarks of the optimizer, such as `this is an adaptive plan`.
    pub notes: Vec<String>,
    /// Reason why the end of the plan may be missing.
    pub may_be_cut: Option<&'static str>,
}

/// A trigger with the time of all its calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanTrigger {
    /// Name as EXPLAIN's text has it: `audit on t1`, or `for constraint t1_fk`.
    pub name: String,
    /// Seconds; `None` if EXPLAIN took no times.
    pub time: Option<PlanFigure>,
    pub calls: PlanFigure,
}

impl PlanOperation {
    /// Returns the operator without its variants that leave the plan the same.
    pub fn operator(&self) -> &str {
        // Row ids in order of their blocks: the same access path.
        self.operation.strip_suffix(" BATCHED").unwrap_or(&self.operation)
    }

    /// Returns the operator with its role, as in `InitPlan 1: Limit`.
    pub fn titled(&self) -> String {
        match self.role.is_empty() {
            true => self.operation.clone(),
            false => format!("{}: {}", self.role, self.operation),
        }
    }

    /// Returns the value of a detail.
    pub fn detail(&self, name: &str) -> Option<f64> {
        self.details.iter().find(|detail| detail.name == name).map(|detail| detail.value)
    }

    /// Returns the object if it is one of the schema: tables of a parallel query or of the
    /// statement itself have a new name each time.
    pub fn lasting_object(&self) -> &str {
        let passes = self.object.starts_with(':') || self.object.starts_with("SYS_TEMP_");
        if passes { "" } else { &self.object }
    }
}

impl ExecutionPlan {
    /// Returns a plan without a name, facts, triggers and notes.
    pub fn of(source: PlanSource, tree: PlanTree, operations: Vec<PlanOperation>) -> ExecutionPlan {
        ExecutionPlan {
            source,
            name: String::new(),
            query: String::new(),
            at: String::new(),
            elapsed: None,
            facts: Vec::new(),
            tree,
            operations,
            triggers: Vec::new(),
            notes: Vec::new(),
            may_be_cut: None,
        }
    }

    /// True if both have one hash, of this program or of Oracle: its plan hash value has some
    /// variants of a plan as one.
    pub fn is_same_plan(&self, other: &ExecutionPlan) -> bool {
        let oracle = self.fact("Plan hash value").filter(|value| *value != "0");
        self.hash() == other.hash() || oracle.is_some() && oracle == other.fact("Plan hash value")
    }

    /// Returns a fact of the plan as printed, such as `Plan hash value`.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the time of the statement: without a line of its own, that of the first operator.
    pub fn time(&self) -> Option<&PlanFigure> {
        self.elapsed.as_ref().or_else(|| self.operations.first()?.time.as_ref())
    }

    /// Returns the inputs of each operator, as places in the list.
    pub fn inputs(&self) -> Vec<Vec<usize>> {
        let mut inputs = vec![Vec::new(); self.operations.len()];
        let mut above: Vec<usize> = Vec::new();
        for (at, operation) in self.operations.iter().enumerate() {
            while above.last().is_some_and(|last| self.operations[*last].depth >= operation.depth) {
                above.pop();
            }
            if let Some(parent) = above.last() {
                inputs[*parent].push(at);
            }
            above.push(at);
        }
        inputs
    }

    /// Returns a hash of operators, join types, the order of inputs and access paths. Costs, rows,
    /// literals, aliases and schemas are no part of it.
    pub fn hash(&self) -> String {
        let mut digest = Sha256::new();
        for operation in &self.operations {
            let role = operation.role.split(' ').next().unwrap_or_default();
            let (depth, operator, object) =
                (operation.depth, operation.operator(), operation.lasting_object());
            digest.update(format!("{depth}\t{role}\t{operator}\t{object}\n"));
        }
        hex(&digest.finalize().as_slice()[..HASH_BYTES])
    }
}
