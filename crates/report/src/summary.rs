//! A document in a few lines for a terminal: its answer, then the rest below a blank line.
//!
//! It has neither colours nor control characters, and nothing that the report lacks.

use crate::text::{self, hanging};
use crate::{Document, Headline, ReportAnswer};
use plumb_units::COLUMN_MOST;

/// Longest line of sentences, however wide the terminal is.
pub const LINE_MAX: usize = 100;

/// Renders the summary, each line with a newline.
pub fn render(document: &Document) -> String {
    render_in(document, usize::MAX)
}

/// Renders the summary with this line length: longer lines continue below their
/// start. Nothing is left out.
pub fn render_in(document: &Document, page_width: usize) -> String {
    let Document { state, basis, reasons, summary, .. } = document;
    let mut lines = answer(&document.answer, page_width);
    lines.extend(hanging("", &format!("{}: {} ({basis})", summary.subject, state.word), page_width));
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

/// Returns the sentence of an answer, its lines, and a blank one; nothing without an answer.
pub fn answer(answer: &ReportAnswer, page_width: usize) -> Vec<String> {
    let said = answer.sentence();
    if said.is_empty() {
        return Vec::new();
    }
    let mut lines = text::wrap(&said, page_width.min(LINE_MAX));
    let width = answer.shown().map(|line| line.name.chars().count()).max().unwrap_or(0).min(COLUMN_MOST);
    let line = |line: &Headline| {
        hanging(&format!("  {:<width$}  ", line.name), &line.line(), page_width.min(LINE_MAX))
    };
    lines.extend(answer.shown().flat_map(line));
    lines.push(String::new());
    lines
}

/// Columns by which the rest of a row is indented.
const FURTHER: usize = 4;

/// Splits a composed line that is too long. It keeps its columns as far as the page allows, and the
/// rest follows below, from the start of a column if possible.
fn as_it_is(line: &str, page_width: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    let indent = letters.iter().take_while(|letter| **letter == ' ').count();
    if letters.len() <= page_width || indent + FURTHER >= page_width {
        return vec![line.to_string()];
    }
    let is_blank = |at: usize| letters[at] == ' ';
    let ends = || (indent + 1..=page_width).rev().filter(|at| is_blank(*at));
    let gap = ends().find(|at| letters.get(at + 1) == Some(&' ') && !is_blank(at - 1));
    // A gap near the start follows a name.
    let gap = gap.filter(|gap| *gap >= page_width / 2);
    let end = gap.or_else(|| ends().next()).unwrap_or(page_width);
    let (head, rest): (String, String) = (letters[..end].iter().collect(), letters[end..].iter().collect());
    let mark = " ".repeat(indent + FURTHER);
    std::iter::once(head).chain(hanging(&mark, rest.trim_start(), page_width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_wider_than_the_page_keeps_its_columns() {
        let row = "small random reads           54,237 IOPS ?[41,750, 72,194]      depth 128, 2 threads; 97% at 128";
        let expected = [
            "small random reads           54,237 IOPS ?[41,750, 72,194]",
            "    depth 128, 2 threads; 97% at 128",
        ];
        assert_eq!(as_it_is(row, 80), expected);
        assert_eq!(as_it_is(row, 100), [row]);
        let sentence = "  SQPOLL: the kernel's polling thread keeps 1 of 2 processors busy";
        let expected =
            ["  SQPOLL: the kernel's polling", "      thread keeps 1 of 2 processors", "      busy"];
        assert_eq!(as_it_is(sentence, 36), expected);
        assert_eq!(as_it_is(&"w".repeat(50), 40), ["w".repeat(40), format!("    {}", "w".repeat(10))]);
    }
}
