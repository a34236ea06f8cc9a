//! Tests WordKey records against normalised keys: the same order, and the same bytes back.

use super::*;
use crate::index::block::{LeafBuilder, LeafView};
use crate::sort::key::KeyBuilder;
use crate::storage::block::Content;
use plumb_types::{Column, DateTime, Number, RowBatch, Schema, Value};
use proptest::prelude::*;

fn schema() -> Schema {
    Schema::new(vec![
        Column::nullable("SMALL", ColumnType::NUMBER),
        Column::nullable("SIGNED", ColumnType::NUMBER),
        Column::nullable("PRICE", ColumnType::NUMBER),
        Column::nullable("DAY", ColumnType::Date),
    ])
    .expect("a schema")
}

fn nullable(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 8 => value].boxed()
}

fn number(unscaled: i128, scale: i8) -> Value {
    Value::Number(Number::new(unscaled, scale).expect("small"))
}

fn row() -> impl Strategy<Value = Vec<Value>> {
    let day = |(day, hour)| {
        Value::Date(DateTime::new(2020, 1 + day / 28, 1 + day % 28, hour, 0, 0).expect("a date"))
    };
    let columns = (
        nullable((1i128..=2000).prop_map(|n| number(n, 0))),
        nullable((-500_000_000_000i128..=3_000_000_000).prop_map(|n| number(n, 0))),
        // 1e124 and more begin with FF, their negatives with 00.
        nullable(prop_oneof![
            4 => (-9_999i128..=99_999).prop_map(|n| number(n, 2)),
            1 => (-99i128..=99).prop_map(|n| number(n, -124)),
        ]),
        nullable((0u8..200, 0u8..24).prop_map(day)),
    );
    columns.prop_map(|(small, signed, price, day)| vec![small, signed, price, day])
}

/// Makes a table of these rows: its statistics, and one extent.
fn table(images: &[Vec<u8>]) -> Table {
    let schema = schema();
    let mut column_statistics = vec![ColumnStatistics::default(); schema.column_count()];
    for image in images {
        for ((value, statistics), column) in
            plumb_types::columns(image).zip(&mut column_statistics).zip(&schema.columns)
        {
            statistics.note(image, value, column.column_type);
        }
    }
    let extent = crate::storage::tablespace::Extent { file: 3, block: 100, blocks: 60_000 };
    Table {
        chained_row_count: 0,
        name: "T".to_string(),
        schema,
        tablespace: crate::storage::tablespace::Purpose::Users,
        row_count: images.len() as u64,
        row_bytes: 0,
        column_statistics,
        extents: vec![crate::storage::control::SegmentExtent { extent, used: 60_000 }],
        lsns: crate::storage::block::LsnRange::ANY,
    }
}

fn image(values: &[Value]) -> Vec<u8> {
    let mut batch = RowBatch::new();
    batch.begin_row(values.len() as u8);
    values.iter().for_each(|value| batch.push_value(value));
    batch.end_row();
    batch.row(0).to_vec()
}

fn row_id(number: u32) -> RowId {
    RowId::new(
        BlockAddress { file: FileId(1 + (number % 3) as u16), block: BlockNumber(100 + number % 59_000) },
        (number % 400) as u16,
    )
}

/// Normalised key and row id of a row, as an index has them.
type Entry = (Vec<u8>, RowId);

fn check<W: Word>(layout: WordLayout, images: &[Vec<u8>], keys: &KeyBuilder) {
    let codec = WordCodec::<W>::new(layout);
    let mut records = Vec::<(Vec<u8>, Entry)>::new();
    for (number, image) in images.iter().enumerate() {
        let (mut record, mut key) = (Vec::new(), Vec::new());
        let row = row_id(number as u32);
        // The bytes after a row in its block must not matter.
        let mut followed = image.clone();
        followed.extend_from_slice(&[0xAB; 9]);
        codec.encode(&followed, row, &mut record).expect("a row of the table");
        keys.build(image, &mut key).expect("a row");
        records.push((record, (key, row)));
    }
    records.sort_by(|one, two| WordKey::<W>::compare(&one.0, &two.0));
    let expected = |one: &Entry, two: &Entry| one.0.cmp(&two.0).then(one.1.cmp(&two.1));
    assert!(
        records.is_sorted_by(|one, two| expected(&one.1, &two.1).is_le()),
        "the order is that of the keys"
    );
    let (mut last, mut leaf, mut block) = (LastKey::default(), LeafBuilder::new(), vec![0xEE; 16 * 1024]);
    for (record, (key, row)) in &records {
        let mut room = [0; 8];
        let mut first = LastKey::default();
        let (found, found_row) = codec.decode(record, &mut first);
        assert_eq!((found.bytes(&mut room), found_row), (key.as_slice(), *row));
        let (found, found_row) = codec.decode(record, &mut last);
        assert_eq!((found.bytes(&mut room), found_row), (key.as_slice(), *row));
        assert!(leaf.push_key(&mut block, found, found_row));
    }
    let content: Content = leaf.finish(&mut block, None);
    let view = LeafView::new(&block, content).expect("a leaf");
    for (slot, (_, (key, row))) in records.iter().enumerate() {
        let entry = view.entry(slot).expect("an entry");
        assert_eq!((entry.key, entry.row), (key.as_slice(), *row));
    }
}

proptest! {
    #[test]
    fn packed_records_order_and_read_back_as_normalised_keys(
        rows in proptest::collection::vec(row(), 1..60),
        columns in proptest::collection::vec((0usize..4, any::<bool>()), 1..4),
    ) {
        let columns: Vec<IndexColumn> =
            columns.into_iter().map(|(position, descending)| IndexColumn { position, descending }).collect();
        let images: Vec<Vec<u8>> = rows.iter().map(|row| image(row)).collect();
        let table = table(&images);
        let keys = KeyBuilder::new(&columns, &table.schema);
        let Some(layout) = WordLayout::new(&columns, &table, BlockSize::ALL[2]) else {
            return Ok(());
        };
        if layout.fits::<u64>() {
            check::<u64>(layout.clone(), &images, &keys);
        }
        check::<u128>(layout, &images, &keys);
    }
}

fn columns(positions: &[usize]) -> Vec<IndexColumn> {
    positions.iter().map(|position| IndexColumn { position: *position, descending: false }).collect()
}

fn bits(rows: &[[Value; 4]], positions: &[usize]) -> Option<u32> {
    let images: Vec<Vec<u8>> = rows.iter().map(|row| image(row)).collect();
    WordLayout::new(&columns(positions), &table(&images), BlockSize::ALL[2]).map(|layout| layout.bits())
}

#[test]
fn a_column_takes_the_bits_its_values_need() {
    let row = |small: i128, signed: Value| [number(small, 0), signed, number(1, 2), Value::Null];
    let rows = [row(1, number(-1, 0)), row(2000, number(6, 0)), row(7, Value::Null)];
    // File 3, blocks to 60,099, and 8,168 / (3 + 4 + 2) rows in a block: 2 + 16 + 10 bits.
    let row_bits = 28;
    assert_eq!(bits(&rows, &[0]), Some(row_bits + 12));
    // -1 to 6 are eight values, and NULL is a ninth.
    assert_eq!(bits(&rows, &[0, 1]), Some(row_bits + 12 + 4));
    // 0.01 is two bytes; a column without any value takes one.
    assert_eq!(bits(&rows, &[2]), Some(row_bits + 16));
    assert_eq!(bits(&rows, &[3]), Some(row_bits + 8));
}

#[test]
fn what_does_not_fit_a_word_is_not_packed() {
    let wide = number(1_234_567_890_123_456_789, 2);
    let rows = [[number(1, 0), wide, Value::Null, Value::Null]];
    assert_eq!(bits(&rows, &[1]), None);
    let day = Value::Date(DateTime::new(2020, 1, 1, 0, 0, 0).expect("a date"));
    let rows = [[number(1, 0), number(1, 0), number(1, 0), day]];
    assert_eq!(bits(&rows, &[3]), Some(28 + 56));
    assert_eq!(bits(&rows, &[3, 3]), None);
    assert_eq!(bits(&rows, &[0; 17]), None);
}

#[test]
fn a_value_that_the_statistics_deny_is_refused() {
    let known = image(&[number(5, 0), Value::Null, Value::Null, Value::Null]);
    let layout = WordLayout::new(&columns(&[0]), &table(&[known]), BlockSize::ALL[2]).expect("integers");
    let codec = WordCodec::<u64>::new(layout);
    for other in [number(4, 0), number(6, 0), number(5, 1)] {
        let row = image(&[other, Value::Null, Value::Null, Value::Null]);
        let refused = codec.encode(&row, row_id(1), &mut Vec::new());
        let error = refused.expect_err("not a value of the table").to_string();
        assert_eq!(error, "column 0 has a value outside the table's statistics; load the table again");
    }
}
