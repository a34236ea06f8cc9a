//! Names and values, with the names aligned at a colon.

use super::wrap::wrap;
use crate::document::NO_DATA;
use crate::table::Facts;

/// Column of the colon, unless a name is longer.
const NAME_WIDTH: usize = 23;

/// Least width of a value next to its name; in less space it is below the name.
const VALUE_WIDTH_MIN: usize = 20;

/// Renders a name with its value below.
fn under(name: &str, value: &str, page_width: usize) -> Vec<String> {
    let mut lines = wrap(&format!("{name}:"), page_width);
    lines.extend(wrap(value, page_width - 2).iter().map(|line| format!("  {line}")));
    lines
}

/// Renders the facts within this width.
pub(super) fn lines(facts: &Facts, page_width: usize) -> Vec<String> {
    let mut lines = Vec::from_iter(facts.caption.clone());
    if facts.rows.is_empty() {
        lines.push(NO_DATA.to_string());
    }
    let longest = facts.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = longest.max(NAME_WIDTH);
    if width + 2 + VALUE_WIDTH_MIN > page_width {
        lines.extend(facts.rows.iter().flat_map(|(name, value)| under(name, &value.text, page_width)));
        return lines;
    }
    for (name, value) in &facts.rows {
        let broken = wrap(&value.text, page_width - width - 2);
        for (index, line) in broken.iter().enumerate() {
            lines.push(match index {
                0 => format!("{name:>width$}: {line}"),
                _ => format!("{:>width$}  {line}", ""),
            });
        }
    }
    lines
}
