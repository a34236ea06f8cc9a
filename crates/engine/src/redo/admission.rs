//! Room in the log files, which a session is promised before it takes a block (L5).
//!
//! It is counted in bytes of log blocks. A record is charged for a write of its own; the write
//! gives back what the record did not take, being written with others. As much of each file as one
//! record may leave over at its end is not counted.

use super::log_buffer::Apart;
use super::log_writer::charge;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The free room of all log files.
#[derive(Debug)]
pub(crate) struct Room {
    free: Apart<AtomicI64>,
    log_block: usize,
    /// Left over for the records of checkpoints.
    spared: i64,
}

impl Room {
    pub(super) fn new(free: i64, log_block: usize, spared: i64) -> Room {
        Room { free: Apart::new(AtomicI64::new(free - spared)), log_block, spared }
    }

    pub(super) fn free(&self) -> i64 {
        self.free.load(Relaxed)
    }

    pub(super) fn log_block(&self) -> usize {
        self.log_block
    }

    /// Returns the bytes of log blocks that a record of so many bytes may take.
    pub(crate) fn charge(&self, record: usize) -> i64 {
        charge(record, self.log_block)
    }

    /// Takes so many bytes of log blocks; `None` when there are fewer.
    pub(super) fn admit(&self, bytes: i64) -> Option<Admission<'_>> {
        self.take(bytes, 0).then(|| Admission { room: self, bytes })
    }

    /// Returns an admission to what was promised before a crash: room to undo what it left.
    pub(crate) fn promise_of_the_past(&self) -> Admission<'_> {
        Admission { room: self, bytes: 0 }
    }

    /// Takes the charge of a checkpoint's record, for which some room is spared. False when that
    /// has been used up by checkpoints that have not been completed.
    pub(crate) fn take_for_checkpoint(&self, record: usize) -> bool {
        self.take(self.charge(record), self.spared)
    }

    /// Takes bytes of the room and of what is spared; false when there are fewer. Takes first and
    /// gives back what was not there, so that sessions on two processors pass the
    /// counter's line once and not twice. A session that reads it in between may wait for room a
    /// moment too early.
    pub(super) fn take(&self, bytes: i64, spared: i64) -> bool {
        let is_there = self.free.fetch_sub(bytes, Relaxed) + spared >= bytes;
        if !is_there {
            self.give(bytes);
        }
        is_there
    }

    pub(super) fn give(&self, bytes: i64) {
        self.free.fetch_add(bytes, Relaxed);
    }
}

/// Room in the log that was promised to a session. Given back when dropped.
#[derive(Debug)]
pub struct Admission<'a> {
    room: &'a Room,
    bytes: i64,
}

impl Admission<'_> {
    /// Takes the charge of a record out of it; the rest stays.
    pub fn spend(&mut self, record: usize) {
        self.bytes -= self.room.charge(record);
    }

    /// Moves all of another one into it.
    pub(crate) fn join(&mut self, mut other: Admission<'_>) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits some of it off.
    pub(crate) fn split(&mut self, bytes: i64) -> Self {
        self.bytes -= bytes;
        Admission { room: self.room, bytes }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        // Mostly all of it was spent, and sessions on other processors need the counter's line.
        if self.bytes != 0 {
            self.room.give(self.bytes);
        }
    }
}
