//! The sales table: distributions, determinism, the length of a row.

use super::*;
use crate::chunks::CHUNK_ROWS;
use plumb_types::{Value, columns, decode_number};
use std::collections::HashMap;

fn table(rows: u64, seed: u64) -> SalesTable {
    SalesTable::new(SalesSpec { rows, seed })
}

/// All rows, chunk by chunk.
fn rows_of(table: &SalesTable) -> Vec<Vec<u8>> {
    let mut batch = RowBatch::new();
    let mut rows = Vec::new();
    while table.next_batch(&mut batch).unwrap() {
        rows.extend(batch.iter().map(<[u8]>::to_vec));
    }
    assert!(batch.is_empty());
    rows
}

/// A row's columns as numbers, amounts in cents; the day first.
fn numbers(row: &[u8]) -> [i128; 9] {
    let mut numbers = [0; 9];
    for (index, column) in columns(row).enumerate() {
        let bytes = column.unwrap();
        numbers[index] = if index == 0 {
            i128::from(DateTime::decode(bytes).unwrap().day())
        } else {
            let (unscaled, scale) = decode_number(bytes).unwrap();
            let cents = if [4, 6, 8].contains(&index) { 2 } else { 0 };
            assert!(scale <= cents, "amounts are whole cents, the others whole numbers");
            unscaled * 10_i128.pow((cents - scale) as u32)
        };
    }
    numbers
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} is not within {tolerance} of {expected}");
}

#[test]
fn rows_are_42_bytes_on_average() {
    let rows = rows_of(&table(200_000, 1));
    let bytes: usize = rows.iter().map(Vec::len).sum();
    assert_near(bytes as f64 / rows.len() as f64, 42.0, 0.5);
}

#[test]
fn days_get_their_weight_in_date_order() {
    // 5 + 5 + 5 for the holidays, 7 weekend days, 20 week days.
    let total = 3 * 5 + 7 * 3 + 20 * 2;
    let rows = rows_of(&table(76_000, 3));
    let days: Vec<i128> = rows.iter().map(|row| numbers(row)[0]).collect();
    assert!(days.is_sorted());
    let rows_of_day = |day: i128| days.iter().filter(|found| **found == day).count();
    assert_eq!(rows_of_day(1), 76_000 * 2 / total);
    assert_eq!(rows_of_day(2), 76_000 * 5 / total);
    assert_eq!(rows_of_day(4), 76_000 * 5 / total);
    assert_eq!(rows_of_day(5), 76_000 * 2 / total);
    assert_eq!(rows_of_day(9), 76_000 * 3 / total);
    assert_eq!(rows_of_day(30), 76_000 * 3 / total);
}

#[test]
fn stores_and_products_follow_their_classes() {
    let rows: Vec<[i128; 9]> = rows_of(&table(300_000, 5)).iter().map(|row| numbers(row)).collect();
    for (column, count, percents) in [(1, STORE_COUNT, STORE_CLASSES), (2, PRODUCT_COUNT, PRODUCT_CLASSES)] {
        let mut by_class = [0_u32; 10];
        let mut by_id: HashMap<i128, u32> = HashMap::new();
        for row in &rows {
            assert!((1..=i128::from(count)).contains(&row[column]));
            by_class[((row[column] - 1) % 10) as usize] += 1;
            *by_id.entry(row[column]).or_default() += 1;
        }
        for (found, percent) in by_class.iter().zip(percents) {
            assert_near(f64::from(*found) / 300_000.0, f64::from(percent) / 100.0, 0.003);
        }
        // Every store has sales, and a quarter of the ids has a quarter of the rows.
        assert!(by_id.len() as f64 > 0.95 * f64::from(count));
        let lower: u32 = (1..=i128::from(count / 4)).filter_map(|id| by_id.get(&id)).sum();
        assert_near(f64::from(lower) / 300_000.0, 0.25, 0.005);
    }
}

#[test]
fn quantities_are_half_regular_and_amounts_follow_the_price() {
    let mut sums = [0_i128; 3];
    let mut prices: HashMap<i128, i128> = HashMap::new();
    for row in rows_of(&table(100_000, 7)) {
        let [_, _, product, regular, regular_amount, discount, discount_amount, promo, promo_amount] =
            numbers(&row);
        let price = *prices.entry(product).or_insert(regular_amount / regular);
        assert_eq!(regular_amount, regular * price, "a product has one price");
        assert_eq!(discount_amount * 5, discount * price * 4);
        assert_eq!(promo_amount * 5, promo * price * 3);
        assert!((100..=10_000).contains(&price));
        for (sum, quantity) in sums.iter_mut().zip([regular, discount, promo]) {
            assert!(quantity >= 1);
            *sum += quantity;
        }
    }
    let total: i128 = sums.iter().sum();
    for (sum, share) in sums.into_iter().zip([0.5, 0.25, 0.25]) {
        assert_near(sum as f64 / total as f64, share, 0.003);
    }
}

#[test]
fn the_rows_are_the_same_for_any_number_of_threads() {
    let mut alone = rows_of(&table(100_000, 11));
    let table = table(100_000, 11);
    let mut shared: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| rows_of(&table))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    alone.sort();
    shared.sort();
    assert_eq!(alone.len(), 100_000);
    assert!(alone == shared);
}

#[test]
fn seeds_and_chunks_differ() {
    assert!(rows_of(&table(1_000, 1)) != rows_of(&table(1_000, 2)));
    let table = table(3 * CHUNK_ROWS, 1);
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    for chunk in 0..3 {
        let mut batch = RowBatch::new();
        table.fill_chunk(chunk, &mut batch);
        chunks.push(batch.iter().flat_map(|row| row[11..].to_vec()).collect());
    }
    assert!(chunks[0] != chunks[1] && chunks[1] != chunks[2]);
}

#[test]
fn any_number_of_rows_is_made() {
    for rows in [0, 1, 29, CHUNK_ROWS, CHUNK_ROWS + 1] {
        let table = table(rows, 1);
        assert_eq!(rows_of(&table).len() as u64, rows);
        assert_eq!(table.row_count_hint(), Some(rows));
    }
    // The last chunk of a table larger than any disk.
    let huge = table(u64::MAX, 1);
    let mut batch = RowBatch::new();
    huge.fill_chunk(u64::MAX.div_ceil(CHUNK_ROWS) - 1, &mut batch);
    assert_eq!(numbers(batch.row(0))[0], 30);
}

/// The table must not change under studies that were already run. If this fails, either undo the
/// change or note in the CHANGELOG that seeds now give other rows.
#[test]
fn the_rows_of_a_seed_stay_what_they_are() {
    let mut batch = RowBatch::new();
    table(10_000, 42).fill_chunk(0, &mut batch);
    let first: Vec<String> = columns(batch.row(0))
        .zip(&schema().columns)
        .map(|(bytes, column)| Value::from_encoded(&column.column_type, bytes).unwrap().to_string())
        .collect();
    assert_eq!(first.join(" "), "1995-09-01 892 9934 4 102.2 6 122.64 9 137.97");
    // FNV-1a over all bytes of the chunk.
    let hash = batch.iter().flatten().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    });
    assert_eq!(format!("{hash:016x}"), "e08ff59e7083e027");
}

#[test]
fn the_schema_is_that_of_the_source() {
    let table = table(1, 1);
    let shown: Vec<String> = table
        .schema()
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.column_type))
        .collect();
    assert_eq!(
        shown.join(", "),
        "SALES_DATE DATE, STORE_ID NUMBER, PROD_ID NUMBER, REGULAR_QTY NUMBER, REGULAR_AMT NUMBER(38,2), \
         DISCOUNT_QTY NUMBER, DISCOUNT_AMT NUMBER(38,2), PROMO_QTY NUMBER, PROMO_AMT NUMBER(38,2)"
    );
    assert_eq!(Schema::new(table.schema().columns.clone()).as_ref(), Ok(table.schema()));
}
