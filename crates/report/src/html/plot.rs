//! Curves and bars as SVG, without a script.
//!
//! Colours are classes, so that the style sheet decides on them and a change of theme redraws
//! nothing. Sizes are in units of the view box, which scales. A tooltip shows the figures of a
//! mark.

use super::escape::escape;
use crate::plot::{Axis, Bar, Bars, Mark, Plot, Series, Side, Stroke};
use std::fmt::Write as _;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// Number of colours in the palette.
const COLOURS: usize = 8;
/// Approximate width of a letter in a legend.
const LETTER: f64 = 6.4;

/// Area of the data in a plot's picture.
struct Frame<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }
}

pub(super) fn plot(plot: &Plot) -> String {
    let title = escape(&plot.title);
    format!(
        "<figure class=\"drawing\"><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n{}</svg></figure>\n",
        drawn(plot)
    )
}

/// Renders the content of the view box.
pub(crate) fn drawn(plot: &Plot) -> String {
    let frame = Frame { x: &plot.x, y: &plot.y };
    let mut svg = axes(&frame);
    svg.push_str(&legend(&plot.series));
    for series in &plot.series {
        svg.push_str(&self::series(&frame, series));
    }
    svg
}

fn axes(frame: &Frame<'_>) -> String {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let mut svg = String::new();
    for (value, label) in &frame.x.ticks {
        let x = frame.x(*value);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            bottom + 16.0,
            escape(label)
        );
    }
    for (value, label) in &frame.y.ticks {
        let y = frame.y(*value);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 7.0,
            y + 4.0,
            escape(label)
        );
    }
    let _ = writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\
         <text class=\"title middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <text class=\"title middle\" transform=\"translate(13 {:.1}) rotate(-90)\">{}</text>",
        f64::midpoint(LEFT, right),
        HEIGHT - 8.0,
        escape(&frame.x.title),
        f64::midpoint(TOP, bottom),
        escape(&frame.y.title)
    );
    svg
}

fn legend(series: &[Series]) -> String {
    let mut svg = String::new();
    let mut x = LEFT;
    for one in series {
        let (class, y) = (class(one), 16.0);
        let _ = match one.stroke {
            Stroke::Marks => {
                writeln!(svg, "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"3.5\"/>", x + 11.0)
            }
            _ => writeln!(svg, "<path class=\"{class}\" d=\"M{x:.1} {y}h22\"/>"),
        };
        let name = escape(&one.name);
        let _ = writeln!(svg, "<text class=\"key\" x=\"{:.1}\" y=\"20\">{name}</text>", x + 28.0);
        x += 46.0 + one.name.chars().count() as f64 * LETTER;
    }
    svg
}

fn class(series: &Series) -> String {
    let dashed = if matches!(series.stroke, Stroke::Dashed | Stroke::Fit) { " dashed" } else { "" };
    format!("c{}{dashed}", series.colour % COLOURS)
}

fn series(frame: &Frame<'_>, series: &Series) -> String {
    let class = class(series);
    let mut svg = String::new();
    if series.stroke != Stroke::Marks && series.marks.len() > 1 {
        let points = series.marks.iter().map(|mark| format!("{:.1} {:.1}", frame.x(mark.x), frame.y(mark.y)));
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{}\"/>", points.collect::<Vec<_>>().join("L"));
    }
    if series.stroke != Stroke::Fit {
        for mark in &series.marks {
            svg.push_str(&self::mark(frame, mark, &class));
        }
    }
    svg
}

fn mark(frame: &Frame<'_>, mark: &Mark, class: &str) -> String {
    let (x, y) = (frame.x(mark.x), frame.y(mark.y));
    let mut svg = "<g>".to_string();
    if !mark.hint.is_empty() {
        let _ = write!(svg, "<title>{}</title>", escape(&mark.hint));
    }
    if let Some((low, high)) = mark.x_range {
        let _ = write!(
            svg,
            "<path class=\"{class} range\" d=\"M{:.1} {y:.1}H{:.1}\"/>",
            frame.x(low),
            frame.x(high)
        );
    }
    if let Some((low, high)) = mark.y_range {
        let _ = write!(
            svg,
            "<path class=\"{class} range\" d=\"M{x:.1} {:.1}V{:.1}\"/>",
            frame.y(low),
            frame.y(high)
        );
    }
    if mark.ringed {
        let _ = write!(svg, "<circle class=\"{class} ring\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"/>");
    }
    let _ = write!(svg, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
    if !mark.label.is_empty() {
        let label = escape(&mark.label);
        let left = mark.side == Side::Left || x > WIDTH - RIGHT - 24.0;
        let (side, x) = if left { ("end", x - 11.0) } else { ("start", x + 11.0) };
        let _ = write!(svg, "<text class=\"label {side}\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>", y + 4.0);
    }
    svg + "</g>\n"
}

const BAR_NAME: f64 = 216.0;
const BAR_SHOWN: f64 = 64.0;
const BAR_STEP: f64 = 22.0;

pub(super) fn bars(bars: &Bars) -> String {
    let largest = bars.bars.iter().map(|bar| bar.value.max(bar.range.1)).fold(f64::MIN_POSITIVE, f64::max);
    let height = BAR_STEP * bars.bars.len() as f64 + 6.0;
    let title = escape(&bars.title);
    let mut svg = format!(
        "<figure class=\"drawing\"><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n"
    );
    for (index, one) in bars.bars.iter().enumerate() {
        svg.push_str(&bar(one, index as f64 * BAR_STEP, largest, bars.colour % COLOURS));
    }
    svg + "</svg></figure>\n"
}

fn bar(bar: &Bar, top: f64, largest: f64, colour: usize) -> String {
    let scale = (WIDTH - BAR_NAME - BAR_SHOWN) / largest;
    let middle = top + BAR_STEP / 2.0;
    let (low, high) = (BAR_NAME + bar.range.0 * scale, BAR_NAME + bar.range.1 * scale);
    format!(
        "<text class=\"name end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
         <rect class=\"c{colour}\" x=\"{BAR_NAME}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>\
         <path class=\"whisker\" d=\"M{low:.1} {middle:.1}H{high:.1}M{low:.1} {:.1}v8M{high:.1} {:.1}v8\"/>\
         <text class=\"name\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        BAR_NAME - 8.0,
        middle + 4.0,
        escape(&bar.name),
        middle - 7.0,
        (bar.value * scale).max(0.0),
        middle - 4.0,
        middle - 4.0,
        high.max(BAR_NAME + bar.value * scale) + 8.0,
        middle + 4.0,
        escape(&bar.shown)
    )
}
