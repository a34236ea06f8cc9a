//! io_uring: a ring of the session's own.
//!
//! The ring is made by the thread that uses it, with one issuer and deferred
//! task work: completions are processed when this thread enters the kernel, and
//! never interrupt it. Kernels before 6.1 get an ordinary ring. Arenas are
//! registered as fixed buffers: on bare metal that halves the CPU of a 128K
//! request and quarters that of 512K, because pages are not pinned each time.
//!
//! Entries are pushed without a system call; `enter` submits them all at once.
//! A request that is in the ring lives in `pending`, so its buffer and its file
//! stay until the kernel is done (invariant C2: drop waits).

use super::{Attempt, Operation, Pending};
use crate::{Arena, IoError};
use io_uring::{IoUring, opcode, squeue, types};
use plumb_events::{Session, Statistic};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

pub(super) struct RingChannel {
    ring: IoUring,
    /// Requests in the kernel's hands, by the user data of their entries.
    pending: Vec<Option<Pending>>,
    vacant: Vec<usize>,
    /// Entries pushed since the last enter.
    unsent: usize,
    registered: Vec<Arena>,
}

impl std::fmt::Debug for RingChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingChannel").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl RingChannel {
    pub(super) fn open(queue_depth: usize, arenas: &[&Arena]) -> Result<RingChannel, IoError> {
        let entries = u32::try_from(queue_depth.next_power_of_two()).unwrap_or(4096);
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            .build(entries)
            .or_else(|_| IoUring::new(entries))
            .map_err(|source| IoError::MethodUnsupported {
                method: "io_uring",
                why: format!("io_uring_setup failed: {source}"),
                cure:
                    "allow it with sysctl kernel.io_uring_disabled=0 and in the container's seccomp profile"
                        .to_string(),
            })?;
        let registered = register(&ring, arenas);
        Ok(RingChannel { ring, pending: Vec::new(), vacant: Vec::new(), unsent: 0, registered })
    }

    pub(super) fn push(&mut self, session: &Session, pending: Pending) -> Result<(), IoError> {
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.pending.push(None);
            self.pending.len() - 1
        });
        let (entry, fixed) = self.entry(&pending);
        self.pending[place] = Some(pending);
        session.count(Statistic::RingRequests, 1);
        session.count(Statistic::RingFixedRequests, u64::from(fixed));
        let entry = entry.user_data(place as u64);
        // SAFETY: the entry points into the buffer and names the descriptor of the
        // request just stored in `pending`, which outlives the kernel's use (C2).
        #[allow(unsafe_code)]
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            if let Err(error) = self.enter(session, 0) {
                // The kernel never saw this one.
                self.pending[place] = None;
                self.vacant.push(place);
                return Err(error);
            }
        }
        self.unsent += 1;
        Ok(())
    }

    fn entry(&mut self, pending: &Pending) -> (squeue::Entry, bool) {
        let request = &pending.request;
        let (range, offset) = pending.rest();
        let length = u32::try_from(range.len()).expect("requests are at most 1 GiB");
        let start = request.buffer[range].as_ptr();
        let fd = types::Fd(request.file.descriptor().expect("files in memory go another way").as_raw_fd());
        let fixed = self.registered.iter().position(|arena| arena.owns(&request.buffer));
        let entry = match (request.operation, fixed) {
            (Operation::Read | Operation::ReadAtMost, Some(index)) => {
                opcode::ReadFixed::new(fd, start.cast_mut(), length, index as u16).offset(offset).build()
            }
            (Operation::Write, Some(index)) => {
                opcode::WriteFixed::new(fd, start, length, index as u16).offset(offset).build()
            }
            (Operation::Read | Operation::ReadAtMost, None) => {
                opcode::Read::new(fd, start.cast_mut(), length).offset(offset).build()
            }
            (Operation::Write, None) => opcode::Write::new(fd, start, length).offset(offset).build(),
        };
        (entry, fixed.is_some())
    }

    /// Submits what was pushed and waits for `want` completions.
    pub(super) fn enter(&mut self, session: &Session, want: usize) -> Result<(), IoError> {
        if self.unsent == 0 && want == 0 {
            return Ok(());
        }
        session.count(Statistic::RingEnters, 1);
        match self.ring.submit_and_wait(want) {
            Ok(_) => {
                self.unsent = 0;
                Ok(())
            }
            // Nothing was lost: interrupted, or the completion queue must be emptied first.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                Ok(())
            }
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
                self.peek()?;
            }
        }
        self.drain(into);
        Ok(())
    }

    /// What lies in the completion queue, without entering the kernel.
    pub(super) fn drain(&mut self, into: &mut Vec<Attempt>) {
        for entry in self.ring.completion() {
            let place = entry.user_data() as usize;
            let pending = self.pending[place].take().expect("a completion belongs to a request");
            self.vacant.push(place);
            let result =
                usize::try_from(entry.result()).map_err(|_| Errno::from_raw_os_error(-entry.result()));
            into.push(Attempt { pending, result });
        }
    }

    /// Submits and runs deferred completions without waiting.
    fn peek(&mut self) -> Result<(), IoError> {
        const GETEVENTS: u32 = 1;
        let unsent = u32::try_from(self.ring.submission().len()).unwrap_or(0);
        // SAFETY: no argument is passed; the entries are those pushed above.
        #[allow(unsafe_code)]
        let entered = unsafe { self.ring.submitter().enter::<libc::sigset_t>(unsent, 0, GETEVENTS, None) };
        match entered {
            Ok(_) => {
                self.unsent = 0;
                Ok(())
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                Ok(())
            }
            Err(error) => Err(ring_failed(error)),
        }
    }
}

impl Drop for RingChannel {
    fn drop(&mut self) {
        while self.pending.iter().any(Option::is_some) {
            if let Err(error) = self.ring.submit_and_wait(1)
                && !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN))
            {
                // The kernel may still write into these buffers: leak them rather than free them.
                std::mem::forget(std::mem::take(&mut self.pending));
                return;
            }
            for entry in self.ring.completion() {
                self.pending[entry.user_data() as usize] = None;
            }
        }
    }
}

/// Registers the arenas, all or none: a ring without them works, only slower.
fn register(ring: &IoUring, arenas: &[&Arena]) -> Vec<Arena> {
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
    // SAFETY: the mappings live as long as `registered`, which the channel keeps.
    #[allow(unsafe_code)]
    let result = unsafe { ring.submitter().register_buffers(&spans) };
    match result {
        Ok(()) => arenas.iter().map(|arena| (*arena).clone()).collect(),
        Err(_) => Vec::new(),
    }
}

fn ring_failed(error: io::Error) -> IoError {
    IoError::operation("enter the ring for", Path::new("io_uring"), error)
}
