//! Copies bytes between log files.

use crate::EngineError;
use plumb_events::{Event, IoStream, Session};
use plumb_io::{Arena, Channel, File, IoBuffer, Method, MethodKind, Operation, Request};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a read and of a write.
const PIECE: usize = 1 << 20;

/// Reason for the copy; it selects the wait event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A copy made by the archiver.
    Archive,
    /// A member of a log file, made from the other member.
    Member,
}

pub(super) struct Copier<'a> {
    session: &'a Session,
    purpose: Purpose,
    channel: Channel,
    /// `None` while a request is in flight.
    buffer: Option<IoBuffer>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(session: &'a Session, purpose: Purpose) -> Result<Copier<'a>, EngineError> {
        let channel = Method::start(MethodKind::Sync, 1)?.channel(&[])?;
        Ok(Copier { session, purpose, channel, buffer: Arena::buffers(PIECE, 1)?.1.pop() })
    }

    /// Reads `length` bytes, at most [`PIECE`].
    pub(super) fn read(
        &mut self,
        file: &Arc<File>,
        offset: u64,
        length: usize,
    ) -> Result<&[u8], EngineError> {
        self.transfer(Operation::Read, file, (offset, length))?;
        Ok(self.buffer.as_ref().map_or(&[], |buffer| &buffer[..length]))
    }

    /// Writes bytes durably, in pieces of [`PIECE`].
    pub(super) fn write(&mut self, file: &Arc<File>, offset: u64, bytes: &[u8]) -> Result<(), EngineError> {
        for (number, piece) in bytes.chunks(PIECE).enumerate() {
            let buffer = self.buffer.as_mut().expect("each request gives it back");
            buffer[..piece.len()].copy_from_slice(piece);
            let at = offset + (number * PIECE) as u64;
            self.transfer(Operation::Write, file, (at, piece.len()))?;
        }
        Ok(self.session.wait(self.event(), || file.sync_data())?)
    }

    /// Copies a range of bytes; the caller syncs.
    pub(super) fn copy(
        &mut self,
        from: &Arc<File>,
        to: &Arc<File>,
        stretch: Range<u64>,
    ) -> Result<(), EngineError> {
        for offset in stretch.clone().step_by(PIECE) {
            let length = PIECE.min((stretch.end - offset) as usize);
            self.read(from, offset, length)?;
            self.transfer(Operation::Write, to, (offset, length))?;
        }
        Ok(())
    }

    fn event(&self) -> Event {
        match self.purpose {
            Purpose::Archive => Event::LogArchiveIo,
            Purpose::Member => Event::LogFileParallelWrite,
        }
    }

    fn transfer(
        &mut self,
        operation: Operation,
        file: &Arc<File>,
        (offset, length): (u64, usize),
    ) -> Result<(), EngineError> {
        let event = self.event();
        let request = Request {
            operation,
            file: Arc::clone(file),
            offset,
            buffer: self.buffer.take().expect("each request gives it back"),
            range: 0..length,
            event,
            stream: match (operation.writes(), self.purpose) {
                (false, _) => IoStream::LogReads,
                (true, Purpose::Archive) => IoStream::ArchiveWrites,
                (true, Purpose::Member) => IoStream::LogWrites,
            },
            tag: 0,
        };
        self.channel.carry_out(self.session, request, &mut self.buffer)?;
        Ok(())
    }
}
