//! Reads scattered pieces of files, several at a time.
//!
//! The owner names the pieces and is shown each as it arrives, in any order: samples of
//! a table or a file, rows by their ids, blocks of runs. [`reader`](super::reader)
//! reads adjacent blocks in order.

use crate::EngineError;
use crate::access::Access;
use crate::storage::tablespace::Tablespace;
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use plumb_units::BlockAddress;
use std::sync::Arc;

/// Size, memory, and statistics of a scattered reader.
#[derive(Debug, Clone, Copy)]
pub struct ScatteredOptions {
    /// Bytes of the longest piece.
    pub piece_bytes: usize,
    /// Most reads in flight at once.
    pub in_flight: usize,
    /// Wait event of its reads.
    pub event: Event,
    /// I/O stream that its bytes count for.
    pub stream: IoStream,
}

/// A range of bytes of a file.
#[derive(Debug)]
pub struct Piece {
    file: Arc<File>,
    offset: u64,
    bytes: usize,
    /// [`Operation::ReadAtMost`] if the file may end within it.
    operation: Operation,
}

impl Piece {
    /// Makes a piece of adjacent blocks, which are counted as direct reads of the session.
    ///
    /// # Errors
    /// If the tablespace has no such file.
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

    /// Makes a piece of up to `bytes` bytes; the file may end within it.
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
    /// Makes a reader that has read nothing.
    ///
    /// # Errors
    /// If buffers or a channel cannot be allocated.
    pub fn new(
        session: &'a Session,
        access: &Access,
        options: ScatteredOptions,
    ) -> Result<ScatteredReader<'a>, EngineError> {
        let (arena, free) = Arena::buffers(options.piece_bytes, options.in_flight)?;
        let channel = access.method.channel(&[&arena])?;
        Ok(ScatteredReader { session, options, channel, free })
    }

    /// Reads `count` pieces. `piece` returns the piece of a number; `show`
    /// gets its number and bytes.
    ///
    /// # Errors
    /// If a read, `piece` or `show` fails. The reader cannot be used again then.
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
