//! A CSV file as a source of rows.
//!
//! The first row names the columns. The file is read twice: a first pass finds
//! the type of each column from all its values and counts the rows, a second
//! hands them out. Where the caller gives all types there is no first pass and
//! no row count.
//!
//! What is read: comma, semicolon or tab between fields (found from the
//! header), RFC 4180 quoting, lines ended by LF, CRLF or CR, UTF-8 with or
//! without a byte order mark, plain or gzip (told by content, several members
//! too).
//!
//! - An empty line is a row whose only value is NULL where there is one column:
//!   that is how such a row is written. Where there are several it is no row;
//!   such lines are passed over and counted.
//! - NULL is the empty field, quoted or not (Oracle does not tell the empty
//!   text from NULL), and whatever else the options name, such as `NA`.
//! - A column is NUMBER where all its values are numbers that come back as they
//!   are written, by one way to write numbers: the shortest (`10`, `2.5`), with
//!   a digit behind the point at least (`10.0`, `2.5`), or with as many digits
//!   there everywhere (`10.00`, `2.50`). So `007`, `+49`, `1E5` and a `1.10`
//!   beside `1.9` stay text ([`inference`] says why). It is DATE where all are
//!   ISO dates, otherwise VARCHAR2 of its longest value; without any value,
//!   VARCHAR2(1). Blanks around a number or a date do not matter. Why a column
//!   became text is kept, with the first line at fault.
//! - Names are trimmed. A missing name becomes `column_3` by its place; one
//!   already used gets `_2`, `_3`, ... appended. Both are common in exports
//!   and harmless, so neither is an error.
//!
//! Every error is one line that names the file, the line where the row starts
//! (a quoted field may run over several), the column, what was found, what was
//! expected and what to do.
//!
//! Why not the csv crate: it counts the lines of CRLF files one short, reads
//! an unclosed quote to the end of the file without a word, and copies every
//! field. Tests hold the splitter in [`records`] against it.
//!
//! Limits: rows are handed out under one lock, so threads do not parse side by
//! side. The file must be one that can be opened twice, not a pipe.

mod convert;
mod error;
mod header;
mod inference;
mod input;
mod records;

pub use error::CsvError;
pub use inference::{ColumnBasis, ColumnFinding, TextCause, TextReason};

use convert::Converter;
use plumb_types::{Column, ColumnType, RowBatch, RowSource, Schema, SourceError};
use records::{EmptyLines, Records};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

/// A batch is handed out once it holds this much.
const BATCH_BYTES: usize = 256 * 1024;

/// How to read a file.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// Types that are given and not found from the values. An entry with a
    /// name is for the column of that name in the header (any letter case),
    /// one without for the column at its own place in this list. Columns
    /// without an entry are inferred.
    pub types: Vec<(Option<String>, ColumnType)>,
    /// What stands between two fields.
    pub delimiter: Delimiter,
    /// Fields that mean NULL besides the empty one, compared exactly: `NA`,
    /// `\N`.
    pub null_text: Vec<String>,
}

/// What stands between two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// Whichever of the three the header has most of, the comma before the
    /// semicolon before the tab.
    #[default]
    Auto,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// The tab character.
    Tab,
}

impl Delimiter {
    /// The byte, where it is already known.
    fn byte(self) -> Option<u8> {
        match self {
            Delimiter::Auto => None,
            Delimiter::Comma => Some(b','),
            Delimiter::Semicolon => Some(b';'),
            Delimiter::Tab => Some(b'\t'),
        }
    }
}

/// An open CSV file: its schema, what was found about its columns, and its
/// rows as a [`RowSource`] whose errors are [`CsvError`]s.
#[derive(Debug)]
pub struct CsvFile {
    path: PathBuf,
    options: CsvOptions,
    schema: Schema,
    findings: Vec<ColumnFinding>,
    /// None where no first pass was needed.
    row_count: Option<u64>,
    /// None likewise.
    seen: Option<Seen>,
    pass: Mutex<Pass>,
}

/// What the first pass saw of the file: the second must see the same.
#[derive(Debug)]
struct Seen {
    /// Bytes of the text, decompressed, and their CRC-32.
    read: (u64, u32),
    /// Length and time of the last change when the pass began.
    state: Option<(u64, SystemTime)>,
}

/// The second pass over the file.
#[derive(Debug)]
struct Pass {
    /// None once the rows have ended or failed.
    records: Option<Records>,
    converter: Converter,
    /// Empty lines passed over so far, by this pass or the first.
    skipped_lines: u64,
}

impl CsvFile {
    /// Opens a file and finds the types of its columns, reading all of it
    /// unless all types are given.
    ///
    /// Fails where it cannot be read, has no header, breaks the rules of the
    /// format, or the given types do not match its columns. Values that do not
    /// match a given type are found when the rows are asked for.
    pub fn open(path: impl AsRef<Path>, options: CsvOptions) -> Result<Self, CsvError> {
        let path = path.as_ref();
        let state = state(path);
        let (names, mut records) = start(path, &options)?;
        let given = header::given_types(path, &names, &options.types)?;
        let mut skipped_lines = 0;
        let (findings, row_count, seen) = if given.iter().all(Option::is_some) {
            (names.iter().map(ColumnFinding::given).collect(), None, None)
        } else {
            let (findings, rows) = inference::infer(path, &names, &given, &options, &mut records)?;
            skipped_lines = records.skipped_lines();
            let seen = Seen { read: records.read_so_far(), state };
            records = start_again(path, &options, names.len())?;
            (findings, Some(rows), Some(seen))
        };
        let columns = findings.iter().zip(&given).map(|(finding, given)| Column {
            name: finding.name.clone(),
            column_type: given.unwrap_or_else(|| finding.basis.column_type()),
            nullable: finding.null_count > 0
                || matches!(finding.basis, ColumnBasis::Given | ColumnBasis::NoValues),
        });
        let schema = Schema { columns: columns.collect() };
        let converter = Converter::new(&options);
        let pass = Mutex::new(Pass { records: Some(records), converter, skipped_lines });
        Ok(CsvFile { path: path.to_owned(), options, schema, findings, row_count, seen, pass })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What each column was taken for and why, in their order.
    pub fn findings(&self) -> &[ColumnFinding] {
        &self.findings
    }

    /// Rows of the file, where a first pass counted them.
    pub fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    /// Empty lines that were no rows; all of them once the rows have ended.
    pub fn skipped_lines(&self) -> u64 {
        self.lock().skipped_lines
    }

    /// Hands out all rows again from the first; fails where the file can no
    /// longer be opened or is another now.
    pub fn restart(&self) -> Result<(), CsvError> {
        let records = start_again(&self.path, &self.options, self.schema.columns.len())?;
        self.lock().records = Some(records);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().expect("no thread panics while it reads rows")
    }
}

impl CsvFile {
    /// Fills the batch up to its size or the end of the file.
    fn fill(&self, pass: &mut Pass, batch: &mut RowBatch) -> Result<(), CsvError> {
        let Some(records) = &mut pass.records else {
            return Ok(());
        };
        let (path, columns) = (&self.path, &self.schema.columns);
        let name = |index: usize| columns.get(index).map(|column| column.name.clone());
        while batch.byte_count() < BATCH_BYTES {
            let more = records.advance().map_err(|error| CsvError::from_record(path, error, name))?;
            pass.skipped_lines = pass.skipped_lines.max(records.skipped_lines());
            if !more {
                self.require_same(records.read_so_far())?;
                pass.records = None;
                break;
            }
            pass.converter.push_row(path, &self.schema, records, batch)?;
        }
        Ok(())
    }

    /// Refuses a second pass that read other bytes than the first. What the file system says of
    /// the file would not do: a change may leave its length and its time.
    fn require_same(&self, (bytes, checksum): (u64, u32)) -> Result<(), CsvError> {
        let Some(seen) = &self.seen else { return Ok(()) };
        if seen.read == (bytes, checksum) {
            return Ok(());
        }
        let (first, first_checksum) = seen.read;
        let what = format!(
            "found {bytes} bytes (CRC-32 {checksum:08x}), expected {first} ({first_checksum:08x}) as before"
        );
        Err(CsvError::Changed { path: self.path.clone(), what })
    }

    /// What is wrong with a row that the first pass had no objection to: the file, where it is another one now.
    fn cause(&self, error: CsvError) -> CsvError {
        match &self.seen {
            Some(seen) if seen.state != state(&self.path) && !matches!(error, CsvError::Changed { .. }) => {
                CsvError::Changed { path: self.path.clone(), what: format!("now {error}") }
            }
            _ => error,
        }
    }
}

impl RowSource for CsvFile {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        self.row_count
    }

    /// Fails with a [`CsvError`]. After that no rows are left.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let mut pass = self.lock();
        if let Err(error) = self.fill(&mut pass, batch) {
            pass.records = None;
            batch.clear();
            return Err(self.cause(error).into());
        }
        Ok(!batch.is_empty())
    }
}

/// Opens the file and reads its header.
fn start(path: &Path, options: &CsvOptions) -> Result<(Vec<header::ColumnName>, Records), CsvError> {
    let input = input::open(path)?;
    let mut records = Records::new(input, options.delimiter.byte())
        .map_err(|error| CsvError::from_record(path, error, |_| None))?;
    let names = header::read(path, &mut records)?;
    records.set_empty_lines(if names.len() == 1 { EmptyLines::Records } else { EmptyLines::Skipped });
    Ok((names, records))
}

/// Opens a file that was open before; fails where its header has another
/// number of columns now.
fn start_again(path: &Path, options: &CsvOptions, column_count: usize) -> Result<Records, CsvError> {
    let (names, records) = start(path, options)?;
    if names.len() != column_count {
        let what = format!("found {} columns, expected {column_count} as before", names.len());
        return Err(CsvError::Changed { path: path.to_owned(), what });
    }
    Ok(records)
}

/// Length and time of the last change.
fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

#[cfg(test)]
mod tests;
