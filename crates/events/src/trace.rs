//! A trace: every request for bytes of every session, one entry each.
//!
//! What it does: a recorder that was [armed](crate::Recorder::arm_trace) keeps, between [begin](crate::Recorder::begin_trace) and
//! [end](crate::Recorder::end_trace), when a request was handed to the kernel, how long it took, its file, place and length, what for, and what its
//! session waits for if it has to. The hook is the one place where requests are recorded at all, [`Session::transferred`](crate::Session::transferred).
//!
//! How: a session writes entries of five words into a chunk of its own, and nobody else writes there. A chunk that is full is followed by another; that takes a
//! lock, once in 4,096 requests. The words are atomics so that the trace can be taken while background sessions live; a store
//! of one is a plain store. An entry counts when the number of entries of its chunk says so.
//!
//! A session counts its requests that came while the trace was on, and a [snapshot](crate::Snapshot) has that number beside all others. So
//! [the trace between two snapshots](crate::Recorder::trace) has what they count, but for one request a session that is being recorded. Why not to stop the
//! trace beside the snapshot: DBWR takes in a batch of a hundred requests at once, and where the snapshot fell within it, a fifth of a short run was apart.
//!
//! Cost: six stores (five words and the count) and what they displace in the cache, 160 KB a chunk. `cargo xtask bench events`: 25 ns a request that is kept and 10 ns
//! one that is not; the 15 ns between are 0.1% of a processor at 50,000 requests a second.
//!
//! Why not a ring that overwrites the oldest: what a report says of a run must be of its whole, or say which part is missing. So memory is bounded by
//! a number of requests, and what comes later is counted as dropped.
//!
//! Limits: a request of 4 GB and more has a length of 4 GB - 1. Calls that move no bytes (open, a sync by itself) are waits and not requests; a sync that
//! goes with a write, as the log's, is in that request's time.

use crate::{Event, IoStream, locked};
use plumb_units::{Bytes, Nanos};
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex};

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
    /// When it was handed to the kernel, since the begin of the trace; zero where that was before.
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
    /// From its first snapshot to its last.
    pub elapsed: Nanos,
    /// By session, in the order of their start; those of one name are one.
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

    /// One without a request, between two moments.
    pub(crate) fn between(begin: Nanos, end: Nanos) -> Trace {
        Trace { elapsed: end.saturating_sub(begin), sessions: Vec::new(), dropped: 0 }
    }

    /// Adds what a session kept of these of its requests, by their places from the first that came while the trace was on.
    pub(crate) fn add(&mut self, name: &str, kept: &Kept, begin: Nanos, places: Range<u64>) {
        let chunks = locked(&kept.chunks);
        let asked = places.end.saturating_sub(places.start);
        let requests = chunks.iter().flat_map(|chunk| chunk.requests(begin));
        let requests: Vec<_> = requests.skip(places.start as usize).take(asked as usize).collect();
        self.dropped += asked - requests.len() as u64;
        match self.sessions.iter_mut().find(|known| known.name == name) {
            _ if requests.is_empty() => (),
            Some(known) => known.requests.extend(requests),
            None => self.sessions.push(TracedSession { name: name.to_string(), requests }),
        }
    }
}

/// A stretch of a session's entries.
#[derive(Debug)]
pub(crate) struct Chunk {
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

/// What a trace keeps of a session.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Requests while the trace was on. The first of them are in the chunks; the others had no room.
    requests: AtomicU64,
    chunks: Mutex<Vec<Arc<Chunk>>>,
}

impl Kept {
    /// Requests while the trace was on.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Acquire)
    }
}

/// Whether requests are kept, and room for them.
#[derive(Debug)]
pub(crate) struct Tracer {
    is_on: AtomicBool,
    /// Requests that may still be kept, in whole chunks.
    chunks_left: AtomicUsize,
}

const _: () = assert!(Event::COUNT <= 256, "an event is a byte of an entry");

impl Tracer {
    /// One that keeps so many requests at most, rounded up to whole chunks.
    pub(crate) fn new(most: u64) -> Tracer {
        Tracer {
            is_on: AtomicBool::new(false),
            chunks_left: AtomicUsize::new((most as usize).div_ceil(CHUNK)),
        }
    }

    pub(crate) fn turn(&self, is_on: bool) {
        self.is_on.store(is_on, Relaxed);
    }

    /// Keeps a request in the session's chunk, or in a new one.
    #[inline]
    pub(crate) fn keep(
        &self,
        (kept, chunk): (&Kept, &mut Option<Arc<Chunk>>),
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
        if !chunk.as_ref().is_some_and(|chunk| chunk.push(entry)) {
            *chunk = self.another(kept);
            if let Some(chunk) = chunk {
                chunk.push(entry);
            }
        }
        // The session alone writes it, after what it counts.
        kept.requests.store(kept.requests.load(Relaxed) + 1, Release);
    }

    /// A chunk for a session; none when there are as many as there may be.
    #[cold]
    fn another(&self, kept: &Kept) -> Option<Arc<Chunk>> {
        let take = |left: usize| left.checked_sub(1);
        self.chunks_left.fetch_update(Relaxed, Relaxed, take).ok()?;
        let words = (0..CHUNK * WORDS).map(|_| AtomicU64::new(0)).collect();
        let chunk = Arc::new(Chunk { words, len: AtomicUsize::new(0) });
        locked(&kept.chunks).push(Arc::clone(&chunk));
        Some(chunk)
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
    fn a_trace_has_what_its_two_snapshots_count() {
        let recorder = Recorder::new();
        recorder.arm_trace(1_000_000);
        let (one, two) = (recorder.session(Role::User), recorder.session(Role::DatabaseWriter));
        one.transferred(times(crate::now()), &moved(0));
        recorder.begin_trace();
        one.transferred(times(crate::now()), &moved(1));
        let first = recorder.snapshot();
        let begin = crate::now();
        for request in 0..5000 {
            one.transferred(times(begin), &moved(512 * request));
        }
        let late = recorder.session(Role::LogWriter);
        late.transferred(times(begin), &moved(8));
        two.transferred(times(begin), &moved(7));
        let last = recorder.snapshot();
        // What is taken in beside the last snapshot and what comes when the trace has ended.
        two.transferred(times(begin), &moved(9));
        recorder.end_trace();
        one.transferred(times(crate::now()), &moved(2));
        let trace = recorder.trace([&first, &last]).expect("it was armed");
        let found: Vec<(&str, usize)> =
            trace.sessions.iter().map(|session| (session.name.as_str(), session.requests.len())).collect();
        assert_eq!(found, [("session", 5000), ("DBW", 1), ("LGWR", 1)]);
        assert_eq!(trace.sessions[0].requests[0].moved, moved(0), "not the one before the first snapshot");
        let end = trace.sessions[0].requests[4999];
        assert_eq!((end.moved, end.latency), (moved(512 * 4999), Nanos(100)));
        assert!(end.begin <= trace.elapsed);
        assert_eq!(trace.dropped, 0);
        let counted = last.since(&first).stream(IoStream::LogWrites).count;
        assert_eq!(counted, 5002, "as many as the trace has");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let recorder = Recorder::new();
        recorder.arm_trace(CHUNK as u64);
        let first = recorder.snapshot();
        recorder.begin_trace();
        let session = recorder.session(Role::User);
        (0..CHUNK as u64 + 10).for_each(|offset| session.transferred(times(crate::now()), &moved(offset)));
        let last = recorder.snapshot();
        let trace = recorder.trace([&first, &last]).expect("it was armed");
        assert_eq!((trace.sessions[0].requests.len(), trace.dropped), (CHUNK, 10));
        assert_eq!(Recorder::new().trace([&first, &last]), None, "nothing is kept where nobody asked for it");
    }
}
