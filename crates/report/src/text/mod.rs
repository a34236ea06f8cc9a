//! The text of a document, in the form of an AWR report.
//!
//! Walks the sections and renders each block. Titles of the first page are underlined with tildes.
//! Later titles have the running head next to them, and a ruler at the end of the section. Notes
//! follow an arrow; tables have dashed rulers. Lines have no trailing blanks, so that diff can
//! compare reports, and no control characters.

mod chart;
mod drawing;
mod facts;
mod order;
mod parts;
mod table;
mod wrap;

pub(crate) use chart::{lines as chart_lines, pair_lines};
pub use table::fitted;
pub use wrap::wrap;

use crate::document::{Block, Document, NO_DATA, Placement, Section};
use crate::table::{Cell, Facts, Tone};
use plumb_units::{COLUMN_MOST, visible};

/// Default width, that of an AWR report on wide paper.
pub const WIDTH: usize = 132;

/// Length and end column of the ruler after a section.
const END_OF_SECTION: (usize, usize) = (54, 80);

/// Width of the narrowest terminal supported.
pub const WIDTH_MIN: usize = 60;

/// Renders the report within this width (at least 60): wider tables are wrapped, then
/// split into groups of columns.
pub fn render_in(document: &Document, width: usize) -> String {
    render(&Document { width: width.clamp(WIDTH_MIN, document.width), ..document.clone() })
}

pub fn render(document: &Document) -> String {
    let mut lines = masthead(document);
    for section in &document.sections {
        lines.extend(render_section(section, document));
    }
    lines.push("End of Report".to_string());
    let mut text = String::new();
    for line in lines {
        text.push_str(&visible(line.trim_end()));
        text.push('\n');
    }
    text
}

fn masthead(document: &Document) -> Vec<String> {
    let Document { title, answer, state, basis, reasons, headline, width, .. } = document;
    let word = if state.tone == Tone::Bad { format!("*** {} ***", state.word) } else { state.word.clone() };
    let mut lines = wrap(title, *width);
    // The title stays first: a reader of the file knows the kind of report by it.
    lines.extend(
        Some(answer.sentence()).filter(|said| !said.is_empty()).iter().flat_map(|said| wrap(said, *width)),
    );
    lines.extend(hanging(&format!("{}: ", state.of), format!("{word}   {basis}").trim_end(), *width));
    lines.extend(reasons.iter().flat_map(|reason| hanging("  -> ", reason, *width)));
    lines.push(String::new());
    if !headline.is_empty() {
        let rows = headline.iter().map(|figure| (figure.name.clone(), Cell::from(figure.line())));
        lines.extend(facts::lines(&Facts { caption: None, rows: rows.collect() }, *width));
        lines.push(String::new());
    }
    lines
}

/// Puts text after a mark and wraps it below its start.
pub fn hanging(mark: &str, text: &str, width: usize) -> Vec<String> {
    let indent = mark.chars().count().min(COLUMN_MOST);
    // A mark may be an external name, longer than the page.
    let lines = wrap(text, width.saturating_sub(indent).max(1)).into_iter().enumerate();
    lines
        .map(
            |(index, line)| {
                if index == 0 { format!("{mark}{line}") } else { format!("{:indent$}{line}", "") }
            },
        )
        .collect()
}

pub fn render_section(section: &Section, document: &Document) -> Vec<String> {
    let mut lines = Vec::new();
    match section.placement {
        Placement::Front => {
            lines.push(section.title.clone());
            lines.push("~".repeat(section.title.chars().count().min(document.width)));
        }
        Placement::Detail => {
            let line = format!("{:<48}  {}", section.title, document.running_head);
            // Each section repeats the head, because readers cut reports; a narrow terminal omits
            // it.
            let fits = document.width >= WIDTH || line.chars().count() <= document.width;
            lines.push(if fits { line } else { section.title.clone() });
        }
    }
    for note in &section.notes {
        lines.extend(hanging("-> ", note, document.width));
    }
    let says_why = section.blocks.is_empty() && !section.notes.is_empty();
    if (!section.notes.is_empty() && !says_why) || section.placement == Placement::Detail {
        lines.push(String::new());
    }
    if section.blocks.is_empty() && !says_why {
        lines.push(NO_DATA.to_string());
    }
    let blocks = section.blocks.iter().filter(|block| !matches!(block, Block::Drawings(_)));
    for (index, block) in blocks.enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(match block {
            Block::Table(table) => table::lines(table, document.width),
            Block::Facts(facts) => facts::lines(facts, document.width),
            Block::Parts(parts) => parts::lines(parts, document.width),
            Block::Profile(chart) => chart::lines(chart, document.width),
            Block::Pair(pair) => chart::pair_lines(pair, document.width),
            Block::Order(plot) => order::lines(plot, document.width),
            Block::Drawings(_) => Vec::new(),
        });
    }
    if section.placement == Placement::Detail {
        let (length, end) = END_OF_SECTION;
        let end = end.min(document.width);
        lines.push(format!("{:>end$}", "-".repeat(length.min(end))));
    }
    lines.push(String::new());
    lines
}
