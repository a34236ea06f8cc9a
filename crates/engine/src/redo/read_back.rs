//! Records read back out of the log files, which the log buffer has no more: an old version of a
//! row, or what undoes a change.
//!
//! How: the batch of a record is read whole, up to [`WINDOW`], and held against its checksum the
//! first time: what a write that was lost has left in its place are other records, or none. Who
//! wants one record of a batch mostly wants others: a statement finds 64 rows changed by one
//! transaction, whose records lie in a few batches. So some windows are kept, and the one that
//! nobody has used for longest is read over.
//!
//! Why not in small pieces: under updates a batch has 400 KB. In pieces of 64K its check was seven
//! requests of 0.3 ms, one after the other, and most of them were read again for the next record;
//! statements took seconds, in which more rows changed beneath them.
//!
//! Why not one reader for all: sessions that update the same rows come to need old versions at
//! once. With one, 32 of them on 4,000 rows stood in the queue for it, statements took longer, and
//! so found more changed beneath them: a tenth of the operations a second that they do when the log
//! buffer still has the records.
//!
//! Limits: who reads back has the windows of a reader for himself; a statement that needs many old
//! versions is as fast as the device answers one request at a time.

use super::log_file::{BATCH_HEADER, BatchCheck};
use super::log_writer::BatchPlace;
use super::record::length_of;
use crate::EngineError;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use plumb_units::{Bytes, Lsn};
use std::sync::Arc;

/// Bytes of a window at most.
const WINDOW: u64 = 1 << 20;
const WINDOWS: usize = 2;
/// Direct reads begin and end at multiples of it.
const ALIGNED: u64 = 4096;

/// Reads records back out of the files.
#[derive(Debug)]
pub(super) struct ReadBack {
    channel: Channel,
    /// Those used last come last.
    windows: Vec<Window>,
}

/// A log file, and its position among the files.
pub(super) type Positioned<'f> = (&'f Arc<File>, usize);

/// A stretch of a log file.
#[derive(Debug)]
struct Window {
    file: usize,
    offset: u64,
    length: usize,
    /// Batches that end later were not there when it was read.
    until: Lsn,
    bytes: IoBuffer,
}

impl Window {
    fn has(&self, file: usize, at: u64, end: Lsn) -> bool {
        self.file == file
            && (self.offset..self.offset + self.length as u64).contains(&at)
            && self.until >= end
    }
}

impl ReadBack {
    pub(super) fn new(channel: Channel) -> ReadBack {
        ReadBack { channel, windows: Vec::new() }
    }

    /// What its windows take.
    pub(super) fn memory(&self) -> Bytes {
        Bytes(self.windows.iter().map(|window| window.bytes.len() as u64).sum())
    }

    /// Files are going to be written over.
    pub(super) fn forget(&mut self) {
        self.windows.iter_mut().for_each(|window| window.length = 0);
    }

    /// Holds a batch against its checksum.
    pub(super) fn verify(
        &mut self,
        session: &Session,
        file: Positioned<'_>,
        place: &BatchPlace,
    ) -> Result<(), EngineError> {
        let end = end_of(place);
        let mut check = BatchCheck::default();
        let mut at = place.offset;
        while at < end {
            let bytes = self.bytes_at(session, file, (at, place))?;
            let part = &bytes[..bytes.len().min((end - at) as usize)];
            if part.is_empty() {
                break;
            }
            check.update(part);
            at += part.len() as u64;
        }
        if check.is_whole(place.lsn) {
            return Ok(());
        }
        let why = format!(
            "the batch at byte {} is not the one that was written there; restore the database from a copy",
            place.offset
        );
        Err(EngineError::Log { path: file.0.path().to_path_buf(), why })
    }

    /// Copies out the record of a batch that begins at `offset`.
    pub(super) fn record(
        &mut self,
        session: &Session,
        file: Positioned<'_>,
        (offset, place): (u64, &BatchPlace),
        into: &mut Vec<u8>,
    ) -> Result<(), EngineError> {
        into.clear();
        let mut length = usize::MAX;
        // Records go over the ends of windows.
        while into.len() < length {
            let bytes = self.bytes_at(session, file, (offset + into.len() as u64, place))?;
            let part = bytes.len().min(length - into.len());
            if part == 0 {
                let why = format!(
                    "no record at byte {offset}, where one was written; restore the database from a copy"
                );
                return Err(EngineError::Log { path: file.0.path().to_path_buf(), why });
            }
            into.extend_from_slice(&bytes[..part]);
            if length == usize::MAX {
                // A record ends within its batch: what says otherwise is none.
                let room = end_of(place).saturating_sub(offset);
                length = length_of(into).filter(|length| *length as u64 <= room).unwrap_or(0);
                into.truncate(length);
            }
        }
        Ok(())
    }

    /// What is in the file from a byte of a batch on, as far as a window has it; nothing where the
    /// file has ended.
    fn bytes_at(
        &mut self,
        session: &Session,
        (file, number): Positioned<'_>,
        (at, place): (u64, &BatchPlace),
    ) -> Result<&[u8], EngineError> {
        let known = self.windows.iter().position(|window| window.has(number, at, place.end));
        let window = match known {
            Some(known) => self.windows.remove(known),
            None => self.read(session, (file, number), (at, place))?,
        };
        let begin = ((at - window.offset) as usize).min(window.length);
        self.windows.push(window);
        let window = self.windows.last().expect("just pushed");
        Ok(&window.bytes[begin..window.length])
    }

    fn read(
        &mut self,
        session: &Session,
        (file, number): Positioned<'_>,
        (at, place): (u64, &BatchPlace),
    ) -> Result<Window, EngineError> {
        let offset = at / ALIGNED * ALIGNED;
        let bytes = (end_of(place).next_multiple_of(ALIGNED) - offset).min(WINDOW) as usize;
        let oldest = (self.windows.len() == WINDOWS).then(|| self.windows.remove(0).bytes);
        let buffer = match oldest {
            Some(buffer) if buffer.len() >= bytes => buffer,
            _ => Arena::buffers(bytes, 1)?.1.remove(0),
        };
        let request = Request {
            operation: Operation::ReadAtMost,
            file: Arc::clone(file),
            offset,
            buffer,
            range: 0..bytes,
            event: Event::LogFileSequentialRead,
            stream: IoStream::LogReads,
            tag: 0,
        };
        let mut buffer = None;
        let length = self.channel.carry_out(session, request, &mut buffer)?;
        let bytes = buffer.expect("what succeeded gives its buffer back");
        Ok(Window { file: number, offset, length, until: place.end, bytes })
    }
}

fn end_of(place: &BatchPlace) -> u64 {
    place.offset + BATCH_HEADER as u64 + (place.end.0 - place.lsn.0)
}
