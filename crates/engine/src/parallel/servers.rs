//! A set of servers: threads that do the same work on different pieces.
//!
//! On a simulated disk that can lose power one seed gives one order of requests. There a server is
//! not a thread: its work is done where it is started, and operations have one server.
//!
//! Sessions of a workload ([`start_sessions`]) are servers too, each a thread of its own, or
//! carried by a few shared threads (`shared_servers`).
//!
//! If one server fails the others stop. The reported error is the first one, not its consequences.

use crate::EngineError;
use plumb_events::{Cancel, Event, Recorder, Role, Session, locked};
use plumb_host::limits::Quota;
use plumb_io::{Arena, File, IoError, Method, carry};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

/// Threads that sessions share, and the files and memory that their rings register.
#[derive(Debug, Clone)]
pub struct Sharing {
    /// Number of threads, at least one.
    pub servers: usize,
    /// Method by which they reach the files.
    pub method: Method,
    /// Files that most requests are for.
    pub files: Vec<Arc<File>>,
    /// Memory that most requests fill.
    pub memory: Option<Arena>,
}

/// State that every server of an operation checks between two pieces of work.
#[derive(Debug)]
pub struct Operation {
    recorder: Recorder,
    threads: Quota,
    cancel: Cancel,
    /// True if its servers are threads of their own.
    is_threaded: bool,
    /// `None` if each of its sessions has a thread of its own.
    sharing: Option<Sharing>,
    failed: AtomicBool,
    first: Mutex<Option<EngineError>>,
}

impl Operation {
    /// Makes an operation whose servers have sessions of this recorder and
    /// take threads from this quota.
    pub fn new(recorder: &Recorder, threads: &Quota, cancel: &Cancel) -> Operation {
        Operation {
            recorder: recorder.clone(),
            threads: threads.clone(),
            cancel: cancel.clone(),
            is_threaded: true,
            sharing: None,
            failed: AtomicBool::new(false),
            first: Mutex::new(None),
        }
    }

    /// Runs the servers one after the other in the caller's thread.
    pub(crate) fn without_threads(self) -> Operation {
        Operation { is_threaded: false, ..self }
    }

    /// Makes the operation's sessions share threads.
    #[must_use]
    pub fn sharing(self, sharing: Option<Sharing>) -> Operation {
        Operation { sharing, ..self }
    }

    /// Returns an error if the operation must stop.
    ///
    /// # Errors
    /// [`EngineError::Interrupted`] if the user has cancelled, [`EngineError::Stopped`]
    /// if another server has failed.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        self.cancel.check()?;
        if self.failed.load(Relaxed) { Err(EngineError::Stopped) } else { Ok(()) }
    }

    /// Notes a server's failure and stops the others.
    pub fn fail(&self, error: EngineError) {
        self.failed.store(true, Relaxed);
        let mut first = locked(&self.first);
        if first.as_ref().is_none_or(|known| known.is_consequence() && !error.is_consequence()) {
            *first = Some(error);
        }
    }

    /// Returns the first failure, if there was one.
    ///
    /// # Errors
    /// The first failure of a server.
    pub fn outcome(self) -> Result<(), EngineError> {
        self.first.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }
}

/// A server that was started.
pub enum Server<'scope, T> {
    /// A thread that runs the server.
    Started(ScopedJoinHandle<'scope, Option<T>>),
    /// The result of a server that has ended; `None` if it failed, or could not be started.
    Ended(Option<T>),
}

/// Starts a server of the operation: a thread with a session of its own. Notes a failure, also of
/// the start itself: dropping `work` then releases the servers that wait for it.
pub fn start<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    operation: &'env Operation,
    (role, number): (Role, usize),
    work: impl FnOnce(&Session) -> Result<T, EngineError> + Send + 'scope,
) -> Server<'scope, T> {
    let body = move || {
        let session = operation.recorder.numbered_session(role, number);
        work(&session).map_err(|error| operation.fail(error)).ok()
    };
    if operation.is_threaded {
        spawn(scope, operation, role.numbered(number), body)
    } else {
        Server::Ended(body())
    }
}

/// Starts the numbered sessions of a workload, each on a thread of its own or on shared threads.
/// Their results come in no order.
pub fn start_sessions<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    operation: &'env Operation,
    count: usize,
    work: impl Fn(&Session, usize) -> Result<T, EngineError> + Copy + Send + 'scope,
) -> Vec<Server<'scope, Vec<T>>> {
    let Some(sharing) = operation.sharing.as_ref().filter(|_| operation.is_threaded) else {
        let start = |number| {
            start(scope, operation, (Role::User, number), move |session| Ok(vec![work(session, number)?]))
        };
        return (0..count).map(start).collect();
    };
    let servers = sharing.servers.min(count);
    let start = |server: usize| {
        let session = move |number: usize| -> Box<dyn FnOnce() -> Option<T>> {
            Box::new(move || {
                let session = operation.recorder.numbered_session(Role::User, number);
                work(&session, number).map_err(|error| operation.fail(error)).ok()
            })
        };
        let body = move || {
            let own = || operation.recorder.numbered_session(Role::SharedServer, server);
            let (files, memory): (Vec<_>, Vec<_>) =
                (sharing.files.iter().collect(), sharing.memory.iter().collect());
            let sessions = (server..count).step_by(servers).map(session).collect();
            let carried = carry(&sharing.method, (&files, &memory), own, sessions);
            let done = carried.map_err(|error| operation.fail(error.into())).ok()?;
            Some(done.into_iter().flatten().collect())
        };
        spawn(scope, operation, Role::SharedServer.numbered(server), body)
    };
    (0..servers).map(start).collect()
}

fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    operation: &'env Operation,
    name: String,
    body: impl FnOnce() -> Option<T> + Send + 'scope,
) -> Server<'scope, T> {
    // A thread's name has 15 bytes: PX scan p000, as tools that list threads show it.
    let thread = thread::Builder::new().name(name.replace(" server", ""));
    let started = operation.threads.thread().and_then(|share| {
        let body = move || {
            let _share = share;
            body()
        };
        thread.spawn_scoped(scope, body)
    });
    let started = started.map_err(|source| operation.fail(IoError::thread(name, source).into()));
    started.map_or(Server::Ended(None), Server::Started)
}

/// Runs a set of `count` servers on the same work, each with its number, and waits for all of them.
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

/// Waits for servers; a panic of one continues in the coordinator.
pub fn join<T>(coordinator: &Session, servers: Vec<Server<'_, T>>) -> Vec<Option<T>> {
    coordinator.wait_long(Event::PxDeqExecuteReply, || {
        let join = |server: Server<'_, T>| match server {
            Server::Ended(result) => result,
            Server::Started(thread) => match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        };
        servers.into_iter().map(join).collect()
    })
}
