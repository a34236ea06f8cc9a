//! Sessions that share a thread, as seen by a session that waits.
//!
//! A session that may have to wait asks here if its thread is shared. If so, other sessions of
//! the thread run meanwhile. Blocking in the kernel would stop all of them, and one may hold
//! what the session waits for.
//!
//! Mechanism: the server that runs the sessions (`plumb_io::carry`) registers itself with the
//! thread. Locks that a session may hold through a wait are taken [`patiently`]; waits for a
//! signal poll ([`wait_signal`](crate::wait_signal)). A thread of one session does neither: it
//! sleeps until it is woken.
//!
//! CPU is read here too, because the kernel counts it by thread: the server counts the CPU of
//! each session that shares one.

use crate::clock;
use plumb_units::Nanos;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// A thread that runs several sessions, each until it waits.
pub trait SharedThread {
    /// True if the caller is one of the sessions, not the server.
    fn runs_session(&self) -> bool;

    /// Lets other sessions run; returns at `until` at the earliest. Zero: after all that are ready.
    fn pause(&self, until: Nanos);

    /// Lets the sessions run that are ready now, each until it waits.
    fn let_others(&self);

    /// Returns the CPU of the caller up to now, a session or the server.
    fn cpu(&self) -> Nanos;

    /// Returns the counters of the caller's CPU.
    fn used(&self) -> Arc<Used>;
}

/// CPU of a session on a shared thread; written by that thread only.
#[derive(Debug, Default)]
pub struct Used {
    cpu_ns: AtomicU64,
    queued_ns: AtomicU64,
}

impl Used {
    /// Returns its CPU, in turns that have ended.
    pub fn cpu(&self) -> Nanos {
        Nanos(self.cpu_ns.load(Relaxed))
    }

    /// Returns the time for which it was ready while others ran.
    pub fn queued(&self) -> Nanos {
        Nanos(self.queued_ns.load(Relaxed))
    }

    /// Adds CPU of one turn.
    pub fn add_cpu(&self, more: Nanos) {
        self.cpu_ns.store(self.cpu_ns.load(Relaxed) + more.0, Relaxed);
    }

    /// Adds time for which it was ready while others ran.
    pub fn add_queued(&self, more: Nanos) {
        self.queued_ns.store(self.queued_ns.load(Relaxed) + more.0, Relaxed);
    }
}

thread_local! {
    static HERE: RefCell<Option<Rc<dyn SharedThread>>> = const { RefCell::new(None) };
}

/// Registers the server whose sessions share this thread; `None` ends the sharing.
pub fn share(thread: Option<Rc<dyn SharedThread>>) {
    HERE.set(thread);
}

pub(crate) fn here() -> Option<Rc<dyn SharedThread>> {
    HERE.with_borrow(Clone::clone)
}

/// Returns the server of the caller's thread, if the caller is one of its sessions.
fn shared() -> Option<Rc<dyn SharedThread>> {
    here().filter(|thread| thread.runs_session())
}

/// True if the caller is a session that shares its thread.
pub fn is_shared() -> bool {
    HERE.with_borrow(|here| here.as_ref().is_some_and(|thread| thread.runs_session()))
}

/// Returns the CPU time of the caller: of its thread, or its own part of a shared one.
pub(crate) fn cpu() -> Nanos {
    here().map_or_else(clock::thread_cpu, |thread| thread.cpu())
}

/// Lets other sessions of the thread run, or other threads where it is not shared.
pub fn yield_now() {
    match shared() {
        Some(thread) => thread.pause(Nanos(0)),
        None => thread::yield_now(),
    }
}

/// Lets the ready sessions of the thread run, each until it waits; does
/// nothing on an unshared thread.
pub fn let_others() {
    if let Some(thread) = shared() {
        thread.let_others();
    }
}

/// Sleeps for at least `time`, while other sessions of the thread run.
pub fn sleep(time: Duration) {
    match shared() {
        Some(thread) => thread.pause(clock::now() + Nanos::from(time)),
        None => thread::sleep(time),
    }
}

/// Takes a lock by `attempt`. On an unshared thread it blocks in `stand`; on a shared one it lets
/// other sessions run between attempts.
pub fn patiently<G>(attempt: impl Fn() -> Option<G>, stand: impl FnOnce() -> G) -> G {
    if let Some(guard) = attempt() {
        return guard;
    }
    let Some(thread) = shared() else { return stand() };
    loop {
        thread.pause(Nanos(0));
        if let Some(guard) = attempt() {
            return guard;
        }
    }
}
