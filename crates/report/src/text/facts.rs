//! Names and values, the names flush to a colon.

use super::wrap::wrap;
use crate::document::NO_DATA;
use crate::table::Facts;

/// The column of the colon, unless a name is longer.
const NAME_WIDTH: usize = 23;

/// A value narrower than this stands under its name.
const VALUE_WIDTH_MIN: usize = 20;

/// A name with its value under it.
fn under(name: &str, value: &str, page_width: usize) -> Vec<String> {
    let mut lines = wrap(&format!("{name}:"), page_width);
    lines.extend(wrap(value, page_width - 2).iter().map(|line| format!("  {line}")));
    lines
}

/// The facts' lines, at most so long.
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
