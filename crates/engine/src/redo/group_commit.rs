//! Group commit: who writes the log, and how those who wait for it learn that it is written.
//!
//! One thread at a time has the log writer's role (G1). Who needs records durable takes the role
//! when it is free, and writes; else it leaves the LSN that it needs and its thread, and sleeps. A
//! write wakes those whose records it made durable, and nobody else. Where the role goes then is
//! the first of these that holds:
//!
//! ```text
//!                                                            LGWR is put before other threads      it is not
//! who waits longest wants the role itself (a log switch)     that one has it                       the same
//! much has gathered, and LGWR wants to write it              LGWR has it                           LGWR has it if nobody waits
//! two or more wait, or one and LGWR had the role             LGWR has it                           as if one waited
//! one waits                                                  it is free, and that one is woken to take it, unless another comes by first
//! nobody waits                                               it is free
//! ```
//!
//! Why LGWR only then: a session alone is done sooner by itself, for LGWR would be two wake-ups
//! more. Of many each write would begin when the next writer has been woken and has got a
//! processor; LGWR has one, and goes on: 81,000 commits/s of 32 sessions for 71,000, p99 0.84 ms
//! for 0.96 (two processors, medians of six runs in turn). With its turn among the others it would
//! do 35,000 beside two processes that want the processors, and sessions by themselves 70,000.
//!
//! Why not a condition variable: it wakes everybody, to queue for one mutex, and half of them to
//! find that their records are in the next write. What else was tried with 32 threads, and was no
//! faster than LGWR: that each whom a write has served wakes two others, or the next of those who
//! last ran on its processor; and that the next write waits until all have run whom the last one
//! served, which has all 32 commit by one write, no more of them a second. It is the wake-ups that
//! cost: 12 to 18 us each from one processor to another there (`perf bench futex wake -t 32` takes
//! 0.4 to 0.6 ms).
//!
//! A session that shares its thread leaves nothing and asks again and again, because its thread has
//! other work. With the role it lets those run first that are ready: what they commit is in the
//! same write. Else the first of those whom a write has woken would begin the next one alone with
//! what had come before, the others would wait for two writes, and so it would go on: 32 sessions
//! in two groups, each of which waits for the other.
//!
//! Limits: a session that shares its thread and wants the role itself is in no list: it finds the
//! role when it is free, and LGWR keeps it while others wait. Log switches and backups are made by
//! sessions with threads of their own.
//!
//! The mutex, the atomics and the threads are `super::{sharing, sync, thread}`: a model checker
//! takes this file with its own (`tests/it/model.rs`).
//!
//! Invariants:
//! - G1 One thread at a time has the role.
//! - G2 Who sleeps needs what is not durable, and somebody has the role, or has been woken to take
//!   it, or asks again by itself.
//! - G3 What is durable stays so.

use super::sharing;
use super::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use super::sync::{Mutex, MutexGuard};
use super::thread::{self, Thread, ThreadId};
use plumb_units::Lsn;
use std::sync::PoisonError;

/// What who wants the role itself waits for: more than ever becomes durable.
pub(super) const ROLE: Lsn = Lsn(u64::MAX);

/// What a session does next that needs records durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing: they are.
    Durable,
    /// It has the role, and writes.
    Write,
    /// It sleeps ([`GroupCommit::sleep`]), and asks again.
    Sleep,
}

/// The log writer's role, and who waits for it or for what it writes.
#[derive(Debug)]
pub(super) struct GroupCommit {
    durable: AtomicU64,
    /// Whether nothing is written any more; each change asks, and the mutex is for those who
    /// commit.
    has_failed: AtomicBool,
    role: Mutex<Role>,
}

#[derive(Debug, Default)]
struct Role {
    holder: Holder,
    /// Whether LGWR writes for those who wait.
    lgwr_serves: bool,
    /// Much has gathered up to there, and LGWR wants the role to write it.
    lgwr_wants: Option<Lsn>,
    /// In the order in which they came.
    sleepers: Vec<Sleeper>,
    /// Why nothing is written any more.
    failure: Option<String>,
}

/// Who has the role.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Holder {
    #[default]
    Nobody,
    /// A session, which took it.
    Session,
    /// The session of this thread, which was asleep and finds it when it asks.
    Given(ThreadId),
    /// LGWR, which took it or finds it when it looks.
    Lgwr,
}

#[derive(Debug)]
struct Sleeper {
    until: Lsn,
    thread: Thread,
}

impl GroupCommit {
    /// Nobody waits, and everything before `durable` is.
    pub(super) fn new(durable: Lsn) -> GroupCommit {
        let durable = AtomicU64::new(durable.0);
        GroupCommit { durable, has_failed: AtomicBool::new(false), role: Mutex::default() }
    }

    /// Records before it are durable.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Acquire))
    }

    /// What a session does that needs records before `until` durable. The error is why it is in
    /// vain.
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

    /// Sleeps until it is worth while to ask again, or for no reason.
    pub(super) fn sleep(&self, until: Lsn) {
        if !sharing::is_shared() {
            return thread::park();
        }
        while self.durable() < until && self.role().keeps_others() {
            sharing::yield_now();
        }
    }

    /// The writer says up to where the log is durable now, and keeps the role.
    pub(super) fn wrote(&self, durable: Lsn) {
        self.store(durable);
        let woken = self.role().take_durable(durable);
        wake(woken);
    }

    /// Who has the role gives it up, and says up to where the log is durable, if that has changed.
    /// Where LGWR has it then its bell is rung before others are woken: the next write is what the
    /// most wait for.
    pub(super) fn give_up(&self, durable: Option<Lsn>, ring: impl FnOnce()) {
        if let Some(durable) = durable {
            self.store(durable);
        }
        let durable = self.durable();
        let mut role = self.role();
        let was = role.holder;
        assert!(matches!(was, Holder::Session | Holder::Lgwr), "G1: who gives the role up has it");
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

    /// Whether LGWR writes for those who wait from now on. If no more, it looks once again whether
    /// it has the role.
    pub(super) fn lgwr_serves(&self, serves: bool) {
        self.role().lgwr_serves = serves;
    }

    /// Whether LGWR has the role and is to write. Where much has gathered, up to `wants`, it takes
    /// the role when that is free, and may be given it when it is given up.
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

    /// Nothing is written any more. The first reason stays.
    pub(super) fn fail(&self, why: String) {
        let woken = {
            let mut role = self.role();
            role.failure.get_or_insert(why);
            self.has_failed.store(true, Release);
            std::mem::take(&mut role.sleepers)
        };
        wake(woken);
    }

    /// Whether somebody has the role.
    pub(super) fn is_taken(&self) -> bool {
        self.role().holder != Holder::Nobody
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<String> {
        self.has_failed.load(Acquire).then(|| self.role().failure.clone())?
    }

    fn store(&self, durable: Lsn) {
        assert!(durable >= self.durable(), "G3: what is durable stays so");
        self.durable.store(durable.0, Release);
    }

    fn role(&self) -> MutexGuard<'_, Role> {
        self.role.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Role {
    /// Whether the calling session may take it.
    fn is_mine_to_take(&self) -> bool {
        match self.holder {
            Holder::Nobody => true,
            Holder::Given(to) => to == thread::current().id(),
            Holder::Session | Holder::Lgwr => false,
        }
    }

    /// The role goes where it is wanted most; who is to be woken for it, and is in the list no
    /// more: if it finds the role taken it enters again.
    fn pass_on(&mut self, durable: Lsn) -> Option<Sleeper> {
        // Asked once: who appends rings again while much has gathered.
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

    /// The session sleeps from now on. It is there already when something else has woken it.
    fn enter(&mut self, until: Lsn) {
        self.leave();
        self.sleepers.push(Sleeper { until, thread: thread::current() });
    }

    /// The session sleeps no more. In the list it would be given the role again when it has it no
    /// more, and nobody would be woken for it.
    fn leave(&mut self) {
        if !self.sleepers.is_empty() {
            let caller = thread::current().id();
            self.sleepers.retain(|sleeper| sleeper.thread.id() != caller);
        }
    }

    /// Whether to ask for it is in vain.
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
