//! One table or plot as an SVG file, for a page that is not a report.
//!
//! It draws a title, a line below it, and a plot or a table with a column of drawings. A table has
//! names at the left, intervals on their axis, and figures at the right. Column widths are
//! estimates on the large side, because a file without fonts cannot measure its words.

use crate::document::{Block, Document};
use crate::html::{escape, plot};
use crate::plot::Plot;
use crate::table::{Alignment, Axis, Column, Drawing, Row, Table, Tone};
use std::fmt::Write as _;

/// Pixels: width of a letter and of one in the title, height of a row, gap between
/// columns, margin, width of drawings.
const LETTER: f64 = 7.2;
const TITLE_LETTER: f64 = 8.8;
const ROW: f64 = 26.0;
const GAP: f64 = 18.0;
const EDGE: f64 = 20.0;
const DRAWN: f64 = 300.0;
/// Pixels of the title and the state.
const HEAD: f64 = 58.0;

/// Colours of reports for both themes: a page that embeds the file as an
/// image follows the reader's theme.
const STYLE: &str = "\
 text{font:13px system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;fill:#1d2125}\
 .title{font-weight:650;font-size:15px}.muted{fill:#646d76;font-size:12px}.end{text-anchor:end}.middle{text-anchor:middle}\
 .good{fill:#146c43}.bad{fill:#b3261e;font-weight:600}.open{fill:#8a5a00}.paper{fill:#fdfdfc;stroke:#d9dde1}\
 .rule{stroke:#d9dde1}.grid{stroke:#e4e7ea}.zero{stroke:#646d76;stroke-dasharray:3 3}\
 .interval{stroke:#0b5cad;stroke-width:2}.estimate{fill:#0b5cad}\
 @media (prefers-color-scheme:dark){text{fill:#e4e7ea}.muted{fill:#9aa4ad}.good{fill:#6fd39b}.bad{fill:#ff8f86}\
 .open{fill:#f0c04a}.paper{fill:#14171a;stroke:#323840}.rule{stroke:#323840}.grid{stroke:#2a3037}.zero{stroke:#9aa4ad}\
 .interval{stroke:#76b5f0}.estimate{fill:#76b5f0}}";

/// Styles of plots; lines and marks have the colours of a report's streams.
const PLOT_STYLE: &str = "\
 .plot text{font-size:12px}.plot .tick,.plot .title{fill:#646d76;font-size:11px;font-weight:400}\
 .plot path{fill:none;stroke:var(--line);stroke-width:1.75}.plot circle{fill:var(--line)}\
 .plot .grid{stroke:#e4e7ea;stroke-width:1}.plot .axis{stroke:#aab3bc;stroke-width:1}\
 .plot .dashed{stroke-dasharray:6 4}.plot .range{stroke-width:4;opacity:.25;stroke-dasharray:none}\
 .c0{--line:#0072b2}.c1{--line:#d55e00}.c2{--line:#009e73}.c3{--line:#b04a88}.c6{--line:#5b5f66}\
 @media (prefers-color-scheme:dark){.plot .tick,.plot .title{fill:#9aa4ad}.plot .grid{stroke:#2a3037}.plot .axis{stroke:#59636d}\
 .c0{--line:#56b4e9}.c1{--line:#ff8a4c}.c2{--line:#2fc99a}.c3{--line:#e58cc0}.c6{--line:#b7bec6}}";

/// Returns a section's first table with intervals, as an SVG file; `None` without
/// such a section or table.
pub fn picture(document: &Document, section: &str) -> Option<String> {
    let section = document.sections.iter().find(|known| known.id == section)?;
    let table = section.blocks.iter().find_map(|block| match block {
        Block::Table(table) if table.columns.iter().any(|column| column.axis.is_some()) => Some(table),
        _ => None,
    })?;
    let state = format!("{}: {}  {}", section.title, document.state.word, document.basis);
    Some(of_table(table, &document.title, state.trim_end()))
}

/// Returns a table with intervals, as an SVG file.
pub fn of_table(table: &Table, title: &str, beneath: &str) -> String {
    let places = places(table);
    let titled = title.chars().count() as f64 * TITLE_LETTER + EDGE;
    let width = places.last().map_or(0.0, |(left, width)| left + width).max(titled) + EDGE;
    let height = HEAD + ROW * (table.rows.len() as f64 + 1.0) + EDGE;
    let mut svg = framed(width, height, STYLE, title, beneath) + &header(table, &places, width);
    for (index, row) in table.rows.iter().enumerate() {
        svg.push_str(&drawn_row(row, table, &places, HEAD + ROW * (index as f64 + 1.0)));
    }
    svg + "</svg>\n"
}

/// Returns a plot as an SVG file.
pub fn of_plot(plot: &Plot, beneath: &str) -> String {
    let style = format!("{STYLE}{PLOT_STYLE}");
    let svg = framed(plot::WIDTH + EDGE, HEAD + plot::HEIGHT + EDGE / 2.0, &style, &plot.title, beneath);
    format!(
        "{svg}<g class=\"plot\" transform=\"translate({} {HEAD})\">\n{}</g>\n</svg>\n",
        EDGE / 2.0,
        plot::drawn(plot)
    )
}

/// Renders the paper, the title and the line below it.
fn framed(width: f64, height: f64, style: &str, title: &str, beneath: &str) -> String {
    let (title, beneath) = (escape(title), escape(beneath));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         role=\"img\">\n<style>{style}</style>\n<rect class=\"paper\" x=\"0.5\" y=\"0.5\" width=\"{:.0}\" height=\"{:.0}\" rx=\"6\"/>\n\
         <text class=\"title\" x=\"{EDGE}\" y=\"26\">{title}</text>\n<text class=\"muted\" x=\"{EDGE}\" y=\"46\">{beneath}</text>\n",
        width - 1.0,
        height - 1.0
    )
}

/// Returns left edge and width of each column.
fn places(table: &Table) -> Vec<(f64, f64)> {
    let mut left = EDGE;
    let width = |(index, column): (usize, &Column)| {
        let letters =
            table.rows.iter().filter_map(|row| row.cells.get(index)).map(|cell| cell.text.chars().count());
        let title = column.title.lines().map(|line| line.chars().count());
        let letters = letters.chain(title).max().unwrap_or(0);
        if column.axis.is_some() { DRAWN } else { letters as f64 * LETTER }
    };
    let place = |column| {
        let place = (left, width(column));
        left += place.1 + GAP;
        place
    };
    table.columns.iter().enumerate().map(place).collect()
}

fn header(table: &Table, places: &[(f64, f64)], width: f64) -> String {
    let base = HEAD + ROW - 10.0;
    let mut svg = String::new();
    for (column, (left, wide)) in table.columns.iter().zip(places) {
        if let Some(axis) = &column.axis {
            svg.push_str(&ticks(axis, *left, *wide, base));
        } else {
            let title = column.title.replace('\n', " ");
            svg.push_str(&text(&title, column, (*left, *wide), (base, "muted")));
        }
    }
    let line = base + 6.0;
    let _ = writeln!(
        svg,
        "<line class=\"rule\" x1=\"{EDGE}\" x2=\"{:.0}\" y1=\"{line}\" y2=\"{line}\"/>",
        width - EDGE
    );
    svg
}

/// Renders the axis labels; one that would touch the previous one is left out.
fn ticks(axis: &Axis, left: f64, wide: f64, base: f64) -> String {
    let mut svg = String::new();
    let mut free = f64::NEG_INFINITY;
    for (at, label) in &axis.ticks {
        let (middle, half) = (left + at * wide, label.chars().count() as f64 * LETTER / 2.0);
        if middle - half >= free {
            let _ = writeln!(
                svg,
                "<text class=\"muted middle\" x=\"{middle:.1}\" y=\"{base}\">{}</text>",
                escape(label)
            );
            free = middle + half + 6.0;
        }
    }
    svg
}

fn drawn_row(row: &Row, table: &Table, places: &[(f64, f64)], top: f64) -> String {
    let base = top + 17.0;
    let mut svg = String::new();
    for ((cell, column), place) in row.cells.iter().zip(&table.columns).zip(places) {
        match &column.axis {
            Some(axis) => svg.push_str(&drawing(cell.drawing, axis, *place, top)),
            None => svg.push_str(&text(&cell.text, column, *place, (base, tone(cell.tone)))),
        }
    }
    svg
}

fn tone(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Open => "open",
    }
}

fn text(words: &str, column: &Column, (left, wide): (f64, f64), (base, class): (f64, &str)) -> String {
    let (x, anchor) = match column.alignment {
        Alignment::Number => (left + wide, " end"),
        _ => (left, ""),
    };
    format!("<text class=\"{class}{anchor}\" x=\"{x:.1}\" y=\"{base}\">{}</text>\n", escape(words))
}

/// Renders an interval with its estimate, and the line of no effect.
fn drawing(drawing: Option<Drawing>, axis: &Axis, (left, wide): (f64, f64), top: f64) -> String {
    let x = |at: f64| left + at.clamp(0.0, 1.0) * wide;
    let mut svg = String::new();
    let mut line = |class: &str, from: (f64, f64), to: (f64, f64)| {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\"/>"
        );
    };
    for (at, _) in &axis.ticks {
        line("grid", (x(*at), top), (x(*at), top + ROW));
    }
    if let Some(at) = axis.line {
        line("zero", (x(at), top), (x(at), top + ROW));
    }
    let middle = top + ROW / 2.0;
    if let Some(Drawing::Interval { low, at, high }) = drawing {
        line("interval", (x(low.unwrap_or(0.0)), middle), (x(high.unwrap_or(1.0)), middle));
        // An end beyond the axis has no mark: it is open.
        for end in [low, high].into_iter().flatten() {
            line("interval", (x(end), middle - 5.0), (x(end), middle + 5.0));
        }
        let _ =
            writeln!(svg, "<circle class=\"estimate\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"4.5\"/>", x(at));
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;
    use crate::{Section, tests};

    #[test]
    fn a_table_of_effects_is_a_picture_of_its_own() {
        let mut document = tests::every("a <name>");
        let axis = crate::axis::LogAxis::of_effects([(Some(0.4), 0.5, Some(1.1))].into_iter()).effects();
        let columns = vec![
            Column::text("Claim"),
            Column::number("Change"),
            Column::drawn("", 20, axis),
            Column::text("Verdict"),
        ];
        let mut table = Table::new(columns);
        let interval = Drawing::Interval { low: Some(0.2), at: 0.3, high: None };
        let verdict = Cell::from("PROVED <faster>").with_tone(Tone::Good);
        table.row(vec![Cell::from("1 direct"), Cell::from("-60.0%"), Cell::drawn(Some(interval)), verdict]);
        document.sections.push(Section::front("effects", "Effects").table(table));
        let svg = picture(&document, "effects").expect("a picture");
        assert!(
            svg.contains("PROVED &lt;faster&gt;") && !svg.contains("<faster>") && !svg.contains("<name>")
        );
        assert_eq!(svg.matches("class=\"interval\"").count(), 2, "an end that lies off the axis is open");
        assert_eq!(svg.matches("<svg").count(), svg.matches("</svg>").count());
        assert!(svg.contains("prefers-color-scheme:dark"), "an image follows the reader's theme");
        assert_eq!(picture(&document, "nothing"), None);
        assert_eq!(picture(&document, "table"), None, "a table without drawings is none");
    }

    #[test]
    fn a_plot_is_a_picture_of_its_own() {
        use crate::plot::{Axis, Mark, Series, Stroke, short_count};
        let axis = |title| Axis::linear(title, 40.0, short_count);
        let marks = [6.0, 24.0].map(|x| Mark { x, y: x, ..Mark::default() }).to_vec();
        let series = vec![Series { name: "<5%>".to_string(), colour: 0, stroke: Stroke::Line, marks }];
        let plot = Plot { title: "found".to_string(), x: axis("blocks"), y: axis("%"), series };
        let svg = of_plot(&plot, "by blocks");
        assert!(
            svg.contains("&lt;5%&gt;") && svg.contains(">by blocks</text>") && svg.contains(">blocks</text>")
        );
        assert_eq!((svg.matches("<svg").count(), svg.matches("<circle").count()), (1, 2));
    }
}
