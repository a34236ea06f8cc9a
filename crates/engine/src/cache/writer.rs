//! Writes a segment block by block through the cache; DBWR writes to disk.
//!
//! The conventional sibling of the storage module's segment writer: the owner formats a block in
//! a frame of the cache, and `seal` gives it its header and puts it on the dirty list. A
//! database writer writes it when posted. The session waits when no frame is free, and when it
//! needs its blocks on disk.
//!
//! A writer that is dropped unfinished releases its extents. Before that its blocks are discarded,
//! and writes in flight are waited for: a late write would hit the extents' next owner (B5).

use super::buffer_cache::BufferCache;
use super::caches::BufferCaches;
use super::handles::OwnedFrame;
use crate::EngineError;
use crate::access::Access;
use crate::storage::block::{self, BlockKind, Content};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::{Extent, Tablespace};
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};

/// Properties of the blocks that a writer writes.
#[derive(Debug, Clone, Copy)]
pub struct CacheWriterOptions {
    /// Kind noted in each block's header.
    pub kind: BlockKind,
    /// LSN of the operation that writes them.
    pub lsn: Lsn,
}

/// Writes the blocks of one segment through the cache.
#[derive(Debug)]
pub struct CacheWriter<'a> {
    session: &'a Session,
    access: &'a Access,
    cache: &'a BufferCache,
    options: CacheWriterOptions,
    /// Key of this writer's unwritten-block counter.
    number: u32,
    current: Option<OwnedFrame<'a>>,
    cursor: ExtentCursor<'a>,
}

impl<'a> CacheWriter<'a> {
    /// Makes a writer that has written nothing and owns no extent yet.
    ///
    /// # Errors
    /// If no cache has its block size, memory cannot be allocated, or the cache has failed.
    ///
    /// # Panics
    /// If the tablespace is not one of the caches' tablespaces.
    pub fn new(
        session: &'a Session,
        (caches, access): (&'a BufferCaches, &'a Access),
        tablespace: &'a Tablespace,
        options: CacheWriterOptions,
    ) -> Result<CacheWriter<'a>, EngineError> {
        let cache = caches.of(tablespace.purpose)?;
        let of_cache = std::ptr::eq(tablespace, cache.shared().tablespaces.get(tablespace.purpose));
        assert!(of_cache, "the cache finds a block's file by purpose");
        let number = cache.shared().latches.open_writer(session)?;
        let cursor = ExtentCursor { tablespace, extents: Vec::new(), following: None };
        Ok(CacheWriter { session, access, cache, options, number, current: None, cursor })
    }

    /// Returns the block to format next, all of it, header included. Its content is undefined at
    /// first. It stays the same until `seal`.
    ///
    /// # Errors
    /// If a write of the cache failed or no extent can be allocated.
    pub fn block(&mut self) -> Result<&mut [u8], EngineError> {
        self.address()?;
        if self.current.is_none() {
            self.current = Some(self.cache.shared().own(self.session)?);
        }
        Ok(self.current.as_mut().expect("owned above").bytes_mut())
    }

    /// Returns the address that the next block will have.
    ///
    /// # Errors
    /// If no extent can be allocated.
    pub fn address(&mut self) -> Result<BlockAddress, EngineError> {
        self.cursor.address(self.session, self.access)
    }

    /// Returns the address of the block after the one being formatted.
    ///
    /// # Errors
    /// If no extent can be allocated.
    pub fn following_address(&mut self) -> Result<BlockAddress, EngineError> {
        self.cursor.following_address(self.session, self.access)
    }

    /// Gives the block its header and checksum and puts it on the dirty list.
    ///
    /// # Errors
    /// If a write of the cache failed, or the database writers cannot be started.
    ///
    /// # Panics
    /// If no block has been formatted.
    pub fn seal(&mut self, content: Content) -> Result<BlockAddress, EngineError> {
        let address = self.address()?;
        let mut frame = self.current.take().expect("a block was formatted");
        block::seal(frame.bytes_mut(), self.options.kind, address, self.options.lsn, content);
        self.cache.start_writers()?;
        let place = (address, self.cursor.tablespace.purpose);
        self.cache.shared().latches.dirtied(self.session, frame, place, self.number)?;
        self.cursor.advance();
        Ok(address)
    }

    /// Asks the database writers to write the sealed blocks; does not wait.
    ///
    /// # Errors
    /// If a write of the cache failed.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.cache.shared().latches.flush()
    }

    /// Waits until all sealed blocks are on disk. From then on they may be read past the cache, and
    /// the writer can continue.
    ///
    /// # Errors
    /// If a write of the cache failed.
    pub fn drain(&mut self) -> Result<(), EngineError> {
        self.cache.shared().latches.drain(self.session, self.number)
    }

    /// Waits until all blocks are written and returns the segment.
    ///
    /// # Errors
    /// If a write of the cache failed; the extents then go back to the tablespace.
    pub fn finish(mut self) -> Result<Vec<SegmentExtent>, EngineError> {
        self.drain()?;
        Ok(self.cursor.finish())
    }
}

impl Drop for CacheWriter<'_> {
    /// Releases the extents of an unfinished segment, because nothing refers to it.
    fn drop(&mut self) {
        self.current = None;
        let extents = self.cursor.abandon();
        self.cache.discard(self.session, extents.iter().copied());
        self.cache.shared().latches.close_writer(self.number);
        self.cursor.tablespace.release(extents);
    }
}

#[derive(Debug)]
struct ExtentCursor<'a> {
    tablespace: &'a Tablespace,
    /// All extents but the last are full.
    extents: Vec<SegmentExtent>,
    /// Allocated early because its address was requested.
    following: Option<Extent>,
}

impl ExtentCursor<'_> {
    fn address(&mut self, session: &Session, access: &Access) -> Result<BlockAddress, EngineError> {
        match self.extents.last() {
            Some(last) if last.used < last.extent.blocks => Ok(last.extent.address(last.used)),
            _ => {
                let extent = match self.following.take() {
                    Some(extent) => extent,
                    None => self.tablespace.allocate(session, access)?,
                };
                let known = self.extents.iter().any(|known| known.extent.address(0) == extent.address(0));
                assert!(!known, "an extent has one owner, and once");
                self.extents.push(SegmentExtent { extent, used: 0 });
                Ok(extent.address(0))
            }
        }
    }

    fn following_address(&mut self, session: &Session, access: &Access) -> Result<BlockAddress, EngineError> {
        self.address(session, access)?;
        let last = self.extents.last().expect("taken above");
        if last.used + 1 < last.extent.blocks {
            return Ok(last.extent.address(last.used + 1));
        }
        if self.following.is_none() {
            self.following = Some(self.tablespace.allocate(session, access)?);
        }
        Ok(self.following.expect("taken above").address(0))
    }

    fn advance(&mut self) {
        let last = self.extents.last_mut().expect("the block has an address");
        assert!(last.used < last.extent.blocks, "a block lies inside its extent");
        last.used += 1;
    }

    /// Returns the extents in use and releases the others.
    fn finish(&mut self) -> Vec<SegmentExtent> {
        let (used, unused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.extents).into_iter().partition(|extent| extent.used > 0);
        self.tablespace.release(unused.into_iter().map(|extent| extent.extent).chain(self.following.take()));
        used
    }

    /// Returns all extents, used or not, and leaves the cursor without any.
    fn abandon(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.extents).into_iter().map(|e| e.extent).chain(self.following.take()).collect()
    }
}
