//! Buffer handles: what a session holds of a frame.
//!
//! A [`PinnedBlock`] lets it look, with others; an [`OwnedFrame`] lets it read or format a block that nobody sees yet; a [`ChangingBlock`] lets
//! it alone see and change a block that is in the cache. Each ends by being dropped, or by the one call that says what became of the bytes.
//!
//! The bytes themselves go with the handle: to use them takes no latch, and that a pin ends is seen by the count of their `Arc`.

use super::IoBuffer;
use super::frames::Taken;
use super::latches::Latches;
use super::sync::Arc;
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};
use std::ops::{Deref, DerefMut};

/// A block in the cache, which stays there unchanged while this lives.
#[derive(Debug)]
pub struct PinnedBlock {
    address: BlockAddress,
    bytes: Arc<IoBuffer>,
}

impl PinnedBlock {
    #[inline]
    pub(super) fn new(address: BlockAddress, bytes: Arc<IoBuffer>) -> PinnedBlock {
        PinnedBlock { address, bytes }
    }

    /// Where the block belongs.
    #[must_use]
    pub fn address(&self) -> BlockAddress {
        self.address
    }
}

impl Deref for PinnedBlock {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A frame whose bytes one session alone can see (B1). Given back when dropped.
#[derive(Debug)]
pub(super) struct OwnedFrame<'a> {
    latches: &'a Latches,
    index: u32,
    /// `None` while they are lent.
    bytes: Option<Arc<IoBuffer>>,
}

impl<'a> OwnedFrame<'a> {
    pub(super) fn new(latches: &'a Latches, (index, bytes): Taken) -> OwnedFrame<'a> {
        OwnedFrame { latches, index, bytes: Some(bytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes.as_mut().expect("the owner has the bytes");
        Arc::get_mut(bytes).expect("B1: the owner holds the only reference")
    }

    /// Lends its buffer to the request that reads the block into it.
    pub(super) fn lend(&mut self) -> IoBuffer {
        let bytes = self.bytes.take().expect("the owner has the bytes");
        Arc::try_unwrap(bytes).expect("B1: the owner holds the only reference")
    }

    /// The buffer is back. Where it is not, for it went down with its ring, the frame goes with it.
    pub(super) fn restore(&mut self, buffer: IoBuffer) {
        self.bytes = Some(Arc::new(buffer));
    }

    /// A block was formatted in the frame, which goes to the dirty list.
    pub(super) fn into_taken(mut self) -> Taken {
        let taken = (self.index, self.bytes.take().expect("the owner has the bytes"));
        // It is not given back: it has a block.
        std::mem::forget(self);
        taken
    }

    /// The block has been read into the frame: from now on others find it.
    pub(super) fn arrived(self, session: &Session, touch: u8) -> PinnedBlock {
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
    bytes: Option<Arc<IoBuffer>>,
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
        let bytes = self.bytes.as_mut().expect("there until it is given back");
        Arc::get_mut(bytes).expect("B1: the owner holds the only reference")
    }
}

impl Drop for ChangingBlock<'_> {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        self.latches.end_change((self.index, bytes), None);
    }
}
