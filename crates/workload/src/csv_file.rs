//! A CSV file as a source of rows.
//!
//! The first row names the columns, unless the options say otherwise ([`header`]). The file is read
//! twice: the first pass finds the type of each column from all its values and counts the rows, the
//! second returns them. If the caller gives all types, there is no first pass and no row count. In
//! both passes one thread at a time reads and cuts a piece of whole records ([`pieces`]); all
//! threads split and convert pieces in parallel.
//!
//! Accepted:
//!
//! - Between fields: comma, semicolon, tab or `|`, found from the header and the lines below it or
//!   named by a first line `sep=;`; or another given character.
//! - RFC 4180 quoting or none; lines ended by LF, CRLF or CR ([`dialect`]).
//! - UTF-8 with or without a byte order mark, plain or gzip (recognised by content, with several
//!   members and padding too).
//!
//! Meaning of the content:
//!
//! - An empty line is a row with the value NULL if there is one column, because such a row is
//!   written that way. With several columns it is no row; such lines are skipped and counted.
//! - NULL is the empty field, quoted or not (Oracle does not distinguish empty text from NULL),
//!   and any text that the options name, such as `NA`.
//! - A column is NUMBER if one form of numbers reproduces the spelling of all its values. The forms
//!   are the shortest (`10`, `2.5`), at least one digit after the point (`10.0`, `2.5`), and a
//!   fixed number of digits (`10.00`, `2.50`). So `007`, `+49`, `1E5`, and `1.10` with `1.9` stay
//!   text ([`inference`] says why).
//! - A column is DATE if all values are dates of one form and one spelling ([`dates`]), otherwise
//!   VARCHAR2 of its longest value; without any value, VARCHAR2(1). Blanks around a number or a
//!   date are ignored. The reason of a text column is kept, with the first line that caused it.
//! - Names are trimmed. A missing name becomes `column_3` by its position; a duplicate gets `_2`,
//!   `_3`, ... appended. Both are common in exports and harmless, so neither is an error.
//!
//! Every error is one line that names the file, the line, the column, the value found, the value
//! expected and the cure. The line is the one where the row starts, because a quoted field may span
//! several. The error is that of the first bad row. A thread that fails knows neither the lines
//! before its piece nor of an earlier failure, so one thread reads the file again.
//!
//! Why not the csv crate: it counts the lines of CRLF files one short, reads an unclosed
//! quote silently to the end of the file, and copies every field. Tests compare the
//! splitter in [`records`] with it.
//!
//! Limits: one thread at a time decompresses a compressed file, which bounds its speed. The file
//! must be one that can be opened twice, not a pipe.

mod convert;
mod dates;
mod decimal;
mod dialect;
mod error;
mod header;
mod inference;
mod input;
mod pieces;
mod records;

pub use dates::{DateForm, DateStyle, zone_name};
pub use decimal::DecimalMark;
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

/// Options for reading a file; the default infers everything.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// Types that are given and not inferred. An entry with a name is for the column of that name
    /// in the header, in any letter case. One without a name is for the column at its own position
    /// in this list. Columns without an entry are inferred.
    pub types: Vec<(Option<String>, ColumnType)>,
    /// Character between two fields of a line.
    pub delimiter: Delimiter,
    /// Meaning of the quote character.
    pub quote: Quote,
    /// Meaning of the first row.
    pub header: Header,
    /// Form of the dates, if known; otherwise it is inferred from the values.
    pub date_form: Option<DateForm>,
    /// Mark before the fraction of a number.
    pub decimal: DecimalMark,
    /// Another file that holds the bytes: those of a pipe are copied to one.
    /// Messages name the file itself.
    pub bytes: Option<PathBuf>,
    /// Texts that mean NULL besides the empty field, compared exactly: `NA`, `\N`.
    pub null_text: Vec<String>,
}

/// Character between two fields of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delimiter {
    /// Comma, semicolon, tab or `|`: the only one of them in the header, or the only one that
    /// occurs equally often in each of the lines below it.
    #[default]
    Auto,
    /// This ASCII character, which is neither a quote nor a line end.
    Byte(u8),
}

impl Delimiter {
    /// Returns the byte, if it is given.
    fn byte(self) -> Option<u8> {
        match self {
            Delimiter::Auto => None,
            Delimiter::Byte(byte) => Some(byte),
        }
    }
}

/// An open CSV file: its schema, the findings about its columns, and its rows as a
/// [`RowSource`] whose errors are [`CsvError`]s.
#[derive(Debug)]
pub struct CsvFile {
    path: PathBuf,
    options: CsvOptions,
    schema: Schema,
    findings: Vec<ColumnFinding>,
    /// Form and zone of each column, used for columns of dates.
    styles: Vec<DateStyle>,
    /// None without a first pass.
    row_count: Option<u64>,
    /// None without a first pass.
    seen: Option<Seen>,
    several_lines: SeveralLines,
    pass: Mutex<Pass>,
}

/// State of the file in the first pass, which the second must find again.
#[derive(Debug)]
struct Seen {
    /// Length and CRC-32 of the text, decompressed.
    read: (u64, u32),
    /// Length and modification time of the file when the pass began.
    state: Option<(u64, SystemTime)>,
}

/// The second pass over the file.
#[derive(Debug)]
struct Pass {
    /// None once the rows have ended or failed.
    pieces: Option<Pieces>,
    /// Rest of the first piece after the header.
    first: Option<Records>,
    /// Buffers for the next pieces, one for each thread that reads.
    idle: Vec<Records>,
    /// Empty lines skipped so far, by this pass or the first.
    skipped_lines: u64,
}

impl Pass {
    fn new((pieces, first): (Pieces, Records), skipped_lines: u64) -> Pass {
        Pass { pieces: Some(pieces), first: Some(first), idle: Vec::new(), skipped_lines }
    }
}

impl CsvFile {
    /// Opens a file and infers the types of its columns, which reads all of it
    /// unless all types are given.
    ///
    /// Fails if it cannot be read, has no header or violates the format, or if the given types do
    /// not match its columns. Values that do not match a given type fail when their rows are read.
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

    /// Returns the rows with a field of several lines, if a first pass counted them.
    pub fn several_lines(&self) -> SeveralLines {
        self.several_lines
    }

    /// Returns the path that messages name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the finding about each column, in their order.
    pub fn findings(&self) -> &[ColumnFinding] {
        &self.findings
    }

    /// Returns the rows of the file; `None` without a first pass.
    pub fn row_count(&self) -> Option<u64> {
        self.row_count
    }

    /// Returns the empty lines that are no rows; complete once the rows have ended.
    pub fn skipped_lines(&self) -> u64 {
        self.lock().skipped_lines
    }

    /// Returns all rows again from the first. Fails if the file can no longer be opened or
    /// has another number of columns.
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
    /// Fills the batch with the rows of a piece; with none at the end.
    fn fill(&self, batch: &mut RowBatch) -> Result<(), CsvError> {
        // A piece may consist of empty lines, which are no rows.
        while batch.is_empty() {
            let Some(mut records) = self.next_piece()? else { return Ok(()) };
            let mut converter = self.converter();
            while records.advance().map_err(|error| self.record_error(error))? {
                converter.push_row(&records, batch)?;
            }
            let mut pass = self.lock();
            // The first pass, if there was one, has counted all of them.
            pass.skipped_lines += if self.seen.is_none() { records.skipped_lines() } else { 0 };
            pass.idle.push(records);
        }
        Ok(())
    }

    /// Returns the next piece. `None` when there are no more, if the bytes read are
    /// those of the first pass.
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

    /// Returns the first error of the file, after a piece of it failed.
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
        Converter::new(&self.path, &self.schema, &self.options, &self.styles)
    }

    fn empty_lines(&self) -> EmptyLines {
        EmptyLines::of(self.schema.columns.len())
    }

    fn record_error(&self, error: RecordError) -> CsvError {
        let columns = &self.schema.columns;
        CsvError::from_record(&self.path, error, |index| columns.get(index).map(|column| column.name.clone()))
    }

    /// Fails if the second pass read other bytes than the first. The file's length and time are not
    /// enough, because a change may leave both.
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

    /// Returns the error of a row that the first pass accepted: that the file
    /// has changed, if it has.
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

    /// Fails with a [`CsvError`]; after that no rows are left.
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

/// Opens the file and reads its header; the records returned are the rest of the first piece.
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

/// Fails if no column has dates of the given form.
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

/// Opens a file again; fails if its header has another number of columns now.
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

/// Returns the length and the modification time of a file.
fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.len(), found.modified().ok()?))
}

#[cfg(test)]
mod tests;
