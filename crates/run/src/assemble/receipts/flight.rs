//! Receipts of the number of requests in flight.
//!
//! Two times show it. A request is in flight from its submission to the kernel, or to the pool of
//! threads, until its session reads its completion. A wait lasts while the session can do nothing
//! else. Their ratio over a session separates the methods. A synchronous request is waited for from
//! start to end, so the ratio is 1. For an asynchronous one a session waits at most for the
//! remainder. Overlapping requests each count their own time, so the ratio is above 1. The ratio is
//! of sums over a session, because the median of requests says nothing about overlap. Sessions with
//! few requests are left out. Streams that wait for each request by design (reads into the cache)
//! are left out, too. So are sessions that measured the device, because those waits have the same
//! names.
//!
//! A ring that completes requests within the call that submits them overlaps nothing, although they
//! are in flight together. Such requests are counted where they happen (`io`), and too many of them
//! contradict the receipt.
//!
//! The average number is the sum of these times divided by the time of that phase of the session.

use super::super::Evidence;
use super::io::scanners;
use super::sort::spilled;
use super::{Ruling, counted};
use plumb_engine::Setting;
use plumb_events::{Event, IoStream, Phase, PhaseSpan, SessionTotals, Statistic};
use plumb_io::{DirectIo, MethodKind};
use plumb_units::Nanos;

/// Fewest requests of a session that is judged.
const SESSION_REQUESTS_MIN: u64 = 8;
/// Fewest requests of a run that is judged.
const REQUESTS_MIN: u64 = 32;
/// Smallest ratio of time in flight to waits that shows requests in flight while sessions worked.
const ASYNCHRONOUS_MIN: f64 = 1.05;
/// Largest ratio at which sessions waited for each request from start to end.
const SYNCHRONOUS_MAX: f64 = 1.01;
/// Share of ring requests that may be complete when the submitting call returns: a device
/// answers few in that time.
const AT_ONCE_MAX: f64 = 0.5;
/// Share of their time that sessions may wait for a processor. Above it calls return late, so that
/// complete requests may have been asynchronous.
const RUN_QUEUE_MAX: f64 = 0.1;
/// Factor that reading clocks may add to a mean bounded by a setting.
const TOLERANCE: f64 = 1.02;

/// Streams whose requests may overlap, with the waits for them.
const STREAMS: [IoStream; 6] = [
    IoStream::TableReads,
    IoStream::TempWrites,
    IoStream::TempReads,
    IoStream::IndexWrites,
    IoStream::FileReads,
    IoStream::FileWrites,
];
const WAITS: [Event; 7] = [
    Event::ExternalTableRead,
    Event::ExternalTableWrite,
    Event::DirectPathRead,
    Event::DirectPathReadTemp,
    Event::DirectPathWrite,
    Event::DirectPathWriteTemp,
    Event::DbFileParallelWrite,
];

/// Requests of a session, their time in flight, and waits.
struct Flight {
    requests: u64,
    away: Nanos,
    waits: Nanos,
}

impl Flight {
    fn of(session: &SessionTotals) -> Flight {
        let streams = || STREAMS.iter().map(|stream| &session.streams[*stream as usize]);
        Flight {
            requests: streams().map(|stream| stream.count).sum(),
            away: streams().map(|stream| stream.away).sum(),
            waits: WAITS.iter().map(|event| session.events[*event as usize].time).sum(),
        }
    }

    fn ratio(&self) -> f64 {
        self.away.0 as f64 / self.waits.0.max(1) as f64
    }
}

/// Judges if requests overlapped each other or work, session by session.
pub(super) fn overlap(seen: &Evidence) -> Option<Ruling> {
    let measured = |session: &&SessionTotals| session.streams[IoStream::Probe as usize].count > 0;
    let sessions = seen.measured.period.sessions.iter().filter(|session| !measured(session));
    let flights: Vec<Flight> =
        sessions.map(Flight::of).filter(|flight| flight.requests >= SESSION_REQUESTS_MIN).collect();
    let requests: u64 = flights.iter().map(|flight| flight.requests).sum();
    let total = Flight {
        requests,
        away: flights.iter().map(|flight| flight.away).sum(),
        waits: flights.iter().map(|flight| flight.waits).sum(),
    };
    let least = flights.iter().map(Flight::ratio).fold(f64::INFINITY, f64::min);
    let most = flights.iter().map(Flight::ratio).fold(0.0, f64::max);
    if requests < REQUESTS_MIN {
        return Some(Ruling::unknown(format!("{} are too few to judge", counted(requests, "request"))));
    }
    let evidence = format!(
        "{} were on their way for {} in sum and waited for {}: {:.2} times as long, {least:.2} to {most:.2} by session \
         (1.00 is synchronous)",
        counted(requests, "request"),
        total.away,
        total.waits,
        total.ratio()
    );
    let method = &seen.inside.access.method;
    let asynchronous = method.kind() != MethodKind::Sync;
    let [at_once, by_ring] = [Statistic::RingCompleteAtOnce, Statistic::RingRequests]
        .map(|kind| seen.measured.period.statistic(kind));
    let at_once = at_once as f64 / by_ring.max(1) as f64;
    let options = seen.inside.settings.word(Setting::FilesystemioOptions);
    if asynchronous != matches!(options, "asynch" | "setall") {
        return Some(Ruling::unknown(format!("{evidence}; {}", seen.inside.access.method_reason())));
    }
    Some(match asynchronous {
        true if method.goes_by(MethodKind::Sync) => {
            Ruling::unknown(format!("{evidence}; {}", seen.inside.access.method_reason()))
        }
        true if method.queue_depth() == 1 => Ruling::unknown(format!("{evidence}; io_queue_depth is 1")),
        true if at_once > AT_ONCE_MAX => {
            let evidence = format!(
                "{evidence}; {:.0}% of the requests through rings were complete when the call that handed them over \
                 returned",
                at_once * 100.0
            );
            let queued = queued_share(&seen.measured.period.sessions);
            // Cached pages are complete at once, whatever the method.
            match seen.inside.access.direct {
                DirectIo::Required if queued > RUN_QUEUE_MAX => Ruling::unknown(format!(
                    "{evidence}, late: the sessions waited for a processor for {:.0}% of their time",
                    queued * 100.0
                )),
                DirectIo::Required => Ruling::contradicted(evidence),
                DirectIo::Off => Ruling::unknown(evidence),
            }
        }
        true => Ruling::that(total.ratio() > ASYNCHRONOUS_MIN, evidence),
        false => Ruling::that(most <= SYNCHRONOUS_MAX, evidence),
    })
}

/// Share of their active time in which sessions were ready without a processor.
fn queued_share(sessions: &[SessionTotals]) -> f64 {
    let queued: u64 = sessions.iter().map(|session| session.run_queue.0).sum();
    let at_work: u64 = sessions.iter().map(|session| session.elapsed.saturating_sub(session.idle()).0).sum();
    queued as f64 / at_work.max(1) as f64
}

/// Judges the table reads that a scan server had in flight. While it waits, the buffer it works on
/// is in flight, too: at most one more than the setting.
pub(super) fn scan_read_ahead(seen: &Evidence) -> Option<Ruling> {
    let explicit = seen.inside.settings.is_explicit(Setting::ScanReadAhead);
    let unjudged = |why: String| explicit.then(|| Ruling::unknown(why));
    let method = &seen.inside.access.method;
    if method.kind() == MethodKind::Sync {
        return unjudged("requests are synchronous: this setting had no effect".to_string());
    }
    let asked = seen.inside.settings.number(Setting::ScanReadAhead);
    let scan = phase(seen, Phase::TableScan);
    let sessions = scanners(seen).map(|session| {
        let stream = &session.streams[IoStream::TableReads as usize];
        let waits = session.events[Event::DirectPathRead as usize].time;
        let flight = Flight { requests: stream.count, away: stream.away, waits };
        (in_flight(stream.away, session.elapsed.min(scan)), flight)
    });
    let sessions: Vec<(f64, Flight)> = sessions.filter(|(_, flight)| flight.requests > 0).collect();
    let requests: u64 = sessions.iter().map(|(_, flight)| flight.requests).sum();
    if requests < REQUESTS_MIN.max(8 * asked) {
        return unjudged(format!(
            "{} of the table past the cache: too few to judge",
            counted(requests, "read")
        ));
    }
    let most = sessions.iter().map(|(mean, _)| *mean).fold(0.0, f64::max);
    let mean = sessions.iter().map(|(mean, _)| *mean).sum::<f64>() / sessions.len() as f64;
    let evidence = format!(
        "{} by {}: {mean:.1} in flight on average, {most:.1} for the session with most",
        counted(requests, "read"),
        counted(sessions.len() as u64, "session")
    );
    let may_overlap = asked.min(method.queue_depth() as u64) > 1;
    // Reads that had arrived before the scan asked for them do not show how many were in flight.
    let mostly_waited = sessions.iter().any(|(_, flight)| flight.waits.0 * 2 > flight.away.0);
    Some(match (most <= (asked + 1) as f64 * TOLERANCE, may_overlap && mean <= 1.0) {
        (false, _) => Ruling::contradicted(evidence),
        (true, false) => Ruling::held(evidence),
        (true, true) if mostly_waited => Ruling::contradicted(evidence),
        (true, true) => Ruling::unknown(format!("{evidence}: they arrived before the scan asked for them")),
    })
}

/// Judges the writes of runs in flight when a server had no free buffer: their number
/// is that of the buffers.
pub(super) fn write_buffers(seen: &Evidence) -> Option<Ruling> {
    let settings = &seen.inside.settings;
    let asked = settings.number(Setting::SortWriteBuffers);
    let plan = seen.inside.plan.as_deref()?;
    if !spilled(seen) || !plan.direct_writes {
        let explicit = settings.is_explicit(Setting::SortWriteBuffers);
        return explicit.then(|| Ruling::unknown("no run was written directly: this setting had no effect"));
    }
    let count = |kind| seen.measured.period.statistic(kind);
    let (waits, writes) = (count(Statistic::SortWriteWaits), count(Statistic::SortWritesInFlight));
    let mean = writes as f64 / waits.max(1) as f64;
    let evidence = format!(
        "{} of runs; {} for a write buffer, with {mean:.2} writes in flight each on average",
        counted(seen.measured.period.stream(IoStream::TempWrites).count, "write"),
        counted(waits, "wait"),
    );
    if plan.write_buffer_count as u64 != asked {
        return Some(Ruling::unknown(format!("{evidence}; {}", plan.direct_writes_reason)));
    }
    if waits == 0 {
        return Some(Ruling::unknown(format!("{evidence}: fewer would have done")));
    }
    // A write that ends during the count makes it one less.
    Some(Ruling::that(mean <= asked as f64 && mean > asked as f64 - 1.0, evidence))
}

fn in_flight(away: Nanos, elapsed: Nanos) -> f64 {
    away.0 as f64 / elapsed.0.max(1) as f64
}

/// Returns the length of a phase.
fn phase(seen: &Evidence, phase: Phase) -> Nanos {
    let length = |span: &PhaseSpan| span.end.saturating_sub(span.begin);
    seen.inside.phases.iter().find(|span| span.phase == phase).map_or(Nanos(u64::MAX), length)
}
