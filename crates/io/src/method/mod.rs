//! Channels: requests go in, completions come out.
//!
//! [`Method::channel`] opens a channel by one of the methods below; `submit` hands over a request
//! with its buffer, `wait` returns a finished one. Submissions collect until `flush` or `wait`, so
//! a batch costs one system call. Completions come in any order; the `tag` identifies each.
//!
//! The three methods are siblings: [`sync`], [`threads`] and [`uring`]. Sessions that share a
//! thread make their calls through its ring ([`shared`]). [`crate::ring_setup`] sets rings up;
//! [`ladder`] takes the best that is available. Each method moves one stretch of bytes at a time.
//! This file does the work that they share: it continues short transfers, repeats EINTR and EAGAIN,
//! names errors and records service times and waits.
//!
//! The service time of a request starts when it is handed to the kernel, not when it is queued.
//! That is the system call of `sync` or of a pool thread, or the enter of a ring. A call's end is
//! exact. A ring's completion is *seen* at the next enter, whatever that was for. So a session that
//! computes between two enters makes its device look slower, by that long at most.
//!
//! Invariants:
//! - C1 A buffer is with the caller or with the channel, never with both.
//! - C2 A channel that is dropped first waits for everything in flight, because
//!   the kernel may still write into the buffers.
//! - C3 `wait` names an event when nothing had arrived: it then enters the kernel
//!   once, to submit and to wait.
//! - C4 A failed sync is an error, whatever its errno: it is never repeated.

mod delay;
mod ladder;
mod shared;
mod sync;
mod threads;
mod uring;

use crate::arena::prefetch_arrived;
use crate::error::noted;
use crate::file::Sync;
use crate::{Arena, DirectIo, File, IoBuffer, IoError, ring_setup};
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

/// Method by which requests reach the kernel.
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
    /// Added before every request; zero for none.
    delay: Nanos,
}

/// State that the channels of a method share.
#[derive(Debug, Clone)]
enum MethodBackend {
    Session,
    Pool(Arc<Pool>),
    Ring(RingSetup, Quota),
    Ladder(Arc<Ladder>),
}

impl Method {
    /// Starts a method. `queue_depth` (1 to 4096) bounds the requests that a channel may have in
    /// flight, and so the threads of the pool. Rings get the best set-up that the kernel has.
    ///
    /// # Errors
    /// When the kernel refuses a ring or threads, with the limit that was hit.
    pub fn start(kind: MethodKind, queue_depth: usize) -> Result<Method, IoError> {
        Method::start_within(kind, queue_depth, &Quotas::default())
    }

    /// Starts a method within the program's own limits on threads and rings.
    ///
    /// # Errors
    /// The errors that [`Method::start`] returns, and those of such a limit.
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

    /// Starts the best of the methods from `kind` down. Each channel then gets the best available,
    /// and [`Method::replaced`] reports any lesser one. Nothing is refused.
    pub fn best_of(kind: MethodKind, queue_depth: usize, quotas: &Quotas) -> Method {
        Method::of(MethodBackend::Ladder(Arc::new(Ladder::new(kind, queue_depth, quotas))), queue_depth)
    }

    /// Starts io_uring with rings of this set-up and no other. The first request shows if
    /// a disk can be polled.
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

    /// Returns the method with `delay` added before every request, on average: an effect of known
    /// size, which an experiment has to find.
    #[must_use]
    pub fn delayed(self, delay: Nanos) -> Method {
        Method { delay, ..self }
    }

    /// Returns the method for channels that one thread hands to the next, because only a plain ring
    /// takes requests from threads other than its maker.
    pub fn for_any_thread(&self) -> Method {
        let backend = match &self.backend {
            MethodBackend::Ring(_, quota) => MethodBackend::Ring(RingSetup::Plain, quota.clone()),
            MethodBackend::Ladder(ladder) => MethodBackend::Ladder(Arc::new(ladder.for_any_thread())),
            other => other.clone(),
        };
        Method { backend, ..self.clone() }
    }

    /// Returns the kind; for the best available, the kind at the start.
    pub fn kind(&self) -> MethodKind {
        match &self.backend {
            MethodBackend::Session => MethodKind::Sync,
            MethodBackend::Pool(_) => MethodKind::Threads,
            MethodBackend::Ring(..) => MethodKind::IoUring,
            MethodBackend::Ladder(ladder) => ladder.kind(),
        }
    }

    /// Returns the counts of channels that got less than the best, with the reason. `None` where
    /// all got it, or where the method was requested by name.
    pub fn replaced(&self) -> Option<String> {
        if let MethodBackend::Ladder(ladder) = &self.backend { ladder.said() } else { None }
    }

    /// True if a channel may use this method.
    pub fn goes_by(&self, kind: MethodKind) -> bool {
        match &self.backend {
            MethodBackend::Ladder(ladder) => ladder.used(kind),
            _ => self.kind() == kind,
        }
    }

    /// Returns the set-up of its rings; `None` for the other methods.
    pub fn ring_setup(&self) -> Option<RingSetup> {
        match &self.backend {
            MethodBackend::Ring(setup, ..) => Some(*setup),
            MethodBackend::Ladder(ladder) => ladder.setup(),
            _ => None,
        }
    }

    /// Returns the requests that a channel may have in flight, 1 to 4096.
    pub fn queue_depth(&self) -> usize {
        self.queue_depth
    }

    /// Opens a channel for the calling thread. A ring registers `arenas`, so that the kernel need
    /// not pin and unpin their buffers for each request. Where the kernel refuses (a memlock
    /// limit), requests work unregistered, which the statistics show.
    ///
    /// # Errors
    /// When the kernel refuses a ring that was requested by name, with the limit that was hit.
    pub fn channel(&self, arenas: &[&Arena]) -> Result<Channel, IoError> {
        self.channel_to(&[], arenas)
    }

    /// Opens a channel for requests to certain files, which a ring registers. The kernel then need
    /// not look up the descriptor and count a reference for each request. Requests to other files
    /// work unregistered. A registered file stays open as long as the channel.
    ///
    /// # Errors
    /// The errors that [`Method::channel`] returns.
    pub fn channel_to(&self, files: &[&Arc<File>], arenas: &[&Arena]) -> Result<Channel, IoError> {
        self.channel_of(self.queue_depth, files, arenas)
    }

    /// Opens such a channel for `queue_depth` requests in flight (1 to 4096), for a session that
    /// issues more of them than others.
    ///
    /// # Errors
    /// The errors that [`Method::channel`] returns.
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
                // A smaller ring of the same kind is acceptable; of two
                // refusals the first is reported.
                let ring = open(Size::Whole).or_else(|error| open(Size::Small).map_err(|_| error))?;
                ChannelBackend::Ring(Box::new(ring))
            }
            MethodBackend::Ladder(ladder) => ladder.open(queue_depth, files, arenas),
        };
        Ok(self.channel_by(backend, queue_depth))
    }

    /// Opens a channel for one request at a time. The calling thread makes the call whatever the
    /// method, unless sessions share the thread ([`carry`]). A lone request through a ring would
    /// cost 2 to 4 us more, of the 15 us of CPU that a random read of 8K takes.
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

/// Transfer, and sync, that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Fills the buffer from the file.
    Read,
    /// Fills the buffer up to the end of the file; the completion's range says how far. For files
    /// whose length is no multiple of a block.
    ReadAtMost,
    /// Writes the buffer to the file.
    Write,
    /// Writes the buffer to the file; complete when the bytes are durable with the metadata needed
    /// to read them back (`RWF_DSYNC`).
    WriteDurable,
    /// Writes the buffer to the file, then makes all written bytes of the file durable (fdatasync).
    /// A ring links the two: one enter for both.
    WriteAndSync,
    /// Writes, then makes the bytes and all metadata of the file durable (fsync).
    WriteAndSyncAll,
}

impl Operation {
    /// True if the operation writes to the file.
    pub const fn writes(self) -> bool {
        !matches!(self, Operation::Read | Operation::ReadAtMost)
    }

    /// Returns the sync that follows the write, if any.
    const fn sync(self) -> Option<Sync> {
        match self {
            Operation::WriteAndSync => Some(Sync::Data),
            Operation::WriteAndSyncAll => Some(Sync::All),
            Operation::Read | Operation::ReadAtMost | Operation::Write | Operation::WriteDurable => None,
        }
    }
}

/// One request for bytes of a file.
#[derive(Debug)]
pub struct Request {
    /// Transfer, and sync, that the request asks for.
    pub operation: Operation,
    /// File that holds the bytes.
    pub file: Arc<File>,
    /// Byte offset in the file.
    pub offset: u64,
    /// The memory, owned by the channel until completion.
    pub buffer: IoBuffer,
    /// Part of the buffer to move, not empty.
    pub range: Range<usize>,
    /// Event of the session's waits for this request.
    pub event: Event,
    /// Purpose of the bytes, for statistics by stream.
    pub stream: IoStream,
    /// Caller's number, which the completion returns.
    pub tag: u64,
}

/// A request that succeeded in full.
#[derive(Debug)]
pub struct Completion {
    /// The caller's number from the request.
    pub tag: u64,
    /// The request's buffer, owned by the caller again.
    pub buffer: IoBuffer,
    /// The part that was moved; shorter only for [`Operation::ReadAtMost`].
    pub range: Range<usize>,
}

/// A request that failed, with its tag and buffer.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    /// The error, with file, offset and cure.
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

/// A request in flight: `done` bytes of it have been moved.
#[derive(Debug)]
struct Pending {
    request: Request,
    done: usize,
    /// Times at which the session handed it over, and at which it first went to the kernel.
    left: Option<Nanos>,
    begin: Option<Nanos>,
    /// The artificial delay before it, which counts as time of the device.
    delay: Nanos,
    /// Outcome of the sync after
    /// a complete [`Operation::WriteAndSync`] or [`Operation::WriteAndSyncAll`].
    sync: Result<(), Errno>,
    /// Seat of its session among those that share a ring.
    seat: usize,
}

impl Pending {
    fn new(request: Request) -> Pending {
        Pending { request, done: 0, left: None, begin: None, delay: Nanos(0), sync: Ok(()), seat: 0 }
    }

    /// Notes that the session hands it over; only the first call counts.
    fn leaves(&mut self, at: Nanos) {
        self.left.get_or_insert(at);
    }

    /// Notes that it goes to the kernel; only the first call counts.
    fn begins(&mut self, at: Nanos) {
        self.leaves(at);
        self.begin.get_or_insert(at);
    }

    /// Returns the bytes left to move: their range in the buffer and their offset in the file.
    fn rest(&self) -> (Range<usize>, u64) {
        (self.request.range.start + self.done..self.request.range.end, self.request.offset + self.done as u64)
    }

    /// Prefetches the bytes that it has read, because the session reads them next.
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
    /// Time at which it ended, or was seen to have ended.
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
    /// Empty between calls; kept to reuse its memory.
    attempts: Vec<Attempt>,
}

impl Channel {
    /// Returns the requests submitted and not yet given back.
    pub fn outstanding(&self) -> usize {
        self.in_flight + self.ready.len()
    }

    /// True if a request can be submitted without waiting for another one to end.
    pub fn has_room(&self) -> bool {
        self.in_flight < self.queue_depth
    }

    /// Hands over a request. The synchronous method carries it out at once; the others
    /// send it with the next `flush` or `wait`. When the queue is full, the session
    /// first waits for a completion.
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
        // Files in memory have no descriptor, which a pool or a ring needs.
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

    /// Sends the submitted requests to the kernel.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn flush(&mut self, session: &Session) -> Result<(), IoError> {
        if let ChannelBackend::Ring(ring) = &mut self.backend {
            ring.enter(session)?;
        }
        Ok(())
    }

    /// Sends the submitted requests and records the call as a wait for `event`, however short. For
    /// sessions whose submissions must show in the report.
    ///
    /// # Errors
    /// When the ring itself fails.
    pub fn flush_as(&mut self, session: &Session, event: Event) -> Result<(), IoError> {
        if let ChannelBackend::Ring(ring) = &mut self.backend {
            ring.enter_as(session, event)?;
        }
        Ok(())
    }

    /// Returns the next completion, after waiting for it under `event` if none has arrived.
    ///
    /// # Errors
    /// When the request failed; the error returns its tag and its buffer.
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

    /// Carries out one request, waits for it under its event and returns the bytes moved. Puts the
    /// buffer back into `buffer`, also after an error, unless the ring itself failed.
    ///
    /// # Errors
    /// When the transfer or its sync failed.
    ///
    /// # Panics
    /// When another request is outstanding.
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

    /// Waits until nothing is in flight and drops all results, when work is given up.
    pub fn abandon(&mut self, session: &Session, event: Event) {
        loop {
            self.ready.clear();
            let before = self.in_flight;
            // A failed ring returns nothing more; dropping it keeps the buffers from being reused.
            if before == 0 || (self.collect(session, Some(event)).is_err() && self.in_flight == before) {
                return;
            }
        }
    }

    /// Returns a completion if one has arrived, without waiting.
    ///
    /// # Errors
    /// The errors that [`Channel::wait`] returns.
    pub fn poll(&mut self, session: &Session) -> Result<Option<Completion>, Failed> {
        if self.ready.is_empty() && self.in_flight > 0 {
            let begin = now();
            let collected = self.collect(session, None);
            polled(session, begin);
            collected?;
        }
        self.ready.pop_front().transpose()
    }

    /// True if the kernel, or a thread of the pool, may have ended a request.
    fn may_have_arrived(&self) -> bool {
        match &self.backend {
            ChannelBackend::Sync => false,
            ChannelBackend::Pool(_) => self.in_flight > 0,
            ChannelBackend::Ring(ring) => self.in_flight > ring.unsent(),
        }
    }

    /// Takes arrived completions without a system call.
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

    /// Takes arrived completions; with an event, waits until one has arrived.
    fn collect(&mut self, session: &Session, event: Option<Event>) -> Result<(), IoError> {
        let wait = event.map(|event| (event, session.begin_wait()));
        let mut attempts = std::mem::take(&mut self.attempts);
        let mut end = None;
        match &mut self.backend {
            ChannelBackend::Sync => {}
            ChannelBackend::Pool(pool) => pool.collect(event.is_some(), &mut attempts),
            // Other sessions of this thread run until a completion has arrived.
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

    /// Settles all attempts, also after an error, and keeps their memory for the next ones.
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

    /// Settles an attempt: completes or fails the request, or tries again. Returns the
    /// end of its last attempt.
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
                    // Direct I/O can continue only from an aligned offset. Short transfers of the
                    // device end at one; another end is the end of the file.
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

    /// One request leaves the channel.
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

/// Counts one poll for completions and its time.
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
