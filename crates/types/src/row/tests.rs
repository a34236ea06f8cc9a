//! Row images: round trips and corrupt bytes.

use super::*;
use crate::{DateTime, RowBatch};
use proptest::prelude::*;

/// The columns a row yields, as text.
fn check(row: &[u8], expect: &str) {
    let values = columns(row).map(|value| value.map_or("null".to_owned(), |value| format!("{value:?}")));
    let fault = columns(row).finish().err().map(|error| error.to_string());
    let items: Vec<String> = values.chain(fault).collect();
    assert_eq!(items.join("; "), expect, "{row:?}");
}

#[test]
fn the_image_is_header_lengths_and_values() {
    let mut batch = RowBatch::default();
    batch.begin_row(5);
    batch.push_number(1234, 2);
    batch.push_null();
    batch.push_date(&DateTime::date(1996, 3, 31).unwrap());
    batch.push_text("ab");
    batch.push_text("");
    batch.end_row();
    let row = batch.iter().next().unwrap();
    assert_eq!(row, [0x2C, 0, 5, 3, 0xC1, 13, 35, 0xFF, 7, 119, 196, 3, 31, 1, 1, 1, 2, b'a', b'b', 0xFF]);
    check(row, "[193, 13, 35]; null; [119, 196, 3, 31, 1, 1, 1]; [97, 98]; null");
    assert_eq!(column_at(row, 3), Ok(Some(&b"ab"[..])));
    assert_eq!(column_at(row, 4), Ok(None));
    assert_eq!(column_at(row, 5), Err(RowError::NoSuchColumn { index: 5, count: 5 }));
}

#[test]
fn values_above_250_bytes_have_a_long_length() {
    for (length, head) in [(250, vec![250]), (251, vec![0xFE, 251, 0]), (65_535, vec![0xFE, 0xFF, 0xFF])] {
        let value = vec![b'x'; length];
        let mut batch = RowBatch::default();
        batch.begin_row(1);
        batch.push_bytes(&value);
        batch.end_row();
        let row = batch.row(0);
        assert_eq!(row[3..3 + head.len()], head);
        assert_eq!(column_at(row, 0), Ok(Some(&value[..])));
    }
}

#[test]
fn corrupt_rows_yield_one_error_and_end() {
    check(&[], "a row of 0 bytes is shorter than its header of 3");
    check(&[0x2C, 0], "a row of 2 bytes is shorter than its header of 3");
    check(&[0x2C, 0, 0], "");
    check(&[0x2C, 0, 1], "column 0 of the row starts at byte 3 and ends past its last, 3");
    check(&[0x2C, 0, 2, 1, 5, 3, 1], "[5]; column 1 of the row starts at byte 5 and ends past its last, 7");
    check(&[0x2C, 0, 1, 0], "column 0 of the row has the impossible length mark 0x00 at byte 3");
    check(&[0x2C, 0, 1, 0xFC], "column 0 of the row has the impossible length mark 0xfc at byte 3");
    check(&[0x2C, 0, 1, 0xFE, 9, 0], "column 0 of the row has the impossible length mark 0xfe at byte 3");
    check(&[0x2C, 0, 1, 0xFE, 9], "column 0 of the row starts at byte 3 and ends past its last, 5");
    check(&[0x2C, 0, 1, 0xFF, 1, 1], "null; the row goes on for 2 bytes after its last column");
}

#[test]
fn an_abandoned_row_leaves_no_trace() {
    let mut batch = RowBatch::default();
    batch.begin_row(1);
    batch.push_number(1, 0);
    batch.end_row();
    batch.begin_row(2);
    batch.push_number(2, 0);
    batch.abandon_row();
    batch.begin_row(1);
    batch.push_null();
    batch.end_row();
    assert_eq!(batch.len(), 2);
    check(batch.row(1), "null");
    batch.clear();
    assert!(batch.is_empty());
    assert_eq!(batch.byte_count(), 0);
}

#[test]
#[should_panic(expected = "1 columns of the row are missing")]
fn a_row_with_a_column_missing_is_not_ended() {
    let mut batch = RowBatch::default();
    batch.begin_row(2);
    batch.push_null();
    batch.end_row();
}

#[test]
#[should_panic(expected = "more columns than the row was begun with")]
fn a_row_takes_no_more_columns_than_announced() {
    let mut batch = RowBatch::default();
    batch.begin_row(1);
    batch.push_null();
    batch.push_number(1, 0);
}

fn any_value() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![
        Just(None),
        proptest::collection::vec(any::<u8>(), 1..8).prop_map(Some),
        proptest::collection::vec(any::<u8>(), 240..260).prop_map(Some),
    ]
}

proptest! {
    #[test]
    fn what_is_pushed_is_read(rows in proptest::collection::vec(proptest::collection::vec(any_value(), 0..12), 0..6)) {
        let mut batch = RowBatch::default();
        for row in &rows {
            batch.begin_row(row.len() as u8);
            for value in row {
                match value {
                    None => batch.push_null(),
                    Some(value) => batch.push_bytes(value),
                }
            }
            batch.end_row();
        }
        prop_assert_eq!(batch.len(), rows.len());
        for (image, row) in batch.iter().zip(&rows) {
            let found: Vec<Option<&[u8]>> = columns(image).collect();
            prop_assert_eq!(columns(image).finish(), Ok(row.len()));
            let expected: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
            prop_assert_eq!(&found, &expected);
            for (index, value) in expected.iter().enumerate() {
                prop_assert_eq!(column_at(image, index), Ok(*value));
            }
            for value in found.into_iter().flatten() {
                let word = leading_word(image, value).to_be_bytes();
                let length = value.len().min(8);
                prop_assert_eq!(&word[..length], &value[..length]);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic(row in proptest::collection::vec(any::<u8>(), 0..40), few in 0_u8..9) {
        let mut row = row;
        if let Some(count) = row.get_mut(2) {
            *count %= few + 1;
        }
        let values: Vec<_> = columns(&row).collect();
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(column_at(&row, index), Ok(*value));
        }
        match columns(&row).finish() {
            Ok(count) => prop_assert_eq!(count, values.len()),
            Err(_) => prop_assert!(column_at(&row, values.len()).is_err()),
        }
    }
}
