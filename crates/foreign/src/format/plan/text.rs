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

use super::postgres::{Actual, Node, Work, compilation, role, trigger};
use super::{Fault, Lines, TRIGGERS_MOST, add, push};
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanSource, PlanTree, PlanTrigger};

pub(super) fn read(lines: &Lines<'_>) -> Result<Vec<ExecutionPlan>, Fault> {
    let mut plans = Vec::new();
    let mut tree: Option<Tree> = None;
    let mut is_logged = false;
    for (number, line) in lines {
        let line = line.replace('\t', "        ");
        let text = line.trim_start();
        let column = line.len() - text.len();
        let is_top = has_figures(text) && !text.starts_with("->");
        if is_top && tree.as_ref().is_none_or(|tree| column <= tree.top) {
            plans.extend(tree.take().map(Tree::plan).transpose()?);
            tree = Some(Tree { is_whole: std::mem::take(&mut is_logged), ..Tree::new(column) });
        }
        is_logged |= is_of_log(text);
        if let Some(tree) = &mut tree {
            tree.take(*number, column, text)?;
        }
    }
    plans.extend(tree.map(Tree::plan).transpose()?);
    Ok(plans)
}

pub(crate) fn has_figures(text: &str) -> bool {
    ["  (cost=", "  (actual ", "  (never executed)"].iter().any(|mark| text.contains(mark))
}

/// True for the lines that auto_explain prints above a plan, which then has no execution time.
fn is_of_log(text: &str) -> bool {
    text.starts_with("Query Text:") || text.contains("duration: ") && text.trim_end().ends_with("plan:")
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
    /// True if the execution time may be missing from a whole plan.
    is_whole: bool,
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
            is_whole: false,
            is_open: false,
            facts: Vec::new(),
            triggers: Vec::new(),
        }
    }

    fn take(&mut self, line: u32, column: usize, text: &str) -> Result<(), Fault> {
        if text.starts_with("->") || self.nodes.is_empty() {
            return self.operator(line, column, text.trim_start_matches("->").trim_start());
        }
        let is_part = ["InitPlan ", "SubPlan ", "CTE "].iter().any(|word| text.starts_with(word));
        if is_part && !text.contains(": ") && column > self.top {
            self.part = Some((column, role(text)));
            return Ok(());
        }
        if column <= self.top {
            self.is_below = true;
            self.below(line, text.trim_end())?;
        } else if self.is_below {
            let ms = compilation_ms(text).filter(|_| self.is_compilation);
            self.facts.extend(ms.map(compilation));
        } else if let Some((_, node)) = self.nodes.last_mut() {
            property(node, text);
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
        // psql counts the lines of a whole plan.
        self.is_whole |= text.starts_with('(') && (text.ends_with(" rows)") || text.ends_with(" row)"));
        let known = ["Planning Time", "Execution Time", "Total runtime", "Settings"];
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
        (node.depth, node.role) = (depth, role);
        self.nodes.push((line, node));
        Ok(())
    }

    fn plan(self) -> Result<ExecutionPlan, Fault> {
        // EXPLAIN leaves out buffers of which there were none.
        let has_buffers = self.nodes.iter().any(|(_, node)| node.buffers.is_some());
        let may_be_cut = self.may_be_cut();
        let mut operations = Vec::new();
        for ((line, node), id) in self.nodes.into_iter().zip(1..) {
            let mut operation = node.operation(id);
            if has_buffers && operation.buffers.is_none() && operation.starts.is_some() {
                operation.buffers = Some(PlanFigure::exactly(0.0, "0".to_string()));
            }
            push(&mut operations, line, operation)?;
        }
        let plan = ExecutionPlan::of(PlanSource::Postgres, PlanTree::Printed, operations);
        Ok(ExecutionPlan { facts: self.facts, triggers: self.triggers, may_be_cut, ..plan })
    }

    /// Returns the reason why lines at the end of the plan may be missing.
    fn may_be_cut(&self) -> Option<&'static str> {
        let was_executed = self.nodes.iter().any(|(_, node)| node.actual.is_some());
        let mut ends = self.facts.iter().map(|(name, _)| name.as_str());
        let has_end = self.is_whole || ends.any(|name| matches!(name, "Execution Time" | "Total runtime"));
        match (was_executed && !has_end, self.is_open) {
            (true, _) => Some("it has no Execution Time"),
            (false, true) => Some("its last line has an open bracket"),
            (false, false) => None,
        }
    }
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
fn is_open(text: &str) -> bool {
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
    let end = text.find("  (").unwrap_or(text.len());
    let (title, mut rest) = (text[..end].trim(), text[end..].trim());
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
            (node.cost, node.plan_rows) = (value("cost")?, Some(number("rows")?));
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
        (None, None) => (title, "", ""),
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

/// A line below an operator.
fn property(node: &mut Node, text: &str) {
    let (name, value) = text.split_once(": ").unwrap_or((text, ""));
    if node.takes_condition(name, value) {
        return;
    }
    if name == "Buffers" {
        node.buffers = Some(blocks(value));
    }
    let own = if name.starts_with("Worker ") { value.trim() } else { text };
    node.work = node.work.with(work(own));
}

/// Returns the blocks got from the cache: those hit and those read.
fn blocks(value: &str) -> f64 {
    let kinds = value.split(", ").filter(|kind| !kind.starts_with("temp"));
    let words = kinds.flat_map(|kind| kind.split(' '));
    let counted = words.filter_map(|word| word.strip_prefix("hit=").or(word.strip_prefix("read=")));
    counted.filter_map(|count| count.parse::<f64>().ok()).sum()
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
