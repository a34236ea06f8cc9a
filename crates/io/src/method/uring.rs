//! io_uring: a ring of the session's own.
//!
//! The thread that uses the ring makes it, with one issuer and deferred task work where the kernel
//! has them ([`crate::ring_setup`]). Completions are then processed when this thread enters the
//! kernel, and never interrupt it. Arenas are registered as fixed buffers, so that pages are not
//! pinned each time. On bare metal that halves the CPU of a 128K request and quarters that of 512K.
//! Registering files saves a reference count a request.
//!
//! Entries are pushed without a system call; `enter` submits them all at once.
//! A request that is in the ring lives in `flights`, so its buffer and its file
//! stay until the kernel is done (invariant C2: drop waits).
//!
//! A write with a sync is two linked entries: the kernel starts the sync when the write has moved
//! every byte, and cancels it otherwise. Both are pushed at once, because a link ends where a
//! submission ends. The flight ends when both have completed:
//!
//! ```text
//! user data     = place of the flight * 2 + 1 if it is the sync
//! write short   -> sync ECANCELED  -> the rest is written and synced by a new pair
//! write whole   -> sync 0 or errno -> done, or a failed sync, which is never repeated
//! ```

use super::{Attempt, Operation, Pending, RingSetup};
use crate::file::Sync;
use crate::{Arena, File, IoError, ring_probe, ring_setup};
use io_uring::{IoUring, opcode, squeue, types};
use plumb_events::{Event, Session, Statistic, now};
use plumb_host::limits::{self, Quota, Share};
use plumb_units::{Bytes, Nanos};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{io, thread};

pub(super) struct RingChannel {
    ring: IoUring,
    setup: RingSetup,
    /// Requests in flight, by the user data of their entries.
    flights: Vec<Option<Flight>>,
    vacant: Vec<usize>,
    /// Number of entries pushed since the last enter, and the places of their requests.
    unsent: usize,
    unsent_flights: Vec<usize>,
    /// Places of complete requests that are not yet taken, and the times at which they were seen.
    seen: Vec<(usize, Nanos)>,
    arenas: Vec<Arena>,
    files: Vec<Arc<File>>,
    /// Event under which submissions are recorded; `None`: only those that block.
    named: Option<Event>,
    /// The reason for which the arenas are not registered.
    unregistered: Option<String>,
    // Shares of limits, held as long as the ring.
    _registered: Registered,
    _share: Share,
}

/// A request that the kernel has.
#[derive(Debug)]
struct Flight {
    pending: Pending,
    /// Completions that have not arrived: 1, or 2 with a sync.
    awaited: u8,
    /// Outcome of the transfer; meaningless while it is awaited.
    moved: Result<usize, Errno>,
}

impl std::fmt::Debug for RingChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingChannel")
            .field("setup", &self.setup)
            .field("flights", &self.flights.len())
            .finish_non_exhaustive()
    }
}

/// Returns the entries of a ring for this queue depth: at least 2, because a linked pair must fit.
pub(super) fn entries(queue_depth: usize) -> u32 {
    u32::try_from(queue_depth.next_power_of_two().max(2)).unwrap_or(4096)
}

/// Number of a ring's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// One entry for each request in flight.
    Whole,
    /// Fewer entries, submitted in parts, with room for all completions.
    Small,
}

const SMALL_ENTRIES: u32 = 4;

impl Size {
    /// Returns the entries for submissions and for completions.
    fn entries(self, queue_depth: usize) -> (u32, u32) {
        let whole = entries(queue_depth);
        match self {
            Size::Whole => (whole, 2 * whole),
            Size::Small => (whole.min(SMALL_ENTRIES), whole.max(2 * SMALL_ENTRIES)),
        }
    }

    /// Returns the memory that the kernel locks for such a ring. One mapping has 64 bytes a
    /// submission. The other has 4 more bytes a submission, 16 a completion and the queue heads.
    fn memory(self, queue_depth: usize) -> Bytes {
        let (submissions, completions) = self.entries(queue_depth);
        let page = rustix::param::page_size() as u64;
        let queues = 256 + 4 * u64::from(submissions) + 16 * u64::from(completions);
        Bytes((64 * u64::from(submissions)).next_multiple_of(page) + queues.next_multiple_of(page))
    }
}

/// Retries of a ring that finds no lockable memory, because the kernel releases a closed ring's
/// memory some time after the close.
const CLOSING: Duration = Duration::from_millis(1);
const CLOSING_TRIES: usize = 50;

impl RingChannel {
    /// Opens a ring within `quota`, the limit on rings.
    pub(super) fn open(
        (setup, queue_depth, size): (RingSetup, usize, Size),
        arenas: &[&Arena],
        files: &[&Arc<File>],
        quota: &Quota,
    ) -> Result<RingChannel, IoError> {
        let (submissions, completions) = size.entries(queue_depth);
        let memory = size.memory(queue_depth);
        let refuse = |error| refused(setup, memory, quota.taken() as u64, &error);
        let share = quota.ring().map_err(refuse)?;
        let mut ring = ring_setup::build_with(setup, submissions, completions);
        for _ in 0..CLOSING_TRIES {
            // These milliseconds come before the channel's work, so no event records them.
            if !ring.as_ref().is_err_and(|error| Errno::from_io_error(error) == Some(Errno::NOMEM)) {
                break;
            }
            thread::sleep(CLOSING);
            ring = ring_setup::build_with(setup, submissions, completions);
        }
        let ring = ring.map_err(refuse)?;
        let (arenas, registered, unregistered) = match register_arenas(&ring, arenas) {
            Ok((arenas, registered)) => (arenas, registered, None),
            Err(why) => (Vec::new(), Registered(0), Some(why)),
        };
        Ok(RingChannel {
            arenas,
            files: register_files(&ring, files),
            ring,
            setup,
            flights: Vec::new(),
            vacant: Vec::new(),
            unsent: 0,
            unsent_flights: Vec::new(),
            seen: Vec::new(),
            named: None,
            unregistered,
            _registered: registered,
            _share: share,
        })
    }

    /// Returns the reason for which its buffers are not registered.
    pub(super) fn unregistered(&self) -> Option<&str> {
        self.unregistered.as_deref()
    }

    /// Returns the number of requests not yet submitted.
    pub(super) fn unsent(&self) -> usize {
        self.unsent_flights.len()
    }

    pub(super) fn push(&mut self, session: &Session, mut pending: Pending) -> Result<(), IoError> {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        if self.setup == RingSetup::SubmissionPolling {
            // The kernel's thread takes it from memory at once.
            pending.begins(now());
        }
        let target = self.target(&pending.request.file);
        let transfer = self.transfer(session, &pending, &target).user_data(place as u64 * 2);
        let sync = pending.request.operation.sync();
        self.flights[place] =
            Some(Flight { pending, awaited: 1 + u8::from(sync.is_some()), moved: Err(Errno::INPROGRESS) });
        session.count(Statistic::RingRequests, 1);
        session.count(Statistic::RingFixedFileRequests, u64::from(target.registered()));
        let pushed = if let Some(sync) = sync {
            let flags = match sync {
                Sync::Data => types::FsyncFlags::DATASYNC,
                Sync::All => types::FsyncFlags::empty(),
            };
            let sync = opcode::Fsync::new(target.fd).flags(flags).build();
            let sync = sync.flags(target.flags).user_data(place as u64 * 2 + 1);
            self.push_entries(session, &[transfer.flags(squeue::Flags::IO_LINK), sync])
        } else {
            self.push_entries(session, &[transfer])
        };
        match pushed {
            Ok(()) => self.unsent_flights.push(place),
            Err(_) => {
                // The kernel never saw this request.
                self.flights[place] = None;
                self.vacant.push(place);
            }
        }
        pushed
    }

    /// Pushes linked entries together, after making room if needed.
    fn push_entries(&mut self, session: &Session, entries: &[squeue::Entry]) -> Result<(), IoError> {
        // SAFETY: the entries point into the buffer and name the descriptor of a request stored in
        // `flights`, which outlives the kernel's use (C2).
        #[allow(unsafe_code)]
        while unsafe { self.ring.submission().push_multiple(entries) }.is_err() {
            self.enter(session)?;
            if self.setup == RingSetup::SubmissionPolling {
                // The kernel's thread takes entries at its own pace.
                self.ring.submitter().squeue_wait().map_err(ring_failed)?;
            }
        }
        self.unsent += entries.len();
        Ok(())
    }

    fn target(&self, file: &Arc<File>) -> Target {
        match self.files.iter().position(|registered| Arc::ptr_eq(registered, file)) {
            Some(index) => Target { fd: types::Fd(index as i32), flags: squeue::Flags::FIXED_FILE },
            None => {
                let fd = file.descriptor().expect("files in memory go another way");
                Target { fd: types::Fd(fd.as_raw_fd()), flags: squeue::Flags::empty() }
            }
        }
    }

    fn transfer(&self, session: &Session, pending: &Pending, target: &Target) -> squeue::Entry {
        let request = &pending.request;
        let (range, offset) = pending.rest();
        let length = u32::try_from(range.len()).expect("requests are at most 1 GiB");
        let start = request.buffer[range].as_ptr();
        let fixed = self.arenas.iter().position(|arena| arena.owns(&request.buffer));
        session.count(Statistic::RingFixedRequests, u64::from(fixed.is_some()));
        let flags = if request.operation == Operation::WriteDurable { libc::RWF_DSYNC } else { 0 };
        let fd = target.fd;
        let entry = match (request.operation, fixed) {
            (Operation::Read | Operation::ReadAtMost, Some(index)) => {
                opcode::ReadFixed::new(fd, start.cast_mut(), length, index as u16).offset(offset).build()
            }
            (Operation::Read | Operation::ReadAtMost, None) => {
                opcode::Read::new(fd, start.cast_mut(), length).offset(offset).build()
            }
            (_, Some(index)) => opcode::WriteFixed::new(fd, start, length, index as u16)
                .offset(offset)
                .rw_flags(flags)
                .build(),
            (_, None) => opcode::Write::new(fd, start, length).offset(offset).rw_flags(flags).build(),
        };
        entry.flags(target.flags)
    }

    pub(super) fn enter(&mut self, session: &Session) -> Result<(), IoError> {
        if self.unsent == 0 {
            return Ok(());
        }
        self.enter_kernel(session, Wait::No, now()).map(|_| ())
    }

    /// Submits all pushed entries without waiting; records the call as a wait for `event`.
    pub(super) fn enter_as(&mut self, session: &Session, event: Event) -> Result<(), IoError> {
        self.named = Some(event);
        let entered = self.enter(session);
        self.named = None;
        entered
    }

    /// Submits all pushed entries and sees completions. It is `begin` now; returns
    /// the time after the call.
    fn enter_kernel(&mut self, session: &Session, wait: Wait, begin: Nanos) -> Result<Nanos, IoError> {
        // A submission thread that is awake needs no system call.
        let told = wait != Wait::No
            || self.setup != RingSetup::SubmissionPolling
            || self.ring.submission().need_wakeup();
        session.count(Statistic::RingEnters, u64::from(told));
        // The caller's wait for completions has a name already.
        let named = self.named.filter(|_| wait == Wait::No).map(|event| (event, session.begin_wait()));
        let entered = match (wait, self.setup) {
            (Wait::No, RingSetup::Plain | RingSetup::Cooperative | RingSetup::Deferred) => self.peek(),
            (Wait::No, _) => self.ring.submit(),
            (Wait::Long, _) => self.ring.submit_and_wait(1),
            (Wait::AtMost(most), _) => {
                let time = types::Timespec::from(Duration::from_nanos(most.0));
                self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&time))
            }
        };
        let end = now();
        match named {
            Some((event, begin)) => session.end_wait_at(event, begin, end),
            None if wait == Wait::No => note_stall(session, begin, end),
            None => {}
        }
        self.entered(entered, begin)?;
        let before = self.seen.len();
        self.see(end);
        if wait == Wait::No {
            let seen = self.seen[before..].iter().filter_map(|(place, _)| self.flights[*place].as_ref());
            let at_once = seen.filter(|flight| flight.pending.begin == Some(begin)).count();
            session.count(Statistic::RingCompleteAtOnce, at_once as u64);
        }
        Ok(end)
    }

    /// Takes the result of an enter: all entries are sent, unless it
    /// was interrupted and is repeated.
    fn entered(&mut self, result: io::Result<usize>, begin: Nanos) -> Result<(), IoError> {
        match result {
            Ok(_) => {
                self.unsent = 0;
                for place in self.unsent_flights.drain(..) {
                    if let Some(flight) = &mut self.flights[place] {
                        flight.pending.begins(begin);
                    }
                }
                Ok(())
            }
            Err(error) if harmless(&error) => Ok(()),
            Err(error) => Err(ring_failed(error)),
        }
    }

    /// Takes completions. If there is none, enters the kernel, and waits there for one if
    /// the session waits (`waits_since`: a time just read). Returns the time after the
    /// enter, if it made one.
    pub(super) fn collect(
        &mut self,
        session: &Session,
        waits_since: Option<Nanos>,
        into: &mut Vec<Attempt>,
    ) -> Result<Option<Nanos>, IoError> {
        let mut end = None;
        if self.seen.is_empty() && self.ring.completion().is_empty() {
            let wait = if waits_since.is_some() { Wait::Long } else { Wait::No };
            end = Some(self.enter_kernel(session, wait, waits_since.unwrap_or_else(now))?);
        }
        self.drain(into);
        Ok(end)
    }

    /// Submits all pushed entries and sees completions. If there is none, waits for one, for `most`
    /// at most. It is `begin` now; returns the time afterwards.
    pub(super) fn exchange(
        &mut self,
        session: &Session,
        begin: Nanos,
        most: Option<Nanos>,
    ) -> Result<Nanos, IoError> {
        let is_there = !self.seen.is_empty() || !self.ring.completion().is_empty();
        let wait = match most {
            Some(Nanos(0)) => Wait::No,
            _ if is_there => Wait::No,
            Some(most) => Wait::AtMost(most),
            None => Wait::Long,
        };
        if is_there && self.unsent == 0 {
            self.see(begin);
            return Ok(begin);
        }
        self.enter_kernel(session, wait, begin)
    }

    /// Returns the place, seat and time of the requests seen to be complete since the last call.
    pub(super) fn landed(&mut self) -> impl Iterator<Item = (usize, usize, Nanos)> {
        let flights = &self.flights;
        let seat = |place: usize| flights[place].as_ref().expect("C1: it is not taken in twice").pending.seat;
        self.seen.drain(..).map(move |(place, at)| (place, seat(place), at))
    }

    /// Prefetches the bytes of a complete request, which its session reads next.
    pub(super) fn expects_a_look(&self, place: usize) {
        if let Some(flight) = &self.flights[place] {
            flight.pending.expects_a_look();
        }
    }

    /// Takes a request that was seen to be complete at `end`.
    pub(super) fn take(&mut self, place: usize, end: Nanos) -> Attempt {
        let Flight { pending, moved, .. } = self.flights[place].take().expect("C1: it is not taken in twice");
        self.vacant.push(place);
        Attempt { pending, result: moved, end }
    }

    /// Replaces the ring's descriptor, so that every enter fails.
    #[cfg(test)]
    pub(super) fn close_for_test(&self) {
        let null = std::fs::File::open("/dev/null").expect("it is there");
        // SAFETY: the descriptor stays open, on another file; the ring
        // finds that no enter succeeds.
        #[allow(unsafe_code)]
        let end = unsafe { libc::dup2(null.as_raw_fd(), self.ring.as_raw_fd()) };
        assert!(end >= 0, "dup2");
    }

    /// Returns the seats of requests in flight.
    pub(super) fn seats(&self) -> impl Iterator<Item = usize> {
        self.flights.iter().flatten().filter(|flight| flight.awaited > 0).map(|flight| flight.pending.seat)
    }

    /// Takes completions without entering the kernel.
    pub(super) fn drain(&mut self, into: &mut Vec<Attempt>) {
        if !self.ring.completion().is_empty() {
            self.see(now());
        }
        let mut seen = std::mem::take(&mut self.seen);
        into.extend(seen.drain(..).map(|(place, end)| self.take(place, end)));
        self.seen = seen;
    }

    /// Takes the entries of the completion queue, seen at `at`.
    fn see(&mut self, at: Nanos) {
        for entry in self.ring.completion() {
            let place = (entry.user_data() / 2) as usize;
            let flight =
                self.flights[place].as_mut().expect("C1: a completion belongs to a request in flight");
            flight.arrived(entry.user_data() % 2 == 1, entry.result());
            if flight.awaited == 0 {
                self.seen.push((place, at));
            }
        }
    }

    /// Submits without waiting, and runs deferred completions: the kernel does so only in an
    /// enter that asks for events.
    fn peek(&mut self) -> io::Result<usize> {
        const GETEVENTS: u32 = 1;
        let unsent = u32::try_from(self.ring.submission().len()).unwrap_or(0);
        // SAFETY: no argument is passed; the entries are those pushed above.
        #[allow(unsafe_code)]
        unsafe {
            self.ring.submitter().enter::<libc::sigset_t>(unsent, 0, GETEVENTS, None)
        }
    }
}

/// Wait of an enter for a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    No,
    AtMost(Nanos),
    Long,
}

/// A submission is CPU time of some microseconds and no wait. One that takes this long has slept.
const STALL: Nanos = Nanos(1_000_000);

/// Records the time for which a submission blocked in the kernel.
fn note_stall(session: &Session, begin: Nanos, end: Nanos) {
    if end.saturating_sub(begin) >= STALL {
        session.waited(Event::DbFileAsyncIoSubmit, begin, end);
    }
}

/// Name of a file in an entry: its descriptor, or its index among the registered files.
struct Target {
    fd: types::Fd,
    flags: squeue::Flags,
}

impl Target {
    fn registered(&self) -> bool {
        self.flags.contains(squeue::Flags::FIXED_FILE)
    }
}

impl Flight {
    /// Takes a completion of the transfer or of the linked sync.
    fn arrived(&mut self, sync: bool, result: i32) {
        let result = usize::try_from(result).map_err(|_| Errno::from_raw_os_error(-result));
        assert!(self.awaited > 0, "C1: a completion comes once");
        self.awaited -= 1;
        if sync {
            self.pending.sync = result.map(|_| ());
        } else {
            self.moved = result;
        }
    }
}

impl Drop for RingChannel {
    fn drop(&mut self) {
        let mut abandoned = Vec::new();
        while self.flights.iter().flatten().any(|flight| flight.awaited > 0) {
            if let Err(error) = self.ring.submit_and_wait(1)
                && !harmless(&error)
            {
                // The kernel may still write into these buffers, so they leak.
                std::mem::forget(std::mem::take(&mut self.flights));
                return;
            }
            self.drain(&mut abandoned);
        }
    }
}

/// True if nothing was lost: the call was interrupted, the completion queue is full,
/// or a wait timed out.
fn harmless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN | libc::ETIME))
}

/// Bytes registered by all rings of this process: at most half of the lockable memory. Rings are
/// locked too, and a session without a ring is worse off than one without registered buffers.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// A ring's part of [`REGISTERED`], returned on drop.
#[derive(Debug)]
struct Registered(u64);

impl Registered {
    fn take(bytes: u64, most: u64) -> Option<Registered> {
        let add = |taken: u64| taken.checked_add(bytes).filter(|sum| *sum <= most);
        REGISTERED.fetch_update(Relaxed, Relaxed, add).ok().map(|_| Registered(bytes))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        REGISTERED.fetch_sub(self.0, Relaxed);
    }
}

/// Registers the arenas, all or none: a ring without them is slower, but works.
///
/// # Errors
/// The reason, with the limit and its cure.
fn register_arenas(ring: &IoUring, arenas: &[&Arena]) -> Result<(Vec<Arena>, Registered), String> {
    if arenas.is_empty() {
        return Ok((Vec::new(), Registered(0)));
    }
    let span = |arena: &&Arena| {
        let (start, length) = arena.span();
        libc::iovec { iov_base: start.cast(), iov_len: length }
    };
    let spans: Vec<libc::iovec> = arenas.iter().map(span).collect();
    let bytes = spans.iter().map(|span| span.iov_len as u64).sum();
    let share = limits::lockable().map_or(u64::MAX, |limit| limit / 2);
    let registered = Registered::take(bytes, share).ok_or_else(|| {
        let (limit, cure) = limits::locked(Bytes(bytes), limits::pinned());
        format!("registered buffers may have half of what can be locked: {limit}; {cure}")
    })?;
    // SAFETY: the mappings live as long as `arenas`, which the channel keeps.
    #[allow(unsafe_code)]
    let result = unsafe { ring.submitter().register_buffers(&spans) };
    match result {
        Ok(()) => Ok((arenas.iter().map(|arena| (*arena).clone()).collect(), registered)),
        Err(error) => {
            let (limit, cure) = limits::locked(Bytes(bytes), limits::pinned());
            Err(format!("io_uring_register failed: {error}: {limit}; {cure}"))
        }
    }
}

/// Registers the files, all or none; a file in memory has no descriptor to register.
fn register_files(ring: &IoUring, files: &[&Arc<File>]) -> Vec<Arc<File>> {
    let descriptors: Option<Vec<i32>> =
        files.iter().map(|file| Some(file.descriptor()?.as_raw_fd())).collect();
    match descriptors {
        Some(descriptors) if !descriptors.is_empty() => match ring.submitter().register_files(&descriptors) {
            Ok(()) => files.iter().map(|file| Arc::clone(file)).collect(),
            Err(_) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the error of a refused ring, with the limit that was hit. `open` is the number of rings
/// of this size that lock memory already.
pub(super) fn refused(setup: RingSetup, memory: Bytes, open: u64, error: &io::Error) -> IoError {
    let with = if setup == RingSetup::Plain { String::new() } else { format!(" with {setup}") };
    let (why, cure) = match Errno::from_io_error(error) {
        Some(Errno::INVAL) => {
            ("the kernel does not know it".to_string(), format!("use a kernel of {} or later", setup.since()))
        }
        Some(Errno::NOMEM) => limits::locked(memory, Bytes(limits::pinned().0 + open * memory.0)),
        Some(Errno::MFILE) => limits::files(),
        Some(Errno::AGAIN) => ("a thread of the kernel could not be started".to_string(), limits::threads(1)),
        _ => ring_probe::explain_ring(error),
    };
    IoError::MethodUnsupported {
        method: "io_uring",
        why: format!("io_uring_setup{with} failed: {error}: {why}"),
        cure,
    }
}

fn ring_failed(error: io::Error) -> IoError {
    IoError::operation("enter the ring for", Path::new("io_uring"), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_events::{Recorder, Role, SessionKind};

    #[test]
    fn a_submission_that_stands_has_a_name_and_a_short_one_is_no_wait() {
        let recorder = Recorder::new();
        let session = recorder.session(Role::User);
        let before = recorder.snapshot();
        note_stall(&session, Nanos(5_000_000), Nanos(5_900_000));
        note_stall(&session, Nanos(5_000_000), Nanos(8_000_000));
        let waits =
            recorder.snapshot().since(&before).event(Event::DbFileAsyncIoSubmit, SessionKind::Foreground);
        assert_eq!(waits.count, 1);
        assert!(waits.time >= Nanos(3_000_000));
    }
}
