//! A session: one server process, the only writer of its record.

use crate::clock::{self, now};
use crate::histogram::{BUCKETS, Histogram};
use crate::profile::Profile;
use crate::recorder::Shared;
use crate::{Direction, Event, IoStream, Statistic};
use plumb_units::Nanos;
use serde::{Deserialize, Serialize};
use std::array;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Whether a session's time is DB time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// Works for a user: its CPU and non-idle waits are DB time.
    Foreground,
    /// Works for the instance: the database writer.
    Background,
}

/// A counter with one writer and many readers: no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    #[inline]
    fn raise(&self, value: u64) {
        if value > self.0.load(Relaxed) {
            self.0.store(value, Relaxed);
        }
    }

    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Count, time, maximum and histogram of one event or stream.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) count: Counter,
    pub(crate) time_ns: Counter,
    pub(crate) max_ns: Counter,
    pub(crate) bytes: Counter,
    pub(crate) histogram: [Counter; BUCKETS],
}

impl Cell {
    fn new() -> Cell {
        Cell {
            count: Counter::default(),
            time_ns: Counter::default(),
            max_ns: Counter::default(),
            bytes: Counter::default(),
            histogram: array::from_fn(|_| Counter::default()),
        }
    }

    #[inline]
    fn record(&self, duration: Nanos, bytes: u64) {
        self.count.add(1);
        self.time_ns.add(duration.0);
        self.max_ns.raise(duration.0);
        self.bytes.add(bytes);
        self.histogram[Histogram::bucket(duration)].add(1);
    }
}

/// What a session has recorded; read by snapshots, written by its owner alone.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) kind: SessionKind,
    pub(crate) thread: i32,
    pub(crate) begin: Nanos,
    /// Zero while the session lives.
    pub(crate) end_ns: Counter,
    /// The long wait under way: the event's place in the table plus one, or zero,
    /// and when it began.
    pub(crate) waiting_for: Counter,
    pub(crate) waiting_since_ns: Counter,
    pub(crate) cpu_ns: Counter,
    pub(crate) run_queue_ns: Counter,
    pub(crate) events: [Cell; Event::COUNT],
    pub(crate) streams: [Cell; IoStream::COUNT],
    pub(crate) statistics: [Counter; Statistic::COUNT],
}

/// One server process: names what it waits for and counts what it does.
/// It belongs to the thread that made it.
#[derive(Debug)]
pub struct Session {
    record: Arc<Record>,
    shared: Arc<Shared>,
    profile: RefCell<Profile>,
    begin_cpu: Nanos,
    begin_run_queue: Nanos,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, name: String, kind: SessionKind) -> Session {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        let record = Arc::new(Record {
            name,
            kind,
            thread,
            begin: now(),
            end_ns: Counter::default(),
            waiting_for: Counter::default(),
            waiting_since_ns: Counter::default(),
            cpu_ns: Counter::default(),
            run_queue_ns: Counter::default(),
            events: array::from_fn(|_| Cell::new()),
            streams: array::from_fn(|_| Cell::new()),
            statistics: array::from_fn(|_| Counter::default()),
        });
        shared.register(Arc::clone(&record));
        Session {
            record,
            profile: RefCell::new(Profile::new(shared.origin)),
            shared,
            begin_cpu: clock::thread_cpu(),
            begin_run_queue: clock::scheduler_times(thread).map_or(Nanos(0), |times| times.1),
        }
    }

    /// The session's name, as `PX sort server p001`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Runs `work`, which may wait, and records how long it took under `event`.
    #[inline]
    pub fn wait<T>(&self, event: Event, work: impl FnOnce() -> T) -> T {
        let begin = now();
        let result = work();
        self.waited(event, begin, now());
        result
    }

    /// Records a wait that the caller timed.
    #[inline]
    pub fn waited(&self, event: Event, begin: Nanos, end: Nanos) {
        self.record.events[event as usize].record(end.saturating_sub(begin), 0);
    }

    /// Waits that may last, as a background process's for work: a snapshot taken
    /// meanwhile counts the time so far, and the I/O profile until now is published.
    pub fn wait_long<T>(&self, event: Event, work: impl FnOnce() -> T) -> T {
        self.publish_profile();
        let begin = now();
        self.record.waiting_since_ns.set(begin.0);
        self.record.waiting_for.set(event as u64 + 1);
        let result = work();
        self.waited(event, begin, now());
        self.record.waiting_for.set(0);
        result
    }

    /// Hands the I/O profile so far to the recorder, which otherwise gets it when
    /// the session ends.
    fn publish_profile(&self) {
        let mut profile = self.profile.borrow_mut();
        self.shared.merge_profile(&profile);
        *profile = Profile::new(self.shared.origin);
    }

    /// Counts something.
    #[inline]
    pub fn count(&self, statistic: Statistic, amount: u64) {
        self.record.statistics[statistic as usize].add(amount);
    }

    /// Records one finished request for bytes: its service time from submission
    /// to completion, which may overlap others and is no wait.
    pub fn transferred(&self, stream: IoStream, begin: Nanos, end: Nanos, bytes: u64) {
        self.record.streams[stream as usize].record(end.saturating_sub(begin), bytes);
        let (requests, total) = match stream.direction() {
            Direction::Read => (Statistic::PhysicalReadRequests, Statistic::PhysicalReadBytes),
            Direction::Write => (Statistic::PhysicalWriteRequests, Statistic::PhysicalWriteBytes),
        };
        self.count(requests, 1);
        self.count(total, bytes);
        self.profile.borrow_mut().add(stream, begin, end, bytes);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let cpu = clock::thread_cpu().saturating_sub(self.begin_cpu);
        let run_queue = clock::scheduler_times(self.record.thread).map_or(Nanos(0), |t| t.1);
        self.record.cpu_ns.set(cpu.0);
        self.record.run_queue_ns.set(run_queue.saturating_sub(self.begin_run_queue).0);
        self.record.end_ns.set(now().0);
        self.publish_profile();
    }
}
