//! Imports of whole files: fixtures written by hand in the shape of each kind of report.
//!
//! - `reports`: AWR as text and as HTML, Statspack, global, two periods; their checks and records.
//! - `page`: the texts of the page, and sections alone.
//! - `pasted`: tables without a head: tabs, one line, paragraphs; figures that follow from them.
//! - `tools`: tools that print lines, fio's forms, and pages of PostgreSQL.
//! - `diagnosis`: findings of reports, and their silence on healthy ones.
//! - `hostile`: cut files, random changes, long files.

mod diagnosis;
mod hostile;
mod page;
mod pasted;
mod reports;
mod tools;

use plumb_foreign::figure::sheet::Sheet;
use plumb_foreign::{Import, READERS, Report, Source, import};
use plumb_record::{Consistency, Consistent, ImportedFigure};
use std::path::Path;

/// A fixture by its file's name.
macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("fixtures/", $name))
    };
}
pub(crate) use fixture;

pub fn imports(text: &str) -> Vec<Import> {
    let source = Source::of(Path::new("report.txt"), text.as_bytes());
    import(&source, READERS, "0.1.0").unwrap_or_else(|error| panic!("{error}"))
}

pub fn only(text: &str) -> Import {
    let mut all = imports(text);
    assert_eq!(all.len(), 1, "one report");
    all.remove(0)
}

/// The first table of a section.
pub fn sheet<'a>(report: &'a Report, section: &'static str) -> &'a Sheet {
    report.sheet(section).unwrap_or_else(|| panic!("no {section}"))
}

/// The texts of a row by its first cell.
pub fn row(sheet: &Sheet, name: &str) -> Vec<String> {
    let found = sheet.rows.iter().find(|row| row.cells.iter().any(|cell| cell.raw == name));
    let row = found.unwrap_or_else(|| panic!("no row {name} in {}", sheet.heading));
    row.cells.iter().map(|cell| cell.raw.clone()).collect()
}

/// The names of checks with an outcome, and the rows that they are about.
pub fn with(checks: &[Consistency], outcome: Consistent) -> Vec<(&str, &str)> {
    let of = checks.iter().filter(|check| check.outcome == outcome);
    of.map(|check| (check.name.as_str(), check.of.as_str())).collect()
}

/// A figure that follows from others.
pub fn figure<'a>(import: &'a Import, name: &str) -> &'a ImportedFigure {
    let found = import.imported.figures.iter().find(|figure| figure.name == name);
    found.unwrap_or_else(|| panic!("no figure {name}"))
}
