//! Buffer handles: the hold that a session has on a frame.
//!
//! - [`PinnedBlock`]: reads a block, shared with other sessions.
//! - [`OwnedFrame`]: reads or formats a block that no other session can see yet.
//! - [`ChangingBlock`]: reads and changes a cached block exclusively.
//! - [`DirtyBlock`]: a database writer's pin.
//!
//! A handle ends by being dropped, or by the one call that says what was done with the bytes. It
//! carries the buffer itself, so using it takes no latch. Unpinning takes none either: it only
//! lowers the buffer's count of pins.

use super::frames::Taken;
use super::latches::Latches;
use super::{BufferPin, IoBuffer, Purpose};
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};
use std::ops::{Deref, DerefMut};

/// A pinned block: it stays in the cache, unchanged, while this lives.
#[derive(Debug)]
pub struct PinnedBlock<'a> {
    address: BlockAddress,
    bytes: BufferPin<'a>,
}

impl<'a> PinnedBlock<'a> {
    #[inline]
    pub(super) fn new(address: BlockAddress, bytes: BufferPin<'a>) -> PinnedBlock<'a> {
        PinnedBlock { address, bytes }
    }

    /// Returns the address of the block.
    pub fn address(&self) -> BlockAddress {
        self.address
    }
}

impl Deref for PinnedBlock<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Debug)]
pub(super) struct DirtyBlock<'a> {
    pub(super) frame: u32,
    pub(super) address: BlockAddress,
    pub(super) purpose: Purpose,
    /// `None` once copied; until then it pins the frame.
    pub(super) bytes: Option<BufferPin<'a>>,
    /// The block was changed in place, so its checksum must be computed.
    pub(super) logged: bool,
}

/// A frame whose bytes only one session can see (B1). Dropping it returns the frame.
#[derive(Debug)]
pub(super) struct OwnedFrame<'a> {
    latches: &'a Latches,
    index: u32,
    /// `None` while lent to a request.
    bytes: Option<IoBuffer>,
}

impl<'a> OwnedFrame<'a> {
    pub(super) fn new(latches: &'a Latches, (index, bytes): Taken) -> OwnedFrame<'a> {
        OwnedFrame { latches, index, bytes: Some(bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().expect("the owner has the bytes")
    }

    /// Lends the buffer to the request that reads the block into it.
    pub(super) fn lend(&mut self) -> IoBuffer {
        self.bytes.take().expect("the owner has the bytes")
    }

    /// Takes the buffer back. Without this call (the ring failed with it) the frame is lost too.
    pub(super) fn restore(&mut self, buffer: IoBuffer) {
        self.bytes = Some(buffer);
    }

    /// Ends the handle without returning the frame, because the frame holds a block now.
    pub(super) fn into_taken(mut self) -> Taken {
        let taken = (self.index, self.bytes.take().expect("the owner has the bytes"));
        // Skips the drop, which would return the frame.
        std::mem::forget(self);
        taken
    }

    /// Makes the block available to other sessions.
    pub(super) fn arrived(self, session: &Session, touch: u8) -> PinnedBlock<'a> {
        let latches = self.latches;
        latches.arrived(session, self.into_taken(), touch)
    }
}

impl Drop for OwnedFrame<'_> {
    fn drop(&mut self) {
        self.latches.give_back(self.index, self.bytes.take());
    }
}

/// A block held exclusively to be changed in place. A drop returns it as unchanged, so its
/// bytes must be unchanged then.
#[derive(Debug)]
pub struct ChangingBlock<'a> {
    latches: &'a Latches,
    index: u32,
    /// `None` once the bytes are returned.
    bytes: Option<IoBuffer>,
}

impl<'a> ChangingBlock<'a> {
    pub(super) fn new(latches: &'a Latches, (index, bytes): Taken) -> ChangingBlock<'a> {
        ChangingBlock { latches, index, bytes: Some(bytes) }
    }

    /// Returns the block, changed by the record of this LSN; the block's header has the same LSN.
    pub fn changed(mut self, lsn: Lsn) {
        let bytes = self.bytes.take().expect("there until it is given back");
        self.latches.end_change((self.index, bytes), Some(lsn));
    }
}

impl Deref for ChangingBlock<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("there until it is given back")
    }
}

impl DerefMut for ChangingBlock<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().expect("there until it is given back")
    }
}

impl Drop for ChangingBlock<'_> {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        self.latches.end_change((self.index, bytes), None);
    }
}
