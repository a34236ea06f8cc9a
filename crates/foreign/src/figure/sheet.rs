//! A table of an imported report: columns with names and units, rows of cells with their lines.
//!
//! A reader passes printed headings and texts. [`Sheet::new`] looks up the section and its columns
//! in a [`Section`], a row of a reader's table of data. So a figure has the same key in every
//! version and form of a report. A section without such a row is read, too: its columns have the
//! units of their headings, and no key.

use plumb_figures::numeral::Comma;
use plumb_figures::printed::read_with;
use plumb_figures::{CellReading, FigureUnit, Quantity, is_of_bytes};
use plumb_units::ValueRange;
use serde::Serialize;

/// Most columns of a table, which bounds the work on a line. The widest known table has 40.
pub const COLUMNS_MOST: usize = 400;

/// Most cells in all tables of a file.
pub const CELLS_MOST: usize = 4_000_000;
/// Most tables of a file. The largest report seen has 700.
pub(crate) const SHEETS_MOST: usize = 20_000;

/// A section of a kind of report, as data.
#[derive(Debug)]
pub struct Section {
    /// The key, unique in the table of its reader.
    pub key: &'static str,
    /// The headings in all versions, each as the start of the printed one.
    pub headings: &'static [Heading],
    /// The first columns, which identify a table without a heading; empty if it always has one.
    pub first: &'static [Heading],
    /// The columns in order. The second occurrence of a heading takes the next row with it.
    pub columns: &'static [Known],
}

/// A heading of a section or a column.
#[derive(Debug)]
pub struct Heading {
    /// The text that one of the versions prints.
    pub printed: &'static str,
    /// The text by which it is found: blanks, colons and case do not count.
    pub plain: &'static str,
}

/// A column of a section, as data.
#[derive(Debug)]
pub struct Known {
    /// The key, unique in its section.
    pub key: &'static str,
    /// The unit, unless the heading names another one in brackets.
    pub unit: FigureUnit,
    /// The headings in all versions.
    pub headings: &'static [Heading],
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Sheet {
    /// The key of its section; empty for an unknown section.
    pub section: &'static str,
    /// The heading of the table, as printed.
    pub heading: String,
    /// The line of the heading.
    pub line: u32,
    /// Remarks above the table with their lines.
    pub notes: Vec<Remark>,
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows in the order of the report.
    pub rows: Vec<SheetRow>,
    /// The meaning of a comma in its figures.
    #[serde(skip)]
    pub comma: Comma,
    /// True if rows were left out because of [`CELLS_MOST`].
    #[serde(skip)]
    pub is_full: bool,
    /// Each print of the head, if it is repeated for each sample.
    #[serde(skip)]
    pub heads: Vec<SheetHead>,
}

/// A print of a table's head.
#[derive(Debug, Clone, Default)]
pub struct SheetHead {
    /// Number of rows above it.
    pub rows: usize,
    /// Stamp of time above or before it; empty without one.
    pub stamp: String,
    /// Seconds that the sample covers, as the report says.
    pub seconds: Option<f64>,
}

/// A line of text that belongs to a table.
#[derive(Debug, Clone, Serialize)]
pub struct Remark {
    /// The line of the file that has it.
    pub line: u32,
    /// The text without blanks around it.
    pub text: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct Column {
    /// The heading as printed, its lines joined by blanks.
    pub name: String,
    /// The key; empty for an unknown column.
    pub key: &'static str,
    pub unit: FigureUnit,
}

/// A row with one cell per column.
#[derive(Debug, Clone, Serialize)]
pub struct SheetRow {
    /// The cells in the order of the columns.
    pub cells: Vec<Cell>,
}

/// A printed text with its line and its figure.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The text as printed, without blanks around it.
    pub raw: String,
    /// The line of the file that has it.
    pub line: u32,
    /// The text parsed as a figure.
    pub reading: CellReading,
}

/// A printed text with its line, before its column is known.
#[derive(Debug, Clone, Default)]
pub struct Printed {
    /// The text, without blanks around it.
    pub raw: String,
    /// The line of the file that has it.
    pub line: u32,
}

/// Returns the text for comparisons of headings: lower case, without blanks, colons and line ends.
#[must_use]
pub fn plain(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, ':' | '\u{a0}'));
    kept.flat_map(char::to_lowercase).collect()
}

impl Section {
    /// True if a plain heading begins like one of this section's. A section with a longer heading
    /// of the same start must come first in its table.
    #[must_use]
    pub fn is_headed(&self, heading: &str) -> bool {
        self.headings.iter().any(|own| heading.starts_with(own.plain))
    }

    /// True if a table without a heading has this section's first columns, by their plain names.
    #[must_use]
    pub fn begins(&self, names: &[String]) -> bool {
        !self.first.is_empty()
            && self.first.iter().map(|own| own.plain).eq(names.iter().take(self.first.len()))
    }
}

impl Sheet {
    /// Returns an empty table; columns that a section describes have keys and units.
    #[must_use]
    pub fn new(section: Option<&'static Section>, heading: Printed, names: Vec<String>) -> Sheet {
        let mut known: Vec<&Known> = section.iter().flat_map(|section| section.columns).collect();
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let sought = plain(&name);
            let is_own = |known: &&Known| known.headings.iter().any(|own| own.plain == sought);
            let found = known.iter().position(is_own).map(|at| known.remove(at));
            let unit = match found {
                Some(known) if known.unit.quantity == Quantity::Text => FigureUnit::TEXT,
                Some(known) => said_unit(&sought)
                    .filter(|unit| unit.quantity == known.unit.quantity)
                    .unwrap_or(known.unit),
                None => said_unit(&sought).unwrap_or(FigureUnit::NUMBER),
            };
            columns.push(Column { name, key: found.map_or("", |known| known.key), unit });
        }
        let section = section.map_or("", |section| section.key);
        Sheet { section, heading: heading.raw, line: heading.line, columns, ..Sheet::default() }
    }

    /// Adds a row. Cells beyond the columns are dropped; missing ones are blank at `line`.
    pub fn push(&mut self, line: u32, printed: Vec<Printed>) {
        // A row takes as many cells as there are columns, however short its text is.
        if (self.rows.len() + 1).saturating_mul(self.columns.len()) > CELLS_MOST {
            self.is_full = true;
            return;
        }
        // A table of several quantities names that of a row in its first cell.
        let has_bytes = printed.first().is_some_and(|name| is_of_bytes(&name.raw));
        let comma = self.comma;
        let mut printed = printed.into_iter();
        let mut cell = |column: &Column| {
            let Printed { raw, line } = printed.next().unwrap_or(Printed { raw: String::new(), line });
            let as_bytes = (has_bytes && column.unit == FigureUnit::NUMBER)
                .then(|| read_with(&raw, FigureUnit::BYTES, comma))
                .filter(|reading| reading.value().is_some());
            let reading = match as_bytes.unwrap_or_else(|| read_with(&raw, column.unit, comma)) {
                // An unknown column may have words.
                CellReading::Absent(plumb_figures::Absence::Unreadable) if column.key.is_empty() => {
                    CellReading::Words
                }
                reading => reading,
            };
            Cell { raw, line, reading }
        };
        self.rows.push(SheetRow { cells: self.columns.iter().map(&mut cell).collect() });
    }

    /// Returns the number of its cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// Returns the cell of a row under a key.
    #[must_use]
    pub fn cell<'a>(&self, row: &'a SheetRow, key: &str) -> Option<&'a Cell> {
        row.cells.get(self.columns.iter().position(|column| column.key == key)?)
    }

    /// Returns the text of a row under a key; empty if there is none.
    #[must_use]
    pub fn text<'a>(&self, row: &'a SheetRow, key: &str) -> &'a str {
        self.cell(row, key).map_or("", |cell| cell.raw.as_str())
    }

    /// Returns the figure of a row under a key; `None` if it has no value.
    #[must_use]
    pub fn figure(&self, row: &SheetRow, key: &str) -> Option<Figure> {
        let at = self.columns.iter().position(|column| column.key == key)?;
        let (cell, column) = (row.cells.get(at)?, &self.columns[at]);
        let CellReading::Value { value, range } = cell.reading else { return None };
        let name = format!("{}: {}", row.cells.first().map_or("", |cell| cell.raw.as_str()), column.name);
        Some(Figure { name, raw: cell.raw.clone(), line: cell.line, unit: column.unit.base(), value, range })
    }

    /// Returns the first row with the text `name` under a key. Narrow columns cut off text, so a
    /// printed text of 12 letters or more may be a prefix of `name`.
    #[must_use]
    pub fn row(&self, key: &str, name: &str) -> Option<&SheetRow> {
        let at = self.columns.iter().position(|column| column.key == key)?;
        self.rows.iter().find(|row| row.cells.get(at).is_some_and(|cell| is_named(&cell.raw, name)))
    }
}

/// True if a printed name is this one, or a prefix cut off by its column.
#[must_use]
pub fn is_named(printed: &str, name: &str) -> bool {
    const CUT_LEAST: usize = 12;
    let printed = printed.trim_end_matches(':');
    printed.eq_ignore_ascii_case(name)
        || printed.len() >= CUT_LEAST
            && name.get(..printed.len()).is_some_and(|start| start.eq_ignore_ascii_case(printed))
}

/// A figure with its name, its line, and the values with the printed text.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The row and the column of the figure.
    pub name: String,
    /// The text as the report prints it.
    pub raw: String,
    /// The line of the file that has it.
    pub line: u32,
    /// The base unit of value and range.
    pub unit: &'static str,
    /// The value as printed, in the base unit.
    pub value: f64,
    /// The values with the printed text.
    pub range: ValueRange,
}

/// Returns the values that a sum of figures may have.
#[must_use]
pub fn added<'f>(figures: impl IntoIterator<Item = &'f Figure>) -> ValueRange {
    figures.into_iter().fold(ValueRange::exactly(0.0), |sum, figure| sum.plus(figure.range))
}

impl From<Figure> for Cell {
    fn from(figure: Figure) -> Cell {
        let Figure { raw, line, value, range, .. } = figure;
        Cell { raw, line, reading: CellReading::Value { value, range } }
    }
}

/// Returns the unit in a heading; `None` without one.
fn said_unit(heading: &str) -> Option<FigureUnit> {
    const SAID: [(&str, FigureUnit); 17] = [
        // Tested first, because `% time` is a share.
        ("%", FigureUnit::PERCENT),
        ("pct", FigureUnit::PERCENT),
        ("(ms)", FigureUnit::MS),
        ("(us)", FigureUnit::US),
        ("time(s)", FigureUnit::S),
        ("(s)", FigureUnit::S),
        ("(sec)", FigureUnit::S),
        ("(mins)", FigureUnit::MINUTES),
        ("(min)", FigureUnit::MINUTES),
        ("mb/s", FigureUnit::MB_PER_S),
        ("(mb)", FigureUnit::MB),
        ("(m)", FigureUnit::MB),
        ("(gb)", FigureUnit::GB),
        ("megabytes", FigureUnit::MB),
        ("persecond", FigureUnit::PER_S),
        ("persec", FigureUnit::PER_S),
        ("/s", FigureUnit::PER_S),
    ];
    let ends = |mark: &str| mark.starts_with('/') && heading.ends_with(mark);
    SAID.iter()
        .find(|(mark, _)| ends(mark) || !mark.starts_with('/') && heading.contains(mark))
        .map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn of(printed: &'static str, plain: &'static str) -> Heading {
        Heading { printed, plain }
    }

    static SECTION: Section = Section {
        key: "functions",
        headings: &[],
        first: &[],
        columns: &[
            Known {
                key: "function",
                unit: FigureUnit::TEXT,
                headings: &[of("Function Name", "functionname")],
            },
            Known { key: "reads", unit: FigureUnit::PER_S, headings: &[of("Reqs per sec", "reqspersec")] },
            Known { key: "writes", unit: FigureUnit::PER_S, headings: &[of("Reqs per sec", "reqspersec")] },
            Known { key: "time", unit: FigureUnit::S, headings: &[of("Avg Tm(ms)", "avgtm(ms)")] },
        ],
    };

    fn sheet(names: &[&str]) -> Sheet {
        let names = names.iter().map(ToString::to_string).collect();
        Sheet::new(Some(&SECTION), Printed::default(), names)
    }

    #[test]
    fn a_heading_that_occurs_twice_has_a_key_each_and_says_its_unit() {
        let mut sheet = sheet(&["Function  Name", "Reqs per sec", "New (ms)", "Reqs per sec", "Avg Tm(ms)"]);
        assert_eq!(
            sheet.columns.iter().map(|column| column.key).collect::<Vec<_>>(),
            ["function", "reads", "", "writes", "time"]
        );
        let printed = ["LGWR", "1.5", "x", "", "2.6"].map(|raw| Printed { raw: raw.to_string(), line: 7 });
        sheet.push(7, printed.to_vec());
        let row = &sheet.rows[0];
        assert_eq!(sheet.figure(row, "writes"), None);
        let time = sheet.figure(row, "time").expect("a value");
        assert!((time.value - 0.0026).abs() < 1e-15);
        assert_eq!((time.line, time.unit, time.name.as_str()), (7, "s", "LGWR: Avg Tm(ms)"));
        assert_eq!(sheet.cell(row, "reads").map(|cell| cell.raw.as_str()), Some("1.5"));
        assert_eq!(row.cells[2].reading, CellReading::Words);
    }

    /// A host's memory next to its CPUs: 64413.7M are 62.9 GB, and 12.5K interrupts are thousands.
    #[test]
    fn multiples_in_a_row_of_memory_are_of_1024() {
        let mut sheet = Sheet::new(None, Printed::default(), ["", "1st"].map(String::from).to_vec());
        for (name, raw) in
            [("Physical Memory:", "64413.7M"), ("Interrupts:", "12.5K"), ("Memory used:", "41")]
        {
            sheet.push(1, [name, raw].map(|raw| Printed { raw: raw.to_string(), line: 1 }).to_vec());
        }
        let value = |row: usize| sheet.rows[row].cells[1].reading.value();
        assert_eq!(value(0), Some(64413.7 * 1024.0 * 1024.0));
        assert_eq!([value(1), value(2)], [Some(12_500.0), Some(41.0)]);
    }

    #[test]
    fn limits_of_work_areas_are_bytes() {
        let section = crate::format::sections::section_of("PGA Aggr Target Histogram", &[]);
        let names = ["Low Optimal", "High Optimal", "Total Execs"].map(String::from).to_vec();
        let mut sheet = Sheet::new(section, Printed::default(), names);
        sheet.push(1, ["2M", "4M", "70"].map(|raw| Printed { raw: raw.to_string(), line: 1 }).to_vec());
        let row = &sheet.rows[0];
        assert_eq!(sheet.figure(row, "low").map(|figure| figure.value), Some(2_097_152.0));
        assert_eq!(sheet.figure(row, "high").map(|figure| figure.unit), Some("bytes"));
    }

    #[test]
    fn a_long_name_may_be_cut_and_a_short_one_may_not() {
        assert!(is_named("Buffer Cache Re", "Buffer Cache Reads"));
        assert!(is_named("TOTAL:", "TOTAL"));
        assert!(!is_named("Direct", "Direct Reads"));
    }
}
