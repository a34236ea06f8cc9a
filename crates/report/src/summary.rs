//! A document in a few lines for a terminal: its state first, then what it names.
//!
//! It carries no colour and no control characters; it says nothing that the report does not.

use crate::Document;

/// The summary, lines ending in a newline.
#[must_use]
pub fn render(document: &Document) -> String {
    let Document { state, basis, reasons, summary, .. } = document;
    let mut lines = vec![format!("{}: {} ({basis})", summary.subject, state.word)];
    lines.extend(reasons.iter().map(|reason| format!("  -> {reason}")));
    lines.extend(summary.lines.iter().cloned());
    let width = summary.facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    lines.extend(summary.facts.iter().map(|(name, value)| format!("  {name:<width$}  {value}")));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}
