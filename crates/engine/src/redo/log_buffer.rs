//! The log buffer: a ring of words that sessions fill without a lock.
//!
//! How: a session adds its length to one counter and has its place; it copies its record there, the first word
//! last. A first word that is not zero says that the record is complete, so the writer takes records from the oldest on until it meets a
//! zero. Behind the writer the words become zeros again before the place is given to others.
//!
//! ```text
//!   retired    freed               taken            reserved     freed + size
//!      | zeroed  |  kept for readers |  complete or not  |  free      |
//! ```
//!
//! The half of the ring that was written last is kept: old versions of rows are mostly found there.
//! A reader copies first and looks then whether its place had been retired meanwhile.
//!
//! Why words and not bytes: a shared byte array would need unsafe code.
//!
//! The atomics are `super::atomic`: a model checker takes this file with its own (`tests/it/model.rs`).
//!
//! Invariants:
//! - R1 A place is written by the session that reserved it alone, and it is zeros before.
//! - R2 `retired <= freed <= taken <= reserved <= freed + size`, but for sessions that wait for room.

use super::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use super::record::HEADER_BYTES;
use plumb_units::Lsn;

/// Something that sessions change all the time, in cache lines of its own: two lines, because processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Apart<T>(T);

impl<T> Apart<T> {
    pub(super) fn new(value: T) -> Apart<T> {
        Apart(value)
    }
}

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// Records on their way to the log files.
#[derive(Debug)]
pub(super) struct LogBuffer {
    words: Box<[AtomicU64]>,
    reserved: Apart<AtomicU64>,
    freed: Apart<AtomicU64>,
    retired: AtomicU64,
}

impl LogBuffer {
    /// An empty buffer of so many bytes, a power of two; its first record has this LSN.
    pub(super) fn new(bytes: usize, first: Lsn) -> LogBuffer {
        assert!(bytes.is_power_of_two(), "places wrap around");
        assert!(first.0.is_multiple_of(8), "records begin at words");
        let at = || AtomicU64::new(first.0);
        let words = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        LogBuffer { words, reserved: Apart::new(at()), freed: Apart::new(at()), retired: at() }
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.words.len() * 8
    }

    /// The LSN of the next record.
    pub(super) fn reserved(&self) -> Lsn {
        Lsn(self.reserved.load(Acquire))
    }

    /// A place for a record of so many bytes, which the session must fill once there is room.
    pub(super) fn reserve(&self, bytes: usize) -> Lsn {
        assert!(bytes >= HEADER_BYTES && bytes.is_multiple_of(8), "a record of {bytes} bytes");
        assert!(bytes <= self.bytes() / 2, "a record of {bytes} bytes fits half the log buffer");
        Lsn(self.reserved.fetch_add(bytes as u64, Relaxed))
    }

    /// Whether what ends there may be filled in.
    pub(super) fn has_room(&self, end: Lsn) -> bool {
        end.0 <= self.freed.load(Acquire) + self.bytes() as u64
    }

    /// Copies a record to its place; from then on it is complete.
    pub(super) fn fill(&self, lsn: Lsn, record: &[u8]) {
        assert!(self.has_room(Lsn(lsn.0 + record.len() as u64)), "R1: the place is free");
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let (first, rest) = record.split_at(8);
        let mut bytes = rest.chunks_exact(8);
        for piece in self.pieces(lsn.0 + 8, rest.len()) {
            for (place, bytes) in piece.iter().zip(bytes.by_ref()) {
                place.store(word(bytes), Relaxed);
            }
        }
        self.at(lsn.0).store(word(first), Release);
    }

    /// Where the records that are complete end, from a record on; at most so many bytes on. Calls `each` with the length of each.
    pub(super) fn complete_from(&self, from: Lsn, most: usize, mut each: impl FnMut(usize)) -> Lsn {
        let mut end = from.0;
        // Behind it come records that are kept, from a round before.
        let limit = self.freed.load(Relaxed) + self.bytes() as u64;
        while end < limit {
            let length = self.at(end).load(Acquire) as u32 as usize;
            if length == 0 || end + length as u64 > from.0 + most as u64 {
                break;
            }
            each(length);
            end += length as u64;
        }
        Lsn(end)
    }

    /// Copies complete records out.
    pub(super) fn copy(&self, from: Lsn, into: &mut [u8]) {
        let mut bytes = into.chunks_exact_mut(8);
        for piece in self.pieces(from.0, bytes.len() * 8) {
            for (place, bytes) in piece.iter().zip(bytes.by_ref()) {
                bytes.copy_from_slice(&place.load(Relaxed).to_le_bytes());
            }
        }
    }

    /// Records before `written` have been written: gives back all of their places but half the ring.
    pub(super) fn release(&self, written: Lsn) {
        let keep = self.bytes() as u64 / 2;
        let (from, until) = (self.freed.load(Relaxed), written.0.saturating_sub(keep));
        if until <= from {
            return;
        }
        self.retired.store(until, Relaxed);
        fence(Release);
        for place in self.pieces(from, (until - from) as usize).into_iter().flatten() {
            place.store(0, Relaxed);
        }
        self.freed.store(until, Release);
    }

    /// The record at an LSN before `written`; `None` when its place has been given back.
    pub(super) fn read(&self, lsn: Lsn, into: &mut Vec<u8>) -> Option<()> {
        if lsn.0 < self.retired.load(Acquire) {
            return None;
        }
        let length = self.at(lsn.0).load(Acquire) as u32 as usize;
        if length < HEADER_BYTES || !length.is_multiple_of(8) || length > self.bytes() / 2 {
            return None;
        }
        into.resize(length, 0);
        self.copy(lsn, into);
        fence(Acquire);
        (lsn.0 >= self.retired.load(Relaxed)).then_some(())
    }

    fn at(&self, place: u64) -> &AtomicU64 {
        &self.words[self.number(place)]
    }

    /// The words of so many bytes from a place on: up to the end of the ring, and from its start on.
    fn pieces(&self, from: u64, bytes: usize) -> [&[AtomicU64]; 2] {
        let (before, behind) = self.words.split_at(self.number(from));
        let first = behind.len().min(bytes / 8);
        [&behind[..first], &before[..bytes / 8 - first]]
    }

    fn number(&self, place: u64) -> usize {
        (place / 8) as usize & (self.words.len() - 1)
    }
}
