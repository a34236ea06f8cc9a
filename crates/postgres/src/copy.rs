//! Rows for COPY BINARY, by an encoder of our own, and the tables that they go into.
//!
//! ```text
//! file    PGCOPY\n\377\r\n\0   flags 4   extension 4   rows...   -1 2
//! row     column count 2   [ length 4   value ]*       length -1 is NULL
//! ```
//!
//! The client's row writer takes a vector of boxed values a row, many times the cost of these
//! bytes. NUMBER has digits of base 100 and a scale, NUMERIC digits of base 10000 and a weight.
//!
//! Types are those that a user of PostgreSQL would choose: a NUMBER without a scale is `integer`,
//! as identifiers and quantities are, one with a scale is `numeric`, a DATE without a time `date`.
//! A value that does not fit is an error, never rounded.

use crate::PostgresError;
use plumb_events::Cancel;
use plumb_types::{ColumnType, DateTime, RowBatch, RowSource, Schema, columns, decode_number};
use std::io::Write;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();
/// Days from 1970-01-01 to 2000-01-01, PostgreSQL's first day.
const EPOCH_DAYS: i32 = 10_957;
/// Sign of a negative NUMERIC.
const NEGATIVE: u16 = 0x4000;

/// Type of a column in the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    /// With this many digits behind the point.
    Numeric(u16),
    Date,
    Text,
}

impl Type {
    fn of(column: ColumnType) -> Type {
        match column {
            ColumnType::Number { scale: Some(scale @ 1..), .. } => Type::Numeric(scale.unsigned_abs().into()),
            ColumnType::Number { .. } => Type::Integer,
            ColumnType::Date => Type::Date,
            ColumnType::Text { .. } => Type::Text,
        }
    }

    fn name(self, column: ColumnType) -> String {
        match (self, column) {
            (Type::Numeric(scale), ColumnType::Number { precision: Some(precision), .. }) => {
                format!("numeric({precision},{scale})")
            }
            (Type::Numeric(_), _) => "numeric".to_string(),
            (Type::Integer, _) => "integer".to_string(),
            (Type::Date, _) => "date".to_string(),
            (Type::Text, _) => "text".to_string(),
        }
    }
}

/// Returns the columns of a table as DDL.
#[must_use]
pub fn table_columns(schema: &Schema) -> String {
    let column = |column: &plumb_types::Column| {
        let null = if column.nullable { "" } else { " not null" };
        let name = column.name.to_lowercase();
        format!("{name} {}{null}", Type::of(column.column_type).name(column.column_type))
    };
    schema.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Writes all rows of a source; returns their number.
///
/// # Errors
/// If a row cannot be made or does not fit, the writer fails, or the work is cancelled.
pub fn write_rows(
    source: &dyn RowSource,
    to: &mut dyn Write,
    cancel: &Cancel,
    failed: &dyn Fn(std::io::Error) -> PostgresError,
) -> Result<u64, PostgresError> {
    let types: Vec<Type> =
        source.schema().columns.iter().map(|column| Type::of(column.column_type)).collect();
    let (mut batch, mut bytes, mut rows) = (RowBatch::new(), SIGNATURE.to_vec(), 0);
    while source.next_batch(&mut batch).map_err(PostgresError::Rows)? {
        cancel.check()?;
        batch.iter().try_for_each(|row| append_row(&types, row, &mut bytes))?;
        rows += batch.len() as u64;
        to.write_all(&bytes).map_err(failed)?;
        bytes.clear();
    }
    bytes.extend_from_slice(&TRAILER);
    to.write_all(&bytes).map_err(failed)?;
    Ok(rows)
}

fn append_row(types: &[Type], row: &[u8], out: &mut Vec<u8>) -> Result<(), PostgresError> {
    out.extend_from_slice(&(types.len() as i16).to_be_bytes());
    for (column, (of, value)) in types.iter().zip(columns(row)).enumerate() {
        let unfit = |value: String, expected| PostgresError::Value { column: column + 1, value, expected };
        match value {
            None => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Some(value) => append_value(*of, value, out, &unfit)?,
        }
    }
    Ok(())
}

fn append_value(
    of: Type,
    value: &[u8],
    out: &mut Vec<u8>,
    unfit: &dyn Fn(String, &'static str) -> PostgresError,
) -> Result<(), PostgresError> {
    match of {
        Type::Text => append_sized(value, out),
        Type::Date => {
            let date = DateTime::decode(value).map_err(|error| unfit(error.to_string(), "date"))?;
            let days = days(&date).ok_or_else(|| unfit(format!("{date:?}"), "a date without a time"))?;
            append_sized(&days.to_be_bytes(), out);
        }
        Type::Integer | Type::Numeric(_) => {
            let (unscaled, scale) =
                decode_number(value).map_err(|error| unfit(error.to_string(), "numeric"))?;
            match of {
                Type::Numeric(digits) => append_numeric(unscaled, scale, digits, out),
                _ => {
                    let whole = (scale == 0).then(|| i32::try_from(unscaled).ok()).flatten();
                    let whole = whole.ok_or_else(|| unfit(format!("{unscaled}E-{scale}"), "integer"))?;
                    append_sized(&whole.to_be_bytes(), out);
                }
            }
        }
    }
    Ok(())
}

fn append_sized(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
    out.extend_from_slice(value);
}

/// Returns the days from 2000-01-01; `None` for a date with a time of day.
pub(crate) fn days(date: &DateTime) -> Option<i32> {
    let midnight = (date.hour(), date.minute(), date.second()) == (0, 0, 0);
    // The count of days from 1970-01-01 in the proleptic Gregorian calendar, by years of March.
    let (year, month, day) = (i32::from(date.year()), i32::from(date.month()), i32::from(date.day()));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let since_1970 = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    midnight.then_some(since_1970 - EPOCH_DAYS)
}

/// Appends `unscaled / 10^scale` as NUMERIC: the digits are cut into groups of four from the point.
fn append_numeric(unscaled: i128, scale: i8, shown_scale: u16, out: &mut Vec<u8>) {
    let mut groups: Vec<i16> = Vec::with_capacity(12);
    let mut rest = unscaled.unsigned_abs();
    // Number of groups behind the point. The lowest may have fewer than four decimals.
    let (fraction_groups, odd) = (i32::from(scale).div_euclid(4), i32::from(scale).rem_euclid(4));
    let mut behind = fraction_groups;
    if odd != 0 {
        let cut = 10_u128.pow(odd as u32);
        groups.push((rest % cut) as i16 * 10_i16.pow(4 - odd as u32));
        rest /= cut;
        behind += 1;
    }
    while rest > 0 {
        groups.push((rest % 10_000) as i16);
        rest /= 10_000;
    }
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let weight = groups.len() as i32 - 1 - behind;
    groups.reverse();
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let weight = if groups.is_empty() { 0 } else { weight };
    let sign = if unscaled < 0 { NEGATIVE } else { 0 };
    let shown = shown_scale.max(scale.max(0) as u16);
    out.extend_from_slice(&(8 + 2 * groups.len() as i32).to_be_bytes());
    out.extend_from_slice(&(groups.len() as i16).to_be_bytes());
    out.extend_from_slice(&(weight as i16).to_be_bytes());
    out.extend_from_slice(&sign.to_be_bytes());
    out.extend_from_slice(&shown.to_be_bytes());
    groups.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_workload::{PagesSpec, PagesTable, SalesSpec, SalesTable};

    /// Returns digits, weight, sign and scale of an encoded NUMERIC.
    fn numeric(unscaled: i128, scale: i8) -> (Vec<i16>, i16, u16, u16) {
        let mut out = Vec::new();
        append_numeric(unscaled, scale, 0, &mut out);
        let word = |at: usize| u16::from_be_bytes([out[at], out[at + 1]]);
        assert_eq!(out.len(), 12 + 2 * usize::from(word(4)));
        assert_eq!(out[..4], (out.len() as i32 - 4).to_be_bytes());
        let digits = (0..usize::from(word(4))).map(|number| word(12 + 2 * number) as i16).collect();
        (digits, word(6) as i16, word(8), word(10))
    }

    #[test]
    fn a_number_becomes_the_groups_of_four_that_numeric_has() {
        // The digits of numeric_send in a server for the same values.
        assert_eq!(numeric(0, 0), (vec![], 0, 0, 0));
        assert_eq!(numeric(12345, 0), (vec![1, 2345], 1, 0, 0));
        assert_eq!(numeric(1250, 2), (vec![12, 5000], 0, 0, 2));
        assert_eq!(numeric(-1, 2), (vec![100], -1, NEGATIVE, 2));
        assert_eq!(numeric(1, 5), (vec![1000], -2, 0, 5));
        assert_eq!(numeric(100_000_000, 0), (vec![1], 2, 0, 0));
        assert_eq!(numeric(12, -4), (vec![12], 1, 0, 0));
        assert_eq!(numeric(12, -5), (vec![120], 1, 0, 0));
        let most = 10_i128.pow(38) - 1;
        assert_eq!(numeric(most, 2), ([vec![9999; 9], vec![9900]].concat(), 8, 0, 2));
    }

    #[test]
    fn days_count_from_the_year_2000() {
        let of = |year, month, day| days(&DateTime::date(year, month, day).expect("a date"));
        assert_eq!(of(2000, 1, 1), Some(0));
        assert_eq!(of(1999, 12, 31), Some(-1));
        assert_eq!(of(2000, 3, 1), Some(60));
        assert_eq!(of(2025, 6, 30), Some(9_312));
        assert_eq!(of(1, 1, 1), Some(-730_119));
        let noon = DateTime::new(2000, 1, 1, 12, 0, 0).expect("a date");
        assert_eq!(days(&noon), None);
    }

    #[test]
    fn all_rows_of_a_source_are_written_between_signature_and_trailer() {
        let mut bytes = Vec::new();
        let failed = |source| PostgresError::File { what: "", path: "x".into(), source };
        let table = SalesTable::new(SalesSpec { rows: 10_000, seed: 1 });
        let rows = write_rows(&table, &mut bytes, &Cancel::default(), &failed).expect("rows");
        assert_eq!(rows, 10_000);
        assert_eq!(&bytes[..SIGNATURE.len()], SIGNATURE);
        assert_eq!(bytes[bytes.len() - 2..], TRAILER);
        assert_eq!(SIGNATURE.len(), 19);
        let columns = table_columns(table.schema());
        assert!(columns.starts_with("sales_date date not null, store_id integer not null"), "{columns}");
        assert!(columns.ends_with("promo_amt numeric(38,2) not null"), "{columns}");
        let pages = PagesTable::new(PagesSpec { rows: 10, seed: 1 });
        assert!(table_columns(pages.schema()).contains("page text"), "{}", table_columns(pages.schema()));
        let stopped = Cancel::default();
        stopped.request();
        let error = write_rows(&table, &mut bytes, &stopped, &failed);
        assert!(matches!(error, Ok(0) | Err(PostgresError::Interrupted)), "{error:?}");
    }
}
