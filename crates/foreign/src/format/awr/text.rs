//! Reads reports in text.

use super::head;
use crate::figure::sheet::Sheet;
use crate::form::ruled::{self, Ruled};
use crate::format::sections::section_of;
use crate::report::Report;
use crate::source::SourcePart;
use plumb_figures::numeral::Comma;

pub fn read(part: &SourcePart<'_>) -> Report {
    let mut lines: Vec<(u32, &str)> = part.lines().collect();
    // A report quoted in another text is indented as a whole.
    let indent = lines.first().map_or(0, |(_, first)| first.len() - first.trim_start_matches(' ').len());
    for (_, line) in &mut lines {
        *line = &line[line.bytes().take_while(|byte| *byte == b' ').count().min(indent)..];
    }
    let ruled::Tables { tables, empty, unread, prose, statements } = ruled::tables(&lines);
    let mut report = Report { empty, unread, prose, skipped: statements, ..Report::default() };
    let comma = comma_of(part.text);
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    report.sheets = tables.map(|table| sheet(table, comma)).collect();
    head::fill(&mut report);
    report.require_end(part, &["End of Report"]);
    report
}

/// Returns the meaning of commas in a report: the minutes of its head, `60,00 (mins)`, show a
/// decimal one.
pub fn comma_of(text: &str) -> Comma {
    let decimals = |before: &str| {
        let digits = before.trim_end().rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap_or("");
        let rest = before.trim_end().strip_suffix(digits).unwrap_or("");
        digits.len() == 2 && rest.ends_with(',')
    };
    let minutes = text.match_indices("(mins)").take(8);
    let is_decimal = minutes.into_iter().any(|(at, _)| decimals(&text[..at]));
    if is_decimal { Comma::Decimals } else { Comma::Groups }
}

pub fn sheet(table: Ruled, comma: Comma) -> Sheet {
    // The tables of the head have no heading; in Statspack their first column looks like one.
    let is_of_head = ["Database", "Host", "Snapshot"].contains(&table.heading.raw.as_str())
        || table.heading.raw.starts_with("WORKLOAD REPOSITORY");
    let heading = if is_of_head { "" } else { table.heading.raw.as_str() };
    let section = section_of(heading, &table.names);
    let mut sheet = Sheet::new(section, table.heading, table.names);
    (sheet.notes, sheet.comma) = (table.notes, comma);
    if let (0, Some((line, _))) = (sheet.line, table.rows.first()) {
        sheet.line = *line;
    }
    for (line, cells) in table.rows {
        sheet.push(line, cells);
    }
    sheet
}
