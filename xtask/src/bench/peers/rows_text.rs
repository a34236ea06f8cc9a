//! The rows as text: CSV for the databases, keys alone for a text sort.
//!
//! Both are made from the same source of rows as plumb's own table, and written
//! as they are made.

use super::peer::KeyFacts;
use crate::bench::dataset::Keys;
use crate::bench::stop::Stop;
use anyhow::Context;
use plumb_types::{ColumnType, DateTime, RowBatch, column_at, columns, decode_number};
use plumb_units::RowCount;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const BUFFER_BYTES: usize = 1 << 20;
/// Digits that hold any store and any product.
pub(super) const STORE_DIGITS: usize = 4;
pub(super) const PRODUCT_DIGITS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    pub(super) keys: Keys,
    pub(super) count: RowCount,
    pub(super) seed: u64,
}

/// Writes all rows as CSV without a header; no value needs quotes.
pub(super) fn write_csv(path: &Path, rows: Rows, stop: &Stop) -> anyhow::Result<KeyFacts> {
    let types: Vec<ColumnType> = {
        let source = rows.keys.source(rows.count, rows.seed);
        source.schema().columns.iter().map(|column| column.column_type).collect()
    };
    write(path, rows, stop, |out, row| {
        let mut values = columns(row);
        for (index, (value, column_type)) in values.by_ref().zip(&types).enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            write_value(out, value.context("a NULL among the rows")?, column_type)?;
        }
        values.finish()?;
        Ok(out.write_all(b"\n")?)
    })
}

/// Writes the keys and the row's number, columns apart by a tab and numbers with
/// zeros in front, so that the order of bytes is the order of keys and rows.
pub(super) fn write_keys(path: &Path, rows: Rows, stop: &Stop) -> anyhow::Result<KeyFacts> {
    let digits = row_digits(rows.count);
    let mut number = 0u64;
    write(path, rows, stop, |out, row| {
        let column = |index| column_at(row, index)?.context("a NULL among the keys");
        match rows.keys {
            Keys::Numbers => {
                let (store, product) = (decode_number(column(1)?)?.0, decode_number(column(2)?)?.0);
                write!(out, "{store:0STORE_DIGITS$}\t{product:0PRODUCT_DIGITS$}")?;
            }
            Keys::Text => out.write_all(column(1)?)?,
        }
        writeln!(out, "\t{number:0digits$}")?;
        number += 1;
        Ok(())
    })
}

/// Digits that hold any row number.
pub(super) fn row_digits(rows: RowCount) -> usize {
    rows.0.saturating_sub(1).max(1).ilog10() as usize + 1
}

fn write(
    path: &Path,
    rows: Rows,
    stop: &Stop,
    mut line: impl FnMut(&mut BufWriter<File>, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<KeyFacts> {
    let source = rows.keys.source(rows.count, rows.seed);
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut facts = KeyFacts::default();
    let mut batch = RowBatch::new();
    while source.next_batch(&mut batch).map_err(anyhow::Error::from_boxed)? {
        stop.check()?;
        for row in batch.iter() {
            facts.add(rows.keys.weight(row)?);
            line(&mut out, row).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    out.flush().with_context(|| format!("writing {}", path.display()))?;
    Ok(facts)
}

fn write_value(out: &mut impl Write, stored: &[u8], column_type: &ColumnType) -> anyhow::Result<()> {
    match column_type {
        ColumnType::Date => {
            let date = DateTime::decode(stored)?;
            write!(out, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())?;
        }
        ColumnType::Number { .. } => {
            let (unscaled, scale) = decode_number(stored)?;
            write_number(out, unscaled, scale)?;
        }
        ColumnType::Text { .. } => out.write_all(stored)?,
    }
    Ok(())
}

/// A number that is not negative, as decimal text.
fn write_number(out: &mut impl Write, unscaled: i128, scale: i8) -> std::io::Result<()> {
    if scale <= 0 {
        return write!(out, "{}", unscaled * 10i128.pow(u32::from(scale.unsigned_abs())));
    }
    let unit = 10i128.pow(u32::from(scale.unsigned_abs()));
    write!(out, "{}.{:0width$}", unscaled / unit, unscaled % unit, width = usize::from(scale.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_cents() {
        let text = |unscaled, scale| {
            let mut out = Vec::new();
            write_number(&mut out, unscaled, scale).expect("memory");
            String::from_utf8(out).expect("digits")
        };
        assert_eq!(text(1234, 0), "1234");
        assert_eq!(text(1205, 2), "12.05");
        assert_eq!(text(5, 1), "0.5");
        assert_eq!(text(12, -2), "1200");
    }

    #[test]
    fn row_numbers_have_as_many_digits_as_the_last() {
        assert_eq!(row_digits(RowCount(1)), 1);
        assert_eq!(row_digits(RowCount(10)), 1);
        assert_eq!(row_digits(RowCount(11)), 2);
        assert_eq!(row_digits(RowCount(10_000_000)), 7);
    }
}
