//! Copies a file of another program without the names in it.
//!
//! ```text
//! reports ──[cells, facts]──> line ──[label of each cell]──> figures, listed words, tokens
//! page    ──[tables]────────> a page of these tables alone
//! JSON    ──[keys]──────────> the fields with a known key
//! plan    ──[operators]─────> `plan`
//! ```
//! Only what a reader understood is copied: a cell is judged by the heading of its column, a fact
//! by its name, the rest of a line by the words before each figure. Lines that no reader
//! understood, and fields of JSON with an unknown key, are dropped and counted. Tags, attributes,
//! comments and scripts of a page are written again.
//!
//! A token is as wide as its word, so that columns stay where they are.
//!
//! Rejected: a text from the tables alone. Readers need the rulers, indents and heads of each
//! format, and a reader of the copy knows the report by them.

mod line;
mod plan;

use crate::figure::sheet::Sheet;
use crate::form::html::{self, PageTable};
use crate::form::ruled::STATEMENT;
use crate::reader::{Begins, Bounds, Reader, parts, require_lines};
use crate::report::Report;
use crate::source::{ForeignError, Source, SourcePart};
use crate::stored;
use plumb_share::{Label, Tokens, is_figure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Sections whose columns of words have names: the head of a report.
const OF_NAMES: [&str; 5] = ["database", "host", "instance", "compared_databases", "included_instances"];

/// Returns the copy of a file. Fails if no part of it is understood.
///
/// # Errors
/// [`ForeignError::NotUnderstood`] of a file with neither a report nor a plan.
pub fn copy(source: &Source, readers: &[Reader], tokens: &mut Tokens) -> Result<String, ForeignError> {
    let whole = source.part(0, source.len());
    if is_small(whole.text)
        && let Ok(mut document) = serde_json::from_str::<Value>(whole.text)
        && (document.is_object() || document.is_array())
    {
        json(tokens, Label::Words, &mut document);
        return Ok(serde_json::to_string_pretty(&document).unwrap_or_default() + "\n");
    }
    // Logs of plans have more lines.
    let lines = require_lines(source);
    let found = if lines.is_ok() { parts(source, readers) } else { Vec::new() };
    let mut bounds = Bounds::of(source, found.len())?;
    let mut copied = String::new();
    let (mut taken, mut is_known) = (0, false);
    for (reader, part) in found {
        let report = (reader.read)(&part);
        bounds.add(&report)?;
        if report.sheets.is_empty() && report.facts.is_empty() {
            continue;
        }
        is_known = true;
        taken += part.lines().filter(|(_, line)| !line.is_empty()).count() as u64;
        match reader.begins {
            Begins::Page(_) => copied.push_str(&page(tokens, &part)),
            Begins::Script(_) => copied.push_str(&script(tokens, &part)),
            _ if reader.kind.contains("JSON") => {
                let (document, end) = embedded(tokens, &part);
                copied.push_str(&document);
                // A text of the same jobs may follow.
                let rest = part.behind(part.line_of(end.saturating_sub(1)));
                Lines::of(&report, &rest, tokens).copy(&rest, tokens, &mut copied);
            }
            _ => Lines::of(&report, &part, tokens).copy(&part, tokens, &mut copied),
        }
    }
    if is_known {
        let all = whole.lines().filter(|(_, line)| !line.is_empty()).count() as u64;
        tokens.dropped += all.saturating_sub(taken);
        return Ok(copied);
    }
    let understood = |error| match error {
        ForeignError::NoPlan { path, .. } => ForeignError::NotUnderstood { path },
        other => other,
    };
    crate::plan::read(source).map_err(|error| lines.err().unwrap_or_else(|| understood(error)))?;
    let copied = plan::copy(&whole, tokens);
    // A form whose lines are not known leaves nothing that is a plan.
    crate::plan::read(&Source::of(&source.path, copied.as_bytes())).map_err(understood)?;
    Ok(copied)
}

/// True if a document has no more values than are kept: an object takes up to 700 bytes.
fn is_small(text: &str) -> bool {
    const VALUES_MOST: usize = 1_000_000;
    text.trim_start().starts_with(['{', '['])
        && text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() <= VALUES_MOST
}

/// Copies the tables of an import that its bundle has; `None` if the bundle has none.
///
/// # Errors
/// When the file of the tables is not readable.
pub fn tables(bundle: &Path, tokens: &mut Tokens) -> Result<Option<String>, ForeignError> {
    let tables = stored::read(bundle)?;
    let mut sheets = Vec::new();
    for table in &tables {
        let mut rows = Vec::new();
        for row in &table.rows {
            let texts: Vec<&str> = row.cells.iter().map(String::as_str).collect();
            let labels = labels(tokens, &table.columns, &texts);
            let cells = labels.into_iter().zip(&texts);
            let cells: Vec<Value> = cells
                .map(
                    |(label, text)| serde_json::json!({ "raw": tokens.value(label, text), "line": row.line }),
                )
                .collect();
            rows.push(serde_json::json!({ "cells": cells }));
        }
        let names: Vec<Value> = table
            .columns
            .iter()
            .map(|name| serde_json::json!({ "name": line::rest(tokens, name) }))
            .collect();
        let notes: Vec<Value> =
            table.notes.iter().map(|note| serde_json::json!({ "text": line::rest(tokens, note) })).collect();
        sheets.push(serde_json::json!({
            "heading": line::rest(tokens, &table.heading), "line": table.line, "notes": notes,
            "columns": names, "rows": rows,
        }));
    }
    let file = serde_json::json!({ "version": stored::VERSION, "sheets": sheets });
    Ok((!tables.is_empty()).then(|| file.to_string()))
}

/// Keys of a row's value, which is judged by the name in the row.
const OF_VALUES: [&str; 5] = ["value", "setting", "reset_val", "default_val", "boot_val"];

/// Replaces the names in a JSON document: a value is judged by the key above it, and the value of a
/// setting by the setting's name.
pub(crate) fn json(tokens: &mut Tokens, label: Label, value: &mut Value) {
    match value {
        Value::String(text) => *text = tokens.value(label, text),
        Value::Number(number) if label == Label::Names => {
            let text = tokens.numbered(&number.to_string());
            *value = text.trim_start_matches('0').parse::<u64>().map_or(Value::from(0), Value::from);
        }
        Value::Array(list) => list.iter_mut().for_each(|value| json(tokens, label, value)),
        Value::Object(fields) => {
            let row = fields.get("name").and_then(Value::as_str).map(|name| of_value(tokens, name));
            let before = fields.len();
            fields.retain(|own, _| tokens.is_listed(own) || is_figure(own) || is_name_key(own));
            tokens.dropped += (before - fields.len()) as u64;
            for (own, value) in fields {
                let of_row = row.filter(|_| OF_VALUES.contains(&own.as_str()));
                json(tokens, of_row.unwrap_or(tokens.label(own)), value);
            }
        }
        _ => {}
    }
}

/// True for a key with a name in every document, such as that of a host.
fn is_name_key(key: &str) -> bool {
    matches!(key, "hostname" | "nodename" | "jobname" | "filename" | "name" | "disk_device" | "disk")
}

/// Copies the first document of a part, and returns the byte of the part behind it. A document that
/// is cut off is left out.
fn embedded(tokens: &mut Tokens, part: &SourcePart<'_>) -> (String, usize) {
    let text = part.text.trim_start();
    let at = part.text.len() - text.len();
    // A report begins with its first key where a line has it.
    let brace = if text.starts_with('"') { 0 } else { text.find('{').unwrap_or(text.len()) };
    let lead = usize::from(text.starts_with('"'));
    let text = format!("{}{}", &"{"[..lead], &text[brace..]);
    let text = if is_small(&text) { text } else { String::new() };
    let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let Some(Ok(mut document)) = documents.next() else {
        tokens.dropped += part.lines().count() as u64;
        return (String::new(), part.text.len());
    };
    let end = at + brace + documents.byte_offset() - lead;
    json(tokens, Label::Words, &mut document);
    (serde_json::to_string_pretty(&document).unwrap_or_default() + "\n", end)
}

/// Copies a page whose tables are a document in a script.
fn script(tokens: &mut Tokens, part: &SourcePart<'_>) -> String {
    let at = part.text.find(crate::format::pg_profile::DATA).unwrap_or(part.text.len());
    let (document, _) = embedded(tokens, &part.from_byte(at));
    format!("<html><body><script>{}{}</script></body></html>\n", "const data=", document.trim_end())
}

/// Copies the tables of a page as a page of its own.
fn page(tokens: &mut Tokens, part: &SourcePart<'_>) -> String {
    let mut copy = "<html><head><title>AWR Report</title></head><body>\n".to_string();
    for table in html::tables(part) {
        let PageTable { heading, before, summary, notes, names, rows, .. } = table;
        let title = |tokens: &mut Tokens, text: &str| hypertext(&line::rest(tokens, text));
        let _ = writeln!(copy, "<h3>{}</h3>", title(tokens, &heading.raw));
        let notes: String =
            notes.iter().map(|note| format!("<li>{}</li>", title(tokens, &note.text))).collect();
        let before = title(tokens, &before);
        let _ = writeln!(copy, "<ul>{notes}</ul>{before}<table summary=\"{}\">", title(tokens, &summary));
        if names.iter().any(|name| !name.is_empty()) {
            let heads: Vec<String> =
                names.iter().map(|name| format!("<th>{}</th>", title(tokens, name))).collect();
            let _ = writeln!(copy, "<tr>{}</tr>", heads.concat());
        }
        for (_, cells) in rows {
            let texts: Vec<&str> = cells.iter().map(|cell| cell.raw.as_str()).collect();
            let labels = labels(tokens, &names, &texts);
            let cells = labels
                .into_iter()
                .zip(&texts)
                .map(|(label, text)| format!("<td>{}</td>", hypertext(&tokens.value(label, text))));
            let cells: Vec<String> = cells.collect();
            let _ = writeln!(copy, "<tr>{}</tr>", cells.concat());
        }
        copy.push_str("</table>\n");
    }
    let is_whole = ["</html>", "</HTML>", "End of Report"].iter().any(|end| part.text.contains(end));
    copy.push_str(if is_whole { "End of Report</body></html>\n" } else { "" });
    copy
}

/// Returns a text without the letters that a page reads as tags.
fn hypertext(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Returns the label of each cell of a row. A cell without a heading is the value of the name
/// before it.
fn labels(tokens: &Tokens, names: &[String], texts: &[&str]) -> Vec<Label> {
    let is_pairs =
        names.iter().all(String::is_empty) || matches!(names, [one, two] if one == "Name" && two == "Value");
    let headed = names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
    let is_head = ["Host Name", "DB Name", "DB Id", "Instance"]
        .iter()
        .any(|head| names.iter().any(|name| name == head));
    let first = names.first().map(String::as_str).unwrap_or_default();
    (0..texts.len())
        .map(|at| {
            let name = names.get(at).map_or("", String::as_str);
            let label = tokens.label(name);
            match (is_pairs, at % 2) {
                (true, 1) => of_value(tokens, texts[at - 1]),
                (true, _) => Label::Words,
                _ if name.is_empty()
                    && at == headed
                    && at > 0
                    && is_figure(texts[at])
                    && !tokens.label(&names[at - 1]).is_of_names() =>
                {
                    Label::Figures
                }
                _ if name.is_empty() && at >= headed && headed > 0 => match (at - headed) % 2 {
                    0 => Label::Words,
                    _ => of_value(tokens, texts[at - 1]),
                },
                _ if first == "Parameter Name" && at > 0 => match of_value(tokens, texts[0]) {
                    Label::Figures | Label::Times | Label::Words => Label::Values,
                    label => label,
                },
                _ if is_head
                    && label == Label::Words
                    && !matches!(name, "Platform" | "Role" | "RAC" | "Edition" | "CDB") =>
                {
                    Label::Names
                }
                _ => label,
            }
        })
        .collect()
}

/// Returns the label of the value of a parameter: one with a name has no figure and no word.
fn of_value(tokens: &Tokens, name: &str) -> Label {
    tokens.label(name.trim().trim_start_matches(['_', '*']).trim_end_matches(':'))
}

/// Kind of a cell, by which it is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Of(Label),
    /// A name that readers take for a figure, such as that of a process.
    Number,
}

/// The cells and facts of a report, by their line.
struct Lines<'r> {
    cells: BTreeMap<u32, Vec<(CellKind, &'r str)>>,
    left: BTreeSet<u32>,
    /// Lines above the rows of a table and between them: heads and rulers.
    heads: BTreeSet<u32>,
    /// Lines between the heading of a table and its first row: heads of columns.
    names: BTreeSet<u32>,
}

impl<'r> Lines<'r> {
    fn of(report: &'r Report, part: &SourcePart<'_>, tokens: &Tokens) -> Lines<'r> {
        let mut cells: BTreeMap<u32, Vec<(CellKind, &str)>> = BTreeMap::new();
        for sheet in &report.sheets {
            add(sheet, tokens, &mut cells);
        }
        for fact in &report.facts {
            let line = cells.entry(fact.line).or_default();
            if line.is_empty() {
                line.push((CellKind::Of(tokens.label(&fact.name)), &fact.text));
            }
        }
        let left = report.unread.iter().chain(&report.prose).map(|remark| remark.line);
        let left = left.chain(report.skipped.iter().copied()).collect();
        let mut names = BTreeSet::new();
        for sheet in &report.sheets {
            let first = sheet.rows.iter().flat_map(|row| row.cells.iter().map(|cell| cell.line)).min();
            names.extend(sheet.line + 1..first.unwrap_or(0));
        }
        Lines { cells, left, heads: heads(report, part), names }
    }

    fn copy(&self, part: &SourcePart<'_>, tokens: &mut Tokens, copy: &mut String) {
        for (number, text) in part.lines() {
            let cells = self.cells.get(&number).map_or(&[][..], Vec::as_slice);
            let is_end = number == part.first_line() || text.contains("End of Report");
            if is_end && cells.is_empty() && number != part.first_line() {
                copy.push_str("End of Report\n");
                continue;
            }
            let copied = match (cells.is_empty(), self.left.contains(&number) && !is_end) {
                (true, true) => None,
                (true, false) if self.heads.contains(&number) || is_end || text.is_empty() => {
                    line::form(tokens, text, self.names.contains(&number))
                }
                (true, false) => line::ruler(text),
                (false, _) => Some(line::cells(tokens, text, cells)),
            };
            tokens.dropped += u64::from(copied.is_none());
            if let Some(line) = copied {
                copy.push_str(line.trim_end());
                copy.push('\n');
            }
        }
    }
}

/// Returns the lines that may be heads: from the heading of a table to its last row, and the lines
/// without a blank one between them and the first row.
fn heads(report: &Report, part: &SourcePart<'_>) -> BTreeSet<u32> {
    const ABOVE_MOST: usize = 8;
    let first_line = part.first_line();
    let lines: Vec<&str> = part.lines().map(|(_, text)| text).collect();
    let has_text = |line: &u32| {
        let text = line.checked_sub(first_line).and_then(|at| lines.get(at as usize));
        text.is_some_and(|text| !text.trim().is_empty())
    };
    let mut heads: BTreeSet<u32> = report.empty.iter().map(|remark| remark.line).collect();
    let is_empty = |text: &str| text.trim() == "No data exists for this section of the report.";
    heads.extend((first_line..).zip(&lines).filter(|(_, text)| is_empty(text)).map(|(line, _)| line));
    for sheet in &report.sheets {
        let rows = || sheet.rows.iter().flat_map(|row| row.cells.iter().map(|cell| cell.line));
        let (Some(first), Some(last)) = (rows().min(), rows().max()) else { continue };
        heads.extend(sheet.line.min(first)..=last);
        let above = (0..first).rev().take(ABOVE_MOST);
        heads.extend(above.take_while(has_text));
    }
    heads
}

fn add<'r>(sheet: &'r Sheet, tokens: &Tokens, cells: &mut BTreeMap<u32, Vec<(CellKind, &'r str)>>) {
    let names: Vec<String> = sheet.columns.iter().map(|column| column.name.clone()).collect();
    for row in &sheet.rows {
        let texts: Vec<&str> = row.cells.iter().map(|cell| cell.raw.as_str()).collect();
        let labels = labels(tokens, &names, &texts);
        for ((cell, label), column) in row.cells.iter().zip(labels).zip(&sheet.columns) {
            let is_name = OF_NAMES.contains(&sheet.section)
                && !matches!(column.key, "platform" | "role" | "rac" | "cdb" | "edition");
            let label = if is_name && label == Label::Words { Label::Names } else { label };
            // The reader knows the unit of the column.
            let has_unit = !column.key.is_empty() && !matches!(column.unit.base(), "" | "count");
            let label = if has_unit && cell.reading.value().is_some() { Label::Figures } else { label };
            let is_number = label == Label::Names && cell.reading.value().is_some();
            let label = if is_number { CellKind::Number } else { CellKind::Of(label) };
            // Lines of a statement are dropped.
            if !cell.raw.is_empty() && !STATEMENT.contains(&column.name.as_str()) {
                cells.entry(cell.line).or_default().push((label, &cell.raw));
            }
        }
    }
}

#[cfg(test)]
mod tests;
