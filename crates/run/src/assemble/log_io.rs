//! Compares the log's requests with the bytes the kernel moved for them.
//!
//! The file system changes log writes below the engine. A buffered write of a part of a block sends
//! the whole block each time it is made durable. It reads the block first unless it is cached. The
//! kernel's counters of this process show that: bytes sent, less those of files that bypass the
//! cache, belong to the log. The devices' counters include all processes, and are in `io_devices`.
//!
//! No counter shows if a slow write waited for such a read, because the kernel reads within the
//! write. Visible is a read on the log's device between the two samples around the write, a second
//! apart. If enough writes are slow in such seconds, the pattern has a name, which claims no more
//! than that.

use super::Evidence;
use plumb_events::{IoStream, Statistic};
use plumb_io::DirectIo;
use plumb_record::trace::{Request, RunTrace};
use plumb_record::{LogIo, LogPattern};
use plumb_study::sampler::{Look, Looks};
use plumb_units::Nanos;
use std::collections::BTreeSet;
use std::path::Path;

/// Start and end of a request, nanoseconds.
type Span = (u64, u64);

/// With fewer writes no pattern is reported.
const WRITES_TO_JUDGE: u64 = 20;
/// Ratio of bytes sent to bytes written above which writes count as padded.
const PADDED: f64 = 1.3;
/// Share of bytes read without a request, relative to bytes written; less
/// is the program's own files.
const FETCHED_SHARE: f64 = 0.05;
/// Multiple of the median from which on a write counts as slow.
const SLOW: u64 = 4;
/// Slow writes during reads below this number occur in any log ...
const SLOW_MIN: u64 = 5;
/// ... and so does a share below this one.
const SLOW_SHARE: f64 = 0.01;

pub(super) fn log_io(seen: &Evidence, trace: Option<&RunTrace>) -> Option<LogIo> {
    let done = seen.measured.outcome.log.as_ref()?;
    let period = &seen.measured.period;
    let [writes, reads] = [IoStream::LogWrites, IoStream::LogReads].map(|stream| period.stream(stream));
    let [asked_reads, asked_writes] = [Statistic::PhysicalReadBytes, Statistic::PhysicalWriteBytes]
        .map(|statistic| period.statistic(statistic));
    // Buffered reads may be answered without a fetch, and buffered writes are sent later.
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

/// Returns slow log writes of a trace, as start and end in nanoseconds from its start.
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

/// Returns the block device of the log files; `None` if they lie on several.
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

/// Returns pairs of samples between which the device read, in nanoseconds from the trace's start.
fn when_reading(looks: &Looks, device: &str, begin: Nanos) -> Vec<Span> {
    let Some(index) = looks.devices.iter().position(|name| name == device) else { return Vec::new() };
    let read = |look: &Look| look.disks.get(index).copied().flatten().map(|disk| disk.reads.completed);
    let pairs =
        looks.looks.windows(2).filter(|pair| read(&pair[0]).zip(read(&pair[1])).is_some_and(|(a, b)| b > a));
    let since = |at: Nanos| at.saturating_sub(begin).0;
    pairs.map(|pair| (since(pair[0].beat.at), since(pair[1].beat.at))).collect()
}

/// Counts the spans that overlap one of the others.
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

/// True if slow writes during reads are more frequent than in any log.
fn is_slow_beside_reads(log: &LogIo) -> bool {
    log.slow_beside_reads
        .is_some_and(|slow| slow >= SLOW_MIN && slow as f64 >= SLOW_SHARE * log.writes as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_host::readings::DiskStats;
    use plumb_study::sampler::Beat;

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
    fn a_slow_write_during_a_read_is_counted() {
        let look = |at: u64, reads: u64| {
            let mut disk = DiskStats::default();
            disk.reads.completed = reads;
            Look {
                beat: Beat { at: Nanos(at), ..Beat::default() },
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
