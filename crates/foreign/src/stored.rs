//! The tables of an import in its bundle: `imported.json`, as input that is checked.
//!
//! A bundle may come from a stranger, so its file is bounded in bytes and cells, and a table keeps
//! as many cells a row as it has columns. Only texts are taken: what a figure means follows from
//! its text and its heading, and the page shows the text.

use crate::figure::sheet::{COLUMNS_MOST, Sheet};
use crate::reader::CELLS_MOST;
use crate::report::Report;
use crate::source::ForeignError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Name of the file in a bundle.
pub const FILE: &str = "imported.json";
/// The version of the file that is written and read.
pub(crate) const VERSION: u32 = 1;
/// Most bytes of the file: a cell takes up to two hundred.
const BYTES_MOST: u64 = 512 << 20;

/// A table as it is printed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredTable {
    pub heading: String,
    pub line: u32,
    pub notes: Vec<String>,
    pub columns: Vec<String>,
    pub rows: Vec<StoredRow>,
}

/// A row: its first line in the report, and a text for each column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredRow {
    pub line: u32,
    /// The last line of a row of several lines.
    pub last: u32,
    pub cells: Vec<String>,
}

impl From<&Sheet> for StoredTable {
    fn from(sheet: &Sheet) -> StoredTable {
        let row = |row: &crate::figure::sheet::SheetRow| {
            let (line, last) = extent(row.cells.iter().map(|cell| cell.line), sheet.line);
            StoredRow { line, last, cells: row.cells.iter().map(|cell| cell.raw.clone()).collect() }
        };
        StoredTable {
            // The tables of a head have none.
            heading: match sheet.heading.as_str() {
                "" => plumb_record::capital(&sheet.section.replace('_', " ")),
                heading => heading.to_string(),
            },
            line: sheet.line,
            notes: sheet.notes.iter().map(|note| note.text.clone()).collect(),
            columns: sheet.columns.iter().map(|column| column.name.clone()).collect(),
            rows: sheet.rows.iter().map(row).collect(),
        }
    }
}

/// Returns the first and the last line of cells; a cell that no line has is of line 0.
fn extent(lines: impl Iterator<Item = u32> + Clone, table: u32) -> (u32, u32) {
    let own = lines.filter(|line| *line > 0);
    let first = own.clone().min().unwrap_or(table);
    (first, own.max().unwrap_or(first))
}

#[derive(Serialize)]
struct Written<'r> {
    version: u32,
    #[serde(flatten)]
    report: &'r Report,
}

/// Returns the text of the file for a report.
#[must_use]
pub fn text(report: &Report) -> String {
    let written = Written { version: VERSION, report };
    serde_json::to_string(&written).unwrap_or_else(|_| "null".to_string())
}

#[derive(Deserialize)]
struct File {
    version: u32,
    sheets: Vec<FileSheet>,
}

#[derive(Deserialize)]
struct FileSheet {
    heading: String,
    line: u32,
    notes: Vec<FileText>,
    columns: Vec<FileColumn>,
    rows: Vec<FileRow>,
}

#[derive(Deserialize)]
struct FileText {
    text: String,
}

#[derive(Deserialize)]
struct FileColumn {
    name: String,
}

#[derive(Deserialize)]
struct FileRow {
    cells: Vec<FileCell>,
}

#[derive(Deserialize)]
struct FileCell {
    raw: String,
    line: u32,
}

/// Reads the tables of a bundle; none if it has no such file. Fails on another version, and on
/// more cells than an import keeps.
pub fn read(bundle: &Path) -> Result<Vec<StoredTable>, ForeignError> {
    let path = bundle.join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let refused = |why: String| ForeignError::Read { path: path.clone(), why };
    let bytes =
        plumb_host::regular::read_regular(&path, BYTES_MOST).map_err(|error| refused(error.to_string()))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
    if file.version != VERSION {
        let (found, known) = (file.version, VERSION);
        return Err(refused(format!("version {found} found, {known} expected; import the report again")));
    }
    let mut left = CELLS_MOST;
    let mut tables = Vec::new();
    for sheet in file.sheets {
        let cells = sheet.columns.len().saturating_mul(sheet.rows.len());
        if sheet.columns.len() > COLUMNS_MOST || cells > left {
            return Err(refused(format!(
                "more than {CELLS_MOST} cells, or {COLUMNS_MOST} columns of a table"
            )));
        }
        left -= cells;
        tables.push(sheet.table());
    }
    Ok(tables)
}

impl FileSheet {
    fn table(self) -> StoredTable {
        let columns: Vec<String> = self.columns.into_iter().map(|column| column.name).collect();
        let row = |row: FileRow| {
            let (line, last) = extent(row.cells.iter().map(|cell| cell.line), self.line);
            let mut cells: Vec<String> = row.cells.into_iter().map(|cell| cell.raw).collect();
            cells.resize(columns.len(), String::new());
            StoredRow { line, last, cells }
        };
        let rows = self.rows.into_iter().map(row).collect();
        let notes = self.notes.into_iter().map(|note| note.text).collect();
        StoredTable { heading: self.heading, line: self.line, notes, columns, rows }
    }
}
