//! Frames, the table that finds them, and the lists over them.
//!
//! Everything here happens under the cache's mutex, and nothing waits. The bytes are in the
//! [`BufferPool`], one buffer for each frame number. The buffer of an Owned, Reading or Changing
//! frame is taken; all others are in the pool (B1).
//!
//! A list entry may be out of date. A frame that leaves a list early stays in it until the list
//! reaches it, and its flag prevents a second entry (B3). So no list grows beyond the number of
//! frames, and no removal has to search.

use super::handles::{DirtyBlock, PinnedBlock};
use super::{BufferPool, IoBuffer, Purpose};
use plumb_io::ask_huge_pages;
use plumb_units::{BlockAddress, Lsn};
use std::collections::{BTreeSet, VecDeque};

/// End of a bucket's chain, and the writer number of blocks without one.
pub(super) const NONE: u32 = u32::MAX;
/// Passes of the hand that a block survives without a hit.
const TOUCH_MAX: u8 = 3;
/// One in this many frames may hold blocks that only a scan has asked for.
const SCANNED_PART: usize = 8;
/// While frames are dirty the hand passes a quarter of all frames, at least this number. Then the
/// session waits for a database writer instead.
const SWEEP_MIN: usize = 64;

/// State of a frame; the drawing in the module's header shows the transitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Free,
    /// A session formats a block in it; lookups do not find it yet.
    Owned,
    Reading,
    /// The block is the same as on disk.
    Clean,
    /// The block is newer than on disk.
    Dirty,
    Writing,
    Changing,
}

/// A frame is 64 bytes and aligned, so that a lookup touches one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Frame {
    /// Valid unless the frame is Free or Owned.
    address: BlockAddress,
    purpose: Purpose,
    usage: Usage,
    touch: u8,
    /// It is in the cold queue.
    cold: bool,
    /// Read by a scan and not requested since. `scan_listed`: it has an entry in
    /// `scans`, possibly out of date.
    scanned: bool,
    scan_listed: bool,
    /// It is in the dirty list.
    listed: bool,
    /// Writer whose unwritten count includes this block while Dirty or Writing;
    /// `NONE` for a logged block.
    pub(super) writer: u32,
    /// A database writer has taken it and has not reported it written.
    in_flight: bool,
    /// State to return to if a Changing frame ends unchanged.
    resume: Usage,
    /// LSNs of the first and last unwritten change, and of the first change in flight; 0 for none.
    first_lsn: u64,
    last_lsn: u64,
    flight_lsn: u64,
    /// Next frame in the same bucket.
    next: u32,
}

const _: () = assert!(size_of::<Frame>() == 64);

/// Blocks of a tablespace in a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedBlocks {
    /// Content that the tablespace is for.
    pub purpose: Purpose,
    /// Number of its blocks, in any state.
    pub blocks: u64,
    /// Number of these that are newer than on disk.
    pub dirty: u64,
}

/// Number and buffer of a frame that was taken.
pub(super) type Taken = (u32, IoBuffer);

/// Transfers of a device at one moment; two samples show if the device answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceProgress {
    /// True if a transfer is in flight.
    pub(crate) is_asked: bool,
    /// Number of transfers that have ended.
    pub(crate) answer_count: u64,
}

impl DeviceProgress {
    /// Adds the transfers of another part.
    pub(crate) fn with(self, other: DeviceProgress) -> DeviceProgress {
        let is_asked = self.is_asked || other.is_asked;
        DeviceProgress { is_asked, answer_count: self.answer_count + other.answer_count }
    }

    /// True if transfers were in flight all the time until `later` and none ended.
    pub(crate) fn stood_until(self, later: DeviceProgress) -> bool {
        self.is_asked && self.answer_count == later.answer_count
    }
}

/// All frames of a cache; empty until it is populated.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) frames: Vec<Frame>,
    /// First frame of each chain; the length is a power of two.
    pub(super) buckets: Vec<u32>,
    /// Free frames, then clean temp blocks; the next frame is taken from here.
    pub(super) cold: VecDeque<u32>,
    /// LRUW: dirty frames, oldest first.
    pub(super) dirty: VecDeque<u32>,
    /// Frames that scans have read into, oldest first.
    scans: VecDeque<u32>,
    /// Position of the clock's hand.
    hand: usize,
    pub(super) dirty_count: usize,
    writing_count: usize,
    reading_count: usize,
    /// Clean frames that are marked `scanned`.
    scanned_count: usize,
    /// Clean frames outside the cold queue.
    pub(super) resident_count: usize,
    /// Transfers that have ended, successfully or not.
    answer_count: u64,
    /// Blocks that others may have needed, as [`plumb_events::PoolCounts::evicted`] counts them.
    pub(super) evicted_count: u64,
    /// Unwritten blocks of each writer; `None` for a free writer number.
    unwritten: Vec<Option<u32>>,
    /// Highest LSN of any change in place.
    last_change: u64,
    /// Checkpoint queue: LSN and frame of each first unwritten change, in flight or not.
    changes: BTreeSet<(u64, u32)>,
}

impl Frames {
    /// Makes `count` free frames; once only.
    pub(super) fn populate(&mut self, count: usize) {
        assert!(self.frames.is_empty(), "a cache is populated once");
        assert!(count > 0, "a cache has a frame");
        assert!(count < NONE as usize, "frames are numbered in 32 bits");
        let buckets = (count * 2).next_power_of_two();
        self.buckets = in_huge_pages(buckets);
        self.buckets.resize(buckets, NONE);
        self.cold = (0..count as u32).collect();
        self.frames = in_huge_pages(count);
        self.frames.extend((0..count).map(|_| Frame {
            address: BlockAddress::default(),
            purpose: Purpose::Temp,
            usage: Usage::Free,
            touch: 0,
            cold: true,
            scanned: false,
            scan_listed: false,
            listed: false,
            writer: NONE,
            in_flight: false,
            resume: Usage::Free,
            first_lsn: 0,
            last_lsn: 0,
            flight_lsn: 0,
            next: NONE,
        }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(super) fn dirty_count(&self) -> usize {
        self.dirty_count
    }

    /// Counts the cached blocks of each tablespace by a walk over all frames.
    pub(super) fn census(&self) -> Vec<CachedBlocks> {
        let mut census: Vec<CachedBlocks> = Vec::new();
        for frame in self.frames.iter().filter(|frame| !matches!(frame.usage, Usage::Free | Usage::Owned)) {
            let purpose = frame.purpose;
            let at = census.iter().position(|known| known.purpose == purpose).unwrap_or_else(|| {
                census.push(CachedBlocks { purpose, blocks: 0, dirty: 0 });
                census.len() - 1
            });
            census[at].blocks += 1;
            census[at].dirty += u64::from(matches!(frame.usage, Usage::Dirty | Usage::Writing));
        }
        census.sort_by_key(|known| known.purpose);
        census
    }

    /// Counts the cached blocks of a tablespace by a walk over all frames.
    pub(super) fn count_of(&self, purpose: Purpose) -> u64 {
        let holds =
            |frame: &&Frame| frame.purpose == purpose && !matches!(frame.usage, Usage::Free | Usage::Owned);
        self.frames.iter().filter(holds).count() as u64
    }

    /// Returns the number of frames that a database writer will make available.
    pub(super) fn unwritten_count(&self) -> usize {
        self.dirty_count + self.writing_count
    }

    /// True if some frame waits for the device, and so becomes available once it answers.
    pub(super) fn awaits_device(&self) -> bool {
        self.unwritten_count() + self.reading_count > 0
    }

    pub(super) fn progress(&self) -> DeviceProgress {
        let is_asked = self.reading_count + self.writing_count > 0;
        DeviceProgress { is_asked, answer_count: self.answer_count }
    }

    pub(super) fn usage(&self, index: u32) -> Usage {
        self.frames[index as usize].usage
    }

    /// Returns the first frame of the block's bucket, without reading any frame:
    /// most often the right one.
    #[inline]
    pub(super) fn likely(&self, address: BlockAddress) -> Option<u32> {
        self.buckets.get(self.bucket(address)).copied().filter(|index| *index != NONE)
    }

    /// Returns the frame that holds the block, or that it is being read into.
    #[inline]
    pub(super) fn find(&self, address: BlockAddress) -> Option<u32> {
        let mut index = *self.buckets.get(self.bucket(address))?;
        while index != NONE {
            let frame = &self.frames[index as usize];
            if frame.address == address {
                return Some(index);
            }
            index = frame.next;
        }
        None
    }

    /// Pins a cached block and raises its touch count.
    #[inline]
    pub(super) fn pin<'a>(&mut self, index: u32, buffers: &'a BufferPool) -> PinnedBlock<'a> {
        self.leave_scan(index);
        let frame = &mut self.frames[index as usize];
        let usage = frame.usage;
        assert!(matches!(usage, Usage::Clean | Usage::Dirty | Usage::Writing), "B1: pinned while {usage:?}");
        frame.touch = (frame.touch + 1).min(TOUCH_MAX);
        PinnedBlock::new(frame.address, buffers.pin(index))
    }

    /// Takes a frame: from the cold queue, from the list of scans, or by the clock.
    pub(super) fn take(&mut self, buffers: &BufferPool) -> Option<Taken> {
        let chosen = self.take_cold(buffers).or_else(|| self.take_scanned(buffers));
        let index = chosen.or_else(|| self.sweep(buffers))?;
        Some(self.own(index, buffers))
    }

    /// Takes the oldest block of a scan while scans hold more than their part of the frames.
    fn take_scanned(&mut self, buffers: &BufferPool) -> Option<u32> {
        while self.scanned_count > self.frames.len() / SCANNED_PART {
            let index = self.scans.pop_front()?;
            let frame = &mut self.frames[index as usize];
            assert!(frame.scan_listed, "B10: once in the list, and marked so");
            frame.scan_listed = false;
            if !frame.scanned {
                continue;
            }
            if buffers.is_idle(index) {
                self.leave_scan(index);
                one_less(&mut self.resident_count);
                return Some(index);
            }
            // The scan itself has it pinned, and the blocks after it in the list are younger.
            frame.scan_listed = true;
            self.scans.push_front(index);
            return None;
        }
        None
    }

    /// Clears the scan mark: the block was requested again, or its frame is taken.
    #[inline]
    fn leave_scan(&mut self, index: u32) {
        let frame = &mut self.frames[index as usize];
        if frame.scanned {
            frame.scanned = false;
            one_less(&mut self.scanned_count);
        }
    }

    pub(super) fn own(&mut self, index: u32, buffers: &BufferPool) -> Taken {
        self.leave_scan(index);
        if self.usage(index) == Usage::Clean {
            self.unlink(index);
        }
        let frame = &mut self.frames[index as usize];
        let usage = frame.usage;
        assert!(matches!(usage, Usage::Free | Usage::Clean), "taken while {usage:?}");
        assert!(!frame.cold, "B3: what is taken has left the cold queue");
        frame.usage = Usage::Owned;
        (index, buffers.take(index).expect("B4: a pinned frame is not taken"))
    }

    fn take_cold(&mut self, buffers: &BufferPool) -> Option<u32> {
        for _ in 0..self.cold.len() {
            let index = self.cold.pop_front()?;
            let frame = &mut self.frames[index as usize];
            let usage = frame.usage;
            assert!(matches!(usage, Usage::Free | Usage::Clean), "B3: in the cold queue while {usage:?}");
            assert!(frame.cold, "B3: once in the cold queue, and marked so");
            if buffers.is_idle(index) {
                frame.cold = false;
                return Some(index);
            }
            self.cold.push_back(index);
        }
        None
    }

    /// Moves the hand until it finds a clean frame without touches.
    fn sweep(&mut self, buffers: &BufferPool) -> Option<u32> {
        if self.resident_count == 0 {
            return None;
        }
        let count = self.frames.len();
        let limit = match self.unwritten_count() {
            0 => count * (TOUCH_MAX as usize + 1),
            _ => (count / 4).max(SWEEP_MIN),
        };
        for _ in 0..limit {
            let index = self.hand;
            self.hand = (self.hand + 1) % count;
            let frame = &mut self.frames[index];
            if frame.usage != Usage::Clean || frame.cold {
                continue;
            }
            if frame.touch > 0 {
                frame.touch -= 1;
            } else if buffers.is_idle(index as u32) {
                self.evicted_count += u64::from(!frame.scanned);
                one_less(&mut self.resident_count);
                return Some(index as u32);
            }
        }
        None
    }

    /// Links an owned frame to the block that its owner is about to read.
    pub(super) fn begin_read(&mut self, index: u32, address: BlockAddress, purpose: Purpose) {
        self.link(index, address, purpose);
        self.frames[index as usize].usage = Usage::Reading;
        self.reading_count += 1;
    }

    /// Makes the block that was read available; `touch` is its first touch count, 0 for a scan.
    pub(super) fn arrived<'a>(
        &mut self,
        (index, bytes): Taken,
        touch: u8,
        buffers: &'a BufferPool,
    ) -> PinnedBlock<'a> {
        let frame = &mut self.frames[index as usize];
        assert_eq!(frame.usage, Usage::Reading, "a block arrives in the frame that it is read into");
        one_less(&mut self.reading_count);
        self.answer_count += 1;
        frame.touch = touch;
        frame.writer = NONE;
        (frame.first_lsn, frame.last_lsn, frame.flight_lsn) = (0, 0, 0);
        buffers.give_back(index, bytes);
        let pinned = PinnedBlock::new(frame.address, buffers.pin(index));
        let is_scanned = touch == 0;
        self.become_clean(index);
        if is_scanned && !self.frames[index as usize].cold {
            self.enter_scan(index);
        }
        pinned
    }

    fn enter_scan(&mut self, index: u32) {
        let frame = &mut self.frames[index as usize];
        frame.scanned = true;
        self.scanned_count += 1;
        if !frame.scan_listed {
            frame.scan_listed = true;
            self.scans.push_back(index);
        }
    }

    /// Puts a block formatted in an owned frame on the dirty list.
    pub(super) fn dirtied(
        &mut self,
        (index, bytes): Taken,
        (address, purpose): (BlockAddress, Purpose),
        writer: u32,
        buffers: &BufferPool,
    ) {
        self.link(index, address, purpose);
        buffers.give_back(index, bytes);
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Dirty;
        frame.touch = 0;
        frame.writer = writer;
        (frame.first_lsn, frame.last_lsn, frame.flight_lsn) = (0, 0, 0);
        if !frame.listed {
            frame.listed = true;
            self.dirty.push_back(index);
        }
        self.dirty_count += 1;
        *self.unwritten_of(writer) += 1;
    }

    /// Returns a frame without a block. Without its buffer the frame stays Owned
    /// and is never taken again.
    pub(super) fn give_back(&mut self, index: u32, bytes: Option<IoBuffer>, buffers: &BufferPool) {
        if self.usage(index) == Usage::Reading {
            one_less(&mut self.reading_count);
            self.answer_count += 1;
            self.unlink(index);
        }
        let usage = self.usage(index);
        assert!(matches!(usage, Usage::Owned | Usage::Reading), "B1: given back while {usage:?}");
        let Some(bytes) = bytes else {
            self.frames[index as usize].usage = Usage::Owned;
            return;
        };
        buffers.give_back(index, bytes);
        self.become_free(index);
    }

    /// Takes up to `limit` dirty blocks whose log is durable up to `durable`,
    /// oldest first. They become Writing.
    pub(super) fn gather<'a>(
        &mut self,
        limit: usize,
        durable: Lsn,
        buffers: &'a BufferPool,
        batch: &mut Vec<DirtyBlock<'a>>,
    ) {
        for _ in 0..self.dirty.len() {
            if batch.len() >= limit {
                break;
            }
            let Some(index) = self.dirty.pop_front() else { break };
            let frame = &mut self.frames[index as usize];
            assert!(frame.listed, "B3: once in the dirty list, and marked so");
            frame.listed = false;
            if frame.usage != Usage::Dirty {
                continue;
            }
            if may_be_written(frame, durable) {
                batch.push(self.begin_write(index, buffers));
            } else {
                frame.listed = true;
                self.dirty.push_back(index);
            }
        }
    }

    /// Takes dirty blocks first changed before an LSN, in the order of these changes.
    pub(super) fn gather_changed<'a>(
        &mut self,
        limit: usize,
        (before, durable): (Lsn, Lsn),
        buffers: &'a BufferPool,
    ) -> Vec<DirtyBlock<'a>> {
        let due = self.changes.range(..(before.0, 0)).map(|(_, index)| *index);
        let may = |index: &u32| {
            let frame = &self.frames[*index as usize];
            frame.usage == Usage::Dirty && may_be_written(frame, durable)
        };
        // A block changed again while in flight is in the queue twice; it must not be
        // written until that write ends.
        let chosen: Vec<u32> = due.filter(may).take(limit).collect();
        chosen.into_iter().map(|index| self.begin_write(index, buffers)).collect()
    }

    fn begin_write<'a>(&mut self, index: u32, buffers: &'a BufferPool) -> DirtyBlock<'a> {
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Writing;
        frame.in_flight = true;
        frame.flight_lsn = std::mem::take(&mut frame.first_lsn);
        one_less(&mut self.dirty_count);
        self.writing_count += 1;
        DirtyBlock {
            frame: index,
            address: frame.address,
            purpose: frame.purpose,
            bytes: Some(buffers.pin(index)),
            logged: frame.last_lsn != 0,
        }
    }

    /// Takes the bytes of a block to change them in place; `None` while it is pinned.
    pub(super) fn begin_change(&mut self, index: u32, buffers: &BufferPool) -> Option<Taken> {
        let frame = &self.frames[index as usize];
        let usage = frame.usage;
        assert!(matches!(usage, Usage::Clean | Usage::Dirty | Usage::Writing), "B1: changed while {usage:?}");
        assert!(!frame.cold, "B3: a block of the cold queue is never changed");
        let bytes = buffers.take(index)?;
        self.leave_scan(index);
        match usage {
            Usage::Clean => one_less(&mut self.resident_count),
            Usage::Dirty => one_less(&mut self.dirty_count),
            _ => {}
        }
        let frame = &mut self.frames[index as usize];
        frame.resume = std::mem::replace(&mut frame.usage, Usage::Changing);
        frame.touch = (frame.touch + 1).min(TOUCH_MAX);
        Some((index, bytes))
    }

    /// Returns the bytes, changed by the record of this LSN, or unchanged.
    pub(super) fn end_change(&mut self, (index, bytes): Taken, changed: Option<Lsn>, buffers: &BufferPool) {
        let frame = &mut self.frames[index as usize];
        assert_eq!(frame.usage, Usage::Changing, "B1: its owner alone gives it back");
        buffers.give_back(index, bytes);
        frame.usage = match changed {
            Some(lsn) => {
                if frame.first_lsn == 0 {
                    frame.first_lsn = lsn.0;
                    self.changes.insert((lsn.0, index));
                }
                assert!(lsn.0 >= frame.last_lsn, "a block's changes have the order of the log");
                frame.last_lsn = lsn.0;
                self.last_change = self.last_change.max(lsn.0);
                Usage::Dirty
            }
            None => frame.resume,
        };
        match frame.usage {
            Usage::Free => {
                // The block was new and its owner gave it up.
                self.unlink(index);
                self.become_free(index);
            }
            Usage::Dirty => {
                self.dirty_count += 1;
                if !frame.listed {
                    frame.listed = true;
                    self.dirty.push_back(index);
                }
            }
            Usage::Clean => self.resident_count += 1,
            _ => {}
        }
    }

    /// Links an owned frame to a new block; others find it and wait until its owner has changed it.
    pub(super) fn begin_new(&mut self, index: u32, address: BlockAddress, purpose: Purpose) {
        self.link(index, address, purpose);
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Changing;
        frame.resume = Usage::Free;
        frame.touch = 1;
        frame.writer = NONE;
        (frame.first_lsn, frame.last_lsn, frame.flight_lsn) = (0, 0, 0);
    }

    /// Returns the LSN of the first change that is not on disk.
    pub(super) fn first_unwritten(&self) -> Option<Lsn> {
        self.changes.first().map(|(lsn, _)| Lsn(*lsn))
    }

    /// Returns the LSN of the last change of any block.
    pub(super) fn last_change(&self) -> Lsn {
        Lsn(self.last_change)
    }

    /// True if a database writer is writing the block.
    pub(super) fn is_in_flight(&self, index: u32) -> bool {
        self.frames[index as usize].in_flight
    }

    /// Marks the block as on disk. Returns the number of unwritten blocks left of its writer.
    pub(super) fn written(&mut self, index: u32) -> u32 {
        let frame = &mut self.frames[index as usize];
        assert!(frame.in_flight, "B8: written once");
        one_less(&mut self.writing_count);
        self.answer_count += 1;
        frame.in_flight = false;
        self.changes.remove(&(std::mem::take(&mut frame.flight_lsn), index));
        let writer = frame.writer;
        match (frame.usage, frame.resume) {
            (Usage::Writing, _) => self.become_clean(index),
            (Usage::Changing, Usage::Writing) => frame.resume = Usage::Clean,
            // It was changed again during the write.
            _ => {}
        }
        self.note_written(writer)
    }

    /// Removes a block from the cache, written or not. A pin of it keeps its bytes.
    pub(super) fn forget(&mut self, index: u32) {
        self.leave_scan(index);
        let frame = &self.frames[index as usize];
        let (usage, writer, cold) = (frame.usage, frame.writer, frame.cold);
        // A frame in flight is Writing, or Dirty again.
        if frame.in_flight {
            one_less(&mut self.writing_count);
        }
        match usage {
            Usage::Clean if cold => {}
            Usage::Clean => one_less(&mut self.resident_count),
            Usage::Dirty => one_less(&mut self.dirty_count),
            Usage::Writing => {}
            Usage::Free | Usage::Owned | Usage::Reading | Usage::Changing => {
                unreachable!("an owner gives its frame back itself")
            }
        }
        if usage != Usage::Clean {
            self.note_written(writer);
        }
        let frame = &mut self.frames[index as usize];
        frame.in_flight = false;
        self.changes.remove(&(frame.first_lsn, index));
        self.changes.remove(&(frame.flight_lsn, index));
        (frame.first_lsn, frame.last_lsn, frame.flight_lsn) = (0, 0, 0);
        self.unlink(index);
        self.become_free(index);
    }

    /// Returns a number for a session that is going to dirty blocks.
    pub(super) fn open_writer(&mut self) -> u32 {
        let vacant = self.unwritten.iter().position(Option::is_none).unwrap_or_else(|| {
            self.unwritten.push(None);
            self.unwritten.len() - 1
        });
        self.unwritten[vacant] = Some(0);
        vacant as u32
    }

    /// Returns the number of the writer's blocks that are not on disk.
    pub(super) fn unwritten(&self, writer: u32) -> u32 {
        self.unwritten[writer as usize].expect("the writer is open")
    }

    /// Frees the number for another writer.
    pub(super) fn close_writer(&mut self, writer: u32) {
        let unwritten = self.unwritten[writer as usize].take();
        assert_eq!(unwritten, Some(0), "B5: blocks of a writer that ends are written or forgotten");
    }

    /// Lowers the writer's unwritten count by one and returns it.
    fn note_written(&mut self, writer: u32) -> u32 {
        if writer == NONE {
            return 0;
        }
        let unwritten = self.unwritten_of(writer);
        *unwritten = unwritten.checked_sub(1).expect("B7: no more blocks are written than were dirtied");
        *unwritten
    }

    fn unwritten_of(&mut self, writer: u32) -> &mut u32 {
        self.unwritten[writer as usize].as_mut().expect("a writer is open while it has unwritten blocks")
    }

    fn become_clean(&mut self, index: u32) {
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Clean;
        assert!(!frame.cold, "B3: what is taken has left the cold queue");
        if frame.purpose == Purpose::Temp {
            frame.cold = true;
            self.cold.push_back(index);
        } else {
            self.resident_count += 1;
        }
    }

    fn become_free(&mut self, index: u32) {
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Free;
        if !frame.cold {
            frame.cold = true;
            self.cold.push_front(index);
        }
    }

    #[inline]
    fn bucket(&self, address: BlockAddress) -> usize {
        let key = u64::from(address.file.0) << 32 | u64::from(address.block.0);
        // Fibonacci hashing: the high half of the product depends on all bits of the key.
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize & self.buckets.len().wrapping_sub(1)
    }

    fn link(&mut self, index: u32, address: BlockAddress, purpose: Purpose) {
        assert!(self.find(address).is_none(), "B2: {address} is in a frame already");
        let bucket = self.bucket(address);
        let frame = &mut self.frames[index as usize];
        assert_eq!(frame.usage, Usage::Owned, "B1: its owner alone gives a frame an address");
        frame.address = address;
        frame.purpose = purpose;
        frame.next = std::mem::replace(&mut self.buckets[bucket], index);
    }

    fn unlink(&mut self, index: u32) {
        let Frame { address, next, .. } = self.frames[index as usize];
        let bucket = self.bucket(address);
        if self.buckets[bucket] == index {
            self.buckets[bucket] = next;
            return;
        }
        let mut before = self.buckets[bucket];
        assert!(before != NONE, "B2: a frame that holds a block is in its bucket");
        while self.frames[before as usize].next != index {
            before = self.frames[before as usize].next;
            assert!(before != NONE, "B2: a frame that holds a block is in its bucket");
        }
        self.frames[before as usize].next = next;
    }

    /// Recounts all frames and lists, and compares.
    #[cfg(test)]
    pub(super) fn check(&self, buffers: &BufferPool) {
        let count = |usage: Usage| self.frames.iter().filter(|frame| frame.usage == usage).count();
        assert_eq!(count(Usage::Dirty), self.dirty_count);
        assert_eq!(count(Usage::Reading), self.reading_count);
        let scanned = || self.frames.iter().filter(|frame| frame.scanned);
        assert_eq!(scanned().count(), self.scanned_count);
        assert!(
            scanned().all(|frame| frame.usage == Usage::Clean && frame.scan_listed && !frame.cold),
            "B10"
        );
        assert_eq!(self.frames.iter().filter(|frame| frame.scan_listed).count(), self.scans.len(), "B10");
        assert_eq!(self.frames.iter().filter(|frame| frame.in_flight).count(), self.writing_count);
        let resident = self.frames.iter().filter(|f| f.usage == Usage::Clean && !f.cold).count();
        assert_eq!(resident, self.resident_count);
        assert_eq!(self.frames.iter().filter(|frame| frame.cold).count(), self.cold.len());
        assert_eq!(self.frames.iter().filter(|frame| frame.listed).count(), self.dirty.len());
        for (index, frame) in self.frames.iter().enumerate() {
            assert!(frame.usage != Usage::Dirty || frame.listed, "B3");
            assert!(!frame.cold || matches!(frame.usage, Usage::Free | Usage::Clean), "B3");
            let linked = !matches!(frame.usage, Usage::Free | Usage::Owned);
            assert_eq!(self.find(frame.address) == Some(index as u32), linked, "B2");
            assert_eq!(
                buffers.is_taken(index as u32),
                matches!(frame.usage, Usage::Owned | Usage::Reading | Usage::Changing),
                "B1"
            );
        }
        let in_queue = self.frames.iter().flat_map(|frame| [frame.first_lsn, frame.flight_lsn]);
        assert_eq!(in_queue.filter(|lsn| *lsn != 0).count(), self.changes.len(), "B9");
        let of_writers =
            |frame: &&Frame| frame.writer != NONE && matches!(frame.usage, Usage::Dirty | Usage::Writing);
        let unwritten: u32 = self.unwritten.iter().flatten().sum();
        assert_eq!(unwritten as usize, self.frames.iter().filter(of_writers).count(), "B7");
    }
}

/// Returns an empty list with room for `count` elements.
fn in_huge_pages<T>(count: usize) -> Vec<T> {
    let mut list = Vec::with_capacity(count);
    ask_huge_pages(list.spare_capacity_mut());
    list
}

fn one_less(count: &mut usize) {
    *count = count.checked_sub(1).expect("B7: the counts are those of the frames");
}

/// True if a dirty block may be written: no write of it is in flight, and its log is durable.
fn may_be_written(frame: &Frame, durable: Lsn) -> bool {
    !frame.in_flight && (frame.last_lsn == 0 || frame.last_lsn < durable.0)
}
