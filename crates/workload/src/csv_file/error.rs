//! Errors of CSV files, each one line with its cure.

use super::dates::{DateForm, DateStyle, zone_name};
use super::records::RecordError;
use plumb_types::{ColumnType, DateError, NumberError};
use std::io;
use std::path::{Path, PathBuf};

/// Error of a CSV file, or of a row of it. `line` is the line on which the row starts, the first of
/// the file being 1; values are cut at 40 bytes.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the fields are the words of the messages")]
pub enum CsvError {
    /// The file cannot be opened, or its first bytes cannot be read.
    #[error("cannot open {}: {source}; give a CSV file that may be read", path.display())]
    Open { path: PathBuf, source: io::Error },
    /// Reading or decompressing fails after the start.
    #[error(
        "{}:{line}: cannot read on: {source}; look at the kernel's log (dmesg), or read a copy of the file",
        path.display()
    )]
    Read { path: PathBuf, line: u64, source: io::Error },
    /// A compressed file is incomplete or damaged.
    #[error(
        "{} is a damaged gzip file: {source} after {}; fetch or compress it again",
        path.display(), lines(*line)
    )]
    DamagedGzip { path: PathBuf, line: u64, source: io::Error },
    /// Other bytes follow complete gzip data.
    #[error(
        "{}: behind the whole gzip data stands something else, beginning {found:?}; if it is worth nothing, load what is \
         before it",
        path.display()
    )]
    BehindGzip { path: PathBuf, found: String },
    /// The header has several possible delimiters.
    #[error(
        "{}: the header has {found}, and the lines below it do not tell which of them stands between two fields: say so \
         with --delimiter",
        path.display()
    )]
    Delimiter { path: PathBuf, found: String },
    /// The path is a pipe, a directory or a device.
    #[error("{} is no plain file: it is read twice, which a pipe or a directory cannot be; name the file, or give - in its place to read standard input", path.display())]
    NoFile { path: PathBuf },
    /// The file has no bytes, or empty lines only.
    #[error("{} is empty; expected a header row with the column names, then rows", path.display())]
    Empty { path: PathBuf },
    /// The first row consists of values or empty fields.
    #[error(
        "{}:{line}: found {found:?}, expected a header row with the column names; say --no-header or --names A,B,... if it is a \
         row, --header if these are the names",
        path.display()
    )]
    NoHeader { path: PathBuf, line: u64, found: String },
    /// The names look like values of their own columns.
    #[error(
        "{}:{line}: found {found:?} where the names of columns are expected, and {values} of {known} are values as those \
         below them; say --no-header or --names A,B,... if it is a row, --header if these are the names",
        path.display()
    )]
    LooksLikeRow { path: PathBuf, line: u64, found: String, values: usize, known: usize },
    /// The number of given names is not that of the columns.
    #[error("{}:{line}: found {}, and --names has {given}; give as many", path.display(), fields(*found))]
    OtherNames { path: PathBuf, line: u64, found: usize, given: usize },
    /// No column has dates of the given form.
    #[error(
        "{}: no column has dates written {form}{}; correct --date-format or leave it out",
        path.display(), example.as_ref().map_or(String::new(), |example| format!(" ({example})"))
    )]
    NoSuchDates { path: PathBuf, form: DateForm, example: Option<String> },
    /// The file has more columns than a row can have.
    #[error("{}: found {found} columns, expected at most 255; leave some out", path.display())]
    TooManyColumns { path: PathBuf, found: usize },
    /// The file is UTF-16: two bytes a character.
    #[error("{} is {form}, expected UTF-8; convert it: iconv -f {form} -t UTF-8", path.display())]
    Utf16 { path: PathBuf, form: &'static str },
    /// A value is not UTF-8.
    #[error(
        "{}:{line}: column {column}: found {found:?} with the byte {byte:#04x} in place {place}, expected UTF-8; \
         convert the file, for example: iconv -f {} -t UTF-8",
        path.display(), encoding_with(*byte)
    )]
    InvalidUtf8 { path: PathBuf, line: u64, column: String, found: String, byte: u8, place: usize },
    /// A row has too few fields.
    #[error(
        "{}:{line}: found {}, the last {last:?}, expected {expected} as in the first row; \
         column {missing} is the first without a value: complete the row or take it out",
        path.display(), fields(*found)
    )]
    TooFewFields { path: PathBuf, line: u64, found: usize, expected: usize, last: String, missing: String },
    /// A row has too many fields.
    #[error(
        "{}:{line}: found {}, expected {expected} as in the first row; {}",
        path.display(), fields(*found), surplus_cure(surplus.as_deref())
    )]
    TooManyFields { path: PathBuf, line: u64, found: usize, expected: usize, surplus: Option<String> },
    /// A value of a NUMBER column is no number.
    #[error("{}:{line}: column {column}: found {found:?}, expected {expected}; {}", path.display(), number_cure(source))]
    BadNumber {
        path: PathBuf,
        line: u64,
        column: String,
        found: String,
        expected: ColumnType,
        source: Box<NumberError>,
    },
    /// A number has more digits than its column.
    #[error(
        "{}:{line}: column {column}: found {found:?}, which {expected} cannot hold without rounding; \
         give the column more digits or the type NUMBER",
        path.display()
    )]
    NumberTooWide { path: PathBuf, line: u64, column: String, found: String, expected: ColumnType },
    /// A value of a DATE column is no date.
    #[error("{}:{line}: column {column}: found {found:?}, expected DATE{}; {}", path.display(), written(style), date_cure(source, style))]
    BadDate {
        path: PathBuf,
        line: u64,
        column: String,
        found: String,
        style: DateStyle,
        source: Box<DateError>,
    },
    /// A text is longer than its column allows.
    #[error(
        "{}:{line}: column {column}: found {bytes} bytes starting {found:?}, expected {expected}; {}",
        path.display(), length_cure(expected)
    )]
    TextTooLong {
        path: PathBuf,
        line: u64,
        column: String,
        found: String,
        bytes: usize,
        expected: ColumnType,
    },
    /// The file ends within quotes.
    #[error(
        "{}:{line}: the quote opened on line {quote_line} is not closed by the end of the file; \
         close it, double it if it belongs to the text, or say --quote none if no quote of the file means anything",
        path.display()
    )]
    UnclosedQuote { path: PathBuf, line: u64, quote_line: u64 },
    /// Text follows a closing quote within a field.
    #[error(
        "{}:{line}: column {column}: found {found:?}, expected a delimiter after the closing quote; \
         double each quote that belongs to the text, or say --quote none if no quote of the file means anything",
        path.display()
    )]
    TextAfterQuote { path: PathBuf, line: u64, column: String, found: String },
    /// A row exceeds the reader's bound.
    #[error(
        "{}:{line}: the row is longer than 16 MiB; most likely a quote in it is not closed: close or double it, or say --quote none",
        path.display()
    )]
    RowTooLong { path: PathBuf, line: u64 },
    /// A type is given for a column that the header lacks.
    #[error("{}: a type is given for column {name:?}, expected one of {names}; correct the name", path.display())]
    UnknownColumn { path: PathBuf, name: String, names: String },
    /// A type is given for a place after the last column.
    #[error(
        "{}: the type {column_type} is given for column {place}, but the header has {columns} columns; take it out",
        path.display()
    )]
    SurplusType { path: PathBuf, column_type: ColumnType, place: usize, columns: usize },
    /// Two types are given for one column.
    #[error("{}: column {column} is given two types, {first} and {second}; keep one", path.display())]
    TwoTypes { path: PathBuf, column: String, first: ColumnType, second: ColumnType },
    /// The file has other bytes than in the first pass.
    #[error("{} was changed while it was read: it is read twice, and {what}; load it again when nothing writes to it", path.display())]
    Changed { path: PathBuf, what: String },
}

impl CsvError {
    /// Adds the file, and the column's name if the header is known.
    pub(super) fn from_record(
        path: &Path,
        error: RecordError,
        name: impl Fn(usize) -> Option<String>,
    ) -> Self {
        let path = path.to_owned();
        match error {
            RecordError::Read { line, source } if is_of_gzip(&source) => {
                CsvError::of_gzip(path, line, source)
            }
            RecordError::Read { line, source } => CsvError::Read { path, line, source },
            RecordError::UnclosedQuote { line, quote_line } => {
                CsvError::UnclosedQuote { path, line, quote_line }
            }
            RecordError::TooLong { line } => CsvError::RowTooLong { path, line },
            RecordError::TextAfterQuote { line, field, found } => {
                let column = name(field).unwrap_or_else(|| (field + 1).to_string());
                CsvError::TextAfterQuote { path, line, column, found: excerpt(found.as_bytes()) }
            }
        }
    }

    /// Returns the error of a file that cannot be decompressed, or not to its end.
    pub(super) fn of_gzip(path: PathBuf, line: u64, source: io::Error) -> Self {
        match source.get_ref().and_then(|error| error.downcast_ref::<BehindGzip>()) {
            Some(behind) => CsvError::BehindGzip { path, found: excerpt(&behind.0) },
            None => CsvError::DamagedGzip { path, line, source },
        }
    }

    pub(super) fn invalid_utf8(
        path: &Path,
        line: u64,
        column: String,
        value: &[u8],
        error: std::str::Utf8Error,
    ) -> Self {
        let index = error.valid_up_to();
        // Starts a little before the invalid byte, so that the cut at 40 bytes keeps it.
        let before = value[..index].len().saturating_sub(20);
        CsvError::InvalidUtf8 {
            path: path.to_owned(),
            line,
            column,
            found: excerpt(&value[before..]),
            byte: value[index],
            place: index + 1,
        }
    }
}

/// True if an error is that of a decompression: a disk returns none of these kinds.
pub(super) fn is_of_gzip(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// Counts the lines before this one.
fn lines(line: u64) -> String {
    match line.saturating_sub(1) {
        1 => "1 line".to_string(),
        before => format!("{before} lines"),
    }
}

/// Bytes that follow complete gzip data.
#[derive(Debug, thiserror::Error)]
#[error("other data follows")]
pub(super) struct BehindGzip(pub(super) Vec<u8>);

fn fields(count: usize) -> String {
    if count == 1 { "1 field".to_string() } else { format!("{count} fields") }
}

/// Returns an encoding that has this byte. WINDOWS-1252 has no letter for
/// five bytes, which iconv rejects.
fn encoding_with(byte: u8) -> &'static str {
    if matches!(byte, 0x81 | 0x8d | 0x8f | 0x90 | 0x9d) { "MACINTOSH" } else { "WINDOWS-1252" }
}

/// Returns the cure for surplus fields; `surplus` is `None` if all of them are empty.
fn surplus_cure(surplus: Option<&str>) -> String {
    match surplus {
        Some(surplus) => {
            format!(
                "the first surplus one is {surplus:?}: put quotes around a value that contains the delimiter"
            )
        }
        None => "nothing stands behind the last delimiter: take it out, or have the first row end in one too"
            .to_string(),
    }
}

/// Cuts a value at 40 bytes, for a message.
pub(super) fn excerpt(value: &[u8]) -> String {
    const BYTES_MAX: usize = 40;
    let text = String::from_utf8_lossy(&value[..value.len().min(4 * BYTES_MAX)]);
    if value.len() <= BYTES_MAX {
        return text.into_owned();
    }
    let end = (0..=BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

fn number_cure(error: &NumberError) -> String {
    match error {
        NumberError::TooManyDigits { .. } | NumberError::OutOfRange => {
            format!("{error}: shorten it or give the column the type VARCHAR2")
        }
        _ => "write it as -1234.50, without thousands separators, or give the column the type VARCHAR2"
            .to_owned(),
    }
}

/// Returns the form of dates for a message; empty for ISO.
fn written(style: &DateStyle) -> String {
    match (*style == DateStyle::ISO, style.zone) {
        (true, _) => String::new(),
        (false, None) => format!(" written {}", style.form),
        (false, Some(zone)) => format!(" written {} in the zone {}", style.form, zone_name(zone)),
    }
}

fn date_cure(error: &DateError, style: &DateStyle) -> String {
    match error {
        DateError::NoSuchDay { .. } | DateError::NoSuchTime { .. } => {
            format!("{error}: correct it or give the column the type VARCHAR2")
        }
        DateError::FractionalSeconds { .. } => {
            "a DATE keeps no fractional seconds: cut them off or give the column the type VARCHAR2".to_owned()
        }
        _ if *style != DateStyle::ISO => {
            "correct it, give another --date-format, or give the column the type VARCHAR2".to_owned()
        }
        _ => "write it as 2024-01-31 or 2024-01-31 13:45:00, say how it is written with --date-format, or give the column the type VARCHAR2".to_owned(),
    }
}

fn length_cure(expected: &ColumnType) -> &'static str {
    match expected {
        ColumnType::Text { max_bytes } if *max_bytes < plumb_types::TEXT_BYTES_MAX => {
            "give the column a longer type"
        }
        _ => "no column holds more: shorten the value or leave the column out",
    }
}
