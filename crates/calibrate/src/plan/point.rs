//! A point: requests of one or two kinds, kept outstanding for a while.
//!
//! A point only describes the requests, as plain data that can be compared. It does not include a
//! purpose (a curve, a cell of the matrix, a rung of the ladder), so one measurement serves all of
//! them.

use plumb_host::device::RingSetup;
use plumb_io::{DirectIo, IoError, Method, MethodKind};
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Order of a load's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Uniform over the file, at multiples of the request's size.
    Random,
    /// One after the other, each thread in its own range.
    Sequential,
}

/// Registration of buffers with the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Buffers {
    /// Pinned once, before the measurement.
    Registered,
    /// Pinned again for each request.
    Ordinary,
}

/// Registration of the file with the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Looked up once, before the measurement.
    Registered,
    /// Looked up again for each request.
    Ordinary,
}

/// Options of a point's rings; ignored by methods without rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    pub setup: RingSetup,
    pub files: Files,
}

impl Default for Ring {
    /// Returns the rings of an engine on a current kernel.
    fn default() -> Ring {
        Ring { setup: RingSetup::Deferred, files: Files::Ordinary }
    }
}

/// Requests of one kind, kept outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    pub pattern: Pattern,
    /// Number of bytes of each request.
    pub request_bytes: u64,
    /// Number of writes per hundred requests.
    pub write_percent: u8,
    /// Number outstanding at any time, over all threads.
    pub outstanding: usize,
    /// Used bytes of the file, from its start; `None` is the whole file.
    pub zone_bytes: Option<u64>,
    /// Index of the path that all requests go to; `None` is the volume of all paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<usize>,
}

impl Load {
    pub(crate) fn random_read(size: Bytes, outstanding: usize) -> Load {
        let pattern = Pattern::Random;
        Load { pattern, request_bytes: size.0, write_percent: 0, outstanding, zone_bytes: None, path: None }
    }
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
        if let Some(bytes) = self.zone_bytes {
            write!(f, " in {}", Bytes(bytes).as_setting())?;
        }
        match self.path {
            Some(path) => write!(f, " on path {}", path + 1),
            None => Ok(()),
        }
    }
}

/// Concurrent requests to the storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// One load, or a small and a large one at the same time, in that order.
    pub loads: Vec<Load>,
    /// Number of threads that share the outstanding requests.
    pub threads: usize,
    #[serde(alias = "way")]
    pub method: MethodKind,
    /// Required if requests bypass the page cache, which is otherwise emptied before each repeat.
    #[serde(alias = "access")]
    pub direct_io: DirectIo,
    pub buffers: Buffers,
    /// Options of the rings; older records lack them, and had deferred rings.
    #[serde(default)]
    pub ring: Ring,
}

impl Point {
    /// A single random read; buffers are registered if there is a ring.
    pub(crate) fn usual(size: Bytes, method: MethodKind, direct_io: DirectIo, ring: Ring) -> Point {
        let buffers = if method == MethodKind::IoUring { Buffers::Registered } else { Buffers::Ordinary };
        Point { loads: vec![Load::random_read(size, 1)], threads: 1, method, direct_io, buffers, ring }
    }

    /// Returns a point with other loads and the same access.
    pub(crate) fn with(&self, loads: Vec<Load>, threads: usize) -> Point {
        Point { loads, threads, ..self.clone() }
    }

    /// True if both have the same access: method, buffers, rings, page cache.
    pub(crate) fn reached_like(&self, other: &Point) -> bool {
        let how = |of: &Point| (of.method, of.direct_io, of.buffers, of.ring);
        how(self) == how(other)
    }

    /// Starts the point's method of `plumb-io`.
    pub(crate) fn start(&self) -> Result<Method, IoError> {
        match self.method {
            MethodKind::IoUring => Method::start_ring(self.ring.setup, self.outstanding()),
            method => Method::start(method, self.outstanding()),
        }
    }

    /// Number of requests outstanding at any time, over all loads.
    pub fn outstanding(&self) -> usize {
        self.loads.iter().map(|load| load.outstanding).sum()
    }

    /// Returns the load of a point with a single one.
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
        write!(f, ", {}", self.method)?;
        if self.threads > 1 {
            write!(f, ", {} threads", self.threads)?;
        }
        if self.method == MethodKind::IoUring {
            if self.ring.setup != RingSetup::Deferred {
                write!(f, ", {}", self.ring.setup)?;
            }
            match (self.buffers, self.ring.files) {
                (Buffers::Registered, Files::Registered) => write!(f, ", registered buffers and files")?,
                (Buffers::Registered, Files::Ordinary) => write!(f, ", registered buffers")?,
                (Buffers::Ordinary, Files::Registered) => write!(f, ", registered files")?,
                (Buffers::Ordinary, Files::Ordinary) => {}
            }
        }
        if self.direct_io == DirectIo::Off {
            write!(f, ", page cache")?;
        }
        Ok(())
    }
}
