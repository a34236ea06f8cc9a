//! Breaks each invariant of the frames by hand; its assert must stop the program.

use crate::cache::frames::{Frames, NONE};
use crate::storage::tablespace::Purpose;
use plumb_io::BufferPool;
use plumb_units::{BlockAddress, BlockNumber, FileId, Lsn};

fn cache(count: usize) -> (Frames, BufferPool) {
    let mut frames = Frames::default();
    frames.populate(count);
    (frames, BufferPool::new(2048, count).expect("memory"))
}

fn address(block: u32) -> BlockAddress {
    BlockAddress { file: FileId(1), block: BlockNumber(block) }
}

/// Makes a frame with a dirty block, of a writer of its own.
fn dirty((frames, buffers): &mut (Frames, BufferPool), block: u32) -> u32 {
    let writer = frames.open_writer();
    let taken = frames.take(buffers).expect("a free frame");
    let index = taken.0;
    frames.dirtied(taken, (address(block), Purpose::Temp), writer, buffers);
    index
}

/// Makes a frame with a block that was read and unpinned.
fn read((frames, buffers): &mut (Frames, BufferPool), block: u32) -> u32 {
    let taken = frames.take(buffers).expect("a frame");
    let index = taken.0;
    frames.begin_read(index, address(block), Purpose::Users);
    let _ = frames.arrived(taken, 0, buffers);
    index
}

#[test]
#[should_panic(expected = "B1: pinned while Reading")]
fn a_block_that_is_being_read_is_not_pinned() {
    let (mut frames, buffers) = cache(2);
    let (index, _bytes) = frames.take(&buffers).expect("a free frame");
    frames.begin_read(index, address(1), Purpose::Users);
    let _ = frames.pin(index, &buffers);
}

#[test]
#[should_panic(expected = "B2: file 1 block 7 is in a frame already")]
fn an_address_has_one_frame() {
    let mut cache = cache(2);
    dirty(&mut cache, 7);
    dirty(&mut cache, 7);
}

#[test]
#[should_panic(expected = "B2: a frame that holds a block is in its bucket")]
fn a_frame_is_found_where_it_was_linked() {
    let mut cache = cache(2);
    let index = read(&mut cache, 7);
    let (mut frames, _) = cache;
    frames.buckets.fill(NONE);
    frames.forget(index);
}

#[test]
#[should_panic(expected = "B3: in the cold queue while Dirty")]
fn a_dirty_frame_is_not_in_the_cold_queue() {
    let mut cache = cache(1);
    let index = dirty(&mut cache, 1);
    let (mut frames, buffers) = cache;
    frames.cold.push_back(index);
    frames.take(&buffers);
}

#[test]
#[should_panic(expected = "B3: once in the dirty list")]
fn a_frame_is_once_in_the_dirty_list() {
    let mut cache = cache(1);
    let index = dirty(&mut cache, 1);
    let (mut frames, buffers) = cache;
    frames.dirty.push_back(index);
    frames.gather(2, Lsn(0), &buffers, &mut Vec::new());
}

#[test]
fn a_pinned_frame_is_passed_over() {
    let mut cache = cache(1);
    let index = read(&mut cache, 1);
    let (mut frames, buffers) = cache;
    let pinned = frames.pin(index, &buffers);
    assert!(frames.take(&buffers).is_none(), "B4");
    drop(pinned);
    assert!(frames.take(&buffers).is_some());
}

#[test]
#[should_panic(expected = "B4: a pinned frame is not taken")]
fn a_frame_pinned_between_choice_and_taking_is_noticed() {
    let mut cache = cache(1);
    let index = read(&mut cache, 1);
    let (mut frames, buffers) = cache;
    let pinned = frames.pin(index, &buffers);
    // Takes the frame as if its pin had been overlooked.
    frames.resident_count = 0;
    frames.own(index, &buffers);
    drop(pinned);
}

#[test]
#[should_panic(expected = "B5: blocks of a writer that ends are written or forgotten")]
fn a_writer_with_a_dirty_block_does_not_end() {
    let mut cache = cache(1);
    let index = dirty(&mut cache, 1);
    let (mut frames, _) = cache;
    let writer = frames.frames[index as usize].writer;
    frames.close_writer(writer);
}

#[test]
#[should_panic(expected = "B7: the counts are those of the frames")]
fn a_count_that_is_wrong_is_noticed_below_zero() {
    let mut cache = cache(1);
    dirty(&mut cache, 1);
    let (mut frames, buffers) = cache;
    frames.dirty_count = 0;
    frames.gather(1, Lsn(0), &buffers, &mut Vec::new());
}

#[test]
#[should_panic(expected = "B8: written once")]
fn a_block_is_written_once() {
    let mut cache = cache(1);
    let index = dirty(&mut cache, 1);
    let (mut frames, buffers) = cache;
    frames.gather(1, Lsn(0), &buffers, &mut Vec::new());
    frames.written(index);
    frames.written(index);
}

/// The state after a writer has failed.
#[test]
fn a_block_that_changed_while_it_was_written_is_forgotten() {
    let mut cache = cache(1);
    let index = read(&mut cache, 1);
    let (mut frames, buffers) = cache;
    let change = |frames: &mut Frames, lsn: u64| {
        let taken = frames.begin_change(index, &buffers).expect("unpinned");
        frames.end_change(taken, Some(Lsn(lsn)), &buffers);
    };
    change(&mut frames, 1);
    let mut batch = Vec::new();
    frames.gather(1, Lsn(2), &buffers, &mut batch);
    batch.clear();
    change(&mut frames, 2);
    frames.check(&buffers);
    frames.forget(index);
    frames.check(&buffers);
    assert!(!frames.awaits_device());
}
