//! Summary of a trace for the record: sums by session, histograms, and a sample to draw.

use super::{Request, RunTrace};
use crate::{TraceBucket, TracePoint, TraceSession, TraceSummary};
use plumb_events::Direction;

/// Number of drawn requests, spread over the run, to which the slowest are added.
const POINTS: usize = 1500;
const SLOWEST: usize = 100;

/// Summarizes all sessions; `begin_ns` is the start of the trace, nanoseconds from the run's start.
pub fn summary(trace: &RunTrace, begin_ns: u64) -> TraceSummary {
    let all = || trace.sessions.iter().flat_map(|session| &session.requests);
    TraceSummary {
        requests: trace.request_count(),
        dropped: trace.dropped,
        begin_ns,
        elapsed_ns: trace.elapsed_ns,
        sessions: trace
            .sessions
            .iter()
            .flat_map(|session| tally(trace, &session.name, &session.requests))
            .collect(),
        sizes: histogram(trace, all(), |request| request.bytes),
        latencies: histogram(trace, all(), |request| request.latency_ns),
        points: points(trace),
    }
}

/// Sums the requests of a session by direction, omitting empty directions.
pub fn tally(trace: &RunTrace, name: &str, requests: &[Request]) -> Vec<TraceSession> {
    let of = |direction| {
        let none =
            TraceSession { name: name.to_string(), direction, requests: 0, bytes: 0, time_ns: 0, max_ns: 0 };
        let own = requests.iter().filter(|request| trace.direction(request) == direction);
        own.fold(none, |sum, request| TraceSession {
            requests: sum.requests + 1,
            bytes: sum.bytes + request.bytes,
            time_ns: sum.time_ns + request.latency_ns,
            max_ns: sum.max_ns.max(request.latency_ns),
            ..sum
        })
    };
    [Direction::Read, Direction::Write].map(of).into_iter().filter(|sum| sum.requests > 0).collect()
}

/// Counts by powers of two, from the first used to the last.
pub(super) fn histogram<'r>(
    trace: &RunTrace,
    requests: impl Iterator<Item = &'r Request>,
    figure: fn(&Request) -> u64,
) -> Vec<TraceBucket> {
    let mut counts = [[0_u64; 2]; 64];
    for request in requests {
        let bucket = figure(request).checked_next_power_of_two().map_or(63, u64::ilog2) as usize;
        counts[bucket][usize::from(trace.direction(request) == Direction::Write)] += 1;
    }
    let used = |count: &[u64; 2]| count[0] + count[1] > 0;
    let (Some(first), Some(last)) = (counts.iter().position(used), counts.iter().rposition(used)) else {
        return Vec::new();
    };
    let bucket = |at: usize| TraceBucket { to: 1 << at, reads: counts[at][0], writes: counts[at][1] };
    (first..=last).map(bucket).collect()
}

/// Returns a regular sample of all requests, and the slowest.
fn points(trace: &RunTrace) -> Vec<TracePoint> {
    let point = |request: &Request| TracePoint {
        begin_ns: request.begin_ns,
        latency_ns: request.latency_ns,
        bytes: request.bytes,
        direction: trace.direction(request),
    };
    let mut all: Vec<&Request> = trace.sessions.iter().flat_map(|session| &session.requests).collect();
    all.sort_by_key(|request| (request.begin_ns, request.offset));
    let step = all.len().div_ceil(POINTS).max(1);
    let mut chosen: Vec<&Request> = all.iter().copied().step_by(step).collect();
    if step > 1 {
        all.sort_by_key(|request| std::cmp::Reverse(request.latency_ns));
        chosen.extend(all.iter().take(SLOWEST));
    }
    chosen.into_iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn sums_and_histograms_are_by_direction() {
        let found = summary(&fixture::trace(), 0);
        assert_eq!((found.requests, found.dropped), (11, 3));
        let sums: Vec<_> = found
            .sessions
            .iter()
            .map(|sum| (sum.name.as_str(), sum.direction, sum.requests, sum.bytes))
            .collect();
        let expected = [
            ("session p000", Direction::Write, 5, 512 * 7),
            ("DBW0", Direction::Read, 3, 3 * 8192),
            ("DBW0", Direction::Write, 3, 3 * 8192),
        ];
        assert_eq!(sums, expected);
        let sizes: Vec<_> =
            found.sizes.iter().map(|bucket| (bucket.to, bucket.reads, bucket.writes)).collect();
        assert_eq!(sizes, [(512, 0, 3), (1024, 0, 2), (2048, 0, 0), (4096, 0, 0), (8192, 3, 3)]);
        assert_eq!(found.points.len(), 11, "few are all drawn");
        assert_eq!(summary(&RunTrace::default(), 0), TraceSummary::default());
    }

    #[test]
    fn of_many_requests_some_are_drawn_and_the_slowest_always() {
        let mut trace = fixture::trace();
        let one = trace.sessions[0].requests[0];
        let many = (0..100_000).map(|number| Request { begin_ns: number, latency_ns: 5, ..one });
        trace.sessions[0].requests = many.collect();
        trace.sessions[0].requests[77_777].latency_ns = 1 << 40;
        let points = summary(&trace, 0).points;
        assert!(points.len() <= POINTS + SLOWEST + 1, "{}", points.len());
        assert!(points.iter().any(|point| point.latency_ns == 1 << 40));
    }
}
