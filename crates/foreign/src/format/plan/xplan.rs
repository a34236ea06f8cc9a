//! DBMS_XPLAN's table of a plan with its predicates.
//!
//! ```text
//! first_rows plan                            the arm, if it is right above the table
//! ---------------------------------------    a ruler as long as a line of the table
//! | Id  | Operation          | Name | ...    the columns
//! ---------------------------------------
//! |*  1 |  HASH JOIN         |      | ...    one blank, and one for each operator above
//! ---------------------------------------
//! Predicate Information (identified by operation id):
//!    1 - access("A"."ID"="B"."ID")
//! Note
//! -----
//!    - this is an adaptive plan             a note, up to the next dash or an empty line
//! ```
//!
//! The depth of an operator is the number of rows above it that the plan used. Rows that an
//! adaptive plan did not use are left out, so that the rows below them move up. SQL Monitor has a
//! heading of two lines between rulers of `=`.
//!
//! SQL*Plus breaks lines at its line size: the ruler then has several lines, and so has each row.
//! It repeats `PLAN_TABLE_OUTPUT` on each page. A slide has tabs for bars and no indentation: the
//! tree then follows from the number of inputs that each operator takes. Where that number is not
//! fixed, as that of UNION-ALL, the tree is unknown.

use super::{Fault, Lines, NOTES_MOST, add, push};
use plumb_figures::{CellReading, FigureUnit, read as figure};
use plumb_record::plan::{ExecutionPlan, PlanDetail, PlanFigure, PlanOperation, PlanSource, PlanTree};

/// The columns that are read, with their headings in both forms of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Id,
    Operation,
    Name,
    Starts,
    ExpectedRows,
    Rows,
    Time,
    Buffers,
    Reads,
    Used,
    Temp,
    Cost,
    Other,
}

const COLUMNS: [(&str, Column); 20] = [
    ("Id", Column::Id),
    ("Operation", Column::Operation),
    ("Name", Column::Name),
    ("Starts", Column::Starts),
    ("E-Rows", Column::ExpectedRows),
    ("Rows", Column::ExpectedRows),
    ("A-Rows", Column::Rows),
    ("A-Time", Column::Time),
    ("Buffers", Column::Buffers),
    ("Reads", Column::Reads),
    ("Used-Mem", Column::Used),
    // SQL Monitor
    ("Execs", Column::Starts),
    ("Rows (Estim)", Column::ExpectedRows),
    ("Rows (Actual)", Column::Rows),
    ("Read Reqs", Column::Reads),
    ("Mem (Max)", Column::Used),
    ("TempSpc", Column::Temp),
    ("E-Temp", Column::Temp),
    ("Cost (%CPU)", Column::Cost),
    ("Cost", Column::Cost),
];

/// Reads all plans; none if no line is a heading.
pub(super) fn read(lines: &Lines<'_>) -> Result<Vec<ExecutionPlan>, Fault> {
    let lines = without_pages(lines);
    let mut plans: Vec<ExecutionPlan> = Vec::new();
    let mut facts = Vec::new();
    let mut section = Section::None;
    // Letters of a line that goes on in the next one.
    let mut width = usize::MAX;
    let mut at = 0;
    while at < lines.len() {
        let text = lines[at].1.trim();
        if let Some(table) = Table::at(&lines, at) {
            width = if table.pieces.0 > 1 { table.pieces.1 } else { usize::MAX };
            let (mut plan, end) = table.read(&lines)?;
            plan.facts = std::mem::take(&mut facts);
            plan.elapsed = plan.fact("Duration").and_then(|time| printed(time, FigureUnit::S));
            plans.push(plan);
            (at, section) = (end, Section::None);
            continue;
        }
        facts.extend(fact(text).map(|(name, value)| (name.to_string(), value.to_string())));
        let is_wrapped = at > 0 && lines[at - 1].1.chars().count() >= width;
        section = match plans.last_mut() {
            Some(plan) => section.take(plan, lines[at].0, text, is_wrapped)?,
            None => Section::None,
        };
        at += 1;
    }
    Ok(plans)
}

/// Place in what is printed below a plan; a section begins with its first line after the heading.
#[derive(Clone, Copy)]
enum Section {
    None,
    BeforePredicates,
    Predicates,
    BeforeNotes,
    Notes,
}

impl Section {
    /// Adds a line to the plan above it; returns the section of the next line.
    fn take(
        self,
        plan: &mut ExecutionPlan,
        line: u32,
        text: &str,
        is_wrapped: bool,
    ) -> Result<Section, Fault> {
        let is_between = text.is_empty() || is_ruler(text);
        Ok(match self {
            _ if text.starts_with("Predicate Information") => Section::BeforePredicates,
            _ if text == "Note" => Section::BeforeNotes,
            _ if fact(text).is_some() => Section::None,
            Section::BeforePredicates | Section::BeforeNotes if is_between => self,
            Section::BeforePredicates | Section::Predicates if !is_between => {
                predicate(plan, text, is_wrapped);
                Section::Predicates
            }
            Section::BeforeNotes | Section::Notes if !is_between => {
                note(plan, line, text, is_wrapped)?;
                Section::Notes
            }
            _ => Section::None,
        })
    }
}

/// Adds a line of notes to a plan.
fn note(plan: &mut ExecutionPlan, line: u32, text: &str, is_wrapped: bool) -> Result<(), Fault> {
    match (text.strip_prefix("- "), plan.notes.last_mut()) {
        (None, Some(before)) => {
            before.push_str(if is_wrapped { "" } else { " " });
            before.push_str(text);
            Ok(())
        }
        (begin, _) => {
            let note = begin.unwrap_or(text).trim_start().to_string();
            add(&mut plan.notes, note, line, "notes", NOTES_MOST)
        }
    }
}

/// Returns the lines without the headings of pages.
fn without_pages<'a>(lines: &Lines<'a>) -> Vec<(u32, &'a str)> {
    let is_head = |at: usize| lines.get(at).is_some_and(|(_, line)| line.trim() == "PLAN_TABLE_OUTPUT");
    let is_of_head = |at: usize| {
        let before = at > 0 && is_head(at - 1) && is_ruler(lines[at].1.trim());
        is_head(at) || before || is_head(at + 1) && lines[at].1.is_empty()
    };
    (0..lines.len()).filter(|at| !is_of_head(*at)).map(|at| lines[at]).collect()
}

fn is_ruler(text: &str) -> bool {
    !text.is_empty() && (text.bytes().all(|byte| byte == b'-') || text.bytes().all(|byte| byte == b'='))
}

/// True if the line may be the heading of a table with bars.
pub(super) fn may_be_heading(line: &str) -> bool {
    let mut cells = line.trim().split('|').map(column);
    line.trim().starts_with('|') && cells.any(|cell| cell == Column::Operation)
}

fn column(heading: &str) -> Column {
    let known = COLUMNS.iter().find(|(name, _)| *name == heading.trim());
    known.map_or(Column::Other, |(_, column)| *column)
}

/// A table from its heading on.
struct Table {
    /// Place of the heading in the lines.
    head: usize,
    headings: Vec<String>,
    columns: Vec<Column>,
    between: char,
    /// Lines of a row, and letters of each line but the last.
    pieces: (usize, usize),
    indent: usize,
    name: String,
}

/// Rows of a table with the lines in which they begin.
struct Rows {
    rows: Vec<(u32, String)>,
    end: usize,
    fault: Option<Fault>,
}

/// Returns a fact about a plan with its name, which a line above the table prints.
fn fact(text: &str) -> Option<(&'static str, &str)> {
    const NAMES: [(&str, &str); 5] = [
        ("Plan hash value:", "Plan hash value"),
        ("SQL Plan Monitoring Details (Plan Hash Value=", "Plan hash value"),
        ("SQL_ID", "SQL_ID"),
        ("SQL ID  ", "SQL_ID"),
        ("Duration  ", "Duration"),
    ];
    let value = |printed: &str| {
        let value = text.trim().strip_prefix(printed)?.trim_start_matches([' ', ':']);
        Some(value.trim_end_matches(')'))
    };
    NAMES.into_iter().find_map(|(printed, name)| Some((name, value(printed)?)))
}

impl Table {
    /// Returns the table whose heading is this line.
    fn at(lines: &Lines<'_>, head: usize) -> Option<Table> {
        let line = lines[head].1;
        line.contains("Id").then_some(())?;
        let between = if line.trim_start().starts_with('|') { '|' } else { '\t' };
        let indent = if between == '|' { line.len() - line.trim_start().len() } else { 0 };
        let rulers = lines[..head].iter().rev().take_while(|(_, line)| is_ruler(line.trim())).count();
        let first = head - rulers;
        let length = |at: usize| lines[at].1.trim().chars().count();
        // The rulers of an earlier table and of this one may follow each other.
        let is_whole = rulers < 2 || line.trim_end().ends_with(between) && length(head) == length(head - 1);
        let pieces = if is_whole { (1, 0) } else { (rulers, length(first)) };
        let (headings, columns, name) = (Vec::new(), Vec::new(), String::new());
        let mut table = Table { head, headings, columns, between, pieces, indent, name };
        let row = table.row(lines, head)?;
        table.headings = table.cells(&row).into_iter().map(|cell| cell.trim().to_string()).collect();
        table.take_second_head(lines);
        table.columns = table.headings.iter().map(|heading| column(heading)).collect();
        let needed = [Column::Id, Column::Operation];
        needed.iter().all(|needed| table.columns.contains(needed)).then_some(())?;
        let above =
            first.checked_sub(if is_whole && rulers > 1 { 0 } else { 1 }).map(|at| lines[at].1.trim());
        // A heading of Markdown is above an empty line.
        let heading =
            first.checked_sub(2).map(|at| lines[at].1.trim()).filter(|text| text.starts_with(['#', '*']));
        let above = above
            .filter(|text| !text.is_empty())
            .or(heading)
            .map(|text| text.trim_matches(['#', '*', ' ', ':']));
        let is_name =
            |text: &&str| !text.is_empty() && text.len() <= 80 && !text.to_lowercase().contains("hash value");
        table.name = above.filter(is_name).filter(|text| !is_ruler(text)).unwrap_or_default().to_string();
        Some(table)
    }

    /// Takes a second line of the heading, which has no `Id`.
    fn take_second_head(&mut self, lines: &Lines<'_>) {
        let second =
            lines.get(self.head + 1).filter(|(_, line)| self.between == '|' && line.trim().starts_with('|'));
        let cells: Vec<String> = second
            .map(|(_, line)| self.cells(line).into_iter().map(|cell| cell.trim().to_string()).collect())
            .unwrap_or_default();
        if cells.len() == self.headings.len() && cells.first().is_some_and(String::is_empty) {
            for (heading, more) in self.headings.iter_mut().zip(cells) {
                *heading = format!("{heading} {more}").trim().to_string();
            }
            self.head += 1;
        }
    }

    /// Returns the row that begins at a line; `None` if the lines end within it.
    fn row(&self, lines: &Lines<'_>, at: usize) -> Option<String> {
        let (count, width) = self.pieces;
        let mut row = String::new();
        for piece in 0..count {
            let line = lines.get(at + piece)?.1;
            let blanks = line.len() - line.trim_start().len();
            let line = &line[self.indent.min(blanks)..];
            row.push_str(line);
            if piece + 1 < count {
                row.extend(std::iter::repeat_n(' ', width.saturating_sub(line.chars().count())));
            }
        }
        Some(row)
    }

    fn cells<'r>(&self, row: &'r str) -> Vec<&'r str> {
        match self.between {
            '|' => {
                let row = row.trim();
                row.strip_prefix('|').unwrap_or(row).trim_end_matches('|').split('|').collect()
            }
            _ => row.split('\t').collect(),
        }
    }

    /// Reads the rows; returns the plan and the place behind it.
    fn read(self, lines: &Lines<'_>) -> Result<(ExecutionPlan, usize), Fault> {
        let Rows { rows, end, fault } = self.rows(lines);
        if let Some(fault) = fault {
            return Err(fault);
        }
        let mut operations = Vec::new();
        for (number, row) in rows {
            if let Some(operation) = self.operation(&row, number)? {
                push(&mut operations, number, operation)?;
            }
        }
        if operations.is_empty() {
            return Err(Fault { line: lines[self.head].0, why: "the plan has no operator".to_string() });
        }
        // Of rows that are left: those above a row are all that begin further left.
        let mut above: Vec<usize> = Vec::new();
        for operation in &mut operations {
            let begin = operation.depth;
            while above.last().is_some_and(|last| *last >= begin) {
                above.pop();
            }
            operation.depth = above.len();
            above.push(begin);
        }
        let tree = self.tree(&mut operations);
        let plan = ExecutionPlan::of(PlanSource::Oracle, tree, operations);
        Ok((ExecutionPlan { name: self.name, ..plan }, end))
    }

    /// Returns the rows as they are printed, up to the end of the table or to a fault.
    fn rows(&self, lines: &Lines<'_>) -> Rows {
        let mut rows = Vec::new();
        let mut at = self.head + self.pieces.0;
        let has_ruler = lines.get(at).is_some_and(|(_, line)| is_ruler(line.trim()));
        if has_ruler {
            at += self.pieces.0;
        }
        let mut cut = None;
        while let Some((number, line)) = lines.get(at).copied() {
            if is_ruler(line.trim()) {
                let end = lines.len().min(at + self.pieces.0);
                return Rows { rows, end, fault: None };
            }
            let begins = match self.between {
                '|' => line.trim_start().starts_with('|'),
                _ => line.contains('\t') && id(line.split('\t').next().unwrap_or_default()).is_some(),
            };
            if !begins {
                cut = has_ruler.then_some(number);
                break;
            }
            let row = self.row(lines, at);
            let row = row.filter(|row| self.between != '|' || row.trim_end().ends_with('|'));
            let Some(row) = row else {
                cut = Some(number);
                break;
            };
            rows.push((number, row));
            at += self.pieces.0;
        }
        if at >= lines.len() && has_ruler {
            let last = rows.last().map(|(number, _)| *number);
            cut = cut.or(last).or(lines.last().map(|(number, _)| *number));
        }
        let fault =
            cut.map(|line| Fault { line, why: "the plan is cut off: no ruler ends its table".to_string() });
        Rows { rows, end: at.min(lines.len()), fault }
    }

    /// Reads a row; `None` if an adaptive plan did not use the operator.
    fn operation(&self, row: &str, line: u32) -> Result<Option<PlanOperation>, Fault> {
        let cells = self.cells(row);
        let wrong = |why: String| Fault { line, why };
        // Blank cells at the end of a line with tabs may be missing.
        if self.between == '|' && cells.len() != self.columns.len() {
            let (found, expected) = (cells.len(), self.columns.len());
            return Err(wrong(format!("a row of the plan has {found} cells, expected {expected}")));
        }
        let of = |wanted: Column| {
            let at = self.columns.iter().position(|column| *column == wanted);
            at.and_then(|at| cells.get(at)).copied().unwrap_or_default()
        };
        let printed = |wanted: Column, unit: FigureUnit| printed(of(wanted), unit);
        let operation = of(Column::Operation);
        let blanks = operation.len() - operation.trim_start().len();
        let used = of(Column::Used).trim();
        let passes = used.split_once('(').and_then(|(_, passes)| passes.strip_suffix(')'));
        // SQL Monitor has further lines of an operator's activity.
        if of(Column::Id).trim().is_empty() && operation.trim().is_empty() {
            return Ok(None);
        }
        // SQL Monitor has an arrow at an operator that runs.
        if of(Column::Id).trim().starts_with('-') && !of(Column::Id).contains("->") {
            return Ok(None);
        }
        let cost = of(Column::Cost);
        let others = self.headings.iter().zip(&self.columns).zip(&cells);
        let others = others.filter(|((heading, column), cell)| {
            **column == Column::Other && !heading.is_empty() && !cell.trim().is_empty()
        });
        let detail = |((heading, _), cell): ((&String, &Column), &&str)| PlanDetail {
            name: heading.clone(),
            value: figure(cell, FigureUnit::COUNT).value().unwrap_or(0.0),
            text: cell.trim().to_string(),
        };
        let details: Vec<PlanDetail> = others.map(detail).collect();
        let is_temp = |name: &str| ["Used-Tmp", "Temp (Max)"].contains(&name);
        let has_temp = details.iter().any(|detail| is_temp(&detail.name) && detail.value > 0.0);
        let text = |wanted: Column| of(wanted).trim().to_string();
        Ok(Some(PlanOperation {
            id: id(of(Column::Id))
                .ok_or_else(|| wrong(format!("the Id {} is no number", of(Column::Id).trim())))?,
            depth: if self.between == '|' { blanks.saturating_sub(1) } else { blanks },
            role: String::new(),
            operation: operation.trim().to_string(),
            name: text(Column::Name),
            object: text(Column::Name),
            starts: printed(Column::Starts, FigureUnit::COUNT),
            expected_rows: printed(Column::ExpectedRows, FigureUnit::COUNT),
            rows: printed(Column::Rows, FigureUnit::COUNT),
            time: printed(Column::Time, FigureUnit::S),
            buffers: printed(Column::Buffers, FigureUnit::COUNT),
            used_memory: used_memory(used),
            reads: printed(Column::Reads, FigureUnit::COUNT),
            read_time: None,
            spilled: has_temp
                || passes.is_some_and(|passes| passes.parse::<u32>().is_ok_and(|passes| passes > 0)),
            temp_space: printed(Column::Temp, FigureUnit::BYTES),
            // Behind the cost is the share of CPU.
            cost: self::printed(cost.split('(').next().unwrap_or_default(), FigureUnit::COUNT)
                .map(|figure| PlanFigure { text: cost.trim().to_string(), ..figure }),
            details,
            access: Vec::new(),
            filter: Vec::new(),
        }))
    }

    /// Gives operators without indentation their depths, if these follow from the operators.
    fn tree(&self, operations: &mut [PlanOperation]) -> PlanTree {
        if operations.len() == 1 || operations.iter().any(|operation| operation.depth > 0) {
            return PlanTree::Printed;
        }
        match inferred(operations) {
            Some(depths) => {
                operations.iter_mut().zip(depths).for_each(|(operation, depth)| operation.depth = depth);
                PlanTree::Inferred
            }
            None => PlanTree::Unknown,
        }
    }
}

/// Returns the number of an operator from `*  4` or `   4`.
fn id(cell: &str) -> Option<u32> {
    cell.trim_matches(['*', '-', '>', ' ']).parse().ok()
}

fn printed(cell: &str, unit: FigureUnit) -> Option<PlanFigure> {
    match figure(cell, unit) {
        CellReading::Value { value, range } => {
            Some(PlanFigure { value, range, text: cell.trim().to_string() })
        }
        _ => None,
    }
}

/// Reads `23M (0)`: the bytes, and the passes to disk.
fn used_memory(cell: &str) -> Option<PlanFigure> {
    let bytes = cell.split('(').next().unwrap_or_default().trim();
    printed(bytes, FigureUnit::BYTES).map(|figure| PlanFigure { text: cell.to_string(), ..figure })
}

/// Returns the depth of each operator from the inputs that those before it take; `None` if a number
/// of inputs is not fixed, or the operators are too few or too many.
fn inferred(operations: &[PlanOperation]) -> Option<Vec<usize>> {
    // Inputs that the operators above still take.
    let mut open: Vec<usize> = vec![1];
    let mut depths = Vec::new();
    for operation in operations {
        while open.last() == Some(&0) {
            open.pop();
        }
        *open.last_mut()? -= 1;
        depths.push(open.len() - 1);
        open.push(inputs(&operation.operation)?);
    }
    open.iter().all(|left| *left == 0).then_some(depths)
}

/// Returns the number of inputs that an operator takes; `None` if it is not fixed.
fn inputs(operation: &str) -> Option<usize> {
    let starts = |words: &[&str]| words.iter().any(|word| operation.starts_with(word));
    if starts(&["UNION", "CONCATENATION", "FILTER", "BITMAP", "TEMP TABLE", "INLIST", "RECURSIVE"]) {
        return None;
    }
    let is_by_index = operation.starts_with("TABLE ACCESS BY") && operation.contains("INDEX ROWID");
    let leaves = ["TABLE ACCESS", "INDEX", "FAST DUAL", "COLLECTION ITERATOR", "FIXED TABLE", "REMOTE"];
    let leaves = starts(&leaves) || starts(&["MAT_VIEW ACCESS FULL", "RESULT CACHE", "EXTERNAL TABLE"]);
    let joins = starts(&["HASH JOIN", "NESTED LOOPS", "MERGE JOIN", "MINUS", "INTERSECTION"]);
    Some(match () {
        () if is_by_index => 1,
        () if leaves => 0,
        () if joins => 2,
        () => 1,
    })
}

/// Adds a line of predicates to its operator.
fn predicate(plan: &mut ExecutionPlan, text: &str, wrapped: bool) {
    let numbered = text.split_once(" - ").and_then(|(id, rest)| Some((id.trim().parse::<u32>().ok()?, rest)));
    let (id, text) = match numbered {
        Some((id, text)) => (Some(id), text),
        None => (None, text),
    };
    let last = plan
        .operations
        .iter()
        .rposition(|operation| !operation.access.is_empty() || !operation.filter.is_empty());
    let at = id.and_then(|id| plan.operations.iter().position(|operation| operation.id == id));
    let Some(operation) = (if id.is_some() { at } else { last }).map(|at| &mut plan.operations[at]) else {
        return;
    };
    let inside = |name: &str| text.strip_prefix(name);
    if let Some(condition) = inside("access(") {
        operation.access.push(closed(condition));
    } else if let Some(condition) = inside("filter(").or(inside("storage(")) {
        operation.filter.push(closed(condition));
    } else {
        let conditions =
            if operation.filter.is_empty() { &mut operation.access } else { &mut operation.filter };
        if let Some(before) = conditions.last_mut() {
            let between = if wrapped { "" } else { " " };
            *before = closed(&format!("{before}{between}{text}"));
        }
    }
}

/// Returns a condition without the bracket that ends it.
fn closed(condition: &str) -> String {
    let open = condition.matches('(').count();
    let condition = condition.trim();
    match condition.strip_suffix(')') {
        Some(inside) if condition.matches(')').count() > open => inside.to_string(),
        _ => condition.to_string(),
    }
}
