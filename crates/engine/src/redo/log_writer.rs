//! The log writer: a role, carried by a session that needs its records durable.
//!
//! It takes all complete records that fit a write, puts a header before them, writes them at the next log block and
//! makes them durable: one write and one sync at a time (L2). When the next record does not fit the rest of the file it goes on
//! in a file that nobody needs any more; there always is one, because sessions were admitted against the room that is left (L5).
//!
//! Why no thread: a lone session would hand over and be woken again, which takes longer than the 3 us that it may lose to the bare write. Why no timer: while one
//! session writes the others gather, and the next write takes them all.

use super::log_buffer::LogBuffer;
use super::log_file::{BATCH_HEADER, BatchHeader, FILE_HEADER, FileHeader};
use super::sync_method::{SyncChoice, SyncMethod};
use crate::EngineError;
use crate::database_id::DatabaseId;
use plumb_events::{Event, IoStream, Session, Statistic, now};
use plumb_io::{Channel, File, IoBuffer, Request};
use plumb_units::Lsn;
use std::sync::Arc;

/// What a log file is used for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Nothing in it is needed.
    Free,
    /// It is written, or was and is needed: its records end before this LSN.
    Used(Lsn),
}

/// An open log file.
#[derive(Debug)]
pub(super) struct LogFile {
    /// The same bytes twice, where it is mirrored.
    pub(super) members: Vec<Arc<File>>,
    pub(super) header: FileHeader,
    pub(super) bytes: u64,
    pub(super) usage: Usage,
    /// Whether what it has need not be copied before it is used again.
    pub(super) archived: bool,
}

impl LogFile {
    /// The member that is read.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.members[0]
    }
}

/// A batch in the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchPlace {
    pub(super) lsn: Lsn,
    pub(super) end: Lsn,
    /// Position of the file among the files.
    pub(super) file: usize,
    /// Of the batch's header.
    pub(super) offset: u64,
    /// Bytes of log blocks that were written since the log was opened, up to its end; 0 of batches from before.
    pub(super) written: u64,
}

/// The log files and where the next batch goes.
#[derive(Debug)]
pub(super) struct LogWriter {
    pub(super) database: DatabaseId,
    pub(super) files: Vec<LogFile>,
    pub(super) current: usize,
    /// In the current file.
    pub(super) offset: u64,
    /// Of the next record.
    pub(super) next: Lsn,
    /// Behind the last batch; `next` is further on when the database has just been opened.
    pub(super) end: Lsn,
    /// Draws apart what copies of the database write.
    pub(super) opening: u64,
    pub(super) block: usize,
    /// Bytes of log blocks written since the log was opened.
    pub(super) written: u64,
    /// Log bytes at the end of each file that are not counted as room: what one record may leave over.
    pub(super) spare: i64,
    pub(super) sync: SyncChoice,
    /// Whether filled files are copied.
    pub(super) archives: bool,
    pub(super) channel: Channel,
    /// `None` after a failed write.
    pub(super) staging: Option<IoBuffer>,
    /// The same for the second member, where there is one.
    pub(super) mirror: Option<IoBuffer>,
}

/// Records that a write takes.
#[derive(Debug, Clone, Copy)]
struct Taken {
    end: Lsn,
    entries: u64,
    /// What sessions were charged for them.
    charged: i64,
}

/// What a write did.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) place: BatchPlace,
    /// Log bytes that sessions were charged for its records and that it did not take.
    pub(super) refund: i64,
}

impl LogWriter {
    /// Writes all complete records that fit one write; `None` when there is none.
    pub(super) fn write(
        &mut self,
        session: &Session,
        buffer: &LogBuffer,
    ) -> Result<Option<Written>, EngineError> {
        let staging = self.staging.as_ref().map_or(0, |staging| staging.len());
        let most = (staging - BATCH_HEADER).min(buffer.bytes() / 2);
        let left = (self.files[self.current].bytes - self.offset) as usize;
        let mut taken = self.take(buffer, most.min(left.saturating_sub(BATCH_HEADER)));
        let mut unused_spare = 0;
        if taken.end == self.next {
            if self.take(buffer, most).end == self.next {
                return Ok(None);
            }
            self.switch(session)?;
            unused_spare = self.spare - left as i64;
            let left = (self.files[self.current].bytes - self.offset) as usize;
            taken = self.take(buffer, most.min(left - BATCH_HEADER));
            assert!(taken.end > self.next, "a log file holds any record");
        }
        let written = self.write_until(session, buffer, taken)?;
        // What the file had at its end was not counted; what it has taken of it was.
        Ok(Some(Written { refund: written.refund + unused_spare, ..written }))
    }

    /// The complete records that fit so many bytes.
    fn take(&self, buffer: &LogBuffer, most: usize) -> Taken {
        let (mut entries, mut charged, block) = (0, 0, self.block);
        let end = buffer.complete_from(self.next, most, |record| {
            entries += 1;
            charged += charge(record, block);
        });
        Taken { end, entries, charged }
    }

    fn write_until(
        &mut self,
        session: &Session,
        buffer: &LogBuffer,
        Taken { end, entries, charged }: Taken,
    ) -> Result<Written, EngineError> {
        let mut staging = self.staging.take().expect("there until a write fails");
        let records = (end.0 - self.next.0) as usize;
        let length = BATCH_HEADER + records;
        let padded = length.next_multiple_of(self.block);
        buffer.copy(self.next, &mut staging[BATCH_HEADER..length]);
        staging[length..padded].fill(0);
        let header = &self.files[self.current].header;
        let batch = BatchHeader { length, lsn: self.next, sequence: header.sequence, opening: self.opening };
        batch.write(&mut staging);
        let begin = now();
        self.staging = Some(self.transfer(session, self.offset, (staging, padded))?);
        session.count(Statistic::RedoWriteTime, now().saturating_sub(begin).0 / 1000);
        session.count(Statistic::RedoWrites, 1);
        session.count(Statistic::RedoBlocksWritten, (padded / self.block) as u64);
        session.count(Statistic::RedoSize, records as u64);
        session.count(Statistic::RedoEntries, entries);
        session.count(Statistic::RedoWastage, (padded - records) as u64);
        self.written += padded as u64;
        let (lsn, file, offset) = (self.next, self.current, self.offset);
        let place = BatchPlace { lsn, end, file, offset, written: self.written };
        self.offset += padded as u64;
        (self.next, self.end) = (end, end);
        self.files[self.current].usage = Usage::Used(end);
        Ok(Written { place, refund: charged - padded as i64 })
    }

    /// Goes on in a file that is not needed.
    fn switch(&mut self, session: &Session) -> Result<(), EngineError> {
        let begin = session.begin_wait();
        let free = self.files.iter().position(|file| file.usage == Usage::Free);
        let free = free.expect("L5: sessions were admitted against the room in free files");
        session.end_wait(Event::LogFileSwitch, begin);
        let sequence = self.files[self.current].header.sequence + 1;
        self.begin_file(session, free, sequence)
    }

    /// Begins a file: its header is durable before a batch is in it.
    pub(super) fn begin_file(
        &mut self,
        session: &Session,
        file: usize,
        sequence: u64,
    ) -> Result<(), EngineError> {
        let mut staging = self.staging.take().expect("there until a write fails");
        let header = FileHeader {
            database: self.database,
            sequence,
            first: self.next,
            number: file as u32 + 1,
            previous_end: self.end,
        };
        header.write(&mut staging);
        self.current = file;
        self.staging = Some(self.transfer(session, 0, (staging, FILE_HEADER as usize))?);
        self.files[file].header = header;
        self.files[file].usage = Usage::Used(self.next);
        self.files[file].archived = !self.archives;
        self.offset = FILE_HEADER;
        Ok(())
    }

    /// Writes to all members of the current file at once, durably. The failure of one is the log's: which of them can be believed
    /// is found out by a recovery, not guessed while sessions go on.
    fn transfer(
        &mut self,
        session: &Session,
        offset: u64,
        (buffer, bytes): (IoBuffer, usize),
    ) -> Result<IoBuffer, EngineError> {
        let mirror = self.mirror.take().map(|mut mirror| {
            mirror[..bytes].copy_from_slice(&buffer[..bytes]);
            mirror
        });
        let members = &self.files[self.current].members;
        for ((tag, file), buffer) in
            members.iter().enumerate().zip([Some(buffer), mirror].into_iter().flatten())
        {
            let request = Request {
                operation: self.sync.method.operation(),
                file: Arc::clone(file),
                offset,
                buffer,
                range: 0..bytes,
                event: Event::LogFileParallelWrite,
                stream: IoStream::LogWrites,
                tag: tag as u64,
            };
            self.channel.submit(session, request)?;
        }
        let mut first = None;
        for _ in members {
            let completion = self.channel.wait(session, Event::LogFileParallelWrite)?;
            let place = if completion.tag == 0 { &mut first } else { &mut self.mirror };
            *place = Some(completion.buffer);
        }
        if self.sync.method == SyncMethod::Fsync {
            for file in members {
                session.wait(Event::LogFileParallelWrite, || file.sync_all())?;
            }
        }
        Ok(first.expect("each request was waited for"))
    }
}

/// Bytes of the log that a record may take when it is written alone.
pub(super) fn charge(record: usize, block: usize) -> i64 {
    (record + BATCH_HEADER).next_multiple_of(block) as i64
}
