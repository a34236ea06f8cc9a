//! The buffer cache: the frames behind one mutex, and the waits for them.
//!
//! Each wait has a name and a condition of its own: `freed` (free buffer waits),
//! `arrived` (read by other session, buffer busy waits), `written` (local write
//! wait), `work` (the database writers' rdbms ipc message). A condition is
//! signalled only when somebody is counted as waiting, because a signal is a
//! system call even when nobody hears it. A wait checks its condition again from time to
//! time, so a lost signal costs time and never hangs a session.
//!
//! Memory is mapped and writers are started at first use: an instance that never
//! uses the cache has neither.

use super::database_writer;
use super::frames::{DirtyBlock, Frames, Taken, Usage};
use crate::EngineError;
use crate::access::Access;
use crate::settings::{Setting, Settings};
use crate::storage::tablespace::{Extent, Purpose, Tablespace};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Event, Recorder, Role, Session, Statistic, now};
use plumb_io::limits::Quota;
use plumb_io::{Arena, IoBuffer, IoError, Method, strict_assert};
use plumb_units::{BlockAddress, BlockSize, Lsn, Nanos};
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a wait sleeps before it checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same when nothing is being written: then only an unpin can free a frame, and
/// unpinning signals nobody.
const LOOK_FOR_UNPIN: Duration = Duration::from_millis(1);
/// How long a session waits when every frame is pinned. Pins last microseconds:
/// after so long the sessions wait for each other.
const STARVED: Nanos = Nanos(if cfg!(test) { 1_000_000_000 } else { 10_000_000_000 });
/// How often a session looks whether a block that it wants to change has been unpinned: ten seconds in all.
const PIN_TRIES: u32 = if cfg!(test) { 5_000 } else { 100_000 };
/// How long an idle database writer sleeps: the length of one wait of its idle event.
const IDLE: Duration = Duration::from_secs(3);
/// The smallest batch that a database writer takes while other writers share the dirty
/// list: sorting and joining a few blocks would gain nothing.
const SHARE_MIN: usize = 16;

/// Size of a cache, and how its blocks are written.
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    /// How many blocks it holds.
    pub frame_count: usize,
    /// How many database writers; 0: a session that needs a frame, or blocks on disk, writes a batch itself.
    pub writer_count: usize,
    /// The number of the first of them: each has one of its own among those of all caches.
    pub first_writer: usize,
    /// Most blocks in a batch.
    pub batch_blocks: usize,
    /// Most adjacent blocks that a database writer joins to one request.
    pub request_blocks: usize,
    /// Most blocks that a session asks for at once without having to.
    pub prefetch_blocks: usize,
}

impl CacheOptions {
    /// As the settings say, of the cache whose size is that setting. Requests are of one block: see [`database_writer`].
    #[must_use]
    pub fn of(settings: &Settings, size: Setting, block_size: BlockSize) -> CacheOptions {
        let blocks = (settings.number(size) / block_size.bytes() as u64).max(1);
        let asked = settings.number(Setting::DebugCacheBlocks);
        CacheOptions {
            frame_count: if asked > 0 { asked } else { blocks } as usize,
            writer_count: settings.number(Setting::DbWriterProcesses) as usize,
            first_writer: 0,
            batch_blocks: settings.number(Setting::DbBlockWriteBatch) as usize,
            request_blocks: 1,
            prefetch_blocks: settings.number(Setting::DbBlockPrefetchLimit) as usize,
        }
    }
}

/// The setting that a cache for blocks of this size is as large as.
pub(super) fn size_setting(tablespaces: &Tablespaces, block_size: BlockSize) -> Setting {
    if block_size == tablespaces.block_size() { Setting::DbCacheSize } else { Setting::cache_of(block_size) }
}

/// What has to be durable before a changed block is written: the log of the change.
pub trait WriteAhead: Send + Sync + std::fmt::Debug {
    /// Makes the log durable up to this LSN.
    ///
    /// # Errors
    /// When it fails, or has failed.
    fn require_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError>;

    /// How far it is durable.
    fn durable(&self) -> Lsn;

    /// Blocks that were first changed before it are to be written now, so that checkpoints can advance.
    fn write_behind(&self) -> Lsn;
}

/// A device at a moment, as those see it who transfer blocks. Two of them say whether it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceProgress {
    /// Whether a transfer is under way.
    pub(crate) is_asked: bool,
    /// Grows with what has been transferred.
    pub(crate) answer_count: u64,
}

impl DeviceProgress {
    /// That of two parts together.
    pub(crate) fn with(self, other: DeviceProgress) -> DeviceProgress {
        let is_asked = self.is_asked || other.is_asked;
        DeviceProgress { is_asked, answer_count: self.answer_count + other.answer_count }
    }

    /// Whether nothing was answered until `later`, although something was asked for all the time.
    pub(crate) fn stood_until(self, later: DeviceProgress) -> bool {
        self.is_asked && self.answer_count == later.answer_count
    }
}

/// A buffer cache of an instance, for blocks of one size. Its writers are stopped when it is dropped.
#[derive(Debug)]
pub struct BufferCache {
    shared: Arc<Shared>,
    /// The database writers, once started.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What sessions and database writers share.
#[derive(Debug)]
pub(super) struct Shared {
    // What it works for.
    pub(super) options: CacheOptions,
    pub(super) block_size: BlockSize,
    /// The setting that it is as large as, for messages.
    size_setting: &'static str,
    pub(super) method: Method,
    writer_threads: Quota,
    write_ahead: OnceLock<Arc<dyn WriteAhead>>,
    pub(super) tablespaces: Arc<Tablespaces>,
    pub(super) recorder: Recorder,
    // The frames and who waits for what.
    state: Mutex<State>,
    freed: Condvar,
    arrived: Condvar,
    written: Condvar,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    frames: Frames,
    /// Their memory; none before the cache is used for the first time.
    memory: Option<Arena>,
    /// The first failed write; nothing is served any more (B6).
    failure: Option<String>,
    stopping: bool,
    /// Database writers that run; all but none of those started after a failure.
    writers_alive: usize,
    writers_idle: usize,
    /// Somebody wants the dirty list empty, without waiting for it.
    flush_asked: bool,
    // Sessions waiting, by condition.
    waiting_freed: usize,
    waiting_arrived: usize,
    /// For all blocks of a writer.
    draining: usize,
    /// For all blocks that were changed before an LSN, and the highest of these.
    checkpointing: usize,
    checkpoint: Lsn,
    /// For one block, to forget it.
    forgetting: usize,
}

impl State {
    fn check(&self) -> Result<(), EngineError> {
        match &self.failure {
            Some(first) => Err(EngineError::WriterFailed { first: first.clone() }),
            None => Ok(()),
        }
    }

    /// Whether a database writer should take a batch of what has been dirty for longest.
    fn needs_clean(&self, options: &CacheOptions) -> bool {
        let dirty = self.frames.dirty_count();
        let asked = self.waiting_freed > 0 || self.draining > 0 || self.flush_asked;
        dirty > 0 && (asked || dirty > options.frame_count / 4)
    }

    /// What was changed before it should be written, for a checkpoint.
    fn checkpoint_target(&self, behind: Lsn) -> Lsn {
        if self.checkpointing > 0 { behind.max(self.checkpoint) } else { behind }
    }

    /// Whether a database writer should take a batch.
    fn has_work(&self, options: &CacheOptions, behind: Lsn) -> bool {
        let due = self.frames.first_unwritten().is_some_and(|first| first < self.checkpoint_target(behind));
        self.needs_clean(options) || (due && self.frames.dirty_count() > 0)
    }
}

/// A block in the cache, which stays there unchanged while this lives.
#[derive(Debug)]
pub struct PinnedBlock {
    address: BlockAddress,
    bytes: Arc<IoBuffer>,
}

impl PinnedBlock {
    pub(super) fn new(address: BlockAddress, bytes: Arc<IoBuffer>) -> PinnedBlock {
        PinnedBlock { address, bytes }
    }

    /// Where the block belongs.
    #[must_use]
    pub fn address(&self) -> BlockAddress {
        self.address
    }
}

impl Deref for PinnedBlock {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Whether a session that asks for a block may have to wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It waits.
    Wait,
    /// It does not wait, because it holds frames that other sessions may be waiting for.
    Never,
}

/// Outcome of a block request.
#[derive(Debug)]
pub(super) enum Claim<'a> {
    /// It is in the cache.
    Hit(PinnedBlock),
    /// It is not: the session that asked reads it into this frame.
    Miss(OwnedFrame<'a>),
    /// Neither can be had without waiting.
    Unavailable,
}

/// A frame whose bytes one session alone can see (B1). Given back when dropped.
#[derive(Debug)]
pub(super) struct OwnedFrame<'a> {
    shared: &'a Shared,
    index: u32,
    /// `None` once the block is in the cache.
    bytes: Option<Arc<IoBuffer>>,
}

impl OwnedFrame<'_> {
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes.as_mut().expect("there until the block is in the cache");
        Arc::get_mut(bytes).expect("B1: the owner holds the only reference")
    }

    /// The block has been read into the frame: from now on others find it.
    pub(super) fn arrived(mut self, session: &Session, touch: u8) -> PinnedBlock {
        let bytes = self.bytes.take().expect("there until the block is in the cache");
        let mut state = self.shared.latch(session);
        let pinned = state.frames.arrived(self.index, bytes, touch);
        self.shared.signal_arrived(&state);
        pinned
    }
}

impl Drop for OwnedFrame<'_> {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        let mut state = self.shared.lock();
        state.frames.give_back(self.index, bytes);
        self.shared.signal_arrived(&state);
        self.shared.signal_freed(&state, 1);
    }
}

/// A block that one session changes in place. It is given back as it was when dropped, and must be then.
#[derive(Debug)]
pub struct ChangingBlock<'a> {
    shared: &'a Shared,
    index: u32,
    /// `None` once it is given back.
    bytes: Option<Arc<IoBuffer>>,
}

impl ChangingBlock<'_> {
    /// The record of this LSN, which is in the block's header, changed it.
    pub fn changed(mut self, lsn: Lsn) {
        let bytes = self.bytes.take().expect("there until it is given back");
        let mut state = self.shared.lock();
        state.frames.end_change(self.index, bytes, Some(lsn));
        self.shared.signal_arrived(&state);
        self.shared.post(&state);
    }
}

impl Deref for ChangingBlock<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.as_ref().expect("there until it is given back")
    }
}

impl DerefMut for ChangingBlock<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = self.bytes.as_mut().expect("there until it is given back");
        Arc::get_mut(bytes).expect("B1: the owner holds the only reference")
    }
}

impl Drop for ChangingBlock<'_> {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        let mut state = self.shared.lock();
        state.frames.end_change(self.index, bytes, None);
        self.shared.signal_arrived(&state);
        self.shared.signal_freed(&state, 1);
    }
}

impl BufferCache {
    /// A cache without memory and without writers: both come with its first use.
    ///
    /// # Panics
    /// When a number among the options is zero.
    #[must_use]
    pub fn new(
        (options, block_size): (CacheOptions, BlockSize),
        access: &Access,
        tablespaces: Arc<Tablespaces>,
        recorder: Recorder,
    ) -> BufferCache {
        for number in [options.frame_count, options.batch_blocks, options.request_blocks] {
            assert!(number > 0, "a cache has frames and batches");
        }
        let shared = Shared {
            options,
            block_size,
            size_setting: size_setting(&tablespaces, block_size).row().name,
            method: access.method.clone(),
            writer_threads: access.servers.threads.clone(),
            write_ahead: OnceLock::new(),
            tablespaces,
            recorder,
            state: Mutex::default(),
            freed: Condvar::new(),
            arrived: Condvar::new(),
            written: Condvar::new(),
            work: Condvar::new(),
        };
        BufferCache { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// How large it is, and how it is written.
    #[must_use]
    pub fn options(&self) -> &CacheOptions {
        &self.shared.options
    }

    /// Forgets the blocks of these extents, written or not: they are going to belong
    /// to another segment. Waits for those that are being written. To be called
    /// before extents that may be in the cache are given back; also when the
    /// cache has failed.
    pub fn discard(&self, session: &Session, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            let mut state = self.shared.lock();
            if state.frames.is_empty() {
                return;
            }
            let mut forgotten = 0;
            for block in 0..extent.blocks {
                let was_there;
                (state, was_there) = self.shared.forget(session, state, extent.address(block));
                forgotten += usize::from(was_there);
            }
            self.shared.signal_freed(&state, forgotten);
        }
    }

    /// From now on no block that was changed in place is written before its log. Starts the database writers.
    ///
    /// # Errors
    /// When a thread cannot be started.
    ///
    /// # Panics
    /// When there is a log already: see [`BufferCache::is_logged`].
    pub fn log_first(&self, log: Arc<dyn WriteAhead>) -> Result<(), EngineError> {
        let is_first = self.shared.write_ahead.set(log).is_ok();
        assert!(is_first, "an instance opens its transactions once");
        self.start_writers()
    }

    /// Whether the transactions of the instance have been opened.
    #[must_use]
    pub fn is_logged(&self) -> bool {
        self.shared.write_ahead.get().is_some()
    }

    /// How far the device has come with the blocks that it was asked for.
    pub(crate) fn progress(&self) -> DeviceProgress {
        self.shared.lock().frames.progress()
    }

    /// The size of its blocks.
    #[must_use]
    pub fn block_size(&self) -> BlockSize {
        self.shared.block_size
    }

    /// How many blocks it holds of a tablespace, whatever is done with them.
    #[must_use]
    pub fn cached_blocks(&self, purpose: Purpose) -> u64 {
        self.shared.lock().frames.count_of(purpose)
    }

    pub(super) fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Stops the database writers after the batch they have in hand. What is dirty
    /// then has no owner any more and is not written.
    pub fn stop(&self) {
        self.shared.lock().stopping = true;
        self.shared.work.notify_all();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A writer that panicked has printed why, and closed the cache.
            let _ = thread.join();
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Starts the database writers unless they have been.
    pub(super) fn start_writers(&self) -> Result<(), EngineError> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if !threads.is_empty() {
            return Ok(());
        }
        let first = self.shared.options.first_writer;
        for number in first..first + self.shared.options.writer_count {
            let name = Role::DatabaseWriter.numbered(number);
            let shared = Arc::clone(&self.shared);
            self.shared.lock().writers_alive += 1;
            let started = self.shared.writer_threads.thread().and_then(|share| {
                let run = move || {
                    let _share = share;
                    database_writer::run(&shared, number);
                };
                thread::Builder::new().name(name.clone()).spawn(run)
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    let error = IoError::thread(format!("database writer {name}"), source);
                    let mut state = self.shared.lock();
                    state.writers_alive -= 1;
                    // Fewer writers than asked for would falsify a measurement.
                    state.failure.get_or_insert_with(|| error.to_string());
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Where its buffers lie in memory, for whoever asks the kernel what is mapped there; none before its first use.
    #[must_use]
    pub fn memory(&self) -> Option<Range<usize>> {
        self.shared.lock().memory.as_ref().map(Arena::addresses)
    }

    /// Counts everything anew, and says how many sessions wait for a free buffer.
    #[cfg(test)]
    pub(super) fn check(&self) -> usize {
        let state = self.shared.lock();
        if !state.frames.is_empty() {
            state.frames.check();
        }
        state.waiting_freed
    }
}

impl Drop for BufferCache {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What sessions do.
impl Shared {
    /// The most blocks that one multiblock read may pin: with all of them pinned
    /// by a scan no other session could go on.
    pub(super) fn multiblock_max(&self) -> u32 {
        (self.options.frame_count / 4).max(1) as u32
    }

    /// The tablespace of a purpose, whose blocks are of the cache's size.
    pub(super) fn tablespace(&self, purpose: Purpose) -> &Tablespace {
        let tablespace = self.tablespaces.get(purpose);
        debug_assert_eq!(
            tablespace.block_size, self.block_size,
            "B11: a frame holds a block of its own size"
        );
        tablespace
    }

    /// The block if it is in the cache, or a frame to read it into.
    #[inline]
    pub(super) fn claim(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
        patience: Patience,
    ) -> Result<Claim<'_>, EngineError> {
        let mut state = self.open(session)?;
        loop {
            match state.frames.find(address) {
                Some(index) if !matches!(state.frames.usage(index), Usage::Reading | Usage::Changing) => {
                    let pinned = state.frames.pin(index);
                    strict_assert!(pinned.address == address, "B2: a hit is the block asked for");
                    return Ok(Claim::Hit(pinned));
                }
                Some(_) if patience == Patience::Never => return Ok(Claim::Unavailable),
                Some(index) => {
                    let is_read = state.frames.usage(index) == Usage::Reading;
                    let event = if is_read { Event::ReadByOtherSession } else { Event::BufferBusyWaits };
                    state = self.wait_arrived(session, event, state);
                    state.check()?;
                    continue;
                }
                None => {}
            }
            let taken;
            (state, taken) = self.take_frame(session, state, Some(address), patience)?;
            match taken {
                Some((index, bytes)) => {
                    state.frames.begin_read(index, address, purpose);
                    return Ok(Claim::Miss(OwnedFrame { shared: self, index, bytes: Some(bytes) }));
                }
                None if patience == Patience::Never => return Ok(Claim::Unavailable),
                // The block came while the session waited for a frame.
                None => {}
            }
        }
    }

    /// A frame to read a block into that is not in the cache, if one is to be had without waiting.
    pub(super) fn claim_missing(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<Option<OwnedFrame<'_>>, EngineError> {
        let state = self.open(session)?;
        if state.frames.find(address).is_some() {
            return Ok(None);
        }
        let (mut state, taken) = self.take_frame(session, state, Some(address), Patience::Never)?;
        Ok(taken.map(|(index, bytes)| {
            state.frames.begin_read(index, address, purpose);
            OwnedFrame { shared: self, index, bytes: Some(bytes) }
        }))
    }

    /// Takes a block that is in the cache, to change it; `None` when it is not there any more.
    pub(super) fn begin_change(
        &self,
        session: &Session,
        address: BlockAddress,
    ) -> Result<Option<ChangingBlock<'_>>, EngineError> {
        let mut state = self.open(session)?;
        let (mut looks, mut tries) = (0_u32, 0);
        loop {
            let Some(index) = state.frames.find(address) else { return Ok(None) };
            if matches!(state.frames.usage(index), Usage::Reading | Usage::Changing) {
                state = self.wait_arrived(session, Event::BufferBusyWaits, state);
            } else if let Some(bytes) = state.frames.begin_change(index) {
                return Ok(Some(ChangingBlock { shared: self, index, bytes: Some(bytes) }));
            } else {
                // A database writer holds a block until it has copied it: with a device that does not answer, as long as that takes. Other
                // pins last microseconds. Who unpins signals nobody.
                let is_written = state.frames.is_in_flight(index);
                looks = looks.saturating_add(1);
                tries += u32::from(!is_written);
                if tries > PIN_TRIES {
                    return Err(self.starved());
                }
                drop(state);
                let event = if is_written { Event::WriteCompleteWaits } else { Event::BufferBusyWaits };
                session.wait(event, || match looks {
                    0..20 => thread::yield_now(),
                    _ => thread::sleep(LOOK_FOR_UNPIN / 10),
                });
                state = self.lock();
            }
            state.check()?;
        }
    }

    /// A frame for a new block of this address, which only its owner sees until it has been changed.
    pub(super) fn begin_new(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<ChangingBlock<'_>, EngineError> {
        let (mut state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        let (index, bytes) = taken.expect("nothing else ends this wait");
        // What is there is of a segment that had the place before: read once, or done again by a recovery, whose log does not say whose it was.
        (state, _) = self.forget(session, state, address);
        state.frames.begin_new(index, address, purpose);
        Ok(ChangingBlock { shared: self, index, bytes: Some(bytes) })
    }

    /// The LSN of the first change of a block that is not on disk.
    pub(super) fn first_unwritten(&self) -> Option<Lsn> {
        self.lock().frames.first_unwritten()
    }

    /// Has all blocks written that were first changed before the LSN, and waits for it.
    pub(super) fn write_changed(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        let mut state = self.lock();
        let unwritten = |state: &State| state.frames.first_unwritten().is_some_and(|first| first < before);
        while unwritten(&state) && state.failure.is_none() {
            if self.options.writer_count == 0 {
                drop(state);
                database_writer::carry_changed(self, session, before)?;
                state = self.lock();
                continue;
            }
            let begin = session.begin_wait();
            state.checkpointing += 1;
            state.checkpoint = state.checkpoint.max(before);
            self.work.notify_all();
            state = wait(&self.written, state, LOOK_AGAIN);
            state.checkpointing -= 1;
            session.end_wait(Event::LocalWriteWait, begin);
        }
        state.check()
    }

    /// A frame to format a block in.
    pub(super) fn own(&self, session: &Session) -> Result<OwnedFrame<'_>, EngineError> {
        let (state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        drop(state);
        let (index, bytes) = taken.expect("nothing else ends this wait");
        Ok(OwnedFrame { shared: self, index, bytes: Some(bytes) })
    }

    /// The block in the frame is ready to be written. An older copy is forgotten.
    pub(super) fn dirtied(
        &self,
        session: &Session,
        mut frame: OwnedFrame<'_>,
        (address, purpose): (BlockAddress, Purpose),
        writer: u32,
    ) -> Result<(), EngineError> {
        let mut state = self.lock();
        state.check()?;
        if let Some(index) = state.frames.find(address) {
            let usage = state.frames.usage(index);
            let settled = matches!(usage, Usage::Clean | Usage::Reading);
            assert!(settled, "B5: the former owner of {address} left it {usage:?}");
            (state, _) = self.forget(session, state, address);
            self.signal_freed(&state, 1);
        }
        let bytes = frame.bytes.take().expect("there until the block is in the cache");
        state.frames.dirtied((frame.index, bytes), address, purpose, writer);
        self.post(&state);
        Ok(())
    }

    /// A number for a session that writes blocks.
    pub(super) fn open_writer(&self, session: &Session) -> Result<u32, EngineError> {
        Ok(self.open(session)?.frames.open_writer())
    }

    /// The writer has no unwritten blocks and will have no more.
    pub(super) fn close_writer(&self, writer: u32) {
        self.lock().frames.close_writer(writer);
    }

    /// Asks the database writers to write everything, and does not wait.
    pub(super) fn flush(&self) -> Result<(), EngineError> {
        let mut state = self.lock();
        state.check()?;
        state.flush_asked = true;
        self.post(&state);
        Ok(())
    }

    /// Waits until every block of the writer is on disk.
    pub(super) fn drain(&self, session: &Session, writer: u32) -> Result<(), EngineError> {
        let mut state = self.lock();
        if state.frames.unwritten(writer) > 0 && state.failure.is_none() {
            let begin = session.begin_wait();
            state.draining += 1;
            self.work.notify_all();
            while state.frames.unwritten(writer) > 0 && state.failure.is_none() {
                state = wait(&self.written, state, LOOK_AGAIN);
            }
            state.draining -= 1;
            session.end_wait(Event::LocalWriteWait, begin);
        }
        state.check()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a session, whose wait has a name if another one holds it.
    #[inline]
    fn latch(&self, session: &Session) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(_) => session.wait(Event::LatchCacheBuffers, || self.lock()),
        }
    }

    /// The state, with frames, unless the cache has failed.
    #[inline]
    fn open(&self, session: &Session) -> Result<MutexGuard<'_, State>, EngineError> {
        let mut state = self.latch(session);
        state.check()?;
        if state.frames.is_empty() {
            let (arena, buffers) = Arena::buffers(self.block_size.bytes(), self.options.frame_count)?;
            state.frames.populate(buffers);
            state.memory = Some(arena);
        }
        Ok(state)
    }

    /// A frame to own, waiting for one if need be. `None` when the block that the
    /// frame is wanted for turned up instead, or the session has no patience.
    fn take_frame<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        wanted: Option<BlockAddress>,
        patience: Patience,
    ) -> Result<(MutexGuard<'g, State>, Option<Taken>), EngineError> {
        session.count(Statistic::FreeBufferRequested, 1);
        let taken = state.frames.take();
        if taken.is_some() || patience == Patience::Never {
            return Ok((state, taken));
        }
        if self.options.writer_count == 0 {
            return self.take_written_frame(session, state);
        }
        let begin = session.begin_wait();
        let mut hopeless_since = begin.at();
        state.waiting_freed += 1;
        let result = loop {
            self.post(&state);
            let unwritten = state.frames.unwritten_count() > 0;
            state = wait(&self.freed, state, if unwritten { LOOK_AGAIN } else { LOOK_FOR_UNPIN });
            if let Err(error) = state.check() {
                break Err(error);
            }
            if wanted.is_some_and(|address| state.frames.find(address).is_some()) {
                // The signal that came here was about a frame that another may want.
                self.freed.notify_one();
                break Ok(None);
            }
            let taken = state.frames.take();
            if taken.is_some() {
                break Ok(taken);
            }
            // A device that does not answer is no reason to give up: its frames come back when it does.
            if state.frames.awaits_device() {
                hopeless_since = now();
            } else if now().saturating_sub(hopeless_since) > STARVED {
                break Err(self.starved());
            }
        };
        state.waiting_freed -= 1;
        session.end_wait(Event::FreeBufferWaits, begin);
        Ok((state, result?))
    }

    /// The same where the session writes blocks itself.
    fn take_written_frame<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
    ) -> Result<(MutexGuard<'g, State>, Option<Taken>), EngineError> {
        while state.frames.dirty_count() > 0 {
            drop(state);
            database_writer::carry(self, session)?;
            state = self.lock();
            state.check()?;
            let taken = state.frames.take();
            if taken.is_some() {
                return Ok((state, taken));
            }
        }
        Err(self.starved())
    }

    fn starved(&self) -> EngineError {
        EngineError::Contradiction {
            first: format!("{} of {} blocks", self.size_setting, self.options.frame_count),
            second: "the sessions, which keep all of them pinned".to_string(),
            why: format!(
                "none became free for {STARVED}; raise {} or lower parallel_degree",
                self.size_setting
            ),
        }
    }

    /// Removes the block from the cache, waiting for a session or a writer that works on it.
    /// `true` when it was there.
    fn forget<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        address: BlockAddress,
    ) -> (MutexGuard<'g, State>, bool) {
        while let Some(index) = state.frames.find(address) {
            match state.frames.usage(index) {
                Usage::Reading | Usage::Owned | Usage::Changing => {
                    state = self.wait_arrived(session, Event::BufferBusyWaits, state);
                }
                _ if state.frames.is_in_flight(index) && state.writers_alive > 0 => {
                    let begin = session.begin_wait();
                    state.forgetting += 1;
                    state = wait(&self.written, state, LOOK_AGAIN);
                    state.forgetting -= 1;
                    session.end_wait(Event::LocalWriteWait, begin);
                }
                // A frame that is Writing when no writer is left was in a batch that failed.
                Usage::Clean | Usage::Dirty | Usage::Writing | Usage::Free => {
                    state.frames.forget(index);
                    return (state, true);
                }
            }
        }
        (state, false)
    }

    fn wait_arrived<'g>(
        &'g self,
        session: &Session,
        event: Event,
        mut state: MutexGuard<'g, State>,
    ) -> MutexGuard<'g, State> {
        let begin = session.begin_wait();
        state.waiting_arrived += 1;
        state = wait(&self.arrived, state, LOOK_AGAIN);
        state.waiting_arrived -= 1;
        session.end_wait(event, begin);
        state
    }

    /// Wakes a database writer if one sleeps although there is work.
    fn post(&self, state: &State) {
        if state.writers_idle > 0 && state.has_work(&self.options, self.behind()) {
            self.work.notify_one();
        }
    }

    fn signal_arrived(&self, state: &State) {
        if state.waiting_arrived > 0 {
            self.arrived.notify_all();
        }
    }

    fn signal_freed(&self, state: &State, frames: usize) {
        for _ in 0..state.waiting_freed.min(frames) {
            self.freed.notify_one();
        }
    }
}

/// What database writers do.
impl Shared {
    /// The next batch, waiting until there is reason to write one; `None` when
    /// the cache stops or has failed.
    pub(super) fn next_batch(&self, session: &Session) -> Option<Vec<DirtyBlock>> {
        let mut state = self.lock();
        while !state.stopping && state.failure.is_none() {
            let behind = self.behind();
            if state.has_work(&self.options, behind) {
                let batch;
                let target = state.checkpoint_target(behind);
                (state, batch) = self.gather(session, state, target);
                if !batch.is_empty() {
                    return Some(batch);
                }
                // All that is dirty was changed again while it is being written, or while the log was.
                state = wait(&self.work, state, LOOK_FOR_UNPIN);
                continue;
            }
            state.writers_idle += 1;
            state = session.wait_long(Event::DbwrIdle, || wait(&self.work, state, IDLE));
            state.writers_idle -= 1;
        }
        None
    }

    /// A batch without waiting for reason to write one; empty when there is nothing to write.
    pub(super) fn batch_now(&self, session: &Session) -> Result<Vec<DirtyBlock>, EngineError> {
        let (mut state, durable) = self.make_log_durable(session, self.lock());
        state.check()?;
        let mut batch = Vec::new();
        let share = self.share(&state);
        state.frames.gather(share, durable, &mut batch);
        Ok(batch)
    }

    /// The same of blocks that were first changed before an LSN.
    pub(super) fn changed_now(&self, session: &Session, before: Lsn) -> Result<Vec<DirtyBlock>, EngineError> {
        let (mut state, durable) = self.make_log_durable(session, self.lock());
        state.check()?;
        let share = self.share(&state);
        Ok(state.frames.gather_changed(share, (before, durable)))
    }

    /// Up to where checkpoints want blocks written.
    fn behind(&self) -> Lsn {
        self.write_ahead.get().map_or(Lsn(0), |log| log.write_behind())
    }

    /// How many blocks a database writer takes at once.
    fn share(&self, state: &State) -> usize {
        let share = state.frames.dirty_count().div_ceil(self.options.writer_count.max(1)).max(SHARE_MIN);
        share.min(self.options.batch_blocks)
    }

    /// Takes a batch, whose log is durable: what a checkpoint wants first, and then what has been dirty for longest where
    /// clean frames are wanted.
    fn gather<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        target: Lsn,
    ) -> (MutexGuard<'g, State>, Vec<DirtyBlock>) {
        let share = self.share(&state);
        if !state.needs_clean(&self.options) {
            // What has been dirty for so long is mostly in the durable log: no write of it on its account.
            let durable = self.write_ahead.get().map_or(Lsn(0), |log| log.durable());
            let batch = state.frames.gather_changed(share, (target, durable));
            if !batch.is_empty() {
                return (state, batch);
            }
        }
        let (mut state, durable) = self.make_log_durable(session, state);
        let mut batch = state.frames.gather_changed(share, (target, durable));
        if state.needs_clean(&self.options) {
            state.frames.gather(share, durable, &mut batch);
        }
        if state.frames.dirty_count() == 0 {
            state.flush_asked = false;
        }
        (state, batch)
    }

    /// Makes the log of all changes durable so far; gives how far that is. The state has the failure if there is one.
    fn make_log_durable<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
    ) -> (MutexGuard<'g, State>, Lsn) {
        let mut durable = Lsn(0);
        if let Some(log) = self.write_ahead.get() {
            let last = state.frames.last_change();
            if log.durable() <= last {
                drop(state);
                let required = log.require_durable(session, Lsn(last.0 + 1));
                state = self.lock();
                if let Err(error) = required {
                    state.failure.get_or_insert_with(|| error.to_string());
                    return (state, Lsn(0));
                }
            }
            durable = log.durable();
        }
        (state, durable)
    }

    /// These blocks are on disk.
    pub(super) fn written(&self, blocks: &[DirtyBlock]) {
        let mut state = self.lock();
        let mut drained = false;
        for block in blocks {
            drained |= state.frames.written(block.frame) == 0;
        }
        self.signal_freed(&state, blocks.len());
        // Those who drain are not woken for every block of theirs.
        if state.forgetting > 0 || state.checkpointing > 0 || (drained && state.draining > 0) {
            self.written.notify_all();
        }
    }

    /// A write failed: from now on every call fails (B6).
    pub(super) fn fail(&self, why: String) {
        let mut state = self.lock();
        state.failure.get_or_insert(why);
        for condition in [&self.freed, &self.arrived, &self.written, &self.work] {
            condition.notify_all();
        }
    }

    /// A database writer has ended: it has nothing in flight any more.
    pub(super) fn writer_ended(&self) {
        self.lock().writers_alive -= 1;
        self.written.notify_all();
    }
}

fn wait<'g>(condition: &Condvar, state: MutexGuard<'g, State>, most: Duration) -> MutexGuard<'g, State> {
    condition.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
}
