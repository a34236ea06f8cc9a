//! A point: requests of one or two kinds, kept outstanding for a while.
//!
//! A point is only what is asked of the storage, as plain data that can be
//! compared. What it is measured for (a curve, a cell of the matrix, a rung of the
//! ladder) is not part of it: the same point measured once serves them all.

use plumb_io::{IoError, Method, MethodKind, RingSetup};
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The order of a load's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Uniform over the file, at multiples of the request's size.
    Random,
    /// One after the other, each thread through a stretch of its own.
    Sequential,
}

/// Whether the page cache is bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Past the page cache.
    Direct,
    /// Through the page cache, which is emptied before each repeat.
    Buffered,
}

/// Whether buffers are registered with the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// Pinned once, before the measurement.
    Registered,
    /// Pinned for each request.
    Ordinary,
}

/// Whether the file is registered with the ring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Looked up once, before the measurement.
    Registered,
    /// Looked up for each request.
    #[default]
    Ordinary,
}

/// How rings are set up: the set-ups of `plumb-io`, in the words of the record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setup {
    /// No flags.
    Plain,
    /// Completions run when the thread enters the kernel.
    Cooperative,
    /// Completions run when the thread asks for them.
    #[default]
    Deferred,
    /// A kernel thread submits.
    SubmissionPolling,
    /// The disk is asked instead of waited for.
    CompletionPolling,
}

impl Setup {
    /// The set-up of `plumb-io`.
    #[must_use]
    pub const fn ring(self) -> RingSetup {
        match self {
            Setup::Plain => RingSetup::Plain,
            Setup::Cooperative => RingSetup::Cooperative,
            Setup::Deferred => RingSetup::Deferred,
            Setup::SubmissionPolling => RingSetup::SubmissionPolling,
            Setup::CompletionPolling => RingSetup::CompletionPolling,
        }
    }
}

/// How the rings of a point are made; no matter where there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// How they are set up.
    pub setup: Setup,
    /// Whether they know the file beforehand.
    pub files: Files,
}

/// How requests reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// System calls, one thread for each outstanding request.
    Sync,
    /// A pool of threads.
    Threads,
    /// A ring for each thread.
    IoUring,
}

impl Way {
    /// The method of `plumb-io`.
    #[must_use]
    pub fn kind(self) -> MethodKind {
        match self {
            Way::Sync => MethodKind::Sync,
            Way::Threads => MethodKind::Threads,
            Way::IoUring => MethodKind::IoUring,
        }
    }
}

impl From<MethodKind> for Way {
    fn from(kind: MethodKind) -> Way {
        match kind {
            MethodKind::Sync => Way::Sync,
            MethodKind::Threads => Way::Threads,
            MethodKind::IoUring => Way::IoUring,
        }
    }
}

/// Requests of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Their order.
    pub pattern: Pattern,
    /// The bytes of each.
    pub request_bytes: u64,
    /// How many in a hundred are writes.
    pub write_percent: u8,
    /// How many are outstanding at any time, all threads together.
    pub outstanding: usize,
    /// How much of the file is used, from its start; the whole of it if `None`.
    pub zone_bytes: Option<u64>,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pattern = match self.pattern {
            Pattern::Random => "random",
            Pattern::Sequential => "sequential",
        };
        write!(f, "{} {pattern} ", Bytes(self.request_bytes).as_setting())?;
        match self.write_percent {
            0 => write!(f, "read")?,
            100 => write!(f, "write")?,
            percent => write!(f, "{}/{percent} read/write", 100 - percent)?,
        }
        write!(f, " x{}", self.outstanding)?;
        match self.zone_bytes {
            Some(bytes) => write!(f, " in {}", Bytes(bytes).as_setting()),
            None => Ok(()),
        }
    }
}

/// What is asked of the storage at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// One load, or a small and a large one at the same time, in that order.
    pub loads: Vec<Load>,
    /// The threads that the outstanding requests are spread over.
    pub threads: usize,
    /// How they reach the kernel.
    pub way: Way,
    /// Whether they bypass the page cache.
    pub access: Access,
    /// Whether their buffers are registered.
    pub buffers: Buffers,
    /// How their rings are made; records from before this was chosen have deferred rings.
    #[serde(default)]
    pub ring: Ring,
}

impl Point {
    /// Starts the method of `plumb-io` that it asks for.
    pub(crate) fn start(&self) -> Result<Method, IoError> {
        match self.way {
            Way::IoUring => Method::start_ring(self.ring.setup.ring(), self.outstanding()),
            way => Method::start(way.kind(), self.outstanding()),
        }
    }

    /// Requests outstanding at any time, of all loads.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.loads.iter().map(|load| load.outstanding).sum()
    }

    /// The only load, if there is but one.
    #[must_use]
    pub fn single(&self) -> Option<&Load> {
        if let [load] = self.loads.as_slice() { Some(load) } else { None }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, load) in self.loads.iter().enumerate() {
            if index > 0 {
                write!(f, " + ")?;
            }
            write!(f, "{load}")?;
        }
        write!(f, ", {}", self.way.kind())?;
        if self.threads > 1 {
            write!(f, ", {} threads", self.threads)?;
        }
        if self.way == Way::IoUring {
            if self.ring.setup != Setup::default() {
                write!(f, ", {}", self.ring.setup.ring())?;
            }
            match (self.buffers, self.ring.files) {
                (Buffers::Registered, Files::Registered) => write!(f, ", registered buffers and files")?,
                (Buffers::Registered, Files::Ordinary) => write!(f, ", registered buffers")?,
                (Buffers::Ordinary, Files::Registered) => write!(f, ", registered files")?,
                (Buffers::Ordinary, Files::Ordinary) => {}
            }
        }
        if self.access == Access::Buffered {
            write!(f, ", page cache")?;
        }
        Ok(())
    }
}
