//! Parts of a whole in characters: one bar, then a legend of the characters.

use super::wrap;
use crate::document::Parts;

/// Largest length of the bar, characters.
const COLUMNS: usize = 100;
/// Characters of the parts, used in turn.
const MARKS: [char; 8] = ['#', '=', '+', ':', '%', 'o', '-', '.'];

pub(super) fn lines(parts: &Parts, width: usize) -> Vec<String> {
    let all = COLUMNS.min(width.saturating_sub(2));
    let (mut bar, mut end) = (String::new(), 0.0);
    let mark = |index: usize| MARKS[index % MARKS.len()];
    for (index, part) in parts.0.iter().enumerate() {
        end += part.share;
        let columns = ((end * all as f64).round() as usize).min(all);
        let used = bar.chars().count();
        bar.extend(std::iter::repeat_n(mark(index), columns.saturating_sub(used)));
    }
    let mut lines = vec![format!("|{bar:<all$}|")];
    let mut legend = String::new();
    for (index, part) in parts.0.iter().enumerate() {
        let entry = format!("{} {} {}", mark(index), part.name, part.shown);
        if !legend.is_empty() && legend.chars().count() + 3 + entry.chars().count() > width {
            lines.extend(wrap(&std::mem::take(&mut legend), width));
        }
        legend = if legend.is_empty() { entry } else { format!("{legend}   {entry}") };
    }
    lines.extend(wrap(&legend, width));
    lines
}
