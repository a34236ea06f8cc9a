//! A trace: every request for bytes of every session, one entry each.
//!
//! What it does: a recorder that was [armed](crate::Recorder::arm_trace) keeps, between [begin](crate::Recorder::begin_trace) and
//! [end](crate::Recorder::end_trace), when a request was handed to the kernel, how long it took, its file, place and length, what for, and what its
//! session waits for if it has to. The hook is the one place where requests are recorded at all, [`Session::transferred`](crate::Session::transferred).
//!
//! How: a session writes entries of five words into a chunk of its own, and nobody else writes there. A chunk that is full is followed by another; that takes the
//! recorder's lock, once in 4,096 requests. The words are atomics so that the trace can be taken while background sessions live; a store
//! of one is a plain store. An entry counts when the number of entries of its chunk says so.
//!
//! Cost: 5 stores and what they displace in the cache, 160 KB a chunk. `cargo xtask bench events`: 72 ns a request that is kept and 35 ns one that
//! is not; the 37 ns between are 0.2% of a processor at 50,000 requests a second.
//!
//! Why not a ring that overwrites the oldest: what a report says of a run must be of its whole, or say which part is missing. So memory is bounded by
//! a number of requests, and what comes later is counted as dropped.
//!
//! Limits: a request of 4 GB and more has a length of 4 GB - 1. Calls that move no bytes (open, a sync by itself) are waits and not requests; a sync that
//! goes with a write, as the log's, is in that request's time.

use crate::{Event, IoStream, locked};
use plumb_units::{Bytes, Nanos};
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex, MutexGuard};

/// Entries of a chunk.
const CHUNK: usize = 4096;
/// Words of an entry: begin, offset, service time, file and length, event and stream.
const WORDS: usize = 5;

/// A request for bytes that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// What the bytes were moved for.
    pub stream: IoStream,
    /// What its session waits for if it has to.
    pub event: Event,
    /// The file's number, by which whoever opened it knows its path.
    pub file: u32,
    /// Where in the file, bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedRequest {
    /// When it was handed to the kernel, since the begin of the trace.
    pub begin: Nanos,
    /// Its service time.
    pub latency: Nanos,
    /// What was moved.
    pub moved: Moved,
}

/// The requests of a session, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedSession {
    /// Its name.
    pub name: String,
    /// Its requests.
    pub requests: Vec<TracedRequest>,
}

/// The requests of all sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// How long it was kept.
    pub elapsed: Nanos,
    /// By session, in the order of their first requests.
    pub sessions: Vec<TracedSession>,
    /// Requests that there was no room for.
    pub dropped: u64,
}

impl Trace {
    /// The memory that so many requests of a session take.
    #[must_use]
    pub fn bytes_of(requests: u64) -> Bytes {
        Bytes(requests.div_ceil(CHUNK as u64) * (CHUNK * WORDS * size_of::<AtomicU64>()) as u64)
    }
}

/// A stretch of a session's entries.
#[derive(Debug)]
pub(crate) struct Chunk {
    session: String,
    words: Box<[AtomicU64]>,
    len: AtomicUsize,
}

impl Chunk {
    /// `false` when it is full.
    fn push(&self, entry: [u64; WORDS]) -> bool {
        let at = self.len.load(Relaxed);
        let Some(place) = self.words.get(at * WORDS..(at + 1) * WORDS) else { return false };
        for (word, value) in place.iter().zip(entry) {
            word.store(value, Relaxed);
        }
        self.len.store(at + 1, Release);
        true
    }

    fn requests(&self, begin: Nanos) -> impl Iterator<Item = TracedRequest> {
        let words = self.words.chunks_exact(WORDS).take(self.len.load(Acquire));
        words.map(move |words| {
            let word = |at: usize| words[at].load(Relaxed);
            let kinds = word(4);
            TracedRequest {
                begin: Nanos(word(0)).saturating_sub(begin),
                latency: Nanos(word(2)),
                moved: Moved {
                    stream: IoStream::ALL[(kinds >> 8) as usize],
                    event: Event::ALL[(kinds & 0xff) as usize],
                    file: (word(3) >> 32) as u32,
                    offset: word(1),
                    bytes: word(3) & u64::from(u32::MAX),
                },
            }
        })
    }
}

/// Where the sessions of a recorder put their requests.
#[derive(Debug)]
pub(crate) struct Tracer {
    is_on: AtomicBool,
    /// Requests that may still be kept, in whole chunks.
    chunks_left: AtomicUsize,
    dropped: AtomicU64,
    chunks: Mutex<Vec<Arc<Chunk>>>,
    /// When it was begun, and ended, nanoseconds; 0: not yet.
    begin: AtomicU64,
    end: AtomicU64,
}

const _: () = assert!(Event::COUNT <= 256, "an event is a byte of an entry");

impl Tracer {
    /// One that keeps so many requests at most, rounded up to whole chunks.
    pub(crate) fn new(most: u64) -> Tracer {
        Tracer {
            is_on: AtomicBool::new(false),
            chunks_left: AtomicUsize::new((most as usize).div_ceil(CHUNK)),
            dropped: AtomicU64::new(0),
            chunks: Mutex::default(),
            begin: AtomicU64::new(0),
            end: AtomicU64::new(0),
        }
    }

    pub(crate) fn begin(&self, at: Nanos) {
        self.begin.store(at.0, Relaxed);
        self.is_on.store(true, Release);
    }

    pub(crate) fn end(&self, at: Nanos) {
        self.is_on.store(false, Release);
        self.end.store(at.0, Relaxed);
    }

    /// Keeps a request in the session's chunk, or in a new one.
    #[inline]
    pub(crate) fn keep(
        &self,
        (session, chunk): (&str, &mut Option<Arc<Chunk>>),
        (begin, end): (Nanos, Nanos),
        moved: &Moved,
    ) {
        if !self.is_on.load(Relaxed) {
            return;
        }
        let entry = [
            begin.0,
            moved.offset,
            end.saturating_sub(begin).0,
            u64::from(moved.file) << 32 | moved.bytes.min(u64::from(u32::MAX)),
            moved.event as u64 | (moved.stream as u64) << 8,
        ];
        if chunk.as_ref().is_some_and(|chunk| chunk.push(entry)) {
            return;
        }
        *chunk = self.another(session);
        if !chunk.as_ref().is_some_and(|chunk| chunk.push(entry)) {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    /// A chunk for a session; none when there are as many as there may be.
    #[cold]
    fn another(&self, session: &str) -> Option<Arc<Chunk>> {
        let take = |left: usize| left.checked_sub(1);
        self.chunks_left.fetch_update(Relaxed, Relaxed, take).ok()?;
        let words = (0..CHUNK * WORDS).map(|_| AtomicU64::new(0)).collect();
        let chunk = Arc::new(Chunk { session: session.to_string(), words, len: AtomicUsize::new(0) });
        self.chunks().push(Arc::clone(&chunk));
        Some(chunk)
    }

    /// A panic elsewhere must not hide them: each is valid at any moment.
    fn chunks(&self) -> MutexGuard<'_, Vec<Arc<Chunk>>> {
        locked(&self.chunks)
    }

    /// What has been kept.
    pub(crate) fn trace(&self) -> Trace {
        let begin = Nanos(self.begin.load(Relaxed));
        let mut sessions: Vec<TracedSession> = Vec::new();
        for chunk in self.chunks().iter() {
            let place = sessions.iter().position(|known| known.name == chunk.session);
            let place = place.unwrap_or_else(|| {
                sessions.push(TracedSession { name: chunk.session.clone(), requests: Vec::new() });
                sessions.len() - 1
            });
            sessions[place].requests.extend(chunk.requests(begin));
        }
        let elapsed = Nanos(self.end.load(Relaxed)).saturating_sub(begin);
        Trace { elapsed, sessions, dropped: self.dropped.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recorder, RequestTimes, Role};

    fn moved(offset: u64) -> Moved {
        Moved { stream: IoStream::LogWrites, event: Event::LogFileParallelWrite, file: 3, offset, bytes: 512 }
    }

    fn times(begin: Nanos) -> RequestTimes {
        RequestTimes::of_call(begin, Nanos(begin.0 + 100))
    }

    #[test]
    fn requests_between_begin_and_end_are_kept_by_session_and_the_rest_is_not() {
        let recorder = Recorder::new();
        recorder.arm_trace(1_000_000);
        let (one, two) = (recorder.session(Role::User), recorder.session(Role::DatabaseWriter));
        one.transferred(times(crate::now()), &moved(0));
        recorder.begin_trace();
        let begin = crate::now();
        for request in 0..5000 {
            one.transferred(times(begin), &moved(512 * request));
        }
        two.transferred(times(begin), &moved(7));
        recorder.end_trace();
        one.transferred(times(crate::now()), &moved(1));
        let trace = recorder.trace().expect("it was armed");
        let found: Vec<(&str, usize)> =
            trace.sessions.iter().map(|session| (session.name.as_str(), session.requests.len())).collect();
        assert_eq!(found, [("session", 5000), ("DBW", 1)]);
        let last = trace.sessions[0].requests[4999];
        assert_eq!((last.moved, last.latency), (moved(512 * 4999), Nanos(100)));
        assert!(last.begin <= trace.elapsed);
        assert_eq!(trace.dropped, 0);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let recorder = Recorder::new();
        recorder.arm_trace(CHUNK as u64);
        recorder.begin_trace();
        let session = recorder.session(Role::User);
        (0..CHUNK as u64 + 10).for_each(|offset| session.transferred(times(crate::now()), &moved(offset)));
        let trace = recorder.trace().expect("it was armed");
        assert_eq!((trace.sessions[0].requests.len(), trace.dropped), (CHUNK, 10));
        assert_eq!(Recorder::new().trace(), None, "nothing is kept where nobody asked for it");
    }
}
