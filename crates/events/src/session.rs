//! A session: one server process, the only writer of its record.

use crate::clock::{self, now};
use crate::histogram::{BUCKETS, Histogram};
use crate::latency;
use crate::locked::try_locked;
use crate::profile::Profile;
use crate::sharing::{self, Used};
use crate::trace::{Chunk, Kept, Tracer};
use crate::{Direction, Event, IoStream, Moved, Phase, Role, SessionKind, Statistic, locked};
use plumb_units::Nanos;
use std::array;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// A counter with one writer and many readers, so no locked instruction is needed.
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

/// Count, total time, maximum and histogram of durations.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) count: Counter,
    pub(crate) time_ns: Counter,
    pub(crate) max_ns: Counter,
    pub(crate) histogram: [Counter; BUCKETS],
}

impl Tally {
    fn new() -> Tally {
        Tally {
            count: Counter::default(),
            time_ns: Counter::default(),
            max_ns: Counter::default(),
            histogram: array::from_fn(|_| Counter::default()),
        }
    }

    #[inline]
    fn record(&self, duration: Nanos) {
        self.count.add(1);
        self.time_ns.add(duration.0);
        self.max_ns.raise(duration.0);
        self.histogram[Histogram::bucket(duration)].add(1);
    }
}

/// The waits for one event.
#[derive(Debug)]
pub(crate) struct EventCell {
    pub(crate) waits: Tally,
    /// Counts by length for quantiles; allocated by the first wait.
    pub(crate) latency: OnceLock<Box<[Counter]>>,
    /// CPU inside the waits around which the CPU clock was read, and the time of those waits.
    pub(crate) metered_cpu_ns: Counter,
    pub(crate) metered_ns: Counter,
}

/// The requests of one stream.
#[derive(Debug)]
pub(crate) struct StreamCell {
    pub(crate) requests: Tally,
    pub(crate) bytes: Counter,
    /// Count, bytes and time of the requests above [`LARGE_REQUEST`].
    pub(crate) large: [Counter; 3],
    pub(crate) away_ns: Counter,
}

/// Source of a living session's CPU time and run-queue delay.
#[derive(Debug)]
pub(crate) enum Meter {
    /// The scheduler, by the number of the session's thread.
    Thread(i32),
    /// The server that runs the sessions of a shared thread.
    Shared(Arc<Used>),
}

impl Meter {
    fn here() -> Meter {
        match sharing::here() {
            Some(thread) => Meter::Shared(thread.used()),
            None => Meter::Thread(rustix::thread::gettid().as_raw_nonzero().get()),
        }
    }

    /// Reads CPU and delay from any thread; CPU may be one tick (shared: one
    /// turn of the session) old.
    pub(crate) fn read(&self) -> [Nanos; 2] {
        match self {
            Meter::Thread(thread) => clock::scheduler_times(*thread).unwrap_or_default().into(),
            Meter::Shared(used) => [used.cpu(), used.queued()],
        }
    }

    /// True if the session runs on the calling thread, unshared.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Meter::Thread(thread) if *thread == rustix::thread::gettid().as_raw_nonzero().get())
    }

    /// Reads CPU up to now, and delay, from the session itself.
    fn read_own(&self) -> [Nanos; 2] {
        [sharing::cpu(), self.read()[1]]
    }
}

/// Counters of a session, read by snapshots and written by its owner only.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) meter: Meter,
    pub(crate) begin: Nanos,
    /// CPU and delay of the thread before the session started.
    pub(crate) begin_cpu: Nanos,
    pub(crate) begin_run_queue: Nanos,
    /// Zero while the session is alive.
    pub(crate) end_ns: Counter,
    /// The long wait in progress: the event's place in the table plus one, or zero; and the
    /// time at which it started.
    pub(crate) waiting_for: Counter,
    pub(crate) waiting_since_ns: Counter,
    pub(crate) cpu_ns: Counter,
    pub(crate) run_queue_ns: Counter,
    pub(crate) events: [EventCell; Event::COUNT],
    pub(crate) streams: [StreamCell; IoStream::COUNT],
    pub(crate) statistics: [Counter; Statistic::COUNT],
    pub(crate) kept: Kept,
}

impl Record {
    /// Creates an empty record of a thread with this CPU and delay at `begin`.
    pub(crate) fn new(
        (name, role, meter): (String, Role, Meter),
        begin: Nanos,
        [begin_cpu, begin_run_queue]: [Nanos; 2],
    ) -> Record {
        Record {
            name,
            role,
            meter,
            begin,
            begin_cpu,
            begin_run_queue,
            end_ns: Counter::default(),
            waiting_for: Counter::default(),
            waiting_since_ns: Counter::default(),
            cpu_ns: Counter::default(),
            run_queue_ns: Counter::default(),
            events: array::from_fn(|_| EventCell {
                waits: Tally::new(),
                latency: OnceLock::new(),
                metered_cpu_ns: Counter::default(),
                metered_ns: Counter::default(),
            }),
            streams: array::from_fn(|_| StreamCell {
                requests: Tally::new(),
                bytes: Counter::default(),
                large: array::from_fn(|_| Counter::default()),
                away_ns: Counter::default(),
            }),
            statistics: array::from_fn(|_| Counter::default()),
            kept: Kept::default(),
        }
    }

    /// Records a wait, and the CPU inside it where that was read.
    #[inline]
    pub(crate) fn waited(&self, event: Event, duration: Nanos, cpu: Option<Nanos>) {
        let cell = &self.events[event as usize];
        cell.waits.record(duration);
        let counters = || (0..latency::BUCKETS).map(|_| Counter::default()).collect();
        cell.latency.get_or_init(counters)[latency::bucket(duration.0)].add(1);
        if let Some(cpu) = cpu {
            cell.metered_cpu_ns.add(cpu.min(duration).0);
            cell.metered_ns.add(duration.0);
        }
    }

    /// Records the session's end, with its CPU and delay by then.
    pub(crate) fn ended(&self, end: Nanos, [cpu, run_queue]: [Nanos; 2]) {
        self.cpu_ns.set(cpu.saturating_sub(self.begin_cpu).0);
        self.run_queue_ns.set(run_queue.saturating_sub(self.begin_run_queue).0);
        self.end_ns.set(end.0);
    }
}

/// Largest request, in bytes, that `IOStat by Filetype` counts as small.
pub const LARGE_REQUEST: u64 = 128 * 1024;

/// Charge for reading the CPU clock twice: each is a system call of 0.1 to 0.5 us.
const METERING_COST: Nanos = Nanos(1_000);
/// Metering costs at most one part in 256 of the time waited, so that it
/// does not distort the measurement.
const METERED_PART: u64 = 256;
/// Metering time that a session has at first, and may save up at most.
const METERING_BUDGET: Nanos = Nanos(64 * METERING_COST.0);

/// Start of a wait, to be ended by [`Session::end_wait`].
#[derive(Debug, Clone, Copy)]
pub struct WaitBegin {
    at: Nanos,
    /// The thread's CPU clock, if it was read.
    cpu: Option<Nanos>,
}

impl WaitBegin {
    /// Returns the start of the wait, by the monotonic clock.
    pub fn at(self) -> Nanos {
        self.at
    }
}

/// The times of one request for bytes, in this order.
#[derive(Debug, Clone, Copy)]
pub struct RequestTimes {
    /// Time at which its session handed it over to the kernel or to a pool of threads.
    pub handed_over: Nanos,
    /// Time at which the kernel got it: the call, or the enter that submitted it.
    pub begin: Nanos,
    /// Time at which it was complete: the call returned, or its completion was seen.
    pub end: Nanos,
    /// Time at which its session took it in.
    pub taken_in: Nanos,
}

impl RequestTimes {
    /// Returns the times of a request that the session carries out by a call.
    pub const fn of_call(begin: Nanos, end: Nanos) -> RequestTimes {
        RequestTimes { handed_over: begin, begin, end, taken_in: end }
    }
}

/// One server process: names the events for which it waits and counts its work. It belongs to
/// the thread that made it.
#[derive(Debug)]
pub struct Session {
    record: Arc<Record>,
    shared: Arc<Shared>,
    profile: RefCell<Profile>,
    /// Nanoseconds that may still be spent on reading the CPU clock.
    metering_ns: Cell<u64>,
    /// Chunk for its traced requests.
    chunk: RefCell<Option<Arc<Chunk>>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, name: String, role: Role) -> Session {
        let meter = Meter::here();
        let queued = meter.read()[1];
        // The CPU clock is read within the session's life, here and at its end.
        let begin = now();
        let record = Arc::new(Record::new((name, role, meter), begin, [sharing::cpu(), queued]));
        shared.register(Arc::clone(&record));
        let metering = if role.kind() == SessionKind::Probe { Nanos(0) } else { METERING_BUDGET };
        Session {
            record,
            profile: RefCell::new(Profile::new(shared.origin)),
            shared,
            metering_ns: Cell::new(metering.0),
            chunk: RefCell::new(None),
        }
    }

    /// Returns the session's name, as `PX sort server p001`.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Locks a mutex that is held for long, as [`locked`] does, and records the session's
    /// wait for it under `event`.
    pub fn latch<'m, T>(&self, mutex: &'m Mutex<T>, event: Event) -> MutexGuard<'m, T> {
        try_locked(mutex).unwrap_or_else(|| self.wait(event, || locked(mutex)))
    }

    /// Runs `work`, which may wait, and records its time under `event`.
    #[inline]
    pub fn wait<T>(&self, event: Event, work: impl FnOnce() -> T) -> T {
        let begin = self.begin_wait();
        let result = work();
        self.end_wait(event, begin);
        result
    }

    /// Starts a wait that the caller ends with [`Session::end_wait`]. Waits do not nest.
    #[inline]
    #[must_use]
    pub fn begin_wait(&self) -> WaitBegin {
        let left = self.metering_ns.get().checked_sub(METERING_COST.0);
        // A session that shares a thread gives it up during a wait, and uses no CPU there.
        let cpu = left.filter(|_| matches!(self.record.meter, Meter::Thread(_))).map(|left| {
            self.metering_ns.set(left);
            clock::thread_cpu()
        });
        WaitBegin { at: now(), cpu }
    }

    /// Records a wait that ends now.
    #[inline]
    pub fn end_wait(&self, event: Event, begin: WaitBegin) {
        self.end_wait_at(event, begin, now());
    }

    /// Records a wait whose end was just read from the clock. A clock read costs 50 ns, a read from
    /// a fast device about a thousand.
    #[inline]
    pub fn end_wait_at(&self, event: Event, begin: WaitBegin, end: Nanos) {
        let duration = end.saturating_sub(begin.at);
        let cpu = begin.cpu.map(|cpu| clock::thread_cpu().saturating_sub(cpu));
        self.record.waited(event, duration, cpu);
        if self.record.role.kind() != SessionKind::Probe {
            let earned = self.metering_ns.get().saturating_add(duration.0 / METERED_PART);
            self.metering_ns.set(earned.min(METERING_BUDGET.0));
        }
    }

    /// Records a wait that is known only after its end and used almost no CPU.
    #[inline]
    pub fn waited(&self, event: Event, begin: Nanos, end: Nanos) {
        self.record.waited(event, end.saturating_sub(begin), None);
    }

    /// Waits for an event that may take long, as a background process's work. A snapshot taken
    /// meanwhile counts the time so far, and the I/O profile until now is published.
    pub fn wait_long<T>(&self, event: Event, work: impl FnOnce() -> T) -> T {
        self.publish_profile();
        let begin = self.begin_wait();
        self.record.waiting_since_ns.set(begin.at.0);
        self.record.waiting_for.set(event as u64 + 1);
        let result = work();
        self.end_wait(event, begin);
        self.record.waiting_for.set(0);
        result
    }

    /// Hands the I/O profile so far to the recorder, which otherwise gets it when the session ends.
    fn publish_profile(&self) {
        let mut profile = self.profile.borrow_mut();
        self.shared.merge_profile(&profile);
        *profile = Profile::new(self.shared.origin);
    }

    /// Adds `amount` to a statistic of the session.
    #[inline]
    pub fn count(&self, statistic: Statistic, amount: u64) {
        self.record.statistics[statistic as usize].add(amount);
    }

    /// Records one finished request for bytes. Its service time, from begin to end, may overlap
    /// others and is no wait.
    pub fn transferred(&self, times: RequestTimes, moved: &Moved) {
        let RequestTimes { handed_over, begin, end, taken_in } = times;
        let Moved { stream, bytes, .. } = *moved;
        let cell = &self.record.streams[stream as usize];
        cell.requests.record(end.saturating_sub(begin));
        cell.bytes.add(bytes);
        if bytes > LARGE_REQUEST {
            let [count, total, time] = &cell.large;
            count.add(1);
            total.add(bytes);
            time.add(end.saturating_sub(begin).0);
        }
        cell.away_ns.add(taken_in.saturating_sub(handed_over).0);
        let (requests, total) = match stream.direction() {
            Direction::Read => (Statistic::PhysicalReadRequests, Statistic::PhysicalReadBytes),
            Direction::Write => (Statistic::PhysicalWriteRequests, Statistic::PhysicalWriteBytes),
        };
        self.count(requests, 1);
        self.count(total, bytes);
        self.profile.borrow_mut().add(stream, begin, end, bytes);
        if let Some(tracer) = self.shared.tracer.get() {
            tracer.keep((&self.record.kept, &mut self.chunk.borrow_mut()), (begin, end), moved);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let used = self.record.meter.read_own();
        self.record.ended(now(), used);
        self.publish_profile();
    }
}

/// State shared by the sessions of a recorder.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) origin: Nanos,
    pub(crate) records: Mutex<Vec<Arc<Record>>>,
    pub(crate) profile: Mutex<Profile>,
    pub(crate) phases: Mutex<Vec<PhaseSpan>>,
    /// Set once a trace is armed.
    pub(crate) tracer: OnceLock<Tracer>,
}

impl Shared {
    pub(crate) fn register(&self, record: Arc<Record>) {
        locked(&self.records).push(record);
    }

    pub(crate) fn merge_profile(&self, profile: &Profile) {
        locked(&self.profile).merge(profile);
    }
}

/// A phase and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Kind of the work, a row of the table.
    pub phase: Phase,
    /// Time of its start, since the recorder's origin.
    pub begin: Nanos,
    /// Time of its end, since the recorder's origin.
    pub end: Nanos,
    /// Rows that passed through; 0 if none are counted.
    pub rows: u64,
}
