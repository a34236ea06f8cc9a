//! The log buffer: a ring of words that sessions fill without a lock.
//!
//! How: a session adds its length to one counter and has its place; it copies its record there, and
//! notes last where it ends. For each [`HEADER_BYTES`] of the ring there is one such end, because
//! no record is shorter: one that lies behind the beginning of a record says that it is complete,
//! and one of a round before never does. So the writer takes records from the oldest on until an
//! end is not there.
//!
//! ```text
//!     freed               taken            reserved     freed + size
//!       |  kept for readers |  complete or not  |  free      |
//! ```
//!
//! The half of the ring that was written last is kept: old versions of rows are mostly found there.
//! A reader copies first and looks then whether its place had been given back meanwhile.
//!
//! Why not a first word that is zero until a record is complete: the writer would have to make
//! zeros of all that it has written, in cache lines that sessions on other processors have.
//!
//! Why words and not bytes: a shared byte array would need unsafe code.
//!
//! The atomics are `super::atomic`: a model checker takes this file with its own
//! (`tests/it/model.rs`).
//!
//! Invariants:
//! - R1 A place is written by the session that reserved it alone.
//! - R2 `freed <= taken <= reserved <= freed + size`, but for sessions that wait for room.

use super::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use super::record::HEADER_BYTES;
use plumb_units::Lsn;

/// Something that sessions change all the time, in cache lines of its own: two lines, because
/// processors fetch them in pairs.
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
    /// Where the record ends that begins in these [`HEADER_BYTES`].
    ends: Box<[AtomicU64]>,
    reserved: Apart<AtomicU64>,
    freed: Apart<AtomicU64>,
}

impl LogBuffer {
    /// An empty buffer of so many bytes, a power of two; its first record has this LSN.
    pub(super) fn new(bytes: usize, first: Lsn) -> LogBuffer {
        assert!(bytes.is_power_of_two(), "places wrap around");
        assert!(first.0.is_multiple_of(8), "records begin at words");
        let at = || AtomicU64::new(first.0);
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let (words, ends) = (zeros(bytes / 8), zeros(bytes / HEADER_BYTES));
        LogBuffer { words, ends, reserved: Apart::new(at()), freed: Apart::new(at()) }
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
        let end = lsn.0 + record.len() as u64;
        assert!(self.has_room(Lsn(end)), "R1: the place is free");
        // A reader that meets a byte of it learns that what it wanted is gone.
        fence(Release);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let mut bytes = record.chunks_exact(8);
        for piece in self.pieces(lsn.0, record.len()) {
            for (place, bytes) in piece.iter().zip(bytes.by_ref()) {
                place.store(word(bytes), Relaxed);
            }
        }
        self.end_of(lsn.0).store(end, Release);
    }

    /// Where the records that are complete end, from a record on; at most so many bytes on. Calls
    /// `each` with the length of each.
    pub(super) fn complete_from(&self, from: Lsn, most: usize, mut each: impl FnMut(usize)) -> Lsn {
        let mut at = from.0;
        loop {
            let end = self.end_of(at).load(Acquire);
            if end <= at || end > from.0 + most as u64 {
                return Lsn(at);
            }
            each((end - at) as usize);
            at = end;
        }
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

    /// Records before `written` have been written: gives back all of their places but half the
    /// ring.
    pub(super) fn release(&self, written: Lsn) {
        let until = written.0.saturating_sub(self.bytes() as u64 / 2);
        if until > self.freed.load(Relaxed) {
            self.freed.store(until, Release);
        }
    }

    /// The record at an LSN before `written`; `None` when its place has been given back.
    pub(super) fn read(&self, lsn: Lsn, into: &mut Vec<u8>) -> Option<()> {
        let end = self.end_of(lsn.0).load(Acquire);
        let length =
            end.checked_sub(lsn.0).filter(|length| (1..=self.bytes() as u64 / 2).contains(length))?;
        into.resize(length as usize, 0);
        self.copy(lsn, into);
        fence(Acquire);
        (lsn.0 >= self.freed.load(Relaxed)).then_some(())
    }

    fn end_of(&self, lsn: u64) -> &AtomicU64 {
        &self.ends[(lsn as usize / HEADER_BYTES) & (self.ends.len() - 1)]
    }

    /// The words of so many bytes from a place on: up to the end of the ring, and from its start
    /// on.
    fn pieces(&self, from: u64, bytes: usize) -> [&[AtomicU64]; 2] {
        let (before, behind) = self.words.split_at((from as usize / 8) & (self.words.len() - 1));
        let first = behind.len().min(bytes / 8);
        [&behind[..first], &before[..bytes / 8 - first]]
    }
}
