//! Leaves and branches: round trips, searches, and malformed bytes.

use super::*;
use crate::storage::block::{BlockKind, seal};
use plumb_units::Lsn;

/// A xorshift64* generator, so that a failure can be repeated by its seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// Returns a key of few distinct bytes, so that keys share prefixes and are sometimes equal.
    fn key(&mut self, longest: u64) -> Vec<u8> {
        let length = self.below(longest + 1);
        let key: Vec<u8> = (0..length).map(|_| [0, 0, 1, 2, 0x80, 0xFF][self.below(6) as usize]).collect();
        trimmed(&key).to_vec()
    }

    fn row(&mut self) -> RowId {
        RowId(1 << 48 | self.below(5) << 16 | self.below(3))
    }
}

fn sorted_entries(random: &mut Random, count: usize, longest: u64) -> Vec<(Vec<u8>, RowId)> {
    let mut entries: Vec<_> = (0..count).map(|_| (random.key(longest), random.row())).collect();
    entries.sort();
    entries
}

fn address(file: u16, block: u32) -> BlockAddress {
    BlockAddress { file: FileId(file), block: BlockNumber(block) }
}

#[test]
fn shorter_is_less_orders_trimmed_keys_as_padded_ones() {
    let mut random = Random(7);
    let padded = |key: &[u8]| {
        let mut long = key.to_vec();
        long.resize(12, 0);
        long
    };
    for _ in 0..20_000 {
        let (one, two) = (random.key(8), random.key(8));
        assert_eq!(one.cmp(&two), padded(&one).cmp(&padded(&two)), "{one:?} {two:?}");
        let word = |key: &[u8]| u64::from_be_bytes(padded(key)[..8].try_into().unwrap());
        assert_eq!(one.cmp(&two), word(&one).cmp(&word(&two)), "{one:?} {two:?}");
    }
    assert_eq!(trimmed(&[0, 1, 0, 0]), [0, 1]);
    assert_eq!(trimmed(&[0, 0]), [0u8; 0]);
}

#[test]
fn a_leaf_returns_and_finds_its_entries() {
    for seed in 1..200 {
        let mut random = Random(seed);
        let bytes = [2048, 8192, 32768][random.below(3) as usize];
        let longest = [3, 12, 40, 600][random.below(4) as usize];
        let mut block: Vec<u8> = (0..bytes).map(|_| random.next() as u8).collect();
        let mut builder = LeafBuilder::new();
        let mut entries = sorted_entries(&mut random, 3000, longest);
        let fitting = entries.iter().position(|(key, row)| !builder.push(&mut block, key, *row));
        entries.truncate(fitting.unwrap_or(3000));
        assert_eq!(builder.entry_count(), entries.len());
        let next = (seed % 2 == 0).then_some(address(3, 4711));
        let content = builder.finish(&mut block, next);
        assert_eq!(builder.entry_count(), 0);

        let view = LeafView::new(&block, content).expect("a leaf");
        assert_eq!(view.next(), next);
        let found: Vec<_> =
            view.entries().map(|e| e.map(|e| (e.key.to_vec(), e.row)).expect("read")).collect();
        assert_eq!(found, entries, "seed {seed}");
        for _ in 0..50 {
            let (key, row) = (random.key(longest), random.row());
            let expected = entries.partition_point(|(k, r)| (k.as_slice(), *r) < (key.as_slice(), row));
            assert_eq!(view.lower_bound(&key, row), Ok(expected), "seed {seed}");
            if let Ok(entry) = view.entry(expected) {
                assert_eq!((entry.key, entry.row), (entries[expected].0.as_slice(), entries[expected].1));
            }
        }
        let slots = block.len() - 2 * entries.len();
        let end = HEADER_BYTES + usize::from(content.used);
        assert!(block[end..slots].iter().all(|byte| *byte == 0), "the gap is zeroed");
    }
}

#[test]
fn words_are_stored_as_their_bytes_would_be() {
    for seed in 1..100 {
        let mut random = Random(seed);
        let (mut by_word, mut by_bytes) = (vec![1u8; 2048], vec![2u8; 2048]);
        let (mut words, mut bytes) = (LeafBuilder::new(), LeafBuilder::new());
        let mut keys: Vec<u64> = (0..300).map(|_| random.next() << (8 * random.below(8))).collect();
        keys.push(0);
        keys.sort_unstable();
        for key in keys {
            let fitted = words.push_word(&mut by_word, key, RowId(9));
            assert_eq!(fitted, bytes.push(&mut by_bytes, trimmed(&key.to_be_bytes()), RowId(9)));
            if !fitted {
                break;
            }
        }
        let content = words.finish(&mut by_word, None);
        assert_eq!(content, bytes.finish(&mut by_bytes, None));
        assert_eq!(by_word[HEADER_BYTES..], by_bytes[HEADER_BYTES..], "seed {seed}");
    }
}

#[test]
fn a_branch_leads_to_the_child_of_an_entry() {
    for seed in 1..100 {
        let mut random = Random(seed);
        let mut block = vec![0xEE; 2048];
        let mut builder = BranchBuilder::new();
        let mut entries = sorted_entries(&mut random, 300, [6, 300][seed as usize % 2]);
        entries.dedup();
        let mut kept = 0;
        for (index, (key, row)) in entries.iter().enumerate() {
            if !builder.push(&mut block, key, *row, address(5, index as u32)) {
                break;
            }
            kept += 1;
        }
        entries.truncate(kept);
        let content = builder.finish(&mut block);
        let view = BranchView::new(&block, content).expect("a branch");
        assert_eq!(view.entry_count(), kept);
        assert_eq!(view.entries().filter(Result::is_ok).count(), kept);
        for _ in 0..100 {
            let (key, row) = (random.key(7), random.row());
            let above = entries.partition_point(|(k, r)| (k.as_slice(), *r) <= (key.as_slice(), row));
            let expected = address(5, above.saturating_sub(1) as u32);
            assert_eq!(view.child_for(&key, row), Ok(expected), "seed {seed}");
        }
    }
}

#[test]
fn two_of_the_longest_keys_fit_every_block() {
    for bytes in [2048, 4096, 8192, 16384, 32768] {
        let key = vec![7; key_bytes_max(bytes)];
        let mut block = vec![0; bytes];
        let (mut leaf, mut branch) = (LeafBuilder::new(), BranchBuilder::new());
        for _ in 0..2 {
            assert!(leaf.push(&mut block, &key, RowId(1)), "{bytes}");
        }
        for _ in 0..2 {
            assert!(branch.push(&mut block, &key, RowId(1), address(1, 1)), "{bytes}");
        }
    }
    assert_eq!(leaf_entry_bytes(7), 1 + 7 + 8 + 2);
    assert_eq!(leaf_entry_bytes(255), 3 + 255 + 8 + 2);
}

/// Reads all entries of a block with any contents.
fn read_everything(block: &[u8], content: Content) -> usize {
    let mut read = 0;
    if let Ok(view) = LeafView::new(block, content) {
        read += view.entries().filter(Result::is_ok).count();
        read += (0..view.entry_count() + 2).filter(|index| view.entry(*index).is_ok()).count();
        read += view.lower_bound(&[1, 2], RowId(3)).unwrap_or(0);
    }
    if let Ok(view) = BranchView::new(block, content) {
        read += view.entries().filter(Result::is_ok).count();
        read += (0..view.entry_count() + 2).filter(|index| view.entry(*index).is_ok()).count();
        read += usize::from(view.child_for(&[1, 2], RowId(3)).is_ok());
    }
    read
}

#[test]
fn nonsense_is_refused_and_never_panics() {
    let mut read = 0;
    for seed in 1..3000 {
        let mut random = Random(seed);
        let mut block: Vec<u8> = (0..2048).map(|_| random.next() as u8).collect();
        let mut content = Content { entries: random.below(700) as u16, used: random.below(2025) as u16 };
        if seed % 2 == 0 {
            let mut builder = LeafBuilder::new();
            for (key, row) in sorted_entries(&mut random, 60, 20) {
                builder.push(&mut block, &key, row);
            }
            content = builder.finish(&mut block, None);
            for _ in 0..1 + random.below(20) {
                let at = random.below(2048) as usize;
                block[at] = random.next() as u8;
            }
        }
        read += read_everything(&block, content);
        read += read_everything(&block[..random.below(60) as usize], content);
    }
    assert!(read > 0);
}

#[test]
fn a_complaint_names_the_block() {
    let mut block = vec![0; 2048];
    let mut builder = LeafBuilder::new();
    assert!(builder.push(&mut block, b"one", RowId(1)));
    assert!(builder.push(&mut block, b"two", RowId(2)));
    let content = builder.finish(&mut block, None);
    block[2044..2046].copy_from_slice(&40u16.to_le_bytes());
    seal(&mut block, BlockKind::Leaf, address(5, 9), Lsn(1), content);
    let view = LeafView::new(&block, content).expect("the frame is right");
    let error = view.entries().find_map(Result::err).expect("the second slot is wrong");
    let text = error.at(Path::new("indx01.dbf"), address(5, 9)).to_string();
    assert_eq!(
        text,
        "indx01.dbf: block 9 (file 5 block 9) is corrupt: an entry's place: found entry 1 at byte 40, expected \
         byte 44, where the entry before it ends; restore the file from a copy, or drop and rebuild what it holds"
    );
}

fn child(block: u32) -> BlockAddress {
    BlockAddress { file: FileId(1), block: BlockNumber(block) }
}

#[test]
#[should_panic(expected = "I1: a stored key does not end in 00")]
fn a_key_that_is_not_trimmed_is_not_stored() {
    BranchBuilder::new().push(&mut [0; 2048], &[1, 0], RowId(1), child(1));
}

#[test]
#[should_panic(expected = "I2: a branch is in order")]
fn a_branch_out_of_order_is_not_finished() {
    let (mut builder, mut block) = (BranchBuilder::new(), [0; 2048]);
    builder.push(&mut block, b"b", RowId(1), child(1));
    builder.push(&mut block, b"a", RowId(2), child(2));
    builder.finish(&mut block);
}

#[test]
#[should_panic(expected = "I3: entries up to byte 2000, slots from 1848")]
fn entries_do_not_meet_their_slots() {
    Area { entries: 100, end: 2000 }.close(&mut [0; 2048]);
}
