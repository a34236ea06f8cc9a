//! The first row: names, and the types given for them.

use super::error::excerpt;
use super::pieces::Pieces;
use super::records::Records;
use super::{CsvError, inference};
use plumb_types::{COLUMN_COUNT_MAX, ColumnType};
use std::path::Path;

/// The name of a column.
pub(super) struct ColumnName {
    /// As the file has it, trimmed.
    pub(super) header: String,
    /// As the table has it: never empty, never twice.
    pub(super) name: String,
}

/// Reads the header and makes its names usable.
///
/// Fails on a file without one, on names that are not UTF-8, and on more than
/// 255 of them.
pub(super) fn read(
    path: &Path,
    pieces: &mut Pieces,
    records: &mut Records,
) -> Result<Vec<ColumnName>, CsvError> {
    let here = || path.to_owned();
    let more = records.advance_in(pieces).map_err(|error| CsvError::from_record(path, error, |_| None))?;
    if !more {
        return Err(CsvError::Empty { path: here() });
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
    if headers.iter().all(|header| header.is_empty() || inference::is_value(header.as_bytes())) {
        let found = excerpt(headers.join(",").as_bytes());
        return Err(CsvError::NoHeader { path: here(), line: records.line(), found });
    }
    if headers.len() > COLUMN_COUNT_MAX {
        return Err(CsvError::TooManyColumns { path: here(), found: headers.len() });
    }
    Ok(unique(headers))
}

/// Names the columns: `column_3` for none, `_2` and on for one already used.
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

/// The type given for each column, where one is.
///
/// Fails on a name the header does not have, a place past its last column and
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
                        names: names.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", "),
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
