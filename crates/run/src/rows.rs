//! Rows of a record from the sessions of a period: a whole run, or between two snapshots.

use plumb_events::{
    Direction, Event, Function, IoStream, Period, SessionKind, SessionTotals, Statistic, StreamTotals,
};
use plumb_host::readings::{DiskStats, ProcessIo, RequestCounts};
use plumb_io::Moves;
use plumb_record::{
    Interval, IoDevice, IoFunction, IoTally, KernelIo, LargeRequests, SessionTime, StatisticRow, WaitEvent,
};
use plumb_units::Nanos;
use std::collections::BTreeMap;

/// Counters of a period, and its database time.
#[derive(Debug, Clone)]
pub struct Counted {
    /// CPU and waits of the foreground sessions.
    pub db_time: Nanos,
    pub db_cpu: Nanos,
    statistics: Vec<u64>,
}

impl Counted {
    pub fn of(period: &Period) -> Counted {
        let statistics = Statistic::ALL.iter().map(|statistic| period.statistic(*statistic));
        Counted { db_time: period.db_time(), db_cpu: period.db_cpu(), statistics: statistics.collect() }
    }

    /// Returns the counters behind the rows of an interval.
    pub fn of_rows(rows: &Interval) -> Counted {
        let total = |statistic: &Statistic| {
            let row = rows.statistics.iter().find(|row| row.name == statistic.name());
            row.map_or(0, |row| row.total)
        };
        Counted {
            db_time: Nanos(rows.db_time_ns),
            db_cpu: Nanos(rows.db_cpu_ns),
            statistics: Statistic::ALL.iter().map(total).collect(),
        }
    }

    pub fn statistic(&self, statistic: Statistic) -> u64 {
        self.statistics[statistic as usize]
    }

    pub fn statistics(&self) -> Vec<StatisticRow> {
        let row = |statistic: &Statistic| StatisticRow {
            name: statistic.name().to_string(),
            total: self.statistic(*statistic),
            unit: statistic.unit(),
        };
        Statistic::ALL.iter().map(row).collect()
    }
}

/// Returns the events that sessions of a kind waited for, in the order of their table.
pub fn events(period: &Period, kind: SessionKind) -> Vec<WaitEvent> {
    let waited = |event: &Event| {
        let total = period.event(*event, kind);
        (total.count > 0).then(|| WaitEvent {
            event: event.name().to_string(),
            wait_class: event.class().name().to_string(),
            waits: total.count,
            time_ns: total.time.0,
            max_ns: Some(total.max.0),
            histogram: total.histogram.0.to_vec(),
            latency: total.latency.clone(),
        })
    };
    Event::ALL.iter().filter_map(waited).collect()
}

/// Returns the parts of each session's time.
pub fn sessions(period: &Period) -> Vec<SessionTime> {
    period.sessions.iter().map(session_time).collect()
}

fn session_time(session: &SessionTotals) -> SessionTime {
    SessionTime {
        name: short_name(session),
        role: session.role.name().to_string(),
        kind: session.role.kind(),
        elapsed_ns: session.elapsed.0,
        cpu_ns: session.cpu.0,
        wait_cpu_ns: session.wait_cpu.0,
        wait_ns: session.waits().0,
        idle_ns: session.idle().0,
        // The kernel counts the run queue inside waits, too: a woken session queues before its wait
        // ends. Only time that no wait explains can be queueing outside waits, so no nanosecond
        // counts twice.
        run_queue_ns: Some(session.run_queue.min(session.unaccounted()).0),
    }
}

/// Returns `p001` for `PX sort server p001`; a session alone in its role has the role's name.
fn short_name(session: &SessionTotals) -> String {
    let number = session.name.strip_prefix(session.role.name()).and_then(|number| number.strip_prefix(' '));
    number.unwrap_or(&session.name).to_string()
}

/// Returns requests and bytes by stream and function.
pub fn functions(period: &Period) -> Vec<IoFunction> {
    IoStream::ALL.iter().flat_map(|stream| functions_of(period, *stream)).collect()
}

fn functions_of(period: &Period, stream: IoStream) -> Vec<IoFunction> {
    let mut totals: Vec<(Function, StreamTotals)> = Vec::new();
    for session in &period.sessions {
        let moved = &session.streams[stream as usize];
        let function = stream.function_of(session.role);
        match totals.iter_mut().find(|(known, _)| *known == function) {
            _ if moved.count == 0 => {}
            Some((_, total)) => total.merge(moved),
            None => totals.push((function, moved.clone())),
        }
    }
    totals.sort_by_key(|(function, _)| *function);
    totals.into_iter().map(|(function, total)| row(stream, function, &total)).collect()
}

fn row(stream: IoStream, function: Function, total: &StreamTotals) -> IoFunction {
    let [requests, bytes, time_ns] = total.large;
    let all = IoTally { requests: total.count, bytes: total.bytes, time_ns: Some(total.time.0) };
    let large = IoTally { requests, bytes, time_ns: Some(time_ns) };
    let ways = |tally: IoTally| match stream.direction() {
        Direction::Read => [tally, IoTally::default()],
        Direction::Write => [IoTally::default(), tally],
    };
    let ([reads, writes], [large_reads, large_writes]) = (ways(all), ways(large));
    IoFunction {
        function: stream.name().to_string(),
        part_of: Some(function.name().to_string()),
        reads,
        writes,
        large: Some(LargeRequests { reads: large_reads, writes: large_writes }),
    }
}

/// Returns the tally of requests that `io` counted.
pub fn tally(moved: Moves) -> IoTally {
    IoTally { requests: moved.requests, bytes: moved.bytes, time_ns: Some(moved.nanos) }
}

/// Returns the block devices with requests in this period.
pub fn devices(disks: &BTreeMap<String, DiskStats>) -> Vec<IoDevice> {
    let tally = |counts: &RequestCounts| IoTally {
        requests: counts.completed,
        bytes: counts.bytes.0,
        time_ns: Some(counts.time.0),
    };
    let disks = disks.iter().filter(|(_, disk)| disk.reads.completed + disk.writes.completed > 0);
    disks
        .map(|(name, disk)| IoDevice {
            device: name.clone(),
            reads: tally(&disk.reads),
            writes: tally(&disk.writes),
            busy_ns: Some(disk.io_time.0),
            weighted_ns: Some(disk.weighted_io_time.0),
        })
        .collect()
}

/// Returns the bytes that the kernel moved for this process. If all files are direct is not known
/// here.
pub fn kernel(moved: ProcessIo) -> KernelIo {
    KernelIo { read_bytes: moved.read_bytes.0, written_bytes: moved.write_bytes.0, all_direct: false }
}
