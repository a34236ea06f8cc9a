//! A shared server: one thread that runs several sessions, each until it waits.
//!
//! What it does: [`carry`] gives each session a stack of its own and runs them in turn. One that makes a request by itself (`Channel::carry_out`), or
//! waits for a lock, a signal or a moment ([`plumb_events::sharing`]), lets the next one run; it goes on when its request is complete. What they
//! ask for goes through one ring, each request at once, by a call that sees besides what has been completed.
//!
//! Why: a session that stands in its own call is switched away from and to again, and takes an interrupt by itself: of a random read of 8K from a
//! virtual disk 4.5 us of CPU, where one thread that has 32 of them in flight takes 2.5 (fio, docs/measured/slob.md). Changing stacks is some 20 ns.
//!
//! Why not futures: each function that may wait, from the cache up, would have to be written as one. Here the same code serves a session with a thread
//! of its own and one without; what differs is in the few places where a session waits.
//!
//! ```text
//! ready   -> has the thread -> waits for its request -> ready, when that is complete
//!                           -> lets others run       -> ready, behind those who are
//!                           -> gives way             -> ready, when all others that were have run
//!                           -> sleeps                -> ready, when its moment has come
//!                           -> ended
//! ```
//!
//! A write is a call all the same where every other session has given way: nobody could use the thread meanwhile, and a durable write through a ring
//! ends in a thread of the kernel. So it is with a commit of all sessions, for which one of them writes.
//!
//! Who gives way wants something that another session or thread has, and looks again and again: no signal is missed, and none is needed. When
//! nobody else has got any further it looks every [`LOOK_AGAIN`].
//!
//! Limits: it needs a ring, and a session keeps to its server. What stands in the kernel without a request (a file that grows, a sync
//! outside a request) keeps all of the server from it. Beside other work that takes all processors a server has the share of one thread: 32 sessions that
//! commit on one then do some 10,000 a second, each write waiting for the thread's turn, and 90,000 on threads of their own.

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

/// Address space of a session's stack, as much as a thread has; only what is used of it becomes memory.
const STACK: usize = 2 << 20;
/// How often is looked whether sessions that gave way can go on, when no other one has run.
const LOOK_AGAIN: Nanos = Nanos(50_000);
/// How often a server notes its own CPU.
const NOTE_OWN: Nanos = Nanos(10_000_000);

/// What a session gives the thread up for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Its request.
    Request,
    /// Those who are ready now.
    Others,
    /// This moment, and all others that are ready.
    Until(Nanos),
}

/// What a session is to its server.
#[derive(Debug, Default)]
struct Seat {
    yielder: Option<NonNull<Yielder<(), Rest>>>,
    /// Place of its request in the ring, and since when that is complete and the session ready.
    landed: Option<(usize, Nanos)>,
    /// Since when it is ready that lets others run.
    lets_since: Option<Nanos>,
    /// It has ended, or gave way and has not had the thread since.
    keeps_still: bool,
    used: Arc<Used>,
}

/// The server's side of its sessions' waits.
struct Server {
    ring: RefCell<RingChannel>,
    seats: RefCell<Vec<Seat>>,
    /// Who has the thread, and since when.
    running: Cell<Option<usize>>,
    since: Cell<Nanos>,
    /// How long it has stood in calls since then.
    stood: Cell<Nanos>,
    /// CPU of all sessions, and of the server itself.
    lent: Cell<Nanos>,
    own: Arc<Used>,
    /// When that was noted.
    noted: Cell<Nanos>,
    /// Why the ring takes nothing more.
    failed: RefCell<Option<String>>,
}

thread_local! {
    static SERVER: RefCell<Option<Rc<Server>>> = const { RefCell::new(None) };
}

/// Whether the caller is a session that shares its thread.
pub(super) fn is_shared() -> bool {
    SERVER.with_borrow(|server| server.as_ref().is_some_and(|server| server.runs_session()))
}

/// The seat of the calling session, and its server.
fn here() -> Option<(usize, Rc<Server>)> {
    let server = SERVER.with_borrow(Clone::clone)?;
    Some((server.running.get()?, server))
}

/// Whether the calling session makes the call for a request itself, and no ring of a server is asked.
pub(super) fn is_call(request: &Request) -> bool {
    let keeps_nobody = || here().is_some_and(|(seat, server)| server.all_others_keep_still(seat));
    let in_memory = request.file.descriptor().is_none();
    in_memory || !is_shared() || (request.operation.writes() && keeps_nobody())
}

/// One attempt at a request by the calling session: a call, or through the ring of its server.
pub(super) fn attempt(session: &Session, pending: Pending) -> Result<Attempt, IoError> {
    let is_call = is_call(&pending.request);
    match here() {
        Some((seat, server)) if !is_call => server.attempt(seat, session, pending),
        Some((_, server)) if pending.request.file.descriptor().is_some() => Ok(server.stand(pending)),
        _ => Ok(sync::attempt(pending)),
    }
}

/// Runs sessions on the calling thread until all have ended, and gives what came of each. `server` makes the session of the server itself, which has the CPU
/// that is nobody's: the calls for all, and the changes of stacks. The ring knows `files` and `arenas` beforehand, as in [`Method::channel_to`].
///
/// # Errors
/// Before any session has run, when no ring or no stack can be had, with the limit that was hit.
///
/// # Panics
/// With the first panic of a session, when all have ended.
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
        // SAFETY: what the body borrows outlives `bodies`, which is dropped before this function ends, and never forgotten.
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

/// Sessions share the thread while it lives.
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

/// What the session does that has the thread.
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

    /// The call of a session that keeps nobody from the thread: its time is a wait, and none of its CPU.
    fn stand(&self, pending: Pending) -> Attempt {
        let attempt = sync::attempt(pending);
        let begin = attempt.pending.begin.unwrap_or(attempt.end);
        self.stood.set(self.stood.get() + attempt.end.saturating_sub(begin));
        attempt
    }

    /// CPU of the session that has the thread, since it has it.
    fn used_until(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.since.get() + self.stood.get())
    }

    fn all_others_keep_still(&self, seat: usize) -> bool {
        let seats = self.seats.borrow();
        seats.iter().enumerate().all(|(other, it)| other == seat || it.keeps_still)
    }

    /// Gives the thread up, and has it again when it returns.
    fn rest(&self, rest: Rest) {
        let seat = self.running.get().expect("a session has the thread");
        let yielder = self.seats.borrow()[seat].yielder.expect("a session that runs has begun");
        // SAFETY: it lies on the stack of the session that runs, which is the caller's.
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

/// A session's stack, with what it does.
type Body = Coroutine<(), Rest, ()>;
type Panic = Box<dyn Any + Send>;

/// Who has the thread next.
#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<usize>,
    given_way: Vec<usize>,
    sleeping: BinaryHeap<Reverse<(Nanos, usize)>>,
}

impl Queue {
    fn rests(&mut self, seat: usize, rest: Rest) {
        match rest {
            // It lands.
            Rest::Request => {}
            Rest::Others => self.ready.push_back(seat),
            Rest::Until(Nanos(0)) => self.given_way.push(seat),
            Rest::Until(moment) => self.sleeping.push(Reverse((moment, seat))),
        }
    }

    /// How long nobody wants the thread unless a request is complete; nothing: until then. `is_idle`: nobody has got any further.
    fn pause(&self, at: Nanos, is_idle: bool) -> Option<Nanos> {
        if !self.given_way.is_empty() {
            return Some(if is_idle { LOOK_AGAIN } else { Nanos(0) });
        }
        self.sleeping.peek().map(|Reverse((moment, _))| moment.saturating_sub(at))
    }

    /// Those who gave way are ready again, and those whose moment has come.
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

/// What the server does between them.
impl Server {
    /// Runs all to their ends; the first panic.
    fn run(&self, session: &Session, bodies: &mut [Body]) -> Option<Panic> {
        let mut panic = None;
        let mut living = bodies.len();
        let mut queue = Queue { ready: (0..living).collect(), ..Queue::default() };
        let mut at = now();
        while living > 0 {
            let mut is_idle = true;
            // Those who are ready now: who becomes so meanwhile comes behind who gives way.
            for _ in 0..queue.ready.len() {
                let Some(seat) = queue.ready.pop_front() else { break };
                let rests;
                (rests, at) = self.run_one(seat, &mut bodies[seat], at);
                if self.stood.get() > Nanos(0) {
                    // The thread was the server's and had nothing else to do.
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
                // At once: while it gathered with others the device would have one less to work on.
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

    /// Has a session run until it rests, or has ended. It is `begin` now; gives when it is.
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

    /// Notes the server's own CPU now and then: to read it is a system call.
    fn note_own(&self, at: Nanos) {
        if at.saturating_sub(self.noted.get()) > NOTE_OWN {
            self.noted.set(at);
            self.own.add_cpu(self.cpu().saturating_sub(self.own.cpu()));
        }
    }

    /// Tells the kernel what has been asked for, and sees what is complete; waits for that, for so long at most or for ever. It is `begin` now; gives
    /// when it is.
    fn exchange(
        &self,
        session: &Session,
        begin: Nanos,
        most: Option<Nanos>,
        ready: &mut VecDeque<usize>,
    ) -> Nanos {
        if self.failed.borrow().is_some() {
            // Nothing is under way any more that would end.
            thread::sleep(Duration::from_nanos(most.unwrap_or_default().0));
            return now();
        }
        let ring = &mut *self.ring.borrow_mut();
        // Whose turn is next: while the kernel is asked its block comes into the processor's caches.
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
