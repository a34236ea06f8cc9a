//! Checkpoints: begun while sessions continue, completed when the database writers have caught up.
//!
//! A checkpoint begins with a record in the log, written while the gate is closed. From then on
//! each block is logged whole at its first change. The checkpoint completes when all blocks changed
//! before it are written and their files synced. The control block then makes recovery begin at its
//! record. Several may be in progress; they begin and complete in the order of the log.
//!
//! A thread (CKPT) begins a checkpoint when the log's pace requires one ([`crate::redo`]). It
//! completes the checkpoint once the database writers have written the blocks. A session that finds
//! no room in the log completes the checkpoints itself. A cache without database writers (on a
//! simulated disk) has no CKPT either. Each change of a session does one small step first, so that
//! one thread fixes the order of requests.

use super::active::Active;
use crate::EngineError;
use crate::cache::ChangedBlocks;
use crate::redo::record::{HEADER_BYTES, RecordBytes, RecordKind};
use crate::redo::{Bell, Log};
use crate::settings::HighPriority;
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Event, Recorder, Role, Session};
use plumb_host::limits::Quota;
use plumb_io::IoError;
use plumb_units::Lsn;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval at which CKPT checks that the blocks of a checkpoint are written.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Longest sleep without work, which is one wait of the idle event.
const IDLE: Duration = Duration::from_secs(3);
/// Delay before a failed copy of a log file is retried.
const TRY_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Checkpoints {
    log: Arc<Log>,
    active: Arc<Active>,
    changed: ChangedBlocks,
    tablespaces: Arc<Tablespaces>,
    /// Checkpoints in progress, the oldest first. A thread that begins or
    /// completes one holds the lock.
    under_way: Mutex<VecDeque<Begun>>,
    /// True if sessions do the steps, because there is no thread.
    by_steps: bool,
    stopping: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Lsn,
    next_transaction: u64,
}

type UnderWay<'a> = MutexGuard<'a, VecDeque<Begun>>;

impl Checkpoints {
    pub(super) fn new(
        log: Arc<Log>,
        active: Arc<Active>,
        (changed, by_steps): (ChangedBlocks, bool),
        tablespaces: Arc<Tablespaces>,
    ) -> Checkpoints {
        let (under_way, stopping) = (Mutex::default(), AtomicBool::new(false));
        Checkpoints { log, active, changed, tablespaces, under_way, by_steps, stopping }
    }

    /// Takes a whole checkpoint: changes made before the call are on disk when it returns.
    pub(super) fn take(&self, session: &Session) -> Result<(), EngineError> {
        let mut under_way = self.lock(session);
        self.failing(self.begin(session, &mut under_way).and_then(|_| {
            let Some(last) = under_way.back().map(|last| last.at) else { return Ok(()) };
            self.changed.write(session, last)?;
            self.complete(session, &mut under_way)
        }))
    }

    /// Begins a checkpoint and returns while it is in progress.
    pub(super) fn begin_one(&self, session: &Session) -> Result<(), EngineError> {
        let mut under_way = self.lock(session);
        self.failing(self.begin(session, &mut under_way).map(drop))
    }

    /// Makes room for `bytes` of log, unless that requires the end of a transaction.
    pub(super) fn make_room(&self, session: &Session, bytes: i64) -> Result<(), EngineError> {
        loop {
            self.failing(self.make_room_alone(session, &mut self.lock(session), bytes))?;
            if self.log.room() < bytes && self.log.control.let_go() {
                // The backup fails rather than the session.
                continue;
            }
            if self.log.room() >= bytes || !self.log.needs_archiver() {
                return Ok(());
            }
            if self.by_steps {
                self.log.archive_next(session)?;
            } else {
                self.log.check()?;
                self.log.archiving.await_copy(session);
            }
        }
    }

    /// Waits until every filled log file is copied, if copies are made.
    pub(super) fn await_copies(&self, session: &Session) -> Result<(), EngineError> {
        while self.log.has_uncopied() {
            if self.by_steps {
                self.log.archive_next(session)?;
                continue;
            }
            self.log.check()?;
            if let Some(why) = self.log.archiver_error() {
                return Err(EngineError::Archive { why });
            }
            self.log.archiving.await_copy(session);
        }
        Ok(())
    }

    fn make_room_alone(
        &self,
        session: &Session,
        under_way: &mut UnderWay<'_>,
        bytes: i64,
    ) -> Result<(), EngineError> {
        let mut has_begun = false;
        // Another session may have made room while this one waited for the lock.
        while self.log.room() < bytes {
            let Some(first) = under_way.front().map(|first| first.at) else {
                if has_begun || !self.begin(session, under_way)? {
                    return Ok(());
                }
                has_begun = true;
                continue;
            };
            self.changed.write(session, first)?;
            self.complete(session, under_way)?;
        }
        Ok(())
    }

    /// Does the next small step, if no thread does it.
    pub(super) fn step(&self, session: &Session) -> Result<(), EngineError> {
        if !self.by_steps {
            return Ok(());
        }
        // A failed copy matters only when the log has no other room; then the session waits for it.
        let _ = self.log.archive_next(session);
        self.failing(self.advance(session, &mut self.lock(session)))
    }

    /// Begins a checkpoint that is due, and completes those whose blocks are written.
    fn advance(&self, session: &Session, under_way: &mut UnderWay<'_>) -> Result<(), EngineError> {
        if self.log.pace.is_due() {
            self.begin(session, under_way)?;
        }
        let behind = self.log.pace.write_behind();
        if self.by_steps && !self.changed.are_written(behind) {
            self.changed.write_some(session, behind)?;
        }
        self.complete(session, under_way)
    }

    /// Begins a checkpoint. `false` if the log has no room for its record: then others must
    /// complete, or a transaction must end.
    fn begin(&self, session: &Session, under_way: &mut UnderWay<'_>) -> Result<bool, EngineError> {
        self.log.check()?;
        let begun = self.log.close(|begin| {
            let open = self.active.under_way();
            let mut record = RecordBytes::default();
            record.begin(RecordKind::Checkpoint, 0, Lsn(0), &open.list);
            let record = record.finish();
            let has_room = self.log.room.take_for_checkpoint(record.len());
            has_room.then(|| (begin, open.next, open.list.len(), self.log.append(session, record)))
        });
        let Some((begin, next_transaction, listed, appended)) = begun else { return Ok(false) };
        assert_eq!(appended?, begin, "the gate is closed: no record comes between");
        let end = Lsn(begin.0 + (HEADER_BYTES + listed).next_multiple_of(8) as u64);
        self.log.make_durable(session, end)?;
        under_way.push_back(Begun { at: begin, next_transaction });
        Ok(true)
    }

    /// Completes all checkpoints whose blocks are written.
    fn complete(&self, session: &Session, under_way: &mut UnderWay<'_>) -> Result<(), EngineError> {
        let written = under_way.iter().take_while(|begun| self.changed.are_written(begun.at)).count();
        let Some(last) = written.checked_sub(1).map(|at| under_way[at]) else { return Ok(()) };
        self.tablespaces.note_checkpoint(session, last.at)?;
        self.tablespaces.sync(session)?;
        // Once the ends of the oldest transactions are durable, rollbacks too, their records are no
        // longer needed.
        let low = self.active.low(last.at);
        self.log.make_durable(session, self.log.end())?;
        self.log.note_checkpoint(session, last.at, low, last.next_transaction)?;
        under_way.drain(..written);
        Ok(())
    }

    /// Fails the log after an error, because it is unknown what is durable.
    fn failing(&self, result: Result<(), EngineError>) -> Result<(), EngineError> {
        result.inspect_err(|error| self.log.fail(error.to_string()))
    }

    fn lock(&self, session: &Session) -> UnderWay<'_> {
        session.latch(&self.under_way, Event::LogFileSwitchCheckpoint)
    }

    /// Runs the CKPT process until it is stopped.
    fn run(&self, session: &Session) {
        while !self.is_over() {
            let is_idle = {
                let mut under_way = self.lock(session);
                // A failure fails the log, and with it every session.
                let advanced = self.failing(self.advance(session, &mut under_way));
                advanced.is_err() || under_way.is_empty()
            };
            let most = if is_idle { IDLE } else { LOOK_AGAIN };
            session.wait_long(Event::DbwrIdle, || self.log.pace.bell().sleep(most));
        }
    }

    /// Runs LGWR. A lone session does not need it, because it writes its own commits.
    fn write_log(&self, session: &Session) {
        while !self.is_over() {
            session.wait_long(Event::DbwrIdle, || self.log.lgwr.bell().sleep(IDLE));
            self.log.write_as_lgwr(session);
        }
        self.log.ends_lgwr(session);
    }

    /// Runs the ARC process until it is stopped.
    fn archive(&self, session: &Session) {
        while !self.is_over() {
            // A session that waits for a failed copy gets the reason from [`Log::archiver_error`].
            let made = self.log.archive_next(session);
            if !matches!(made, Ok(true)) {
                let most = if made.is_err() { TRY_AGAIN } else { IDLE };
                session.wait_long(Event::DbwrIdle, || self.log.archiving.bell().sleep(most));
            }
        }
    }

    fn is_over(&self) -> bool {
        self.stopping.load(Relaxed) || self.log.check().is_err()
    }
}

/// The background processes of the log, LGWR, CKPT and ARC; dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct LogProcesses {
    checkpoints: Option<Arc<Checkpoints>>,
    threads: Vec<JoinHandle<()>>,
}

impl LogProcesses {
    /// Starts the processes, unless sessions do the steps. `priority` is `high_priority_processes`.
    pub(super) fn start(
        checkpoints: &Arc<Checkpoints>,
        recorder: &Recorder,
        threads: &Quota,
        priority: Option<HighPriority>,
    ) -> Result<LogProcesses, EngineError> {
        let mut started = LogProcesses { checkpoints: Some(Arc::clone(checkpoints)), threads: Vec::new() };
        let is_wanted = |role: Role| {
            !checkpoints.by_steps && (role != Role::Archiver || checkpoints.log.archiving.is_on())
        };
        let roles = [Role::LogWriter, Role::CheckpointProcess, Role::Archiver];
        for role in roles.into_iter().filter(|role| is_wanted(*role)) {
            let (shared, recorder) = (Arc::clone(checkpoints), recorder.clone());
            let (says, begun) = mpsc::channel();
            let thread = threads.thread().and_then(|share| {
                let run = move || {
                    let _share = share;
                    let _ends = shared.log.ends_with(role.name());
                    let begins = match role {
                        Role::LogWriter => shared.log.begins_lgwr(priority),
                        _ => Ok(()),
                    };
                    let is_refused = begins.is_err();
                    // The thread that starts this one waits for the result.
                    let _ = says.send(begins);
                    if is_refused {
                        return;
                    }
                    let session = recorder.session(role);
                    match role {
                        Role::LogWriter => shared.write_log(&session),
                        Role::Archiver => shared.archive(&session),
                        _ => shared.run(&session),
                    }
                };
                thread::Builder::new().name(role.name().to_string()).spawn(run)
            });
            let named = |source| IoError::thread(format!("background process {}", role.name()), source);
            started.threads.push(thread.map_err(named)?);
            begun.recv().unwrap_or(Ok(()))?;
        }
        Ok(started)
    }
}

impl Drop for LogProcesses {
    fn drop(&mut self) {
        let Some(checkpoints) = &self.checkpoints else { return };
        checkpoints.stopping.store(true, Relaxed);
        let log = &checkpoints.log;
        [log.lgwr.bell(), log.pace.bell(), log.archiving.bell()].into_iter().for_each(Bell::ring);
        for thread in self.threads.drain(..) {
            // A panic has printed its reason.
            let _ = thread.join();
        }
    }
}
