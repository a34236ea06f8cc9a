//! Reads pieces of files that lie anywhere, several at a time.
//!
//! The owner says where the pieces are and is shown each as it arrives, in any order: samples of a table or a file, rows by
//! their ids, blocks of runs. What is adjacent, and wanted in its order, goes by [`reader`](super::reader).

use crate::EngineError;
use crate::access::Access;
use crate::storage::tablespace::Tablespace;
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use plumb_units::BlockAddress;
use std::sync::Arc;

/// What is read, and with how much memory.
#[derive(Debug, Clone, Copy)]
pub struct ScatteredOptions {
    /// Bytes of the longest piece.
    pub piece_bytes: usize,
    /// Reads in flight, at most.
    pub in_flight: usize,
    /// What the session waits for.
    pub event: Event,
    /// What the bytes are read for.
    pub stream: IoStream,
}

/// A stretch of a file.
#[derive(Debug)]
pub struct Piece {
    file: Arc<File>,
    offset: u64,
    bytes: usize,
    /// Whether the file may end within it.
    operation: Operation,
}

impl Piece {
    /// Adjacent blocks of a tablespace, which are counted as direct reads of the session.
    ///
    /// # Errors
    /// When the tablespace has no such file.
    pub fn of_blocks(
        session: &Session,
        tablespace: &Tablespace,
        first: BlockAddress,
        blocks: u32,
    ) -> Result<Piece, EngineError> {
        session.count(Statistic::PhysicalReadBlocks, u64::from(blocks));
        session.count(Statistic::PhysicalReadsDirect, u64::from(blocks));
        Ok(Piece {
            file: Arc::clone(&tablespace.file(first.file)?.file),
            offset: first.block.byte_offset(tablespace.block_size),
            bytes: blocks as usize * tablespace.block_size.bytes(),
            operation: Operation::Read,
        })
    }

    /// So many bytes of a file, or what it has of them.
    #[must_use]
    pub fn of_file(file: &Arc<File>, offset: u64, bytes: usize) -> Piece {
        Piece { file: Arc::clone(file), offset, bytes, operation: Operation::ReadAtMost }
    }
}

/// Reads pieces in any order, with buffers and a channel of its own.
pub struct ScatteredReader<'a> {
    session: &'a Session,
    options: ScatteredOptions,
    channel: Channel,
    free: Vec<IoBuffer>,
}

impl<'a> ScatteredReader<'a> {
    /// A reader that has read nothing.
    ///
    /// # Errors
    /// When buffers or a channel cannot be had.
    pub fn new(
        session: &'a Session,
        access: &Access,
        options: ScatteredOptions,
    ) -> Result<ScatteredReader<'a>, EngineError> {
        let (arena, free) = Arena::buffers(options.piece_bytes, options.in_flight)?;
        let channel = access.method.channel(&[&arena])?;
        Ok(ScatteredReader { session, options, channel, free })
    }

    /// Reads `count` pieces. `piece` says where one lies, by its number; `show` gets its number and bytes.
    ///
    /// # Errors
    /// When a read failed, or what the owner does. The reader is of no further use then.
    pub fn read(
        &mut self,
        count: usize,
        mut piece: impl FnMut(usize) -> Result<Piece, EngineError>,
        mut show: impl FnMut(usize, &[u8]) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        assert_eq!(self.channel.outstanding(), 0, "a reader that failed is not used again");
        let mut next = 0;
        while next < count || self.channel.outstanding() > 0 {
            while next < count
                && let Some(buffer) = self.free.pop()
            {
                let request = self.request(piece(next)?, buffer, next);
                self.channel.submit(self.session, request)?;
                next += 1;
            }
            self.channel.flush(self.session)?;
            let completion = self.channel.wait(self.session, self.options.event)?;
            show(completion.tag as usize, &completion.buffer[completion.range])?;
            self.free.push(completion.buffer);
        }
        Ok(())
    }

    fn request(&self, piece: Piece, buffer: IoBuffer, number: usize) -> Request {
        let Piece { file, offset, bytes, operation } = piece;
        let ScatteredOptions { event, stream, .. } = self.options;
        Request { operation, file, offset, range: 0..bytes, buffer, event, stream, tag: number as u64 }
    }
}

impl Drop for ScatteredReader<'_> {
    fn drop(&mut self) {
        self.channel.abandon(self.session, self.options.event);
    }
}
