//! This program's own reports of runs, as text, HTML and Markdown.
//!
//! They have the sections of an AWR report, so its columns, checks and record serve them too. What
//! differs: the head is the section `Run`; streams stand below their function; the load profile has
//! units of its own; the host's CPU has a line for each state.

use super::own_sections::LOAD;
use super::sections::section_of;
use super::{head, page, text};
use crate::markdown;
use crate::report::Report;
use crate::sheet::{Sheet, SheetRow};
use crate::source::SourcePart;

/// Sections that are known by their columns alone.
const HEADLESS: [&str; 2] = ["run", "host"];

/// True of the first line of such a report.
pub fn begins(line: &str) -> bool {
    line.trim_start_matches("# ").starts_with("PLUMB REPORT  ")
}

pub fn of_text(part: &SourcePart<'_>) -> Report {
    if part.text.starts_with('#') {
        let lines: Vec<(u32, &str)> = part.lines().collect();
        let mut report = Report::default();
        let tables = markdown::tables(&lines).into_iter().filter(|table| !table.rows.is_empty());
        report.sheets = tables.map(text::sheet).collect();
        head::fill(&mut report);
        return settled(report);
    }
    settled(text::read(part))
}

pub fn of_page(part: &SourcePart<'_>) -> Report {
    settled(page::read(part))
}

fn settled(mut report: Report) -> Report {
    let mut streams = Vec::new();
    for sheet in &mut report.sheets {
        // Other lists of events have the columns of the top ones.
        if !HEADLESS.contains(&sheet.section) && section_of(&sheet.heading, &[]).is_none() {
            sheet.section = "";
        }
        match sheet.section {
            "load_profile" => sheet.section = LOAD,
            "io_functions" => streams.extend(without_streams(sheet)),
            _ => {}
        }
    }
    report.sheets.extend(streams);
    report
}

/// Moves the streams below their functions, and the device's own counts, to a table of their own:
/// functions add up to the total without them.
fn without_streams(sheet: &mut Sheet) -> Option<Sheet> {
    let is_stream = |row: &SheetRow| {
        let name = row.cells.first().map_or("", |cell| cell.raw.as_str());
        name.starts_with(|first: char| first.is_ascii_lowercase())
    };
    let (own, functions) = std::mem::take(&mut sheet.rows).into_iter().partition(is_stream);
    sheet.rows = functions;
    let heading = format!("{}: streams and devices", sheet.heading);
    let streams = Sheet { section: "", heading, rows: own, ..sheet.clone() };
    (!streams.rows.is_empty()).then_some(streams)
}
