//! Support of io_uring, as data: the probe is in the crate that has rings.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Support of io_uring in this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IoUringSupport {
    /// A ring was set up and a NOP went through it.
    Yes {
        /// The kernel's feature flags, by name.
        features: Vec<&'static str>,
        /// True if a file in the directory was read through the ring; false
        /// when no probe file could be made there.
        file_read: bool,
        /// The parts that were tried and failed.
        refusals: Vec<RingRefusal>,
    },
    /// No ring can be set up.
    No {
        /// The reason, in one line.
        why: String,
        /// The change that makes it work, in one line.
        cure: String,
    },
}

impl IoUringSupport {
    /// Returns why a part does not work, and the cure; `None` if it works.
    pub fn refusal(&self, part: RingPart) -> Option<(&str, &str)> {
        match self {
            IoUringSupport::No { why, cure } => Some((why, cure)),
            IoUringSupport::Yes { refusals, .. } => {
                let found = refusals.iter().find(|refusal| refusal.part == part)?;
                Some((&found.why, &found.cure))
            }
        }
    }
}

/// A part of io_uring that may be missing where the rest works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingPart {
    /// Buffers that are pinned once.
    RegisteredBuffers,
    /// Files that are looked up once.
    RegisteredFiles,
    /// Rings made with this set-up.
    Setup(RingSetup),
}

/// A part of io_uring that was tried and failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingRefusal {
    /// The part that was tried.
    pub part: RingPart,
    /// The reason, in one line.
    pub why: String,
    /// The change that makes it work, in one line.
    pub cure: String,
}

/// Set-up of a ring: the kernel's way to run its completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RingSetup {
    /// No flags: works on every kernel with io_uring.
    Plain,
    /// Flags `COOP_TASKRUN` and `TASKRUN_FLAG`: completions wait until
    /// the thread enters the kernel.
    Cooperative,
    /// Flags `SINGLE_ISSUER` and `DEFER_TASKRUN`: completions run when the thread asks for them.
    Deferred,
    /// `SQPOLL`: a kernel thread submits.
    SubmissionPolling,
    /// `IOPOLL`, with one issuer and deferred task work.
    CompletionPolling,
}

impl RingSetup {
    /// Every set-up, the plainest first.
    pub const ALL: [RingSetup; 5] = [
        RingSetup::Plain,
        RingSetup::Cooperative,
        RingSetup::Deferred,
        RingSetup::SubmissionPolling,
        RingSetup::CompletionPolling,
    ];

    /// Returns the name, which is the kernel's where it has one.
    pub const fn name(self) -> &'static str {
        match self {
            RingSetup::Plain => "plain",
            RingSetup::Cooperative => "cooperative task running",
            RingSetup::Deferred => "deferred task running",
            RingSetup::SubmissionPolling => "SQPOLL",
            RingSetup::CompletionPolling => "IOPOLL",
        }
    }

    /// Returns the first kernel version with this set-up.
    pub const fn since(self) -> &'static str {
        match self {
            RingSetup::Plain | RingSetup::CompletionPolling => "5.1",
            RingSetup::Cooperative => "5.19",
            RingSetup::Deferred => "6.1",
            RingSetup::SubmissionPolling => "5.13",
        }
    }
}

impl fmt::Display for RingSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
