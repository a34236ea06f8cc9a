//! The requests of a run, one by one: kept in the bundle, printed as iosnoop prints them, summed up in the record.
//!
//! ```text
//! events::Trace ──[of_run]──> RunTrace ──[file]──> trace.bin     all requests, 8 to 12 bytes each
//!                                │                     │
//!                             [summary]             [text]──> plumb trace BUNDLE
//!                                └──> Record::trace, with a sample for the picture
//! ```
//! What a name is (a stream, an event, a session, a file) stands in the file itself, so that a trace is read by programs whose
//! tables are others.
//!
//! Limits: it covers what is measured, from the first reading to the last, and not what was prepared or verified. A request is what a session asked
//! for: how the kernel cuts or pads it shows at the device, whose counters stand beside it.

mod file;
mod summary;
mod text;

pub use file::{FILE, TraceError, read};
pub use summary::{summary, tally};
pub use text::{Options, render};

use plumb_events::{Direction, Trace};
use plumb_units::{Bytes, path_text};
use std::path::PathBuf;

/// The requests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunTrace {
    /// How long they were kept, nanoseconds.
    pub elapsed_ns: u64,
    /// Requests that there was no room for.
    pub dropped: u64,
    /// Paths, as [`path_text`] has them.
    pub files: Vec<String>,
    pub kinds: Vec<Kind>,
    /// By session, in the order of their first requests.
    pub sessions: Vec<SessionTrace>,
}

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub stream: String,
    /// What its session waits for if it has to.
    pub event: String,
    /// Which way its bytes go.
    pub direction: Direction,
}

/// The requests of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionTrace {
    pub name: String,
    /// Its requests, in the order of their ends.
    pub requests: Vec<Request>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When it was handed to the kernel, nanoseconds from the begin of the trace.
    pub begin_ns: u64,
    pub latency_ns: u64,
    pub kind: usize,
    pub file: usize,
    /// Where in the file, bytes.
    pub offset: u64,
    pub bytes: u64,
}

impl RunTrace {
    /// Those that a recorder kept.
    #[must_use]
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

    /// How many requests were kept.
    #[must_use]
    pub fn request_count(&self) -> u64 {
        self.sessions.iter().map(|session| session.requests.len() as u64).sum()
    }

    /// Memory that it took while it was kept: a session's last chunk is seldom full.
    #[must_use]
    pub fn memory(&self) -> Bytes {
        let chunks = |requests: usize| Trace::bytes_of(requests as u64);
        self.sessions.iter().map(|session| chunks(session.requests.len())).sum()
    }

    /// Which way the bytes of a request go.
    #[must_use]
    pub fn direction(&self, request: &Request) -> Direction {
        self.kinds[request.kind].direction
    }
}

/// The place of a value in a list, at the end where it was not there.
fn place<T: PartialEq>(list: &mut Vec<T>, value: T) -> usize {
    list.iter().position(|known| *known == value).unwrap_or_else(|| {
        list.push(value);
        list.len() - 1
    })
}
