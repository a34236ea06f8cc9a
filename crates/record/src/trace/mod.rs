//! The requests of a run: kept in the bundle, printed as iosnoop does, summed in the record.
//!
//! ```text
//! events::Trace ──[of_run]──> RunTrace ──[file]──> trace.bin     all requests, 8 to 12 bytes each
//!                                │                     │
//!                             [summary]             [text]──> plumb trace BUNDLE
//!                                └──> Record::trace, with a sample for the picture
//! ```
//!
//! Names (of streams, events, sessions, files) are in the file itself, so that programs with other
//! tables can read a trace.
//!
//! Limits: it covers the measurement, from the first reading to the last, without preparation and
//! verification. A request is that of a session. The kernel's splits and padding show only in the
//! device's counters.

mod file;
mod summary;
mod text;

pub use file::{FILE, TraceError, read};
pub use summary::{summary, tally};
pub use text::{Options, render, write_histogram};

use plumb_events::{Direction, Trace};
use plumb_units::{Bytes, path_text};
use std::path::PathBuf;

/// The requests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTrace {
    /// Time covered by the trace, nanoseconds.
    pub elapsed_ns: u64,
    /// Number of requests dropped for lack of room.
    pub dropped: u64,
    /// Text forms of paths ([`path_text`]).
    pub files: Vec<String>,
    /// Kinds of requests, by index.
    pub kinds: Vec<Kind>,
    /// By session, in the order of their first requests.
    pub sessions: Vec<SessionTrace>,
}

/// Kind of a request: stream, event, direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub stream: String,
    /// Wait event of its session.
    pub event: String,
    pub direction: Direction,
}

/// The requests of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTrace {
    pub name: String,
    /// Requests in the order of their ends.
    pub requests: Vec<Request>,
}

/// A request of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Submission, nanoseconds from the start of the trace.
    pub begin_ns: u64,
    /// Service time of the request, nanoseconds.
    pub latency_ns: u64,
    /// Index of its kind in `kinds`.
    pub kind: usize,
    /// Index of its file in `files`.
    pub file: usize,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Length of the request, bytes.
    pub bytes: u64,
}

impl RunTrace {
    /// Converts the trace that a recorder kept.
    pub fn of_run(trace: &Trace, path_of: fn(u32) -> Option<PathBuf>) -> RunTrace {
        let mut run = RunTrace { elapsed_ns: trace.elapsed.0, dropped: trace.dropped, ..RunTrace::default() };
        let mut numbers: Vec<u32> = Vec::new();
        for session in &trace.sessions {
            let request = |found: &plumb_events::TracedRequest| {
                let moved = &found.moved;
                let file = place(&mut numbers, moved.file);
                let kind = Kind {
                    stream: moved.stream.name().to_string(),
                    event: moved.event.name().to_string(),
                    direction: moved.stream.direction(),
                };
                Request {
                    begin_ns: found.begin.0,
                    latency_ns: found.latency.0,
                    kind: place(&mut run.kinds, kind),
                    file,
                    offset: moved.offset,
                    bytes: moved.bytes,
                }
            };
            let requests = session.requests.iter().map(request).collect();
            run.sessions.push(SessionTrace { name: session.name.clone(), requests });
        }
        let named =
            |number: &u32| path_of(*number).map_or_else(|| format!("file {number}"), |path| path_text(&path));
        run.files = numbers.iter().map(named).collect();
        run
    }

    /// Returns the number of requests kept.
    pub fn request_count(&self) -> u64 {
        self.sessions.iter().map(|session| session.requests.len() as u64).sum()
    }

    /// Memory used while it was kept; a session's last chunk is seldom full.
    pub fn memory(&self) -> Bytes {
        let chunks = |requests: usize| Trace::bytes_of(requests as u64);
        self.sessions.iter().map(|session| chunks(session.requests.len())).sum()
    }

    /// Returns the direction of a request's bytes.
    pub fn direction(&self, request: &Request) -> Direction {
        self.kinds[request.kind].direction
    }
}

/// Returns the index of a value in a list, appended if it is new.
fn place<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|known| *known == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}
