//! Group commit: chooses the thread that writes the log, and wakes the sessions that wait for it.
//!
//! One thread at a time holds the log writer's role (G1). A session that needs records durable
//! takes the role if it is free, and writes. Otherwise it registers its LSN and its thread, and
//! sleeps. Each write wakes exactly the sessions it made durable. The role then passes by the first
//! condition that holds:
//!
//! ```text
//! condition                                        LGWR has priority   LGWR has none
//! first sleeper waits for the role (log switch)    that session        that session
//! LGWR asked for it, to write gathered records     LGWR                LGWR, if no session sleeps
//! two sleep, or one sleeps and LGWR held it        LGWR                as for one session
//! one session sleeps                               free, and that session is woken to ask for it
//! no session sleeps                                free
//! ```
//!
//! Why LGWR writes only then: a single session commits sooner without it, because LGWR costs two
//! more wake-ups. With many sessions, each write would wait until the next writer was woken and got
//! a processor. LGWR has one: 81K commits/s against 71K, p99 0.84 ms against 0.96 (32 sessions, two
//! processors). Without priority, next to two busy processes, LGWR would reach 35K and the sessions
//! 70K.
//!
//! Rejected with 32 threads, because none beat LGWR:
//! - A condition variable: it wakes all sessions to queue for one mutex, and half of them are not
//!   durable yet.
//! - Chained wake-ups, where each woken session wakes two others, or the next one of its processor.
//! - A next write that waits until all woken sessions have run: all 32 commit by one write, and the
//!   rate stays the same.
//!
//! The wake-ups are the cost: 12 to 18 us each between processors.
//!
//! A session that shares its thread registers nothing and polls, because its thread has other work.
//! When it gets the role it first runs the other ready sessions, so that their commits join its
//! write. Otherwise the first session woken would write alone, and the others would wait for two
//! writes. The 32 sessions would fall into two groups that wait for each other.
//!
//! Limits: a session that shares its thread and waits for the role itself is in no list. It gets
//! the role only when it is free, and LGWR keeps it while others wait. Sessions with threads of
//! their own make log switches and backups.
//!
//! The mutex, the atomics and the threads are `super::{sharing, sync, thread}`, because a model
//! checker compiles this file with its own (`tests/it/model.rs`).
//!
//! Invariants:
//! - G1 One thread at a time has the role.
//! - G2 While a session sleeps, its LSN is not durable. Some thread holds the role, has been woken
//!   to take it, or polls for it.
//! - G3 The durable LSN never falls.

use super::sharing;
use super::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use super::sync::{Mutex, MutexGuard};
use super::thread::{self, Thread, ThreadId};
use plumb_units::Lsn;
use std::sync::PoisonError;

/// LSN of a session that waits for the role itself; no write ever reaches it.
pub(super) const ROLE: Lsn = Lsn(u64::MAX);

/// Next step of a session that needs records durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// The records are durable.
    Durable,
    /// The session has the role and writes.
    Write,
    /// The session sleeps ([`GroupCommit::sleep`]) and asks again.
    Sleep,
}

/// The log writer's role, and the sessions that wait for it or for durable records.
#[derive(Debug)]
pub(super) struct GroupCommit {
    durable: AtomicU64,
    /// True after a failure. Each change reads it, and the mutex is kept for commits.
    has_failed: AtomicBool,
    role: Mutex<Role>,
}

#[derive(Debug, Default)]
struct Role {
    holder: Holder,
    /// True if LGWR writes for waiting sessions.
    lgwr_serves: bool,
    /// LSN up to which records have gathered that LGWR asks to write.
    lgwr_wants: Option<Lsn>,
    /// In the order of arrival.
    sleepers: Vec<Sleeper>,
    /// First failure, after which nothing is written.
    failure: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    /// A session that took it.
    Session,
    /// The sleeping session of this thread, which finds it when it asks.
    Given(ThreadId),
    /// LGWR, which took it, or finds it when it checks.
    Lgwr,
}

#[derive(Debug)]
struct Sleeper {
    until: Lsn,
    thread: Thread,
}

impl GroupCommit {
    pub(super) fn new(durable: Lsn) -> GroupCommit {
        let durable = AtomicU64::new(durable.0);
        GroupCommit { durable, has_failed: AtomicBool::new(false), role: Mutex::default() }
    }

    /// Returns the LSN before which all records are durable.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Acquire))
    }

    /// Returns the next step of a session that needs records before `until` durable.
    ///
    /// # Errors
    /// The first failure, after which nothing becomes durable.
    pub(super) fn turn(&self, until: Lsn) -> Result<Turn, String> {
        if self.durable() >= until {
            return Ok(Turn::Durable);
        }
        let mut role = self.role();
        match &role.failure {
            Some(first) => Err(first.clone()),
            None if self.durable() >= until => Ok(Turn::Durable),
            None if role.is_mine_to_take() => {
                role.holder = Holder::Session;
                role.leave();
                Ok(Turn::Write)
            }
            None => {
                if !sharing::is_shared() {
                    role.enter(until);
                }
                Ok(Turn::Sleep)
            }
        }
    }

    /// Sleeps until the session should ask again. It may wake early, for no reason.
    pub(super) fn sleep(&self, until: Lsn) {
        if !sharing::is_shared() {
            return thread::park();
        }
        while self.durable() < until && self.role().keeps_others() {
            sharing::yield_now();
        }
    }

    /// Publishes the durable LSN; the writer keeps the role.
    pub(super) fn wrote(&self, durable: Lsn) {
        self.store(durable);
        let woken = self.role().take_durable(durable);
        wake(woken);
    }

    /// Gives up the role, and publishes the durable LSN if there is a new one. If LGWR
    /// gets the role, its bell is rung before sessions are woken, because most sessions
    /// wait for the next write.
    pub(super) fn give_up(&self, durable: Option<Lsn>, ring: impl FnOnce()) {
        if let Some(durable) = durable {
            self.store(durable);
        }
        let durable = self.durable();
        let mut role = self.role();
        let was = role.holder;
        assert!(matches!(was, Holder::Session | Holder::Lgwr), "G1: only the holder gives the role up");
        let woken = role.take_durable(durable);
        let next = role.pass_on(durable);
        let is_lgwrs = role.holder == Holder::Lgwr && was != Holder::Lgwr;
        drop(role);
        if is_lgwrs {
            ring();
        }
        wake(next);
        wake(woken);
    }

    /// Sets if LGWR writes for waiting sessions. After `false`, LGWR must check once more
    /// whether it has the role.
    pub(super) fn lgwr_serves(&self, serves: bool) {
        self.role().lgwr_serves = serves;
    }

    /// True if LGWR has the role and must write. With `wants`, the LSN up to which records have
    /// gathered, LGWR takes a free role, or asks to get it next.
    pub(super) fn lgwr_writes(&self, wants: Option<Lsn>) -> bool {
        let mut role = self.role();
        if role.failure.is_some() {
            return false;
        }
        if wants.is_some() && role.holder == Holder::Nobody {
            role.holder = Holder::Lgwr;
        }
        let has_it = role.holder == Holder::Lgwr;
        role.lgwr_wants = wants.filter(|_| !has_it);
        has_it
    }

    /// Ends all writing; the first reason is kept.
    pub(super) fn fail(&self, why: String) {
        let woken = {
            let mut role = self.role();
            role.failure.get_or_insert(why);
            self.has_failed.store(true, Release);
            std::mem::take(&mut role.sleepers)
        };
        wake(woken);
    }

    pub(super) fn is_taken(&self) -> bool {
        self.role().holder != Holder::Nobody
    }

    /// Returns the first failure, after which nothing is written.
    pub(super) fn failure(&self) -> Option<String> {
        self.has_failed.load(Acquire).then(|| self.role().failure.clone())?
    }

    fn store(&self, durable: Lsn) {
        assert!(durable >= self.durable(), "G3: the durable LSN never falls");
        self.durable.store(durable.0, Release);
    }

    fn role(&self) -> MutexGuard<'_, Role> {
        self.role.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Role {
    /// True if the calling session may take the role.
    fn is_mine_to_take(&self) -> bool {
        match self.holder {
            Holder::Nobody => true,
            Holder::Given(to) => to == thread::current().id(),
            Holder::Session | Holder::Lgwr => false,
        }
    }

    /// Passes the role on. Returns the session to wake for it and takes it off the list; a session
    /// that finds the role taken enters again.
    fn pass_on(&mut self, durable: Lsn) -> Option<Sleeper> {
        // One request counts once, because appending sessions ring again while much has gathered.
        let is_wanted = self.lgwr_wants.take().is_some_and(|until| until > durable);
        let enough = if self.holder == Holder::Lgwr { 1 } else { 2 };
        let is_lgwrs = match self.lgwr_serves {
            true => is_wanted || self.sleepers.len() >= enough,
            false => is_wanted && self.sleepers.is_empty(),
        };
        let first = self.sleepers.first().map(|sleeper| (sleeper.until, sleeper.thread.id()));
        self.holder = match first {
            Some((ROLE, thread)) => Holder::Given(thread),
            _ if is_lgwrs => Holder::Lgwr,
            _ => Holder::Nobody,
        };
        (self.holder != Holder::Lgwr && first.is_some()).then(|| self.sleepers.remove(0))
    }

    /// Lists the calling session. It may be listed already, if something else has woken it.
    fn enter(&mut self, until: Lsn) {
        self.leave();
        self.sleepers.push(Sleeper { until, thread: thread::current() });
    }

    /// Takes the calling session off the list. Otherwise it could be given the role again, and no
    /// thread would be woken for it.
    fn leave(&mut self) {
        if !self.sleepers.is_empty() {
            let caller = thread::current().id();
            self.sleepers.retain(|sleeper| sleeper.thread.id() != caller);
        }
    }

    /// True if the session would ask for the role in vain.
    fn keeps_others(&self) -> bool {
        self.holder != Holder::Nobody && self.failure.is_none()
    }

    fn take_durable(&mut self, durable: Lsn) -> Vec<Sleeper> {
        self.sleepers.extract_if(.., |sleeper| sleeper.until <= durable).collect()
    }
}

fn wake(sleepers: impl IntoIterator<Item = Sleeper>) {
    sleepers.into_iter().for_each(|sleeper| sleeper.thread.unpark());
}
