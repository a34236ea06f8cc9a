//! The sales as text: CSV for the databases, keys alone for a text sort.
//!
//! Both are made chunk by chunk from the same specification as plumb's own
//! table, and written as they are made.

use super::child::Stop;
use super::peer::KeyFacts;
use anyhow::Context;
use plumb_types::{DateTime, RowBatch, columns, decode_number};
use plumb_units::RowCount;
use plumb_workload::{SalesSpec, SalesTable};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const BUFFER_BYTES: usize = 1 << 20;
/// Digits that hold any store and any product.
pub(super) const STORE_DIGITS: usize = 4;
/// As [`STORE_DIGITS`].
pub(super) const PRODUCT_DIGITS: usize = 5;

/// Writes all rows as CSV without a header.
pub(super) fn write_csv(path: &Path, rows: RowCount, seed: u64, stop: &Stop) -> anyhow::Result<KeyFacts> {
    write(path, rows, seed, stop, |out, row| {
        write!(out, "{:04}-{:02}-{:02}", row.date.year(), row.date.month(), row.date.day())?;
        for (unscaled, scale) in &row.numbers {
            out.write_all(b",")?;
            write_number(out, *unscaled, *scale)?;
        }
        out.write_all(b"\n")
    })
}

/// Writes the keys as `store TAB product TAB row number`, zeros in front, so
/// that the order of bytes is the order of numbers.
pub(super) fn write_keys(path: &Path, rows: RowCount, seed: u64, stop: &Stop) -> anyhow::Result<KeyFacts> {
    let digits = row_digits(rows);
    let mut number = 0u64;
    write(path, rows, seed, stop, |out, row| {
        let (store, product) = row.key();
        writeln!(out, "{store:0STORE_DIGITS$}\t{product:0PRODUCT_DIGITS$}\t{number:0digits$}")?;
        number += 1;
        Ok(())
    })
}

/// Digits that hold any row number.
pub(super) fn row_digits(rows: RowCount) -> usize {
    rows.0.saturating_sub(1).max(1).ilog10() as usize + 1
}

/// A row taken apart: the date, then eight numbers as (unscaled, scale).
struct Row {
    date: DateTime,
    numbers: Vec<(i128, i8)>,
}

impl Row {
    fn key(&self) -> (u64, u64) {
        (self.numbers[0].0 as u64, self.numbers[1].0 as u64)
    }

    fn read(&mut self, image: &[u8]) -> anyhow::Result<()> {
        let mut columns = columns(image);
        let date = columns.next().context("a row without columns")??.context("a row without a date")?;
        self.date = DateTime::decode(date)?;
        self.numbers.clear();
        for column in columns {
            self.numbers.push(decode_number(column?.context("a NULL among the sales")?)?);
        }
        anyhow::ensure!(self.numbers.len() == 8, "a row of {} numbers", self.numbers.len());
        Ok(())
    }
}

fn write(
    path: &Path,
    rows: RowCount,
    seed: u64,
    stop: &Stop,
    mut line: impl FnMut(&mut BufWriter<File>, &Row) -> std::io::Result<()>,
) -> anyhow::Result<KeyFacts> {
    let table = SalesTable::new(SalesSpec { rows: rows.0, seed });
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    let mut facts = KeyFacts::default();
    let mut batch = RowBatch::new();
    let mut row = Row { date: DateTime::date(2000, 1, 1)?, numbers: Vec::new() };
    for chunk in 0..table.chunk_count() {
        stop.check()?;
        table.fill_chunk(chunk, &mut batch);
        for image in batch.iter() {
            row.read(image)?;
            let (store, product) = row.key();
            facts.add(store, product);
            line(&mut out, &row).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    out.flush().with_context(|| format!("writing {}", path.display()))?;
    Ok(facts)
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
