//! Normalised keys: bytes whose order is the order of the rows.
//!
//! A key is its columns' stored bytes, one after the other. NUMBER and DATE are stored so that
//! `memcmp` orders them; this adds the rules for several columns:
//!
//! - after each column a terminator `00`, so that a value that is a prefix of another sorts first
//!   before any next column. Stored NUMBERs and DATEs have no zero byte after their first; in text
//!   `00` becomes `01 01` and `01` becomes `01 02`.
//! - a descending column has its bytes and its terminator complemented.
//! - NULL is `FF FF`, above every value, complemented or not: a NUMBER from 1e124 on begins with
//!   `FF` too, but its digits are smaller. NULLs come last, descending or not. (An empty text is
//!   NULL, so no complemented value is `FF`.)
//! - trailing zero bytes are cut off. The encoding before that is prefix-free, so a
//!   comparison that takes the missing bytes as zeros is still right. So is plain `memcmp`
//!   with the shorter key first.
//!
//! An index stores this key. Most keys of numbers and dates pass through the
//! sort in fewer bits: [`word`](super::word).

use crate::storage::control::IndexColumn;
use plumb_types::{ColumnType, RowError, Schema, column_at};

const TERMINATOR: u8 = 0x00;
const NULL: [u8; 2] = [0xFF; 2];
const ESCAPE: u8 = 0x01;

/// Makes the keys of an index from rows.
#[derive(Debug, Clone)]
pub struct KeyBuilder {
    columns: Vec<KeyColumn>,
}

#[derive(Debug, Clone, Copy)]
struct KeyColumn {
    position: usize,
    descending: bool,
    text: bool,
}

impl KeyBuilder {
    /// Makes a builder for these columns of a table.
    ///
    /// # Panics
    /// If a column is not in the schema.
    pub fn new(columns: &[IndexColumn], schema: &Schema) -> KeyBuilder {
        let key_column = |column: &IndexColumn| KeyColumn {
            position: column.position,
            descending: column.descending,
            text: matches!(schema.columns[column.position].column_type, ColumnType::Text { .. }),
        };
        KeyBuilder { columns: columns.iter().map(key_column).collect() }
    }

    /// Returns the positions of its columns in a row.
    pub fn positions(&self) -> Vec<usize> {
        self.columns.iter().map(|column| column.position).collect()
    }

    /// Replaces `key` by the key of a row.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub fn build(&self, row: &[u8], key: &mut Vec<u8>) -> Result<(), RowError> {
        key.clear();
        self.append(row, key)
    }

    /// Appends the key of a row.
    ///
    /// # Errors
    /// If the row cannot be read.
    pub fn append(&self, row: &[u8], key: &mut Vec<u8>) -> Result<(), RowError> {
        let first = key.len();
        for column in &self.columns {
            let start = key.len();
            match column_at(row, column.position)? {
                None => key.extend_from_slice(&NULL),
                Some(value) => {
                    append(value, column.text, key);
                    key.push(TERMINATOR);
                    if column.descending {
                        key[start..].iter_mut().for_each(|byte| *byte = !*byte);
                    }
                }
            }
        }
        while key.len() > first && key.last() == Some(&0) {
            key.pop();
        }
        Ok(())
    }
}

fn append(value: &[u8], text: bool, key: &mut Vec<u8>) {
    // Takes the minimum over all bytes rather than stopping at the first small one: without an
    // early exit the loop is a few vector instructions.
    if !text || value.iter().fold(u8::MAX, |least, byte| least.min(*byte)) > ESCAPE {
        key.extend_from_slice(value);
        return;
    }
    for byte in value {
        match *byte {
            0 => key.extend_from_slice(&[ESCAPE, 1]),
            ESCAPE => key.extend_from_slice(&[ESCAPE, 2]),
            other => key.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_types::{Column, Number, RowBatch, Value};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn schema() -> Schema {
        Schema::new(vec![
            Column::nullable("A", ColumnType::NUMBER),
            Column::nullable("B", ColumnType::NUMBER),
            Column::nullable("T", ColumnType::Text { max_bytes: 40 }),
        ])
        .expect("a schema")
    }

    fn number() -> impl Strategy<Value = Value> {
        prop_oneof![
            1 => Just(Value::Null),
            8 => (-200_000i128..200_000, 0i8..3).prop_map(|(n, s)| Value::Number(Number::new(n, s).expect("small"))),
            // 1e124 and more begin with FF, their negatives with 00.
            2 => (-99i128..=99, -124i8..=-122).prop_map(|(n, s)| Value::Number(Number::new(n, s).expect("large"))),
        ]
    }

    fn text() -> impl Strategy<Value = Value> {
        let byte = prop_oneof![Just('\0'), Just('\u{1}'), Just('\u{2}'), Just('a'), Just('b'), Just('é')];
        proptest::collection::vec(byte, 0..6).prop_map(|chars| match chars.is_empty() {
            true => Value::Null,
            false => Value::Text(chars.into_iter().collect()),
        })
    }

    fn row() -> impl Strategy<Value = Vec<Value>> {
        (number(), number(), text()).prop_map(|(a, b, t)| vec![a, b, t])
    }

    fn image(values: &[Value]) -> Vec<u8> {
        let mut batch = RowBatch::new();
        batch.begin_row(values.len() as u8);
        values.iter().for_each(|value| batch.push_value(value));
        batch.end_row();
        batch.row(0).to_vec()
    }

    /// Compares two rows by their values, as the key must.
    fn expected(columns: &[IndexColumn], one: &[Value], two: &[Value]) -> Ordering {
        for column in columns {
            let (a, b) = (&one[column.position], &two[column.position]);
            let order = match (a.is_null(), b.is_null()) {
                (false, false) if column.descending => b.cmp(a),
                _ => a.cmp(b),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }

    proptest! {
        #[test]
        fn keys_order_as_their_rows_do(
            one in row(), two in row(),
            columns in proptest::collection::vec((0usize..3, any::<bool>()), 1..4),
        ) {
            let columns: Vec<IndexColumn> = columns.into_iter()
                .map(|(position, descending)| IndexColumn { position, descending }).collect();
            let builder = KeyBuilder::new(&columns, &schema());
            let (mut a, mut b) = (Vec::new(), Vec::new());
            builder.build(&image(&one), &mut a).expect("a row");
            builder.build(&image(&two), &mut b).expect("a row");
            prop_assert_eq!(a.cmp(&b), expected(&columns, &one, &two), "{:02x?} {:02x?}", a, b);
            prop_assert_ne!(a.last(), Some(&0));
        }
    }
}
