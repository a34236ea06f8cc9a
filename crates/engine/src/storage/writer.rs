//! Writes a segment block by block, in order, past the buffer cache.
//!
//! It has a few buffers of many blocks: while one fills, the others are being written. A buffer is
//! sent when it is full or its extent ends. Table loads, sort runs and index leaves use it: the
//! owner formats each block; the writer gives it its address, seals it and sends it.

use crate::EngineError;
use crate::access::Access;
use crate::storage::block::{self, BlockKind, Content};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::{Extent, Tablespace};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, Lsn};
use std::sync::Arc;

/// Content, memory, and statistics of a segment writer.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// Kind of content of its blocks.
    pub kind: BlockKind,
    /// LSN of the operation that writes them.
    pub lsn: Lsn,
    /// Bytes of a buffer, a multiple of the block size.
    pub buffer_bytes: usize,
    /// Number of buffers that it fills in turn.
    pub buffer_count: usize,
    /// Wait event while all buffers are in flight.
    pub event: Event,
    /// I/O stream that its bytes count for.
    pub stream: IoStream,
}

/// Writes the blocks of one segment.
#[derive(Debug)]
pub struct SegmentWriter<'a> {
    session: &'a Session,
    access: &'a Access,
    tablespace: &'a Tablespace,
    options: WriterOptions,
    // Each buffer is free, current, or with the channel.
    channel: Channel,
    free: Vec<IoBuffer>,
    current: Option<IoBuffer>,
    /// Number of sealed blocks in `current`.
    sealed: u32,
    extents: Vec<SegmentExtent>,
    /// Blocks of the last extent that have been sent or are sealed in `current`.
    used: u32,
    /// True if the next block goes to another extent, although this one has room.
    left: bool,
}

impl<'a> SegmentWriter<'a> {
    /// Makes a writer that has written nothing and owns no extent yet.
    ///
    /// # Errors
    /// If buffers or a channel cannot be allocated.
    pub fn new(
        session: &'a Session,
        access: &'a Access,
        tablespace: &'a Tablespace,
        options: WriterOptions,
    ) -> Result<SegmentWriter<'a>, EngineError> {
        assert!(options.buffer_bytes.is_multiple_of(tablespace.block_size.bytes()));
        let (arena, free) = Arena::buffers(options.buffer_bytes, options.buffer_count)?;
        let channel = access.method.channel(&[&arena])?;
        Ok(SegmentWriter {
            session,
            access,
            tablespace,
            options,
            channel,
            free,
            current: None,
            sealed: 0,
            extents: Vec::new(),
            used: 0,
            left: false,
        })
    }

    /// Returns the block to format next, all of it, header included. Its content is undefined at
    /// first. It stays the same until `seal`.
    ///
    /// # Errors
    /// If an earlier write failed or no extent can be allocated.
    pub fn block(&mut self) -> Result<&mut [u8], EngineError> {
        // A current buffer lies within the last extent, because `seal` sends it when that is full.
        if self.current.is_none() {
            self.address()?;
            self.current = Some(self.take_buffer()?);
        }
        let bytes = self.tablespace.block_size.bytes();
        let at = self.sealed as usize * bytes;
        let buffer = self.current.as_mut().expect("taken above");
        Ok(&mut buffer[at..at + bytes])
    }

    /// Returns the address that the next block will have.
    ///
    /// # Errors
    /// If no extent can be allocated.
    pub fn address(&mut self) -> Result<BlockAddress, EngineError> {
        if self.left || self.extents.last().is_none_or(|last| self.used == last.extent.blocks) {
            // The buffer belonged to the old extent, and `seal` has sent it.
            debug_assert!(self.current.is_none());
            let extent = self.tablespace.allocate(self.session, self.access)?;
            self.extents.push(SegmentExtent { extent, used: 0 });
            (self.used, self.left) = (0, false);
        }
        Ok(self.last_extent().address(self.used))
    }

    /// Returns the address of the block after the one being formatted.
    ///
    /// # Errors
    /// If no extent can be allocated.
    pub fn following_address(&mut self) -> Result<BlockAddress, EngineError> {
        self.address()?;
        let next = self.used + 1;
        let last = self.last_extent();
        if next < last.blocks {
            return Ok(last.address(next));
        }
        let extent = self.tablespace.allocate(self.session, self.access)?;
        // Kept in front of the current extent, which must stay last, until that is full.
        self.extents.push(SegmentExtent { extent, used: 0 });
        let count = self.extents.len();
        self.extents.swap(count - 1, count - 2);
        Ok(extent.address(0))
    }

    /// Returns the blocks of the extent from the next one to format on.
    ///
    /// # Errors
    /// If no extent can be allocated.
    pub fn blocks_left(&mut self) -> Result<u32, EngineError> {
        self.address()?;
        Ok(self.last_extent().blocks - self.used)
    }

    /// Continues in another extent; the rest of this one stays unused.
    /// Formatted blocks must be sealed.
    ///
    /// # Errors
    /// If an earlier write failed.
    pub fn leave_extent(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        if let Some(buffer) = self.current.take() {
            self.free.push(buffer);
        }
        if let Some(last) = self.extents.last_mut() {
            last.used = self.used;
        }
        self.left = true;
        Ok(())
    }

    /// Gives the block its header and checksum; it is sent with its buffer.
    ///
    /// # Errors
    /// If an earlier write failed.
    ///
    /// # Panics
    /// If no block has been formatted.
    pub fn seal(&mut self, content: Content) -> Result<BlockAddress, EngineError> {
        self.seal_formatted(content);
        self.advance()
    }

    /// Seals the block with the LSN that `log` returns for its address and bytes.
    ///
    /// # Errors
    /// The same errors as [`SegmentWriter::seal`], and those of `log`.
    ///
    /// # Panics
    /// If no block has been formatted.
    pub fn seal_logged(
        &mut self,
        content: Content,
        log: impl FnOnce(BlockAddress, &[u8]) -> Result<Lsn, EngineError>,
    ) -> Result<BlockAddress, EngineError> {
        let (address, block) = self.seal_formatted(content);
        let lsn = log(address, block)?;
        block::set_lsn(block, lsn);
        block::set_checksum(block);
        self.advance()
    }

    /// Gives the formatted block its header.
    fn seal_formatted(&mut self, content: Content) -> (BlockAddress, &mut [u8]) {
        let address = self.last_extent().address(self.used);
        let bytes = self.tablespace.block_size.bytes();
        let at = self.sealed as usize * bytes;
        let buffer = self.current.as_mut().expect("a block was formatted");
        let block = &mut buffer[at..at + bytes];
        block::seal(block, self.options.kind, address, self.options.lsn, content);
        (address, block)
    }

    /// Advances past the block that was sealed.
    fn advance(&mut self) -> Result<BlockAddress, EngineError> {
        let address = self.last_extent().address(self.used);
        let bytes = self.tablespace.block_size.bytes();
        self.sealed += 1;
        self.used += 1;
        let extent_full = self.used == self.last_extent().blocks;
        if self.sealed as usize * bytes == self.options.buffer_bytes || extent_full {
            self.send()?;
        }
        if extent_full {
            self.close_extent();
        }
        Ok(address)
    }

    /// Sends sealed blocks, so that none waits for the buffer to fill.
    ///
    /// # Errors
    /// If an earlier write failed.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        if self.sealed > 0 { self.send() } else { Ok(()) }
    }

    /// Waits until all blocks are written and returns the segment.
    ///
    /// # Errors
    /// If a write of the segment failed.
    pub fn finish(mut self) -> Result<Vec<SegmentExtent>, EngineError> {
        self.drain()?;
        if let Some(last) = self.extents.last_mut() {
            last.used = self.used;
        }
        self.extents.retain(|extent| {
            if extent.used == 0 {
                self.tablespace.release([extent.extent]);
            }
            extent.used > 0
        });
        Ok(std::mem::take(&mut self.extents))
    }

    /// Sends sealed blocks and waits until all are written; the writer can continue.
    ///
    /// # Errors
    /// If a write of the segment failed.
    pub fn drain(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        while self.channel.outstanding() > 0 {
            let completion = self.channel.wait(self.session, self.options.event)?;
            self.free.push(completion.buffer);
        }
        Ok(())
    }

    fn last_extent(&self) -> Extent {
        self.extents.last().expect("an extent was taken").extent
    }

    /// Closes the full last extent; the next is the one that
    /// `following_address` allocated, if it did.
    fn close_extent(&mut self) {
        let count = self.extents.len();
        self.extents[count - 1].used = self.used;
        if count >= 2 && self.extents[count - 2].used == 0 {
            self.extents.swap(count - 1, count - 2);
            self.used = 0;
        }
    }

    fn take_buffer(&mut self) -> Result<IoBuffer, EngineError> {
        if let Some(buffer) = self.free.pop() {
            return Ok(buffer);
        }
        if self.options.kind == BlockKind::Temp {
            self.session.count(Statistic::SortWriteWaits, 1);
            self.session.count(Statistic::SortWritesInFlight, self.channel.outstanding() as u64);
        }
        Ok(self.channel.wait(self.session, self.options.event)?.buffer)
    }

    fn send(&mut self) -> Result<(), EngineError> {
        let Some(buffer) = self.current.take() else { return Ok(()) };
        let block_size = self.tablespace.block_size;
        let first = self.last_extent().address(self.used - self.sealed);
        let request = Request {
            operation: Operation::Write,
            file: Arc::clone(&self.tablespace.file(first.file)?.file),
            offset: first.block.byte_offset(block_size),
            buffer,
            range: 0..self.sealed as usize * block_size.bytes(),
            event: self.options.event,
            stream: self.options.stream,
            tag: 0,
        };
        let blocks = u64::from(self.sealed);
        self.session.count(Statistic::PhysicalWriteBlocks, blocks);
        self.session.count(Statistic::PhysicalWritesDirect, blocks);
        if self.options.kind == BlockKind::Temp {
            self.session.count(Statistic::PhysicalWritesDirectTemp, blocks);
        }
        self.sealed = 0;
        self.channel.submit(self.session, request)?;
        self.channel.flush(self.session)?;
        Ok(())
    }
}

impl Drop for SegmentWriter<'_> {
    /// Releases the extents of an unfinished segment, because nothing refers to it. Writes in
    /// flight end first, because the extents' next owner writes there too.
    fn drop(&mut self) {
        self.channel.abandon(self.session, self.options.event);
        let extents = std::mem::take(&mut self.extents);
        self.tablespace.release(extents.into_iter().map(|extent| extent.extent));
    }
}
