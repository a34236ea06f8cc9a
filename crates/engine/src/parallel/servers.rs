//! A set of servers: threads that do the same work on different pieces.
//!
//! When one fails the others are told to stop; the error that comes back is the
//! one that came first, not its consequences.

use crate::EngineError;
use crate::cancel::Cancel;
use plumb_events::{Event, Recorder, Role, Session};
use plumb_io::IoError;
use plumb_io::limits::Quota;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

/// What every server of an operation looks at between two pieces of work.
#[derive(Debug)]
pub struct Operation {
    recorder: Recorder,
    threads: Quota,
    cancel: Cancel,
    failed: AtomicBool,
    first: Mutex<Option<EngineError>>,
}

impl Operation {
    /// A new operation, whose servers have sessions of this recorder and take threads out of this quota.
    #[must_use]
    pub fn new(recorder: &Recorder, threads: &Quota, cancel: &Cancel) -> Operation {
        Operation {
            recorder: recorder.clone(),
            threads: threads.clone(),
            cancel: cancel.clone(),
            failed: AtomicBool::new(false),
            first: Mutex::new(None),
        }
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] when the user asked to stop,
    /// [`EngineError::Stopped`] when another server failed.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        self.cancel.check()?;
        if self.failed.load(Relaxed) { Err(EngineError::Stopped) } else { Ok(()) }
    }

    /// Notes a server's failure and stops the others.
    pub fn fail(&self, error: EngineError) {
        self.failed.store(true, Relaxed);
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if first.as_ref().is_none_or(|known| known.is_consequence() && !error.is_consequence()) {
            *first = Some(error);
        }
    }

    /// The first failure, if there was one.
    ///
    /// # Errors
    /// That failure.
    pub fn outcome(self) -> Result<(), EngineError> {
        self.first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A server that was started; none where that failed.
pub type Server<'scope, T> = Option<ScopedJoinHandle<'scope, Option<T>>>;

/// Starts a server of the operation: a thread with a session of its own. A
/// failure is noted, also that of the start: `work` is then dropped, and with it what others wait for.
pub fn start<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    operation: &'env Operation,
    (role, number): (Role, usize),
    work: impl FnOnce(&Session) -> Result<T, EngineError> + Send + 'scope,
) -> Server<'scope, T> {
    // A thread's name has 15 bytes: PX scan p000, as tools that list threads show it.
    let name = role.numbered(number);
    let thread = thread::Builder::new().name(name.replace(" server", ""));
    let started = operation.threads.thread().and_then(|share| {
        let work = move || {
            let _share = share;
            let session = operation.recorder.numbered_session(role, number);
            work(&session).map_err(|error| operation.fail(error)).ok()
        };
        thread.spawn_scoped(scope, work)
    });
    started.map_err(|source| operation.fail(IoError::thread(name, source).into())).ok()
}

/// Has a set of `count` servers do the same work, each with its number, and waits
/// for all of them.
///
/// # Errors
/// The first failure of a server; the others have then stopped.
pub fn run_set<T: Send>(
    operation: Operation,
    coordinator: &Session,
    (role, count): (Role, usize),
    work: impl Fn(&Session, &Operation, usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let results = thread::scope(|scope| {
        let begin = |number: usize| {
            let (work, operation) = (&work, &operation);
            let work = move |session: &Session| work(session, operation, number);
            start(scope, operation, (role, number), work)
        };
        let started = (0..count).map(begin).collect();
        join(coordinator, started)
    });
    operation.outcome()?;
    Ok(results.into_iter().map(|result| result.expect("no server failed")).collect())
}

/// Waits for servers; a panic of one goes on in the coordinator.
pub fn join<T>(coordinator: &Session, servers: Vec<Server<'_, T>>) -> Vec<Option<T>> {
    coordinator.wait(Event::PxDeqExecuteReply, || {
        let join = |server: Server<'_, T>| match server?.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        servers.into_iter().map(join).collect()
    })
}
