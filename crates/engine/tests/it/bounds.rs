//! Files whose checksums are right and whose content no database has: refused in one line that
//! names the part, and never a panic or a hang. `cargo xtask bench fuzz` draws such files by the
//! seed; these are the kinds that it and others found.

use crate::support::{Rows, create_in, load, open_in};
use plumb_crash::{Base, HOME, LogKind};
use plumb_engine::storage::control::{Catalog, NAME_BYTES_MAX};
use plumb_engine::transaction::Transactions;
use plumb_engine::{EngineError, check};
use plumb_events::Role;
use plumb_io::Disk;
use plumb_io::sim::MemoryDisk;
use plumb_io::sim::power::Survivors;
use plumb_types::{Column, ColumnType, Schema};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: usize = 2048;
const ROWS: u8 = 7;
const LEAF: u8 = 4;
const SEGMENT: u8 = 6;

fn crc(bytes: &[u8]) -> [u8; 4] {
    crc_fast::crc32_iscsi(bytes).to_le_bytes()
}

fn path(name: &str) -> PathBuf {
    Path::new(HOME).join(name)
}

fn rewrite(disk: &Arc<MemoryDisk>, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let on = Disk::Memory(Arc::clone(disk));
    let mut bytes = on.read_small(&path(name)).expect("readable").expect("there");
    change(&mut bytes);
    on.replace(&path(name), &bytes).expect("written");
}

/// Opens the database and uses all that is in it.
fn used(disk: &Arc<MemoryDisk>) -> Result<(), EngineError> {
    let instance = LogKind::Plain.open(disk)?;
    let (tables, live) = {
        let catalog = instance.catalog();
        let tables: Vec<String> = catalog.tables.iter().map(|table| table.name.clone()).collect();
        let live: Vec<String> = catalog.live_tables.iter().map(|table| table.name.clone()).collect();
        (tables, live)
    };
    for table in tables {
        check::check_table(&instance, &table)?;
    }
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session)?;
    for table in live {
        transactions.check(&session, &table)?;
        transactions.connect(&session).begin().scan(&table, |_| Ok(()))?;
    }
    transactions.checkpoint(&session)
}

fn refused(disk: &Arc<MemoryDisk>, expected: &str, what: &str) {
    let error = used(disk).expect_err(what).to_string();
    assert!(error.contains(expected), "{what}: {error}");
    assert!(error.lines().count() == 1 && error.len() < 1500, "{what}: {error}");
}

/// A database with rows, some in pieces, and indexes; all of its blocks are on disk.
fn written() -> Arc<MemoryDisk> {
    let base = Base::filled(LogKind::Plain);
    let disk = base.copy();
    let instance = LogKind::Plain.open(&disk).expect("open");
    let session = instance.recorder.session(Role::User);
    Transactions::open(&instance, &session).expect("a log").checkpoint(&session).expect("written");
    drop(session);
    drop(instance);
    disk.restart(Survivors::All)
}

/// Changes the control file.
fn control(disk: &Arc<MemoryDisk>, change: impl FnOnce(&mut Value)) {
    rewrite(disk, "control.json", |bytes| {
        let text = String::from_utf8(bytes.clone()).expect("text");
        let mut document: Value =
            serde_json::from_str(text.split_once('\n').expect("two lines").1).expect("a document");
        change(&mut document);
        let document = document.to_string();
        *bytes = format!("{:08x}\n{document}", crc_fast::crc32_iscsi(document.as_bytes())).into_bytes();
    });
}

#[test]
fn every_field_of_the_control_file_has_a_range() {
    let original = written();
    let table = "/live_tables/0";
    let cases: [(&str, Value, &str); 28] = [
        ("/lsn_ceiling", json!(u64::MAX), "lsn_ceiling: found 18446744073709551615, expected 1 to"),
        ("/log_reaches", json!(u64::MAX), "log_reaches: found 18446744073709551615"),
        ("/tablespaces/0/block_size", json!(2047), "tablespace USERS: block_size: found 2047"),
        (
            "/tablespaces/1/block_size",
            json!(4096),
            "tablespace TEMP: block_size: found 4096, expected as USERS has",
        ),
        ("/tablespaces/0/extent_blocks", json!(u32::MAX), "extent_blocks: found 4294967295"),
        ("/tablespaces/0/extent_blocks", json!(0), "extent_blocks: found 0, expected 2 to"),
        ("/tablespaces/0/files", json!([]), "tablespace USERS: files: found 0"),
        ("/tablespaces/0/files/0/id", json!(2000), "its number: found 2000, expected 1 to 1023"),
        ("/tablespaces/1/files/0/id", json!(1), "found twice, expected once"),
        ("/tablespaces/0/files/0/bytes", json!(1_u64 << 63), "bytes: found 9223372036854775808"),
        ("/tablespaces/1/purpose", json!("users"), "tablespace USERS: found twice"),
        ("/tables/0/name", json!(""), "name of a table or an index"),
        ("/tables/0/schema/columns", json!([]), "at least one column"),
        ("/tables/0/row_count", json!(u64::MAX), "rows: found 18446744073709551615"),
        ("/tables/0/row_bytes", json!(u64::MAX), "bytes of rows: found"),
        ("/tables/0/column_statistics", json!([]), "column_statistics: found 0, expected 4;"),
        ("/tables/0/column_statistics/0/integers", json!([i64::MIN, i64::MAX]), "integer of a column"),
        ("/tables/0/column_statistics/0/bytes_max", json!(u32::MAX), "bytes_max of a column"),
        ("/tables/0/extents/0/u", json!(0), "blocks in use: found 0, expected 1 to"),
        ("/tables/0/extents/0/n", json!(0), "found 0 blocks, expected"),
        ("/tables/0/extents/0/b", json!(u32::MAX), "the extent at file"),
        ("/tables/0/extents/0/f", json!(999), "its file: found 999"),
        ("/tables/0/tablespace", json!("temp"), "its tablespace: found TEMP, expected one for tables"),
        ("/live_tables/0/extents", json!([]), "extents: found 0"),
        ("/live_tables/0/created", json!(u64::MAX), "created: found"),
        ("/live_indexes/0/columns/0/position", json!(u32::MAX), "column position: found 4294967295"),
        ("/live_indexes/0/columns", json!([]), "columns: found 0"),
        ("/live_indexes/0/table", json!("N".repeat(70_000)), "its table: found NNNN"),
    ];
    for (pointer, value, expected) in cases {
        let disk = original.restart(Survivors::All);
        control(&disk, |document| match document.pointer_mut(pointer) {
            Some(place) => *place = value,
            // What is usual is left out.
            None => {
                let (parent, field) = pointer.rsplit_once('/').expect("a field");
                document.pointer_mut(parent).expect(parent)[field] = value;
            }
        });
        refused(&disk, expected, pointer);
    }
    let disk = original.restart(Survivors::All);
    control(&disk, |document| {
        let extents =
            document.pointer_mut(&format!("{table}/extents")).expect("there").as_array_mut().expect("a list");
        extents.push(extents[0].clone());
    });
    refused(&disk, "found in two places, expected in one", "an extent twice");
}

/// Two megabytes of zeros were quoted.
#[test]
fn a_message_about_the_control_file_does_not_repeat_it() {
    let home = tempfile::tempdir().expect("a directory");
    drop(create_in(&home.path().join("db"), &[]));
    fs::write(home.path().join("db/control.json"), vec![0; 1 << 20]).expect("written");
    let error = Catalog::find(&home.path().join("db")).expect_err("damaged").to_string();
    assert!(error.contains("its checksum is") && error.len() < 600, "{} bytes", error.len());
}

#[test]
fn every_field_of_the_logs_control_block_has_a_range() {
    let original = written();
    for (at, width, value, expected) in [
        (32, 8, u64::MAX, "serial: found 18446744073709551615"),
        (40, 8, u64::MAX, "redo LSN: found"),
        (48, 8, 1 << 61, "low LSN: found"),
        (56, 8, 0, "sequence: found 0"),
        (64, 8, u64::MAX, "next transaction: found"),
        (72, 4, 0, "bytes of a log block: found 0, expected 512 to"),
        (72, 4, 513, "bytes of a log block: found 513, expected a power of two"),
        (76, 4, 65, "log files: found 65"),
        (80, 4, 3, "members of a log file: found 3, expected 1 to 2"),
        (80, 4, u64::from(u32::MAX), "members of a log file: found 4294967295"),
        (88, 8, u64::MAX, "bytes of a log file: found"),
    ] {
        let disk = original.restart(Survivors::All);
        rewrite(&disk, "redo.ctl", |bytes| {
            for copy in [0, 4096] {
                bytes[copy + at..copy + at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                let sum = crc(&bytes[copy + 4..copy + 128]);
                bytes[copy..copy + 4].copy_from_slice(&sum);
            }
        });
        refused(&disk, expected, expected);
    }
}

/// Changes the first block of a kind that has entries.
fn block(disk: &Arc<MemoryDisk>, kind: u8, change: impl Fn(&mut [u8])) {
    for name in ["users01.dbf", "indx01.dbf"] {
        let mut found = false;
        rewrite(disk, name, |bytes| {
            let is_meant = |block: &&mut [u8]| block[4] == kind && (kind == SEGMENT || block[12] > 1);
            if let Some(block) = bytes.chunks_exact_mut(BLOCK).skip(1).find(is_meant) {
                change(block);
                let sum = crc(&block[4..]);
                block[..4].copy_from_slice(&sum);
                found = true;
            }
        });
        if found {
            return;
        }
    }
    panic!("there is no block of kind {kind}");
}

#[test]
fn what_a_block_says_of_its_content_is_checked_before_it_is_used() {
    let original = written();
    let put = |at: usize, value: u16| {
        move |block: &mut [u8]| block[at..at + 2].copy_from_slice(&value.to_le_bytes())
    };
    let last = BLOCK - 2;
    let cases: [(u8, usize, u16, &str); 11] = [
        (ROWS, 12, u16::MAX, "size of the content"),
        (ROWS, 14, u16::MAX, "size of the content"),
        (ROWS, BLOCK - 4, 2040, "a row's place: found slot 0 at byte 2040"),
        (ROWS, BLOCK - 4, 3, "a row's place: found slot 0 at byte 3"),
        (ROWS, last, 3, "a row's place"),
        (LEAF, 12, u16::MAX, "size of the content"),
        (LEAF, last, 2040, "an entry's place: found entry 0 at byte 2040"),
        (LEAF, last - 2, 32, "an entry's place: found entry 1 at byte 32"),
        (LEAF, 24, 99, "the block that it leads to: found file 99"),
        (SEGMENT, 24, u16::MAX, "blocks in use: found 65535, expected 1 to"),
        (SEGMENT, 24, 0, "blocks in use: found 0, expected 1 to"),
    ];
    for (kind, at, value, expected) in cases {
        let disk = original.restart(Survivors::All);
        block(&disk, kind, put(at, value));
        refused(&disk, expected, &format!("kind {kind} byte {at} = {value}"));
    }
}

/// A statement took a row of fewer columns for one of its table, and its caller counted on all of
/// them.
#[test]
fn a_row_of_other_columns_than_its_table_is_none_of_it() {
    let disk = written();
    block(&disk, ROWS, |block| {
        let row = usize::from(u16::from_le_bytes([block[BLOCK - 4], block[BLOCK - 3]]));
        assert_eq!(block[row + 10], 4, "columns of the first row");
        block[row + 10] = 3;
    });
    refused(&disk, "it has 3 columns, expected 4", "a row of three columns");
}

#[test]
fn a_name_has_a_length() {
    let home = tempfile::tempdir().expect("a directory");
    let instance = create_in(&home.path().join("db"), &[]);
    let long = "n".repeat(NAME_BYTES_MAX + 1);
    let error = load(&instance, &long, &Rows::uniform(10, 1)).expect_err("too long").to_string();
    assert!(error.contains("has 129 bytes, and 128 are the most") && error.len() < 300, "{error}");
    let session = instance.recorder.session(Role::User);
    let transactions = Transactions::open(&instance, &session).expect("a log");
    let schema = Schema::new(vec![Column::nullable(long, ColumnType::NUMBER)]).expect("a column");
    let error = transactions.create_table(&session, "T", &schema, &[]).expect_err("too long").to_string();
    assert!(error.starts_with("the name of a column has 129 bytes"), "{error}");
}

/// Names had no limit before: what has one can be listed and read.
#[test]
fn a_longer_name_that_is_there_is_read() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("db");
    load(&create_in(&path, &[]), "t", &Rows::uniform(10, 1)).expect("loaded");
    let file = path.join("control.json");
    let text = fs::read_to_string(&file).expect("text");
    let long = "N".repeat(300);
    let document = text.split_once('\n').expect("two lines").1.replace("\"K\"", &format!("\"{long}\""));
    let sum = crc_fast::crc32_iscsi(document.as_bytes());
    fs::write(&file, format!("{sum:08x}\n{document}")).expect("written");
    let instance = open_in(&path).expect("a longer name is no damage");
    check::check_table(&instance, "t").expect("its rows are there");
    let names = instance.catalog().tables[0].schema.names();
    assert!(names.contains(&long), "{names}");
}
