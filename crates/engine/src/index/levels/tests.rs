//! Breaks each invariant of the levels by hand.

use super::*;
use crate::sort::codec::BytesCodec;
use crate::sort::fixture::with_server;
use crate::sort::key::KeyBuilder;
use crate::storage::tablespace::Purpose;
use plumb_types::{Column, ColumnType, Schema};
use plumb_units::{BlockNumber, FileId};

fn with_codec(body: impl FnOnce(&BytesCodec)) {
    let schema = Schema::new(vec![Column::nullable("A", ColumnType::NUMBER)]).expect("a schema");
    body(&BytesCodec(KeyBuilder::new(&[], &schema)));
}

/// Returns a record with a key of one byte.
fn record(key: u8) -> [u8; 11] {
    [1, 0, 9, 0, 0, 0, 0, 0, 0, 0, key]
}

fn with_target(body: impl FnOnce(&TreeTarget<'_>)) {
    with_server(|server| {
        let (session, access, lsn) = (server.session, &server.instance.access, server.lsn);
        body(&TreeTarget { session, access, tablespace: server.instance.tablespace(Purpose::Indx), lsn });
    });
}

#[test]
#[should_panic(expected = "I4: a leaf is where it is linked to")]
fn a_leaf_not_at_its_link_is_noticed() {
    with_target(|target| {
        with_codec(|codec| {
            let mut writer = LeafWriter::new(target, codec).expect("a writer");
            writer.linked = Some(BlockAddress { file: FileId(9), block: BlockNumber(9) });
            let _ = writer.push(&record(b'k'));
        });
    });
}

#[test]
#[should_panic(expected = "I2: a leaf is in order")]
fn a_leaf_out_of_order_is_not_written() {
    with_target(|target| {
        with_codec(|codec| {
            let mut writer = LeafWriter::new(target, codec).expect("a writer");
            writer.push(&record(b'b')).expect("pushed");
            writer.push(&record(b'a')).expect("pushed");
            let _ = writer.finish();
        });
    });
}

#[test]
#[should_panic(expected = "I5: a full branch with 1 children")]
fn a_branch_that_holds_one_child_is_noticed() {
    with_target(|target| {
        let mut writer = BranchWriter::new(target, 1).expect("a writer");
        for number in 1..3 {
            let child = BlockAddress { file: FileId(1), block: BlockNumber(number) };
            let _ = writer.push(&[number as u8; 1_500], RowId(1), child);
        }
    });
}
