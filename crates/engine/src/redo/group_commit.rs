//! Group commit: who writes the log, and how those who wait for it learn that it is written.
//!
//! One session at a time has the log writer's role (G1). Who needs records durable takes the role when it is free; else it leaves the
//! LSN that it needs and its thread, and sleeps. A write wakes those whose records it made durable, and nobody else. Who gives the role up
//! wakes one of the others first, who has waited longest, to be the next writer: so the next write begins while sessions of this one are still being woken.
//! Until that one runs, whoever comes by may take the role; then it waits again.
//!
//! Why not a condition variable: it wakes everybody, to queue for one mutex, and half of them to find that their records are in
//! the next write.
//!
//! A session that shares its thread leaves nothing and asks again and again, because its thread has other work. With the role it lets those run first that
//! are ready: what they commit is in the same write. Else the first of those whom a write has woken would begin the next one alone with what had come
//! before, the others would wait for two writes, and so it would go on: 32 sessions in two groups, each of which waits for the other.
//!
//! The mutex, the atomics and the threads are `super::{sharing, sync, thread}`: a model checker takes this file with its own (`tests/it/model.rs`).
//!
//! Invariants:
//! - G1 One session at a time has the role.
//! - G2 Who sleeps needs what is not durable, and somebody has the role, or has been woken to take it, or asks again by itself.
//! - G3 What is durable stays so.

use super::sharing;
use super::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Release},
};
use super::sync::{Mutex, MutexGuard};
use super::thread::{self, Thread};
use plumb_units::Lsn;
use std::sync::PoisonError;

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
    /// Whether nothing is written any more; each change asks, and the mutex is for those who commit.
    has_failed: AtomicBool,
    role: Mutex<Role>,
}

#[derive(Debug, Default)]
struct Role {
    taken: bool,
    /// In the order in which they came.
    sleepers: Vec<Sleeper>,
    /// Why nothing is written any more.
    failure: Option<String>,
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

    /// What a session does that needs records before `until` durable. The error is why it is in vain.
    pub(super) fn turn(&self, until: Lsn) -> Result<Turn, String> {
        if self.durable() >= until {
            return Ok(Turn::Durable);
        }
        let mut role = self.role();
        match &role.failure {
            Some(first) => Err(first.clone()),
            None if self.durable() >= until => Ok(Turn::Durable),
            None if role.taken => {
                if !sharing::is_shared() {
                    role.enter(until);
                }
                Ok(Turn::Sleep)
            }
            None => {
                role.taken = true;
                Ok(Turn::Write)
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

    /// The writer gives the role up, and says up to where the log is durable, if that has changed.
    pub(super) fn give_up(&self, durable: Option<Lsn>) {
        if let Some(durable) = durable {
            self.store(durable);
        }
        let durable = self.durable();
        let (next, woken) = {
            let mut role = self.role();
            assert!(role.taken, "G1: who gives the role up has it");
            role.taken = false;
            let woken = role.take_durable(durable);
            // It is in the list no more: if it finds the role taken it enters again.
            let next = (!role.sleepers.is_empty()).then(|| role.sleepers.remove(0));
            (next, woken)
        };
        wake(next);
        wake(woken);
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
        self.role().taken
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
    /// The session sleeps from now on. It is there already when something else has woken it.
    fn enter(&mut self, until: Lsn) {
        let thread = thread::current();
        self.sleepers.retain(|sleeper| sleeper.thread.id() != thread.id());
        self.sleepers.push(Sleeper { until, thread });
    }

    /// Whether to ask for it is in vain.
    fn keeps_others(&self) -> bool {
        self.taken && self.failure.is_none()
    }

    fn take_durable(&mut self, durable: Lsn) -> Vec<Sleeper> {
        self.sleepers.extract_if(.., |sleeper| sleeper.until <= durable).collect()
    }
}

fn wake(sleepers: impl IntoIterator<Item = Sleeper>) {
    sleepers.into_iter().for_each(|sleeper| sleeper.thread.unpark());
}
