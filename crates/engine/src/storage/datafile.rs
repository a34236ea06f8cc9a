//! A data file: a header block, then extents of zeros until blocks are written.
//!
//! An open file is locked, and its header is compared with the control file. Its length is
//! durable before a load that needs it is entered: it is synced when the file is made, and again
//! after the file has grown. Files of the temporary tablespace hold nothing that outlives an
//! instance, and are not synced.

use crate::EngineError;
use crate::access::Access;
use crate::error::DATA_FILE;
use crate::storage::header::{self, FileHeader, Found};
use crate::storage::tablespace::Purpose;
use plumb_events::{Cancel, Event, IoStream, Session, Statistic, locked};
use plumb_io::{Arena, Channel, File, IoBuffer, IoError, Lock, Method, Operation, Request};
use plumb_units::{BlockAddress, BlockNumber, BlockSize, FileId, Lsn};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Bytes per request when a file is filled with zeros.
const FILL_BYTES: usize = 1 << 20;
const FILL_BUFFERS: usize = 4;

/// An open data file of a tablespace.
#[derive(Debug)]
pub struct DataFile {
    /// Number of the file in the database.
    pub id: FileId,
    /// Content of its tablespace, by which its filling is counted.
    purpose: Purpose,
    /// Handle of the open file.
    pub file: Arc<File>,
    /// Size of the file's blocks.
    pub block_size: BlockSize,
    /// Least length of the file in bytes.
    pub bytes: u64,
    /// True if the length has changed since the last sync.
    grown: AtomicBool,
    /// Error of the first failed sync; the lock is held during each sync.
    failed: Mutex<Option<String>>,
}

/// Properties of a data file that the control file and the log expect.
#[derive(Debug, Clone, Copy)]
pub struct Meant<'a> {
    /// Header that the catalog expects.
    pub header: &'a FileHeader,
    /// Least length of the file in bytes.
    pub bytes: u64,
    /// Length in bytes that the file's extents need.
    pub needed: u64,
    /// Checkpoint that its header must have; 0 if none is known.
    pub checkpoint: Lsn,
}

impl DataFile {
    /// Creates the file, fills it with zeros up to `bytes` and writes its header into block 0.
    /// Extent 0 begins at block 1.
    ///
    /// # Errors
    /// If the file exists or cannot be written in full; an incomplete file is removed.
    pub fn create(
        session: &Session,
        access: &Access,
        cancel: &Cancel,
        path: &Path,
        (header, bytes): (&FileHeader, u64),
    ) -> Result<DataFile, EngineError> {
        let data_file = DataFile::reach(session, access, path, (header, bytes), plumb_io::OpenMode::Create)?;
        if let Err(error) = data_file.format(session, &access.method, cancel, header) {
            // The first error is the one to report.
            let _ = access.disk.remove(path);
            return Err(error);
        }
        Ok(data_file)
    }

    /// Opens an existing file and checks that it is the one that the control file expects. Returns
    /// the values that only its header has.
    ///
    /// # Errors
    /// If it is missing, too short, in use, older than the log, or has another file's header.
    pub fn open(
        session: &Session,
        access: &Access,
        path: &Path,
        meant: &Meant<'_>,
        mode: plumb_io::OpenMode,
    ) -> Result<(DataFile, Found), EngineError> {
        let Meant { header, bytes, needed, checkpoint } = *meant;
        let wrong = |why: String| EngineError::DataFile { path: path.to_path_buf(), why };
        let data_file =
            DataFile::reach(session, access, path, (header, bytes), mode).map_err(|error| match error {
                EngineError::Io(IoError::Operation { source, .. })
                    if source.kind() == ErrorKind::NotFound =>
                {
                    wrong("it is missing".to_string())
                }
                error => error,
            })?;
        let found = data_file.file.length()?;
        if found < needed {
            return Err(wrong(format!("it was cut short: it ends at byte {found}, expected {needed} bytes")));
        }
        let (_, mut buffers) = Arena::buffers(header.block_size.bytes(), 1)?;
        let mut request = data_file.request(Operation::Read, 0, buffers.remove(0));
        request.event = Event::DbFileSequentialRead;
        request.stream = IoStream::CacheReads;
        let mut channel = access.method.channel(&[])?;
        channel.submit(session, request)?;
        let block = channel.wait(session, Event::DbFileSequentialRead)?.buffer;
        let found = header.verify(&block, path)?;
        if found.checkpoint < checkpoint && header.purpose != Purpose::Temp {
            let (path, found, expected) = (path.to_path_buf(), found.checkpoint, checkpoint);
            return Err(EngineError::OldFile { path, found, expected });
        }
        Ok((data_file, found))
    }

    pub(crate) fn reach(
        session: &Session,
        access: &Access,
        path: &Path,
        (header, bytes): (&FileHeader, u64),
        mode: plumb_io::OpenMode,
    ) -> Result<DataFile, EngineError> {
        let lock = if mode == plumb_io::OpenMode::Read { Lock::Shared } else { Lock::Exclusive };
        let open = || {
            let file = access.disk.open(path, mode, access.direct)?;
            file.lock(lock).map(|locked| (file, locked))
        };
        let (file, locked) = session.wait(Event::DiskFileOperations, open)?;
        if !locked {
            let holder = "another process".to_string();
            return Err(EngineError::InUse { what: DATA_FILE, path: path.to_path_buf(), holder });
        }
        let (grown, failed) = (AtomicBool::new(false), Mutex::default());
        Ok(DataFile {
            id: header.file,
            purpose: header.purpose,
            file: Arc::new(file),
            block_size: header.block_size,
            bytes,
            grown,
            failed,
        })
    }

    /// Turns any file into zeros and a header.
    ///
    /// # Errors
    /// If it cannot be written in full.
    pub fn format(
        &self,
        session: &Session,
        method: &Method,
        cancel: &Cancel,
        header: &FileHeader,
    ) -> Result<(), EngineError> {
        // Without enough room for the new content the old one must stay.
        self.file.require_room_again(self.bytes)?;
        self.file.truncate(0)?;
        let outside = header.home.is_some();
        if outside {
            // From now on the file names its owner, so that a later opening can clean
            // up after a killed creation.
            self.write_header(session, method, header)?;
        }
        let from = if outside { self.block_size.bytes() as u64 } else { 0 };
        self.fill(session, method, cancel, from..self.bytes)?;
        self.write_header(session, method, header)?;
        if header.purpose == Purpose::Temp { Ok(()) } else { self.sync(session) }
    }

    /// Makes written blocks durable, and the length if it has changed.
    ///
    /// After a failure all later syncs fail. The kernel reports a failure once and may have
    /// dropped the pages, so a later success proves nothing. A checkpoint must not release
    /// their log because of it.
    ///
    /// # Errors
    /// If the device reports a failed write, or has done so before: written blocks are lost.
    pub fn sync(&self, session: &Session) -> Result<(), EngineError> {
        let sync = || {
            let mut failed = locked(&self.failed);
            if let Some(first) = &*failed {
                let why = format!(
                    "a sync failed before, and what it was to save may be lost: {first}; open the database again"
                );
                return Err(EngineError::DataFile { path: self.file.path().to_path_buf(), why });
            }
            let synced =
                if self.grown.swap(false, Relaxed) { self.file.sync_all() } else { self.file.sync_data() };
            Ok(synced.inspect_err(|error| *failed = Some(error.to_string()))?)
        };
        session.wait(Event::DirectPathSync, sync)
    }

    /// Writes the header block at offset 0.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_header(
        &self,
        session: &Session,
        method: &Method,
        header: &FileHeader,
    ) -> Result<(), EngineError> {
        let (_, mut buffers) = Arena::buffers(self.block_size.bytes(), 1)?;
        let mut buffer = buffers.remove(0);
        header.write(&mut buffer)?;
        let mut channel = method.channel(&[])?;
        channel.submit(session, self.request(Operation::Write, 0, buffer))?;
        channel.wait(session, Event::DataFileInitWrite)?;
        Ok(())
    }

    /// Notes a checkpoint in the header; the next sync makes it durable.
    ///
    /// # Errors
    /// If the header cannot be read or written, or is damaged.
    pub(crate) fn note_checkpoint(
        &self,
        session: &Session,
        channel: &mut Channel,
        at: Lsn,
    ) -> Result<(), EngineError> {
        let mut buffer = Arena::buffers(self.block_size.bytes(), 1)?.1.pop();
        let read = Request {
            event: Event::ControlFileSequentialRead,
            stream: IoStream::HeaderReads,
            ..self.request(Operation::Read, 0, buffer.take().expect("it was just mapped"))
        };
        channel.carry_out(session, read, &mut buffer)?;
        let mut block = buffer.take().expect("each request gives it back");
        header::note_checkpoint(&mut block, self.address(BlockNumber(0)), at, self.file.path())?;
        let write = Request {
            event: Event::ControlFileParallelWrite,
            stream: IoStream::HeaderWrites,
            ..self.request(Operation::Write, 0, block)
        };
        channel.carry_out(session, write, &mut buffer)?;
        Ok(())
    }

    /// Returns the address of one of its blocks.
    pub fn address(&self, block: BlockNumber) -> BlockAddress {
        BlockAddress { file: self.id, block }
    }

    /// Writes zeros over a range of bytes, several requests at a time.
    ///
    /// # Errors
    /// If the disk has no room, a write fails or the user cancels; the file is then truncated to
    /// the start of the range.
    pub fn fill(
        &self,
        session: &Session,
        method: &Method,
        cancel: &Cancel,
        range: Range<u64>,
    ) -> Result<(), EngineError> {
        let from = range.start;
        self.file.require_room(range.end.saturating_sub(from))?;
        self.grown.store(true, Relaxed);
        let result = self.fill_range(session, method, cancel, range);
        if result.is_err() {
            // A range that was not filled must not look like part of the file.
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
            let request = Request { range: 0..length, ..self.request(Operation::Write, offset, buffer) };
            channel.submit(session, request)?;
            channel.flush(session)?;
            offset += length as u64;
        }
        while channel.outstanding() > 0 {
            channel.wait(session, Event::DataFileInitWrite)?;
        }
        session.count(Statistic::FileBytesExtended, until.saturating_sub(from));
        Ok(())
    }

    /// Makes a request for all of a buffer.
    fn request(&self, operation: Operation, offset: u64, buffer: IoBuffer) -> Request {
        Request {
            operation,
            file: Arc::clone(&self.file),
            offset,
            range: 0..buffer.len(),
            buffer,
            event: Event::DataFileInitWrite,
            stream: if self.purpose == Purpose::Temp { IoStream::TempInit } else { IoStream::FileInit },
            tag: 0,
        }
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        self.file.unlock();
    }
}
