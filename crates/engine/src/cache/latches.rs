//! The latches of the buffer cache: who may see, change or write the bytes of a frame, and the waits for it.
//!
//! What it does: gives a session a block to look at ([`PinnedBlock`]), a frame to read or format a block in ([`OwnedFrame`]), or a block to
//! change in place ([`ChangingBlock`]), and gives a database writer its batches. Which frame is which is [`Frames`]' to say, under one mutex.
//!
//! How: each wait has a name and a condition of its own: `freed` (free buffer waits),
//! `arrived` (read by other session, buffer busy waits), `written` (local write
//! wait), `work` (the database writers' rdbms ipc message). A condition is
//! signalled only when somebody is counted as waiting, because a signal is a
//! system call even when nobody hears it. A wait checks its condition again from time to
//! time, so a lost signal costs time and never hangs a session. One wait needs that: unpinning
//! signals nobody, so who needs a frame or a block that is pinned looks every [`LOOK_FOR_UNPIN`] or oftener.
//!
//! Memory comes with the first use: an instance that never uses the cache has none.
//!
//! A session that shares its thread does not sleep in a wait: it lets others of the thread run and looks again.
//!
//! The mutex, the conditions and the buffers with their pins are `super::{sync, thread, IoBuffer, BufferPool}`: a model checker takes this file,
//! [`super::frames`], [`super::handles`] and the counts of pins with its own (`tests/it/cache_model.rs`). Its waits do not end by time, except those for an unpin: so there a lost
//! signal is a deadlock, and is found.
//!
//! Limits: no I/O and no threads. Where no database writer runs, a session that asks for a frame is told to write a batch and to ask again.
//!
//! The invariants are those of the cache: B1 to B6 and B8 in [`super`].

use super::frames::{DeviceProgress, Frames, Taken, Usage};
use super::handles::{ChangingBlock, DirtyBlock, OwnedFrame, PinnedBlock};
use super::sync::{Condvar, Mutex, MutexGuard};
use super::{BufferPool, CacheOptions, EngineError, IoBuffer, Purpose, thread};
use plumb_events::{Event, Session, Statistic, now};
use plumb_io::strict_assert;
use plumb_units::{BlockAddress, BlockSize, Lsn, Nanos};
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError};
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

/// What has to be durable before a changed block is written: the log of the change.
pub trait WriteAhead: Send + Sync + std::fmt::Debug {
    /// Makes the log durable up to this LSN.
    ///
    /// # Errors
    /// When it fails, or has failed.
    fn require_durable(&self, session: &Session, until: Lsn) -> Result<(), EngineError>;

    /// How far it is durable.
    fn durable(&self) -> Lsn;

    /// LSNs that no record has: from where it ended when it was opened to where it goes on.
    fn gap(&self) -> &Range<Lsn>;

    /// Blocks that were first changed before it are to be written now, so that checkpoints can advance.
    fn write_behind(&self) -> Lsn;

    /// Notes durably how many changes of the catalog the control file has. A failure ends the log:
    /// the changes themselves are durable, and are not taken back.
    fn note_definitions(&self, session: &Session, definitions: u64);
}

/// The frames of a cache, and who waits for what.
#[derive(Debug)]
pub(super) struct Latches {
    // What they are of.
    pub(super) options: CacheOptions,
    pub(super) block_size: BlockSize,
    /// The setting that the cache is as large as, for messages.
    size_setting: &'static str,
    write_ahead: OnceLock<Arc<dyn WriteAhead>>,
    // The buffers, the frames and the conditions.
    /// One for each frame; none before the cache is used for the first time.
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
    /// How often they were signalled.
    arrivals: u64,
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
    Hit(PinnedBlock<'a>),
    /// It is not: the session that asked reads it into this frame.
    Miss(OwnedFrame<'a>),
    /// Neither can be had without waiting, or without a batch that the session writes first because no database writer runs.
    Unavailable,
}

/// What the cache's owner does.
impl Latches {
    /// Of a cache without memory, which comes with its first use.
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

    /// From now on no block that was changed in place is written before its log.
    pub(super) fn log_first(&self, log: Arc<dyn WriteAhead>) {
        let is_first = self.write_ahead.set(log).is_ok();
        assert!(is_first, "an instance opens its transactions once");
    }

    pub(super) fn log(&self) -> Option<&dyn WriteAhead> {
        self.write_ahead.get().map(|log| &**log)
    }

    /// How far the device has come with the blocks that it was asked for.
    pub(super) fn progress(&self) -> DeviceProgress {
        self.lock().frames.progress()
    }

    /// How many blocks of a tablespace there are.
    pub(super) fn count_of(&self, purpose: Purpose) -> u64 {
        self.lock().frames.count_of(purpose)
    }

    /// The buffers; none before the first use.
    pub(super) fn memory(&self) -> Option<&BufferPool> {
        self.buffers.get()
    }

    /// From now on database writers begin no batch.
    pub(super) fn stop(&self) {
        self.lock().stopping = true;
        self.work.notify_all();
    }

    /// A database writer is going to begin.
    pub(super) fn writer_begins(&self) {
        self.lock().writers_alive += 1;
    }

    /// Forgets these blocks, written or not, and waits for those that are being written.
    pub(super) fn discard(&self, session: &Session, blocks: impl IntoIterator<Item = BlockAddress>) {
        let mut state = self.lock();
        if state.frames.is_empty() {
            return;
        }
        for address in blocks {
            state = self.forget(session, state, address);
        }
    }

    /// Counts everything anew, and says how many sessions wait for a free buffer.
    #[cfg(test)]
    pub(super) fn check(&self) -> usize {
        let state = self.lock();
        if !state.frames.is_empty() {
            state.frames.check(self.buffers());
        }
        state.waiting_freed
    }
}

/// What sessions do.
impl Latches {
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
        // Buffers lie in the order of frames. In a large cache each is a wait for memory: this one is asked for while the frame is looked at.
        if let Some(index) = state.frames.likely(address) {
            self.buffers().prefetch(index);
        }
        loop {
            match state.frames.find(address) {
                Some(index) if !matches!(state.frames.usage(index), Usage::Reading | Usage::Changing) => {
                    let pinned = state.frames.pin(index, self.buffers());
                    strict_assert!(pinned.address() == address, "B2: a hit is the block asked for");
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
                    return Ok(Claim::Miss(OwnedFrame::new(self, (index, bytes))));
                }
                None if patience == Patience::Never || !self.has_writers() => return Ok(Claim::Unavailable),
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
            OwnedFrame::new(self, (index, bytes))
        }))
    }

    /// The block has been read into the frame: from now on others find it.
    pub(super) fn arrived(&self, session: &Session, taken: Taken, touch: u8) -> PinnedBlock<'_> {
        let mut state = self.latch(session);
        let pinned = state.frames.arrived(taken, touch, self.buffers());
        self.signal_arrived(&mut state);
        pinned
    }

    /// The frame comes back without a block in it, and without its buffer where that was lost.
    pub(super) fn give_back(&self, index: u32, bytes: Option<IoBuffer>) {
        let mut state = self.lock();
        state.frames.give_back(index, bytes, self.buffers());
        self.signal_arrived(&mut state);
        self.signal_freed(&state, 1);
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
            } else if let Some(taken) = state.frames.begin_change(index, self.buffers()) {
                return Ok(Some(ChangingBlock::new(self, taken)));
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

    /// The bytes of a block come back, changed by the record of this LSN, or as they were.
    pub(super) fn end_change(&self, taken: Taken, changed: Option<Lsn>) {
        let mut state = self.lock();
        state.frames.end_change(taken, changed, self.buffers());
        self.signal_arrived(&mut state);
        self.post(&state);
        if changed.is_none() {
            self.signal_freed(&state, 1);
        }
    }

    /// A frame for a new block of this address, which only its owner sees until it has been changed; `None` when the session is to write a
    /// batch first.
    pub(super) fn begin_new(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<Option<ChangingBlock<'_>>, EngineError> {
        let (mut state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        let Some((index, bytes)) = taken else { return Ok(None) };
        // What is there is of a segment that had the place before: read once, or done again by a recovery, whose log does not say whose it was.
        state = self.forget(session, state, address);
        state.frames.begin_new(index, address, purpose);
        Ok(Some(ChangingBlock::new(self, (index, bytes))))
    }

    /// Whether a block was first changed before the LSN and is not on disk.
    ///
    /// # Errors
    /// When the cache has failed.
    pub(super) fn is_unwritten(&self, before: Lsn) -> Result<bool, EngineError> {
        let state = self.lock();
        state.check()?;
        Ok(state.frames.first_unwritten().is_some_and(|first| first < before))
    }

    /// The LSN of the first change of a block that is not on disk.
    pub(super) fn first_unwritten(&self) -> Option<Lsn> {
        self.lock().frames.first_unwritten()
    }

    /// Has the database writers write all blocks that were first changed before the LSN, and waits for it.
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

    /// A frame to format a block in; `None` when the session is to write a batch first.
    pub(super) fn own(&self, session: &Session) -> Result<Option<OwnedFrame<'_>>, EngineError> {
        let (state, taken) = self.take_frame(session, self.open(session)?, None, Patience::Wait)?;
        drop(state);
        Ok(taken.map(|taken| OwnedFrame::new(self, taken)))
    }

    /// The block in the frame is ready to be written. An older copy is forgotten.
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

    /// A frame to own, waiting for one if need be. `None` when the block that the
    /// frame is wanted for turned up instead, the session has no patience, or is to write a batch and ask again.
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
        let result;
        (state, result) = self.wait_freed(state, wanted, begin.at());
        state.waiting_freed -= 1;
        session.end_wait(Event::FreeBufferWaits, begin);
        Ok((state, result?))
    }

    /// Looks for a frame each time that one may have become free.
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
                // The signal that came here was about a frame that another may want.
                self.freed.notify_one();
                return (state, Ok(None));
            }
            let taken = state.frames.take(self.buffers());
            if taken.is_some() {
                return (state, Ok(taken));
            }
            // A device that does not answer is no reason to give up: its frames come back when it does.
            if state.frames.awaits_device() {
                hopeless_since = now();
            } else if now().saturating_sub(hopeless_since) > STARVED {
                return (state, Err(self.starved()));
            }
        }
    }

    /// Waits for a condition, or until it is time to check it again. Who shares its thread looks again and again: what it waits for
    /// may be a session of the same thread.
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

    /// Whether database writers write; else the sessions do.
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

    /// Removes the block from the cache, waiting for a session or a writer that works on it.
    fn forget<'g>(
        &'g self,
        session: &Session,
        mut state: MutexGuard<'g, State>,
        address: BlockAddress,
    ) -> MutexGuard<'g, State> {
        while let Some(index) = state.frames.find(address) {
            match state.frames.usage(index) {
                Usage::Reading | Usage::Owned | Usage::Changing => {
                    state = self.wait_arrived(session, Event::BufferBusyWaits, state);
                }
                _ if state.frames.is_in_flight(index) && state.writers_alive > 0 => {
                    let begin = session.begin_wait();
                    state.forgetting += 1;
                    state = self.wait(&self.written, state, LOOK_AGAIN);
                    state.forgetting -= 1;
                    session.end_wait(Event::LocalWriteWait, begin);
                }
                // A frame that is Writing when no writer is left was in a batch that failed.
                Usage::Clean | Usage::Dirty | Usage::Writing | Usage::Free => {
                    state.frames.forget(index);
                    self.signal_freed(&state, 1);
                    // It needs not be written any more.
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
        session.end_wait(event, begin);
        state
    }

    /// Wakes a database writer if one sleeps although there is work.
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

    /// So many frames may be free. Where nothing is left to write nobody is signalled again, and who waits is to look for an unpin.
    fn signal_freed(&self, state: &State, frames: usize) {
        let woken = if state.frames.unwritten_count() > 0 { frames } else { usize::MAX };
        for _ in 0..state.waiting_freed.min(woken) {
            self.freed.notify_one();
        }
    }
}

/// What database writers do.
impl Latches {
    /// The next batch, waiting until there is reason to write one; `None` when
    /// the cache stops or has failed.
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
                // All that is dirty was changed again while it is being written, or while the log was.
                state = self.wait(&self.work, state, LOOK_FOR_UNPIN);
                continue;
            }
            state.writers_idle += 1;
            state = session.wait_long(Event::DbwrIdle, || self.wait(&self.work, state, IDLE));
            state.writers_idle -= 1;
        }
        None
    }

    /// A batch without waiting for reason to write one; empty when there is nothing to write.
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

    /// The same of blocks that were first changed before an LSN.
    pub(super) fn changed_now(
        &self,
        session: &Session,
        before: Lsn,
    ) -> Result<Vec<DirtyBlock<'_>>, EngineError> {
        let (mut state, durable) = self.make_log_durable(session, self.lock());
        state.check()?;
        // A checkpoint asks all caches, used or not.
        let Some(buffers) = self.memory() else { return Ok(Vec::new()) };
        let share = self.share(&state);
        Ok(state.frames.gather_changed(share, (before, durable), buffers))
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
    ) -> (MutexGuard<'g, State>, Vec<DirtyBlock<'g>>) {
        let share = self.share(&state);
        if !state.needs_clean(&self.options) {
            // What has been dirty for so long is mostly in the durable log: no write of it on its account.
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
                    self.close(&mut state, error.to_string());
                    return (state, Lsn(0));
                }
            }
            durable = log.durable();
        }
        (state, durable)
    }

    /// These blocks are on disk.
    pub(super) fn written(&self, blocks: &[DirtyBlock<'_>]) {
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
        self.close(&mut self.lock(), why);
    }

    fn close(&self, state: &mut State, why: String) {
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
