//! A trace: every request for bytes of every session, one entry each.
//!
//! A recorder that is [armed](crate::Recorder::arm_trace) keeps requests between
//! [begin](crate::Recorder::begin_trace) and [end](crate::Recorder::end_trace). An entry has the
//! time at which the kernel got the request, its service time, file, offset and length, its
//! purpose, and the event of its session's wait. The only hook is
//! [`Session::transferred`](crate::Session::transferred), which records all requests.
//!
//! Mechanism: a session writes entries of five words into a chunk of its own, without other
//! writers. A full chunk is followed by another; that takes a lock, once in 4,096 requests. The
//! words are atomics so that the trace can be read while background sessions are alive; a store of
//! one is a plain store. An entry is valid once the chunk's length includes it.
//!
//! A session counts its requests while the trace is on, and a [snapshot](crate::Snapshot) has that
//! number with all others. So [the trace between two snapshots](crate::Recorder::trace) has the
//! requests that they count, except one request of each session that is recording at that moment.
//! Rejected: stopping the trace at the snapshot. DBWR takes in a hundred requests at once, and a
//! snapshot within such a batch missed a fifth of a short run.
//!
//! Cost: six stores (five words and the length), and the lines they displace in the cache, 160 KB a
//! chunk. `cargo xtask bench events`: a traced request takes 25 ns, an untraced one 10 ns; the
//! difference is 0.1% of a processor at 50,000 requests a second.
//!
//! Why not a ring that overwrites the oldest: a report's figures must cover the whole
//! run, or name the missing part. So the number of requests bounds the memory, and later
//! ones are counted as dropped.
//!
//! Limits: a request of 4 GB and more has a length of 4 GB - 1. Calls that move no bytes
//! (open, a separate sync) are waits and not requests. A sync that goes with a write, as the
//! log's, is in that request's time.

use crate::{Event, IoStream, locked};
use plumb_units::{Bytes, Nanos};
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, Mutex};

/// Entries of one chunk: 160 KB.
const CHUNK: usize = 4096;
/// Words of an entry: begin, offset, service time, file and length, event and stream.
const WORDS: usize = 5;

/// One request for bytes, completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Stream that names the purpose of the bytes.
    pub stream: IoStream,
    /// Event under which its session waits for it, if it has to.
    pub event: Event,
    /// Number of the file's path, known to the crate that opened it.
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Number of bytes that it moved.
    pub bytes: u64,
}

/// One traced request, which has completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedRequest {
    /// Time at which the kernel got it, since the begin of the trace; zero if earlier.
    pub begin: Nanos,
    /// Service time in the kernel, from begin to end.
    pub latency: Nanos,
    /// File, place, length and purpose of its bytes.
    pub moved: Moved,
}

/// Requests of one session, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedSession {
    /// Name of the session, as `PX sort server p001`.
    pub name: String,
    /// Requests that were kept, in the order of their ends.
    pub requests: Vec<TracedRequest>,
}

/// Requests of all sessions between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Time from its first snapshot to its last.
    pub elapsed: Nanos,
    /// Requests by session, in the order of their start; sessions of one name are joined.
    pub sessions: Vec<TracedSession>,
    /// Requests for which there was no room.
    pub dropped: u64,
}

impl Trace {
    /// Returns the bytes of memory that a session's trace of this many requests takes.
    pub fn bytes_of(requests: u64) -> Bytes {
        Bytes(requests.div_ceil(CHUNK as u64) * (CHUNK * WORDS * size_of::<AtomicU64>()) as u64)
    }

    /// Creates an empty trace between two moments.
    pub(crate) fn between(begin: Nanos, end: Nanos) -> Trace {
        Trace { elapsed: end.saturating_sub(begin), sessions: Vec::new(), dropped: 0 }
    }

    /// Adds the requests of a session at `places`, counted from the first while the trace was on.
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

/// A fixed number of a session's entries.
#[derive(Debug)]
pub(crate) struct Chunk {
    words: Box<[AtomicU64]>,
    len: AtomicUsize,
}

impl Chunk {
    /// Appends an entry; `false` when the chunk is full.
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

/// Traced requests of a session.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Requests while the trace was on. The first of them are in the chunks;
    /// the rest found no room.
    requests: AtomicU64,
    chunks: Mutex<Vec<Arc<Chunk>>>,
}

impl Kept {
    /// Returns the requests while the trace was on.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Acquire)
    }
}

/// Switch of the trace, and its remaining room.
#[derive(Debug)]
pub(crate) struct Tracer {
    is_on: AtomicBool,
    /// Chunks that may still be given out.
    chunks_left: AtomicUsize,
}

const _: () = assert!(Event::COUNT <= 256, "an event is a byte of an entry");

impl Tracer {
    /// Creates a tracer for at most `most` requests, rounded up to whole chunks.
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
        // Only the session writes this count, after its entry.
        kept.requests.store(kept.requests.load(Relaxed) + 1, Release);
    }

    /// Returns a new chunk for a session; `None` when no room is left.
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
        // Neither the request after the last snapshot nor the one after the end is in the trace.
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
