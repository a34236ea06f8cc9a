//! Frames, the table that finds them, and the lists over them.
//!
//! Everything here happens under the cache's mutex and nothing waits. The bytes are those of the [`BufferPool`], which has a buffer for each
//! frame by its number: a frame that is Owned, Reading or Changing has its buffer taken, and the buffers of all others are in the pool (B1). A list
//! entry may be out of date: a frame that leaves a list early stays in it until
//! its turn, and its flag keeps it from being entered twice (B3), so that no list
//! grows beyond the number of frames and none needs a search to remove from.

use super::handles::{DirtyBlock, PinnedBlock};
use super::{BufferPool, IoBuffer, Purpose};
use plumb_io::ask_huge_pages;
use plumb_units::{BlockAddress, Lsn};
use std::collections::{BTreeSet, VecDeque};

/// The end of a chain.
pub(super) const NONE: u32 = u32::MAX;
/// Rounds of the hand that a block survives without being asked for.
const TOUCH_MAX: u8 = 3;
/// One part in so many of the frames is left to blocks of scans that nobody else has asked for.
const SCANNED_PART: usize = 8;
/// While some frames are dirty the hand passes a quarter of all, at least so many, before
/// the session waits for a database writer instead.
const SWEEP_MIN: usize = 64;

/// What a frame is used for; the arrows between these are in the module's drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Nothing.
    Free,
    /// A session formats a block in it; not to be found yet.
    Owned,
    /// A session reads a block into it.
    Reading,
    /// Holds what is on disk.
    Clean,
    /// Holds what is not on disk yet.
    Dirty,
    /// A database writer is writing it.
    Writing,
    /// A session changes it in place.
    Changing,
}

/// One cache line, and in one.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Frame {
    /// Which block it holds, unless Free or Owned.
    address: BlockAddress,
    purpose: Purpose,
    usage: Usage,
    touch: u8,
    /// In the cold queue.
    cold: bool,
    /// Read by a scan, and asked for by nobody since; and whether the list of such frames has it, which may be out of date.
    scanned: bool,
    scan_listed: bool,
    /// In the dirty list.
    listed: bool,
    /// The writer that this block counts as unwritten for, while Dirty or Writing; none of a logged block.
    pub(super) writer: u32,
    /// A database writer has taken it and has not said that it is written.
    in_flight: bool,
    /// While Changing: what it is if nothing is changed.
    resume: Usage,
    /// LSNs of its first and last change that are not written, and of the first that is in flight; 0 for none.
    first_lsn: u64,
    last_lsn: u64,
    flight_lsn: u64,
    /// The next frame of its bucket.
    next: u32,
}

const _: () = assert!(size_of::<Frame>() == 64);

/// A frame that was taken: its number and its buffer.
pub(super) type Taken = (u32, IoBuffer);

/// A device at a moment, as those see it who transfer blocks. Two of them say whether it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceProgress {
    /// Whether a transfer is under way.
    pub(crate) is_asked: bool,
    /// Grows with what has been transferred.
    pub(crate) answer_count: u64,
}

impl DeviceProgress {
    /// That of two parts together.
    pub(crate) fn with(self, other: DeviceProgress) -> DeviceProgress {
        let is_asked = self.is_asked || other.is_asked;
        DeviceProgress { is_asked, answer_count: self.answer_count + other.answer_count }
    }

    /// Whether nothing was answered until `later`, although something was asked for all the time.
    pub(crate) fn stood_until(self, later: DeviceProgress) -> bool {
        self.is_asked && self.answer_count == later.answer_count
    }
}

/// All frames of a cache; none until it is populated.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) frames: Vec<Frame>,
    /// First frame of each chain; a power of two of them.
    pub(super) buckets: Vec<u32>,
    // Lists.
    /// Free frames first, then clean temp blocks: what is taken next.
    pub(super) cold: VecDeque<u32>,
    /// LRUW: dirty frames, the oldest first.
    pub(super) dirty: VecDeque<u32>,
    /// Frames that scans have read into, the oldest first.
    scans: VecDeque<u32>,
    /// Where the clock's hand is.
    hand: usize,
    // Counts.
    pub(super) dirty_count: usize,
    writing_count: usize,
    /// Frames that a session reads a block into.
    reading_count: usize,
    /// Clean frames of scans.
    scanned_count: usize,
    /// Clean frames outside the cold queue.
    pub(super) resident_count: usize,
    /// Transfers that have ended, well or not.
    answer_count: u64,
    /// Blocks of each writer that are not on disk; `None` for a number not in use.
    unwritten: Vec<Option<u32>>,
    /// The highest LSN of a block that was changed in place.
    last_change: u64,
    /// The checkpoint queue: LSN and frame of each first change that is not on disk, in flight or not.
    changes: BTreeSet<(u64, u32)>,
}

impl Frames {
    /// Makes so many frames.
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

    /// Blocks of a tablespace that it holds, found by a walk over all frames.
    pub(super) fn count_of(&self, purpose: Purpose) -> u64 {
        let holds =
            |frame: &&Frame| frame.purpose == purpose && !matches!(frame.usage, Usage::Free | Usage::Owned);
        self.frames.iter().filter(holds).count() as u64
    }

    /// Frames that a database writer will make available.
    pub(super) fn unwritten_count(&self) -> usize {
        self.dirty_count + self.writing_count
    }

    /// Whether a frame waits for the device, which will make it available sooner or later.
    pub(super) fn awaits_device(&self) -> bool {
        self.unwritten_count() + self.reading_count > 0
    }

    /// What the device owes now, and what it has done so far.
    pub(super) fn progress(&self) -> DeviceProgress {
        let is_asked = self.reading_count + self.writing_count > 0;
        DeviceProgress { is_asked, answer_count: self.answer_count }
    }

    pub(super) fn usage(&self, index: u32) -> Usage {
        self.frames[index as usize].usage
    }

    /// The frame that most likely holds the block, found without looking at any.
    #[inline]
    pub(super) fn likely(&self, address: BlockAddress) -> Option<u32> {
        self.buckets.get(self.bucket(address)).copied().filter(|index| *index != NONE)
    }

    /// The frame that holds the block, or is about to.
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

    /// A pin of a block that is there, and one touch more.
    #[inline]
    pub(super) fn pin<'a>(&mut self, index: u32, buffers: &'a BufferPool) -> PinnedBlock<'a> {
        self.leave_scan(index);
        let frame = &mut self.frames[index as usize];
        let usage = frame.usage;
        assert!(matches!(usage, Usage::Clean | Usage::Dirty | Usage::Writing), "B1: pinned while {usage:?}");
        frame.touch = (frame.touch + 1).min(TOUCH_MAX);
        PinnedBlock::new(frame.address, buffers.pin(index))
    }

    /// A frame to own: free, or cold, or the clock's choice.
    pub(super) fn take(&mut self, buffers: &BufferPool) -> Option<Taken> {
        let chosen = self.take_cold(buffers).or_else(|| self.take_scanned(buffers));
        let index = chosen.or_else(|| self.sweep(buffers))?;
        Some(self.own(index, buffers))
    }

    /// The oldest block of a scan, where these have more than their part of the frames.
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
            // Who has it pinned is the scan itself; the blocks behind it are no older.
            frame.scan_listed = true;
            self.scans.push_front(index);
            return None;
        }
        None
    }

    /// The block of a frame is one of a scan no more: it was asked for again, or goes.
    #[inline]
    fn leave_scan(&mut self, index: u32) {
        let frame = &mut self.frames[index as usize];
        if frame.scanned {
            frame.scanned = false;
            one_less(&mut self.scanned_count);
        }
    }

    /// Takes the frame that was chosen.
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

    /// Moves the hand until a clean frame has no touches left.
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
                one_less(&mut self.resident_count);
                return Some(index as u32);
            }
        }
        None
    }

    /// An owned frame is going to hold the block, which its owner now reads.
    pub(super) fn begin_read(&mut self, index: u32, address: BlockAddress, purpose: Purpose) {
        self.link(index, address, purpose);
        self.frames[index as usize].usage = Usage::Reading;
        self.reading_count += 1;
    }

    /// The block has been read; `touch` is what it begins with.
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

    /// The block was formatted in an owned frame and goes to the dirty list.
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

    /// The owner gives the frame up without a block in it. Without its buffer it is nobody's, and is not taken again.
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

    /// Up to `limit` dirty blocks, the oldest first, whose log is durable up to `durable`; they are Writing from now on.
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

    /// The same of blocks that were first changed before an LSN, in the order of these changes.
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
        // A frame in flight is in the queue twice when it has been changed again; it may not be written then.
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

    /// Takes the bytes of a block, to change them in place; `None` while somebody has it pinned.
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

    /// The bytes come back, changed by the record of this LSN, or as they were.
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
                // It was new, and is not going to be.
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

    /// A new block was formatted in an owned frame: others find it when its owner has changed it.
    pub(super) fn begin_new(&mut self, index: u32, address: BlockAddress, purpose: Purpose) {
        self.link(index, address, purpose);
        let frame = &mut self.frames[index as usize];
        frame.usage = Usage::Changing;
        frame.resume = Usage::Free;
        frame.touch = 1;
        frame.writer = NONE;
        (frame.first_lsn, frame.last_lsn, frame.flight_lsn) = (0, 0, 0);
    }

    /// The LSN of the first change that is not on disk.
    pub(super) fn first_unwritten(&self) -> Option<Lsn> {
        self.changes.first().map(|(lsn, _)| Lsn(*lsn))
    }

    /// The LSN of the last change of any block.
    pub(super) fn last_change(&self) -> Lsn {
        Lsn(self.last_change)
    }

    /// Whether a database writer has the block in hand.
    pub(super) fn is_in_flight(&self, index: u32) -> bool {
        self.frames[index as usize].in_flight
    }

    /// The block is on disk. Says how many blocks of its writer are not.
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
            // It has been changed meanwhile.
            _ => {}
        }
        self.note_written(writer)
    }

    /// Forgets a block, written or not. Whoever has it pinned keeps its bytes.
    pub(super) fn forget(&mut self, index: u32) {
        self.leave_scan(index);
        let frame = &self.frames[index as usize];
        let (usage, writer, cold) = (frame.usage, frame.writer, frame.cold);
        // In flight it is Writing, or Dirty again.
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

    /// A number for a session that is going to dirty blocks.
    pub(super) fn open_writer(&mut self) -> u32 {
        let vacant = self.unwritten.iter().position(Option::is_none).unwrap_or_else(|| {
            self.unwritten.push(None);
            self.unwritten.len() - 1
        });
        self.unwritten[vacant] = Some(0);
        vacant as u32
    }

    /// How many of its blocks are not on disk.
    pub(super) fn unwritten(&self, writer: u32) -> u32 {
        self.unwritten[writer as usize].expect("the writer is open")
    }

    /// The number may be given to another.
    pub(super) fn close_writer(&mut self, writer: u32) {
        let unwritten = self.unwritten[writer as usize].take();
        assert_eq!(unwritten, Some(0), "B5: blocks of a writer that ends are written or forgotten");
    }

    /// One block of the writer fewer is not on disk: how many are not.
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

    /// Counts everything anew and compares.
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

/// An empty list with room for so many.
fn in_huge_pages<T>(count: usize) -> Vec<T> {
    let mut list = Vec::with_capacity(count);
    ask_huge_pages(list.spare_capacity_mut());
    list
}

/// Takes one frame off a count of them.
fn one_less(count: &mut usize) {
    *count = count.checked_sub(1).expect("B7: the counts are those of the frames");
}

/// Whether a dirty block may be written: not while it is being written, nor before its log.
fn may_be_written(frame: &Frame, durable: Lsn) -> bool {
    !frame.in_flight && (frame.last_lsn == 0 || frame.last_lsn < durable.0)
}
