//! The log writer: a role, held by a session that needs its records durable, or by LGWR
//! ([`super::group_commit`]).
//!
//! It takes all complete records that fit one write, and puts a header before them. It writes them
//! at the next log block and makes them durable: one write and one sync at a time (L2). If the next
//! record does not fit the rest of the file, it continues in a free file. One always exists,
//! because sessions are admitted against the free room (L5).
//!
//! Rejected: a thread for all writes, because a lone session would pay two wake-ups, more than the
//! 3 us it may lose. Rejected: a timer, because sessions gather while one writes, and the next
//! write takes them all.

use super::log_buffer::LogBuffer;
use super::log_file::{BATCH_HEADER, BatchHeader, FILE_HEADER, FileHeader, Owner};
use super::sync_method::SyncChoice;
use crate::EngineError;
use crate::database_id::DatabaseId;
use plumb_events::{Event, IoStream, Session, Statistic, now};
use plumb_io::{Channel, File, IoBuffer, Request};
use plumb_units::{Lsn, Nanos};
use std::sync::Arc;

/// Present use of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Nothing in it is needed.
    Free,
    /// It is being written, or is needed still; its records end before this LSN.
    Used(Lsn),
}

#[derive(Debug)]
pub(super) struct LogFile {
    /// Two with the same bytes if the log is mirrored.
    pub(super) members: Vec<Arc<File>>,
    pub(super) header: FileHeader,
    pub(super) bytes: u64,
    pub(super) usage: Usage,
    /// True if the file may be reused without a copy.
    pub(super) archived: bool,
}

impl LogFile {
    /// Returns the member that is read.
    pub(super) fn file(&self) -> &Arc<File> {
        &self.members[0]
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct BatchPlace {
    pub(super) lsn: Lsn,
    pub(super) end: Lsn,
    /// Position among the log files.
    pub(super) file: usize,
    /// Offset of the batch's header.
    pub(super) offset: u64,
    /// Bytes of log blocks written up to its end, since the log was opened; 0 for older batches.
    pub(super) written: u64,
    /// True if the batch was read back and found whole.
    pub(super) verified: bool,
}

/// The log files, and the place of the next batch.
#[derive(Debug)]
pub(super) struct LogWriter {
    pub(super) database: DatabaseId,
    /// Owner in the headers; empty if no member lies outside of the database's directory.
    pub(super) owner: Owner,
    pub(super) files: Vec<LogFile>,
    pub(super) current: usize,
    /// Offset of the next batch in the current file.
    pub(super) offset: u64,
    /// LSN of the next record.
    pub(super) next: Lsn,
    /// End of the last batch; `next` is higher after the database was opened.
    pub(super) end: Lsn,
    /// Random number that tells apart batches of copies of the database.
    pub(super) opening: u64,
    pub(super) block: usize,
    /// Bytes of log blocks written since the log was opened.
    pub(super) written: u64,
    /// Log bytes at the end of each file that are not counted as room: one
    /// record may leave them unused.
    pub(super) spare: i64,
    pub(super) sync: SyncChoice,
    /// True if filled files are copied.
    pub(super) archives: bool,
    pub(super) channel: Channel,
    /// `None` after a failed write.
    pub(super) staging: Option<IoBuffer>,
    /// Buffer of the second member, if there is one.
    pub(super) mirror: Option<IoBuffer>,
}

/// Records taken for one write.
#[derive(Debug, Clone, Copy)]
struct Taken {
    end: Lsn,
    entries: u64,
    /// Log bytes that sessions were charged for these records.
    charged: i64,
    /// Time at which gathering began.
    begin: Nanos,
}

#[derive(Debug)]
pub(super) struct Written {
    pub(super) place: BatchPlace,
    /// Log bytes charged for the records that the write did not need.
    pub(super) refund: i64,
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // A ring that registered the files keeps them open, and so locked, some milliseconds
        // longer.
        self.files.iter().flat_map(|file| &file.members).for_each(|member| member.unlock());
    }
}

impl LogWriter {
    /// Writes all complete records that fit one write; `None` if there are none.
    pub(super) fn write(
        &mut self,
        session: &Session,
        buffer: &LogBuffer,
    ) -> Result<Option<Written>, EngineError> {
        let staging = self.staging.as_ref().map_or(0, |staging| staging.len());
        let most = (staging - BATCH_HEADER).min(buffer.bytes() / 2);
        let mut taken = self.take(buffer, most);
        if taken.end == self.next {
            return Ok(None);
        }
        // Complete records stay complete. So if none of them fits, the first one is too long, and
        // not merely incomplete.
        let mut unused_spare = 0;
        if taken.end.0 - self.next.0 > self.fits() {
            taken = self.take(buffer, self.fits() as usize);
        }
        if taken.end == self.next {
            unused_spare = self.spare - self.left();
            self.switch(session)?;
            taken = self.take(buffer, most.min(self.fits() as usize));
            assert!(taken.end > self.next, "a log file holds any record");
        }
        let written = self.write_until(session, buffer, taken)?;
        // The rest of the file was not counted as room, but the records that used it were charged.
        Ok(Some(Written { refund: written.refund + unused_spare, ..written }))
    }

    /// Takes the complete records that fit `most` bytes.
    fn take(&self, buffer: &LogBuffer, most: usize) -> Taken {
        let (mut entries, mut charged, block, begin) = (0, 0, self.block, now());
        let end = buffer.complete_from(self.next, most, |record| {
            entries += 1;
            charged += charge(record, block);
        });
        Taken { end, entries, charged, begin }
    }

    fn write_until(
        &mut self,
        session: &Session,
        buffer: &LogBuffer,
        Taken { end, entries, charged, begin: gathered }: Taken,
    ) -> Result<Written, EngineError> {
        assert!(self.offset.is_multiple_of(self.block as u64), "L1: a batch begins at a log block");
        assert!(self.next >= self.end, "L2: a batch begins where the last one ended, or behind");
        let mut staging = self.staging.take().expect("L4: nothing is written after a failed write");
        let records = (end.0 - self.next.0) as usize;
        let length = BATCH_HEADER + records;
        let padded = length.next_multiple_of(self.block);
        buffer.copy(self.next, &mut staging[BATCH_HEADER..length]);
        staging[length..padded].fill(0);
        let header = &self.files[self.current].header;
        let batch = BatchHeader { length, lsn: self.next, sequence: header.sequence, opening: self.opening };
        batch.write(&mut staging);
        let begin = now();
        session.count(Statistic::RedoWriterLatchingTime, begin.saturating_sub(gathered).0);
        self.staging =
            Some(self.transfer(session, Event::LogFileParallelWrite, self.offset, (staging, padded))?);
        session.count(Statistic::RedoWriteTime, now().saturating_sub(begin).0 / 1000);
        session.count(Statistic::RedoWrites, 1);
        session.count(Statistic::RedoBlocksWritten, (padded / self.block) as u64);
        session.count(Statistic::RedoSize, records as u64);
        session.count(Statistic::RedoEntries, entries);
        session.count(Statistic::RedoWastage, (padded - records) as u64);
        self.written += padded as u64;
        let (lsn, file, offset) = (self.next, self.current, self.offset);
        let place = BatchPlace { lsn, end, file, offset, written: self.written, verified: false };
        self.offset += padded as u64;
        (self.next, self.end) = (end, end);
        self.files[self.current].usage = Usage::Used(end);
        Ok(Written { place, refund: charged - padded as i64 })
    }

    /// Returns the bytes of records that fit the rest of the current file.
    fn fits(&self) -> u64 {
        (self.left() as u64).saturating_sub(BATCH_HEADER as u64)
    }

    /// Returns the bytes left in the current file.
    pub(super) fn left(&self) -> i64 {
        self.files[self.current].bytes as i64 - self.offset as i64
    }

    /// Continues in a file that is not needed.
    ///
    /// # Errors
    /// If no file is free, or its header cannot be written.
    pub(super) fn switch(&mut self, session: &Session) -> Result<(), EngineError> {
        let free = self.next_file();
        if self.files[free].usage != Usage::Free {
            // L5 promises a free file to sessions. The rollback of a recovery was admitted when its
            // log was written, and a log from elsewhere may have promised nothing.
            return Err(EngineError::NoLogFile { groups: self.files.len() });
        }
        let sequence = self.files[self.current].header.sequence + 1;
        self.begin_file(session, free, sequence)
    }

    /// Returns the file used next: the free one begun longest ago, or the oldest of
    /// all if none is free.
    pub(super) fn next_file(&self) -> usize {
        let others = self.files.iter().enumerate().filter(|(at, _)| *at != self.current);
        let order = |file: &LogFile| (file.usage != Usage::Free, file.header.sequence);
        others.min_by_key(|(_, file)| order(file)).map_or(self.current, |(at, _)| at)
    }

    /// Begins a file. Its header is durable before a batch is in it, and a
    /// log switch waits for that.
    pub(super) fn begin_file(
        &mut self,
        session: &Session,
        file: usize,
        sequence: u64,
    ) -> Result<(), EngineError> {
        assert_eq!(self.files[file].usage, Usage::Free, "L3: a file that is needed is not begun");
        assert!(self.owner.has_epoch(), "O3: a member outside has the epoch of this opening");
        let mut staging = self.staging.take().expect("L4: nothing is written after a failed write");
        let header = FileHeader {
            database: self.database,
            sequence,
            first: self.next,
            number: file as u32 + 1,
            previous_end: self.end,
        };
        header.write(&mut staging, &self.owner);
        self.current = file;
        self.staging =
            Some(self.transfer(session, Event::LogFileSwitch, 0, (staging, FILE_HEADER as usize))?);
        self.files[file].header = header;
        self.files[file].usage = Usage::Used(self.next);
        self.files[file].archived = !self.archives;
        self.offset = FILE_HEADER;
        Ok(())
    }

    /// Writes to all members of the current file at once, durably. If one fails, the log fails:
    /// recovery finds out which member to trust, rather than sessions that continue.
    fn transfer(
        &mut self,
        session: &Session,
        event: Event,
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
                event,
                stream: IoStream::LogWrites,
                tag: tag as u64,
            };
            self.channel.submit(session, request)?;
        }
        let mut first = None;
        for _ in members {
            let completion = self.channel.wait(session, event)?;
            let place = if completion.tag == 0 { &mut first } else { &mut self.mirror };
            *place = Some(completion.buffer);
        }
        Ok(first.expect("each request was waited for"))
    }
}

/// Returns the bytes of log blocks of a record written alone.
pub(super) fn charge(record: usize, block: usize) -> i64 {
    (record + BATCH_HEADER).next_multiple_of(block) as i64
}

#[cfg(test)]
mod tests {
    //! Breaks invariants of the log by hand: the program stops before it writes anything.

    use super::super::record::{RecordBytes, RecordKind};
    use super::super::sync_method::SyncMethod;
    use super::*;
    use plumb_events::{Recorder, Role};
    use plumb_io::sim::MemoryDisk;
    use plumb_io::{Arena, DirectIo, Disk, Method, MethodKind, OpenMode};
    use std::path::Path;

    /// Appends a record of 32 bytes.
    fn append(buffer: &LogBuffer) {
        let mut record = RecordBytes::default();
        record.begin(RecordKind::Commit, 1, Lsn(0), &[]);
        let bytes = record.finish();
        let lsn = buffer.reserve(bytes.len());
        buffer.fill(lsn, bytes);
    }

    /// Creates a log of two files in memory, the first begun, with one record in its buffer.
    fn with_writer(body: impl FnOnce(&mut LogWriter, &LogBuffer, &Session)) {
        let recorder = Recorder::new();
        let session = recorder.session(Role::User);
        let disk = Disk::Memory(MemoryDisk::new());
        let database = DatabaseId(7);
        let file = |number: u32| {
            let path = format!("redo{number}.log");
            let file = disk.open(Path::new(&path), OpenMode::Create, DirectIo::Off).expect("a file");
            let header = FileHeader::unused(database, number);
            LogFile {
                members: vec![Arc::new(file)],
                header,
                bytes: 65_536,
                usage: Usage::Free,
                archived: true,
            }
        };
        let buffer = LogBuffer::new(4096, Lsn(64));
        append(&buffer);
        let mut writer = LogWriter {
            owner: Owner::default(),
            database,
            files: vec![file(1), file(2)],
            current: 0,
            offset: FILE_HEADER,
            next: Lsn(64),
            end: Lsn(64),
            opening: 1,
            block: 512,
            written: 0,
            spare: 0,
            sync: SyncChoice { method: SyncMethod::Fdatasync, reason: String::new() },
            archives: false,
            channel: Method::start(MethodKind::Sync, 1)
                .and_then(|method| method.channel(&[]))
                .expect("a channel"),
            staging: Arena::buffers(8192, 1).expect("memory").1.pop(),
            mirror: None,
        };
        writer.begin_file(&session, 0, 1).expect("the first file");
        body(&mut writer, &buffer, &session);
    }

    #[test]
    fn a_record_is_written_once() {
        with_writer(|writer, buffer, session| {
            let written = writer.write(session, buffer).expect("it is written").expect("there was a record");
            assert_eq!((written.place.lsn, written.place.offset), (Lsn(64), FILE_HEADER));
            assert!(writer.write(session, buffer).expect("nothing fails").is_none(), "there is no other");
        });
    }

    #[test]
    fn a_record_that_is_completed_meanwhile_makes_no_switch() {
        const RECORDS: usize = 20_000;
        with_writer(|writer, _, session| {
            // No file is free, so that a switch would fail.
            writer.files[1].usage = Usage::Used(Lsn(32));
            writer.files[0].bytes = 64 << 20;
            let buffer = LogBuffer::new(4 << 20, writer.next);
            let append = || (0..RECORDS).for_each(|_| append(&buffer));
            let end = writer.next.0 + 32 * RECORDS as u64;
            std::thread::scope(|scope| {
                scope.spawn(append);
                while writer.end.0 < end {
                    writer.write(session, &buffer).expect("nothing fails");
                }
            });
        });
    }

    #[test]
    #[should_panic(expected = "L1: a batch begins at a log block")]
    fn a_batch_does_not_begin_within_a_block() {
        with_writer(|writer, buffer, session| {
            writer.offset += 8;
            let _ = writer.write(session, buffer);
        });
    }

    #[test]
    #[should_panic(expected = "L2: a batch begins where the last one ended")]
    fn a_batch_never_begins_before_the_last_one_ends() {
        with_writer(|writer, buffer, session| {
            writer.end = Lsn(72);
            let _ = writer.write(session, buffer);
        });
    }

    #[test]
    #[should_panic(expected = "L3: a file that is needed is not begun")]
    fn a_file_that_is_needed_is_not_begun_again() {
        with_writer(|writer, _, session| {
            let _ = writer.begin_file(session, 0, 2);
        });
    }

    #[test]
    #[should_panic(expected = "L4: nothing is written after a failed write")]
    fn nothing_is_written_after_a_failed_write() {
        with_writer(|writer, buffer, session| {
            writer.staging = None;
            let _ = writer.write_until(
                session,
                buffer,
                Taken { end: Lsn(96), entries: 1, charged: 512, begin: now() },
            );
        });
    }

    #[test]
    fn a_log_without_a_free_file_stops_before_writing() {
        with_writer(|writer, buffer, session| {
            writer.files[1].usage = Usage::Used(Lsn(32));
            writer.offset = writer.files[0].bytes;
            let error = writer.write(session, buffer).expect_err("L5: no room was promised").to_string();
            assert!(error.contains("all its 2 files are needed"), "{error}");
        });
    }
}
