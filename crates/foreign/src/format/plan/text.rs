//! EXPLAIN's text, as a client, psql or auto_explain prints it.
//!
//! ```text
//!  Limit  (cost=0.43..1.02 rows=10 width=8) (actual time=0.020..0.030 rows=10 loops=1)
//!    Buffers: shared hit=4                          of the operator above
//!    InitPlan 1 (returns $0)                        a part of the statement
//!      ->  Result ...                               in the column of its part
//!    ->  Index Scan using t_pkey on t  (cost=...)   below Limit
//!          Index Cond: (id > 5)
//!  Planning Time: 0.1 ms                            in the column of Limit: of the plan
//!  Trigger t_audit on t: time=2.0 calls=50
//!  JIT:
//!    Timing: ..., Total 12.3 ms
//!  Execution Time: 20.1 ms                          the last line of a plan that was executed
//! ```
//!
//! An operator is below the nearest one before it that begins further left.

use super::log::LogEntry;
use super::postgres::{Actual, Node, Work, compilation, is_leaf, is_operator, role, trigger};
use super::{Fault, Lines, TRIGGERS_MOST, add, push, unknown_operator};
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanSource, PlanTree, PlanTrigger};
use std::borrow::Cow;

/// Begins of an operator's figures.
const MARKS: [&str; 3] = [" (cost=", " (actual ", " (never executed)"];

pub(super) fn read(lines: &Lines<'_>) -> Result<Vec<ExecutionPlan>, Fault> {
    let mut plans = Vec::new();
    let mut tree: Option<Tree> = None;
    let mut entry = LogEntry::default();
    for (at, (number, line)) in lines.iter().enumerate() {
        let line = match line.contains('\t') {
            true => Cow::Owned(line.replace('\t', "        ")),
            false => Cow::Borrowed(*line),
        };
        let text = line.trim_start();
        let column = line.len() - text.len();
        if entry.takes(text) {
            plans.extend(tree.take().map(Tree::plan).transpose()?);
            continue;
        }
        let is_above = tree.as_ref().is_none_or(|tree| column <= tree.top);
        // A part of a plan may begin with an arrow.
        let begins = !text.starts_with("->") || tree.is_none();
        if is_above && begins && (has_figures(text) || begins_without_figures(lines, at)) {
            plans.extend(tree.take().map(Tree::plan).transpose()?);
            tree = Some(Tree { entry: std::mem::take(&mut entry), ..Tree::new(column) });
        }
        if let Some(tree) = &mut tree {
            tree.take(*number, column, text)?;
        } else {
            entry.goes_on(text);
        }
    }
    plans.extend(tree.map(Tree::plan).transpose()?);
    Ok(plans)
}

pub(crate) fn has_figures(text: &str) -> bool {
    // By the bracket, because a search for each mark takes most of the time of a long log.
    let bytes = text.as_bytes();
    let brackets = (1..bytes.len()).filter(|at| bytes[*at] == b'(' && bytes[at - 1] == b' ');
    brackets.into_iter().any(|at| MARKS.iter().any(|mark| bytes[at - 1..].starts_with(mark.as_bytes())))
}

/// True for an operator of EXPLAIN (COSTS OFF): the next line is of a plan, too.
fn begins_without_figures(lines: &Lines<'_>, at: usize) -> bool {
    let title = lines[at].1.trim();
    if title.len() > 200
        || !title.starts_with(|letter: char| letter.is_ascii_uppercase())
        || !is_titled(title)
    {
        return false;
    }
    let next = lines.get(at + 1).map_or("", |(_, line)| line.trim());
    let before = at.checked_sub(1).map_or("", |at| lines[at].1.trim());
    next.starts_with("->") || is_property(next) || next.starts_with('(') || before.starts_with("QUERY PLAN")
}

/// True if a text begins with an operator and its object.
pub(super) fn is_titled(title: &str) -> bool {
    is_operator(&titled(title).operation)
}

/// True for a line below an operator, such as `Filter: (a = 1)`.
pub(super) fn is_property(text: &str) -> bool {
    let name = text.split_once(':').map_or("", |(name, _)| name);
    !name.is_empty()
        && name.len() < 40
        && name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || " -/".contains(letter))
}

/// A plan that is being read.
struct Tree {
    /// Column of the first operator.
    top: usize,
    nodes: Vec<(u32, Node)>,
    /// Columns of the operators above, from the first.
    above: Vec<usize>,
    /// Part of the statement whose operator follows, with its column.
    part: Option<(usize, String)>,
    /// True behind the last operator's lines.
    is_below: bool,
    /// True below the line `JIT:`.
    is_compilation: bool,
    /// Column of the line of a worker whose figures follow.
    worker: Option<usize>,
    /// True if psql counts the lines below the plan.
    is_counted: bool,
    entry: LogEntry,
    /// True if the last line of an operator has a bracket that no other closes.
    is_open: bool,
    facts: Vec<(String, String)>,
    triggers: Vec<PlanTrigger>,
}

impl Tree {
    fn new(top: usize) -> Tree {
        Tree {
            top,
            nodes: Vec::new(),
            above: Vec::new(),
            part: None,
            is_below: false,
            is_compilation: false,
            worker: None,
            is_counted: false,
            entry: LogEntry::default(),
            is_open: false,
            facts: Vec::new(),
            triggers: Vec::new(),
        }
    }

    fn take(&mut self, line: u32, column: usize, text: &str) -> Result<(), Fault> {
        if text.starts_with("->") || self.nodes.is_empty() {
            return self.operator(line, column, text.trim_start_matches("->").trim_start());
        }
        let is_part = ["InitPlan", "SubPlan", "CTE "].iter().any(|word| text.starts_with(word));
        if is_part && !text.contains(": ") && column > self.top {
            self.part = Some((column, role(text)));
            return Ok(());
        }
        // Where blanks were lost, a property is in the column of the first operator.
        let is_own = is_property(text) && !BELOW.iter().any(|name| text.starts_with(name));
        if column <= self.top && (self.is_below || !is_own) {
            self.is_below = true;
            self.below(line, text.trim_end())?;
        } else if self.is_below {
            let ms = compilation_ms(text).filter(|_| self.is_compilation);
            self.facts.extend(ms.map(compilation));
        } else if let Some((_, node)) = self.nodes.last_mut() {
            // Figures of a worker are part of those of the operator.
            let is_of_worker = self.worker.is_some_and(|worker| column > worker);
            if !is_of_worker {
                self.worker = text.starts_with("Worker ").then_some(column);
                property(node, text);
            }
            self.is_open = is_open(text);
        }
        Ok(())
    }

    /// Takes a line below the operators.
    fn below(&mut self, line: u32, text: &str) -> Result<(), Fault> {
        if let Some(fired) = text.strip_prefix("Trigger ").and_then(fired) {
            return add(&mut self.triggers, fired, line, "triggers", TRIGGERS_MOST);
        }
        self.is_open &= text.is_empty();
        self.is_compilation = text == "JIT:";
        let counted = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
            .and_then(|text| text.split_once(' '));
        self.is_counted |= counted.is_some_and(|(count, _)| count.parse::<u32>().is_ok());
        let known = ["Planning Time", "Execution Time", "Total runtime", "Settings", "Query Identifier"];
        let fact = text.split_once(": ").filter(|(name, _)| known.contains(name));
        self.facts.extend(fact.map(|(name, value)| (name.to_string(), value.to_string())));
        Ok(())
    }

    fn operator(&mut self, line: u32, column: usize, text: &str) -> Result<(), Fault> {
        let (column, role) = self.part.take().unwrap_or((column, String::new()));
        while self.above.last().is_some_and(|last| *last >= column) {
            self.above.pop();
        }
        let depth = self.above.len();
        self.above.push(column);
        (self.is_below, self.is_open) = (false, false);
        let cut = || Fault { line, why: "the plan is cut off within an operator".to_string() };
        let mut node = node(text).ok_or_else(cut)?;
        if !is_operator(&node.operation) {
            return Err(unknown_operator(line, &node.operation));
        }
        (node.depth, node.role, self.worker) = (depth, role, None);
        self.nodes.push((line, node));
        Ok(())
    }

    fn plan(self) -> Result<ExecutionPlan, Fault> {
        let may_be_cut = self.may_be_cut();
        let mut operations = Vec::new();
        for ((line, node), id) in self.nodes.into_iter().zip(1..) {
            push(&mut operations, line, node.operation(id))?;
        }
        // EXPLAIN leaves out buffers of which there were none.
        let has_buffers = operations.iter().any(|operation| operation.buffers.is_some());
        for operation in
            operations.iter_mut().filter(|it| has_buffers && it.buffers.is_none() && it.starts.is_some())
        {
            operation.buffers = Some(PlanFigure::exactly(0.0, "0".to_string()));
            operation.reads.clone_from(&operation.buffers);
        }
        let mut plan = ExecutionPlan::of(PlanSource::Postgres, PlanTree::Printed, operations);
        if is_flattened(&plan) {
            plan.operations.iter_mut().for_each(|operation| operation.depth = 0);
            plan.tree = PlanTree::Unknown;
        }
        (plan.facts, plan.triggers, plan.may_be_cut) = (self.facts, self.triggers, may_be_cut);
        self.entry.give(&mut plan);
        Ok(plan)
    }

    /// Returns the reason why lines at the end of the plan may be missing.
    fn may_be_cut(&self) -> Option<&'static str> {
        let was_executed = self.nodes.iter().any(|(_, node)| node.actual.is_some());
        let mut ends = self.facts.iter().map(|(name, _)| name.as_str());
        let has_end = self.is_counted
            || self.entry.is_logged()
            || ends.any(|name| matches!(name, "Execution Time" | "Total runtime"));
        match (was_executed && !has_end, self.is_open) {
            (true, _) => Some("it has no Execution Time"),
            (false, true) => Some("its last line has an open bracket"),
            (false, false) => None,
        }
    }
}

/// Lines below all operators of a plan.
const BELOW: [&str; 9] = [
    "Planning",
    "Execution",
    "Total runtime",
    "Settings",
    "JIT",
    "Trigger ",
    "Query Identifier",
    "Serialization",
    "Query Text",
];

/// True if blanks at the starts of lines were lost: all operators are in one or two columns, and
/// one that reads from another is above none.
fn is_flattened(plan: &ExecutionPlan) -> bool {
    let operations = &plan.operations;
    let (inputs, last) = (plan.inputs(), operations.len() - 1);
    let lacks_input = |at: usize| inputs[at].is_empty() && !is_leaf(&operations[at].operation);
    operations.iter().all(|operation| operation.depth <= 1) && (0..last).any(lacks_input)
}

/// Reads `t_audit on t: time=2.0 calls=50`, as it is behind the word `Trigger`.
fn fired(text: &str) -> Option<PlanTrigger> {
    // A name may have a colon, too.
    let (name, figures) = text.rsplit_once(": ")?;
    let number = |name: &str| {
        let value = figures.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.and_then(|value| value.parse::<f64>().ok()).filter(|value| value.is_finite())
    };
    Some(trigger(name.to_string(), number("time"), number("calls")?))
}

/// Reads the sum of `Timing: Generation 1.2 ms, ..., Total 12.3 ms`.
fn compilation_ms(text: &str) -> Option<f64> {
    let (_, total) = text.strip_prefix("Timing: ")?.rsplit_once("Total ")?;
    total.split(' ').next()?.parse::<f64>().ok().filter(|ms| ms.is_finite())
}

/// True if a bracket outside of names and literals in quotes is not closed.
pub(super) fn is_open(text: &str) -> bool {
    let mut depth = 0_i64;
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(end), letter) if letter == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, _) => {}
        }
    }
    depth > 0
}

/// Reads the line of an operator; `None` if it ends within its figures.
fn node(text: &str) -> Option<Node> {
    let ends = MARKS.iter().filter_map(|mark| text.find(mark));
    let end = ends.chain(text.find("  (c")).chain(text.find("  (a")).min().unwrap_or(text.len());
    // A word processor makes one letter of two dots.
    let figures = text[end..].replace('…', "..");
    let (title, mut rest) = (text[..end].trim(), figures.trim());
    let mut node = titled(title);
    while let Some(inside) = rest.strip_prefix('(') {
        let (figures, behind) = inside.split_once(')')?;
        let value = |name: &str| {
            let found = figures.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.map(str::to_string)
        };
        let number = |name: &str| value(name).and_then(|value| value.parse::<f64>().ok());
        if figures == "never executed" {
            node.actual = Some(Actual::default());
        } else if figures.starts_with("actual") {
            let time_ms = figures.split("time=").nth(1).and_then(|time| time.split("..").nth(1));
            node.actual = Some(Actual {
                time_ms: time_ms.and_then(|time| time.split(' ').next()?.parse().ok()),
                rows: number("rows")?,
                has_decimals: value("rows")?.contains('.'),
                loops: number("loops")?,
            });
        } else {
            let (cost, total) = (value("cost")?, |cost: &str| cost.rsplit("..").next()?.parse::<f64>().ok());
            node.cost = Some(PlanFigure::exactly(total(&cost)?, cost.clone()));
            node.plan_rows = Some(number("rows")?);
        }
        rest = behind.trim_start();
    }
    Some(node)
}

/// Divides `Index Scan using t1_n1 on public.t1 a` into operator and object.
fn titled(title: &str) -> Node {
    let (operation, index, relation) = match (title.split_once(" using "), title.split_once(" on ")) {
        (Some((operation, rest)), _) => {
            let (index, relation) = rest.split_once(" on ").unwrap_or((rest, ""));
            (operation, index, relation)
        }
        (None, Some((operation, index))) if operation.ends_with("Bitmap Index Scan") => {
            (operation, index, "")
        }
        (None, Some((operation, relation))) => (operation, "", relation),
        // PostgreSQL 8 has no `on` here.
        (None, None) => match title.strip_prefix("Subquery Scan ") {
            Some(relation) => (&title[..13], "", relation),
            None => (title, "", ""),
        },
    };
    let index = unquoted(index).0;
    let (table, behind) = unquoted(relation);
    // Behind a dot is the name, and before it the schema.
    let (schema, (table, alias)) = match behind.strip_prefix('.') {
        Some(behind) => (format!("{table}."), unquoted(behind)),
        None => (String::new(), (table, behind)),
    };
    let alias = unquoted(alias.trim()).0;
    let alias = if alias.is_empty() || alias == table { String::new() } else { format!(" {alias}") };
    let (name, object) = match (index.is_empty(), table.is_empty()) {
        (true, _) => (format!("{schema}{table}{alias}"), table),
        (false, true) => (index.clone(), index),
        (false, false) => (format!("{index} on {schema}{table}{alias}"), format!("{index} on {table}")),
    };
    Node { operation: operation.to_string(), name, object, ..Node::default() }
}

/// Returns the first name of a text without its quotes, and the text behind it.
fn unquoted(text: &str) -> (String, &str) {
    if let Some(inside) = text.strip_prefix('"')
        && let Some((name, behind)) = inside.split_once('"')
    {
        return (name.to_string(), behind);
    }
    let end = text.find([' ', '.']).unwrap_or(text.len());
    (text[..end].to_string(), &text[end..])
}

/// Takes a line below an operator: a condition, or figures by their names.
fn property(node: &mut Node, text: &str) {
    let (name, value) = text.split_once(": ").unwrap_or((text, ""));
    let own = if name.starts_with("Worker ") { value.trim() } else { text };
    node.work = node.work.with(work(own));
    if name.starts_with("Worker ") || !value.contains("  ") && node.takes(name, value.trim()) {
        return;
    }
    match name {
        "Buffers" => grouped(node, value, " blocks"),
        "I/O Timings" => grouped(node, value, " time"),
        "WAL" => grouped(node, &format!("wal {value}"), ""),
        "Heap Blocks" => grouped(node, value, " heap blocks"),
        _ => text.split("  ").filter_map(|part| part.split_once(": ")).for_each(|(name, value)| {
            let name = match name.trim() {
                name @ ("Hits" | "Misses" | "Evictions" | "Overflows") => format!("cache {name}"),
                name @ ("Buckets" | "Batches") => format!("hash {name}"),
                name => name.to_string(),
            };
            node.takes(&name, value.split(" (originally").next().unwrap_or_default().trim());
        }),
    }
}

/// Takes `shared hit=2 read=1, temp read=5` with a name for each figure.
fn grouped(node: &mut Node, groups: &str, unit: &str) {
    for group in groups.split(", ") {
        let mut of = "";
        for word in group.split_whitespace() {
            let Some((event, value)) = word.split_once('=') else {
                of = word;
                continue;
            };
            let name = match (unit, of) {
                (" time", "temp") => format!("temp i/o {event} time"),
                (" time", _) => format!("i/o {event} time"),
                (_, "") => format!("{event}{unit}"),
                (_, of) => format!("{of} {event}{unit}"),
            };
            node.takes(&name, value);
        }
    }
}

/// Reads a work area from lines such as `Batches: 5  Memory Usage: 4145kB  Disk Usage: 1234kB`.
fn work(text: &str) -> Work {
    let mut work = Work::default();
    for part in text.split("  ") {
        let Some((name, value)) = part.trim().split_once(": ") else { continue };
        let first = value.split([' ', 'k']).next().and_then(|number| number.parse::<f64>().ok());
        let Some(number) = first else { continue };
        match name {
            "Memory" | "Memory Usage" | "Peak Memory" | "Maximum Storage" => work.memory_kb += number,
            "Disk" | "Disk Usage" => work.disk_kb += number,
            "Batches" => work.batches = number,
            _ => {}
        }
    }
    work
}
