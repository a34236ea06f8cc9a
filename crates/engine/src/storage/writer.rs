//! Writes a segment block by block, in order, past the buffer cache.
//!
//! A few buffers, each of many blocks: while one fills the others are on their
//! way to the disk. A buffer goes out when it is full or its extent ends. Used
//! for table loads, sort runs and index leaves; the owner formats each block,
//! the writer gives it its address, seals and sends it.

use crate::EngineError;
use crate::access::Access;
use crate::storage::block::{self, BlockKind, Content};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::{Extent, Tablespace};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, Lsn};
use std::sync::Arc;

/// What a writer writes, and with how much memory.
#[derive(Debug, Clone, Copy)]
pub struct WriterOptions {
    /// What its blocks hold.
    pub kind: BlockKind,
    /// The operation that writes them.
    pub lsn: Lsn,
    /// Bytes of a buffer, a multiple of the block size.
    pub buffer_bytes: usize,
    /// How many buffers.
    pub buffer_count: usize,
    /// What the session waits for when all of them are on their way.
    pub event: Event,
    /// What the bytes are written for.
    pub stream: IoStream,
}

/// Writes the blocks of one segment.
#[derive(Debug)]
pub struct SegmentWriter<'a> {
    // What it works for.
    session: &'a Session,
    access: &'a Access,
    tablespace: &'a Tablespace,
    options: WriterOptions,
    // Memory: each buffer is free, current, or with the channel.
    channel: Channel,
    free: Vec<IoBuffer>,
    current: Option<IoBuffer>,
    /// Blocks of `current` that are sealed.
    sealed: u32,
    // Where the next block goes.
    extents: Vec<SegmentExtent>,
    /// Blocks of the last extent that have been sent or are sealed in `current`.
    used: u32,
    /// Whether the next block goes to another extent, though this one has room.
    left: bool,
}

impl<'a> SegmentWriter<'a> {
    /// A writer that has written nothing and owns no extent yet.
    ///
    /// # Errors
    /// When buffers or a channel cannot be had.
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

    /// The block to format next: all of it, header included. Its old content is
    /// undefined. Stays the same until `seal`.
    ///
    /// # Errors
    /// When an earlier write failed or no extent can be had.
    pub fn block(&mut self) -> Result<&mut [u8], EngineError> {
        // A current buffer lies within the last extent: `seal` sends it when that is full.
        if self.current.is_none() {
            self.address()?;
            self.current = Some(self.take_buffer()?);
        }
        let bytes = self.tablespace.block_size.bytes();
        let at = self.sealed as usize * bytes;
        let buffer = self.current.as_mut().expect("taken above");
        Ok(&mut buffer[at..at + bytes])
    }

    /// The address the next block will have.
    ///
    /// # Errors
    /// When no extent can be had.
    pub fn address(&mut self) -> Result<BlockAddress, EngineError> {
        if self.left || self.extents.last().is_none_or(|last| self.used == last.extent.blocks) {
            // The buffer belongs to the old extent: `seal` has sent it.
            debug_assert!(self.current.is_none());
            let extent = self.tablespace.allocate(self.session, self.access)?;
            self.extents.push(SegmentExtent { extent, used: 0 });
            (self.used, self.left) = (0, false);
        }
        Ok(self.last_extent().address(self.used))
    }

    /// The address of the block after the one being formatted.
    ///
    /// # Errors
    /// When no extent can be had.
    pub fn following_address(&mut self) -> Result<BlockAddress, EngineError> {
        self.address()?;
        let next = self.used + 1;
        let last = self.last_extent();
        if next < last.blocks {
            return Ok(last.address(next));
        }
        let extent = self.tablespace.allocate(self.session, self.access)?;
        // Entered when the current one is full; until then it is remembered here.
        self.extents.push(SegmentExtent { extent, used: 0 });
        let count = self.extents.len();
        self.extents.swap(count - 1, count - 2);
        Ok(extent.address(0))
    }

    /// Blocks of the extent from the one that is formatted next on.
    ///
    /// # Errors
    /// When no extent can be had.
    pub fn blocks_left(&mut self) -> Result<u32, EngineError> {
        self.address()?;
        Ok(self.last_extent().blocks - self.used)
    }

    /// Goes on in another extent, whatever is left of this one stays unused. What was formatted must be sealed.
    ///
    /// # Errors
    /// When an earlier write failed.
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

    /// Gives the block its header and checksum; it goes out with its buffer.
    ///
    /// # Errors
    /// When an earlier write failed.
    ///
    /// # Panics
    /// When no block has been formatted.
    pub fn seal(&mut self, content: Content) -> Result<BlockAddress, EngineError> {
        self.seal_formatted(content);
        self.advance()
    }

    /// The same with the LSN that `log` gives for the block, whose bytes it is shown.
    ///
    /// # Errors
    /// As [`SegmentWriter::seal`], or when `log` fails.
    ///
    /// # Panics
    /// When no block has been formatted.
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

    /// Goes on behind the block that was sealed.
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

    /// Sends what is sealed, so that no byte of it waits for more blocks.
    ///
    /// # Errors
    /// When an earlier write failed.
    pub fn flush(&mut self) -> Result<(), EngineError> {
        if self.sealed > 0 { self.send() } else { Ok(()) }
    }

    /// Waits until everything is written and gives back the segment.
    ///
    /// # Errors
    /// When a write failed.
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

    /// Sends what is sealed and waits until all of it is written; the writer can go on.
    ///
    /// # Errors
    /// When a write failed.
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

    /// The last extent is full: the next is the one `following_address` took, if it did.
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
    /// What was not finished is given back: nothing refers to it. Writes in flight
    /// end first, because the extents' next owner writes there too.
    fn drop(&mut self) {
        self.channel.abandon(self.session, self.options.event);
        let extents = std::mem::take(&mut self.extents);
        self.tablespace.release(extents.into_iter().map(|extent| extent.extent));
    }
}
