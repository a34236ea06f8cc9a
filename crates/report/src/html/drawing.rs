//! Intervals and bars as one inline SVG for each cell.
//!
//! Horizontal positions are percentages, so that a drawing is as wide as its column without
//! distortion and without a script. Adjacent cells have the same figures.

use crate::table::{Axis, BarKind, Drawing};

/// Vertical middle of a row, pixels.
const MIDDLE: u32 = 10;

/// Renders the drawing of a cell.
pub(super) fn drawing(drawing: Option<Drawing>, axis: Option<&Axis>) -> String {
    let mut marks = String::new();
    if let Some(at) = axis.and_then(|axis| axis.line) {
        marks.push_str(&vertical(at, "zero", [-4, 24]));
    }
    match drawing {
        Some(Drawing::Interval { low, at, high }) => marks.push_str(&interval(low, at, high)),
        Some(Drawing::Bar { from, to, kind }) => {
            let class = match kind {
                BarKind::Total => "total",
                BarKind::More => "more",
                BarKind::Less => "less",
            };
            let (left, width) = (from.min(to), (from - to).abs());
            marks.push_str(&format!(
                "<rect class=\"{class}\" x=\"{}\" y=\"3\" width=\"{}\" height=\"14\"/>",
                percent(left),
                percent(width.max(0.002))
            ));
        }
        None => {}
    }
    format!("<svg class=\"strip\" width=\"100%\" height=\"20\" aria-hidden=\"true\">{marks}</svg>")
}

fn interval(low: Option<f64>, at: f64, high: Option<f64>) -> String {
    let (left, right) = (percent(low.unwrap_or(0.0)), percent(high.unwrap_or(1.0)));
    let mut marks =
        format!("<line class=\"interval\" x1=\"{left}\" x2=\"{right}\" y1=\"{MIDDLE}\" y2=\"{MIDDLE}\"/>");
    for end in [low, high].into_iter().flatten() {
        marks.push_str(&vertical(end, "interval", [5, 15]));
    }
    marks + &format!("<circle class=\"estimate\" cx=\"{}\" cy=\"{MIDDLE}\" r=\"4.5\"/>", percent(at))
}

fn vertical(at: f64, class: &str, [top, bottom]: [i32; 2]) -> String {
    let x = percent(at);
    format!("<line class=\"{class}\" x1=\"{x}\" x2=\"{x}\" y1=\"{top}\" y2=\"{bottom}\"/>")
}

/// Renders an axis with its labels.
pub(super) fn axis(axis: &Axis) -> String {
    let ticks = axis.ticks.iter().map(|(at, label)| {
        let anchor = match *at {
            at if at < 0.06 => "start",
            at if at > 0.94 => "end",
            _ => "middle",
        };
        let x = percent(*at);
        format!(
            "<line class=\"tick\" x1=\"{x}\" x2=\"{x}\" y1=\"14\" y2=\"18\"/>\
             <text x=\"{x}\" y=\"11\" text-anchor=\"{anchor}\">{}</text>",
            super::escape(label)
        )
    });
    format!("<svg class=\"strip\" width=\"100%\" height=\"18\">{}</svg>", ticks.collect::<String>())
}

/// Formats a position as a percentage.
pub(super) fn percent(at: f64) -> String {
    format!("{:.2}%", at * 100.0)
}
