//! A data file: a header block, then extents of zeros until something is written.

use crate::EngineError;
use crate::instance::{Access, Cancel};
use crate::storage::block::{self, BlockKind, Content};
use plumb_events::{Event, IoStream, Session, Statistic};
use plumb_io::{Arena, File, Method, Operation, Request};
use plumb_units::{BlockAddress, BlockCount, BlockNumber, BlockSize, FileId, Lsn};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes per request when a file is filled with zeros.
const FILL_BYTES: usize = 1 << 20;
const FILL_BUFFERS: usize = 4;

/// An open data file of a tablespace.
#[derive(Debug)]
pub struct DataFile {
    /// Its number in the database.
    pub id: FileId,
    /// The file itself.
    pub file: Arc<File>,
    /// The size of its blocks.
    pub block_size: BlockSize,
}

impl DataFile {
    /// Creates the file, fills it with zeros up to `bytes` and writes its header.
    /// The first extent starts after a header of one extent's alignment: block 0
    /// is the header, extents start at `first_block`.
    ///
    /// # Errors
    /// When the file exists or cannot be written in full; then it is removed again.
    pub fn create(
        session: &Session,
        access: &Access,
        cancel: &Cancel,
        path: &Path,
        (id, block_size, bytes): (FileId, BlockSize, u64),
    ) -> Result<DataFile, EngineError> {
        let open = || access.disk.open(path, plumb_io::Access::Create, access.direct);
        let file = session.wait(Event::DiskFileOperations, open)?;
        let data_file = DataFile { id, file: Arc::new(file), block_size };
        let filled = data_file
            .fill(session, &access.method, cancel, 0..bytes)
            .and_then(|()| data_file.write_header(session, &access.method));
        if let Err(error) = filled {
            // The error to report is the first one.
            let _ = access.disk.remove(path);
            return Err(error);
        }
        Ok(data_file)
    }

    /// Opens an existing file and checks that it is the one the control file means.
    ///
    /// # Errors
    /// When it is missing, too short, or another file's header is in it.
    pub fn open(
        session: &Session,
        access: &Access,
        path: &Path,
        (id, block_size, bytes): (FileId, BlockSize, u64),
    ) -> Result<DataFile, EngineError> {
        let open = || access.disk.open(path, plumb_io::Access::Write, access.direct);
        let file = session.wait(Event::DiskFileOperations, open)?;
        let data_file = DataFile { id, file: Arc::new(file), block_size };
        let found = data_file.file.length()?;
        if found < bytes {
            return Err(plumb_io::IoError::CutShort {
                path: path.to_path_buf(),
                offset: 0,
                length: usize::try_from(bytes).unwrap_or(usize::MAX),
                found,
            }
            .into());
        }
        let (_, mut buffers) = Arena::buffers(block_size.bytes(), 1)?;
        let buffer = buffers.remove(0);
        let range = 0..buffer.len();
        let mut channel = access.method.channel(&[])?;
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(&data_file.file),
            offset: 0,
            buffer,
            range,
            event: Event::DbFileSequentialRead,
            stream: IoStream::CacheReads,
            tag: 0,
        };
        channel.submit(session, request)?;
        let header = channel.wait(session, Event::DbFileSequentialRead)?.buffer;
        block::verify(&header, BlockKind::FileHeader, data_file.address(BlockNumber(0)), path)?;
        Ok(data_file)
    }

    /// The address of one of its blocks.
    #[must_use]
    pub fn address(&self, block: BlockNumber) -> BlockAddress {
        BlockAddress { file: self.id, block }
    }

    /// Writes zeros over a range of bytes, several requests at a time.
    ///
    /// # Errors
    /// When a write fails or the user asks to stop; the file is then cut back to
    /// the start of the range.
    pub fn fill(
        &self,
        session: &Session,
        method: &Method,
        cancel: &Cancel,
        range: Range<u64>,
    ) -> Result<(), EngineError> {
        let from = range.start;
        let result = self.fill_range(session, method, cancel, range);
        if result.is_err() {
            // What could not be filled must not look like part of the file.
            let _ = self.file.truncate(from);
        }
        result
    }

    fn fill_range(
        &self,
        session: &Session,
        method: &Method,
        cancel: &Cancel,
        Range { start: from, end: until }: Range<u64>,
    ) -> Result<(), EngineError> {
        let (arena, mut buffers) = Arena::buffers(FILL_BYTES, FILL_BUFFERS)?;
        let mut channel = method.channel(&[&arena])?;
        let mut offset = from;
        while offset < until {
            cancel.check()?;
            let buffer = match buffers.pop() {
                Some(buffer) => buffer,
                None => channel.wait(session, Event::DataFileInitWrite)?.buffer,
            };
            let length = usize::try_from(until - offset).unwrap_or(FILL_BYTES).min(FILL_BYTES);
            channel.submit(session, self.write_request(offset, buffer, length))?;
            channel.flush(session)?;
            offset += length as u64;
        }
        while channel.outstanding() > 0 {
            channel.wait(session, Event::DataFileInitWrite)?;
        }
        session.count(Statistic::FileBytesExtended, until.saturating_sub(from));
        Ok(())
    }

    fn write_header(&self, session: &Session, method: &Method) -> Result<(), EngineError> {
        let (_, mut buffers) = Arena::buffers(self.block_size.bytes(), 1)?;
        let mut buffer = buffers.remove(0);
        let content = Content { entries: 0, used: 0 };
        block::seal(&mut buffer, BlockKind::FileHeader, self.address(BlockNumber(0)), Lsn(0), content);
        let mut channel = method.channel(&[])?;
        channel.submit(session, self.write_request(0, buffer, self.block_size.bytes()))?;
        channel.wait(session, Event::DataFileInitWrite)?;
        Ok(())
    }

    fn write_request(&self, offset: u64, buffer: plumb_io::IoBuffer, length: usize) -> Request {
        Request {
            operation: Operation::Write,
            file: Arc::clone(&self.file),
            offset,
            buffer,
            range: 0..length,
            event: Event::DataFileInitWrite,
            stream: IoStream::FileInit,
            tag: 0,
        }
    }
}

/// The block at which extent number `index` of a file starts. Extent 0 gives up
/// its first block to the file header, so extents stay aligned to their size.
#[must_use]
pub fn extent_start(index: u32, extent_blocks: BlockCount) -> BlockNumber {
    BlockNumber((index * extent_blocks.0).max(1))
}
