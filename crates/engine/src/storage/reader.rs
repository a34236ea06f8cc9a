//! Reads runs of blocks in order, several requests ahead, past the buffer cache.
//!
//! The owner names the blocks piece by piece (an extent at a time). The reader cuts the pieces into
//! requests and keeps as many in flight as it has buffers. It returns chunks in the order of the
//! pieces, in whatever order they complete. The owner returns each buffer when it is done with it.

use crate::EngineError;
use crate::access::Access;
use crate::storage::block::{self, Content, Expected};
use crate::storage::control::SegmentExtent;
use crate::storage::tablespace::Tablespace;
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, Completion, IoBuffer, Operation, Request};
use plumb_units::{BlockAddress, BlockNumber};
use std::collections::VecDeque;
use std::sync::Arc;

/// Size, memory, and statistics of a segment reader.
#[derive(Debug, Clone, Copy)]
pub struct ReaderOptions {
    /// Number of blocks in a request.
    pub chunk_blocks: u32,
    /// Number of buffers: one with the owner, the others in flight.
    pub buffer_count: usize,
    /// Wait event of its reads.
    pub event: Event,
    /// I/O stream that its bytes count for.
    pub stream: IoStream,
}

/// Reads blocks ahead of its owner.
pub struct SegmentReader<'a> {
    session: &'a Session,
    tablespace: &'a Tablespace,
    options: ReaderOptions,
    channel: Channel,
    free: Vec<IoBuffer>,
    /// Chunks requested and not yet returned, in order.
    awaited: VecDeque<Awaited>,
    next_tag: u64,
    /// Rest of the piece being read.
    piece: Option<(BlockAddress, u32)>,
}

struct Awaited {
    first: BlockAddress,
    blocks: u32,
    arrived: Option<IoBuffer>,
}

/// Adjacent blocks in one buffer.
#[derive(Debug)]
pub struct Chunk {
    first: BlockAddress,
    blocks: u32,
    buffer: IoBuffer,
}

impl Chunk {
    /// Returns the blocks after checking of each the address, header, checksum and LSN.
    pub fn blocks<'c>(
        &'c self,
        tablespace: &'c Tablespace,
        expected: Expected,
    ) -> impl Iterator<Item = Result<(BlockAddress, Content, &'c [u8]), EngineError>> {
        let path = tablespace.path(self.first);
        self.unverified(tablespace).map(move |(address, block)| {
            let content = block::verify(block, expected, address, path)?;
            Ok((address, content, block))
        })
    }

    /// Returns the blocks as they were read.
    pub(crate) fn unverified<'c>(
        &'c self,
        tablespace: &'c Tablespace,
    ) -> impl Iterator<Item = (BlockAddress, &'c [u8])> {
        let blocks = self.buffer.chunks_exact(tablespace.block_size.bytes()).take(self.blocks as usize);
        blocks.zip(0u32..).map(|(block, index)| {
            let number = BlockNumber(self.first.block.0 + index);
            (BlockAddress { file: self.first.file, block: number }, block)
        })
    }

    /// Returns the number of blocks in the chunk.
    pub fn block_count(&self) -> u32 {
        self.blocks
    }
}

impl<'a> SegmentReader<'a> {
    /// Makes a reader that has read nothing.
    ///
    /// # Errors
    /// If buffers or a channel cannot be allocated.
    pub fn new(
        session: &'a Session,
        access: &Access,
        tablespace: &'a Tablespace,
        options: ReaderOptions,
    ) -> Result<SegmentReader<'a>, EngineError> {
        let bytes = options.chunk_blocks as usize * tablespace.block_size.bytes();
        let (arena, free) = Arena::buffers(bytes, options.buffer_count)?;
        let channel = access.method.channel(&[&arena])?;
        Ok(SegmentReader {
            session,
            tablespace,
            options,
            channel,
            free,
            awaited: VecDeque::new(),
            next_tag: 0,
            piece: None,
        })
    }

    /// Returns the next chunk; `None` after the last chunk of the last piece. `pieces` receives the
    /// number of blocks that are awaited; it may keep a piece back until there are none.
    ///
    /// # Errors
    /// If a read has failed.
    pub fn next(
        &mut self,
        pieces: &mut dyn FnMut(u64) -> Option<SegmentExtent>,
    ) -> Result<Option<Chunk>, EngineError> {
        self.read_ahead(pieces)?;
        loop {
            match self.awaited.front() {
                None => return Ok(None),
                Some(Awaited { arrived: Some(_), .. }) => break,
                Some(_) => {
                    let completion = self.channel.wait(self.session, self.options.event)?;
                    self.take_in(completion);
                }
            }
        }
        let Awaited { first, blocks, arrived } = self.awaited.pop_front().expect("seen above");
        Ok(Some(Chunk { first, blocks, buffer: arrived.expect("seen above") }))
    }

    /// Takes a chunk's buffer back for further reads.
    pub fn recycle(&mut self, chunk: Chunk) {
        self.free.push(chunk.buffer);
    }

    fn take_in(&mut self, completion: Completion) {
        let oldest = self.next_tag - self.awaited.len() as u64;
        self.awaited[(completion.tag - oldest) as usize].arrived = Some(completion.buffer);
    }

    fn read_ahead(
        &mut self,
        pieces: &mut dyn FnMut(u64) -> Option<SegmentExtent>,
    ) -> Result<(), EngineError> {
        let mut submitted = false;
        while !self.free.is_empty() {
            let Some((first, blocks)) = self.next_request(pieces) else { break };
            let buffer = self.free.pop().expect("seen above");
            let block_size = self.tablespace.block_size;
            let request = Request {
                operation: Operation::Read,
                file: Arc::clone(&self.tablespace.file(first.file)?.file),
                offset: first.block.byte_offset(block_size),
                buffer,
                range: 0..blocks as usize * block_size.bytes(),
                event: self.options.event,
                stream: self.options.stream,
                tag: self.next_tag,
            };
            self.next_tag += 1;
            self.awaited.push_back(Awaited { first, blocks, arrived: None });
            self.session.count(Statistic::PhysicalReadBlocks, u64::from(blocks));
            self.session.count(Statistic::PhysicalReadsDirect, u64::from(blocks));
            self.channel.submit(self.session, request)?;
            submitted = true;
        }
        if submitted {
            self.channel.flush(self.session)?;
        }
        Ok(())
    }

    fn next_request(
        &mut self,
        pieces: &mut dyn FnMut(u64) -> Option<SegmentExtent>,
    ) -> Option<(BlockAddress, u32)> {
        let (first, left) = match self.piece.take() {
            Some(piece) => piece,
            None => {
                let piece = pieces(self.awaited.iter().map(|chunk| u64::from(chunk.blocks)).sum())?;
                (piece.extent.address(0), piece.used)
            }
        };
        let blocks = left.min(self.options.chunk_blocks);
        if left > blocks {
            let rest = BlockAddress { file: first.file, block: first.block.plus(blocks) };
            self.piece = Some((rest, left - blocks));
        }
        Some((first, blocks))
    }
}
