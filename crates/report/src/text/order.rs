//! Every run of a study in order of execution, in characters.
//!
//! A column is one run, or several if there are more runs than columns. A letter is an arm (`A` the
//! first), a small letter an uncounted run, `*` several runs at one position. A run without a
//! figure is `!` on the axis. The blocks are below.

use super::hanging;
use crate::order::{OrderPanel, OrderPlot};

/// Characters left of the axis.
const GUTTER: usize = 9;
/// Columns of the widest plot.
const COLUMNS_MAX: usize = 100;
const LINES: usize = 12;

/// Renders the lines of the plot.
pub(crate) fn lines(plot: &OrderPlot, width: usize) -> Vec<String> {
    let columns = plot.points.len().min(COLUMNS_MAX).min(width - GUTTER - 1);
    let mut lines = Vec::new();
    for panel in &plot.panels {
        lines.extend(panel_lines(plot, panel, columns));
    }
    lines.push(format!("{:>GUTTER$} {}", "block", blocks(plot, columns)));
    lines.extend(legend(plot, width));
    lines
}

fn panel_lines(plot: &OrderPlot, panel: &OrderPanel, columns: usize) -> Vec<String> {
    let column_of = |x: f64| ((x * columns as f64) as usize).min(columns - 1);
    let line_of = |y: f64| ((y * LINES as f64) as usize).min(LINES - 1);
    let mut grid = vec![vec![' '; columns]; LINES + 1];
    for (point, height) in plot.points.iter().zip(&panel.heights) {
        let (line, letter) = match height {
            Some(y) => (line_of(*y) + 1, letter(plot, point.slot, point.is_counted)),
            None => (0, '!'),
        };
        if let Some(place) = grid.get_mut(line).and_then(|row| row.get_mut(column_of(point.x))) {
            *place = if *place == ' ' { letter } else { '*' };
        }
    }
    let mut shown = vec![format!("{:GUTTER$} {}", "", panel.measure)];
    for line in (1..=LINES).rev() {
        let tick = panel.axis.ticks.iter().find(|(at, _)| line_of(*at) + 1 == line);
        let label = tick.map_or("", |(_, name)| name.as_str());
        let row = grid.get(line).map(|row| row.iter().collect::<String>()).unwrap_or_default();
        shown.push(format!("{label:>GUTTER$}|{row}"));
    }
    let axis = grid.first().map(|row| row.iter().map(|mark| if *mark == ' ' { '-' } else { *mark }));
    shown.push(format!("{:>GUTTER$}+{}", "", axis.into_iter().flatten().collect::<String>()));
    shown
}

/// Returns the letter of a slot; beyond `Z` all have `#`.
fn letter(plot: &OrderPlot, slot: usize, is_counted: bool) -> char {
    let arm = plot.slots.get(slot).map_or(slot, |label| label.arm);
    let letter = u8::try_from(arm).ok().filter(|arm| *arm < 26).map_or('#', |arm| char::from(b'A' + arm));
    if is_counted { letter } else { letter.to_ascii_lowercase() }
}

/// Renders the start of each block; a name without room is left out.
fn blocks(plot: &OrderPlot, columns: usize) -> String {
    let mut line = String::new();
    for band in &plot.bands {
        let start = (band.from * columns as f64).round() as usize;
        let width = ((band.to * columns as f64).round() as usize).saturating_sub(start);
        let name = if band.name == "warm-up" && width < 8 { "|w" } else { &format!("|{}", band.name) };
        let used = line.chars().count();
        if used <= start && name.chars().count() <= width.max(2) {
            line = format!("{line:<start$}{name}");
        }
    }
    line
}

fn legend(plot: &OrderPlot, width: usize) -> Vec<String> {
    let arms = plot.slots.iter().enumerate().filter(|(_, label)| !label.is_copy);
    let entry = |slot: usize, name: &str| {
        hanging(&format!("{:GUTTER$} {} ", "", letter(plot, slot, true)), name, width)
    };
    arms.flat_map(|(slot, label)| entry(slot, &label.name)).collect()
}
