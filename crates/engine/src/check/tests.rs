//! Wrong tables and indexes, made by hand, and the error that the check reports for each.

use super::*;
use crate::index::block::trimmed;
use crate::index::btree::content_of;
use crate::index::btree::tests::{HandWritten, Level, instance, write_index};
use crate::storage::block::{BlockKind, seal};
use crate::storage::control::IndexColumn;
use crate::storage::tablespace::Purpose;
use crate::table::load;
use plumb_events::{Phase, Role};
use plumb_io::{Arena, Operation, Request};
use plumb_types::{Column, ColumnType, Number, RowBatch, RowSource, Schema, SourceError, Value};
use plumb_units::{BlockAddress, RowId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const KEY: [IndexColumn; 1] = [IndexColumn { position: 1, descending: false }];

/// Rows of a number, a number that repeats and is sometimes NULL, and a text.
struct Rows {
    schema: Schema,
    left: AtomicU64,
}

impl Rows {
    fn new(count: u64) -> Rows {
        let columns = vec![
            Column::required("ID", ColumnType::NUMBER),
            Column::nullable("STORE", ColumnType::NUMBER),
            Column::nullable("NOTE", ColumnType::Text { max_bytes: 30 }),
        ];
        Rows { schema: Schema::new(columns).expect("a schema"), left: AtomicU64::new(count) }
    }
}

impl RowSource for Rows {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        // All in one batch, so that the same server writes them in every test.
        let count = self.left.swap(0, Relaxed);
        for number in 0..count {
            batch.begin_row(3);
            batch.push_value(&Value::Number(Number::new(i128::from(number), 0).expect("small")));
            match number % 11 {
                0 => batch.push_value(&Value::Null),
                _ => batch
                    .push_value(&Value::Number(Number::new(i128::from(number * 7 % 90), 0).expect("small"))),
            }
            batch.push_value(&Value::Text("a note".repeat(1 + number as usize % 4)));
            batch.end_row();
        }
        Ok(count > 0)
    }

    fn row_count_hint(&self) -> Option<u64> {
        None
    }
}

/// A table of `count` rows with the entries of a correct index on STORE.
struct Fixture {
    instance: Instance,
    session: Session,
    entries: Vec<(Vec<u8>, RowId)>,
}

impl Fixture {
    fn new(count: u64) -> Fixture {
        let instance = instance();
        load::load(&instance, "sales", &Rows::new(count)).expect("loaded");
        let session = instance.recorder.session(Role::User);
        let table = instance.catalog().table("sales").expect("there").clone();
        let key = KeyBuilder::new(&KEY, &table.schema);
        let mut blocks = crate::cache::CacheReader::new(&session, instance.caches());
        let mut entries = Vec::new();
        for extent in &table.extents {
            for address in (0..extent.used).map(|index| extent.extent.address(index)) {
                let block = blocks.get(Purpose::Users, address, table.expected()).expect("read");
                let content = content_of(&block);
                for slot in 0..content.entries {
                    let mut bytes = Vec::new();
                    let row = crate::table::heap::row_at(&block, content, slot).expect("a row");
                    key.build(row, &mut bytes).expect("a key");
                    entries.push((bytes, RowId::new(address, slot)));
                }
            }
        }
        entries.sort();
        drop(blocks);
        Fixture { instance, session, entries }
    }

    fn index(&self, name: &str, hand: &HandWritten<'_>) {
        let index = write_index(&self.session, &self.instance, (name, "SALES"), &KEY, hand);
        self.instance.change_catalog(&self.session, |catalog| catalog.indexes.push(index)).expect("entered");
    }

    fn complaint(&self) -> String {
        match check_table(&self.instance, "sales") {
            Ok(lines) => format!("nothing wrong: {lines:?}"),
            Err(error) => error.to_string(),
        }
    }

    /// Returns the complaint about an index whose entries were changed.
    fn complaint_about(change: impl Fn(&mut Vec<(Vec<u8>, RowId)>)) -> String {
        let fixture = Fixture::new(2000);
        let mut entries = fixture.entries.clone();
        change(&mut entries);
        fixture.index("I", &HandWritten::right(entries));
        fixture.complaint()
    }

    /// Changes bytes of a block behind the engine's back.
    fn overwrite(&self, purpose: Purpose, address: BlockAddress, change: impl Fn(&mut [u8])) {
        let tablespace = self.instance.tablespace(purpose);
        let bytes = tablespace.block_size.bytes();
        let mut channel = self.instance.access.method.channel(&[]).expect("a channel");
        let (_, mut buffers) = Arena::buffers(bytes, 1).expect("memory");
        let mut buffer = buffers.remove(0);
        for operation in [Operation::Read, Operation::Write] {
            if operation == Operation::Write {
                change(&mut buffer);
            }
            let request = Request {
                operation,
                file: Arc::clone(&tablespace.file(address.file).expect("usable").file),
                offset: address.block.byte_offset(tablespace.block_size),
                buffer,
                range: 0..bytes,
                event: plumb_events::Event::DirectPathRead,
                stream: plumb_events::IoStream::Probe,
                tag: 0,
            };
            channel.submit(&self.session, request).expect("submitted");
            buffer = channel.wait(&self.session, plumb_events::Event::DirectPathRead).expect("moved").buffer;
        }
    }
}

#[test]
fn a_right_table_with_its_indexes_passes_with_figures() {
    let fixture = Fixture::new(3000);
    fixture.index("I_ONE", &HandWritten::right(fixture.entries.clone()));
    let mut wide = HandWritten::right(fixture.entries.clone());
    wide.entries_of_a_leaf = 100;
    wide.children_of_a_branch = 100;
    fixture.index("I_TWO", &wide);
    let lines = check_table(&fixture.instance, "SALES").expect("nothing wrong");
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let of_index = [
        "keys in order",
        "entries = rows",
        "each row id once",
        "keys equal rows",
        "branch levels",
        "look-ups",
    ];
    let expected: Vec<&str> =
        ["block checksums", "rows readable"].into_iter().chain(of_index).chain(of_index).collect();
    assert_eq!(names, expected);
    assert!(lines[0].detail.ends_with("30 leaves and 1 branches of I_TWO"), "{}", lines[0].detail);
    assert_eq!(lines[1].detail, "3,000 rows of 3 columns, as many as the catalog says");
    assert_eq!(lines[2].detail, "I_ONE: 3,000 entries in 600 leaves");
    assert_eq!(lines[4].detail, "I_ONE: bitmaps of 3,000 bits (376 B)");
    assert_eq!(lines[12].detail, "I_TWO: height 2, 1 branches");
    assert_eq!(lines[5].detail.replace("I_ONE", ""), lines[11].detail.replace("I_TWO", ""));
    assert!(lines[7].detail.starts_with("I_ONE: 300 keys, and a range of "), "{}", lines[7].detail);
    let phases = fixture.instance.recorder.phases();
    assert!(phases.iter().any(|phase| phase.phase == Phase::Verify && phase.rows == 3000));
}

#[test]
fn an_empty_table_passes_with_an_empty_index() {
    let fixture = Fixture::new(0);
    fixture.index("I", &HandWritten::right(Vec::new()));
    let lines = check_table(&fixture.instance, "sales").expect("nothing wrong");
    assert_eq!(lines.len(), 8);
}

#[test]
fn a_table_without_that_name_is_missing() {
    let fixture = Fixture::new(1);
    let error = check_table(&fixture.instance, "sails").expect_err("missing");
    assert_eq!(error.to_string(), "there is no table sails in this database; it has SALES");
}

#[test]
fn swapped_entries_are_found() {
    // Within a leaf, from leaf to leaf, and between extents, which other servers read.
    for at in [702, 704, 127 * 5 - 1, 255 * 5 - 1] {
        let text = Fixture::complaint_about(|entries| entries.swap(at, at + 1));
        assert!(text.starts_with("index I, leaf file "), "{text}");
        assert!(
            text.contains("keys in order, entry") && text.contains("expected more than the entry before"),
            "{text}"
        );
    }
}

#[test]
fn a_missing_entry_is_found_with_its_row() {
    let fixture = Fixture::new(2000);
    let (_, row) = fixture.entries[1234];
    let text = Fixture::complaint_about(|entries| drop(entries.remove(1234)));
    let expected =
        format!("index I: entries = rows: found 1,999, with no entry for the row at {row}, expected 2,000");
    assert_eq!(text, expected);
}

#[test]
fn a_row_id_that_comes_twice_is_found() {
    // The key of entry 700 with another row, still in order. Entry 740 has another key and is in
    // the same extent, which one server reads; entry 1500 is in another extent.
    for other in [740, 1500] {
        let text = Fixture::complaint_about(|entries| {
            let twice = entries[other].clone();
            assert_ne!(entries[700].0, twice.0);
            entries[700].1 = twice.1;
            entries.sort();
        });
        assert!(text.starts_with("index I: leaf file "), "{text}");
        assert!(text.contains(": each row id once: found key ["), "{text}");
        assert!(text.ends_with("], which the row has"), "{text}");
    }
}

#[test]
fn a_row_id_of_no_row_is_found() {
    for row in
        [RowId(0), RowId(u64::MAX - 1), RowId(1 << 48 | 1 << 16 | 60_000), RowId(1 << 48 | 90_000 << 16)]
    {
        let text = Fixture::complaint_about(|entries| {
            entries[700].1 = row;
            entries.sort();
        });
        assert!(text.contains("row id of entry") && text.contains("expected a row of table SALES"), "{text}");
    }
}

#[test]
fn a_key_unlike_its_row_is_reported_with_entry() {
    let text = Fixture::complaint_about(|entries| {
        let key = &mut entries[1000].0;
        *key = trimmed(&[&key[..], &[1]].concat()).to_vec();
        entries.sort();
    });
    assert!(
        text.starts_with("index I: leaf file ") && text.contains("keys equal rows: found key ["),
        "{text}"
    );
    assert!(text.contains("01] of the row at file 1") && text.contains("], which the row has"), "{text}");
}

#[test]
fn two_rows_that_exchanged_their_keys_are_found() {
    let text = Fixture::complaint_about(|entries| {
        let (one, two) = (entries[300].1, entries[1700].1);
        entries[300].1 = two;
        entries[1700].1 = one;
        entries.sort();
    });
    assert!(text.contains("keys equal rows: found key ["), "{text}");
}

#[test]
fn a_broken_next_pointer_is_found() {
    let fixture = Fixture::new(1000);
    let skips_one = |number: usize, block: &mut [u8]| {
        if number == 7 {
            block[28] += 1;
        }
    };
    let mut hand = HandWritten::right(fixture.entries.clone());
    hand.tamper = &skips_one;
    fixture.index("I", &hand);
    let text = fixture.complaint();
    assert!(text.contains("next leaf: found file ") && text.contains("block 10, expected file"), "{text}");
}

#[test]
fn a_separator_that_is_not_the_first_entry_is_found() {
    let fixture = Fixture::new(1000);
    let bend = |level: &mut Level| {
        let middle = level.len() / 2;
        level[middle].1.0 += 1;
    };
    let mut hand = HandWritten::right(fixture.entries.clone());
    hand.bend = &bend;
    fixture.index("I", &hand);
    let text = fixture.complaint();
    assert!(text.contains("index I: separator of file") && text.contains("the first entry there"), "{text}");
}

#[test]
fn children_in_the_wrong_order_are_found() {
    let fixture = Fixture::new(1000);
    let bend = |level: &mut Level| {
        if level.len() > 100 {
            let other = level[60].2;
            level[60].2 = level[61].2;
            level[61].2 = other;
        }
    };
    let mut hand = HandWritten::right(fixture.entries.clone());
    hand.bend = &bend;
    fixture.index("I", &hand);
    let text = fixture.complaint();
    assert!(text.contains("index I: leaves in order from the root: found leaf file"), "{text}");
}

#[test]
fn a_flipped_bit_is_found_in_every_kind_of_block() {
    for (purpose, pick) in [(Purpose::Users, 0), (Purpose::Indx, 0), (Purpose::Indx, 1)] {
        let fixture = Fixture::new(1000);
        fixture.index("I", &HandWritten::right(fixture.entries.clone()));
        let extent = {
            let catalog = fixture.instance.catalog();
            match (purpose, pick) {
                (Purpose::Users, _) => catalog.tables[0].extents[0],
                (_, 0) => catalog.indexes[0].leaves[0],
                _ => catalog.indexes[0].branches[0],
            }
        };
        let address = extent.extent.address(extent.used / 2);
        fixture.overwrite(purpose, address, |block| block[100] ^= 4);
        let text = fixture.complaint();
        assert!(text.contains(&format!("({address}) is corrupt: checksum: found 0x")), "{text}");
    }
}

#[test]
fn a_row_that_breaks_off_is_found() {
    let fixture = Fixture::new(1000);
    let extent = fixture.instance.catalog().tables[0].extents[0];
    let address = extent.extent.address(3);
    fixture.overwrite(Purpose::Users, address, |block| {
        // The column count of the first row, in a block that is otherwise sound.
        block[26] += 1;
        let content = content_of(block);
        let lsn = plumb_units::Lsn(u64::from(block[16]));
        seal(block, BlockKind::Table, address, lsn, content);
    });
    let text = fixture.complaint();
    assert!(text.starts_with(&format!("row at {address} slot 0 cannot be read: column 3")), "{text}");
}

#[test]
fn a_count_that_is_not_the_catalogs_is_found() {
    let fixture = Fixture::new(500);
    fixture
        .instance
        .change_catalog(&fixture.session, |catalog| catalog.tables[0].row_count += 1)
        .expect("changed");
    assert_eq!(fixture.complaint(), "table SALES: rows: found 500, expected 501, as the catalog says");
}
