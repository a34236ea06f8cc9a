//! The log as sessions use it: admission, the gate, appending, making durable, reading back.
//!
//! A change of blocks goes through five steps, and waits for other sessions in the first alone:
//! 1. [`Log::admit`]: room in the files for the record and for what may undo it (L5).
//! 2. [`Log::enter`]: the gate, shared by changes and closed for a moment by a checkpoint. It says where the last checkpoint began.
//! 3. The blocks are taken and changed.
//! 4. [`Log::append`]: the record has its LSN, which goes into the blocks.
//! 5. The blocks are given back as dirty, and the gate is left. So when a checkpoint has the gate, every change with a lower LSN
//!    is in a block that the cache knows to be dirty.
//!
//! [`Log::make_durable`] is group commit: see [`group_commit`](super::group_commit) for who writes, [`log_writer`](super::log_writer) for what.
//!
//! Room is counted in bytes of log blocks. A record is charged for a write of its own; what it did not take, being written with others, is given back
//! by the write. Of each file as much as one record may leave over at its end is not counted.

use super::archiver::Archive;
use super::bell::Bell;
use super::checkpoint::{Checkpoint, ControlFile, FileHeaders};
use super::group_commit::{GroupCommit, ROLE, Turn};
use super::log_buffer::{Apart, LogBuffer};
use super::log_file::{BATCH_HEADER, FILE_HEADER};
use super::log_writer::{BatchPlace, LogFile, LogWriter, Usage, charge};
use super::pace::Pace;
use super::read_back::ReadBack;
use super::record::{HEADER_BYTES, UNDER_WAY_BYTES};
use super::sync_method::SyncChoice;
use crate::EngineError;
use crate::cache::{DeviceProgress, WriteAhead};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use plumb_events::{Event, Session, Statistic, locked, now, sharing, wait_signal};
use plumb_host::priority;
use plumb_io::{DirectIo, File, Method, MethodKind};
use plumb_units::{Bytes, Lsn};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Bytes of log that gather before LGWR writes them although nobody waits: Oracle's begins at a megabyte, or a third of its buffer.
const GATHERED: u64 = 1 << 20;
/// So many sessions read records back at once, each of another batch.
const READERS: usize = 8;
/// How long LGWR sleeps when the next record is still being copied, and as long again as the kernel's timers are late (50 us by default): its session may
/// want the processor that LGWR, put before it, would not leave to it.
const COPYING: Duration = Duration::from_micros(10);
/// How long a wait sleeps before it checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What a log is made with.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Bytes of the log buffer, a power of two.
    pub buffer_bytes: usize,
    /// Bytes of a block of the database.
    pub block_bytes: usize,
    /// Most bytes of log that a recovery shall have to do again; 0: as the files allow.
    pub checkpoint_interval: u64,
}

impl LogOptions {
    /// The longest record: a split writes five blocks at most.
    #[must_use]
    pub const fn record_max(&self) -> usize {
        6 * self.block_bytes + 2048
    }

    /// Transactions that may be under way at once in a database with blocks of so many bytes, because the record of a checkpoint lists them all: 596
    /// with 2K, 2,132 with 8K.
    #[must_use]
    pub const fn transactions_max(block_bytes: usize) -> usize {
        let options = LogOptions { buffer_bytes: 0, block_bytes, checkpoint_interval: 0 };
        (options.record_max() - HEADER_BYTES) / UNDER_WAY_BYTES
    }
}

/// The log of an open database.
#[derive(Debug)]
pub struct Log {
    // What it is.
    options: LogOptions,
    log_block: usize,
    total: Bytes,
    sync: SyncChoice,
    // Records on their way.
    buffer: LogBuffer,
    room: Apart<AtomicI64>,
    /// Where the last checkpoint began; written with the gate closed. In shards, because each change enters and leaves it: on one
    /// lock two threads that do nothing else take turns at its cache line.
    gate: ShardedLock<Lsn>,
    group: Apart<GroupCommit>,
    /// From where it ended when it was opened to where it goes on.
    gap: Range<Lsn>,
    writer: Mutex<LogWriter>,
    /// Rung when so many bytes have gathered; once, until it is heard.
    gathered: u64,
    has_rung: AtomicBool,
    lgwr_bell: Bell,
    /// The thread of LGWR; none where sessions do its work.
    lgwr_thread: OnceLock<i32>,
    // What is in the files.
    files: Vec<Arc<File>>,
    places: Mutex<VecDeque<BatchPlace>>,
    readers: [Mutex<ReadBack>; READERS],
    control: Mutex<(ControlFile, Checkpoint)>,
    pace: Pace,
    /// What is needed although no transaction and no recovery needs it: log from this LSN on, for a backup. All ones: nothing.
    held: Mutex<Option<Lsn>>,
    /// Where filled files are copied to, if they are, and why the last copy could not be made.
    archive: Option<Archive>,
    archiving: Mutex<Option<String>>,
    archived: Condvar,
    archiver_bell: Bell,
}

/// The gate, entered. While it is held no checkpoint begins.
#[derive(Debug)]
pub struct Gate<'a>(ShardedLockReadGuard<'a, Lsn>);

impl Gate<'_> {
    /// Where the last checkpoint began: a block with a lower LSN is logged whole when it changes.
    #[must_use]
    pub fn floor(&self) -> Lsn {
        *self.0
    }
}

/// Room in the log that was promised to a session. Given back when dropped.
#[derive(Debug)]
pub struct Admission<'a> {
    log: &'a Log,
    bytes: i64,
}

impl Admission<'_> {
    /// Takes the charge of a record out of it; the rest stays.
    pub fn spend(&mut self, record: usize) {
        self.bytes -= charge(record, self.log.log_block);
    }

    /// Moves all of another one into it.
    pub(crate) fn join(&mut self, mut other: Admission<'_>) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Splits some of it off.
    pub(crate) fn split(&mut self, bytes: i64) -> Self {
        self.bytes -= bytes;
        Admission { log: self.log, bytes }
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        // Mostly all of it was spent, and the line of the counter is what sessions on other processors want.
        if self.bytes != 0 {
            self.log.room.fetch_add(self.bytes, Relaxed);
        }
    }
}

/// The log, held for a backup.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a Log);

impl Held<'_> {
    /// Whether it still is.
    pub(crate) fn is_held(&self) -> bool {
        locked(&self.0.held).is_some()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

/// See [`Log::ends_with`].
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
    /// A log over files whose next batch goes where the writer says.
    pub(super) fn new(
        options: LogOptions,
        (writer, archive): (LogWriter, Option<Archive>),
        (control, checkpoint): (ControlFile, Checkpoint),
        places: VecDeque<BatchPlace>,
    ) -> Result<Log, EngineError> {
        let method = Method::start(MethodKind::Sync, 1)?;
        let readers = std::array::from_fn(|_| Mutex::new(ReadBack::new(method.channel_for_one())));
        let spare = writer.spare;
        let usable = |file: &LogFile| file.bytes as i64 - FILE_HEADER as i64 - spare;
        let free = writer.files.iter().filter(|file| file.usage == Usage::Free).map(usable);
        let left = writer.files[writer.current].bytes as i64 - writer.offset as i64 - spare;
        let total = writer.files.iter().map(|file| file.bytes).sum();
        let pace = Pace::of(&writer.files, options.checkpoint_interval);
        let files = writer.files.iter().map(|file| Arc::clone(file.file())).collect();
        Ok(Log {
            options,
            log_block: writer.block,
            sync: writer.sync.clone(),
            total: Bytes(total),
            buffer: LogBuffer::new(options.buffer_bytes, writer.next),
            // What is spared here is for the records of checkpoints.
            room: Apart::new(AtomicI64::new(free.sum::<i64>() + left - spare)),
            gate: ShardedLock::new(writer.next),
            group: Apart::new(GroupCommit::new(writer.next)),
            gap: writer.end..writer.next,
            writer: Mutex::new(writer),
            gathered: GATHERED.min(options.buffer_bytes as u64 / 4),
            has_rung: AtomicBool::new(false),
            lgwr_bell: Bell::default(),
            lgwr_thread: OnceLock::new(),
            files,
            places: Mutex::new(places),
            readers,
            control: Mutex::new((control, checkpoint)),
            pace,
            held: Mutex::default(),
            archive,
            archiving: Mutex::default(),
            archived: Condvar::new(),
            archiver_bell: Bell::default(),
        })
    }

    /// Room for records of so many bytes in all, each written alone, and for as many bytes of log blocks besides; `None` when there is none now.
    #[must_use]
    pub fn admit(&self, record: usize, besides: i64) -> Option<Admission<'_>> {
        let bytes = charge(record, self.log_block) + besides;
        self.take_room(bytes, 0).then(|| Admission { log: self, bytes })
    }

    /// Takes the charge of a checkpoint's record, for which some room is spared; `false` when that has been used up by checkpoints
    /// that have not been completed.
    #[must_use]
    pub(crate) fn take_room_for_checkpoint(&self, record: usize) -> bool {
        let spared = charge(self.options.record_max(), self.log_block);
        self.take_room(charge(record, self.log_block), spared)
    }

    /// Takes so many bytes of room, if so many and those that are spared are left. Taken first and given back if they were not there: sessions on two
    /// processors then pass the counter's line once and not twice. Who looks in between may wait for room a moment too early.
    fn take_room(&self, bytes: i64, spared: i64) -> bool {
        let is_there = self.room.fetch_sub(bytes, Relaxed) + spared >= bytes;
        if !is_there {
            self.room.fetch_add(bytes, Relaxed);
        }
        is_there
    }

    /// Room that was promised before a crash, to undo what it left.
    pub(crate) fn promise_of_the_past(&self) -> Admission<'_> {
        Admission { log: self, bytes: 0 }
    }

    /// Bytes of log blocks that a record of so many bytes may take.
    #[must_use]
    pub fn charge(&self, record: usize) -> i64 {
        charge(record, self.log_block)
    }

    /// Bytes of log blocks that are free.
    #[must_use]
    pub fn room(&self) -> i64 {
        self.room.load(Relaxed)
    }

    /// How its writes become durable, and why so: what `log_sync_method` came to.
    #[must_use]
    pub fn sync(&self) -> &SyncChoice {
        &self.sync
    }

    /// The nice value of LGWR as the kernel has it, what `high_priority_processes` came to; `None` where sessions do its work.
    #[must_use]
    pub fn lgwr_nice(&self) -> Option<i32> {
        priority::nice_of(*self.lgwr_thread.get()?)
    }

    /// The calling thread is LGWR from now on, with the priority that it is to have. With it it writes for sessions that wait together; without, it would
    /// have them wait for its turn too.
    ///
    /// # Errors
    /// When that was asked for by name and is refused.
    pub(crate) fn begins_lgwr(&self, asked: &str) -> Result<(), EngineError> {
        self.lgwr_thread.get_or_init(priority::thread_number);
        if asked == "none" {
            return Ok(());
        }
        match priority::put_first() {
            Ok(()) => self.group.lgwr_serves(true),
            Err(_) if asked == "auto" => {}
            Err(why) => return Err(EngineError::Priority { why }),
        }
        Ok(())
    }

    /// LGWR ends, and sessions do its work.
    pub(crate) fn ends_lgwr(&self, session: &Session) {
        self.group.lgwr_serves(false);
        while self.group.lgwr_writes(None) {
            self.write_once(session);
        }
    }

    /// Bytes of a log block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.log_block
    }

    /// Whether its files are reached past the page cache.
    #[must_use]
    pub fn direct(&self) -> DirectIo {
        self.files[0].direct()
    }

    /// All log files.
    #[must_use]
    pub fn total(&self) -> Bytes {
        self.total
    }

    /// Its files, first members.
    pub(crate) fn shared_files(&self) -> &[Arc<File>] {
        &self.files
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().map(|file| &**file)
    }

    /// Paths of the second members of its files; none where each has one.
    #[must_use]
    pub fn second_members(&self) -> Vec<PathBuf> {
        let writer = locked(&self.writer);
        let second = writer.files.iter().filter_map(|file| file.members.get(1));
        second.map(|member| member.path().to_path_buf()).collect()
    }

    /// What it was made with.
    #[must_use]
    pub fn options(&self) -> &LogOptions {
        &self.options
    }

    /// Enters the gate.
    pub fn enter(&self) -> Gate<'_> {
        let gate = || self.gate.read().unwrap_or_else(PoisonError::into_inner);
        Gate(sharing::patiently(|| self.gate.try_read().ok(), gate))
    }

    /// Closes the gate for a moment: no change is under way. Runs `work` with the LSN of the next record, and sets the gate to the LSN
    /// that it had.
    pub(crate) fn close<T>(&self, work: impl FnOnce(Lsn) -> T) -> T {
        let gate = || self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut floor = sharing::patiently(|| self.gate.try_write().ok(), gate);
        let begin = self.buffer.reserved();
        let result = work(begin);
        *floor = begin;
        self.pace.begun();
        result
    }

    /// The LSN of the next record.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.buffer.reserved()
    }

    /// Records before it are durable.
    #[must_use]
    pub fn durable(&self) -> Lsn {
        self.group.durable()
    }

    /// Appends a whole record. The session may wait for the log buffer, but for nobody who waits for it.
    ///
    /// # Errors
    /// When the log has failed.
    ///
    /// # Panics
    /// When the record is longer than [`LogOptions::record_max`].
    pub fn append(&self, session: &Session, record: &[u8]) -> Result<Lsn, EngineError> {
        assert!(record.len() <= self.options.record_max(), "a record of {} bytes", record.len());
        let lsn = self.buffer.reserve(record.len());
        let end = Lsn(lsn.0 + record.len() as u64);
        let mut result = Ok(());
        while !self.buffer.has_room(end) && result.is_ok() {
            // Everything before has been reserved by sessions that are copying.
            let until = Lsn(end.0 - (self.buffer.bytes() / 2) as u64);
            result = self.make_durable_as(session, until, Event::LogBufferSpace);
        }
        result?;
        self.buffer.fill(lsn, record);
        if end.0.saturating_sub(self.durable().0) >= self.gathered {
            self.ring_once();
        }
        Ok(lsn)
    }

    /// Looks first: while much has gathered all who append come here.
    fn ring_once(&self) {
        if !self.has_rung.load(Relaxed) && !self.has_rung.swap(true, Relaxed) {
            self.lgwr_bell.ring();
        }
    }

    /// What LGWR does when its bell has been rung: it writes for sessions that have left it the role, and what has gathered for those that will need it
    /// durable, or its place in the buffer: a large transaction goes on meanwhile. A failure is the log's, and so everybody's.
    pub(crate) fn write_as_lgwr(&self, session: &Session) {
        self.has_rung.store(false, Relaxed);
        // Before it looks: who appends later rings, and whose ring was in vain has appended before.
        fence(SeqCst);
        while self.group.lgwr_writes(self.gathered_until()) {
            self.write_once(session);
        }
    }

    /// The role is given up first: without anybody waiting it is free meanwhile.
    fn write_once(&self, session: &Session) {
        let written = self.write(session);
        let is_copied = matches!(written, Ok(None)) && self.end() > self.durable();
        self.end_writing(written);
        if is_copied {
            session.wait(Event::LgwrWaitForRedoCopy, || sharing::sleep(COPYING));
        }
    }

    /// Up to where much has gathered.
    fn gathered_until(&self) -> Option<Lsn> {
        let (durable, end) = (self.durable(), self.end());
        (end.0 - durable.0 >= self.gathered).then_some(end)
    }

    /// Rung when LGWR is to look whether it writes.
    pub(crate) fn lgwr_bell(&self) -> &Bell {
        &self.lgwr_bell
    }

    /// Waits until records before `until` are durable, writing them if nobody does.
    ///
    /// # Errors
    /// When a write or a sync fails, or has failed; what is not durable is lost (L4).
    pub fn make_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError> {
        self.make_durable_as(session, until, Event::LogFileSync)
    }

    fn make_durable_as(&self, session: &Session, until: Lsn, event: Event) -> Result<(), EngineError> {
        loop {
            match self.turn(until)? {
                Turn::Durable => return Ok(()),
                Turn::Sleep => self.sleep(session, until, event),
                // After a failure the next turn says so, to the caller as to all.
                Turn::Write => {
                    let _ends = self.ends_with("the log writer");
                    sharing::let_others();
                    self.end_writing(self.write_until(session, until).map(Some));
                }
            }
        }
    }

    /// Gives the role up, with what was made durable by it. After a failure nothing is written any more.
    fn end_writing(&self, written: Result<Option<Lsn>, EngineError>) {
        let durable = written.unwrap_or_else(|error| {
            self.group.fail(error.to_string());
            None
        });
        self.group.give_up(durable, || self.lgwr_bell.ring());
    }

    fn turn(&self, until: Lsn) -> Result<Turn, EngineError> {
        self.group.turn(until).map_err(|first| EngineError::LogFailed { first })
    }

    fn sleep(&self, session: &Session, until: Lsn, event: Event) {
        let begin = session.begin_wait();
        self.group.sleep(until);
        session.end_wait(event, begin);
    }

    /// Goes on at the beginning of the next file, as if the current one were full. Nothing happens where that is at its beginning already.
    ///
    /// # Errors
    /// When no file is free, or its header cannot be written.
    pub(crate) fn switch(&self, session: &Session) -> Result<(), EngineError> {
        self.make_durable(session, self.end())?;
        self.as_writer(session, || self.switch_as_writer(session))
    }

    /// Does work as the log writer: nothing is written to the log meanwhile, and who commits waits.
    pub(crate) fn as_writer<T>(
        &self,
        session: &Session,
        work: impl FnOnce() -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        while self.turn(ROLE)? != Turn::Write {
            self.sleep(session, ROLE, Event::LogFileSync);
        }
        let _ends = self.ends_with("who worked as the log writer");
        let result = work();
        self.end_writing(Ok(None));
        result
    }

    /// Ends the log if a panic ends the caller: what others wait for would never come.
    pub(crate) fn ends_with(&self, who: &'static str) -> EndsWith<'_> {
        EndsWith(self, who)
    }

    /// Keeps the log from the last checkpoint's record on, until what is given back is dropped, or [`Log::let_go`].
    ///
    /// # Errors
    /// When it is held by somebody else.
    pub(crate) fn hold(&self) -> Result<Held<'_>, EngineError> {
        let control = locked(&self.control);
        let mut held = locked(&self.held);
        if held.is_some() {
            return Err(EngineError::Contradiction {
                first: "a backup".to_string(),
                second: "another one under way".to_string(),
                why: "one is made at a time; wait for it".to_string(),
            });
        }
        *held = Some(control.1.low);
        Ok(Held(self))
    }

    /// Holds nothing any more, because sessions need the room. `false` when nothing was held.
    pub(crate) fn let_go(&self) -> bool {
        locked(&self.held).take().is_some()
    }

    fn switch_as_writer(&self, session: &Session) -> Result<(), EngineError> {
        let mut writer = locked(&self.writer);
        let left = writer.left();
        if left == writer.files[writer.current].bytes as i64 - FILE_HEADER as i64 {
            return Ok(());
        }
        // What is left of the file was room for sessions, and is none any more (L5).
        let is_free = writer.files.iter().any(|file| file.usage == Usage::Free);
        if !is_free || !self.take_room(left - writer.spare, 0) {
            return Err(EngineError::NoLogFile { groups: writer.files.len() });
        }
        forget_next(&mut locked(&self.places), &writer);
        let switched = writer.switch(session);
        if let Err(error) = &switched {
            self.fail(error.to_string());
        }
        self.archiver_bell.ring();
        switched
    }

    /// Where the next batch goes: position of the file, and byte.
    #[must_use]
    pub fn position(&self) -> (usize, u64) {
        let writer = locked(&self.writer);
        (writer.current, writer.offset)
    }

    /// Writes, as the log writer, until records before `until` are durable; gives what the last write made so.
    fn write_until(&self, session: &Session, until: Lsn) -> Result<Lsn, EngineError> {
        loop {
            match self.write(session)? {
                Some(durable) if durable >= until => return Ok(durable),
                Some(durable) => self.group.wrote(durable),
                // A session that is copying its record has not come to the end of it.
                None => sharing::yield_now(),
            }
        }
    }

    /// Writes what is complete; `None` when nothing is.
    fn write(&self, session: &Session) -> Result<Option<Lsn>, EngineError> {
        let mut writer = locked(&self.writer);
        forget_next(&mut locked(&self.places), &writer);
        let Some(written) = writer.write(session, &self.buffer)? else { return Ok(None) };
        {
            let mut places = locked(&self.places);
            self.pace.written(&places, &written.place);
            if places.back().is_some_and(|before| before.file != written.place.file) {
                self.archiver_bell.ring();
            }
            places.push_back(written.place);
        }
        self.room.fetch_add(written.refund, Relaxed);
        self.buffer.release(written.place.end);
        Ok(Some(written.place.end))
    }

    /// When checkpoints are due.
    pub(crate) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Bytes of log that a recovery would go through that began now.
    #[must_use]
    pub fn to_recover(&self) -> Bytes {
        let redo = locked(&self.control).1.redo;
        let places = locked(&self.places);
        let first = places.get(places.partition_point(|place| place.end <= redo));
        let (Some(first), Some(last)) = (first, places.back()) else { return Bytes(0) };
        let own = charge((first.end.0 - first.lsn.0) as usize, self.log_block) as u64;
        Bytes((last.written + own).saturating_sub(first.written))
    }

    /// How far the device has come with what the log writer asked it for.
    pub(crate) fn progress(&self) -> DeviceProgress {
        DeviceProgress { is_asked: self.group.is_taken(), answer_count: self.durable().0 }
    }

    /// Ends the log after a failure elsewhere that leaves unknown what is durable.
    pub(crate) fn fail(&self, why: String) {
        self.group.fail(why);
    }

    /// Whether it has failed.
    ///
    /// # Errors
    /// With the first failure.
    pub fn check(&self) -> Result<(), EngineError> {
        match self.group.failure() {
            Some(first) => Err(EngineError::LogFailed { first }),
            None => Ok(()),
        }
    }

    /// The bytes of the record at an LSN; `false` when the log does not have it any more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, session: &Session, lsn: Lsn, into: &mut Vec<u8>) -> Result<bool, EngineError> {
        if self.buffer.read(lsn, into).is_some() {
            return Ok(true);
        }
        let place = {
            let places = locked(&self.places);
            let behind = places.partition_point(|place| place.lsn <= lsn);
            behind.checked_sub(1).and_then(|at| places.get(at).copied()).filter(|place| lsn < place.end)
        };
        let Some(place) = place else { return Ok(false) };
        let offset = place.offset + BATCH_HEADER as u64 + (lsn.0 - place.lsn.0);
        let file = (&self.files[place.file], place.file);
        // One batch has one reader, so that its windows serve all who want records of it.
        let number = (place.offset / self.log_block as u64) as usize % READERS;
        let mut reader = session.latch(&self.readers[number], Event::LatchFree);
        let verified = if place.verified { Ok(()) } else { reader.verify(session, file, &place) };
        let read = verified.and_then(|()| reader.record(session, file, (offset, &place), into));
        drop(reader);
        let mut places = locked(&self.places);
        // The file may have been used again meanwhile.
        if places.front().is_none_or(|first| first.lsn > place.lsn) {
            return Ok(false);
        }
        read?;
        let at = places.partition_point(|other| other.lsn < place.lsn);
        places[at].verified = true;
        Ok(true)
    }

    /// Memory that holds records read back.
    #[must_use]
    pub fn read_back_memory(&self) -> Bytes {
        self.readers.iter().map(|reader| locked(reader).memory()).sum()
    }

    /// Makes a checkpoint durable and takes back the files that it does not need.
    pub(crate) fn note_checkpoint(
        &self,
        session: &Session,
        (redo, low): (Lsn, Lsn),
        next_transaction: u64,
    ) -> Result<(), EngineError> {
        let mut control = locked(&self.control);
        let low = locked(&self.held).map_or(low, |held| held.min(low));
        let first = locked(&self.places).iter().find(|place| place.end > low).map(|place| place.file);
        let sequence = {
            let writer = locked(&self.writer);
            writer.files[first.unwrap_or(writer.current)].header.sequence
        };
        let serial = control.1.serial + 1;
        let noted = FileHeaders::Noted;
        let checkpoint =
            Checkpoint { serial, redo, low, sequence, next_transaction, headers: noted, ..control.1 };
        let written = control.0.write(session, &checkpoint);
        if let Err(error) = &written {
            self.fail(error.to_string());
        }
        written?;
        control.1 = checkpoint;
        self.readers.iter().for_each(|reader| locked(reader).forget());
        self.release(&mut locked(&self.writer), low);
        Ok(())
    }

    /// Gives back the files that nobody needs: not those behind `low`, and not those without a copy (L3).
    fn release(&self, writer: &mut LogWriter, low: Lsn) {
        let (current, spare) = (writer.current, writer.spare);
        for (number, file) in writer.files.iter_mut().enumerate() {
            if number != current && file.archived && matches!(file.usage, Usage::Used(end) if end <= low) {
                file.usage = Usage::Free;
                self.room.fetch_add(file.bytes as i64 - FILE_HEADER as i64 - spare, Relaxed);
            }
        }
    }

    /// Whether a file would be free if it had been copied.
    pub(crate) fn needs_archiver(&self) -> bool {
        let low = locked(&self.control).1.low;
        let writer = locked(&self.writer);
        let is_kept = |file: &LogFile| !file.archived && matches!(file.usage, Usage::Used(end) if end <= low);
        writer.files.iter().enumerate().any(|(number, file)| number != writer.current && is_kept(file))
    }

    /// Whether a filled file has no copy, where copies are made.
    pub(crate) fn has_uncopied(&self) -> bool {
        let writer = locked(&self.writer);
        self.archives()
            && (0..writer.files.len()).any(|at| at != writer.current && !writer.files[at].archived)
    }

    /// Copies the oldest filled file that has no copy; `false` when there is none.
    ///
    /// # Errors
    /// When the copy cannot be made: the log is none the worse for it, and the next call tries again.
    pub(crate) fn archive_next(&self, session: &Session) -> Result<bool, EngineError> {
        let Some(archive) = &self.archive else { return Ok(false) };
        let next = {
            let writer = locked(&self.writer);
            let unarchived =
                writer.files.iter().enumerate().filter(|(at, file)| *at != writer.current && !file.archived);
            let oldest = unarchived.min_by_key(|(_, file)| file.header.sequence);
            oldest.map(|(at, file)| (at, Arc::clone(file.file()), file.bytes, file.header))
        };
        let Some((at, file, bytes, header)) = next else { return Ok(false) };
        let copied = archive.copy(session, (&file, bytes), &header);
        let directory = archive.directory().display();
        let said = |error: &EngineError| format!("log sequence {} in {directory}: {error}", header.sequence);
        *locked(&self.archiving) = copied.as_ref().err().map(said);
        copied?;
        let low = locked(&self.control).1.low;
        let mut writer = locked(&self.writer);
        writer.files[at].archived = true;
        self.release(&mut writer, low);
        self.archived.notify_all();
        Ok(true)
    }

    /// Why the last copy of a filled log file could not be made; it is tried again.
    #[must_use]
    pub fn archiver_error(&self) -> Option<String> {
        locked(&self.archiving).clone()
    }

    /// Whether filled log files are copied.
    pub(crate) fn archives(&self) -> bool {
        self.archive.is_some()
    }

    /// Rung when a file has been filled.
    pub(crate) fn archiver_bell(&self) -> &Bell {
        &self.archiver_bell
    }

    /// Waits a moment for the archiver.
    pub(crate) fn wait_for_archiver(&self, session: &Session) {
        let begin = session.begin_wait();
        drop(wait_signal((&self.archiving, &self.archived), locked(&self.archiving), LOOK_AGAIN));
        session.end_wait(Event::LogFileSwitchArchive, begin);
    }

    /// Counts a commit that had to become durable.
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
        let mut control = locked(&self.control);
        assert!(definitions >= control.1.definitions, "L7: the control file was replaced first");
        if definitions == control.1.definitions {
            return;
        }
        let checkpoint = Checkpoint { serial: control.1.serial + 1, definitions, ..control.1 };
        match control.0.write(session, &checkpoint) {
            Ok(()) => control.1 = checkpoint,
            Err(error) => self.fail(error.to_string()),
        }
    }
}

/// Forgets what is in the file that a switch would go on in, before a byte of it is written over. What is in the others can be read
/// although no recovery needs it: statements that began before a checkpoint find their versions there.
fn forget_next(places: &mut VecDeque<BatchPlace>, writer: &LogWriter) {
    let next = writer.next_file();
    let is_free = writer.files[next].usage == Usage::Free;
    while is_free && places.front().is_some_and(|place| place.file == next) {
        places.pop_front();
    }
}
