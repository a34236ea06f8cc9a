//! Reads a log file from its start on, ahead of need.
//!
//! What has been read and not yet been given up is one stretch of memory, so that a batch is whole
//! wherever pieces end.

use super::log_file::{BATCH_HEADER, BatchHeader, FILE_HEADER};
use crate::EngineError;
use crate::access::Access;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, File, IoBuffer, Operation, Request};
use plumb_units::Lsn;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Most bytes of a request, and how many are in flight.
const PIECE: u64 = 512 * 1024;
const AHEAD: u64 = 8;

/// Reads one log file after another.
pub(super) struct LogReader<'a> {
    session: &'a Session,
    access: Access,
    channel: Channel,
    spare: Vec<IoBuffer>,
    /// Bytes of all buffers.
    ahead: u64,
    file: Option<(Arc<File>, u64)>,
    /// Where the next request begins.
    asked: u64,
    /// What has arrived out of turn, by its offset.
    arrived: BTreeMap<u64, (IoBuffer, usize)>,
    /// The file's bytes from `start` on.
    bytes: Vec<u8>,
    start: u64,
}

impl<'a> LogReader<'a> {
    pub(super) fn new(session: &'a Session, access: &Access) -> Result<LogReader<'a>, EngineError> {
        Ok(LogReader {
            session,
            access: access.clone(),
            channel: access.method.channel(&[])?,
            spare: Vec::new(),
            ahead: 0,
            file: None,
            asked: 0,
            arrived: BTreeMap::new(),
            bytes: Vec::new(),
            start: 0,
        })
    }

    /// The header of a file.
    pub(super) fn head(&mut self, file: &Arc<File>) -> Result<&[u8], EngineError> {
        self.open(file, 0..FILE_HEADER)?;
        self.fill(FILE_HEADER)?;
        Ok(self.window(0))
    }

    /// Goes on with another file, or another stretch of it.
    pub(super) fn open(&mut self, file: &Arc<File>, stretch: Range<u64>) -> Result<(), EngineError> {
        while self.channel.outstanding() > 0 {
            self.take_in()?;
        }
        self.spare.extend(std::mem::take(&mut self.arrived).into_values().map(|(buffer, _)| buffer));
        self.bytes.clear();
        self.read_ahead(stretch.end.saturating_sub(stretch.start))?;
        (self.start, self.asked) = (stretch.start, stretch.start);
        self.file = Some((Arc::clone(file), stretch.end));
        Ok(())
    }

    /// Has buffers for a stretch of so many bytes: no more than it takes, because the kernel clears
    /// them all, and most logs that are only looked at are short.
    fn read_ahead(&mut self, bytes: u64) -> Result<(), EngineError> {
        let ahead = bytes.clamp(1, AHEAD * PIECE).next_multiple_of(4096);
        if ahead > self.ahead {
            let piece = ahead.min(PIECE) as usize;
            let (arena, spare) = Arena::buffers(piece, ahead.div_ceil(PIECE) as usize)?;
            self.channel = self.access.method.channel(&[&arena])?;
            (self.spare, self.ahead) = (spare, ahead);
        }
        Ok(())
    }

    /// Reads up to `until`, or to where the file ends.
    pub(super) fn fill(&mut self, until: u64) -> Result<(), EngineError> {
        let Some((file, end)) = self.file.clone() else { return Ok(()) };
        let until = until.min(end);
        while self.end() < until {
            while self.asked < end
                && let Some(buffer) = self.spare.pop()
            {
                let range = 0..buffer.len().min((end - self.asked) as usize);
                let request = Request {
                    operation: Operation::ReadAtMost,
                    file: Arc::clone(&file),
                    offset: self.asked,
                    buffer,
                    range,
                    event: Event::LogFileSequentialRead,
                    stream: IoStream::LogReads,
                    tag: self.asked,
                };
                self.asked += request.range.len() as u64;
                self.channel.submit(self.session, request)?;
            }
            if self.channel.outstanding() > 0 {
                self.take_in()?;
            }
            let before = self.end();
            while let Some((buffer, length)) = self.arrived.remove(&self.end()) {
                self.bytes.extend_from_slice(&buffer[..length]);
                self.spare.push(buffer);
            }
            if self.end() == before && self.channel.outstanding() == 0 {
                // The file is shorter than its length says.
                return Ok(());
            }
        }
        Ok(())
    }

    /// The batch at an offset, if a whole one of this sequence and of this LSN or a later one is
    /// there.
    pub(super) fn batch(
        &mut self,
        at: u64,
        sequence: u64,
        least: Lsn,
    ) -> Result<Option<BatchHeader>, EngineError> {
        self.fill(at + BATCH_HEADER as u64)?;
        let Some(claimed) = BatchHeader::claimed(self.window(at), sequence, least) else { return Ok(None) };
        self.fill(at + claimed as u64)?;
        let found = BatchHeader::read(self.window(at), sequence, least);
        if let (Some(batch), Some((file, _))) = (&found, &self.file) {
            batch.require_bounds(file.path(), at)?;
        }
        Ok(found)
    }

    /// What has been read, from an offset on.
    pub(super) fn window(&self, from: u64) -> &[u8] {
        from.checked_sub(self.start).and_then(|at| self.bytes.get(at as usize..)).unwrap_or_default()
    }

    /// Puts other bytes in the place of some that have been read.
    pub(super) fn replace(&mut self, at: u64, bytes: &[u8]) {
        let at = (at - self.start) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Gives up what is before an offset.
    pub(super) fn discard(&mut self, before: u64) {
        self.bytes.drain(..(before.min(self.end()) - self.start) as usize);
        self.start = before;
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn take_in(&mut self) -> Result<(), EngineError> {
        let completion = self.channel.wait(self.session, Event::LogFileSequentialRead)?;
        self.arrived.insert(completion.tag, (completion.buffer, completion.range.len()));
        Ok(())
    }
}
