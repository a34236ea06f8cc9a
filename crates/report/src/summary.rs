//! A document in a few lines for a terminal: its state first, then what it names.
//!
//! It carries no colour and no control characters; it says nothing that the report does not.

use crate::Document;
use crate::text::hanging;
use plumb_units::COLUMN_MOST;

/// Characters of a line: sentences are not set in longer ones, however wide the terminal is.
pub const LINE_MAX: usize = 100;

/// The summary, lines ending in a newline.
#[must_use]
pub fn render(document: &Document) -> String {
    render_in(document, usize::MAX)
}

/// The same in lines of at most so many characters: what is longer goes on under itself. Nothing is left out.
#[must_use]
pub fn render_in(document: &Document, page_width: usize) -> String {
    let Document { state, basis, reasons, summary, .. } = document;
    let mut lines = hanging("", &format!("{}: {} ({basis})", summary.subject, state.word), page_width);
    lines.extend(reasons.iter().flat_map(|reason| hanging("  -> ", reason, page_width)));
    let set = |(mark, text): &(String, String)| match mark.is_empty() {
        true => as_it_is(text, page_width),
        false => hanging(mark, text, page_width.min(LINE_MAX)),
    };
    lines.extend(summary.lines.iter().flat_map(set));
    let width = summary.facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = width.min(COLUMN_MOST);
    let fact = |(name, value): &(String, String)| hanging(&format!("  {name:<width$}  "), value, page_width);
    lines.extend(summary.facts.iter().flat_map(fact));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A line that is set already; one that is too long goes on behind its own indent.
fn as_it_is(line: &str, page_width: usize) -> Vec<String> {
    if line.chars().count() <= page_width {
        return vec![line.to_string()];
    }
    let indent = line.len() - line.trim_start().len();
    hanging(&" ".repeat(indent), line.trim_start(), page_width)
}
