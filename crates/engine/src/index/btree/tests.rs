//! Look-ups in small trees made by hand, with duplicates over several leaves.

use super::*;
use crate::Instance;
use crate::index::block::{BranchBuilder, LeafBuilder};
use crate::instance::{InitialSizes, Layout};
use crate::settings::Settings;
use crate::storage::block::LsnRange;
use crate::storage::control::{IndexColumn, SegmentExtent};
use crate::storage::writer::{SegmentWriter, WriterOptions};
use plumb_events::{Cancel, Event, IoStream, Role, Session};
use plumb_units::{BlockNumber, Bytes, FileId, Lsn};
use std::path::PathBuf;

/// Creates a small database in memory.
pub(crate) fn instance() -> Instance {
    let mut settings = Settings::default();
    for (name, value) in
        [("io_method", "null"), ("extent_size", "256K"), ("db_block_size", "2K"), ("parallel_degree", "2")]
    {
        settings.set(name, value, "test").expect("in range");
    }
    let sizes = InitialSizes { users: Bytes(1 << 20), temp: Bytes(1 << 18), indx: Bytes(1 << 20) };
    Instance::create(&Layout::in_one(PathBuf::from("/null")), settings, sizes, Cancel::default())
        .expect("created")
}

/// Blocks of one level of a tree, each with its first entry.
pub(crate) type Level = Vec<(Vec<u8>, RowId, BlockAddress)>;

/// An index to write by hand, and the damage to do.
pub(crate) struct HandWritten<'t> {
    pub(crate) entries: Vec<(Vec<u8>, RowId)>,
    /// Few, to get several levels from few entries.
    pub(crate) entries_of_a_leaf: usize,
    pub(crate) children_of_a_branch: usize,
    /// Changes leaf n before it is sealed.
    pub(crate) tamper: &'t dyn Fn(usize, &mut [u8]),
    /// Changes separators before they are written.
    pub(crate) bend: &'t dyn Fn(&mut Level),
}

impl HandWritten<'_> {
    pub(crate) fn right(entries: Vec<(Vec<u8>, RowId)>) -> HandWritten<'static> {
        HandWritten {
            entries,
            entries_of_a_leaf: 5,
            children_of_a_branch: 3,
            tamper: &|_, _| (),
            bend: &|_| (),
        }
    }
}

fn writer<'a>(session: &'a Session, instance: &'a Instance, kind: BlockKind) -> SegmentWriter<'a> {
    let options = WriterOptions {
        kind,
        lsn: Lsn(1),
        buffer_bytes: 16 << 10,
        buffer_count: 2,
        event: Event::DirectPathWrite,
        stream: IoStream::IndexWrites,
    };
    SegmentWriter::new(session, &instance.access, instance.tablespace(Purpose::Indx), options)
        .expect("a writer")
}

fn write_leaves(
    session: &Session,
    instance: &Instance,
    hand: &HandWritten<'_>,
) -> (Level, Vec<SegmentExtent>) {
    let mut writer = writer(session, instance, BlockKind::Leaf);
    let mut level = Vec::new();
    let leaf_count = hand.entries.len().div_ceil(hand.entries_of_a_leaf);
    for (number, entries) in hand.entries.chunks(hand.entries_of_a_leaf).enumerate() {
        let mut builder = LeafBuilder::new();
        for (key, row) in entries {
            assert!(builder.push(writer.block().expect("a block"), key, *row));
        }
        let next = (number + 1 < leaf_count).then(|| writer.following_address().expect("an address"));
        let block = writer.block().expect("a block");
        let content = builder.finish(block, next);
        (hand.tamper)(number, block);
        let address = writer.seal(content).expect("sealed");
        level.push((entries[0].0.clone(), entries[0].1, address));
    }
    (level, writer.finish().expect("written"))
}

/// Writes an index and returns its catalog entry, which the catalog does not have yet.
pub(crate) fn write_index(
    session: &Session,
    instance: &Instance,
    (name, table): (&str, &str),
    columns: &[IndexColumn],
    hand: &HandWritten<'_>,
) -> Index {
    let (mut level, leaves) = write_leaves(session, instance, hand);
    let mut writer = writer(session, instance, BlockKind::Branch);
    let mut height = u32::from(!level.is_empty());
    while level.len() > 1 {
        (hand.bend)(&mut level);
        let mut above = Vec::new();
        for children in level.chunks(hand.children_of_a_branch) {
            let mut builder = BranchBuilder::new();
            let block = writer.block().expect("a block");
            for (key, row, child) in children {
                assert!(builder.push(block, key, *row, *child));
            }
            let content = builder.finish(block);
            let address = writer.seal(content).expect("sealed");
            above.push((children[0].0.clone(), children[0].1, address));
        }
        level = above;
        height += 1;
    }
    Index {
        name: name.to_string(),
        table: table.to_string(),
        columns: columns.to_vec(),
        entry_count: hand.entries.len() as u64,
        root: level.first().map(|(_, _, address)| (*address).into()),
        height,
        leaves,
        branches: writer.finish().expect("written"),
        lsns: LsnRange::only(Lsn(1)),
    }
}

fn row(number: u64) -> RowId {
    RowId::new(
        BlockAddress { file: FileId(1), block: BlockNumber(1 + (number / 7) as u32) },
        (number % 7) as u16,
    )
}

/// Returns keys 00, 02, 04, .. with 1, 2, .. rows each; some fill several leaves.
fn entries(keys: u64) -> Vec<(Vec<u8>, RowId)> {
    let mut number = 0;
    let mut entries = Vec::new();
    for key in 0..keys {
        for _ in 0..=(key % 20) {
            number += 1;
            entries.push((trimmed(&(key as u16 * 2).to_be_bytes()).to_vec(), row(number * 131 % 10_007)));
        }
    }
    entries.sort();
    entries
}

fn with_tree(hand: &HandWritten<'_>, check: impl Fn(&Instance, &Session, &mut Index)) {
    let instance = instance();
    let session = instance.recorder.session(Role::User);
    let mut index = write_index(&session, &instance, ("I", "T"), &[], hand);
    check(&instance, &session, &mut index);
}

#[test]
fn every_key_is_found_with_exactly_its_rows() {
    for keys in [0, 1, 4, 60] {
        let all = entries(keys);
        with_tree(&HandWritten::right(all.clone()), |instance, session, index| {
            let blocks = RefCell::new(CacheReader::new(session, instance.caches()));
            let tree = BTree::new(index, instance.tablespace(Purpose::Indx), &blocks);
            for key in 0..keys as u16 * 2 + 3 {
                let bytes = key.to_be_bytes();
                let of_key = all.iter().filter(|(k, _)| k == trimmed(&bytes));
                let expected: Vec<RowId> = of_key.map(|(_, row)| *row).collect();
                assert_eq!(tree.lookup(&bytes).expect("searched"), expected, "key {key} of {keys}");
                for row in expected {
                    assert!(tree.contains(&bytes, row).expect("searched"));
                    assert!(!tree.contains(&bytes, RowId(row.0 ^ 1 << 40)).expect("searched"));
                }
            }
            assert!(keys < 60 || index.height > 4, "a tree of several levels: {}", index.height);
        });
    }
}

#[test]
fn a_range_gives_what_lies_between_its_ends() {
    let all = entries(40);
    with_tree(&HandWritten::right(all.clone()), |instance, session, index| {
        let blocks = RefCell::new(CacheReader::new(session, instance.caches()));
        let tree = BTree::new(index, instance.tablespace(Purpose::Indx), &blocks);
        let ends = |key: u16| {
            let bytes = trimmed(&key.to_be_bytes()).to_vec();
            [Bound::Included(bytes.clone()), Bound::Excluded(bytes), Bound::Unbounded]
        };
        for from in (0..85).step_by(7).flat_map(ends) {
            for to in (0..85).step_by(9).flat_map(ends) {
                let (from, to) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
                let mut range = tree.range(from, to).expect("searched");
                let mut found = Vec::new();
                while let Some(entry) = range.next_entry().expect("read") {
                    found.push((entry.key.to_vec(), entry.row));
                }
                let inside = |key: &[u8]| std::ops::RangeBounds::contains(&(from, to), key);
                let expected: Vec<_> = all.iter().filter(|(key, _)| inside(key)).cloned().collect();
                assert_eq!(found, expected, "{from:?} {to:?}");
                assert!(range.next_entry().expect("read").is_none(), "the end is the end");
            }
        }
    });
}

fn complaint(instance: &Instance, session: &Session, index: &Index) -> String {
    let blocks = RefCell::new(CacheReader::new(session, instance.caches()));
    let tree = BTree::new(index, instance.tablespace(Purpose::Indx), &blocks);
    let mut range = match tree.range(Bound::Unbounded, Bound::Unbounded) {
        Ok(range) => range,
        Err(error) => return error.to_string(),
    };
    loop {
        match range.next_entry() {
            Ok(Some(_)) => {}
            Ok(None) => return "none".to_string(),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn a_malformed_tree_ends_in_an_error_with_its_block() {
    let hand = HandWritten::right(entries(30));
    with_tree(&hand, |instance, session, index| {
        assert_eq!(complaint(instance, session, index), "none");
        let height = index.height;
        index.height = height + 1;
        let text = complaint(instance, session, index);
        assert!(text.contains("found index leaf, expected index branch"), "{text}");
        index.height = height - 1;
        let text = complaint(instance, session, index);
        assert!(text.contains("found index branch, expected index leaf"), "{text}");
        index.height = height;
        index.root = Some(crate::storage::control::StoredAddress { file: 77, block: 3 });
        let text = complaint(instance, session, index);
        assert_eq!(text, "index I: root: found file 77 block 3, expected a block of the index tablespace");
    });
}

#[test]
fn a_circle_of_leaves_is_left() {
    let back_to_the_start = |number: usize, block: &mut [u8]| {
        if number == 3 {
            // Leaf 0 is the first block of the first extent.
            block[28..32].copy_from_slice(&1u32.to_le_bytes());
        }
    };
    let mut hand = HandWritten::right(entries(20));
    hand.tamper = &back_to_the_start;
    with_tree(&hand, |instance, session, index| {
        let text = complaint(instance, session, index);
        assert!(text.contains("is corrupt: next leaf: found file 5 block"), "{text}");
        assert!(text.contains("expected an end: the index has"), "{text}");
    });
    let nowhere = |number: usize, block: &mut [u8]| {
        if number == 3 {
            block[24..26].copy_from_slice(&999u16.to_le_bytes());
        }
    };
    hand.tamper = &nowhere;
    with_tree(&hand, |instance, session, index| {
        let text = complaint(instance, session, index);
        assert!(text.contains("next leaf: found file 999 block 5, expected a block of the index"), "{text}");
    });
}
