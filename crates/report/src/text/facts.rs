//! Names and values, the names flush to a colon.

use super::wrap::wrap;
use crate::document::NO_DATA;
use crate::table::Facts;

/// The column of the colon, unless a name is longer.
const NAME_WIDTH: usize = 23;

/// The facts' lines, at most so long.
pub(super) fn lines(facts: &Facts, page_width: usize) -> Vec<String> {
    let mut lines = Vec::from_iter(facts.caption.clone());
    if facts.rows.is_empty() {
        lines.push(NO_DATA.to_string());
    }
    let longest = facts.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let width = longest.max(NAME_WIDTH);
    for (name, value) in &facts.rows {
        let broken = wrap(&value.text, page_width.saturating_sub(width + 2).max(20));
        for (index, line) in broken.iter().enumerate() {
            lines.push(match index {
                0 => format!("{name:>width$}: {line}"),
                _ => format!("{:>width$}  {line}", ""),
            });
        }
    }
    lines
}
