//! The log as sessions use it: admission, gate, append, durability, reading back.
//!
//! A change of blocks takes five steps, and only the first waits for other sessions:
//! 1. [`Log::admit`] reserves room in the files for the record and its undoing (L5,
//!    [`admission`](super::admission)).
//! 2. [`Log::enter`] enters the gate, which changes share and a checkpoint closes for a moment. The
//!    gate tells where the last checkpoint began ([`gate`](super::gate)).
//! 3. The session takes the blocks and changes them.
//! 4. [`Log::append`] returns the record's LSN, which the session writes into the blocks.
//! 5. The session returns the blocks as dirty and leaves the gate.
//!
//! [`Log::make_durable`] is group commit: [`group_commit`](super::group_commit) chooses the thread
//! that writes, [`log_writer`](super::log_writer) writes.

use super::admission::{Admission, Room};
use super::archiver::{Archive, Archiving};
use super::batches::Batches;
use super::checkpoint::{Checkpoint, ControlFile, FileHeaders};
use super::control_block::ControlBlock;
use super::gate::{Floor, Gate};
use super::group_commit::{GroupCommit, ROLE, Turn};
use super::lgwr::Lgwr;
use super::log_buffer::{Apart, LogBuffer};
use super::log_file::FILE_HEADER;
use super::log_writer::{BatchPlace, LogFile, LogWriter, Usage};
use super::pace::Pace;
use super::record::{HEADER_BYTES, UNDER_WAY_BYTES};
use super::sync_method::SyncChoice;
use crate::EngineError;
use crate::cache::{DeviceProgress, WriteAhead};
use crate::settings::HighPriority;
use plumb_events::{Event, Session, Statistic, locked, now, sharing};
use plumb_io::{DirectIo, File};
use plumb_units::{Bytes, Lsn};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Sleep of LGWR while the next record is still being copied. The kernel's timers add 50 us by
/// default. The copying session may need the processor that LGWR, which has priority, would keep.
const COPYING: Duration = Duration::from_micros(10);

/// Sizes that a log is created with.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Bytes of the log buffer, a power of two.
    pub buffer_bytes: usize,
    /// Bytes of a database block.
    pub block_bytes: usize,
    /// Most bytes of log that a recovery should apply; 0: as the files allow.
    pub checkpoint_interval: u64,
}

impl LogOptions {
    /// Returns the most bytes of a record: a split writes five blocks at most.
    pub const fn record_max(&self) -> usize {
        6 * self.block_bytes + 2048
    }

    /// Returns the most transactions that may run at once with blocks of `block_bytes`, because a
    /// checkpoint's record lists them all: 596 with 2K, 2,132 with 8K.
    pub const fn transactions_max(block_bytes: usize) -> usize {
        let options = LogOptions { buffer_bytes: 0, block_bytes, checkpoint_interval: 0 };
        (options.record_max() - HEADER_BYTES) / UNDER_WAY_BYTES
    }
}

/// The log of an open database.
#[derive(Debug)]
pub struct Log {
    options: LogOptions,
    sync: SyncChoice,
    total: Bytes,
    // The stages of a record, in order.
    pub(crate) room: Room,
    floor: Floor,
    buffer: LogBuffer,
    group: Apart<GroupCommit>,
    writer: Mutex<LogWriter>,
    pub(crate) lgwr: Lgwr,
    /// LSNs from the old log's end to its continuation, which no record has.
    gap: Range<Lsn>,
    pub(crate) batches: Batches,
    pub(crate) control: ControlBlock,
    pub(crate) pace: Pace,
    pub(crate) archiving: Archiving,
}

/// A created or opened log; the writer holds the place of the next batch.
pub(super) struct Opened {
    pub(super) options: LogOptions,
    pub(super) writer: LogWriter,
    pub(super) archive: Option<Archive>,
    pub(super) control: ControlFile,
    pub(super) checkpoint: Checkpoint,
    pub(super) places: VecDeque<BatchPlace>,
}

/// Fails the log if a panic drops it ([`Log::ends_with`]).
#[derive(Debug)]
pub(crate) struct EndsWith<'a>(&'a Log, &'static str);

impl Drop for EndsWith<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(format!("{} ended by a panic", self.1));
        }
    }
}

impl Log {
    pub(super) fn new(opened: Opened) -> Result<Log, EngineError> {
        let Opened { options, writer, archive, control, checkpoint, places } = opened;
        let usable = |file: &LogFile| file.bytes as i64 - FILE_HEADER as i64 - writer.spare;
        let free = writer.files.iter().filter(|file| file.usage == Usage::Free).map(usable);
        let free = free.sum::<i64>() + writer.left() - writer.spare;
        Ok(Log {
            options,
            sync: writer.sync.clone(),
            total: Bytes(writer.files.iter().map(|file| file.bytes).sum()),
            room: Room::new(free, writer.block, writer.spare),
            floor: Floor::new(writer.next),
            buffer: LogBuffer::new(options.buffer_bytes, writer.next),
            group: Apart::new(GroupCommit::new(writer.next)),
            lgwr: Lgwr::new(options.buffer_bytes),
            gap: writer.end..writer.next,
            batches: Batches::new(&writer, places)?,
            control: ControlBlock::new(control, checkpoint),
            pace: Pace::of(&writer.files, options.checkpoint_interval),
            archiving: Archiving::new(archive),
            writer: Mutex::new(writer),
        })
    }

    /// Admits records of `record` bytes in all, each written alone, and `besides` more bytes of log
    /// blocks. `None` if that room is not free.
    #[must_use]
    pub fn admit(&self, record: usize, besides: i64) -> Option<Admission<'_>> {
        self.room.admit(self.room.charge(record) + besides)
    }

    /// Returns the free bytes of log blocks.
    pub fn room(&self) -> i64 {
        self.room.free()
    }

    /// Returns the sync method of log writes, and the reason for it.
    pub fn sync(&self) -> &SyncChoice {
        &self.sync
    }

    /// Returns LGWR's nice value from the kernel; `None` if sessions do its work.
    pub fn lgwr_nice(&self) -> Option<i32> {
        self.lgwr.nice()
    }

    /// Makes the calling thread LGWR, with the priority that was requested.
    ///
    /// # Errors
    /// If the setting demands priority and the kernel refuses it.
    pub(crate) fn begins_lgwr(&self, asked: Option<HighPriority>) -> Result<(), EngineError> {
        if self.lgwr.begin(asked)? {
            self.group.lgwr_serves(true);
        }
        Ok(())
    }

    /// Ends LGWR; sessions do its work from now on.
    pub(crate) fn ends_lgwr(&self, session: &Session) {
        self.group.lgwr_serves(false);
        while self.group.lgwr_writes(None) {
            self.write_once(session);
        }
    }

    /// Returns the bytes of a log block.
    pub fn block_bytes(&self) -> usize {
        self.room.log_block()
    }

    /// Returns the I/O mode of the files: past the page cache or through it.
    pub fn direct(&self) -> DirectIo {
        self.batches.files()[0].direct()
    }

    /// Returns the bytes of all log files.
    pub fn total(&self) -> Bytes {
        self.total
    }

    /// Returns the first members of the log files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.batches.files().iter().map(|file| &**file)
    }

    /// Returns the paths of the second members; none if each file has one member.
    pub fn second_members(&self) -> Vec<PathBuf> {
        let writer = locked(&self.writer);
        let second = writer.files.iter().filter_map(|file| file.members.get(1));
        second.map(|member| member.path().to_path_buf()).collect()
    }

    /// Returns the sizes that the log was created with.
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Enters the gate; waits while a checkpoint has closed it.
    pub fn enter(&self) -> Gate<'_> {
        self.floor.enter()
    }

    /// Runs `work` with the gate closed, so that no change is in progress, and sets the floor.
    /// `work` gets the LSN of the next record.
    pub(crate) fn close<T>(&self, work: impl FnOnce(Lsn) -> T) -> T {
        self.floor.close(|| {
            let begin = self.buffer.reserved();
            let result = work(begin);
            self.pace.begun();
            (begin, result)
        })
    }

    /// Returns the LSN of the next record.
    pub fn end(&self) -> Lsn {
        self.buffer.reserved()
    }

    /// Returns the LSN before which all records are durable.
    pub fn durable(&self) -> Lsn {
        self.group.durable()
    }

    /// Appends a whole record and returns its LSN. The session may wait for the log buffer, but
    /// never for a session that waits for it.
    ///
    /// # Errors
    /// If the log has failed.
    ///
    /// # Panics
    /// If the record is longer than [`LogOptions::record_max`].
    pub fn append(&self, session: &Session, record: &[u8]) -> Result<Lsn, EngineError> {
        assert!(record.len() <= self.options.record_max(), "a record of {} bytes", record.len());
        let lsn = self.buffer.reserve(record.len());
        let end = Lsn(lsn.0 + record.len() as u64);
        let mut result = Ok(());
        while !self.buffer.has_room(end) && result.is_ok() {
            // Sessions have reserved everything before, and are copying it.
            let until = Lsn(end.0 - (self.buffer.bytes() / 2) as u64);
            result = self.make_durable_as(session, until, Event::LogBufferSpace);
        }
        result?;
        self.buffer.fill(lsn, record);
        if self.lgwr.has_gathered(self.durable(), end) {
            self.lgwr.ring_once();
        }
        Ok(lsn)
    }

    /// Writes for sessions that left LGWR the role, and what has gathered, so that a large
    /// transaction continues meanwhile. A failure fails the log, and with it every session.
    pub(crate) fn write_as_lgwr(&self, session: &Session) {
        self.lgwr.hear();
        while self.group.lgwr_writes(self.gathered_until()) {
            self.write_once(session);
        }
    }

    /// Writes once, and sleeps while a record is being copied. The role is given up before the
    /// sleep, so that a session can take it.
    fn write_once(&self, session: &Session) {
        let written = self.write(session);
        let is_copied = matches!(written, Ok(None)) && self.end() > self.durable();
        self.end_writing(written);
        if is_copied {
            session.wait(Event::LgwrWaitForRedoCopy, || sharing::sleep(COPYING));
        }
    }

    /// Returns the log's end if much has gathered.
    fn gathered_until(&self) -> Option<Lsn> {
        let (durable, end) = (self.durable(), self.end());
        self.lgwr.has_gathered(durable, end).then_some(end)
    }

    /// Waits until records before `until` are durable; writes them itself if no other thread does.
    ///
    /// # Errors
    /// If a write or a sync fails, or has failed; records that are not durable are lost (L4).
    pub fn make_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError> {
        self.make_durable_as(session, until, Event::LogFileSync)
    }

    fn make_durable_as(&self, session: &Session, until: Lsn, event: Event) -> Result<(), EngineError> {
        loop {
            match self.turn(until)? {
                Turn::Durable => return Ok(()),
                Turn::Sleep => self.sleep(session, until, event),
                // After a failure the next turn returns it, to this session and to all others.
                Turn::Write => {
                    let _ends = self.ends_with("the log writer");
                    sharing::let_others();
                    self.end_writing(self.write_until(session, until).map(Some));
                }
            }
        }
    }

    /// Gives up the role with the durable LSN of its write. A failure ends all writing.
    fn end_writing(&self, written: Result<Option<Lsn>, EngineError>) {
        let durable = written.unwrap_or_else(|error| {
            self.group.fail(error.to_string());
            None
        });
        self.group.give_up(durable, || self.lgwr.bell().ring());
    }

    fn turn(&self, until: Lsn) -> Result<Turn, EngineError> {
        self.group.turn(until).map_err(|first| EngineError::LogFailed { first })
    }

    fn sleep(&self, session: &Session, until: Lsn, event: Event) {
        let begin = session.begin_wait();
        self.group.sleep(until);
        session.end_wait(event, begin);
    }

    /// Switches to the next file, as if the current one were full. Does nothing if
    /// the current one is empty.
    ///
    /// # Errors
    /// If no file is free, or its header cannot be written.
    pub(crate) fn switch(&self, session: &Session) -> Result<(), EngineError> {
        self.make_durable(session, self.end())?;
        self.as_writer(session, || self.switch_as_writer(session))
    }

    /// Runs `work` in the log writer's role: no thread writes the log meanwhile, and commits wait.
    pub(crate) fn as_writer<T>(
        &self,
        session: &Session,
        work: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        while self.turn(ROLE)? != Turn::Write {
            self.sleep(session, ROLE, Event::LogFileSync);
        }
        let _ends = self.ends_with("a session in the log writer's role");
        let result = work();
        self.end_writing(Ok(None));
        result
    }

    /// Fails the log if the caller panics, because others would wait forever for its writes.
    pub(crate) fn ends_with(&self, who: &'static str) -> EndsWith<'_> {
        EndsWith(self, who)
    }

    fn switch_as_writer(&self, session: &Session) -> Result<(), EngineError> {
        let mut writer = locked(&self.writer);
        let left = writer.left();
        if left == writer.files[writer.current].bytes as i64 - FILE_HEADER as i64 {
            return Ok(());
        }
        // The rest of the file was room for sessions, and is lost (L5).
        let is_free = writer.files.iter().any(|file| file.usage == Usage::Free);
        if !is_free || !self.room.take(left - writer.spare, 0) {
            return Err(EngineError::NoLogFile { groups: writer.files.len() });
        }
        self.batches.forget_next(&writer);
        let switched = writer.switch(session);
        if let Err(error) = &switched {
            self.fail(error.to_string());
        }
        self.archiving.bell().ring();
        switched
    }

    /// Returns the place of the next batch: position of the file, and byte in it.
    pub fn position(&self) -> (usize, u64) {
        let writer = locked(&self.writer);
        (writer.current, writer.offset)
    }

    /// Writes, in the role, until records before `until` are durable. Returns the durable
    /// LSN of the last write.
    fn write_until(&self, session: &Session, until: Lsn) -> Result<Lsn, EngineError> {
        loop {
            match self.write(session)? {
                Some(durable) if durable >= until => return Ok(durable),
                Some(durable) => self.group.wrote(durable),
                // A session is still copying its record.
                None => sharing::yield_now(),
            }
        }
    }

    /// Writes all complete records; `None` if there are none.
    fn write(&self, session: &Session) -> Result<Option<Lsn>, EngineError> {
        let mut writer = locked(&self.writer);
        self.batches.forget_next(&writer);
        let Some(written) = writer.write(session, &self.buffer)? else { return Ok(None) };
        {
            let mut places = self.batches.places();
            self.pace.written(&places, &written.place);
            if places.back().is_some_and(|before| before.file != written.place.file) {
                self.archiving.bell().ring();
            }
            places.push_back(written.place);
        }
        self.room.give(written.refund);
        self.buffer.release(written.place.end);
        Ok(Some(written.place.end))
    }

    /// Returns the bytes of log that a recovery would read now.
    pub fn to_recover(&self) -> Bytes {
        self.batches.bytes_from(self.control.checkpoint().redo)
    }

    /// Returns the device's progress with requests of the log writer.
    pub(crate) fn progress(&self) -> DeviceProgress {
        DeviceProgress { is_asked: self.group.is_taken(), answer_count: self.durable().0 }
    }

    /// Fails the log after a failure elsewhere that leaves unknown what is durable.
    pub(crate) fn fail(&self, why: String) {
        self.group.fail(why);
    }

    /// Fails if the log has failed.
    ///
    /// # Errors
    /// The first failure.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.group.failure() {
            Some(first) => Err(EngineError::LogFailed { first }),
            None => Ok(()),
        }
    }

    /// Reads the record at an LSN; false if the log no longer holds it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self, session: &Session, lsn: Lsn, into: &mut Vec<u8>) -> Result<bool, EngineError> {
        Ok(self.buffer.read(lsn, into).is_some() || self.batches.read(session, lsn, into)?)
    }

    /// Returns the memory that holds records read back.
    pub fn read_back_memory(&self) -> Bytes {
        self.batches.memory()
    }

    /// Makes a checkpoint durable and frees the files that it does not need. Recovery applies
    /// records from `redo` on, and needs them from `low` on.
    pub(crate) fn note_checkpoint(
        &self,
        session: &Session,
        redo: Lsn,
        low: Lsn,
        next_transaction: u64,
    ) -> Result<(), EngineError> {
        let mut control = self.control.change();
        let low = self.control.needed_from(low);
        let first = self.batches.file_of(low);
        let sequence = {
            let writer = locked(&self.writer);
            writer.files[first.unwrap_or(writer.current)].header.sequence
        };
        let headers = FileHeaders::Noted;
        let next = Checkpoint { redo, low, sequence, next_transaction, headers, ..*control.checkpoint() };
        control.write(session, next).inspect_err(|error| self.fail(error.to_string()))?;
        self.batches.forget_windows();
        self.release(&mut locked(&self.writer), low);
        Ok(())
    }

    /// Frees the files that no recovery needs: all records before `low`, and copied
    /// if copies are made (L3).
    fn release(&self, writer: &mut LogWriter, low: Lsn) {
        let (current, spare) = (writer.current, writer.spare);
        for (number, file) in writer.files.iter_mut().enumerate() {
            if number != current && file.archived && matches!(file.usage, Usage::Used(end) if end <= low) {
                file.usage = Usage::Free;
                self.room.give(file.bytes as i64 - FILE_HEADER as i64 - spare);
            }
        }
    }

    /// True if a file is kept only because it has no copy.
    pub(crate) fn needs_archiver(&self) -> bool {
        let low = self.control.checkpoint().low;
        let writer = locked(&self.writer);
        let is_kept = |file: &LogFile| !file.archived && matches!(file.usage, Usage::Used(end) if end <= low);
        writer.files.iter().enumerate().any(|(number, file)| number != writer.current && is_kept(file))
    }

    /// True if copies are made and a filled file has none.
    pub(crate) fn has_uncopied(&self) -> bool {
        let writer = locked(&self.writer);
        self.archiving.is_on()
            && (0..writer.files.len()).any(|at| at != writer.current && !writer.files[at].archived)
    }

    /// Copies the oldest filled file without a copy; `false` if there is none.
    ///
    /// # Errors
    /// If the copy fails; the log is unharmed, and the next call retries.
    pub(crate) fn archive_next(&self, session: &Session) -> Result<bool, EngineError> {
        if !self.archiving.is_on() {
            return Ok(false);
        }
        let next = {
            let writer = locked(&self.writer);
            let unarchived =
                writer.files.iter().enumerate().filter(|(at, file)| *at != writer.current && !file.archived);
            let oldest = unarchived.min_by_key(|(_, file)| file.header.sequence);
            oldest.map(|(at, file)| (at, Arc::clone(file.file()), file.bytes, file.header))
        };
        let Some((at, file, bytes, header)) = next else { return Ok(false) };
        self.archiving.copy(session, &file, bytes, &header)?;
        let low = self.control.checkpoint().low;
        let mut writer = locked(&self.writer);
        writer.files[at].archived = true;
        self.release(&mut writer, low);
        self.archiving.tell();
        Ok(true)
    }

    /// Returns why the last copy of a filled log file failed; the archiver retries it.
    pub fn archiver_error(&self) -> Option<String> {
        self.archiving.failure()
    }

    /// Waits until a commit is durable, and counts it.
    pub(crate) fn commit(&self, session: &Session, end: Lsn) -> Result<(), EngineError> {
        let begin = now();
        self.make_durable(session, end)?;
        session.count(Statistic::RedoSynchWrites, 1);
        session.count(Statistic::RedoSynchTime, now().saturating_sub(begin).0 / 1000);
        Ok(())
    }
}

impl WriteAhead for Log {
    fn require_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError> {
        self.make_durable(session, until)
    }

    fn durable(&self) -> Lsn {
        Log::durable(self)
    }

    fn gap(&self) -> &Range<Lsn> {
        &self.gap
    }

    fn write_behind(&self) -> Lsn {
        self.pace.write_behind()
    }

    fn note_definitions(&self, session: &Session, definitions: u64) {
        let mut control = self.control.change();
        let noted = control.checkpoint().definitions;
        assert!(definitions >= noted, "L7: the control file was replaced first");
        if definitions == noted {
            return;
        }
        let next = Checkpoint { definitions, ..*control.checkpoint() };
        if let Err(error) = control.write(session, next) {
            self.fail(error.to_string());
        }
    }
}
