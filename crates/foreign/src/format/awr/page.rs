//! Reads reports in HTML.

use super::{head, text};
use crate::figure::sheet::{Printed, Remark, Sheet};
use crate::form::html;
use crate::format::sections::section_of;
use crate::report::Report;
use crate::source::SourcePart;

pub fn read(part: &SourcePart<'_>) -> Report {
    let mut report = tables(part);
    head::fill(&mut report);
    report.require_end(part, &["</html>", "</HTML>", "End of Report"]);
    report
}

/// Reads the tables of a page without its head.
pub fn tables(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    let comma = text::comma_of(part.text);
    for table in html::tables(part) {
        let summary = table.summary.split(". ").next().unwrap_or("").to_string();
        // The text right above a table is more specific than the heading of the section.
        let titles = [&table.before, &table.heading.raw, &summary].map(String::as_str);
        let shown = titles.iter().find(|title| !title.is_empty()).copied().unwrap_or("").to_string();
        let heading = Printed { raw: shown, line: table.line };
        if table.rows.is_empty() {
            report.empty.push(Remark { line: heading.line, text: heading.raw });
            continue;
        }
        let by_title =
            titles.iter().filter(|title| !title.is_empty()).find_map(|title| section_of(title, &[]));
        let section = by_title.or_else(|| section_of("", &table.names));
        let (names, rows) = paired(table.names, table.rows);
        let mut sheet = Sheet::new(section, heading, names);
        (sheet.notes, sheet.comma) = (table.notes, comma);
        for (line, cells) in rows {
            sheet.push(line, cells);
        }
        report.sheets.push(sheet);
    }
    report
}

/// A row with its line.
type Line = (u32, Vec<Printed>);

/// Splits rows into pairs of a name and a value. Tables without headings have such pairs, and the
/// cache sizes have one after their columns.
fn paired(names: Vec<String>, rows: Vec<Line>) -> (Vec<String>, Vec<Line>) {
    let headed = names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
    if headed == 0 && names.len().is_multiple_of(2) {
        let pairs = rows.into_iter().flat_map(|(line, cells)| pairs_of(line, cells)).collect();
        return (vec!["Name".to_string(), "Value".to_string()], pairs);
    }
    if headed == 0 || names.len() != headed + 2 {
        return (names, rows);
    }
    let (mut own, mut behind) = (Vec::new(), Vec::new());
    for (line, mut cells) in rows {
        let pair = cells.split_off(headed.min(cells.len()));
        own.push((line, cells));
        behind.extend(pairs_of(line, pair));
    }
    own.extend(behind);
    (names[..headed].to_vec(), own)
}

fn pairs_of(line: u32, cells: Vec<Printed>) -> impl Iterator<Item = Line> {
    let mut cells = cells.into_iter();
    let next = move || Some((cells.next()?, cells.next()?));
    std::iter::from_fn(next)
        .filter(|(name, _)| !name.raw.is_empty())
        .map(move |(name, value)| (line, vec![name, value]))
}
