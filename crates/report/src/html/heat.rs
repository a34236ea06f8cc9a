//! A map of counts as SVG: a rectangle for each cell that is not empty, darker for more.
//!
//! Darkness follows the logarithm of the count, because one cell may have a million times the
//! requests of another and both must be seen.

use super::escape;
use crate::plot::Heat;
use std::fmt::Write as _;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 78.0;
/// Half of the last label lies right of the axis.
const RIGHT: f64 = 24.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;
/// Least darkness of a cell with one request.
const FAINTEST: f64 = 0.15;

pub(super) fn heat(heat: &Heat) -> String {
    let title = escape(&heat.title);
    let mut svg = format!(
        "<figure class=\"drawing\"><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    let columns = heat.cells.len().max(1) as f64;
    let rows = heat.cells.iter().map(Vec::len).max().unwrap_or(1).max(1) as f64;
    let (wide, high) = ((WIDTH - LEFT - RIGHT) / columns, (HEIGHT - TOP - BOTTOM) / rows);
    let bottom = HEIGHT - BOTTOM;
    let most = heat.cells.iter().flatten().copied().max().unwrap_or(1).max(1) as f64;
    for (column, cells) in heat.cells.iter().enumerate() {
        for (row, count) in cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            let share = (*count as f64).ln_1p() / most.ln_1p();
            let _ = writeln!(
                svg,
                "<rect class=\"c0\" fill-opacity=\"{:.2}\" x=\"{:.1}\" y=\"{:.1}\" \
                 width=\"{wide:.2}\" height=\"{high:.2}\">\
                 <title>{count}</title></rect>",
                FAINTEST + (1.0 - FAINTEST) * share,
                LEFT + column as f64 * wide,
                bottom - (row + 1) as f64 * high
            );
        }
    }
    for (at, label) in &heat.x_ticks {
        let x = LEFT + at * (WIDTH - LEFT - RIGHT);
        let (y, label) = (bottom + 16.0, escape(label));
        let _ = writeln!(svg, "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
    }
    for (at, label) in &heat.y_ticks {
        let y = bottom - at * (bottom - TOP) + 4.0;
        let (x, label) = (LEFT - 7.0, escape(label));
        let _ = writeln!(svg, "<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>");
    }
    let (middle, title) = (f64::midpoint(LEFT, WIDTH - RIGHT), escape(&heat.x_title));
    let _ = writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{}\"/>\
         <text class=\"title middle\" x=\"{middle:.1}\" y=\"{:.1}\">{title}</text>",
        WIDTH - RIGHT,
        HEIGHT - 8.0
    );
    svg + "</svg></figure>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_more_are_darker_and_empty_ones_are_left_out() {
        let drawn = heat(&Heat {
            title: "Offsets in <a>".to_string(),
            x_title: "seconds".to_string(),
            x_ticks: vec![(0.0, "0".to_string())],
            y_ticks: vec![(0.5, "1 ms".to_string())],
            cells: vec![vec![0, 1], vec![1000, 0]],
        });
        assert_eq!(drawn.matches("<rect").count(), 2);
        let darkness = |count: &str| {
            let line = drawn.lines().find(|line| line.contains(count)).expect("a cell");
            let text = line.split("fill-opacity=\"").nth(1).and_then(|rest| rest.split('"').next());
            text.and_then(|text| text.parse::<f64>().ok()).expect("a number")
        };
        assert!(darkness("<title>1000<") > 0.99 && darkness("<title>1<") < 0.3, "{drawn}");
        assert!(drawn.contains("Offsets in &lt;a&gt;") && drawn.contains("1 ms"));
        assert!(!heat(&Heat::default()).contains("<rect"));
    }
}
