//! Every run of a study in order of execution, as inline SVG.
//!
//! As in `drawing`, positions are percentages. An arm has a colour and a shape, which repeat after
//! different numbers, so that the first 24 arms differ with and without colours. A line joins the
//! reference's first runs, because their drift is that of the machine.

use super::drawing::percent;
use super::escape;
use crate::order::{OrderPanel, OrderPlot, OrderPoint};

/// Shapes around a point, pixels.
const SHAPES: [&str; 6] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.6L4.4 3.4H-4.4z",
    "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "M0 4.6L4.4-3.4H-4.4z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
];
/// Shape of the reference's second run.
const RING: &str =
    "M-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0zM-2.2 0a2.2 2.2 0 1 0 4.4 0a2.2 2.2 0 1 0-4.4 0z";
/// Shape of a run without a figure.
const FAILED: &str = "M-4-4L4 4M4-4L-4 4";
/// Number of arms' colours in the style sheet.
const COLOURS: usize = 8;
/// Heights of the first panel and of those below it, pixels.
const HEIGHTS: [u32; 2] = [320, 200];
/// Least number of pixels for a run.
const RUN_WIDTH: usize = 5;

pub(super) fn figure(plot: &OrderPlot) -> String {
    let panels = plot.panels.iter().enumerate().map(|(index, panel)| {
        let ticks = panel.axis.ticks.iter();
        let ticks = ticks
            .map(|(at, name)| format!("<span style=\"bottom:{}\">{}</span>", percent(*at), escape(name)));
        format!(
            "<div class=\"caption\">{}</div>\n<div class=\"ticks\">{}</div>\n{}\n",
            escape(&panel.measure),
            ticks.collect::<String>(),
            drawing(plot, panel, HEIGHTS[index.min(1)])
        )
    });
    let blocks = plot.bands.iter().map(|band| {
        let class = if band.is_counted { "" } else { " class=\"uncounted\"" };
        let (left, width) = (percent(band.from), percent(band.to - band.from));
        let name = escape(&band.name);
        format!("<span{class} title=\"{name}\" style=\"left:{left};width:{width}\">{name}</span>")
    });
    format!(
        "<figure class=\"order\">\n{}<div class=\"scroll\"><div class=\"order-grid\" style=\"min-width:{}px\">\n\
         {}<div class=\"blocks\">{}</div></div></div>\n{}</figure>\n",
        definitions(),
        80 + plot.points.len() * RUN_WIDTH,
        panels.collect::<String>(),
        blocks.collect::<String>(),
        legend(plot)
    )
}

/// Renders the shapes once for all panels and the legend.
fn definitions() -> String {
    let shapes = SHAPES.iter().enumerate();
    let shapes = shapes.map(|(index, shape)| format!("<path id=\"shape-{index}\" d=\"{shape}\"/>"));
    format!(
        "<svg class=\"definitions\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>{}<path id=\"shape-ring\" fill-rule=\"evenodd\" d=\"{RING}\"/>\
         <path id=\"shape-failed\" d=\"{FAILED}\"/></defs></svg>\n",
        shapes.collect::<String>()
    )
}

fn drawing(plot: &OrderPlot, panel: &OrderPanel, height: u32) -> String {
    let mut svg = format!(
        "<svg class=\"runs\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{}, {} runs in order of execution\">\n",
        escape(&panel.measure),
        plot.points.len()
    );
    for (index, band) in plot.bands.iter().enumerate() {
        let class = match (band.is_counted, index % 2) {
            (false, _) => "band uncounted",
            (true, 0) => "band even",
            (true, _) => "band odd",
        };
        let (x, width) = (percent(band.from), percent(band.to - band.from));
        svg.push_str(&format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"0\" width=\"{width}\" height=\"100%\"/>"
        ));
    }
    for (at, class) in
        panel.axis.ticks.iter().map(|(at, _)| (*at, "grid")).chain(panel.axis.line.map(|at| (at, "zero")))
    {
        let y = percent(1.0 - at);
        svg.push_str(&format!("<line class=\"{class}\" x1=\"0\" x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>"));
    }
    svg.push('\n');
    let places = plot.points.iter().zip(panel.heights.iter().copied());
    if panel.joins_reference {
        svg.push_str(&reference_line(plot, places.clone()));
    }
    places.for_each(|(point, height)| svg.push_str(&mark(plot, point, height)));
    svg + "</svg>"
}

/// Joins the counted first runs of the reference in order.
fn reference_line<'a>(
    plot: &OrderPlot,
    places: impl Iterator<Item = (&'a OrderPoint, Option<f64>)>,
) -> String {
    let reference = plot.slots.iter().find(|label| label.is_copy).map(|label| label.arm);
    let own = places.filter(|(point, _)| Some(point.slot) == reference && point.is_counted);
    let places = own.filter_map(|(point, height)| Some((point.x, height?))).collect::<Vec<_>>();
    let segments = places.windows(2).map(|pair| {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
        format!(
            "<line class=\"reference\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            percent(x1),
            percent(1.0 - y1),
            percent(x2),
            percent(1.0 - y2)
        )
    });
    segments.collect()
}

fn mark(plot: &OrderPlot, point: &OrderPoint, height: Option<f64>) -> String {
    let shape = if height.is_none() { "failed".to_string() } else { shape(plot, point.slot) };
    let state = if point.is_counted { "" } else { " uncounted" };
    format!(
        "<use class=\"run arm-{}{state}\" href=\"#shape-{shape}\" x=\"{}\" y=\"{}\"><title>{}</title></use>\n",
        colour(plot, point.slot),
        percent(point.x),
        percent(height.map_or(0.98, |y| 1.0 - y)),
        escape(&point.hint)
    )
}

fn shape(plot: &OrderPlot, slot: usize) -> String {
    let is_copy = plot.slots.get(slot).is_some_and(|label| label.is_copy);
    if is_copy { "ring".to_string() } else { (slot % SHAPES.len()).to_string() }
}

fn colour(plot: &OrderPlot, slot: usize) -> usize {
    plot.slots.get(slot).map_or(slot, |label| label.arm) % COLOURS
}

fn legend(plot: &OrderPlot) -> String {
    let mut html = "<ul class=\"legend\">".to_string();
    for (slot, label) in plot.slots.iter().enumerate() {
        html.push_str(&format!(
            "<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><use class=\"run arm-{}\" href=\"#shape-{}\" x=\"7\" y=\"7\"/></svg>{}</li>",
            colour(plot, slot),
            shape(plot, slot),
            escape(&label.name)
        ));
    }
    let uncounted = plot.points.iter().any(|point| !point.is_counted);
    if uncounted {
        html.push_str("<li><svg width=\"14\" height=\"14\" aria-hidden=\"true\"><use class=\"run uncounted\" href=\"#shape-0\" x=\"7\" y=\"7\"/></svg>hollow: not counted</li>");
    }
    html + "</ul>\n"
}
