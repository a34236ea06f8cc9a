//! The copy of a plan of execution: EXPLAIN of PostgreSQL as text or JSON, and DBMS_XPLAN.
//!
//! Operators, their figures and the kinds of their conditions stay. Objects and what is compared
//! become tokens, so that two plans in one copy still match.

use super::{json, line};
use crate::source::SourcePart;
use plumb_share::{Label, Tokens, is_figure};
use serde_json::Value;

/// Lines below an operator that have figures and words of PostgreSQL alone.
const OF_FIGURES: &str = "|Buffers|I/O Timings|Planning Time|Execution Time|Total runtime|Sort Method|Heap Fetches|\
    Heap Blocks|Buckets|Batches|Memory Usage|Peak Memory Usage|Disk Usage|Workers Planned|\
    Workers Launched|Timing|Functions|Options|Cache Mode|Hits|WAL|Full-sort Groups|\
    Pre-sorted Groups|Rows Removed by Filter|Rows Removed by Join Filter|\
    Rows Removed by Index Recheck|Rows Removed by Conflict Filter|Planned Partitions|\
    HashAgg Batches|Index Searches|Storage|Planning|JIT|Partial Mode|Inner Unique|\
    Subplans Removed|Single Copy|Serialization|Memory|Conflicting Tuples|";

/// Copies the lines of a plan.
pub(super) fn copy(part: &SourcePart<'_>, tokens: &mut Tokens) -> String {
    if part.text.contains("\"Node Type\"") {
        return documents(part.text, tokens);
    }
    if part.text.contains("Node Type: ") || part.text.contains("<Node-Type>") {
        return marked_up(part, tokens);
    }
    let mut table = Table::default();
    let mut copy = String::new();
    for (_, text) in part.lines() {
        let inside = text.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = inside.map_or_else(|| text.to_string(), |inside| inside.replace("\"\"", "\""));
        match table.line(&text, tokens).or_else(|| explained(&text, tokens)) {
            Some(line) => {
                copy.push_str(line.trim_end());
                copy.push('\n');
            }
            None => tokens.dropped += 1,
        }
    }
    copy
}

/// Copies the documents of EXPLAIN (FORMAT JSON).
fn documents(text: &str, tokens: &mut Tokens) -> String {
    // Marks of lines that go on, and frames of psql.
    let bare =
        |line: &str| line.trim().trim_matches('|').trim_end_matches([' ', '+', '\u{21b5}']).to_string();
    let text = text.lines().map(bare).collect::<Vec<_>>().join("\n");
    let text = if text.contains("\"\"Node Type\"\"") { text.replace("\"\"", "\"") } else { text };
    let mut copy = String::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(['[', '{']).map(|found| at + found) {
        let mut found = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        let Some(Ok(mut document)) = found.next() else {
            at = begin + 1;
            continue;
        };
        at = begin + found.byte_offset();
        if document.to_string().contains("\"Node Type\"") {
            json(tokens, Label::Words, &mut document);
            copy.push_str(&serde_json::to_string_pretty(&document).unwrap_or_default());
            copy.push('\n');
        }
    }
    copy
}

/// Copies EXPLAIN (FORMAT YAML) and (FORMAT XML): keys and tags of listed words, and their values.
fn marked_up(part: &SourcePart<'_>, tokens: &mut Tokens) -> String {
    let mut copy = String::new();
    for (_, line) in part.lines() {
        let text = line.trim();
        let indent = &line[..line.len() - line.trim_start().len()];
        let bare = text.trim_end_matches(['+', ' ', '|']).trim_start_matches(['|', ' ']);
        let copied = match bare.strip_prefix('<') {
            Some(tag) => element(tag, tokens),
            None => pair(bare, tokens),
        };
        match copied {
            Some(text) => copy.push_str(&format!("{indent}{text}\n")),
            None => tokens.dropped += 1,
        }
    }
    copy
}

/// Copies `Node-Type>Hash</Node-Type>`, or a tag alone; attributes are left out.
fn element(tag: &str, tokens: &mut Tokens) -> Option<String> {
    let (name, rest) = tag.split_once('>')?;
    let name = name.split(' ').next().unwrap_or(name);
    let bare = name.trim_matches('/').replace('-', " ");
    if !tokens.is_listed(&bare) {
        return None;
    }
    let Some((value, _)) = rest.split_once("</") else { return Some(format!("<{name}>")) };
    let value = super::hypertext(&tokens.value(tokens.label(&bare), value));
    Some(format!("<{name}>{value}</{name}>"))
}

/// Copies `- Node Type: "Hash"`, or a key alone.
fn pair(text: &str, tokens: &mut Tokens) -> Option<String> {
    let (key, value) = text.split_once(':')?;
    let bare = key.trim_start_matches(['-', ' ']);
    if !tokens.is_listed(bare) {
        return None;
    }
    let value = value.trim();
    let copied = tokens.value(tokens.label(bare), value.trim_matches('"'));
    match value {
        "" => Some(format!("{key}:")),
        quoted if quoted.starts_with('"') => Some(format!("{key}: \"{copied}\"")),
        _ => Some(format!("{key}: {copied}")),
    }
}

/// Copies a line of EXPLAIN's text; `None` of another one.
fn explained(line: &str, tokens: &mut Tokens) -> Option<String> {
    let text = line.trim_start();
    let indent = &line[..line.len() - text.len()];
    if text.is_empty() {
        return Some(String::new());
    }
    if crate::plan::has_figures(text) {
        let (arrow, text) = text.strip_prefix("->").map_or(("", text), |behind| ("->", behind));
        let title = &text[..text.find("  (").unwrap_or(text.len())];
        let figures = line::rest(tokens, &text[title.len()..]);
        return Some(format!("{indent}{arrow}{}{figures}", operator(title, tokens)));
    }
    if let Some(begin) = text.find("duration: ").filter(|_| text.trim_end().ends_with("plan:")) {
        return Some(format!("LOG:  {}", line::rest(tokens, &text[begin..])));
    }
    for part in ["InitPlan ", "SubPlan ", "CTE ", "Trigger "] {
        if let Some(behind) = text.strip_prefix(part) {
            let end = behind.find(": ").or_else(|| behind.find(" (")).unwrap_or(behind.len());
            let (name, figures) = behind.split_at(end);
            let name = if is_figure(name) { name.to_string() } else { triggered(name, tokens) };
            return Some(format!("{indent}{part}{name}{}", line::rest(tokens, figures)));
        }
    }
    if text.starts_with('(') && (text.ends_with(" rows)") || text.ends_with(" row)"))
        || text.trim_matches('-').is_empty()
    {
        return Some(line::rest(tokens, line));
    }
    let (name, value) = text.split_once(':')?;
    if OF_FIGURES.contains(&format!("|{}|", name.trim()))
        || name.starts_with("Worker ") && is_figure(&name["Worker ".len()..])
    {
        return Some(format!("{indent}{name}:{}", line::rest(tokens, value)));
    }
    let is_known = tokens.is_listed(name) && name.len() <= 40 && value.starts_with(' ');
    is_known.then(|| format!("{indent}{name}:{}", tokens.hidden(value)))
}

/// Returns the name of a trigger and its table.
fn triggered(name: &str, tokens: &mut Tokens) -> String {
    let parts: Vec<String> = name.split(" on ").map(|part| tokens.hidden(part)).collect();
    parts.join(" on ")
}

/// Copies `Index Scan using t1_n1 on public.t1 a`.
fn operator(title: &str, tokens: &mut Tokens) -> String {
    let end = [" using ", " on "].iter().filter_map(|word| title.find(word)).min().unwrap_or(title.len());
    let (operation, objects) = title.split_at(end);
    // An extension's operator has its name in brackets: `Custom Scan (Name)`.
    let (operation, provider) = operation.split_at(operation.find(" (").unwrap_or(operation.len()));
    let mut copy = if tokens.is_listed(operation) { operation.to_string() } else { tokens.hidden(operation) };
    copy.push_str(&if tokens.is_listed(provider) { provider.to_string() } else { tokens.hidden(provider) });
    let (using, on) = match objects.strip_prefix(" using ") {
        Some(index) => {
            index.split_once(" on ").map_or((Some(index), None), |(index, on)| (Some(index), Some(on)))
        }
        None => (None, objects.strip_prefix(" on ")),
    };
    for (word, names) in [(" using ", using), (" on ", on)] {
        if let Some(names) = names {
            copy.push_str(word);
            copy.push_str(&tokens.hidden(names));
        }
    }
    copy
}

/// A table of DBMS_XPLAN and what stands below it.
#[derive(Debug, Default)]
struct Table {
    labels: Vec<String>,
    is_predicates: bool,
    is_notes: bool,
}

impl Table {
    /// Copies a line; `None` if it is none of such a table.
    fn line(&mut self, line: &str, tokens: &mut Tokens) -> Option<String> {
        let text = line.trim();
        let mark = if line.contains('\t') { '\t' } else { '|' };
        let cells: Vec<&str> = line.split(mark).collect();
        let is_head = cells.iter().any(|cell| cell.trim() == "Operation")
            && cells.iter().any(|cell| cell.trim() == "Id");
        if is_head {
            (self.is_predicates, self.is_notes) = (false, false);
            self.labels = cells.iter().map(|cell| cell.trim().to_string()).collect();
            return Some(
                cells.iter().map(|cell| line::rest(tokens, cell)).collect::<Vec<_>>().join(&mark.to_string()),
            );
        }
        if self.labels.is_empty() {
            return None;
        }
        if text.starts_with("Predicate Information") {
            (self.is_predicates, self.is_notes) = (true, false);
            return Some(line::rest(tokens, line));
        }
        if text == "Note" {
            (self.is_predicates, self.is_notes) = (false, true);
            return Some(line.to_string());
        }
        if text.trim_matches('-').is_empty() {
            return Some(line.to_string());
        }
        if self.is_predicates {
            return Some(predicate(line, tokens));
        }
        if self.is_notes {
            return Some(line::rest(tokens, line));
        }
        (cells.len() > 2).then(|| self.row(&cells, mark, tokens))
    }

    fn row(&self, cells: &[&str], mark: char, tokens: &mut Tokens) -> String {
        let cell = |(at, cell): (usize, &&str)| {
            let label = self.labels.get(at).map_or("", String::as_str);
            let text = cell.trim();
            let bare = text.trim_start_matches(['*', ' ', '-']);
            let stays = match label {
                "Operation" => tokens.is_listed(text),
                "Name" => text.is_empty(),
                _ => is_figure(bare) || bare.is_empty() || tokens.is_listed(bare) && !label.is_empty(),
            };
            if stays { (*cell).to_string() } else { tokens.hidden(cell) }
        };
        cells.iter().enumerate().map(cell).collect::<Vec<_>>().join(&mark.to_string())
    }
}

/// Copies `1 - access("A"."ID"="B"."ID")`: the operator and the kind of its condition stay.
fn predicate(line: &str, tokens: &mut Tokens) -> String {
    let kinds = ["access(", "filter(", "storage("];
    let open = kinds.iter().filter_map(|kind| Some(line.find(kind)? + kind.len())).min();
    let head = open.map_or("", |open| &line[..open]);
    let is_head = head.split_once(" - ").is_some_and(|(number, kind)| {
        is_figure(number.trim().trim_start_matches('*').trim()) && kinds.contains(&kind)
    });
    let kept = if is_head { head } else { "" };
    format!("{kept}{}", tokens.hidden(&line[kept.len()..]))
}
