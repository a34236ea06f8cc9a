//! The records of an instance, snapshots of them, and the difference of two.
//!
//! Time adds up by session: elapsed = CPU outside waits + waits + a rest, in which the session had
//! no processor. A wait may use CPU in the kernel: a buffered read copies, a sleep and a wake-up
//! switch threads. That CPU is a part of the wait and is shown separately, because DB time = CPU +
//! non-idle waits would count it twice.
//!
//! Mechanism: reading a thread's CPU clock is a system call of 440 ns (on one machine), and a wait
//! may last 60. So the clock is read around waits only while it costs at most a 256th of the time
//! waited. That covers every wait for a device of 256 us and more, and one in dozens for the page
//! cache. The measured share is applied to all waits of the same event and session. The first 64
//! waits of a session are always measured.
//!
//! Why not `getrusage` or the scheduler's figures: they are a tick old. Why not only the overlap,
//! elapsed less CPU less waits: a session that queued for a processor outside waits hides it.

use crate::clock::{self, now};
use crate::histogram::Histogram;
use crate::latency::LatencyHistogram;
use crate::profile::Profile;
use crate::session::{Counter, EventCell, PhaseSpan, Record, Shared, StreamCell, Tally};
use crate::trace::{Trace, Tracer};
use crate::{Event, IoStream, Phase, Role, Session, SessionKind, Statistic, WaitClass, locked};
use plumb_units::Nanos;
use std::sync::{Arc, Mutex, OnceLock};

/// Keeps the records of every session of one instance. Its locks are taken when a session starts or
/// ends and when a snapshot is taken, never by a wait.
#[derive(Debug, Clone)]
pub struct Recorder(Arc<Shared>);

impl Recorder {
    /// Creates a recorder whose profile starts now.
    pub fn new() -> Recorder {
        let origin = now();
        Recorder(Arc::new(Shared {
            origin,
            records: Mutex::new(Vec::new()),
            profile: Mutex::new(Profile::new(origin)),
            phases: Mutex::new(Vec::new()),
            tracer: OnceLock::new(),
        }))
    }

    /// Returns the time from which phases and profile count.
    pub fn origin(&self) -> Nanos {
        self.0.origin
    }

    /// Creates a session of the calling thread, the only one of its role.
    #[must_use]
    pub fn session(&self, role: Role) -> Session {
        Session::new(Arc::clone(&self.0), role.name().to_string(), role)
    }

    /// Creates a session of the calling thread, number `number` of its role.
    #[must_use]
    pub fn numbered_session(&self, role: Role, number: usize) -> Session {
        Session::new(Arc::clone(&self.0), role.numbered(number), role)
    }

    /// Records a phase that started at `begin` (a clock reading) and ends now.
    pub fn phase(&self, phase: Phase, begin: Nanos, rows: u64) {
        let origin = self.0.origin;
        locked(&self.0.phases).push(PhaseSpan {
            phase,
            begin: begin.saturating_sub(origin),
            end: now().saturating_sub(origin),
            rows,
        });
    }

    /// Returns the phases so far, in order of their start. Spans of one phase are joined: first
    /// begin, last end, sum of rows.
    pub fn phases(&self) -> Vec<PhaseSpan> {
        let mut joined: Vec<PhaseSpan> = Vec::new();
        for span in locked(&self.0.phases).iter() {
            match joined.iter_mut().find(|known| known.phase == span.phase) {
                Some(known) => {
                    known.begin = known.begin.min(span.begin);
                    known.end = known.end.max(span.end);
                    known.rows += span.rows;
                }
                None => joined.push(span.clone()),
            }
        }
        joined.sort_by_key(|span| (span.begin, span.end));
        joined
    }

    /// Returns the profile of ended sessions, and of living ones up to their last long wait.
    pub fn profile(&self) -> Profile {
        locked(&self.0.profile).clone()
    }

    /// Allows a trace of at most `most` requests, whose memory is allocated as they come.
    /// Only the first call counts.
    pub fn arm_trace(&self, most: u64) {
        self.0.tracer.get_or_init(|| Tracer::new(most));
    }

    /// Traces the requests of all sessions from now on, if a trace was armed. The first snapshot of
    /// the trace is taken after this call.
    pub fn begin_trace(&self) {
        if let Some(tracer) = self.0.tracer.get() {
            tracer.turn(true);
        }
    }

    /// Stops tracing. The last snapshot of the trace was taken before this call.
    pub fn end_trace(&self) {
        if let Some(tracer) = self.0.tracer.get() {
            tracer.turn(false);
        }
    }

    /// Returns the requests traced between two snapshots; `None` where no trace was armed.
    pub fn trace(&self, [first, last]: [&Snapshot; 2]) -> Option<Trace> {
        self.0.tracer.get()?;
        let mut trace = Trace::between(first.at, last.at);
        for (place, (record, after)) in locked(&self.0.records).iter().zip(&last.sessions).enumerate() {
            let before = first.sessions.get(place).map_or(0, |session| session.traced);
            trace.add(&record.name, &record.kept, first.at, before..after.traced);
        }
        Some(trace)
    }

    /// Returns the totals of every session, living or ended, as of now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let at = now();
        let sessions = locked(&self.0.records).iter().map(|r| SessionTotals::of(r, at)).collect();
        Snapshot { at, sessions }
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

/// Totals of all sessions at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Time of the snapshot, a reading of the monotonic clock.
    pub at: Nanos,
    /// One entry per session, in order of their start.
    pub sessions: Vec<SessionTotals>,
}

impl Snapshot {
    /// Returns one statistic summed over all sessions.
    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.sessions.iter().map(|session| session.statistics[statistic as usize]).sum()
    }

    /// Returns the growth since the snapshot `earlier`. Sessions that had ended
    /// by then are left out.
    pub fn since(&self, earlier: &Snapshot) -> Period {
        let sessions = self
            .sessions
            .iter()
            .enumerate()
            .filter_map(|(index, session)| session.since(earlier.sessions.get(index)))
            .collect();
        Period { elapsed: self.at.saturating_sub(earlier.at), sessions }
    }
}

/// Growth of all totals between two snapshots.
#[derive(Debug, Clone)]
pub struct Period {
    /// Time between the two snapshots.
    pub elapsed: Nanos,
    /// Totals of the sessions that were alive in it.
    pub sessions: Vec<SessionTotals>,
}

impl Period {
    /// Returns one statistic summed over all sessions.
    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.sessions.iter().map(|session| session.statistics[statistic as usize]).sum()
    }

    /// Returns one event's totals over the sessions of a kind.
    pub fn event(&self, event: Event, kind: SessionKind) -> EventTotals {
        let mut total = EventTotals::default();
        for session in self.sessions.iter().filter(|session| session.role.kind() == kind) {
            total.merge(&session.events[event as usize]);
        }
        total
    }

    /// Returns one stream's totals over all sessions.
    pub fn stream(&self, stream: IoStream) -> StreamTotals {
        let mut total = StreamTotals::default();
        for session in &self.sessions {
            total.merge(&session.streams[stream as usize]);
        }
        total
    }

    /// Returns the CPU of foreground sessions outside waits.
    pub fn db_cpu(&self) -> Nanos {
        self.foreground().map(|session| session.cpu).sum()
    }

    /// Returns DB time: CPU outside waits plus non-idle waits of foreground sessions.
    pub fn db_time(&self) -> Nanos {
        self.foreground().map(|session| session.cpu + session.waits()).sum()
    }

    fn foreground(&self) -> impl Iterator<Item = &SessionTotals> {
        self.sessions.iter().filter(|session| session.role.kind() == SessionKind::Foreground)
    }
}

/// Attempts to read a session's requests consistently; a session that moves
/// bytes without pause allows none.
const READINGS: usize = 100;

/// Returns the totals by [`IoStream`] and the number of traced requests, both of one moment: a
/// session may complete a hundred requests during the read.
fn requests(record: &Record) -> (Vec<StreamTotals>, u64) {
    let read = || {
        let before = record.kept.requests();
        let streams = record.streams.iter().map(StreamTotals::of).collect();
        (streams, before)
    };
    let at_rest = (1..READINGS).map(|_| read()).find(|(_, before)| record.kept.requests() == *before);
    at_rest.unwrap_or_else(read)
}

/// The totals of one session.
#[derive(Debug, Clone)]
pub struct SessionTotals {
    /// Name of the session, as `PX sort server p001`.
    pub name: String,
    /// Role from which the name and the kind follow.
    pub role: Role,
    /// Time from its start to its end or the snapshot.
    pub elapsed: Nanos,
    /// CPU time outside waits, in user and kernel mode.
    pub cpu: Nanos,
    /// CPU time inside waits, which is a part of their time.
    pub wait_cpu: Nanos,
    /// Time for which it was ready without a processor, from the scheduler.
    pub run_queue: Nanos,
    /// Totals of waits, in the order of [`Event`].
    pub events: Vec<EventTotals>,
    /// Totals of requests, in the order of [`IoStream`].
    pub streams: Vec<StreamTotals>,
    /// Counts, in the order of [`Statistic`].
    pub statistics: Vec<u64>,
    /// Requests while a trace was on: those kept, and those for which there was no room.
    pub traced: u64,
}

impl SessionTotals {
    pub(crate) fn of(record: &Record, at: Nanos) -> SessionTotals {
        let end = record.end_ns.get();
        let until = if end == 0 { at } else { Nanos(end) };
        let [used, run_queue] = if end == 0 {
            let [mut cpu, queued] = record.meter.read();
            // The scheduler's figure is a tick old; the session's own thread
            // can read the exact one.
            if record.meter.is_own() {
                cpu = clock::thread_cpu();
            }
            [cpu.saturating_sub(record.begin_cpu), queued.saturating_sub(record.begin_run_queue)]
        } else {
            [Nanos(record.cpu_ns.get()), Nanos(record.run_queue_ns.get())]
        };
        let mut events: Vec<EventTotals> = record.events.iter().map(EventTotals::of).collect();
        let wait_cpu = events.iter().map(|event| event.cpu).sum::<Nanos>().min(used);
        // Adds the time of a wait in progress; it is counted as a wait when it ends.
        if let Some(event) = (record.waiting_for.get() as usize).checked_sub(1).filter(|_| end == 0) {
            events[event].time += at.saturating_sub(Nanos(record.waiting_since_ns.get()));
        }
        let (streams, traced) = requests(record);
        SessionTotals {
            name: record.name.clone(),
            role: record.role,
            elapsed: until.saturating_sub(record.begin),
            cpu: used.saturating_sub(wait_cpu),
            wait_cpu,
            run_queue,
            events,
            streams,
            statistics: record.statistics.iter().map(|counter| counter.get()).collect(),
            traced,
        }
    }

    /// Returns the growth since an earlier snapshot of the same session; `None` if
    /// it had ended by then.
    fn since(&self, earlier: Option<&SessionTotals>) -> Option<SessionTotals> {
        let Some(earlier) = earlier else { return Some(self.clone()) };
        let elapsed = self.elapsed.saturating_sub(earlier.elapsed);
        if elapsed.0 == 0 {
            return None;
        }
        let mut difference = self.clone();
        difference.elapsed = elapsed;
        difference.cpu = self.cpu.saturating_sub(earlier.cpu);
        difference.wait_cpu = self.wait_cpu.saturating_sub(earlier.wait_cpu);
        difference.run_queue = self.run_queue.saturating_sub(earlier.run_queue);
        for (mine, theirs) in difference.events.iter_mut().zip(&earlier.events) {
            mine.subtract(theirs);
        }
        for (mine, theirs) in difference.streams.iter_mut().zip(&earlier.streams) {
            mine.subtract(theirs);
        }
        difference.traced -= earlier.traced;
        for (mine, theirs) in difference.statistics.iter_mut().zip(&earlier.statistics) {
            *mine -= theirs;
        }
        Some(difference)
    }

    /// Returns the time of its waits for events that are not idle.
    pub fn waits(&self) -> Nanos {
        self.time_of(|class| class != WaitClass::Idle)
    }

    /// Returns the time of its waits for work.
    pub fn idle(&self) -> Nanos {
        self.time_of(|class| class == WaitClass::Idle)
    }

    fn time_of(&self, counts: impl Fn(WaitClass) -> bool) -> Nanos {
        let events = Event::ALL.iter().filter(|event| counts(event.class()));
        events.map(|event| self.events[*event as usize].time).sum()
    }

    /// Returns its CPU time, inside waits too.
    pub fn cpu_used(&self) -> Nanos {
        self.cpu + self.wait_cpu
    }

    /// Returns the time explained by neither CPU nor waits: elapsed - CPU - waits.
    pub fn unaccounted(&self) -> Nanos {
        self.elapsed.saturating_sub(self.cpu + self.waits() + self.idle())
    }
}

/// Count and time of an event.
#[derive(Debug, Clone, Default)]
pub struct EventTotals {
    /// Number of waits that have ended.
    pub count: u64,
    /// Sum of their times, in nanoseconds.
    pub time: Nanos,
    /// CPU used inside the waits: the measured share, applied to all of them.
    pub cpu: Nanos,
    /// The longest wait. In a snapshot over the life of the session; in a period 0
    /// if it may lie before.
    pub max: Nanos,
    /// Number of waits by duration, log2.
    pub histogram: Histogram,
    /// Number of waits by duration within 3.2%; `None` without waits.
    pub latency: Option<LatencyHistogram>,
}

impl EventTotals {
    fn of(cell: &EventCell) -> EventTotals {
        let time = cell.waits.time_ns.get();
        let known = u128::from(cell.metered_ns.get().max(1));
        let cpu = u128::from(cell.metered_cpu_ns.get()) * u128::from(time) / known;
        EventTotals {
            count: cell.waits.count.get(),
            time: Nanos(time),
            cpu: Nanos(u64::try_from(cpu).unwrap_or(time).min(time)),
            max: Nanos(cell.waits.max_ns.get()),
            histogram: histogram(&cell.waits),
            latency: cell.latency.get().map(|counters| {
                let counts = counters.iter().map(|counter| counter.get()).collect();
                LatencyHistogram::of_counts(counts, Nanos(time), Nanos(cell.waits.max_ns.get()))
            }),
        }
    }

    /// Adds the totals of another session.
    pub fn merge(&mut self, other: &EventTotals) {
        self.count += other.count;
        self.time += other.time;
        self.cpu += other.cpu;
        self.max = self.max.max(other.max);
        self.histogram.merge(&other.histogram);
        if let Some(latency) = &other.latency {
            self.latency.get_or_insert_default().merge(latency);
        }
    }

    fn subtract(&mut self, earlier: &EventTotals) {
        self.count -= earlier.count;
        self.time = self.time.saturating_sub(earlier.time);
        self.cpu = self.cpu.saturating_sub(earlier.cpu);
        self.max = risen(self.max, earlier.max);
        subtract(&mut self.histogram, &earlier.histogram);
        if let Some((latency, earlier)) = self.latency.as_mut().zip(earlier.latency.as_ref()) {
            latency.subtract(earlier);
        }
    }
}

/// Requests, bytes and service time of a stream.
#[derive(Debug, Clone, Default)]
pub struct StreamTotals {
    /// Number of requests that were completed.
    pub count: u64,
    /// Bytes that the requests moved.
    pub bytes: u64,
    /// Service time ([`crate::RequestTimes`], from begin to end), summed
    /// over requests that may overlap.
    pub time: Nanos,
    /// Time from hand-over until the session took them in, summed likewise.
    pub away: Nanos,
    /// The longest service time, under the conditions of [`EventTotals::max`].
    pub max: Nanos,
    /// Number of requests by service time, log2.
    pub histogram: Histogram,
    /// Requests, bytes and nanoseconds of service time of those above the size
    /// [`crate::LARGE_REQUEST`].
    pub large: [u64; 3],
}

impl StreamTotals {
    fn of(cell: &StreamCell) -> StreamTotals {
        StreamTotals {
            count: cell.requests.count.get(),
            bytes: cell.bytes.get(),
            time: Nanos(cell.requests.time_ns.get()),
            away: Nanos(cell.away_ns.get()),
            max: Nanos(cell.requests.max_ns.get()),
            histogram: histogram(&cell.requests),
            large: cell.large.each_ref().map(Counter::get),
        }
    }

    /// Adds the totals of another session.
    pub fn merge(&mut self, other: &StreamTotals) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.time += other.time;
        self.away += other.away;
        self.max = self.max.max(other.max);
        self.histogram.merge(&other.histogram);
        self.large.iter_mut().zip(other.large).for_each(|(mine, theirs)| *mine += theirs);
    }

    fn subtract(&mut self, earlier: &StreamTotals) {
        self.count -= earlier.count;
        self.bytes -= earlier.bytes;
        self.time = self.time.saturating_sub(earlier.time);
        self.away = self.away.saturating_sub(earlier.away);
        self.max = risen(self.max, earlier.max);
        subtract(&mut self.histogram, &earlier.histogram);
        self.large.iter_mut().zip(earlier.large).for_each(|(mine, theirs)| *mine -= theirs);
    }
}

fn histogram(tally: &Tally) -> Histogram {
    Histogram(std::array::from_fn(|bucket| tally.histogram[bucket].get()))
}

/// Returns the maximum of a period: known only if it exceeds all before.
fn risen(later: Nanos, earlier: Nanos) -> Nanos {
    if later > earlier { later } else { Nanos(0) }
}

fn subtract(from: &mut Histogram, earlier: &Histogram) {
    for (mine, theirs) in from.0.iter_mut().zip(&earlier.0) {
        *mine -= theirs;
    }
}
