//! Records: what was done to a block is what is done again, and bytes that are no record are
//! refused.

use super::edit::Edit;
use super::record::{Record, RecordBytes, RecordKind, length_of};
use crate::storage::block::{self, BlockKind};
use crate::storage::tablespace::Purpose;
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn};
use proptest::prelude::*;

const BLOCK: usize = 2048;
const HERE: BlockAddress = BlockAddress { file: FileId(2), block: BlockNumber(77) };

/// A step of an edit, behind the block's header.
#[derive(Debug, Clone)]
enum Done {
    Write(usize, Vec<u8>),
    Shift(usize, usize, usize),
    Add(usize, usize, u16),
    Stamp(usize),
}

fn done() -> impl Strategy<Value = Done> {
    prop_oneof![
        (24usize..1900, proptest::collection::vec(any::<u8>(), 1..140))
            .prop_map(|(at, bytes)| Done::Write(at, bytes)),
        (24usize..1500, 24usize..1500, 0usize..500)
            .prop_map(|(from, to, length)| Done::Shift(from, to, length)),
        (24usize..1500, 0usize..200, any::<u16>()).prop_map(|(at, count, delta)| Done::Add(at, count, delta)),
        (24usize..2000).prop_map(Done::Stamp),
    ]
}

fn old_block(fill: u8) -> Vec<u8> {
    let mut block: Vec<u8> = (0..BLOCK).map(|at| (at as u8).wrapping_mul(fill)).collect();
    block::set_identity(&mut block, BlockKind::Rows, HERE);
    block::set_lsn(&mut block, Lsn(50));
    block
}

/// Does the steps in a block and logs them; gives the block and the record.
fn logged(block: &[u8], floor: Option<u64>, steps: &[Done]) -> (Vec<u8>, Vec<u8>) {
    let mut block = block.to_vec();
    let mut edit = match floor {
        Some(floor) => Edit::new(Purpose::Users, HERE, &block, Lsn(floor)),
        None => Edit::format(Purpose::Users, HERE, &mut block, BlockKind::Rows),
    };
    for step in steps {
        match step {
            Done::Write(at, bytes) => edit.write(&mut block, *at, bytes),
            Done::Shift(from, to, length) => edit.shift(&mut block, *from, *to, *length),
            Done::Add(at, count, delta) => edit.add(&mut block, *at, *count, *delta),
            Done::Stamp(at) => edit.stamp(*at),
        }
    }
    let mut record = RecordBytes::default();
    record.begin(RecordKind::Change, 7, Lsn(40), b"how to undo it");
    edit.finish(&block, &mut record);
    let bytes = record.finish().to_vec();
    edit.set_lsn(&mut block, Lsn(96));
    (block, bytes)
}

proptest! {
    #[test]
    fn what_is_done_again_gives_the_block_that_was_made(
        fill in any::<u8>(), floor in prop_oneof![Just(None), Just(Some(10)), Just(Some(60))],
        steps in proptest::collection::vec(done(), 0..12),
    ) {
        let before = old_block(fill);
        let (after, bytes) = logged(&before, floor, &steps);
        prop_assert_eq!(length_of(&bytes), Some(bytes.len()));
        let record = Record::parse(Lsn(96), &bytes).expect("a record");
        prop_assert_eq!((record.kind, record.transaction, record.previous), (RecordKind::Change, 7, Lsn(40)));
        prop_assert_eq!(record.undo, b"how to undo it");
        // An image or a new block does not depend on what was there.
        let mut again = if floor == Some(10) { before } else { vec![0xEE; BLOCK] };
        let changes: Vec<_> = record.changes().collect();
        prop_assert_eq!(changes.len(), 1);
        prop_assert_eq!((changes[0].purpose, changes[0].address), (Purpose::Users, HERE));
        prop_assert_eq!(changes[0].apply(&mut again, record.lsn), Some(()));
        prop_assert_eq!(again, after);
    }

    #[test]
    fn bytes_that_are_no_record_are_refused_and_change_nothing_outside_a_block(
        mut bytes in proptest::collection::vec(any::<u8>(), 32..400), kind in 1u8..6,
    ) {
        bytes.resize(bytes.len() / 8 * 8, 0);
        let length = bytes.len() as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes[4] = kind;
        bytes[24..28].copy_from_slice(&0_u32.to_le_bytes());
        bytes[28..32].copy_from_slice(&(length - 32).to_le_bytes());
        if let Some(record) = Record::parse(Lsn(8), &bytes) {
            let mut block = vec![0; BLOCK];
            for change in record.changes() {
                // Whether it makes sense by chance or not, it must not panic.
                let _ = change.apply(&mut block, record.lsn);
            }
        }
        prop_assert_eq!(Record::parse(Lsn(8), &bytes[..24]), None);
    }
}

mod log_buffer {
    use crate::redo::log_buffer::LogBuffer;
    use plumb_units::Lsn;

    fn record(length: usize, fill: u8) -> Vec<u8> {
        let mut bytes = vec![fill; length];
        bytes[..8].copy_from_slice(&(length as u64).to_le_bytes());
        bytes
    }

    #[test]
    fn records_are_taken_up_to_the_first_that_is_not_complete() {
        let buffer = LogBuffer::new(1024, Lsn(8));
        let (a, b, c) = (buffer.reserve(40), buffer.reserve(48), buffer.reserve(56));
        buffer.fill(a, &record(40, 1));
        buffer.fill(c, &record(56, 3));
        assert_eq!(buffer.complete_from(a, 1024, |_| ()), b);
        buffer.fill(b, &record(48, 2));
        let mut lengths = Vec::new();
        let end = buffer.complete_from(a, 1024, |length| lengths.push(length));
        assert_eq!((end, lengths), (buffer.reserved(), vec![40, 48, 56]));
        assert_eq!(buffer.complete_from(a, 100, |_| ()), c, "whole records only");
        let mut found = Vec::new();
        assert_eq!(buffer.read(c, &mut found), Some(()));
        assert_eq!(found, record(56, 3));
    }

    #[test]
    fn places_are_given_back_and_half_is_kept() {
        let buffer = LogBuffer::new(512, Lsn(0));
        for round in 0..1000_u64 {
            let lsn = buffer.reserve(64);
            assert!(buffer.has_room(Lsn(lsn.0 + 64)), "half the ring is free");
            buffer.fill(lsn, &record(64, round as u8));
            let end = buffer.complete_from(lsn, 512, |_| ());
            assert_eq!(end.0, lsn.0 + 64, "behind it there is nothing of a round before");
            buffer.release(end);
            let mut found = Vec::new();
            let kept = lsn.0.saturating_sub(3 * 64);
            assert_eq!(buffer.read(Lsn(kept), &mut found), Some(()));
            assert_eq!(found[8], (kept / 64) as u8);
            if let Some(gone) = lsn.0.checked_sub(256) {
                assert_eq!(buffer.read(Lsn(gone), &mut found), None);
            }
        }
    }

    #[test]
    fn two_sessions_fill_and_a_third_takes_in_order() {
        const EACH: u64 = 20_000;
        let buffer = LogBuffer::new(1 << 12, Lsn(0));
        std::thread::scope(|scope| {
            for session in 0..2_u8 {
                let buffer = &buffer;
                scope.spawn(move || {
                    for number in 0..EACH {
                        let length = 40 + 8 * (number % 5) as usize;
                        let lsn = buffer.reserve(length);
                        while !buffer.has_room(Lsn(lsn.0 + length as u64)) {
                            std::thread::yield_now();
                        }
                        let mut bytes = record(length, session);
                        bytes[8..16].copy_from_slice(&number.to_le_bytes());
                        buffer.fill(lsn, &bytes);
                    }
                });
            }
            let (mut at, mut next) = (Lsn(0), [0_u64; 2]);
            while next != [EACH; 2] {
                let mut lengths = Vec::new();
                let end = buffer.complete_from(at, 1 << 11, |length| lengths.push(length));
                for length in lengths {
                    let mut bytes = vec![0; length];
                    buffer.copy(at, &mut bytes);
                    let session = bytes[39] as usize;
                    assert_eq!(bytes[8..16], next[session].to_le_bytes());
                    next[session] += 1;
                    at = Lsn(at.0 + length as u64);
                }
                assert_eq!(at, end);
                buffer.release(at);
            }
        });
    }
}
