//! The log's requests beside what the kernel moved for them.
//!
//! What the file system makes of a log write happens below the engine: a buffered write of a part of a block sends the whole block, each time it is
//! made durable, and fetches it first where it is not in the page cache. The kernel's counters of this process say so: what it sent less
//! what was asked of files that bypass the cache is the log's. The devices' own counters are of all processes, and are in `io_devices`.
//!
//! Whether a slow write stood behind such a read nothing shows: the kernel fetches within the write. What is seen is that the log's device read
//! something between the two looks, a second apart, that the write lies between. So many slow writes beside reads, and such a share of all, have
//! a name, and the name says no more than that.

use super::Evidence;
use plumb_events::{IoStream, Statistic};
use plumb_io::DirectIo;
use plumb_record::trace::{Request, RunTrace};
use plumb_record::{LogIo, LogPattern};
use plumb_study::sampler::{Look, Looks};
use plumb_units::Nanos;
use std::collections::BTreeSet;
use std::path::Path;

/// A begin and an end, nanoseconds.
type Span = (u64, u64);

/// With fewer writes nothing is called a pattern.
const WRITES_TO_JUDGE: u64 = 20;
/// The device got more than was asked for when it got so many times as much.
const PADDED: f64 = 1.3;
/// Bytes that nobody asked for, as a share of those written: less are the program's own files.
const FETCHED_SHARE: f64 = 0.05;
/// A write is slow that takes so many times the median.
const SLOW: u64 = 4;
/// Slow writes beside reads of which something is said: fewer happen to any log ...
const SLOW_MIN: u64 = 5;
/// ... and so does a smaller share.
const SLOW_SHARE: f64 = 0.01;

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
    let slow = trace.map(slow_writes);
    let reading = seen.beside.as_ref().zip(log_device(seen));
    let reading = reading.map(|(looks, device)| when_reading(looks, device, seen.measured.begin));
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
        slow_writes: slow.as_ref().map(|slow| slow.len() as u64),
        slow_beside_reads: slow.zip(reading).map(|(slow, reading)| beside(&slow, &reading)),
        pattern: LogPattern::Unknown,
    };
    log.pattern = pattern(&log);
    Some(log)
}

/// Log writes of a trace that took far longer than the typical one: from when to when, nanoseconds from its begin.
fn slow_writes(trace: &RunTrace) -> Vec<Span> {
    let of_log = |kind: usize| trace.kinds[kind].stream == IoStream::LogWrites.name();
    let requests = trace.sessions.iter().flat_map(|session| &session.requests);
    let writes: Vec<&Request> = requests.filter(|request| of_log(request.kind)).collect();
    let mut times: Vec<u64> = writes.iter().map(|write| write.latency_ns).collect();
    times.sort_unstable();
    let Some(median) = times.get(times.len() / 2) else { return Vec::new() };
    let slow = writes.iter().filter(|write| write.latency_ns > SLOW * median);
    slow.map(|write| (write.begin_ns, write.begin_ns + write.latency_ns)).collect()
}

/// The name of the block device that the log files lie on, where all lie on one.
fn log_device(seen: &Evidence) -> Option<&str> {
    let log = IoStream::LogWrites.name();
    let trace = seen.measured.trace.as_ref()?;
    let requests = trace.sessions.iter().flat_map(|session| &session.requests);
    let files: BTreeSet<usize> =
        requests.filter(|request| trace.kinds[request.kind].stream == log).map(|write| write.file).collect();
    let device = |file: usize| {
        let path = Path::new(trace.files.get(file)?);
        let holds = seen.devices.iter().filter(|device| path.starts_with(&device.path));
        let nearest = holds.max_by_key(|device| device.path.as_os_str().len())?;
        Some(nearest.block.as_ref()?.name.as_str())
    };
    let mut devices = files.into_iter().map(device);
    let first = devices.next()??;
    devices.all(|device| device == Some(first)).then_some(first)
}

/// When a device read something: between which looks, nanoseconds from the begin of the trace.
fn when_reading(looks: &Looks, device: &str, begin: Nanos) -> Vec<Span> {
    let Some(index) = looks.devices.iter().position(|name| name == device) else { return Vec::new() };
    let read = |look: &Look| look.disks.get(index).copied().flatten().map(|disk| disk.reads.completed);
    let pairs =
        looks.looks.windows(2).filter(|pair| read(&pair[0]).zip(read(&pair[1])).is_some_and(|(a, b)| b > a));
    let since = |at: Nanos| at.saturating_sub(begin).0;
    pairs.map(|pair| (since(pair[0].at), since(pair[1].at))).collect()
}

/// How many of some spans have a moment in common with one of others.
fn beside(spans: &[Span], others: &[Span]) -> u64 {
    let meets = |(begin, end): &Span| others.iter().any(|(from, to)| begin < to && from < end);
    spans.iter().filter(|span| meets(span)).count() as u64
}

fn pattern(log: &LogIo) -> LogPattern {
    let (Some(sent), Some(fetched)) = (log.sent_bytes, log.fetched_bytes) else { return LogPattern::Unknown };
    if log.writes < WRITES_TO_JUDGE {
        return LogPattern::Unknown;
    }
    let fetches = !log.direct && fetched as f64 > log.write_bytes as f64 * FETCHED_SHARE;
    match (fetches, sent as f64 > log.write_bytes as f64 * PADDED) {
        (true, _) if is_slow_beside_reads(log) => LogPattern::SlowBesideReads,
        (true, _) => LogPattern::ReadModifyWrite,
        (false, true) => LogPattern::BlockRewritten,
        (false, false) => LogPattern::Appends,
    }
}

/// Whether writes were slow beside reads oftener than happens to any log.
fn is_slow_beside_reads(log: &LogIo) -> bool {
    log.slow_beside_reads
        .is_some_and(|slow| slow >= SLOW_MIN && slow as f64 >= SLOW_SHARE * log.writes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_host::readings::DiskStats;

    #[test]
    fn a_pattern_has_its_name_by_what_reached_the_device() {
        let log = |direct, sent, fetched, slow_beside_reads| LogIo {
            direct,
            writes: 1000,
            write_bytes: 1_000_000,
            sent_bytes: Some(sent),
            fetched_bytes: Some(fetched),
            slow_writes: Some(40),
            slow_beside_reads,
            ..LogIo::default()
        };
        assert_eq!(pattern(&log(true, 1_000_000, 0, None)), LogPattern::Appends);
        assert_eq!(pattern(&log(false, 8_000_000, 0, None)), LogPattern::BlockRewritten);
        assert_eq!(pattern(&log(false, 8_000_000, 900_000, Some(0))), LogPattern::ReadModifyWrite);
        assert_eq!(pattern(&log(false, 8_000_000, 900_000, Some(10))), LogPattern::SlowBesideReads);
        for few in [None, Some(1), Some(9)] {
            assert_eq!(pattern(&log(false, 8_000_000, 900_000, few)), LogPattern::ReadModifyWrite, "{few:?}");
        }
        let short = LogIo { writes: 30, ..log(false, 8_000_000, 900_000, Some(4)) };
        assert_eq!(pattern(&short), LogPattern::ReadModifyWrite, "four of any number are chance");
        assert_eq!(pattern(&LogIo { writes: 3, ..log(true, 1_000_000, 0, None) }), LogPattern::Unknown);
        assert_eq!(pattern(&LogIo { sent_bytes: None, ..log(true, 0, 0, None) }), LogPattern::Unknown);
    }

    #[test]
    fn slow_writes_are_those_of_the_log_alone() {
        let mut run = plumb_record::fixture::trace();
        assert_eq!(slow_writes(&run), []);
        run.sessions[0].requests[3].latency_ns = 40_000_000;
        run.sessions[1].requests[3].latency_ns = 40_000_000;
        assert_eq!(slow_writes(&run), [(12_000_000, 52_000_000)]);
        assert_eq!(slow_writes(&RunTrace::default()), []);
    }

    #[test]
    fn a_slow_write_is_beside_a_read_where_the_device_read_meanwhile() {
        let look = |at: u64, reads: u64| {
            let mut disk = DiskStats::default();
            disk.reads.completed = reads;
            Look {
                suspended: Nanos(0),
                at: Nanos(at),
                disks: vec![Some(disk)],
                cpu: None,
                load: None,
                available: None,
                stalled: None,
            }
        };
        let looks = Looks {
            interval: Nanos(10),
            cost: Nanos(0),
            devices: vec!["vda".to_string()],
            looks: vec![look(100, 5), look(110, 5), look(120, 9), look(130, 9)],
        };
        let reading = when_reading(&looks, "vda", Nanos(100));
        assert_eq!(reading, [(10, 20)]);
        assert_eq!(beside(&[(0, 9), (9, 11), (12, 13), (20, 25)], &reading), 2);
        assert_eq!(when_reading(&looks, "vdb", Nanos(100)), []);
    }
}
