//! EXPLAIN (FORMAT JSON), as a client, psql or auto_explain prints it.
//!
//! An operator gets the words of EXPLAIN's text: a `Hash Join` of the type `Left` is a `Hash Left
//! Join`.

use super::client::Numbered;
use super::log::LogEntry;
use super::postgres::{Actual, Node, Work, compilation, conditions, is_operator, role, trigger};
use super::{Fault, TRIGGERS_MOST, push, unknown_operator};
use plumb_record::plan::{ExecutionPlan, PlanFigure, PlanOperation, PlanSource, PlanTree, PlanTrigger};
use serde_json::{Map, Value};

/// Reads the plans of all documents of a text.
pub(super) fn read(lines: &[Numbered<'_>]) -> Result<Vec<ExecutionPlan>, Fault> {
    let mut text = String::new();
    let mut starts = Vec::with_capacity(lines.len());
    for (number, line) in lines {
        starts.push((text.len(), *number));
        text.push_str(line);
        text.push('\n');
    }
    // No line end follows the last line, because one within a text is a fault of its own.
    let text = Text { text: text.trim_end(), starts: &starts };
    let mut plans = Vec::new();
    let mut at = 0;
    let mut entry = LogEntry::default();
    while let Some(begin) = text.next_document(at, &mut entry) {
        let mut documents = serde_json::Deserializer::from_str(&text.text[begin..]).into_iter::<Value>();
        let document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(refused(text.line_of(begin), &error)),
            None => break,
        };
        at = begin + documents.byte_offset();
        plans.extend(of_document(&document, text.line_of(begin), std::mem::take(&mut entry))?);
    }
    Ok(plans)
}

/// Returns the plans of a document.
pub(super) fn of_document(
    document: &Value,
    line: u32,
    mut entry: LogEntry,
) -> Result<Vec<ExecutionPlan>, Fault> {
    let all = document.as_array().map_or(std::slice::from_ref(document), Vec::as_slice);
    let mut plans = Vec::new();
    for one in all {
        if let Some(plan) = one.get("Plan").and_then(Value::as_object) {
            let mut plan = whole(one, plan, line)?;
            plan.query = one.get("Query Text").and_then(Value::as_str).unwrap_or_default().to_string();
            std::mem::take(&mut entry).give(&mut plan);
            plans.push(plan);
        }
    }
    Ok(plans)
}

/// Lines in one text, with the place and the number of each.
struct Text<'t> {
    text: &'t str,
    starts: &'t [(usize, u32)],
}

impl Text<'_> {
    /// Returns the place of the next line that begins with a bracket and is no prefix of a log.
    fn next_document(&self, from: usize, entry: &mut LogEntry) -> Option<usize> {
        let mut at = from;
        for line in self.text.get(from..)?.split_inclusive('\n') {
            let begin = line.len() - line.trim_start().len();
            let behind = line[begin..].strip_prefix(['[', '{']).map(str::trim_start);
            if behind.is_some_and(|behind| behind.is_empty() || behind.starts_with(['{', '"', '['])) {
                return Some(at + begin);
            }
            entry.takes(line.trim());
            at += line.len();
        }
        None
    }

    fn line_of(&self, at: usize) -> u32 {
        let next = self.starts.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1).map_or(1, |found| self.starts[found].1)
    }
}

fn refused(begin: u32, error: &serde_json::Error) -> Fault {
    let line = begin + u32::try_from(error.line()).unwrap_or(0).saturating_sub(1);
    let why = match error.classify() {
        serde_json::error::Category::Eof => "the plan is cut off: the file ends within its JSON".to_string(),
        _ if error.to_string().starts_with("recursion limit") => {
            "the plan has more than 60 levels; print it as text".to_string()
        }
        _ => format!("the plan is no JSON: {error}"),
    };
    Fault { line, why }
}

fn whole(document: &Value, plan: &Map<String, Value>, line: u32) -> Result<ExecutionPlan, Fault> {
    let mut operations = Vec::new();
    add(plan, 0, line, &mut operations)?;
    let time = |name: &str| {
        let ms = document.get(name).and_then(Value::as_f64);
        ms.map(|ms| (name.to_string(), format!("{ms:.3} ms")))
    };
    let compiled = document.pointer("/JIT/Timing/Total").and_then(Value::as_f64).map(compilation);
    let facts = [time("Planning Time"), compiled, time("Execution Time")];
    let mut facts: Vec<(String, String)> = facts.into_iter().flatten().collect();
    if let Some(settings) = document.get("Settings").and_then(Value::as_object) {
        let one = |(name, value): (&String, &Value)| format!("{name} = '{}'", value.as_str().unwrap_or("?"));
        facts.push(("Settings".to_string(), settings.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    let mut triggers = Vec::new();
    let fired = document.get("Triggers").and_then(Value::as_array).into_iter().flatten();
    let fired: Vec<&Map<String, Value>> = fired.filter_map(Value::as_object).collect();
    // EXPLAIN's text has the table if a statement wrote to several.
    let are_of_one = fired.windows(2).all(|pair| pair[0].get("Relation") == pair[1].get("Relation"));
    for fired in fired.into_iter().filter_map(|fired| read_trigger(fired, are_of_one)) {
        super::add(&mut triggers, fired, line, "triggers", TRIGGERS_MOST)?;
    }
    let plan = ExecutionPlan::of(PlanSource::Postgres, PlanTree::Printed, operations);
    Ok(ExecutionPlan { facts, triggers, ..plan })
}

fn read_trigger(fired: &Map<String, Value>, are_of_one: bool) -> Option<PlanTrigger> {
    let text = |key: &str| fired.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let number = |key: &str| fired.get(key).and_then(Value::as_f64);
    let name = match (text("Constraint Name"), text("Trigger Name")) {
        // The trigger of a constraint has a name that no user gave.
        (Some(constraint), _) => format!("for constraint {constraint}"),
        (None, name) => name?.to_string(),
    };
    let relation = text("Relation").filter(|_| !are_of_one);
    let relation = relation.map_or(String::new(), |relation| format!(" on {relation}"));
    Some(trigger(name + &relation, number("Time"), number("Calls")?))
}

/// Adds an operator and its inputs; JSON is 128 levels deep at most.
fn add(
    node: &Map<String, Value>,
    depth: usize,
    line: u32,
    operations: &mut Vec<PlanOperation>,
) -> Result<(), Fault> {
    let id = u32::try_from(operations.len() + 1).unwrap_or(u32::MAX);
    let read = read_node(node, depth);
    if !is_operator(&read.operation) {
        return Err(unknown_operator(line, &read.operation));
    }
    push(operations, line, read.operation(id))?;
    for input in node.get("Plans").and_then(Value::as_array).into_iter().flatten() {
        let Some(input) = input.as_object() else {
            return Err(Fault { line, why: "an input of an operator is no operator".to_string() });
        };
        add(input, depth + 1, line, operations)?;
    }
    Ok(())
}

fn read_node(node: &Map<String, Value>, depth: usize) -> Node {
    let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
    let number = |key: &str| node.get(key).and_then(Value::as_f64);
    let (name, object) = object(node);
    let cost = match (number("Startup Cost"), number("Total Cost")) {
        (Some(startup), Some(total)) => Some(PlanFigure::exactly(total, format!("{startup:.2}..{total:.2}"))),
        _ => None,
    };
    let actual = number("Actual Loops").map(|loops| Actual {
        time_ms: number("Actual Total Time").filter(|_| loops > 0.0),
        rows: number("Actual Rows").unwrap_or(0.0),
        has_decimals: node.get("Actual Rows").is_some_and(Value::is_f64),
        loops,
    });
    let mut read = Node {
        depth,
        role: role(text("Subplan Name")),
        operation: operation(node),
        name,
        object,
        cost,
        plan_rows: number("Plan Rows"),
        actual,
        work: work(node),
        ..Node::default()
    };
    for name in conditions() {
        read.takes(name, text(name));
    }
    for (name, value) in node {
        let groups = || value.get("Group Count").map_or(String::new(), Value::to_string);
        match value {
            Value::Object(_) => read.takes(name, &groups()),
            Value::Bool(true) => read.takes(name, "true"),
            Value::Number(number) => read.takes(&name.replace("HashAgg B", "Hash B"), &number.to_string()),
            Value::String(text) if name == "Sort Method" => read.takes(name, text),
            _ => false,
        };
    }
    read
}

/// Returns the operator in the words of EXPLAIN's text.
fn operation(node: &Map<String, Value>) -> String {
    let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
    let is = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or_default();
    let kind = text("Node Type");
    let named = match (kind, text("Strategy"), text("Join Type")) {
        ("Aggregate", "Sorted", _) => "GroupAggregate".to_string(),
        ("Aggregate", "Hashed", _) => "HashAggregate".to_string(),
        ("Aggregate", "Mixed", _) => "MixedAggregate".to_string(),
        ("SetOp", strategy, _) => {
            let hashed = if strategy == "Hashed" { "Hash" } else { "" };
            format!("{hashed}SetOp {}", text("Command"))
        }
        ("ModifyTable", ..) => text("Operation").to_string(),
        ("Foreign Scan", ..) if !matches!(text("Operation"), "" | "Select") => {
            format!("Foreign {}", text("Operation"))
        }
        ("Custom Scan", ..) => format!("Custom Scan ({})", text("Custom Plan Provider")),
        (_, _, "" | "Inner") => kind.to_string(),
        ("Nested Loop", _, join) => format!("Nested Loop {join} Join"),
        (_, _, join) => format!("{} {join} Join", kind.trim_end_matches(" Join")),
    };
    let parallel = if is("Parallel Aware") { "Parallel " } else { "" };
    let partial = match text("Partial Mode") {
        "" | "Simple" => String::new(),
        mode => format!("{mode} "),
    };
    let backward = if text("Scan Direction") == "Backward" { " Backward" } else { "" };
    format!("{parallel}{partial}{named}{backward}")
}

/// Returns an operator's object as shown, and without schema and alias.
fn object(node: &Map<String, Value>) -> (String, String) {
    let text = |key: &str| node.get(key).and_then(Value::as_str).unwrap_or_default();
    let named = ["Relation Name", "Function Name", "CTE Name", "Table Function Name", "Tuplestore Name"];
    let relation = named.into_iter().map(text).find(|name| !name.is_empty()).unwrap_or_default();
    let (alias, index) = (text("Alias"), text("Index Name"));
    let relation = if relation.is_empty() { alias } else { relation };
    let schema = if text("Schema").is_empty() { String::new() } else { format!("{}.", text("Schema")) };
    let aliased = if alias.is_empty() || alias == relation { String::new() } else { format!(" {alias}") };
    match (index, relation) {
        ("", relation) => (format!("{schema}{relation}{aliased}"), relation.to_string()),
        (index, "") => (index.to_string(), index.to_string()),
        (index, relation) => {
            (format!("{index} on {schema}{relation}{aliased}"), format!("{index} on {relation}"))
        }
    }
}

/// Returns the work area of an operator with those of its workers.
fn work(node: &Map<String, Value>) -> Work {
    let number = |key: &str| node.get(key).and_then(Value::as_f64).unwrap_or(0.0);
    let is_on_disk = node.get("Sort Space Type").and_then(Value::as_str) == Some("Disk");
    let sorted = number("Sort Space Used");
    let peak = |key: &str| {
        let memory = node.get(key).and_then(|groups| groups.get("Sort Space Memory"));
        memory.and_then(|memory| memory.get("Peak Sort Space Used")).and_then(Value::as_f64).unwrap_or(0.0)
    };
    let own = Work {
        memory_kb: if is_on_disk { 0.0 } else { sorted }
            + number("Peak Memory Usage")
            + number("Maximum Storage")
            + peak("Full-sort Groups").max(peak("Pre-sorted Groups")),
        disk_kb: if is_on_disk { sorted } else { 0.0 } + number("Disk Usage"),
        batches: number("Hash Batches").max(number("HashAgg Batches")),
    };
    let workers = node.get("Workers").and_then(Value::as_array).into_iter().flatten();
    workers.filter_map(Value::as_object).map(work).fold(own, Work::with)
}
