//! A CSV file as a source of rows.
//!
//! The first row names the columns, unless the options say that there is no such row ([`header`]).
//! The file is read twice: a first pass finds the type of each column from all its values and
//! counts the rows, a second hands them out. Where the caller gives all types there is no first
//! pass and no row count. In both passes one thread at a time reads, and cuts off a piece of whole
//! records ([`pieces`]); all of them split and convert pieces side by side.
//!
//! What is read: comma, semicolon, tab or `|` between fields (found from the
//! header and the lines below it, or named by a first line `sep=;`), or any other character that is
//! given; RFC 4180 quoting or none; lines ended by LF, CRLF or CR ([`dialect`]); UTF-8 with or
//! without a byte order mark; plain or gzip (told by content, several members and padding too).
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
//!   dates of one form that are written in one way ([`dates`]), otherwise VARCHAR2
//!   of its longest value; without any value, VARCHAR2(1). Blanks around a number or
//!   a date do not matter. Why a column became text is kept, with the first line at fault.
//! - Names are trimmed. A missing name becomes `column_3` by its place; one
//!   already used gets `_2`, `_3`, ... appended. Both are common in exports
//!   and harmless, so neither is an error.
//!
//! Every error is one line that names the file, the line where the row starts
//! (a quoted field may run over several), the column, what was found, what was
//! expected and what to do. It is that of the first row at fault: a thread that
//! fails does not know how many lines came before its piece, nor whether another
//! will fail on one before it, so the file is gone through again, by one thread.
//!
//! Why not the csv crate: it counts the lines of CRLF files one short, reads
//! an unclosed quote to the end of the file without a word, and copies every
//! field. Tests hold the splitter in [`records`] against it.
//!
//! Limits: a compressed file is decompressed by one thread at a time, which is what
//! bounds it. The file must be one that can be opened twice, not a pipe.

mod convert;
mod dates;
mod dialect;
mod error;
mod header;
mod inference;
mod input;
mod pieces;
mod records;

pub use dates::{DateForm, DateStyle, zone_name};
pub use dialect::Quote;
pub use error::CsvError;
pub use header::Header;
pub use inference::{ColumnBasis, ColumnFinding, SeveralLines, TextCause, TextReason};

use convert::Converter;
use dialect::Ambiguous;
use pieces::{PIECE_BYTES, Pieces};
use plumb_types::{Column, ColumnType, DateText, NumberForm, RowBatch, RowSource, Schema, SourceError};
use records::{EmptyLines, RecordError, Records};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

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
    /// The meaning of quotes.
    pub quote: Quote,
    /// The meaning of the first row.
    pub header: Header,
    /// How dates are written, where it is known; otherwise it is found from the values.
    pub date_form: Option<DateForm>,
    /// Where the bytes of the file lie, if not in it: a pipe's are kept in a file. Messages name the file itself.
    pub bytes: Option<PathBuf>,
    /// Fields that mean NULL besides the empty one, compared exactly: `NA`,
    /// `\N`.
    pub null_text: Vec<String>,
}

/// What stands between two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// Comma, semicolon, tab or `|`: the only one of them in the header, or the only one that the lines below it have as
    /// often.
    #[default]
    Auto,
    /// This byte of ASCII; no quote and no line end.
    Byte(u8),
}

impl Delimiter {
    /// The byte, where it is already known.
    fn byte(self) -> Option<u8> {
        match self {
            Delimiter::Auto => None,
            Delimiter::Byte(byte) => Some(byte),
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
    /// Of each column, where it is one of dates.
    styles: Vec<DateStyle>,
    /// None where no first pass was needed.
    row_count: Option<u64>,
    /// None likewise.
    seen: Option<Seen>,
    several_lines: SeveralLines,
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
    pieces: Option<Pieces>,
    /// What is left of the first piece behind the header.
    first: Option<Records>,
    /// For the next pieces: as many as threads have asked at once.
    idle: Vec<Records>,
    /// Empty lines passed over so far, by this pass or the first.
    skipped_lines: u64,
}

impl Pass {
    fn new((pieces, first): (Pieces, Records), skipped_lines: u64) -> Pass {
        Pass { pieces: Some(pieces), first: Some(first), idle: Vec::new(), skipped_lines }
    }
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
        let state = state(options.bytes.as_deref().unwrap_or(path));
        let (names, pieces, first) = start(path, &options)?;
        let given = header::given_types(path, &names, &options.types)?;
        let mut skipped_lines = 0;
        let mut several_lines = SeveralLines::default();
        let line = first.line();
        let mut begun = (pieces, first);
        let (findings, row_count, seen) = if given.iter().all(Option::is_some) {
            (names.iter().map(ColumnFinding::given).collect(), None, None)
        } else {
            let (mut pieces, first) = begun;
            let columns = inference::Columns { path, names: &names, given: &given, options: &options };
            let inferred = inference::infer(columns, &mut pieces, first)?;
            (skipped_lines, several_lines) = (inferred.skipped_lines, inferred.several_lines);
            let seen = Seen { read: pieces.read_so_far(), state };
            begun = start_again(path, &options, names.len())?;
            (inferred.findings, Some(inferred.rows), Some(seen))
        };
        let columns = findings.iter().zip(&given).map(|(finding, given)| Column {
            name: finding.name.clone(),
            column_type: given.unwrap_or_else(|| finding.basis.column_type()),
            written: match given {
                Some(ColumnType::Number { scale: Some(scale @ 1..), .. }) => {
                    NumberForm { decimals: scale.unsigned_abs(), zero_before_point: true }
                }
                _ => finding.basis.written(),
            },
            dates: match (given, options.date_form) {
                (Some(ColumnType::Date), Some(form)) => {
                    DateText { day: form.to_string(), ..DateText::default() }
                }
                _ => finding.basis.dates(),
            },
            nullable: finding.null_count > 0
                || matches!(finding.basis, ColumnBasis::Given | ColumnBasis::NoValues),
        });
        let schema = Schema { columns: columns.collect() };
        if options.header == Header::Expected {
            header::require_names(path, &names, &schema.columns, line)?;
        }
        require_dates(path, &options, &schema, &findings)?;
        let given = DateStyle { form: options.date_form.unwrap_or(DateForm::ISO), zone: None };
        let style = |finding: &ColumnFinding| match finding.basis {
            ColumnBasis::Dates { style, .. } => style,
            _ => given,
        };
        let styles = findings.iter().map(style).collect();
        let pass = Mutex::new(Pass::new(begun, skipped_lines));
        let path = path.to_owned();
        Ok(CsvFile { path, options, schema, findings, styles, row_count, seen, several_lines, pass })
    }

    /// Rows of which a field runs over several lines, where a first pass saw them.
    pub fn several_lines(&self) -> SeveralLines {
        self.several_lines
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
        let begun = start_again(&self.path, &self.options, self.schema.columns.len())?;
        let mut pass = self.lock();
        *pass = Pass::new(begun, pass.skipped_lines);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().expect("no thread panics while it reads rows")
    }
}

impl CsvFile {
    /// Fills the batch with the rows of a piece; none behind the last.
    fn fill(&self, batch: &mut RowBatch) -> Result<(), CsvError> {
        // A piece of nothing but empty lines has no rows.
        while batch.is_empty() {
            let Some(mut records) = self.next_piece()? else { return Ok(()) };
            let mut converter = self.converter();
            while records.advance().map_err(|error| self.record_error(error))? {
                converter.push_row(&records, batch)?;
            }
            let mut pass = self.lock();
            // A first pass has counted all of them.
            pass.skipped_lines += if self.seen.is_none() { records.skipped_lines() } else { 0 };
            pass.idle.push(records);
        }
        Ok(())
    }

    /// The next piece; `None` when there are no more, and what was read is what the first pass read.
    fn next_piece(&self) -> Result<Option<Records>, CsvError> {
        let mut pass = self.lock();
        if let Some(first) = pass.first.take() {
            return Ok(Some(first));
        }
        let Pass { pieces: Some(pieces), idle, .. } = &mut *pass else { return Ok(None) };
        let mut records = idle.pop().unwrap_or_else(|| Records::new(pieces.dialect(), self.empty_lines()));
        records.rewind(1);
        if records.refill(pieces).map_err(|error| self.record_error(error.at(1)))? {
            return Ok(Some(records));
        }
        let read = pieces.read_so_far();
        pass.pieces = None;
        self.require_same(read).map(|()| None)
    }

    /// What is wrong first in the file, after a piece of it could not be read.
    fn first_error(&self) -> CsvError {
        let again = || {
            let (mut pieces, mut records) =
                start_again(&self.path, &self.options, self.schema.columns.len())?;
            let (mut converter, mut batch) = (self.converter(), RowBatch::new());
            while records.advance_in(&mut pieces).map_err(|error| self.record_error(error))? {
                batch.clear();
                converter.push_row(&records, &mut batch)?;
            }
            self.require_same(pieces.read_so_far())
        };
        let what = "nothing is wrong with it now".to_string();
        let changed = || CsvError::Changed { path: self.path.clone(), what };
        self.cause(again().err().unwrap_or_else(changed))
    }

    fn converter(&self) -> Converter<'_> {
        Converter::new(&self.path, &self.schema, &self.options.null_text, &self.styles)
    }

    fn empty_lines(&self) -> EmptyLines {
        EmptyLines::of(self.schema.columns.len())
    }

    fn record_error(&self, error: RecordError) -> CsvError {
        let columns = &self.schema.columns;
        CsvError::from_record(&self.path, error, |index| columns.get(index).map(|column| column.name.clone()))
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
            Some(seen)
                if seen.state != state(self.options.bytes.as_deref().unwrap_or(&self.path))
                    && !matches!(error, CsvError::Changed { .. }) =>
            {
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
        if self.fill(batch).is_err() {
            let mut pass = self.lock();
            (pass.pieces, pass.first) = (None, None);
            drop(pass);
            batch.clear();
            return Err(self.first_error().into());
        }
        Ok(!batch.is_empty())
    }
}

/// Opens the file and reads its header; the records left are those of the first piece.
fn start(path: &Path, options: &CsvOptions) -> Result<(Vec<header::ColumnName>, Pieces, Records), CsvError> {
    let input = input::open(path, options.bytes.as_deref().unwrap_or(path))?;
    let pieces = Pieces::new(input, (options.delimiter.byte(), options.quote), PIECE_BYTES);
    let mut pieces =
        pieces.map_err(|Ambiguous(found)| CsvError::Delimiter { path: path.to_owned(), found })?;
    let mut records = Records::new(pieces.dialect(), EmptyLines::Skipped);
    let names = header::read(path, &mut pieces, &mut records, &options.header)?;
    records.begin_here(EmptyLines::of(names.len()));
    Ok((names, pieces, records))
}

/// Refuses a form of dates that no column has.
fn require_dates(
    path: &Path,
    options: &CsvOptions,
    schema: &Schema,
    findings: &[ColumnFinding],
) -> Result<(), CsvError> {
    let Some(form) = options.date_form else { return Ok(()) };
    let has_it = |(column, finding): (&Column, &ColumnFinding)| match &finding.basis {
        ColumnBasis::Dates { style, .. } => style.form == form,
        ColumnBasis::Given => column.column_type == ColumnType::Date,
        _ => false,
    };
    let without_values = findings.iter().all(|finding| finding.basis == ColumnBasis::NoValues);
    if without_values || schema.columns.iter().zip(findings).any(has_it) {
        return Ok(());
    }
    let of_another_form = |finding: &ColumnFinding| match &finding.basis {
        ColumnBasis::Dates { style, .. } => Some(format!("{} is written {}", finding.name, style.form)),
        ColumnBasis::Text { reason, .. } if inference::is_date(reason.value.as_bytes()) => {
            Some(format!("{} has {:?} on line {}", finding.name, reason.value, reason.line))
        }
        _ => None,
    };
    let example = findings.iter().find_map(of_another_form);
    Err(CsvError::NoSuchDates { path: path.to_owned(), form, example })
}

/// Opens a file that was open before; fails where its header has another
/// number of columns now.
fn start_again(
    path: &Path,
    options: &CsvOptions,
    column_count: usize,
) -> Result<(Pieces, Records), CsvError> {
    let (names, pieces, records) = start(path, options)?;
    if names.len() != column_count {
        let what = format!("found {} columns, expected {column_count} as before", names.len());
        return Err(CsvError::Changed { path: path.to_owned(), what });
    }
    Ok((pieces, records))
}

/// Length and time of the last change.
fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

#[cfg(test)]
mod tests;
