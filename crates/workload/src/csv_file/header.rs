//! The first row: names, or values if the file has no header; and the types given for columns.
//!
//! A file without a header would silently lose its first row to the names. So a first row whose
//! fields are values of their own columns is rejected with a question. Names that are years
//! (`1990`, `1991`) or increase in equal steps are accepted: such a table has one column for each.

use super::error::excerpt;
use super::pieces::Pieces;
use super::records::Records;
use super::{CsvError, inference};
use plumb_types::{COLUMN_COUNT_MAX, Column, ColumnType, listed_names};
use std::path::Path;

/// Meaning of the first row of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Header {
    /// It names the columns; a row that looks like values is rejected.
    #[default]
    Expected,
    /// It names the columns, even if it looks like values.
    Names,
    /// It holds values; the columns are called `column_1` and so on.
    Missing,
    /// It holds values; these are the names of the columns.
    Given(Vec<String>),
}

/// Years that are accepted as names of columns.
const YEARS: std::ops::RangeInclusive<f64> = 1800.0..=2199.0;

pub(super) struct ColumnName {
    /// Name in the file, trimmed.
    pub(super) header: String,
    /// Name in the table: never empty, never used twice.
    pub(super) name: String,
}

/// Reads the header and makes its names usable.
///
/// Fails on a file without a header, on names that are not UTF-8, and on more than 255 names.
pub(super) fn read(
    path: &Path,
    pieces: &mut Pieces,
    records: &mut Records,
    header: &Header,
) -> Result<Vec<ColumnName>, CsvError> {
    let here = || path.to_owned();
    records.begin_at(pieces.first_line());
    let more = records.advance_in(pieces).map_err(|error| CsvError::from_record(path, error, |_| None))?;
    if !more {
        return Err(CsvError::Empty { path: here() });
    }
    if let Some(names) = names_of_row(path, records, header)? {
        records.step_back();
        return Ok(unique(names));
    }
    let mut headers = Vec::new();
    for (index, field) in records.fields().enumerate() {
        match std::str::from_utf8(field) {
            Ok(text) => headers.push(text.trim().to_owned()),
            Err(error) => {
                let column = format!("{} of the header", index + 1);
                return Err(CsvError::invalid_utf8(path, records.line(), column, field, error));
            }
        }
    }
    if *header == Header::Expected
        && headers.iter().all(|header| header.is_empty() || inference::is_value(header.as_bytes()))
    {
        let found = excerpt(headers.join(",").as_bytes());
        return Err(CsvError::NoHeader { path: here(), line: records.line(), found });
    }
    if headers.len() > COLUMN_COUNT_MAX {
        return Err(CsvError::TooManyColumns { path: here(), found: headers.len() });
    }
    Ok(unique(headers))
}

/// Returns the names of columns whose file has no header; `None` if the first row has them.
fn names_of_row(path: &Path, records: &Records, header: &Header) -> Result<Option<Vec<String>>, CsvError> {
    let found = records.field_count();
    if found > COLUMN_COUNT_MAX {
        return Err(CsvError::TooManyColumns { path: path.to_owned(), found });
    }
    match header {
        Header::Expected | Header::Names => Ok(None),
        Header::Missing => Ok(Some((1..=found).map(|place| format!("column_{place}")).collect())),
        Header::Given(names) if names.len() == found => Ok(Some(names.clone())),
        Header::Given(names) => {
            let (path, line, given) = (path.to_owned(), records.line(), names.len());
            Err(CsvError::OtherNames { path, line, found, given })
        }
    }
}

/// Fails if names are values of their own columns.
pub(super) fn require_names(
    path: &Path,
    names: &[ColumnName],
    columns: &[Column],
    line: u64,
) -> Result<(), CsvError> {
    let is_value = |(name, column): (&ColumnName, &Column)| match column.column_type {
        ColumnType::Number { .. } => Some(inference::is_number(name.header.as_bytes())),
        ColumnType::Date => Some(inference::is_date(name.header.as_bytes())),
        ColumnType::Text { .. } => None,
    };
    let known: Vec<bool> = names.iter().zip(columns).filter_map(is_value).collect();
    let values = known.iter().filter(|is_value| **is_value).count();
    let numbers: Vec<f64> = names.iter().filter_map(|name| name.header.parse().ok()).collect();
    if values == 0 || 2 * values < known.len() || numbers.len() == values && is_series(&numbers) {
        return Ok(());
    }
    let found: Vec<&str> = names.iter().map(|name| name.header.as_str()).collect();
    let (path, found) = (path.to_owned(), excerpt(found.join(",").as_bytes()));
    Err(CsvError::LooksLikeRow { path, line, found, values, known: known.len() })
}

/// True if the numbers are years, or increase in equal steps.
fn is_series(numbers: &[f64]) -> bool {
    let are_years = numbers.iter().all(|number| YEARS.contains(number) && number.fract() == 0.0);
    let steps: Vec<f64> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let equal = |step: &f64| *step > 0.0 && (step - steps[0]).abs() < 1e-9 * step.abs();
    are_years || steps.len() > 1 && steps.iter().all(equal)
}

/// Makes names unique: `column_3` for an empty one, the suffix `_2` and so on for a duplicate.
fn unique(headers: Vec<String>) -> Vec<ColumnName> {
    let mut names: Vec<ColumnName> = Vec::with_capacity(headers.len());
    for (index, header) in headers.into_iter().enumerate() {
        let stem = if header.is_empty() { format!("column_{}", index + 1) } else { header.clone() };
        let taken = |name: &str| names.iter().any(|earlier| earlier.name.eq_ignore_ascii_case(name));
        let mut name = stem.clone();
        let mut count = 1;
        while taken(&name) {
            count += 1;
            name = format!("{stem}_{count}");
        }
        names.push(ColumnName { header, name });
    }
    names
}

/// Returns the given type of each column, if any.
///
/// Fails on a name that the header lacks, a place past its last column and
/// two types for one column.
pub(super) fn given_types(
    path: &Path,
    names: &[ColumnName],
    types: &[(Option<String>, ColumnType)],
) -> Result<Vec<Option<ColumnType>>, CsvError> {
    let mut given: Vec<Option<ColumnType>> = vec![None; names.len()];
    for (place, (name, column_type)) in types.iter().enumerate() {
        let index = match name {
            None if place < names.len() => place,
            None => {
                return Err(CsvError::SurplusType {
                    path: path.to_owned(),
                    column_type: *column_type,
                    place: place + 1,
                    columns: names.len(),
                });
            }
            Some(name) => {
                names.iter().position(|column| column.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
                    CsvError::UnknownColumn {
                        path: path.to_owned(),
                        name: name.clone(),
                        names: listed_names(names.iter().map(|column| column.name.as_str())),
                    }
                })?
            }
        };
        if let Some(first) = given[index].replace(*column_type) {
            let column = names[index].name.clone();
            return Err(CsvError::TwoTypes { path: path.to_owned(), column, first, second: *column_type });
        }
    }
    Ok(given)
}
