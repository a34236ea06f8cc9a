//! Snapshots within a run: intervals between consecutive ones, and the period between any two as a
//! record.
//!
//! ```text
//! snapshot    1        2        3   ...   n+1        1 and n+1 at the ends of the measured work
//! interval       [0]      [1]       ...              `intervals` of a record, summed for a period
//! ```
//!
//! Rejected: running totals. Sums have no order of subtraction, and the longest wait of an interval
//! is no difference of totals. Some data exist only for the whole run: response times, a sort,
//! findings, shares of the device's limits. A period lacks them, and names them. Checks and
//! receipts are the run's.

use super::{
    HostCpu, IoDevice, IoFile, IoFunction, IoTally, KernelIo, LoadRow, Memory, PoolStats, Record,
    SessionTime, StatisticRow, WaitEvent,
};
use crate::Header;
use crate::calendar::Moment;
use plumb_host::readings::ProcessUse;
use plumb_units::Counter;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Figures of the time between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Time of the first snapshot, nanoseconds from the run's start.
    pub begin_ns: u64,
    /// Time of the second snapshot, nanoseconds from the run's start.
    pub end_ns: u64,
    /// CPU and non-idle waits of foreground sessions, nanoseconds.
    pub db_time_ns: u64,
    /// The CPU part of the DB time, nanoseconds.
    pub db_cpu_ns: u64,
    /// CPU time of the whole host.
    pub host_cpu: Option<HostCpu>,
    /// Resources used by the process.
    pub process: Option<ProcessUse>,
    pub load_profile: Vec<LoadRow>,
    /// The longest wait is 0 if it may lie outside the interval.
    pub foreground_events: Vec<WaitEvent>,
    pub background_events: Vec<WaitEvent>,
    pub sessions: Vec<SessionTime>,
    pub statistics: Vec<StatisticRow>,
    pub io_functions: Vec<IoFunction>,
    /// As [`Record::io_files`], for data files only.
    pub io_files: Vec<IoFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_io: Option<KernelIo>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffer_pools: Vec<PoolStats>,
    pub io_devices: Vec<IoDevice>,
}

/// The part of a run that a record covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// Number of its first snapshot, from 1.
    pub first: usize,
    /// Number of its last snapshot.
    pub last: usize,
    /// Parts of the run's record that only the whole run has.
    pub left_out: Vec<String>,
}

impl Interval {
    /// Adds the interval that follows.
    pub fn add(&mut self, next: &Interval) {
        self.end_ns = next.end_ns;
        self.db_time_ns += next.db_time_ns;
        self.db_cpu_ns += next.db_cpu_ns;
        match (&mut self.host_cpu, &next.host_cpu) {
            (Some(cpu), Some(next)) => add_cpu(cpu, next),
            (cpu, _) => *cpu = None,
        }
        self.process.grow(&next.process);
        merge(
            &mut self.load_profile,
            &next.load_profile,
            |row| row.name.clone(),
            |row, next| {
                row.total += next.total;
            },
        );
        merge(&mut self.foreground_events, &next.foreground_events, |row| row.event.clone(), add_waits);
        merge(&mut self.background_events, &next.background_events, |row| row.event.clone(), add_waits);
        merge(&mut self.sessions, &next.sessions, |row| (row.role.clone(), row.name.clone()), add_session);
        merge(
            &mut self.statistics,
            &next.statistics,
            |row| row.name.clone(),
            |row, next| {
                row.total += next.total;
            },
        );
        merge(
            &mut self.io_functions,
            &next.io_functions,
            |row| (row.function.clone(), row.part_of.clone()),
            add_function,
        );
        merge(&mut self.io_files, &next.io_files, |row| row.path.clone(), IoFile::add);
        merge(
            &mut self.buffer_pools,
            &next.buffer_pools,
            |row| row.block_bytes,
            |row, next| row.counts.add(&next.counts),
        );
        match (&mut self.kernel_io, &next.kernel_io) {
            (Some(moved), Some(next)) => moved.add(next),
            (moved, _) => *moved = None,
        }
        merge(&mut self.io_devices, &next.io_devices, |row| row.device.clone(), add_device);
    }
}

/// Adds rows to those with the same key; rows with a new key are appended.
fn merge<T: Clone, K: PartialEq>(rows: &mut Vec<T>, more: &[T], key: fn(&T) -> K, add: fn(&mut T, &T)) {
    for next in more {
        match rows.iter_mut().find(|row| key(row) == key(next)) {
            Some(row) => add(row, next),
            None => rows.push(next.clone()),
        }
    }
}

fn add_waits(event: &mut WaitEvent, next: &WaitEvent) {
    event.waits += next.waits;
    event.time_ns += next.time_ns;
    event.max_ns = event.max_ns.zip(next.max_ns).map(|(one, two)| one.max(two));
    for (waits, more) in event.histogram.iter_mut().zip(&next.histogram) {
        *waits += more;
    }
    if let (Some(latency), Some(more)) = (&mut event.latency, &next.latency) {
        latency.merge(more);
    }
}

fn add_session(session: &mut SessionTime, next: &SessionTime) {
    session.elapsed_ns += next.elapsed_ns;
    session.cpu_ns += next.cpu_ns;
    session.wait_cpu_ns += next.wait_cpu_ns;
    session.wait_ns += next.wait_ns;
    session.idle_ns += next.idle_ns;
    session.run_queue_ns.grow(&next.run_queue_ns);
}

fn add_function(row: &mut IoFunction, next: &IoFunction) {
    add_tallies([&mut row.reads, &mut row.writes], [next.reads, next.writes]);
    match (&mut row.large, next.large) {
        (Some(large), Some(next)) => {
            add_tallies([&mut large.reads, &mut large.writes], [next.reads, next.writes]);
        }
        (large, _) => *large = None,
    }
}

fn add_device(device: &mut IoDevice, next: &IoDevice) {
    add_tallies([&mut device.reads, &mut device.writes], [next.reads, next.writes]);
    device.busy_ns.grow(&next.busy_ns);
    device.weighted_ns.grow(&next.weighted_ns);
}

fn add_tallies(tallies: [&mut IoTally; 2], more: [IoTally; 2]) {
    for (tally, more) in tallies.into_iter().zip(more) {
        tally.add(&more);
    }
}

/// Adds the times of a host over the next period.
pub(super) fn add_cpu(cpu: &mut HostCpu, next: &HostCpu) {
    cpu.user_ns += next.user_ns;
    cpu.system_ns += next.system_ns;
    cpu.iowait_ns += next.iowait_ns;
    cpu.steal_ns += next.steal_ns;
    cpu.idle_ns += next.idle_ns;
    cpu.load_end = next.load_end;
}

impl Record {
    /// Returns the number of the last snapshot; `None` if there are only those at the ends.
    pub fn last_snapshot(&self) -> Option<usize> {
        (!self.intervals.is_empty()).then(|| self.intervals.len() + 1)
    }

    /// Returns the period between two snapshots, numbered from 1, as a record. `None` without these
    /// snapshots, or if the first is not before the last.
    pub fn period(&self, first: usize, last: usize) -> Option<Record> {
        let inside = self.intervals.get(first.checked_sub(1)?..last.checked_sub(1)?)?;
        let (one, rest) = inside.split_first()?;
        let mut sum = one.clone();
        rest.iter().for_each(|next| sum.add(next));
        let mut header = self.header_of(&sum, self.intervals.first()?.begin_ns);
        header.title = format!("{}  Snapshots: {first} to {last}", header.title);
        // Every field is named, so that the author of a new one must decide whether the run or the
        // period supplies it.
        Some(Record {
            stopped_ns: self.stopped_ns,
            circumstances: self.circumstances.clone(),
            schema_version: self.schema_version,
            header,
            period: Some(Period { first, last, left_out: self.of_the_whole_run_alone() }),
            devices: self.devices.clone(),
            calibration: self.calibration.clone().map(|mut limits| {
                limits.shares.clear();
                limits
            }),
            limits: self.limits.clone(),
            mix: None,
            checks: self.checks.clone(),
            receipts: self.receipts.clone(),
            findings: Vec::new(),
            phases: self.phases.iter().filter_map(|phase| phase.within(&sum)).collect(),
            memory: Memory { peak_rss_bytes: None, ..self.memory.clone() },
            load_profile: sum.load_profile,
            host_cpu: sum.host_cpu,
            process: sum.process,
            foreground_events: sum.foreground_events,
            background_events: sum.background_events,
            sampling: None,
            readings: Vec::new(),
            sessions: sum.sessions,
            session: None,
            statistics: sum.statistics,
            io_functions: sum.io_functions,
            io_files: sum.io_files,
            kernel_io: sum.kernel_io,
            tablespaces: self.tablespaces.clone(),
            buffer_pools: sum.buffer_pools,
            io_devices: sum.io_devices,
            completion: self.completion,
            io_profile: self.io_profile.within(sum.begin_ns, sum.end_ns),
            beside: self.beside.as_ref().map(|beside| beside.within(sum.begin_ns, sum.end_ns)),
            intervals: inside.to_vec(),
            responses: Vec::new(),
            sort: None,
            scan: None,
            users: None,
            log: None,
            trace: None,
            parameters: self.parameters.clone(),
            settings: self.settings.clone(),
            measures: Vec::new(),
            command: None,
            plan: None,
            request_sizes: None,
            imported: None,
            snoop: None,
            server: self.server.clone(),
        })
    }

    /// Returns the header with the times of a period of the run that began at `work_begin_ns`.
    fn header_of(&self, period: &Interval, work_begin_ns: u64) -> Header {
        let mut header = self.header.clone();
        if let Some(begin) = Moment::parse(&header.begin_time) {
            let at = |ns: u64| {
                Moment::of(begin.since_epoch() + Duration::from_nanos(ns.saturating_sub(work_begin_ns))).iso()
            };
            (header.begin_time, header.end_time) = (at(period.begin_ns), at(period.end_ns));
        }
        header.elapsed_ns = period.end_ns - period.begin_ns;
        (header.db_time_ns, header.db_cpu_ns) = (Some(period.db_time_ns), Some(period.db_cpu_ns));
        header
    }

    /// Returns the report's names of parts that only the whole run has.
    fn of_the_whole_run_alone(&self) -> Vec<String> {
        let shares = self.calibration.as_ref().is_some_and(|limits| !limits.shares.is_empty());
        let kept = [
            ("response times", !self.responses.is_empty()),
            ("findings", !self.findings.is_empty()),
            ("shares of the device's limits", shares),
            ("the device's rate of the same mix", self.mix.is_some()),
            ("peak memory", self.memory.peak_rss_bytes.is_some()),
            ("session snapshot", self.session.is_some()),
            ("sort", self.sort.is_some()),
            ("full scan", self.scan.is_some()),
            ("users during the build", self.users.is_some()),
            ("log I/O", self.log.is_some()),
            ("requests", self.trace.is_some()),
            ("measures", !self.measures.is_empty()),
            ("the command", self.command.is_some()),
        ];
        kept.into_iter().filter(|(_, is_kept)| *is_kept).map(|(name, _)| name.to_string()).collect()
    }
}

impl super::Phase {
    /// Cuts a phase to an interval, with times from its start; rows and bytes
    /// of a part are unknown.
    fn within(&self, period: &Interval) -> Option<super::Phase> {
        let (start, end) = (self.start_ns.max(period.begin_ns), self.end_ns.min(period.end_ns));
        (start < end).then(|| super::Phase {
            start_ns: start - period.begin_ns,
            end_ns: end - period.begin_ns,
            rows: if start == self.start_ns && end == self.end_ns { self.rows } else { 0 },
            bytes: if start == self.start_ns && end == self.end_ns { self.bytes } else { 0 },
            ..self.clone()
        })
    }
}

impl super::IoProfile {
    /// Returns the buckets that start in a period.
    fn within(&self, begin_ns: u64, end_ns: u64) -> super::IoProfile {
        let width = self.bucket_ns.max(1);
        let (first, last) = ((begin_ns / width) as usize, end_ns.div_ceil(width) as usize);
        let cut = |series: &super::ProfileSeries| super::ProfileSeries {
            bytes: series.bytes.iter().take(last).skip(first).copied().collect(),
            ..series.clone()
        };
        super::IoProfile {
            x_max_s: Some((end_ns - begin_ns) as f64 / 1e9),
            series: self.series.iter().map(cut).collect(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn interval(index: u64) -> Interval {
        let event = |name: &str, waits: u64| WaitEvent {
            event: name.to_string(),
            wait_class: "User I/O".to_string(),
            waits,
            time_ns: 10 * waits,
            max_ns: Some(waits),
            histogram: vec![waits, 1],
            latency: None,
        };
        let mut events = vec![event("db file sequential read", index + 1)];
        events.extend((index == 1).then(|| event("log file sync", 7)));
        Interval {
            begin_ns: 100 + index * 50,
            end_ns: 150 + index * 50,
            db_time_ns: 40 + index,
            db_cpu_ns: 30,
            process: Some(ProcessUse { cpu_ns: 5, voluntary_switches: index, involuntary_switches: 1 }),
            foreground_events: events,
            ..Interval::default()
        }
    }

    #[test]
    fn a_period_is_the_sum_of_its_intervals() {
        let mut record = fixture::record(200_000, 1);
        record.intervals = (0..4).map(interval).collect();
        assert_eq!(record.last_snapshot(), Some(5));
        let period = record.period(2, 4).expect("there are five snapshots");
        assert_eq!((period.header.elapsed_ns, period.header.db_time_ns), (100, Some(41 + 42)));
        let reads = &period.foreground_events[0];
        assert_eq!((reads.waits, reads.time_ns, reads.max_ns), (5, 50, Some(3)));
        assert_eq!(reads.histogram, [5, 2]);
        assert_eq!(period.foreground_events[1].waits, 7, "an event of one interval");
        assert_eq!(period.process.expect("known").voluntary_switches, 3);
        let whole = record.period(1, 5).expect("all of it");
        assert_eq!(whole.header.elapsed_ns, 200);
        let halves = [record.period(1, 3), record.period(3, 5)].map(|half| half.expect("it is there"));
        let sum: u64 = halves.iter().map(|half| half.header.db_time()).sum();
        assert_eq!(sum, whole.header.db_time());
    }

    #[test]
    fn a_period_names_parts_of_the_whole_run() {
        use crate::{LogIo, Response, SessionSnapshot, TraceSummary};
        let mut record = fixture::record(200_000, 1);
        record.intervals = (0..4).map(interval).collect();
        let mut latency = plumb_events::LatencyHistogram::default();
        latency.add(plumb_units::Nanos(1_000));
        record.responses = vec![Response { operation: "select".to_string(), latency, elapsed_ns: None }];
        record.log = Some(LogIo::default());
        record.trace = Some(TraceSummary::default());
        record.session = record.sessions.first().map(|time| SessionSnapshot {
            time: time.clone(),
            events: Vec::new(),
            statistics: Vec::new(),
        });
        record.memory.peak_rss_bytes = Some(1 << 20);
        let period = record.period(2, 4).expect("there are five snapshots");
        assert!(period.responses.is_empty() && period.session.is_none() && period.sort.is_none());
        assert_eq!((&period.log, &period.trace, &period.mix), (&None, &None, &None));
        assert_eq!(period.memory.peak_rss_bytes, None);
        assert_eq!(period.memory.areas, record.memory.areas, "what was declared holds throughout");
        let of = period.period.expect("it is a period");
        assert_eq!((of.first, of.last), (2, 4));
        for name in ["response times", "peak memory", "session snapshot", "log I/O", "requests"] {
            assert!(of.left_out.iter().any(|left_out| left_out == name), "{name}: {:?}", of.left_out);
        }
        assert_eq!(record.period, None, "the run is no period");
    }

    #[test]
    fn snapshots_that_were_not_taken_make_no_period() {
        let mut record = fixture::record(200_000, 1);
        assert_eq!((record.last_snapshot(), record.period(1, 2)), (None, None));
        record.intervals = (0..2).map(interval).collect();
        for (first, last) in [(0, 2), (2, 2), (3, 2), (1, 4), (3, 4)] {
            assert_eq!(record.period(first, last), None, "{first} {last}");
        }
    }
}
