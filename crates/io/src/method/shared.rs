//! A shared server: one thread that runs several sessions, each until it waits.
//!
//! [`carry`] gives each session a stack of its own and runs them in turn. A session that makes one
//! request at a time (`Channel::carry_out`), or waits for a lock, a signal or a moment
//! ([`plumb_events::sharing`]), lets the next one run. It resumes when its request is complete. All
//! requests go through one ring, each at once, by a call that also sees completions.
//!
//! Why: a thread that blocks in its own call costs two thread switches and an interrupt. A random
//! read of 8K from a virtual disk costs it 4.5 us of CPU; one thread with 32 reads in flight spends
//! 2.5 us each (fio, docs/measured/slob.md). Changing stacks costs some 20 ns.
//!
//! Why not futures: each function that may wait, from the cache up, would have to be async. Here
//! the same code serves sessions with and without a thread of their own; only the few places
//! where a session waits differ.
//!
//! ```text
//! ready   -> has the thread -> waits for its request -> ready, when that is complete
//!                           -> lets others run       -> ready, after all that are ready
//!                           -> gives way             -> ready, when all that were ready have run
//!                           -> sleeps                -> ready, when its moment has come
//!                           -> ended
//! ```
//!
//! A write is a plain call if all other sessions have given way. None could use the thread
//! meanwhile, and a durable write through a ring ends in a kernel thread. So it is when one session
//! writes the log for a commit of all.
//!
//! A session gives way when it needs something that another session or thread holds, and polls
//! for it: no signal is needed, and none can be missed. When no other session has made
//! progress, it polls every [`LOOK_AGAIN`].
//!
//! Limits: a server needs a ring, and a session keeps to its server. A session that blocks in
//! the kernel without a request (a file that grows, a sync outside a request) blocks all
//! sessions of its server. On a machine whose processors are all busy a server gets the share of
//! one thread. There 32 sessions that commit on one server do some 10,000 a second, against
//! 90,000 on threads of their own.

use super::{Attempt, ChannelBackend, Method, MethodBackend, Pending, Request, RingChannel, sync};
use crate::{Arena, File, IoError};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use plumb_events::sharing::{self, SharedThread, Used};
use plumb_events::{Event, Session, clock, now};
use plumb_units::Nanos;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Bytes of address space of a session's stack, as much as a thread has; only
/// the touched part becomes memory.
const STACK: usize = 2 << 20;
/// Pause between polls of sessions that gave way, when no other session has run.
const LOOK_AGAIN: Nanos = Nanos(50_000);
/// Interval at which a server records its own CPU.
const NOTE_OWN: Nanos = Nanos(10_000_000);

/// Reason for which a session gives up the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// The session's request is in flight.
    Request,
    /// The sessions that are ready now run first.
    Others,
    /// It sleeps until this moment; zero: it gives way to all that are ready.
    Until(Nanos),
}

/// State of a session in its server.
#[derive(Debug, Default)]
struct Seat {
    yielder: Option<NonNull<Yielder<(), Rest>>>,
    /// Place of its complete request in the ring, and the time since which the session is ready.
    landed: Option<(usize, Nanos)>,
    /// Time since which it has been ready after it let others run.
    lets_since: Option<Nanos>,
    /// True if it has ended, or gave way and has not run since.
    keeps_still: bool,
    used: Arc<Used>,
}

/// A thread's ring and the sessions that share it.
struct Server {
    ring: RefCell<RingChannel>,
    seats: RefCell<Vec<Seat>>,
    /// The session that runs, and the time at which it resumed.
    running: Cell<Option<usize>>,
    since: Cell<Nanos>,
    /// Time that the session has spent in plain calls since then.
    stood: Cell<Nanos>,
    /// CPU of all sessions, and that of the server itself.
    lent: Cell<Nanos>,
    own: Arc<Used>,
    /// Time at which the server's CPU was last recorded.
    noted: Cell<Nanos>,
    /// The error after which the ring takes no more requests.
    failed: RefCell<Option<String>>,
}

thread_local! {
    static SERVER: RefCell<Option<Rc<Server>>> = const { RefCell::new(None) };
}

/// True if the caller is a session that shares its thread.
pub(super) fn is_shared() -> bool {
    SERVER.with_borrow(|server| server.as_ref().is_some_and(|server| server.runs_session()))
}

/// Returns the seat of the calling session, and its server.
fn here() -> Option<(usize, Rc<Server>)> {
    let server = SERVER.with_borrow(Clone::clone)?;
    Some((server.running.get()?, server))
}

/// True if the calling session makes the request's system call itself, without the server's ring.
pub(super) fn is_call(request: &Request) -> bool {
    let keeps_nobody = || here().is_some_and(|(seat, server)| server.all_others_keep_still(seat));
    let in_memory = request.file.descriptor().is_none();
    in_memory || !is_shared() || (request.operation.writes() && keeps_nobody())
}

/// Makes one attempt at a request of the calling session: by a call, or through
/// the ring of its server.
pub(super) fn attempt(session: &Session, pending: Pending) -> Result<Attempt, IoError> {
    let is_call = is_call(&pending.request);
    match here() {
        Some((seat, server)) if !is_call => server.attempt(seat, session, pending),
        Some((_, server)) if pending.request.file.descriptor().is_some() => Ok(server.stand(pending)),
        _ => Ok(sync::attempt(pending)),
    }
}

/// Runs sessions on the calling thread until all have ended, and returns their results.
/// `server` creates the session of the server itself, which has the CPU that belongs to no
/// session: enters of the ring and changes of stacks. The ring registers `files` and `arenas`
/// at the start, as in [`Method::channel_to`].
///
/// # Errors
/// Before any session has run, when no ring or no stack is available, with the limit that was hit.
///
/// # Panics
/// With the first panic of a session, after all have ended.
pub fn carry<'a, T>(
    method: &Method,
    (files, arenas): (&[&Arc<File>], &[&Arena]),
    server: impl FnOnce() -> Session,
    sessions: Vec<Box<dyn FnOnce() -> T + 'a>>,
) -> Result<Vec<T>, IoError> {
    let places = sessions.len();
    let ring = ring(method, places, files, arenas)?;
    let results: Vec<Cell<Option<T>>> = (0..places).map(|_| Cell::new(None)).collect();
    let shared = Shared::begin(ring, places);
    let mut bodies: Vec<Body> = Vec::new();
    for (place, work) in sessions.into_iter().enumerate() {
        let stack = DefaultStack::new(STACK)
            .map_err(|source| IoError::thread(format!("the stack of session {place}"), source))?;
        let (server, result) = (Rc::clone(&shared.0), &results[place]);
        let body = move |yielder: &Yielder<(), Rest>, ()| {
            server.seats.borrow_mut()[place].yielder = Some(NonNull::from(yielder));
            result.set(Some(work()));
        };
        // SAFETY: what the body borrows outlives `bodies`, which is dropped before this
        // function ends and never forgotten.
        #[allow(unsafe_code)]
        bodies.push(unsafe { Coroutine::with_stack_unchecked(stack, body) });
    }
    let session = server();
    let panic = shared.0.run(&session, &mut bodies);
    drop((bodies, session));
    drop(shared);
    match panic {
        Some(panic) => resume_unwind(panic),
        None => Ok(results.into_iter().map(|result| result.into_inner().expect("it has ended")).collect()),
    }
}

fn ring(
    method: &Method,
    depth: usize,
    files: &[&Arc<File>],
    arenas: &[&Arena],
) -> Result<RingChannel, IoError> {
    let none = |why: String| IoError::MethodUnsupported {
        method: "shared servers by io_uring",
        why,
        cure: "give each session a thread of its own (shared_servers=0)".to_string(),
    };
    if !matches!(method.backend, MethodBackend::Ring(..) | MethodBackend::Ladder(_)) {
        return Err(none(format!("io_method is {}", method.kind())));
    }
    match method.channel_of(depth.clamp(1, 4096), files, arenas)?.backend {
        ChannelBackend::Ring(ring) => Ok(*ring),
        _ => Err(none(method.replaced().unwrap_or_default())),
    }
}

/// Marks the thread as shared while it lives.
struct Shared(Rc<Server>);

impl Shared {
    fn begin(ring: RingChannel, places: usize) -> Shared {
        let server = Rc::new(Server {
            ring: RefCell::new(ring),
            seats: RefCell::new((0..places).map(|_| Seat::default()).collect()),
            running: Cell::new(None),
            since: Cell::new(Nanos(0)),
            stood: Cell::new(Nanos(0)),
            lent: Cell::new(Nanos(0)),
            own: Arc::default(),
            noted: Cell::new(Nanos(0)),
            failed: RefCell::new(None),
        });
        SERVER.set(Some(Rc::clone(&server)));
        sharing::share(Some(Rc::clone(&server) as Rc<dyn SharedThread>));
        Shared(server)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        SERVER.set(None);
        sharing::share(None);
    }
}

impl SharedThread for Server {
    fn runs_session(&self) -> bool {
        self.running.get().is_some()
    }

    fn pause(&self, until: Nanos) {
        self.rest(Rest::Until(until));
    }

    fn let_others(&self) {
        self.rest(Rest::Others);
    }

    fn cpu(&self) -> Nanos {
        match self.running.get() {
            Some(seat) => self.seats.borrow()[seat].used.cpu() + self.used_until(now()),
            None => clock::thread_cpu().saturating_sub(self.lent.get()),
        }
    }

    fn used(&self) -> Arc<Used> {
        let used = self.running.get().map(|seat| Arc::clone(&self.seats.borrow()[seat].used));
        used.unwrap_or_else(|| Arc::clone(&self.own))
    }
}

/// Calls of the session that runs.
impl Server {
    fn attempt(&self, seat: usize, session: &Session, mut pending: Pending) -> Result<Attempt, IoError> {
        self.check()?;
        pending.seat = seat;
        self.ring.borrow_mut().push(session, pending)?;
        self.rest(Rest::Request);
        let landed = self.seats.borrow_mut()[seat].landed.take();
        match landed {
            Some((place, end)) => Ok(self.ring.borrow_mut().take(place, end)),
            None => Err(self.check().expect_err("else the request is complete")),
        }
    }

    /// Makes a plain call while no other session needs the thread: its time is a wait, and no CPU.
    fn stand(&self, pending: Pending) -> Attempt {
        let attempt = sync::attempt(pending);
        let begin = attempt.pending.begin.unwrap_or(attempt.end);
        self.stood.set(self.stood.get() + attempt.end.saturating_sub(begin));
        attempt
    }

    /// Returns the CPU of the running session since it resumed.
    fn used_until(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.since.get() + self.stood.get())
    }

    fn all_others_keep_still(&self, seat: usize) -> bool {
        let seats = self.seats.borrow();
        seats.iter().enumerate().all(|(other, it)| other == seat || it.keeps_still)
    }

    /// Suspends the session; returns when it runs again.
    fn rest(&self, rest: Rest) {
        let seat = self.running.get().expect("a session has the thread");
        let yielder = self.seats.borrow()[seat].yielder.expect("a session that runs has begun");
        // SAFETY: the yielder is on the stack of the running session, which is the caller's.
        #[allow(unsafe_code)]
        unsafe { yielder.as_ref() }.suspend(rest);
    }

    fn check(&self) -> Result<(), IoError> {
        let failed = self.failed.borrow();
        let error = |why: &String| {
            IoError::operation(
                "enter the ring for",
                Path::new("a shared server"),
                std::io::Error::other(why.clone()),
            )
        };
        failed.as_ref().map_or(Ok(()), |why| Err(error(why)))
    }
}

/// A session's stack, with its work.
type Body = Coroutine<(), Rest, ()>;
type Panic = Box<dyn Any + Send>;

/// Order in which sessions run.
#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<usize>,
    given_way: Vec<usize>,
    sleeping: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl Queue {
    fn rests(&mut self, seat: usize, rest: Rest) {
        match rest {
            // `exchange` makes it ready when the request is complete.
            Rest::Request => {}
            Rest::Others => self.ready.push_back(seat),
            Rest::Until(Nanos(0)) => self.given_way.push(seat),
            Rest::Until(moment) => self.sleeping.push(Reverse((moment, seat))),
        }
    }

    /// Returns how long the server may wait in the kernel; `None`: until a request is complete.
    /// `is_idle`: no session has made progress.
    fn pause(&self, at: Nanos, is_idle: bool) -> Option<Nanos> {
        if !self.given_way.is_empty() {
            return Some(if is_idle { LOOK_AGAIN } else { Nanos(0) });
        }
        self.sleeping.peek().map(|Reverse((moment, _))| moment.saturating_sub(at))
    }

    /// Makes all sessions ready that gave way or whose moment has come.
    fn wake(&mut self, at: Nanos) {
        self.ready.extend(self.given_way.drain(..));
        while let Some(Reverse((moment, seat))) = self.sleeping.peek().copied()
            && moment <= at
        {
            self.sleeping.pop();
            self.ready.push_back(seat);
        }
    }
}

/// Calls of the server between sessions.
impl Server {
    /// Runs all to their ends; returns the first panic.
    fn run(&self, session: &Session, bodies: &mut [Body]) -> Option<Panic> {
        let mut panic = None;
        let mut living = bodies.len();
        let mut queue = Queue { ready: (0..living).collect(), ..Queue::default() };
        let mut at = now();
        while living > 0 {
            let mut is_idle = true;
            // Only those that are ready now: a session that becomes ready meanwhile runs
            // after those that give way.
            for _ in 0..queue.ready.len() {
                let Some(seat) = queue.ready.pop_front() else { break };
                let rests;
                (rests, at) = self.run_one(seat, &mut bodies[seat], at);
                if self.stood.get() > Nanos(0) {
                    // The thread was the server's and had no other work.
                    session.waited(Event::SharedServerIdle, at.saturating_sub(self.stood.get()), at);
                }
                is_idle &= matches!(rests, Ok(Some(Rest::Until(_))));
                match rests {
                    Ok(Some(rest)) => queue.rests(seat, rest),
                    Ok(None) => living -= 1,
                    Err(first) => {
                        living -= 1;
                        panic.get_or_insert(first);
                    }
                }
                // Submits at once, because the device would idle while requests gathered.
                if self.ring.borrow().unsent() > 0 {
                    at = self.exchange(session, at, Some(Nanos(0)), &mut queue.ready);
                }
            }
            if queue.ready.is_empty() && living > 0 {
                let pause = queue.pause(at, is_idle);
                at = self.exchange(session, at, pause, &mut queue.ready);
            }
            queue.wake(at);
        }
        panic
    }

    /// Runs a session until it rests or has ended. It is `begin` now;
    /// also returns the time afterwards.
    fn run_one(&self, seat: usize, body: &mut Body, begin: Nanos) -> (Result<Option<Rest>, Panic>, Nanos) {
        self.since.set(begin);
        self.stood.set(Nanos(0));
        self.running.set(Some(seat));
        {
            let seat = &mut self.seats.borrow_mut()[seat];
            if let Some(since) = seat.lets_since.take().or(seat.landed.map(|(_, since)| since)) {
                seat.used.add_queued(begin.saturating_sub(since));
            }
        }
        let rests = catch_unwind(AssertUnwindSafe(|| body.resume(()).as_yield()));
        self.running.set(None);
        let end = now();
        let used = self.used_until(end);
        self.lent.set(self.lent.get() + used);
        let seat = &mut self.seats.borrow_mut()[seat];
        seat.used.add_cpu(used);
        seat.lets_since = matches!(rests, Ok(Some(Rest::Others))).then_some(end);
        seat.keeps_still = matches!(rests, Ok(None | Some(Rest::Until(Nanos(0)))) | Err(_));
        (rests, end)
    }

    /// Records the server's own CPU now and then, because reading it is a system call.
    fn note_own(&self, at: Nanos) {
        if at.saturating_sub(self.noted.get()) > NOTE_OWN {
            self.noted.set(at);
            self.own.add_cpu(self.cpu().saturating_sub(self.own.cpu()));
        }
    }

    /// Submits requests and takes completions; waits for one for `most` at most (`None`: without
    /// limit). It is `begin` now; returns the time afterwards.
    fn exchange(
        &self,
        session: &Session,
        begin: Nanos,
        most: Option<Nanos>,
        ready: &mut VecDeque<usize>,
    ) -> Nanos {
        if self.failed.borrow().is_some() {
            // With the ring failed, no request in flight will complete.
            thread::sleep(Duration::from_nanos(most.unwrap_or_default().0));
            return now();
        }
        let ring = &mut *self.ring.borrow_mut();
        // Prefetches the block of the session that runs next, while the kernel works.
        if let Some((place, _)) = ready.front().and_then(|seat| self.seats.borrow()[*seat].landed) {
            ring.expects_a_look(place);
        }
        match ring.exchange(session, begin, most) {
            Ok(end) => {
                let mut seats = self.seats.borrow_mut();
                for (place, seat, at) in ring.landed() {
                    seats[seat].landed = Some((place, at));
                    ready.push_back(seat);
                }
                if most != Some(Nanos(0)) {
                    session.waited(Event::SharedServerIdle, begin, end);
                    self.note_own(end);
                }
                end
            }
            Err(error) => {
                *self.failed.borrow_mut() = Some(error.to_string());
                ready.extend(ring.seats());
                now()
            }
        }
    }
}

#[cfg(test)]
mod tests;
