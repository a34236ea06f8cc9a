//! Room in the log files, promised to a session before it takes a block (L5).
//!
//! Room counts bytes of log blocks. A record is charged as if it were written alone; the write
//! returns the difference when it joins other records. The bytes that one record may leave unused
//! at the end of each file are not counted.

use super::log_buffer::Apart;
use super::log_writer::charge;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Free room of all log files, in bytes of log blocks.
#[derive(Debug)]
pub(crate) struct Room {
    free: Apart<AtomicI64>,
    log_block: usize,
    /// Bytes reserved for the records of checkpoints.
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

    /// Returns the bytes of log blocks that a record of `record` bytes may take.
    pub(crate) fn charge(&self, record: usize) -> i64 {
        charge(record, self.log_block)
    }

    /// Takes `bytes` of log blocks; `None` if fewer are free.
    pub(super) fn admit(&self, bytes: i64) -> Option<Admission<'_>> {
        self.take(bytes, 0).then(|| Admission { room: self, bytes })
    }

    /// Returns an empty admission for the rollback of transactions that a crash interrupted. Its
    /// records are charged when it is dropped, because their room was promised before the crash.
    pub(crate) fn promise_of_the_past(&self) -> Admission<'_> {
        Admission { room: self, bytes: 0 }
    }

    /// Takes the charge of a checkpoint's record, from the spared room too. False if checkpoints
    /// that did not complete have used that room.
    pub(crate) fn take_for_checkpoint(&self, record: usize) -> bool {
        self.take(self.charge(record), self.spared)
    }

    /// Takes the unused rest of a file at a log switch; false if sessions were promised that room.
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

/// Room in the log promised to a session; the unspent rest is returned on drop.
#[derive(Debug)]
pub struct Admission<'a> {
    room: &'a Room,
    bytes: i64,
}

impl Admission<'_> {
    /// Spends the charge of a record of `record` bytes.
    pub fn spend(&mut self, record: usize) {
        self.bytes -= self.room.charge(record);
    }

    /// Takes over all room of another admission.
    pub(crate) fn join(&mut self, mut other: Admission<'_>) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits off `bytes` of log blocks.
    pub(crate) fn split(&mut self, bytes: i64) -> Self {
        self.bytes -= bytes;
        Admission { room: self.room, bytes }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        // Usually nothing is left, and sessions on other processors need the counter's cache line.
        if self.bytes != 0 {
            self.room.give(self.bytes);
        }
    }
}
