//! Buffer handles: what a session holds of a frame.
//!
//! A [`PinnedBlock`] lets it look, with others; an [`OwnedFrame`] lets it read or format a block that nobody sees yet; a [`ChangingBlock`] lets
//! it alone see and change a block that is in the cache. Each ends by being dropped, or by the one call that says what became of the bytes. A
//! [`DirtyBlock`] is a pin of a database writer's.
//!
//! The buffer itself goes with the handle: to use it takes no latch, nor does the end of a pin, which is seen by the buffer's count of them.

use super::frames::Taken;
use super::latches::Latches;
use super::{BufferPin, IoBuffer, Purpose};
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};
use std::ops::{Deref, DerefMut};

/// A block in the cache, which stays there unchanged while this lives.
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

    /// Where the block belongs.
    #[must_use]
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

/// A dirty block on its way to a database writer.
#[derive(Debug)]
pub(super) struct DirtyBlock<'a> {
    pub(super) frame: u32,
    pub(super) address: BlockAddress,
    pub(super) purpose: Purpose,
    /// Gone once copied: until then the frame is pinned.
    pub(super) bytes: Option<BufferPin<'a>>,
    /// It was changed in place: its checksum is to be made.
    pub(super) logged: bool,
}

/// A frame whose bytes one session alone can see (B1). Given back when dropped.
#[derive(Debug)]
pub(super) struct OwnedFrame<'a> {
    latches: &'a Latches,
    index: u32,
    /// `None` while they are lent.
    bytes: Option<IoBuffer>,
}

impl<'a> OwnedFrame<'a> {
    pub(super) fn new(latches: &'a Latches, (index, bytes): Taken) -> OwnedFrame<'a> {
        OwnedFrame { latches, index, bytes: Some(bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.as_mut().expect("the owner has the bytes")
    }

    /// Lends its buffer to the request that reads the block into it.
    pub(super) fn lend(&mut self) -> IoBuffer {
        self.bytes.take().expect("the owner has the bytes")
    }

    /// The buffer is back. Where it is not, for it went down with its ring, the frame goes with it.
    pub(super) fn restore(&mut self, buffer: IoBuffer) {
        self.bytes = Some(buffer);
    }

    /// A block was formatted in the frame, which goes to the dirty list.
    pub(super) fn into_taken(mut self) -> Taken {
        let taken = (self.index, self.bytes.take().expect("the owner has the bytes"));
        // It is not given back: it has a block.
        std::mem::forget(self);
        taken
    }

    /// The block has been read into the frame: from now on others find it.
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

/// A block that one session changes in place. It is given back as it was when dropped, and must be then.
#[derive(Debug)]
pub struct ChangingBlock<'a> {
    latches: &'a Latches,
    index: u32,
    /// `None` once it is given back.
    bytes: Option<IoBuffer>,
}

impl<'a> ChangingBlock<'a> {
    pub(super) fn new(latches: &'a Latches, (index, bytes): Taken) -> ChangingBlock<'a> {
        ChangingBlock { latches, index, bytes: Some(bytes) }
    }

    /// The record of this LSN, which is in the block's header, changed it.
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
