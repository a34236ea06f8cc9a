//! Writes a segment block by block through the cache, leaving the disk to DBWR.
//!
//! The conventional sibling of the storage module's segment writer: the owner
//! formats a block in a frame of the cache, `seal` gives it its header and puts
//! it on the dirty list, and a database writer writes it when posted. The session
//! waits when no frame is free, and when it must know its blocks on disk.
//!
//! A writer that is dropped unfinished gives its extents back. Before it does, its
//! blocks are forgotten, and those that a database writer has in hand are waited
//! for: a late write would hit the extents' next owner (B5).

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

/// What a writer writes.
#[derive(Debug, Clone, Copy)]
pub struct CacheWriterOptions {
    /// What its blocks hold.
    pub kind: BlockKind,
    /// The operation that writes them.
    pub lsn: Lsn,
}

/// Writes the blocks of one segment through the cache.
#[derive(Debug)]
pub struct CacheWriter<'a> {
    // What it works for.
    session: &'a Session,
    access: &'a Access,
    cache: &'a BufferCache,
    options: CacheWriterOptions,
    /// By which the cache counts its unwritten blocks.
    number: u32,
    /// The block being formatted.
    current: Option<OwnedFrame<'a>>,
    // Where the next block goes.
    cursor: ExtentCursor<'a>,
}

impl<'a> CacheWriter<'a> {
    /// A writer that has written nothing and owns no extent yet.
    ///
    /// # Errors
    /// When there is no cache for its blocks, its memory cannot be had, or it has failed.
    ///
    /// # Panics
    /// When the tablespace is not one of the caches'.
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

    /// The block to format next: all of it, header included. Its old content is
    /// undefined. Stays the same until `seal`.
    ///
    /// # Errors
    /// When a write of the cache failed or no extent can be had.
    pub fn block(&mut self) -> Result<&mut [u8], EngineError> {
        self.address()?;
        if self.current.is_none() {
            self.current = Some(self.cache.shared().own(self.session)?);
        }
        Ok(self.current.as_mut().expect("owned above").bytes_mut())
    }

    /// The address the next block will have.
    ///
    /// # Errors
    /// When no extent can be had.
    pub fn address(&mut self) -> Result<BlockAddress, EngineError> {
        self.cursor.address(self.session, self.access)
    }

    /// The address of the block after the one being formatted.
    ///
    /// # Errors
    /// When no extent can be had.
    pub fn following_address(&mut self) -> Result<BlockAddress, EngineError> {
        self.cursor.following_address(self.session, self.access)
    }

    /// Gives the block its header and checksum and hands it to the database writers.
    ///
    /// # Errors
    /// When a write of the cache failed, or the database writers cannot be started.
    ///
    /// # Panics
    /// When no block has been formatted.
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

    /// Asks the database writers to write what is sealed, without waiting for it.
    ///
    /// # Errors
    /// When a write of the cache failed.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        self.cache.shared().latches.flush()
    }

    /// Waits until all that is sealed is on disk; the writer can go on. From
    /// then on these blocks may be read past the cache.
    ///
    /// # Errors
    /// When a write of the cache failed.
    pub fn drain(&mut self) -> Result<(), EngineError> {
        self.cache.shared().latches.drain(self.session, self.number)
    }

    /// Waits until everything is written and gives back the segment.
    ///
    /// # Errors
    /// When a write of the cache failed; the extents are given back to the tablespace then.
    pub fn finish(mut self) -> Result<Vec<SegmentExtent>, EngineError> {
        self.drain()?;
        Ok(self.cursor.finish())
    }
}

impl Drop for CacheWriter<'_> {
    /// What was not finished is given back: nothing refers to it.
    fn drop(&mut self) {
        self.current = None;
        let extents = self.cursor.abandon();
        self.cache.discard(self.session, extents.iter().copied());
        self.cache.shared().latches.close_writer(self.number);
        self.cursor.tablespace.release(extents);
    }
}

/// The next address of a segment that grows by extents.
#[derive(Debug)]
struct ExtentCursor<'a> {
    tablespace: &'a Tablespace,
    /// All but the last are full.
    extents: Vec<SegmentExtent>,
    /// Taken early because its address was asked for.
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

    /// The extents in use; the others go back.
    fn finish(&mut self) -> Vec<SegmentExtent> {
        let (used, unused): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.extents).into_iter().partition(|extent| extent.used > 0);
        self.tablespace.release(unused.into_iter().map(|extent| extent.extent).chain(self.following.take()));
        used
    }

    /// All extents, used or not: the cursor has none any more.
    fn abandon(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.extents).into_iter().map(|e| e.extent).chain(self.following.take()).collect()
    }
}
