//! io_uring: a ring of the session's own.
//!
//! The ring is made by the thread that uses it, with one issuer and deferred
//! task work where the kernel has them ([`super::setup`]): completions are then
//! processed when this thread enters the kernel, and never interrupt it. Arenas
//! are registered as fixed buffers: on bare metal that halves the CPU of a 128K
//! request and quarters that of 512K, because pages are not pinned each time.
//! Files may be registered too, which saves a reference count a request.
//!
//! Entries are pushed without a system call; `enter` submits them all at once.
//! A request that is in the ring lives in `flights`, so its buffer and its file
//! stay until the kernel is done (invariant C2: drop waits).
//!
//! A write that is to be synced is two entries, linked: the kernel begins the
//! sync when the write has moved every byte, and cancels it otherwise. Both are
//! pushed at once, for a link ends where a submission ends. The flight is over
//! when both have completed:
//!
//! ```text
//! user data     = place of the flight * 2 + 1 if it is the sync
//! write short   -> sync ECANCELED  -> the rest is written and synced by a new pair
//! write whole   -> sync 0 or errno -> done, or a failed sync, which is never repeated
//! ```

use super::{Attempt, Operation, Pending, RingSetup};
use crate::{Arena, File, IoError};
use io_uring::{IoUring, opcode, squeue, types};
use plumb_events::{Event, Session, Statistic, now};
use plumb_units::Nanos;
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

pub(super) struct RingChannel {
    ring: IoUring,
    setup: RingSetup,
    /// Requests in the kernel's hands, by the user data of their entries.
    flights: Vec<Option<Flight>>,
    vacant: Vec<usize>,
    /// Entries pushed since the last enter.
    unsent: usize,
    arenas: Vec<Arena>,
    files: Vec<Arc<File>>,
}

/// A request in the kernel's hands.
#[derive(Debug)]
struct Flight {
    pending: Pending,
    /// Completions that have not come.
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

/// The entries of a ring for so many requests: a linked pair must fit even into the smallest.
pub(super) fn entries(queue_depth: usize) -> u32 {
    u32::try_from(queue_depth.next_power_of_two().max(2)).unwrap_or(4096)
}

impl RingChannel {
    pub(super) fn open(
        setup: RingSetup,
        queue_depth: usize,
        arenas: &[&Arena],
        files: &[&Arc<File>],
    ) -> Result<RingChannel, IoError> {
        let ring = setup.build(entries(queue_depth)).map_err(|error| refused(setup, &error))?;
        Ok(RingChannel {
            arenas: register_arenas(&ring, arenas),
            files: register_files(&ring, files),
            ring,
            setup,
            flights: Vec::new(),
            vacant: Vec::new(),
            unsent: 0,
        })
    }

    pub(super) fn push(&mut self, session: &Session, pending: Pending) -> Result<(), IoError> {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        let target = self.target(&pending.request.file);
        let transfer = self.transfer(session, &pending, &target).user_data(place as u64 * 2);
        let synced = pending.request.operation == Operation::WriteAndSync;
        self.flights[place] =
            Some(Flight { pending, awaited: 1 + u8::from(synced), moved: Err(Errno::INPROGRESS) });
        session.count(Statistic::RingRequests, 1);
        session.count(Statistic::RingFixedFileRequests, u64::from(target.registered()));
        let pushed = if synced {
            let sync = opcode::Fsync::new(target.fd).flags(types::FsyncFlags::DATASYNC).build();
            let sync = sync.flags(target.flags).user_data(place as u64 * 2 + 1);
            self.push_entries(session, &[transfer.flags(squeue::Flags::IO_LINK), sync])
        } else {
            self.push_entries(session, &[transfer])
        };
        pushed.inspect_err(|_| {
            // The kernel never saw this one.
            self.flights[place] = None;
            self.vacant.push(place);
        })
    }

    /// Puts entries that belong together into the ring, making room if need be.
    fn push_entries(&mut self, session: &Session, entries: &[squeue::Entry]) -> Result<(), IoError> {
        // SAFETY: the entries point into the buffer and name the descriptor of a
        // request that is stored in `flights`, which outlives the kernel's use (C2).
        #[allow(unsafe_code)]
        while unsafe { self.ring.submission().push_multiple(entries) }.is_err() {
            self.enter(session, 0)?;
            if self.setup == RingSetup::SubmissionPolling {
                // The kernel's thread takes them in its own time.
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

    /// Submits what was pushed and waits for `want` completions.
    pub(super) fn enter(&mut self, session: &Session, want: usize) -> Result<(), IoError> {
        if self.unsent == 0 && want == 0 {
            return Ok(());
        }
        // A kernel thread that is awake sees the entries without being told.
        let told =
            want > 0 || self.setup != RingSetup::SubmissionPolling || self.ring.submission().need_wakeup();
        session.count(Statistic::RingEnters, u64::from(told));
        // To wait for completions is the caller's wait, which has a name already.
        let begin = (want == 0).then(now);
        let entered = self.ring.submit_and_wait(want);
        if let Some(begin) = begin {
            note_stall(session, begin);
        }
        self.entered(entered)
    }

    /// What came of an enter: all is sent, unless it was interrupted and is repeated.
    fn entered(&mut self, result: io::Result<usize>) -> Result<(), IoError> {
        match result {
            Ok(_) => {
                self.unsent = 0;
                Ok(())
            }
            Err(error) if harmless(&error) => Ok(()),
            Err(error) => Err(ring_failed(error)),
        }
    }

    pub(super) fn collect(
        &mut self,
        session: &Session,
        wait: bool,
        into: &mut Vec<Attempt>,
    ) -> Result<(), IoError> {
        if self.ring.completion().is_empty() {
            if wait {
                self.enter(session, 1)?;
            } else {
                // Deferred task work runs only inside an enter that asks for events.
                session.count(Statistic::RingEnters, 1);
                let begin = now();
                let peeked = self.peek();
                note_stall(session, begin);
                peeked?;
            }
        }
        self.drain(into);
        Ok(())
    }

    /// What lies in the completion queue, without entering the kernel.
    pub(super) fn drain(&mut self, into: &mut Vec<Attempt>) {
        for entry in self.ring.completion() {
            let place = (entry.user_data() / 2) as usize;
            let flight =
                self.flights[place].as_mut().expect("C1: a completion belongs to a request in flight");
            flight.arrived(entry.user_data() % 2 == 1, entry.result());
            if flight.awaited == 0
                && let Some(Flight { pending, moved, .. }) = self.flights[place].take()
            {
                self.vacant.push(place);
                into.push(Attempt { pending, result: moved });
            }
        }
    }

    /// Submits and runs deferred completions without waiting.
    fn peek(&mut self) -> Result<(), IoError> {
        const GETEVENTS: u32 = 1;
        let unsent = u32::try_from(self.ring.submission().len()).unwrap_or(0);
        // SAFETY: no argument is passed; the entries are those pushed above.
        #[allow(unsafe_code)]
        let entered = unsafe { self.ring.submitter().enter::<libc::sigset_t>(unsent, 0, GETEVENTS, None) };
        self.entered(entered)
    }
}

/// A submission does not wait as a rule; it costs microseconds of CPU time, which
/// are no wait. One that takes this long has slept.
const STALL: Nanos = Nanos(1_000_000);

/// Names the time that a submission stood in the kernel.
fn note_stall(session: &Session, begin: Nanos) {
    let end = now();
    if end.saturating_sub(begin) >= STALL {
        session.waited(Event::DbFileAsyncIoSubmit, begin, end);
    }
}

/// How an entry names its file: by descriptor, or by its place among the registered ones.
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
    /// Takes in a completion of the transfer or of the sync linked to it.
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
        while self.flights.iter().any(Option::is_some) {
            if let Err(error) = self.ring.submit_and_wait(1)
                && !harmless(&error)
            {
                // The kernel may still write into these buffers: leak them rather than free them.
                std::mem::forget(std::mem::take(&mut self.flights));
                return;
            }
            self.drain(&mut abandoned);
        }
    }
}

/// Nothing was lost: interrupted, or the completion queue must be emptied first.
fn harmless(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

/// Registers the arenas, all or none: a ring without them works, only slower.
fn register_arenas(ring: &IoUring, arenas: &[&Arena]) -> Vec<Arena> {
    if arenas.is_empty() {
        return Vec::new();
    }
    let spans: Vec<libc::iovec> = arenas
        .iter()
        .map(|arena| {
            let (start, length) = arena.span();
            libc::iovec { iov_base: start.cast(), iov_len: length }
        })
        .collect();
    // SAFETY: the mappings live as long as `arenas`, which the channel keeps.
    #[allow(unsafe_code)]
    let result = unsafe { ring.submitter().register_buffers(&spans) };
    match result {
        Ok(()) => arenas.iter().map(|arena| (*arena).clone()).collect(),
        Err(_) => Vec::new(),
    }
}

/// Registers the files, all or none. Files in memory have nothing to register.
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

pub(super) fn refused(setup: RingSetup, error: &io::Error) -> IoError {
    let unknown = error.raw_os_error() == Some(libc::EINVAL);
    IoError::MethodUnsupported {
        method: "io_uring",
        why: match setup {
            RingSetup::Plain => format!("io_uring_setup failed: {error}"),
            setup => format!("io_uring_setup with {setup} failed: {error}"),
        },
        cure: if unknown {
            format!("use a kernel of {} or later", setup.since())
        } else {
            "allow it with sysctl kernel.io_uring_disabled=0 and in the container's seccomp profile"
                .to_string()
        },
    }
}

fn ring_failed(error: io::Error) -> IoError {
    IoError::operation("enter the ring for", Path::new("io_uring"), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_events::{Recorder, SessionKind};

    #[test]
    fn a_submission_that_stands_has_a_name_and_a_short_one_is_no_wait() {
        let recorder = Recorder::new();
        let session = recorder.session("writer", SessionKind::Foreground);
        let before = recorder.snapshot();
        note_stall(&session, now());
        note_stall(&session, now().saturating_sub(Nanos(3_000_000)));
        let waits =
            recorder.snapshot().since(&before).event(Event::DbFileAsyncIoSubmit, SessionKind::Foreground);
        assert_eq!(waits.count, 1);
        assert!(waits.time >= Nanos(3_000_000));
    }
}
