//! Sessions that share a thread, as seen from where a session waits.
//!
//! What it does: a session that may have to wait asks here whether its thread is its own. If it is not, others of that thread go on meanwhile;
//! standing in a call of the kernel it would keep them all from it, and who holds what it waits for may be one of them.
//!
//! How: who runs the sessions (`plumb_io::carry`) says so to the thread for as long as it does. Locks that a session may hold through a wait are
//! taken [`patiently`]; waits for a signal look again and again ([`wait_signal`](crate::wait_signal)). A thread of one session does neither: it sleeps until it is woken.
//!
//! CPU is read here too, because the kernel counts it by thread: a session that shares one is told what it used while it had it.

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
    /// Whether the caller is one of them, and not what runs them.
    fn runs_session(&self) -> bool;

    /// Lets others run, and goes on at this moment at the earliest.
    fn pause(&self, until: Nanos);

    /// Lets those run that are ready now, each until it waits.
    fn let_others(&self);

    /// CPU that the caller has used up to now: the session, or what runs them.
    fn cpu(&self) -> Nanos;

    /// Where it is noted what the caller has used.
    fn used(&self) -> Arc<Used>;
}

/// What a session has had of a thread that it shares; written by that thread alone.
#[derive(Debug, Default)]
pub struct Used {
    cpu_ns: AtomicU64,
    queued_ns: AtomicU64,
}

impl Used {
    /// CPU, in turns that are over.
    pub fn cpu(&self) -> Nanos {
        Nanos(self.cpu_ns.load(Relaxed))
    }

    /// How long it was ready and others ran.
    pub fn queued(&self) -> Nanos {
        Nanos(self.queued_ns.load(Relaxed))
    }

    /// It has used so much more.
    pub fn add_cpu(&self, more: Nanos) {
        self.cpu_ns.store(self.cpu_ns.load(Relaxed) + more.0, Relaxed);
    }

    /// It has been ready so much longer.
    pub fn add_queued(&self, more: Nanos) {
        self.queued_ns.store(self.queued_ns.load(Relaxed) + more.0, Relaxed);
    }
}

thread_local! {
    static HERE: RefCell<Option<Rc<dyn SharedThread>>> = const { RefCell::new(None) };
}

/// Says that sessions share this thread from now on, or no more.
pub fn share(thread: Option<Rc<dyn SharedThread>>) {
    HERE.set(thread);
}

pub(crate) fn here() -> Option<Rc<dyn SharedThread>> {
    HERE.with_borrow(Clone::clone)
}

/// The caller's thread, if it is a session that shares it.
fn shared() -> Option<Rc<dyn SharedThread>> {
    here().filter(|thread| thread.runs_session())
}

/// Whether the caller is a session that shares its thread.
#[must_use]
pub fn is_shared() -> bool {
    HERE.with_borrow(|here| here.as_ref().is_some_and(|thread| thread.runs_session()))
}

/// CPU time of the caller: of its thread, or what is its own of a shared one.
pub(crate) fn cpu() -> Nanos {
    here().map_or_else(clock::thread_cpu, |thread| thread.cpu())
}

/// Lets other sessions of the thread run, and other threads where there are none.
pub fn yield_now() {
    match shared() {
        Some(thread) => thread.pause(Nanos(0)),
        None => thread::yield_now(),
    }
}

/// Lets other sessions of the thread run that are ready, each until it waits; nothing where the thread is the caller's own.
pub fn let_others() {
    if let Some(thread) = shared() {
        thread.let_others();
    }
}

/// Sleeps for at least so long.
pub fn sleep(time: Duration) {
    match shared() {
        Some(thread) => thread.pause(clock::now() + Nanos::from(time)),
        None => thread::sleep(time),
    }
}

/// Tries for a lock, and stands until it is free where that keeps nobody else from the thread.
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
