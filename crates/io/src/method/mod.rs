//! Channels: requests go in, completions come out.
//!
//! What it does: [`Method::channel`] opens a channel by one of the methods
//! below; `submit` hands over a request with its buffer, `wait` gives back a
//! finished one. Submissions collect until `flush` or `wait`, so a batch costs
//! one system call. Completions may come in any order; the `tag` tells which.
//!
//! How: the three methods are siblings, [`sync`], [`threads`] and [`uring`]; sessions that share a thread make their calls
//! through its ring ([`shared`]). Rings are set up as [`crate::ring_setup`] says; [`ladder`] takes the best that can be had. Each moves one stretch of bytes at a time;
//! this file does what they share: continuing short transfers, repeating EINTR and
//! EAGAIN, naming errors and recording service times and waits.
//!
//! The service time of a request begins when it is handed to the kernel and not when it
//! was queued: with the call of `sync` and of a thread of the pool, with the enter of a ring.
//! A call's end is exact. A ring's completion is *seen*: at the next enter, which
//! looks for completions whatever it was for, so a session that computes between two enters
//! makes its device look slower by that long at most.
//!
//! Invariants:
//! - C1 A buffer is with the caller or with the channel, never with both.
//! - C2 A channel that is dropped first waits for everything in flight, because
//!   the kernel may still write into the buffers.
//! - C3 `wait` names an event when nothing had arrived: it then enters the kernel
//!   once, to submit and to wait.
//! - C4 A sync that failed is an error, whatever it failed with: it is never repeated.

mod delay;
mod ladder;
mod shared;
mod sync;
mod threads;
mod uring;

use crate::arena::prefetch_arrived;
use crate::error::noted;
use crate::file::Sync;
use crate::ring_setup;
use crate::{Arena, DirectIo, File, IoBuffer, IoError};
use delay::Delay;
use ladder::Ladder;
use plumb_events::{Event, IoStream, Moved, RequestTimes, Session, Statistic, now, sharing};
use plumb_host::device::RingSetup;
use plumb_host::limits::{Quota, Quotas};
use plumb_units::Nanos;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use threads::{Pool, PoolChannel};

pub use shared::carry;
use uring::{RingChannel, Size};

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MethodKind {
    /// pread and pwrite by the session itself.
    Sync,
    /// pread and pwrite by a pool of threads.
    Threads,
    /// An io_uring of the session's own.
    IoUring,
}

impl MethodKind {
    /// Every method, the plainest first.
    pub const ALL: [MethodKind; 3] = [MethodKind::Sync, MethodKind::Threads, MethodKind::IoUring];

    /// The name that `io_method` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MethodKind::Sync => "sync",
            MethodKind::Threads => "threads",
            MethodKind::IoUring => "io_uring",
        }
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MethodKind {
    type Err = ();

    fn from_str(text: &str) -> Result<MethodKind, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}

/// A way to reach files, shared by all sessions of an instance.
#[derive(Debug, Clone)]
pub struct Method {
    queue_depth: usize,
    backend: MethodBackend,
    /// Put before every request.
    delay: Nanos,
}

/// What the channels of a method share.
#[derive(Debug, Clone)]
enum MethodBackend {
    Session,
    Pool(Arc<Pool>),
    Ring(RingSetup, Quota),
    Ladder(Arc<Ladder>),
}

impl Method {
    /// Starts a method. `queue_depth` (1 to 4096) bounds what a channel may have
    /// in flight, and so the threads of the pool. Rings are set up in the best way
    /// that the kernel has.
    ///
    /// # Errors
    /// When the kernel refuses a ring or threads, with the limit that was hit.
    pub fn start(kind: MethodKind, queue_depth: usize) -> Result<Method, IoError> {
        Method::start_within(kind, queue_depth, &Quotas::default())
    }

    /// The same with limits of our own.
    ///
    /// # Errors
    /// As [`Method::start`], and where such a limit is hit.
    pub fn start_within(kind: MethodKind, queue_depth: usize, quotas: &Quotas) -> Result<Method, IoError> {
        let backend = match kind {
            MethodKind::Sync => MethodBackend::Session,
            MethodKind::Threads => MethodBackend::Pool(Arc::new(Pool::start(queue_depth, &quotas.threads)?)),
            MethodKind::IoUring => {
                let setup = ring_setup::best(uring::entries(queue_depth)).unwrap_or(RingSetup::Plain);
                return Method::of_rings(setup, queue_depth, &quotas.rings);
            }
        };
        Ok(Method::of(backend, queue_depth))
    }

    /// Starts the best of the methods from `kind` down. Each channel then gets the best that can be had, and
    /// [`Method::replaced`] says where that is less. Nothing is refused.
    #[must_use]
    pub fn best_of(kind: MethodKind, queue_depth: usize, quotas: &Quotas) -> Method {
        Method::of(MethodBackend::Ladder(Arc::new(Ladder::new(kind, queue_depth, quotas))), queue_depth)
    }

    /// Starts io_uring with rings that are set up as asked for, and in no other way.
    /// Whether a disk can be polled shows with the first request.
    ///
    /// # Errors
    /// When the kernel refuses such a ring.
    pub fn start_ring(setup: RingSetup, queue_depth: usize) -> Result<Method, IoError> {
        Method::of_rings(setup, queue_depth, &Quota::default())
    }

    fn of_rings(setup: RingSetup, queue_depth: usize, quota: &Quota) -> Result<Method, IoError> {
        let method = Method::of(MethodBackend::Ring(setup, quota.clone()), queue_depth);
        method.channel(&[])?;
        Ok(method)
    }

    fn of(backend: MethodBackend, queue_depth: usize) -> Method {
        assert!((1..=4096).contains(&queue_depth));
        Method { queue_depth, backend, delay: Nanos(0) }
    }

    /// The same with so much delay put before every request, on average: an effect of known size, which an
    /// experiment has to find.
    #[must_use]
    pub fn delayed(self, delay: Nanos) -> Method {
        Method { delay, ..self }
    }

    /// The same for channels that one thread hands to the next: only a plain ring takes requests of others than the thread that made it.
    #[must_use]
    pub fn for_any_thread(&self) -> Method {
        let backend = match &self.backend {
            MethodBackend::Ring(_, quota) => MethodBackend::Ring(RingSetup::Plain, quota.clone()),
            MethodBackend::Ladder(ladder) => MethodBackend::Ladder(Arc::new(ladder.for_any_thread())),
            other => other.clone(),
        };
        Method { backend, ..self.clone() }
    }

    /// Which method this is.
    #[must_use]
    pub fn kind(&self) -> MethodKind {
        match &self.backend {
            MethodBackend::Session => MethodKind::Sync,
            MethodBackend::Pool(_) => MethodKind::Threads,
            MethodBackend::Ring(..) => MethodKind::IoUring,
            MethodBackend::Ladder(ladder) => ladder.kind(),
        }
    }

    /// What channels got instead of the best, and why; nothing where all had it, or none may have another.
    #[must_use]
    pub fn replaced(&self) -> Option<String> {
        if let MethodBackend::Ladder(ladder) = &self.backend { ladder.said() } else { None }
    }

    /// Whether a channel may have gone this way.
    #[must_use]
    pub fn goes_by(&self, kind: MethodKind) -> bool {
        match &self.backend {
            MethodBackend::Ladder(ladder) => ladder.used(kind),
            _ => self.kind() == kind,
        }
    }

    /// How its rings are set up; `None` of the other methods.
    #[must_use]
    pub fn ring_setup(&self) -> Option<RingSetup> {
        match &self.backend {
            MethodBackend::Ring(setup, ..) => Some(*setup),
            MethodBackend::Ladder(ladder) => ladder.setup(),
            _ => None,
        }
    }

    /// Requests a channel may have in flight.
    #[must_use]
    pub fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    /// Opens a channel for the calling thread. A ring registers `arenas`, whose
    /// buffers then go without being pinned and unpinned for each request; where
    /// the kernel refuses (a memlock limit), they go the ordinary way and the
    /// statistics show it.
    ///
    /// # Errors
    /// When the kernel refuses a ring that was asked for by name, with the limit that was hit.
    pub fn channel(&self, arenas: &[&Arena]) -> Result<Channel, IoError> {
        self.channel_to(&[], arenas)
    }

    /// The same for requests to certain files, which a ring registers: it then need
    /// not look up the descriptor and count a reference for each request. Requests to
    /// other files go the ordinary way. What is registered stays open as long as the
    /// channel.
    ///
    /// # Errors
    /// As [`Method::channel`].
    pub fn channel_to(&self, files: &[&Arc<File>], arenas: &[&Arena]) -> Result<Channel, IoError> {
        self.channel_of(self.queue_depth, files, arenas)
    }

    /// The same with room for so many requests (1 to 4096), for a session that has more of them at hand than others.
    ///
    /// # Errors
    /// As [`Method::channel`].
    pub fn channel_of(
        &self,
        queue_depth: usize,
        files: &[&Arc<File>],
        arenas: &[&Arena],
    ) -> Result<Channel, IoError> {
        assert!((1..=4096).contains(&queue_depth), "a ring has 1 to 4096 entries");
        let backend = match &self.backend {
            MethodBackend::Session => ChannelBackend::Sync,
            MethodBackend::Pool(pool) => ChannelBackend::Pool(PoolChannel::open(pool)),
            MethodBackend::Ring(setup, quota) => {
                let open = |size| {
                    let shape = (*setup, queue_depth, size);
                    RingChannel::open(shape, arenas, files, quota)
                };
                // A smaller ring of the same kind is what was asked for; of two refusals the first is told.
                let ring = open(Size::Whole).or_else(|error| open(Size::Small).map_err(|_| error))?;
                ChannelBackend::Ring(Box::new(ring))
            }
            MethodBackend::Ladder(ladder) => ladder.open(queue_depth, files, arenas),
        };
        Ok(self.channel_by(backend, queue_depth))
    }

    /// Opens a channel for requests one at a time. Whatever the method, the calling thread makes the call, unless sessions share it ([`carry`]): alone, an entry of a ring, its
    /// completion and the work that the kernel leaves to the thread for it cost 2 to 4 of 15 us of CPU that a random read of 8K takes.
    #[must_use]
    pub fn channel_for_one(&self) -> Channel {
        self.channel_by(ChannelBackend::Sync, 1)
    }

    fn channel_by(&self, backend: ChannelBackend, queue_depth: usize) -> Channel {
        Channel {
            backend,
            delay: Delay::of(self.delay),
            queue_depth,
            in_flight: 0,
            ready: VecDeque::new(),
            attempts: Vec::new(),
        }
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Fills the buffer from the file.
    Read,
    /// Fills the buffer as far as the file goes; the completion's range says how
    /// far that was. For files whose length is no multiple of a block.
    ReadAtMost,
    /// Writes the buffer to the file.
    Write,
    /// Writes the buffer to the file and is complete when that is durable, with what
    /// is needed to read it back (`RWF_DSYNC`).
    WriteDurable,
    /// Writes the buffer to the file, then makes all written to the file durable
    /// (fdatasync). In a ring the two are linked: one enter for both.
    WriteAndSync,
    /// The same with all that the file system notes of the file (fsync).
    WriteAndSyncAll,
}

impl Operation {
    /// Whether bytes go to the file.
    #[must_use]
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Read | Operation::ReadAtMost)
    }

    /// The sync that follows, if one does.
    const fn sync(self) -> Option<Sync> {
        match self {
            Operation::WriteAndSync => Some(Sync::Data),
            Operation::WriteAndSyncAll => Some(Sync::All),
            Operation::Read | Operation::ReadAtMost | Operation::Write | Operation::WriteDurable => None,
        }
    }
}

/// One request for bytes.
#[derive(Debug)]
pub struct Request {
    /// Reads or writes.
    pub operation: Operation,
    /// The file.
    pub file: Arc<File>,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// The memory, owned by the channel until completion.
    pub buffer: IoBuffer,
    /// Which part of the buffer takes part.
    pub range: Range<usize>,
    /// What the session waits for if it has to.
    pub event: Event,
    /// What the bytes are moved for.
    pub stream: IoStream,
    /// Comes back with the completion.
    pub tag: u64,
}

/// A request that succeeded in full.
#[derive(Debug)]
pub struct Completion {
    /// The request's tag.
    pub tag: u64,
    /// Its buffer.
    pub buffer: IoBuffer,
    /// The part that was moved.
    pub range: Range<usize>,
}

/// A request that failed, and what it was submitted with.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// What went wrong.
    #[source]
    pub error: IoError,
    /// The request's tag and its buffer; `None` when the ring itself failed, which keeps them.
    pub request: Option<(u64, IoBuffer)>,
}

impl From<IoError> for Failed {
    fn from(error: IoError) -> Failed {
        Failed { error, request: None }
    }
}

impl From<Failed> for IoError {
    fn from(failed: Failed) -> IoError {
        failed.error
    }
}

/// A request under way: `done` bytes of it have been moved.
#[derive(Debug)]
struct Pending {
    request: Request,
    done: usize,
    /// When it left the session's hands, and when it was first handed to the kernel.
    left: Option<Nanos>,
    begin: Option<Nanos>,
    /// The delay that was put before it, which is to pass for the device's.
    delay: Nanos,
    /// Outcome of the sync that follows a whole [`Operation::WriteAndSync`] or [`Operation::WriteAndSyncAll`].
    sync: Result<(), Errno>,
    /// Whose it is of the sessions that share a ring.
    seat: usize,
}

impl Pending {
    fn new(request: Request) -> Pending {
        Pending { request, done: 0, left: None, begin: None, delay: Nanos(0), sync: Ok(()), seat: 0 }
    }

    /// It leaves the session's hands: the first time counts.
    fn leaves(&mut self, at: Nanos) {
        self.left.get_or_insert(at);
    }

    /// It is handed to the kernel: the first time counts.
    fn begins(&mut self, at: Nanos) {
        self.leaves(at);
        self.begin.get_or_insert(at);
    }

    /// What is left to move: where in the buffer, and where in the file.
    fn rest(&self) -> (Range<usize>, u64) {
        (self.request.range.start + self.done..self.request.range.end, self.request.offset + self.done as u64)
    }

    /// What it has read will be looked at soon.
    #[inline]
    fn expects_a_look(&self) {
        if !self.request.operation.writes() {
            prefetch_arrived(&self.request.buffer[self.request.range.clone()]);
        }
    }

    /// Moves the rest by one system call of the calling thread.
    fn transfer_once(&mut self) -> Result<usize, Errno> {
        let (range, offset) = self.rest();
        let Request { operation, file, buffer, .. } = &mut self.request;
        match operation {
            Operation::Read | Operation::ReadAtMost => file.read_once(&mut buffer[range], offset),
            Operation::Write => file.write_once(&buffer[range], offset),
            Operation::WriteDurable => file.write_durable_once(&buffer[range], offset),
            Operation::WriteAndSync | Operation::WriteAndSyncAll => {
                let wanted = range.len();
                let moved = file.write_once(&buffer[range], offset)?;
                if let Some(sync) = operation.sync().filter(|_| moved == wanted) {
                    self.sync = file.sync_once(sync);
                }
                Ok(moved)
            }
        }
    }
}

/// Outcome of one attempt at a request.
#[derive(Debug)]
struct Attempt {
    pending: Pending,
    result: Result<usize, Errno>,
    /// When it was over, or seen to be.
    end: Nanos,
}

#[derive(Debug)]
enum ChannelBackend {
    Sync,
    Pool(PoolChannel),
    Ring(Box<RingChannel>),
}

/// A session's own way to the kernel.
#[derive(Debug)]
pub struct Channel {
    backend: ChannelBackend,
    delay: Option<Delay>,
    queue_depth: usize,
    in_flight: usize,
    ready: VecDeque<Result<Completion, Failed>>,
    /// Empty between calls: memory that is used again.
    attempts: Vec<Attempt>,
}

impl Channel {
    /// Requests submitted and not yet given back.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.in_flight + self.ready.len()
    }

    /// Whether a request can be handed over without waiting for another one to end.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight < self.queue_depth
    }

    /// Hands over a request. The synchronous method carries it out at once;
    /// the others take it along with the next `flush` or `wait`. When the queue
    /// is full the session first waits for a place.
    ///
    /// # Errors
    /// When the ring itself fails; a failed transfer comes out of `wait`.
    pub fn submit(&mut self, session: &Session, request: Request) -> Result<(), IoError> {
        let buffer_bytes = request.buffer.len();
        assert!(request.range.end <= buffer_bytes, "{:?} of {buffer_bytes} bytes", request.range);
        assert!(!request.range.is_empty(), "a request moves a byte");
        while self.in_flight >= self.queue_depth {
            self.collect(session, Some(request.event))?;
        }
        // Files in memory have no descriptor that a pool or a ring would serve better.
        let in_memory = request.file.descriptor().is_none();
        let at_once = in_memory || matches!(self.backend, ChannelBackend::Sync);
        let mut pending = Pending::new(request);
        let event = pending.request.event;
        let wait = (at_once || self.delay.is_some()).then(|| session.begin_wait());
        if let Some(delay) = &mut self.delay {
            pending.delay = delay.pass();
        }
        if let Some(wait) = wait.filter(|_| !at_once) {
            session.end_wait(event, wait);
        }
        match &mut self.backend {
            ChannelBackend::Pool(pool) if !in_memory => {
                session.count(Statistic::PoolRequests, 1);
                pool.submit(pending);
                self.in_flight += 1;
            }
            ChannelBackend::Ring(ring) if !in_memory => {
                ring.push(session, pending)?;
                self.in_flight += 1;
            }
            _ => {
                session.count(Statistic::SyncRequests, u64::from(shared::is_call(&pending.request)));
                let attempt = shared::attempt(session, pending)?;
                self.in_flight += 1;
                let end = attempt.end;
                let end = self.settle(session, attempt, end)?;
                if let Some(wait) = wait {
                    session.end_wait_at(event, wait, end);
                }
            }
        }
        Ok(())
    }

    /// Sends what has been submitted to the kernel.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn flush(&mut self, session: &Session) -> Result<(), IoError> {
        if let ChannelBackend::Ring(ring) = &mut self.backend {
            ring.enter(session)?;
        }
        Ok(())
    }

    /// The same, and notes the call as a wait under `event`, however short: for a session whose submissions are to be seen.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn flush_as(&mut self, session: &Session, event: Event) -> Result<(), IoError> {
        if let ChannelBackend::Ring(ring) = &mut self.backend {
            ring.enter_as(session, event)?;
        }
        Ok(())
    }

    /// The next completion, waiting for it under `event` if none is there.
    ///
    /// # Errors
    /// When the request failed; it gives its tag and its buffer back.
    ///
    /// # Panics
    /// When nothing is outstanding: the wait would never end.
    pub fn wait(&mut self, session: &Session, event: Event) -> Result<Completion, Failed> {
        assert!(self.outstanding() > 0, "C3: nothing to wait for");
        if self.ready.is_empty() && self.may_have_arrived() {
            let begin = now();
            let harvested = self.harvest(session);
            polled(session, begin);
            harvested?;
        }
        while self.ready.is_empty() {
            self.collect(session, Some(event))?;
        }
        self.ready.pop_front().expect("just seen to be there")
    }

    /// Carries out a request by itself, waiting for it under its event: the bytes that it moved. The buffer is put into `buffer` again, whatever came
    /// of it, unless the ring itself failed.
    ///
    /// # Errors
    /// When it failed.
    ///
    /// # Panics
    /// When something else is outstanding.
    pub fn carry_out(
        &mut self,
        session: &Session,
        request: Request,
        buffer: &mut Option<IoBuffer>,
    ) -> Result<usize, IoError> {
        assert_eq!(self.outstanding(), 0, "a request by itself");
        let event = request.event;
        self.submit(session, request)?;
        let (returned, moved) = match self.wait(session, event) {
            Ok(Completion { buffer, range, .. }) => (Some(buffer), Ok(range.len())),
            Err(Failed { error, request }) => (request.map(|(_, buffer)| buffer), Err(error)),
        };
        *buffer = returned;
        moved
    }

    /// Waits until nothing is in flight, whatever comes of it: the end of work that
    /// has been given up.
    pub fn abandon(&mut self, session: &Session, event: Event) {
        loop {
            self.ready.clear();
            let before = self.in_flight;
            // A ring that fails as a whole gives back nothing more; its drop keeps
            // the buffers from being used again.
            if before == 0 || (self.collect(session, Some(event)).is_err() && self.in_flight == before) {
                return;
            }
        }
    }

    /// A completion if one is there, without waiting.
    ///
    /// # Errors
    /// As [`Channel::wait`].
    pub fn poll(&mut self, session: &Session) -> Result<Option<Completion>, Failed> {
        if self.ready.is_empty() && self.in_flight > 0 {
            let begin = now();
            let collected = self.collect(session, None);
            polled(session, begin);
            collected?;
        }
        self.ready.pop_front().transpose()
    }

    /// Whether the kernel, or a thread of the pool, has something that may have ended.
    fn may_have_arrived(&self) -> bool {
        match &self.backend {
            ChannelBackend::Sync => false,
            ChannelBackend::Pool(_) => self.in_flight > 0,
            ChannelBackend::Ring(ring) => self.in_flight > ring.unsent(),
        }
    }

    /// Takes in what has arrived, without a system call.
    fn harvest(&mut self, session: &Session) -> Result<(), IoError> {
        match &mut self.backend {
            ChannelBackend::Ring(ring) => {
                let mut attempts = std::mem::take(&mut self.attempts);
                ring.drain(&mut attempts);
                let taken_in = if attempts.is_empty() { Nanos(0) } else { now() };
                self.settle_all(session, attempts, taken_in)
            }
            _ => self.collect(session, None),
        }
    }

    /// Takes in what has arrived; with an event, waits until something has.
    fn collect(&mut self, session: &Session, event: Option<Event>) -> Result<(), IoError> {
        let wait = event.map(|event| (event, session.begin_wait()));
        let mut attempts = std::mem::take(&mut self.attempts);
        let mut end = None;
        match &mut self.backend {
            ChannelBackend::Sync => {}
            ChannelBackend::Pool(pool) => pool.collect(event.is_some(), &mut attempts),
            // Others that share the thread go on until something has arrived.
            ChannelBackend::Ring(ring) if wait.is_some() && shared::is_shared() => {
                end = ring.collect(session, None, &mut attempts)?;
                while attempts.is_empty() {
                    sharing::yield_now();
                    end = ring.collect(session, None, &mut attempts)?;
                }
            }
            ChannelBackend::Ring(ring) => {
                end = ring.collect(session, wait.map(|(_, begin)| begin.at()), &mut attempts)?;
            }
        }
        let end = end.unwrap_or_else(now);
        if let Some((event, begin)) = wait {
            session.end_wait_at(event, begin, end);
        }
        self.settle_all(session, attempts, end)
    }

    /// Settles all of them, an error or not, and keeps their memory for the next ones.
    fn settle_all(
        &mut self,
        session: &Session,
        mut attempts: Vec<Attempt>,
        taken_in: Nanos,
    ) -> Result<(), IoError> {
        let mut settled = Ok(());
        for attempt in attempts.drain(..) {
            settled = settled.and(self.settle(session, attempt, taken_in).map(drop));
        }
        self.attempts = attempts;
        settled
    }

    /// Decides what follows from an attempt: a completion, an error, or another attempt. Gives when the last one was over.
    fn settle(&mut self, session: &Session, attempt: Attempt, taken_in: Nanos) -> Result<Nanos, IoError> {
        let mut attempt = attempt;
        loop {
            let Attempt { mut pending, result, end } = attempt;
            let may_end = pending.request.operation == Operation::ReadAtMost;
            match result {
                Ok(0) if may_end => {
                    self.complete(session, pending, (end, taken_in));
                    return Ok(end);
                }
                Ok(0) => {
                    self.refuse(pending, cut_short);
                    return Ok(end);
                }
                Ok(moved) => {
                    assert!(moved <= pending.rest().0.len(), "C1: {moved} bytes moved, more than asked for");
                    pending.done += moved;
                    // Direct I/O can go on only from an aligned place. The device's own
                    // short transfers end at one; what ends elsewhere is the file.
                    let direct = pending.request.file.direct() == DirectIo::Required;
                    let file_ended = direct && !pending.done.is_multiple_of(512);
                    if pending.rest().0.is_empty() || (file_ended && may_end) {
                        if let Err(errno) = pending.sync {
                            self.refuse(pending, |pending| sync_error(pending, errno));
                        } else {
                            self.complete(session, pending, (end, taken_in));
                        }
                        return Ok(end);
                    }
                    if file_ended {
                        self.refuse(pending, cut_short);
                        return Ok(end);
                    }
                    session.count(Statistic::RequestsContinued, 1);
                }
                Err(Errno::INTR | Errno::AGAIN) => session.count(Statistic::RequestsRetried, 1),
                Err(errno) => {
                    self.refuse(pending, |pending| transfer_error(pending, errno));
                    return Ok(end);
                }
            }
            assert!(pending.sync.is_ok(), "C4: a request whose sync failed is not tried again");
            match &mut self.backend {
                ChannelBackend::Ring(ring) if pending.request.file.descriptor().is_some() => {
                    ring.push(session, pending).inspect_err(|_| self.in_flight -= 1)?;
                    return Ok(end);
                }
                ChannelBackend::Pool(pool) if pending.request.file.descriptor().is_some() => {
                    pool.submit(pending);
                    return Ok(end);
                }
                _ => attempt = shared::attempt(session, pending).inspect_err(|_| self.in_flight -= 1)?,
            }
        }
    }

    fn refuse(&mut self, pending: Pending, error: impl FnOnce(&Pending) -> IoError) {
        self.land();
        let error = error(&pending);
        let Request { tag, buffer, .. } = pending.request;
        self.ready.push_back(Err(Failed { error, request: Some((tag, buffer)) }));
    }

    /// One request is with the caller again, or soon.
    fn land(&mut self) {
        assert!(self.in_flight > 0, "C1: what ends was in flight");
        self.in_flight -= 1;
    }

    fn complete(&mut self, session: &Session, pending: Pending, (end, taken_in): (Nanos, Nanos)) {
        let Pending { request, begin, left, delay, done, .. } = pending;
        let since = |at: Option<Nanos>| at.unwrap_or(end).saturating_sub(delay);
        let (begin, taken_in) = (since(begin), taken_in.max(end));
        let bytes = done as u64;
        let write = request.operation.writes();
        let times = RequestTimes { handed_over: since(left), begin, end, taken_in };
        let Request { stream, event, offset, .. } = request;
        let moved = Moved { stream, event, file: request.file.number(), offset, bytes };
        session.transferred(times, &moved);
        request.file.counters().add(write, bytes, end.saturating_sub(begin).0);
        self.land();
        self.ready.push_back(Ok(Completion {
            tag: request.tag,
            buffer: request.buffer,
            range: request.range.start..request.range.start + done,
        }));
    }
}

/// Counts a look for completions.
fn polled(session: &Session, begin: Nanos) {
    session.count(Statistic::CompletionPolls, 1);
    session.count(Statistic::CompletionPollTime, now().saturating_sub(begin).0);
}

fn sync_error(pending: &Pending, errno: Errno) -> IoError {
    IoError::operation("sync", pending.request.file.path(), errno)
}

fn cut_short(pending: &Pending) -> IoError {
    let request = &pending.request;
    if request.operation.writes() {
        return transfer_error(pending, Errno::IO);
    }
    IoError::CutShort {
        path: request.file.path().to_path_buf(),
        offset: request.offset,
        length: request.range.len(),
        found: request.file.length().unwrap_or(pending.rest().1),
    }
}

fn transfer_error(pending: &Pending, errno: Errno) -> IoError {
    let request = &pending.request;
    IoError::Transfer {
        operation: if request.operation.writes() { "write" } else { "read" },
        path: request.file.path().to_path_buf(),
        offset: request.offset,
        length: request.range.len(),
        source: noted(errno.into(), request.file.path()),
    }
}

#[cfg(test)]
mod tests;
