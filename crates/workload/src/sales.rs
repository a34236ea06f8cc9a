//! SALES_DESC13: a month of daily sales by store and product.
//!
//! The table of "Tuning Large Sorts" (Oracle, 1996, Appendix B), on which it built an index. One
//! row for each day, store and product, with quantity and amount sold at the regular, the
//! discounted and the promotional price. [`weights`] marks at each table which numbers the source
//! states and which are chosen here.
//!
//! Generation:
//!
//! 1. Days. Rows are in the order of their dates, as in a fact table that is loaded daily. Each
//!    day has exactly its weight's share of the rows, so a row's day follows from its number.
//! 2. Stores and products. Both are drawn for each row: first a class by weight, then a member of
//!    the class, all equally likely. So an index on (STORE_ID, PROD_ID) gets its keys in random
//!    order. Ids of a class are spread over the whole range (class = id mod 10): equal ranges of
//!    ids get equal shares of the rows.
//! 3. Quantities are drawn, amounts computed: quantity * price * 1, 4/5, 3/5. A product has one
//!    price, a multiple of 5 cents, so that all amounts are whole cents.
//!
//! Rows are made in chunks of 8,192, each with a generator of its own, seeded by the seed and the
//! chunk's number. An atomic hands the chunks out. So the rows of a seed are the same for any
//! number of threads; only the order in which chunks arrive varies. The generator is xoshiro256++
//! by name, read as 64-bit words, so that no version of a library changes the table; a test pins
//! the bytes of the first chunk.
//!
//! Size: the source's table held 1% of all combinations of date, product and store, which for a
//! month of 30 days is 10,020,000 rows ([`SALES_ROWS_OF_SOURCE`]). Dates, stores and products
//! stay the same for any other number, so the share of combinations grows in proportion.
//! Combinations are drawn with replacement: at the source's size about one row in a hundred
//! repeats one, far above it most do. Keys of the index repeat in any case, as in the source,
//! where it is not unique.

mod weights;

use crate::chunks::Chunks;
use plumb_types::{Column, ColumnType, DATE_BYTES, DateTime, RowBatch, RowSource, Schema, SourceError};
use rand::Rng;
use rand::rngs::Xoshiro256PlusPlus;
use std::ops::Range;
use weights::{ClassDraw, PRODUCT_CLASSES, PRODUCT_COUNT, QUANTITY_MAX, STORE_CLASSES, STORE_COUNT};

/// Rows of the source's table: 1% of the combinations of 30 days, 2,000 stores and 16,700 products.
/// The source reports about 10 million.
pub const SALES_ROWS_OF_SOURCE: u64 =
    weights::DAY_COUNT as u64 * STORE_COUNT as u64 * PRODUCT_COUNT as u64 / 100;
const _: () = assert!(SALES_ROWS_OF_SOURCE == 10_020_000);

/// Specification of sales; equal values give equal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SalesSpec {
    /// Number of rows of the table.
    pub rows: u64,
    /// Seed of the draws; any number is valid.
    pub seed: u64,
}

/// The sales table as a source of rows.
#[derive(Debug)]
pub struct SalesTable {
    spec: SalesSpec,
    schema: Schema,
    days: Vec<Day>,
    stores: ClassDraw,
    products: ClassDraw,
    /// Regular price in cents of the product with this index (its id less 1).
    prices: Vec<u32>,
    chunks: Chunks,
}

/// A day, and the end of its rows.
#[derive(Debug)]
struct Day {
    date: [u8; DATE_BYTES],
    /// Number of the first row after it.
    rows_end: u64,
}

impl SalesTable {
    /// Creates the table of a specification. Rows are made on demand.
    pub fn new(spec: SalesSpec) -> Self {
        SalesTable {
            spec,
            schema: schema(),
            days: days(spec.rows),
            stores: ClassDraw::new(&STORE_CLASSES, STORE_COUNT),
            products: ClassDraw::new(&PRODUCT_CLASSES, PRODUCT_COUNT),
            prices: (0..PRODUCT_COUNT).map(weights::price_cents).collect(),
            chunks: Chunks::new(spec.rows, spec.seed),
        }
    }

    /// Fills the empty `batch` with the rows of a chunk; none after the last.
    fn fill_chunk(&self, chunk: u64, batch: &mut RowBatch) {
        batch.clear();
        let Range { start: mut row, end } = self.chunks.rows(chunk);
        let mut random = self.chunks.generator(chunk);
        let mut day = self.days.partition_point(|day| day.rows_end <= row);
        while row < end {
            let Day { date, rows_end } = &self.days[day];
            while row < end.min(*rows_end) {
                self.push_row(date, &mut random, batch);
                row += 1;
            }
            day += 1;
        }
    }

    #[inline]
    fn push_row(&self, date: &[u8; DATE_BYTES], random: &mut Xoshiro256PlusPlus, batch: &mut RowBatch) {
        let store = self.stores.draw(random.next_u64());
        let product = self.products.draw(random.next_u64());
        let bits = random.next_u64();
        let regular = quantity(bits, QUANTITY_MAX.regular);
        let discount = quantity(bits >> 16, QUANTITY_MAX.discount);
        let promo = quantity(bits >> 32, QUANTITY_MAX.promo);
        let price = u64::from(self.prices[product as usize]);

        batch.begin_row(9);
        batch.push_bytes(date);
        batch.push_number(i128::from(store + 1), 0);
        batch.push_number(i128::from(product + 1), 0);
        batch.push_number(i128::from(regular), 0);
        batch.push_number(i128::from(regular * price), 2);
        batch.push_number(i128::from(discount), 0);
        batch.push_number(i128::from(discount * price * 4 / 5), 2);
        batch.push_number(i128::from(promo), 0);
        batch.push_number(i128::from(promo * price * 3 / 5), 2);
        batch.end_row();
    }
}

impl RowSource for SalesTable {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(self.spec.rows)
    }

    /// Returns no error, because it reads nothing.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        self.fill_chunk(self.chunks.take(), batch);
        Ok(!batch.is_empty())
    }
}

fn schema() -> Schema {
    const AMOUNT: ColumnType = ColumnType::Number { precision: Some(38), scale: Some(2) };
    let columns = [
        ("SALES_DATE", ColumnType::Date),
        ("STORE_ID", ColumnType::NUMBER),
        ("PROD_ID", ColumnType::NUMBER),
        ("REGULAR_QTY", ColumnType::NUMBER),
        ("REGULAR_AMT", AMOUNT),
        ("DISCOUNT_QTY", ColumnType::NUMBER),
        ("DISCOUNT_AMT", AMOUNT),
        ("PROMO_QTY", ColumnType::NUMBER),
        ("PROMO_AMT", AMOUNT),
    ];
    Schema {
        columns: columns.into_iter().map(|(name, column_type)| Column::required(name, column_type)).collect(),
    }
}

/// Returns the days of the month, each with its share of the rows.
fn days(rows: u64) -> Vec<Day> {
    let dates: Vec<DateTime> = weights::dates().collect();
    let total: u64 = dates.iter().map(weights::day_weight).sum();
    let mut before = 0;
    let mut days = Vec::with_capacity(dates.len());
    for date in &dates {
        before += weights::day_weight(date);
        let rows_end = u128::from(rows) * u128::from(before) / u128::from(total);
        days.push(Day { date: date.encode(), rows_end: rows_end as u64 });
    }
    assert_eq!(days.last().map(|day| day.rows_end), Some(rows));
    days
}

/// Draws 1 to `max` from the low 16 bits; no value is more likely than another by more
/// than one part in 3,000.
#[inline]
fn quantity(random: u64, max: u64) -> u64 {
    1 + (((random & 0xFFFF) * max) >> 16)
}

#[cfg(test)]
mod tests;
