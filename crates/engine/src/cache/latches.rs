//! The latches of the buffer cache: which session may read, change or write a frame, and the waits.
//!
//! A session gets a block to read ([`PinnedBlock`]) or to change in place ([`ChangingBlock`]), or a
//! frame in which to read or format one ([`OwnedFrame`]). A database writer gets its batches.
//! [`Frames`] keeps the state of all frames, under one mutex.
//!
//! Each wait has a name and a condition of its own: `freed` (free buffer waits), `arrived` (read by
//! other session, buffer busy waits), `written` (local write wait), `work` (the database writers'
//! rdbms ipc message). A condition is signalled only while a session is counted as waiting, because
//! a signal is a system call even if no thread waits. Each wait checks its condition again from
//! time to time, so a lost signal costs time and never hangs a session. Waits for an unpin need
//! that, because unpinning signals no session: they check every [`LOOK_FOR_UNPIN`] or more often.
//!
//! Memory comes with the first use, so an unused cache has none.
//!
//! A session that shares its thread does not sleep in a wait: it lets other sessions of the thread
//! run and checks again.
//!
//! The mutex, the conditions and the buffers with their pins are `super::{sync, thread, IoBuffer,
//! BufferPool}`. A model checker compiles this file, [`super::frames`], [`super::handles`] and the
//! pin counts with its own versions (`tests/it/cache_model.rs`). There only waits for an unpin end
//! by time, so that a lost signal is a deadlock, which the checker finds.
//!
//! Limits: no I/O and no threads. Where no database writer runs, a request for a frame can return
//! empty; the session then writes a batch and asks again.
//!
//! The invariants are those of the cache: B1 to B6 and B8 in [`super`].

use super::frames::{CachedBlocks, DeviceProgress, Frames, Taken, Usage};
use super::handles::{ChangingBlock, DirtyBlock, OwnedFrame, PinnedBlock};
use super::sync::{Condvar, Mutex, MutexGuard};
use super::{BufferPool, CacheOptions, EngineError, IoBuffer, Purpose, thread};
use plumb_events::{Event, PoolCounts, Session, Statistic, now};
use plumb_io::strict_assert;
use plumb_units::{BlockAddress, BlockSize, FileId, Lsn, Nanos};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

/// Time after which a wait checks its condition again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same when nothing is being written: only an unpin can free a frame then,
/// and unpinning sends no signal.
const LOOK_FOR_UNPIN: Duration = Duration::from_millis(1);
/// Time after which a session gives up if every frame is pinned. Pins last microseconds, so by then
/// the sessions wait for each other.
const STARVED: Nanos = Nanos(if cfg!(test) { 1_000_000_000 } else { 10_000_000_000 });
/// Number of checks for an unpin before a session gives up changing a block: ten seconds in all.
const PIN_TRIES: u32 = if cfg!(test) { 5_000 } else { 100_000 };
/// Longest sleep of an idle database writer: one wait of its idle event.
const IDLE: Duration = Duration::from_secs(3);
/// Smallest share of the dirty list that a database writer takes: sorting and joining
/// fewer blocks would gain nothing.
const SHARE_MIN: usize = 16;

/// The log, which must be durable before a block that it changed is written.
pub trait WriteAhead: Send + Sync + std::fmt::Debug {
    /// Makes the log durable up to this LSN.
    ///
    /// # Errors
    /// If the write fails, or an earlier one has failed.
    fn require_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError>;

    /// Returns the LSN up to which the log is durable.
    fn durable(&self) -> Lsn;

    /// Returns the LSNs without a record, between the log's end at opening and its continuation.
    fn gap(&self) -> &Range<Lsn>;

    /// Returns an LSN; blocks first changed before it should be written
    /// now, so that checkpoints advance.
    fn write_behind(&self) -> Lsn;

    /// Notes durably the number of catalog changes in the control file. A failure ends the log; the
    /// changes themselves are durable and stay.
    fn note_definitions(&self, session: &Session, definitions: u64);
}

/// The frames of a cache, and the sessions waiting for them.
#[derive(Debug)]
pub(super) struct Latches {
    pub(super) options: CacheOptions,
    pub(super) block_size: BlockSize,
    /// Name of the setting that sizes the cache, for messages.
    size_setting: &'static str,
    write_ahead: OnceLock<Arc<dyn WriteAhead>>,
    /// One buffer for each frame; unset before the cache is first used.
    buffers: OnceLock<BufferPool>,
    state: Mutex<State>,
    freed: Condvar,
    arrived: Condvar,
    written: Condvar,
    work: Condvar,
}

#[derive(Debug, Default)]
struct State {
    frames: Frames,
    /// First failed write; after it every call fails (B6).
    failure: Option<String>,
    stopping: bool,
    /// Database writers that have begun and not ended.
    writers_alive: usize,
    writers_idle: usize,
    /// A session asked for an empty dirty list, without waiting for it.
    flush_asked: bool,
    // Numbers of waiting sessions, by condition.
    waiting_freed: usize,
    waiting_arrived: usize,
    /// Number of signals of `arrived`.
    arrivals: u64,
    /// Sessions waiting for all blocks of a writer.
    draining: usize,
    /// Sessions waiting for all blocks changed before an LSN; `checkpoint` is
    /// the highest of these LSNs.
    checkpointing: usize,
    checkpoint: Lsn,
    /// Sessions waiting for a block to be discarded.
    forgetting: usize,
    // Counts for reports.
    counts: PoolCounts,
    /// Waits for blocks of each file that another session holds: their number, and their time.
    file_waits: BTreeMap<FileId, (u64, Nanos)>,
}

impl State {
    fn check(&self) -> Result<(), EngineError> {
        match &self.failure {
            Some(first) => Err(EngineError::WriterFailed { first: first.clone() }),
            None => Ok(()),
        }
    }

    /// Counts a wait for a block that another session or a database writer holds.
    fn count_wait(&mut self, event: Event, address: BlockAddress, time: Nanos) {
        match event {
            Event::WriteCompleteWaits => self.counts.write_complete_waits += 1,
            Event::BufferBusyWaits => self.counts.buffer_busy_waits += 1,
            _ => {}
        }
        if event != Event::WriteCompleteWaits {
            let waits = self.file_waits.entry(address.file).or_default();
            *waits = (waits.0 + 1, waits.1 + time);
        }
    }

    /// True if a database writer should write the blocks that have been dirty longest.
    fn needs_clean(&self, options: &CacheOptions) -> bool {
        let dirty = self.frames.dirty_count();
        let asked = self.waiting_freed > 0 || self.draining > 0 || self.flush_asked;
        dirty > 0 && (asked || dirty > options.frame_count / 4)
    }

    /// Returns the LSN before which checkpoints need changed blocks written.
    fn checkpoint_target(&self, behind: Lsn) -> Lsn {
        if self.checkpointing > 0 { behind.max(self.checkpoint) } else { behind }
    }

    /// True if a database writer should take a batch.
    fn has_work(&self, options: &CacheOptions, behind: Lsn) -> bool {
        let due = self.frames.first_unwritten().is_some_and(|first| first < self.checkpoint_target(behind));
        self.needs_clean(options) || (due && self.frames.dirty_count() > 0)
    }
}

/// Decides if a request for a block may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Wait,
    /// The session must not wait, because it holds frames that other sessions may be waiting for.
    Never,
}

/// Outcome of a block request.
#[derive(Debug)]
pub(super) enum Claim<'a> {
    /// The block is in the cache.
    Hit(PinnedBlock<'a>),
    /// The block is missing; the session reads it into this frame.
    Miss(OwnedFrame<'a>),
    /// Getting a frame would need a wait, or a batch written by the session
    /// because no database writer runs.
    Unavailable,
}

/// Calls of the cache's owner.
impl Latches {
    /// Makes a cache without memory, which comes with its first use.
    pub(super) fn new(options: CacheOptions, block_size: BlockSize, size_setting: &'static str) -> Latches {
        Latches {
            options,
            block_size,
            size_setting,
            write_ahead: OnceLock::new(),
            buffers: OnceLock::new(),
            state: Mutex::default(),
            freed: Condvar::new(),
            arrived: Condvar::new(),
            written: Condvar::new(),
            work: Condvar::new(),
        }
    }

    /// Writes blocks changed in place only after their log from now on.
    pub(super) fn log_first(&self, log: Arc<dyn WriteAhead>) {
        let is_first = self.write_ahead.set(log).is_ok();
        assert!(is_first, "an instance opens its transactions once");
    }

    pub(super) fn log(&self) -> Option<&dyn WriteAhead> {
        self.write_ahead.get().map(|log| &**log)
    }

    /// Returns the transfers in flight and the number that have ended.
    pub(super) fn progress(&self) -> DeviceProgress {
        self.lock().frames.progress()
    }

    /// Returns the number of cached blocks of a tablespace.
    pub(super) fn count_of(&self, purpose: Purpose) -> u64 {
        self.lock().frames.count_of(purpose)
    }

    /// Returns the blocks of each tablespace.
    pub(super) fn census(&self) -> Vec<CachedBlocks> {
        self.lock().frames.census()
    }

    /// Returns the work of the cache so far.
    pub(super) fn counts(&self) -> PoolCounts {
        let state = self.lock();
        PoolCounts { evicted: state.frames.evicted_count, ..state.counts }
    }

    /// Returns the number and time of waits for blocks of each file.
    pub(super) fn file_waits(&self) -> BTreeMap<FileId, (u64, Nanos)> {
        self.lock().file_waits.clone()
    }

    /// Returns the buffers; `None` before first use.
    pub(super) fn memory(&self) -> Option<&BufferPool> {
        self.buffers.get()
    }

    /// Stops database writers from starting another batch.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }

    /// Counts a database writer that is about to start.
    pub(super) fn writer_begins(&self) {
        self.lock().writers_alive += 1;
    }

    /// Removes these blocks, written or not, and waits for those being written.
    pub(super) fn discard(&self, session: &Session, blocks: impl IntoIterator<Item = BlockAddress>) {
        let mut state = self.lock();
        if state.frames.is_empty() {
            return;
        }
        for address in blocks {
            state = self.forget(session, state, address);
        }
    }

    /// Recounts all frames, compares, and returns the number of sessions waiting for a free buffer.
    #[cfg(test)]
    pub(super) fn check(&self) -> usize {
        let state = self.lock();
        if !state.frames.is_empty() {
            state.frames.check(self.buffers());
        }
        state.waiting_freed
    }
}

/// Calls that sessions make of the latches.
impl Latches {
    /// Pins the block if it is cached, else takes a frame to read it into.
    #[inline]
    pub(super) fn claim(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
        patience: Patience,
    ) -> Result<Claim<'_>, EngineError> {
        let mut state = self.open(session)?;
        // Buffers lie in frame order. In a large cache each access is a memory stall, so this
        // prefetch overlaps the read of the frame.
        if let Some(index) = state.frames.likely(address) {
            self.buffers().prefetch(index);
        }
        loop {
            match state.frames.find(address) {
                Some(index) if !matches!(state.frames.usage(index), Usage::Reading | Usage::Changing) => {
                    let pinned = state.frames.pin(index, self.buffers());
                    state.counts.gets += 1;
                    state.counts.hits += 1;
                    strict_assert!(pinned.address() == address, "B2: a hit is the block asked for");
                    return Ok(Claim::Hit(pinned));
                }
                Some(_) if patience == Patience::Never => return Ok(Claim::Unavailable),
                Some(index) => {
                    let is_read = state.frames.usage(index) == Usage::Reading;
                    let event = if is_read { Event::ReadByOtherSession } else { Event::BufferBusyWaits };
                    state = self.wait_arrived(session, event, address, state);
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
                    state.counts.gets += 1;
                    return Ok(Claim::Miss(OwnedFrame::new(self, (index, bytes))));
                }
                None if patience == Patience::Never || !self.has_writers() => return Ok(Claim::Unavailable),
                // Another session read the block while this one waited for a frame.
                None => {}
            }
        }
    }

    /// Takes a frame for a block that is not cached, if one is available without waiting.
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
            OwnedFrame::new(self, (index, bytes))
        }))
    }

    /// Makes the block that was read available, and wakes its waiters.
    pub(super) fn arrived(&self, session: &Session, taken: Taken, touch: u8) -> PinnedBlock<'_> {
        let mut state = self.latch(session);
        let pinned = state.frames.arrived(taken, touch, self.buffers());
        state.counts.reads += 1;
        self.signal_arrived(&mut state);
        pinned
    }

    /// Returns a frame without a block; `bytes` is `None` if its buffer was lost.
    pub(super) fn give_back(&self, index: u32, bytes: Option<IoBuffer>) {
        let mut state = self.lock();
        state.frames.give_back(index, bytes, self.buffers());
        self.signal_arrived(&mut state);
        self.signal_freed(&state, 1);
    }

    /// Takes a cached block to change it; `None` if it is no longer cached.
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
                state = self.wait_arrived(session, Event::BufferBusyWaits, address, state);
            } else if let Some(taken) = state.frames.begin_change(index, self.buffers()) {
                return Ok(Some(ChangingBlock::new(self, taken)));
            } else {
                // A database writer pins a block until it has copied it, which takes as long as the
                // device does not answer. Other pins last microseconds. Unpinning sends no signal.
                let is_written = state.frames.is_in_flight(index);
                looks = looks.saturating_add(1);
                tries += u32::from(!is_written);
                if tries > PIN_TRIES {
                    return Err(self.starved());
                }
                drop(state);
                let event = if is_written { Event::WriteCompleteWaits } else { Event::BufferBusyWaits };
                let begin = session.begin_wait();
                match looks {
                    0..20 => thread::yield_now(),
                    _ => thread::sleep(LOOK_FOR_UNPIN / 10),
                }
                let end = now();
                session.end_wait_at(event, begin, end);
                state = self.lock();
                state.count_wait(event, address, end.saturating_sub(begin.at()));
            }
            state.check()?;
        }
    }

    /// Returns the bytes of a block, changed by the record of this LSN, or unchanged.
    pub(super) fn end_change(&self, taken: Taken, changed: Option<Lsn>) {
        let mut state = self.lock();
        state.frames.end_change(taken, changed, self.buffers());
        self.signal_arrived(&mut state);
        self.post(&state);
        if changed.is_none() {
            self.signal_freed(&state, 1);
        }
    }

    /// Takes a frame for a new block of this address; other sessions wait for the block until its
    /// owner has changed it. `None` if the session must write a batch first.
    pub(super) fn begin_new(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<Option<ChangingBlock<'_>>, EngineError> {
        let (mut state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        let Some((index, bytes)) = taken else { return Ok(None) };
        // A cached copy belongs to a segment that had this address before: it was read once, or
        // redone by recovery, whose log does not name the segment.
        state = self.forget(session, state, address);
        state.frames.begin_new(index, address, purpose);
        Ok(Some(ChangingBlock::new(self, (index, bytes))))
    }

    /// True if a block first changed before the LSN is not on disk.
    ///
    /// # Errors
    /// If the cache has failed.
    pub(super) fn is_unwritten(&self, before: Lsn) -> Result<bool, EngineError> {
        let state = self.lock();
        state.check()?;
        Ok(state.frames.first_unwritten().is_some_and(|first| first < before))
    }

    /// Returns the LSN of the first change of a block that is not on disk.
    pub(super) fn first_unwritten(&self) -> Option<Lsn> {
        self.lock().frames.first_unwritten()
    }

    /// Asks the database writers to write all blocks first changed before the
    /// LSN, and waits for them.
    pub(super) fn write_changed(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        let mut state = self.lock();
        let unwritten = |state: &State| state.frames.first_unwritten().is_some_and(|first| first < before);
        while unwritten(&state) && state.failure.is_none() {
            let begin = session.begin_wait();
            state.checkpointing += 1;
            state.checkpoint = state.checkpoint.max(before);
            self.work.notify_all();
            state = self.wait(&self.written, state, LOOK_AGAIN);
            state.checkpointing -= 1;
            session.end_wait(Event::LocalWriteWait, begin);
        }
        state.check()
    }

    /// Takes a frame in which to format a block; `None` if the session must write a batch first.
    pub(super) fn own(&self, session: &Session) -> Result<Option<OwnedFrame<'_>>, EngineError> {
        let (state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        drop(state);
        Ok(taken.map(|taken| OwnedFrame::new(self, taken)))
    }

    /// Puts the formatted block on the dirty list and removes an older copy.
    pub(super) fn dirtied(
        &self,
        session: &Session,
        frame: OwnedFrame<'_>,
        place: (BlockAddress, Purpose),
        writer: u32,
    ) -> Result<(), EngineError> {
        let address = place.0;
        let mut state = self.lock();
        state.check()?;
        if let Some(index) = state.frames.find(address) {
            let usage = state.frames.usage(index);
            let settled = matches!(usage, Usage::Clean | Usage::Reading);
            assert!(settled, "B5: the former owner of {address} left it {usage:?}");
            state = self.forget(session, state, address);
        }
        state.frames.dirtied(frame.into_taken(), place, writer, self.buffers());
        self.post(&state);
        Ok(())
    }

    /// Returns a number for a session that writes blocks.
    pub(super) fn open_writer(&self, session: &Session) -> Result<u32, EngineError> {
        Ok(self.open(session)?.frames.open_writer())
    }

    /// Frees the number of a writer that has no unwritten blocks.
    pub(super) fn close_writer(&self, writer: u32) {
        self.lock().frames.close_writer(writer);
    }

    /// Asks the database writers to write everything; does not wait.
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
                state = self.wait(&self.written, state, LOOK_AGAIN);
            }
            state.draining -= 1;
            session.end_wait(Event::LocalWriteWait, begin);
        }
        state.check()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the state for a session; if another thread holds it the wait is timed.
    #[inline]
    fn latch(&self, session: &Session) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => state,
            Err(_) => session.wait(Event::LatchCacheBuffers, || self.lock()),
        }
    }

    /// Locks the state, with its frames populated; fails if the cache has failed.
    #[inline]
    fn open(&self, session: &Session) -> Result<MutexGuard<'_, State>, EngineError> {
        let mut state = self.latch(session);
        state.check()?;
        if state.frames.is_empty() {
            let buffers = BufferPool::new(self.block_size.bytes(), self.options.frame_count)?;
            state.frames.populate(buffers.count());
            self.buffers.set(buffers).expect("set once, under the mutex");
        }
        Ok(state)
    }

    #[inline]
    fn buffers(&self) -> &BufferPool {
        self.buffers.get().expect("there once the cache has been opened")
    }

    /// Takes a frame, waiting for one if necessary. `None` if block `wanted` was cached meanwhile,
    /// if the session must not wait, or if it must write a batch and ask again.
    fn take_frame<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        wanted: Option<BlockAddress>,
        patience: Patience,
    ) -> Result<(MutexGuard<'g, State>, Option<Taken>), EngineError> {
        let taken = state.frames.take(self.buffers());
        if taken.is_none() && patience == Patience::Wait && !self.has_writers() {
            return if state.frames.dirty_count() > 0 { Ok((state, None)) } else { Err(self.starved()) };
        }
        session.count(Statistic::FreeBufferRequested, 1);
        if taken.is_some() || patience == Patience::Never {
            return Ok((state, taken));
        }
        let begin = session.begin_wait();
        state.waiting_freed += 1;
        state.counts.free_buffer_waits += 1;
        let result;
        (state, result) = self.wait_freed(state, wanted, begin.at());
        state.waiting_freed -= 1;
        session.end_wait(Event::FreeBufferWaits, begin);
        Ok((state, result?))
    }

    /// Waits for `freed`, and tries to take a frame after each wake-up.
    fn wait_freed<'g>(
        &'g self,
        mut state: MutexGuard<'g, State>,
        wanted: Option<BlockAddress>,
        mut hopeless_since: Nanos,
    ) -> (MutexGuard<'g, State>, Result<Option<Taken>, EngineError>) {
        loop {
            self.post(&state);
            let unwritten = state.frames.unwritten_count() > 0;
            state = self.wait(&self.freed, state, if unwritten { LOOK_AGAIN } else { LOOK_FOR_UNPIN });
            if let Err(error) = state.check() {
                return (state, Err(error));
            }
            if wanted.is_some_and(|address| state.frames.find(address).is_some()) {
                // The signal was for a free frame, which another waiter may need.
                self.freed.notify_one();
                return (state, Ok(None));
            }
            let taken = state.frames.take(self.buffers());
            if taken.is_some() {
                return (state, Ok(taken));
            }
            // A device that does not answer is no reason to give up: its frames
            // become available when it does.
            if state.frames.awaits_device() {
                hopeless_since = now();
            } else if now().saturating_sub(hopeless_since) > STARVED {
                return (state, Err(self.starved()));
            }
        }
    }

    /// Waits for a condition for at most `most`. A session that shares its thread polls instead,
    /// because it may be waiting for a session of the same thread.
    fn wait<'g>(
        &'g self,
        condition: &Condvar,
        state: MutexGuard<'g, State>,
        most: Duration,
    ) -> MutexGuard<'g, State> {
        if !thread::is_shared() {
            return condition.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        thread::yield_now();
        self.lock()
    }

    /// True if database writers write; otherwise the sessions do.
    fn has_writers(&self) -> bool {
        self.options.writer_count > 0
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

    /// Removes the block from the cache, waiting for a session or writer that works on it.
    fn forget<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        address: BlockAddress,
    ) -> MutexGuard<'g, State> {
        while let Some(index) = state.frames.find(address) {
            match state.frames.usage(index) {
                Usage::Reading | Usage::Owned | Usage::Changing => {
                    state = self.wait_arrived(session, Event::BufferBusyWaits, address, state);
                }
                _ if state.frames.is_in_flight(index) && state.writers_alive > 0 => {
                    let begin = session.begin_wait();
                    state.forgetting += 1;
                    state = self.wait(&self.written, state, LOOK_AGAIN);
                    state.forgetting -= 1;
                    session.end_wait(Event::LocalWriteWait, begin);
                }
                // A frame still Writing after the last writer has ended was in a batch that failed.
                Usage::Clean | Usage::Dirty | Usage::Writing | Usage::Free => {
                    state.frames.forget(index);
                    self.signal_freed(&state, 1);
                    // Waiters need not wait for a write of this block.
                    if state.draining > 0 || state.checkpointing > 0 {
                        self.written.notify_all();
                    }
                }
            }
        }
        state
    }

    fn wait_arrived<'g>(
        &'g self,
        session: &Session,
        event: Event,
        address: BlockAddress,
        mut state: MutexGuard<'g, State>,
    ) -> MutexGuard<'g, State> {
        let begin = session.begin_wait();
        state.waiting_arrived += 1;
        let arrivals = state.arrivals;
        state = self.wait(&self.arrived, state, LOOK_AGAIN);
        while thread::is_shared() && state.arrivals == arrivals && state.failure.is_none() {
            state = self.wait(&self.arrived, state, LOOK_AGAIN);
        }
        state.waiting_arrived -= 1;
        let end = now();
        session.end_wait_at(event, begin, end);
        state.count_wait(event, address, end.saturating_sub(begin.at()));
        state
    }

    /// Wakes an idle database writer if there is work.
    fn post(&self, state: &State) {
        if state.writers_idle > 0 && state.has_work(&self.options, self.behind()) {
            self.work.notify_one();
        }
    }

    fn signal_arrived(&self, state: &mut State) {
        if state.waiting_arrived > 0 {
            state.arrivals += 1;
            self.arrived.notify_all();
        }
    }

    /// Wakes waiters for `frames` free frames. If nothing is left to write no signal will follow,
    /// so all waiters wake and poll for an unpin.
    fn signal_freed(&self, state: &State, frames: usize) {
        let woken = if state.frames.unwritten_count() > 0 { frames } else { usize::MAX };
        for _ in 0..state.waiting_freed.min(woken) {
            self.freed.notify_one();
        }
    }
}

/// Calls that database writers make.
impl Latches {
    /// Waits until there is a reason to write, and returns a batch. `None` if the
    /// cache stops or has failed.
    pub(super) fn next_batch(&self, session: &Session) -> Option<Vec<DirtyBlock<'_>>> {
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
                // Every dirty block was changed again, either during its write or while
                // the log was made durable.
                state = self.wait(&self.work, state, LOOK_FOR_UNPIN);
                continue;
            }
            state.writers_idle += 1;
            state = session.wait_long(Event::DbwrIdle, || self.wait(&self.work, state, IDLE));
            state.writers_idle -= 1;
        }
        None
    }

    /// Returns a batch without waiting for a reason to write; empty if nothing is dirty.
    pub(super) fn batch_now(&self, session: &Session) -> Result<Vec<DirtyBlock<'_>>, EngineError> {
        let (mut state, durable) = self.make_log_durable(session, self.lock());
        state.check()?;
        let mut batch = Vec::new();
        if let Some(buffers) = self.memory() {
            let share = self.share(&state);
            state.frames.gather(share, durable, buffers, &mut batch);
        }
        Ok(batch)
    }

    /// Returns a batch of blocks first changed before an LSN.
    pub(super) fn changed_now(
        &self,
        session: &Session,
        before: Lsn,
    ) -> Result<Vec<DirtyBlock<'_>>, EngineError> {
        let (mut state, durable) = self.make_log_durable(session, self.lock());
        state.check()?;
        // A checkpoint asks all caches, also one that has never been used.
        let Some(buffers) = self.memory() else { return Ok(Vec::new()) };
        let share = self.share(&state);
        Ok(state.frames.gather_changed(share, (before, durable), buffers))
    }

    /// Returns the LSN before which checkpoints need blocks written.
    fn behind(&self) -> Lsn {
        self.write_ahead.get().map_or(Lsn(0), |log| log.write_behind())
    }

    /// Returns the number of blocks that a database writer takes at once.
    fn share(&self, state: &State) -> usize {
        let share = state.frames.dirty_count().div_ceil(self.options.writer_count.max(1)).max(SHARE_MIN);
        share.min(self.options.batch_blocks)
    }

    /// Takes a batch whose log is durable: blocks due for a checkpoint first. If clean frames are
    /// needed, the blocks that have been dirty longest follow.
    fn gather<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        target: Lsn,
    ) -> (MutexGuard<'g, State>, Vec<DirtyBlock<'g>>) {
        let share = self.share(&state);
        if !state.needs_clean(&self.options) {
            // Most of the log of these old changes is durable already, so they force no log write.
            let durable = self.write_ahead.get().map_or(Lsn(0), |log| log.durable());
            let batch = state.frames.gather_changed(share, (target, durable), self.buffers());
            if !batch.is_empty() {
                return (state, batch);
            }
        }
        let (mut state, durable) = self.make_log_durable(session, state);
        let mut batch = state.frames.gather_changed(share, (target, durable), self.buffers());
        if state.needs_clean(&self.options) {
            state.frames.gather(share, durable, self.buffers(), &mut batch);
        }
        if state.frames.dirty_count() == 0 {
            state.flush_asked = false;
        }
        (state, batch)
    }

    /// Makes the log of all changes durable, and returns the LSN that is durable. A failure
    /// is noted in the state.
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
                    self.close(&mut state, error.to_string());
                    return (state, Lsn(0));
                }
            }
            durable = log.durable();
        }
        (state, durable)
    }

    /// Marks these blocks as on disk, and wakes the sessions that wait for it.
    pub(super) fn written(&self, blocks: &[DirtyBlock<'_>]) {
        let mut state = self.lock();
        state.counts.writes += blocks.len() as u64;
        let mut drained = false;
        for block in blocks {
            drained |= state.frames.written(block.frame) == 0;
        }
        self.signal_freed(&state, blocks.len());
        // A session that drains wakes when its writer's last block is written, not for every block.
        if state.forgetting > 0 || state.checkpointing > 0 || (drained && state.draining > 0) {
            self.written.notify_all();
        }
    }

    /// Closes the cache after a failed write: from now on every call fails (B6).
    pub(super) fn fail(&self, why: String) {
        self.close(&mut self.lock(), why);
    }

    fn close(&self, state: &mut State, why: String) {
        state.failure.get_or_insert(why);
        for condition in [&self.freed, &self.arrived, &self.written, &self.work] {
            condition.notify_all();
        }
    }

    /// Counts a database writer that has ended, with nothing in flight.
    pub(super) fn writer_ended(&self) {
        self.lock().writers_alive -= 1;
        self.written.notify_all();
    }
}
