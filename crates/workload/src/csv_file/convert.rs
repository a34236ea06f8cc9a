//! The second pass: fields become columns of a row.

use super::dates::DateStyle;
use super::error::excerpt;
use super::records::Records;
use super::{CsvError, CsvOptions, DecimalMark};
use plumb_types::{Column, ColumnType, RowBatch, Schema, parse_number};
use std::path::Path;
use std::str::Utf8Error;

/// Converts records to rows of the schema.
#[derive(Debug)]
pub(super) struct Converter<'a> {
    path: &'a Path,
    schema: &'a Schema,
    options: &'a CsvOptions,
    /// Form and zone of each column, used for columns of dates.
    styles: &'a [DateStyle],
    /// Buffer for an encoded number.
    number: Vec<u8>,
}

impl<'a> Converter<'a> {
    pub(super) fn new(
        path: &'a Path,
        schema: &'a Schema,
        options: &'a CsvOptions,
        styles: &'a [DateStyle],
    ) -> Self {
        Converter { path, schema, options, styles, number: Vec::new() }
    }

    /// Appends the current record as a row. Fails, appending nothing, if a value is
    /// not of its column's type.
    #[inline]
    pub(super) fn push_row(&mut self, records: &Records, batch: &mut RowBatch) -> Result<(), CsvError> {
        let columns = &self.schema.columns;
        check_field_count(self.path, records, columns.len(), |index| {
            columns.get(index).map(|column| column.name.clone())
        })?;
        batch.begin_row(columns.len() as u8);
        let line = records.line();
        for ((value, column), style) in records.fields().zip(columns).zip(self.styles) {
            if is_null(value, &self.options.null_text) {
                batch.push_null();
                continue;
            }
            let cell = Cell { path: self.path, line, column, value };
            let pushed = match column.column_type {
                ColumnType::Number { .. } => cell.push_number(self.options.decimal, &mut self.number, batch),
                ColumnType::Date => cell.push_date(*style, batch),
                ColumnType::Text { max_bytes } => cell.push_text(max_bytes, batch),
            };
            if let Err(error) = pushed {
                batch.abandon_row();
                return Err(error);
            }
        }
        batch.end_row();
        Ok(())
    }
}

/// A value that is not NULL, with its place.
#[derive(Clone, Copy)]
struct Cell<'a> {
    path: &'a Path,
    line: u64,
    column: &'a Column,
    value: &'a [u8],
}

impl Cell<'_> {
    #[inline]
    fn push_number(
        self,
        decimal: DecimalMark,
        scratch: &mut Vec<u8>,
        batch: &mut RowBatch,
    ) -> Result<(), CsvError> {
        scratch.clear();
        let number = decimal.pointed(trim_blanks(self.value));
        let shape = parse_number(&number, scratch).map_err(|error| CsvError::BadNumber {
            path: self.path.to_owned(),
            line: self.line,
            column: self.column.name.clone(),
            found: excerpt(self.value),
            expected: self.column.column_type,
            source: Box::new(error),
        })?;
        if !self.column.column_type.admits_number(shape) {
            return Err(CsvError::NumberTooWide {
                path: self.path.to_owned(),
                line: self.line,
                column: self.column.name.clone(),
                found: excerpt(self.value),
                expected: self.column.column_type,
            });
        }
        batch.push_bytes(scratch);
        Ok(())
    }

    #[inline]
    fn push_date(self, style: DateStyle, batch: &mut RowBatch) -> Result<(), CsvError> {
        let date = style.read(trim_blanks(self.value)).map_err(|error| CsvError::BadDate {
            path: self.path.to_owned(),
            line: self.line,
            column: self.column.name.clone(),
            found: excerpt(self.value),
            style,
            source: Box::new(error),
        })?;
        batch.push_date(&date);
        Ok(())
    }

    #[inline]
    fn push_text(self, max_bytes: u32, batch: &mut RowBatch) -> Result<(), CsvError> {
        check_utf8(self.value).map_err(|error| {
            CsvError::invalid_utf8(self.path, self.line, self.column.name.clone(), self.value, error)
        })?;
        if self.value.len() > max_bytes as usize {
            return Err(CsvError::TextTooLong {
                path: self.path.to_owned(),
                line: self.line,
                column: self.column.name.clone(),
                found: excerpt(self.value),
                bytes: self.value.len(),
                expected: self.column.column_type,
            });
        }
        batch.push_bytes(self.value);
        Ok(())
    }
}

/// Fails if a value is not UTF-8. Checks for ASCII first, because most values are short and ASCII.
#[inline]
pub(super) fn check_utf8(value: &[u8]) -> Result<(), Utf8Error> {
    if value.is_ascii() { Ok(()) } else { std::str::from_utf8(value).map(|_| ()) }
}

/// True if a field means NULL.
#[inline]
pub(super) fn is_null(field: &[u8], null_text: &[String]) -> bool {
    field.is_empty() || null_text.iter().any(|text| text.as_bytes() == field)
}

/// Trims blanks and tabs around a field. A field of blanks only is left unchanged: it is
/// neither NULL nor a number.
#[inline]
pub(super) fn trim_blanks(field: &[u8]) -> &[u8] {
    match field {
        [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => field.trim_ascii(),
        _ => field,
    }
}

/// Fails if the current record has another number of fields than the header.
#[inline]
pub(super) fn check_field_count(
    path: &Path,
    records: &Records,
    expected: usize,
    name: impl Fn(usize) -> Option<String>,
) -> Result<(), CsvError> {
    let found = records.field_count();
    if found == expected {
        return Ok(());
    }
    let (path, line) = (path.to_owned(), records.line());
    if found < expected {
        let last = excerpt(records.field(found - 1));
        let missing = name(found).unwrap_or_default();
        return Err(CsvError::TooFewFields { path, line, found, expected, last, missing });
    }
    let says_nothing = (expected..found).all(|index| records.field(index).is_empty());
    let surplus = (!says_nothing).then(|| excerpt(records.field(expected)));
    Err(CsvError::TooManyFields { path, line, found, expected, surplus })
}
