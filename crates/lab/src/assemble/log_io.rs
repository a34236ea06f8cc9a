//! The log's requests beside what the kernel moved for them.
//!
//! What the file system makes of a log write happens below the engine: a buffered write of a part of a block sends the whole block, each time it is
//! made durable, and fetches it first where it is not in the page cache. The kernel's counters of this process say so: what it sent less
//! what was asked of files that bypass the cache is the log's. The devices' own counters are of all processes, and are in `io_devices`.

use super::Evidence;
use crate::record::{LogIo, LogPattern};
use crate::trace::RunTrace;
use plumb_events::{IoStream, Statistic};
use plumb_io::DirectIo;

/// With fewer writes nothing is called a pattern.
const WRITES_TO_JUDGE: u64 = 20;
/// The device got more than was asked for when it got so many times as much.
const PADDED: f64 = 1.3;
/// Bytes that nobody asked for, as a share of those written: less are the program's own files.
const FETCHED_SHARE: f64 = 0.05;
/// A write is slow that takes so many times the median.
const SLOW: u64 = 4;

/// What is known of the log; none where nothing was logged.
pub(super) fn log_io(seen: &Evidence, trace: Option<&RunTrace>) -> Option<LogIo> {
    let done = seen.measured.outcome.log.as_ref()?;
    let period = &seen.measured.period;
    let [writes, reads] = [IoStream::LogWrites, IoStream::LogReads].map(|stream| period.stream(stream));
    let [asked_reads, asked_writes] = [Statistic::PhysicalReadBytes, Statistic::PhysicalWriteBytes]
        .map(|statistic| period.statistic(statistic));
    // What is read through the page cache need not be fetched, and what is written to it is sent later.
    let others_direct = seen.inside.access.direct == DirectIo::Required;
    let process = seen.measured.process_io.as_ref().filter(|_| others_direct);
    let mut log = LogIo {
        direct: done.direct == DirectIo::Required,
        sync_method: done.sync.method.name().to_string(),
        writes: writes.count,
        write_bytes: writes.bytes,
        write_ns: writes.time.0,
        redo_writes: period.statistic(Statistic::RedoWrites),
        redo_write_us: period.statistic(Statistic::RedoWriteTime),
        redo_bytes: period.statistic(Statistic::RedoSize),
        reads: reads.count,
        read_bytes: reads.bytes,
        sent_bytes: process
            .map(|process| (process.write_bytes.0 + writes.bytes).saturating_sub(asked_writes)),
        fetched_bytes: process.map(|process| process.read_bytes.0.saturating_sub(asked_reads)),
        slow_writes: trace.map(slow_writes),
        pattern: LogPattern::Unknown,
    };
    log.pattern = pattern(&log);
    Some(log)
}

/// Log writes of a trace that took far longer than the typical one.
fn slow_writes(trace: &RunTrace) -> u64 {
    let of_log = |kind: usize| trace.kinds[kind].stream == IoStream::LogWrites.name();
    let requests = trace.sessions.iter().flat_map(|session| &session.requests);
    let mut times: Vec<u64> =
        requests.filter(|request| of_log(request.kind)).map(|request| request.latency_ns).collect();
    times.sort_unstable();
    let Some(median) = times.get(times.len() / 2) else { return 0 };
    times.iter().filter(|time| **time > SLOW * median).count() as u64
}

/// The name for it.
fn pattern(log: &LogIo) -> LogPattern {
    let (Some(sent), Some(fetched)) = (log.sent_bytes, log.fetched_bytes) else { return LogPattern::Unknown };
    if log.writes < WRITES_TO_JUDGE {
        return LogPattern::Unknown;
    }
    let fetches = !log.direct && fetched as f64 > log.write_bytes as f64 * FETCHED_SHARE;
    match (fetches, sent as f64 > log.write_bytes as f64 * PADDED) {
        (true, _) if log.slow_writes.is_some_and(|slow| slow > 0) => LogPattern::StalledBehindRead,
        (true, _) => LogPattern::ReadModifyWrite,
        (false, true) => LogPattern::BlockRewritten,
        (false, false) => LogPattern::Appends,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn a_pattern_has_its_name_by_what_reached_the_device() {
        let log = |direct, sent, fetched, slow_writes| LogIo {
            direct,
            writes: 1000,
            write_bytes: 1_000_000,
            sent_bytes: Some(sent),
            fetched_bytes: Some(fetched),
            slow_writes,
            ..LogIo::default()
        };
        assert_eq!(pattern(&log(true, 1_000_000, 0, None)), LogPattern::Appends);
        assert_eq!(pattern(&log(false, 8_000_000, 0, None)), LogPattern::BlockRewritten);
        assert_eq!(pattern(&log(false, 8_000_000, 900_000, Some(0))), LogPattern::ReadModifyWrite);
        assert_eq!(pattern(&log(false, 8_000_000, 900_000, Some(7))), LogPattern::StalledBehindRead);
        assert_eq!(pattern(&LogIo { writes: 3, ..log(true, 1_000_000, 0, None) }), LogPattern::Unknown);
        assert_eq!(pattern(&LogIo { sent_bytes: None, ..log(true, 0, 0, None) }), LogPattern::Unknown);
    }

    #[test]
    fn slow_writes_are_those_of_the_log_alone() {
        let mut run = trace::tests::run();
        assert_eq!(slow_writes(&run), 0);
        run.sessions[0].requests[3].latency_ns = 40_000_000;
        run.sessions[1].requests[3].latency_ns = 40_000_000;
        assert_eq!(slow_writes(&run), 1);
        assert_eq!(slow_writes(&RunTrace::default()), 0);
    }
}
