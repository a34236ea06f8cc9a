//! How a ring is set up: which of the kernel's ways to run completions.
//!
//! ```text
//! plain                  the kernel interrupts the thread to run a completion
//! cooperative            it waits until the thread enters the kernel anyway (5.19)
//! deferred               the same, and only when the thread asks for completions (6.1)
//! submission polling     a kernel thread takes entries from memory: no system call to
//!                        submit, and one more processor busy (5.13 without privileges)
//! completion polling     the thread asks the disk instead of waiting for its interrupt:
//!                        direct reads and writes only, and only where the driver has
//!                        queues for it (queue/io_poll)
//! ```
//!
//! Engines use `deferred`, and `plain` where the kernel is older: [`best`]. The others
//! are for who asks for them by name; none is replaced by another.

use io_uring::IoUring;
use serde::{Deserialize, Serialize};
use std::{fmt, io};

/// How a ring is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RingSetup {
    /// No flags: every kernel that has io_uring.
    Plain,
    /// `COOP_TASKRUN` and `TASKRUN_FLAG`.
    Cooperative,
    /// `SINGLE_ISSUER` and `DEFER_TASKRUN`.
    Deferred,
    /// `SQPOLL`: a kernel thread submits.
    SubmissionPolling,
    /// `IOPOLL`, with one issuer and deferred task work.
    CompletionPolling,
}

/// How long the kernel's submission thread looks for entries before it sleeps: long
/// against the time between two requests of a busy ring, short enough that an idle
/// ring costs no processor.
const SUBMISSION_IDLE_MS: u32 = 10;

impl RingSetup {
    /// Every set-up, the plainest first.
    pub const ALL: [RingSetup; 5] = [
        RingSetup::Plain,
        RingSetup::Cooperative,
        RingSetup::Deferred,
        RingSetup::SubmissionPolling,
        RingSetup::CompletionPolling,
    ];

    /// The name, with the kernel's word for it where there is one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RingSetup::Plain => "plain",
            RingSetup::Cooperative => "cooperative task running",
            RingSetup::Deferred => "deferred task running",
            RingSetup::SubmissionPolling => "SQPOLL",
            RingSetup::CompletionPolling => "IOPOLL",
        }
    }

    /// The kernel that has it first, as far as the set-up decides.
    pub(crate) const fn since(self) -> &'static str {
        match self {
            RingSetup::Plain | RingSetup::CompletionPolling => "5.1",
            RingSetup::Cooperative => "5.19",
            RingSetup::Deferred => "6.1",
            RingSetup::SubmissionPolling => "5.13",
        }
    }

    /// Makes a ring of its kind.
    pub(crate) fn build(self, entries: u32) -> io::Result<IoUring> {
        self.build_with(entries, 2 * entries)
    }

    /// The same with room for so many completions; by itself the kernel makes room for two an entry.
    pub(crate) fn build_with(self, entries: u32, completions: u32) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        if completions != 2 * entries {
            builder.setup_cqsize(completions);
        }
        match self {
            RingSetup::Plain => &mut builder,
            RingSetup::Cooperative => builder.setup_coop_taskrun().setup_taskrun_flag(),
            RingSetup::Deferred => builder.setup_single_issuer().setup_defer_taskrun(),
            RingSetup::SubmissionPolling => builder.setup_sqpoll(SUBMISSION_IDLE_MS),
            RingSetup::CompletionPolling => {
                builder.setup_iopoll().setup_single_issuer().setup_defer_taskrun()
            }
        };
        builder.build(entries)
    }
}

impl fmt::Display for RingSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The set-up for engines: the best that this kernel has.
pub(super) fn best(entries: u32) -> io::Result<RingSetup> {
    match RingSetup::Deferred.build(entries) {
        Ok(_) => Ok(RingSetup::Deferred),
        Err(_) => RingSetup::Plain.build(entries).map(|_| RingSetup::Plain),
    }
}
