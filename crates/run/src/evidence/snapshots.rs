//! Snapshots during the work: the same reading as at its ends, every `snapshot_interval`.
//!
//! ```text
//! reading ── cut ── reading ── cut ── reading ... the last reading is the one after the work
//! ```
//!
//! A thread of its own takes the readings while sessions continue. Each counter has one writer and
//! is read without a lock. Figures of a session may differ by some microseconds; what one cut
//! lacks, the next has. Each reading becomes rows at once, because the totals of a thousand
//! sessions are megabytes.
//!
//! Limits: at most [`CUTS_MAX`]; then neighbours are added and the interval doubles. A thread that
//! cannot be started is an error, because snapshots were requested.

use super::{FileMoves, Reading, difference};
use crate::rows::{self, Counted};
use plumb_engine::cache::PoolCounts;
use plumb_engine::{EngineError, Instance, Setting};
use plumb_events::{SessionKind, clock};
use plumb_host::device::DeviceDescription;
use plumb_host::readings::{self, DiskStats};
use plumb_io::IoError;
use plumb_record::{self as record, Interval, ProcessUse};
use plumb_units::Nanos;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Largest number of cuts kept.
const CUTS_MAX: usize = 360;

/// The period between two snapshots.
#[derive(Debug, Clone)]
pub struct Cut {
    /// Time of the first snapshot on the monotonic clock.
    pub begin: Nanos,
    pub end: Nanos,
    /// Rows of sessions, host and process.
    pub rows: Interval,
    pub counted: Counted,
    /// Counters of each block device.
    pub disks: BTreeMap<String, DiskStats>,
    /// Requests to each data file.
    pub files: Vec<FileMoves>,
    /// Work of each buffer cache.
    pub pools: Vec<PoolCounts>,
    /// Bytes that the kernel read and wrote for this process.
    pub kernel: Option<[u64; 2]>,
}

impl Cut {
    fn between(earlier: &Reading, later: &Reading) -> Cut {
        let period = later.snapshot.since(&earlier.snapshot);
        let counted = Counted::of(&period);
        let files = earlier.files.iter().zip(&later.files);
        let pools = earlier.pools.iter().zip(&later.pools);
        let kernel = later.process_io.zip(earlier.process_io).map(|(later, earlier)| later.since(&earlier));
        let mut statistics = counted.statistics();
        statistics.retain(|row| row.total > 0);
        Cut {
            begin: earlier.snapshot.at,
            end: later.snapshot.at,
            rows: Interval {
                db_time_ns: counted.db_time.0,
                db_cpu_ns: counted.db_cpu.0,
                host_cpu: host_cpu(earlier, later),
                process: process(earlier, later),
                foreground_events: rows::events(&period, SessionKind::Foreground),
                background_events: rows::events(&period, SessionKind::Background),
                sessions: rows::sessions(&period),
                statistics,
                io_functions: rows::functions(&period),
                ..Interval::default()
            },
            counted,
            disks: difference(&later.disks, &earlier.disks),
            files: files.map(|(earlier, later)| later.since(earlier)).collect(),
            pools: pools.map(|(earlier, later)| later.since(earlier)).collect(),
            kernel: kernel.map(|moved| [moved.read_bytes.0, moved.write_bytes.0]),
        }
    }

    fn add(&mut self, next: &Cut) {
        self.end = next.end;
        self.rows.add(&next.rows);
        self.counted.add(&next.counted);
        for (name, stats) in &next.disks {
            if let Some(known) = self.disks.get_mut(name) {
                known.add(stats);
            }
        }
        self.files.iter_mut().zip(&next.files).for_each(|(file, more)| file.add(more));
        self.pools.iter_mut().zip(&next.pools).for_each(|(pool, more)| pool.add(more));
        self.kernel = self.kernel.zip(next.kernel).map(|([a, b], [c, d])| [a + c, b + d]);
    }
}

/// CPU time of the host between two readings.
pub(super) fn host_cpu(earlier: &Reading, later: &Reading) -> Option<record::HostCpu> {
    let both = later.cpu.zip(earlier.cpu);
    both.map(|(later_cpu, earlier_cpu)| later_cpu.since(&earlier_cpu, earlier.load, later.load))
}

/// Resources of the process between two readings.
pub(super) fn process(earlier: &Reading, later: &Reading) -> Option<ProcessUse> {
    let grown =
        later.used.zip(earlier.used).map(|(later, earlier): (readings::ProcessUse, _)| later.since(&earlier));
    grown.map(|used| ProcessUse {
        cpu_ns: used.cpu.0,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
    })
}

/// Does work between two readings, with a snapshot every `snapshot_interval`, and keeps the trace
/// if one was armed. Returns both readings, the cuts between snapshots (none without an interval)
/// and the result of the work.
pub(super) fn around<T>(
    instance: &Instance,
    devices: &[DeviceDescription],
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<([Reading; 2], Vec<Cut>, T), EngineError> {
    let interval = Nanos(instance.settings.number(Setting::SnapshotInterval) * 1_000_000);
    // Background processes continue during the readings, so the trace includes both, and is cut at
    // their snapshots.
    instance.recorder.begin_trace();
    let before = Reading::take(instance, devices);
    let last_reading = || {
        let after = Reading::take(instance, devices);
        instance.recorder.end_trace();
        after
    };
    if interval.0 == 0 {
        let outcome = work();
        let after = last_reading();
        return Ok(([before, after], Vec::new(), outcome?));
    }
    let (cuts, stop) = (Mutex::new(Cuts { cuts: Vec::new(), interval }), AtomicBool::new(false));
    let (outcome, last) = thread::scope(|scope| {
        let take = || take_until(&stop, instance, devices, &before, &cuts);
        let taking = thread::Builder::new().name("snapshots".to_string()).spawn_scoped(scope, take);
        let taking = taking.map_err(|source| IoError::thread("the snapshots", source))?;
        let outcome = work();
        stop.store(true, Relaxed);
        taking.thread().unpark();
        let last = taking.join().unwrap_or(None);
        outcome.map(|outcome| (outcome, last))
    })?;
    let after = last_reading();
    let mut cuts = cuts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    cuts.push(Cut::between(last.as_ref().unwrap_or(&before), &after));
    Ok(([before, after], cuts.cuts, outcome))
}

/// Cuts so far, and the interval between two.
struct Cuts {
    cuts: Vec<Cut>,
    interval: Nanos,
}

impl Cuts {
    fn push(&mut self, cut: Cut) {
        self.cuts.push(cut);
        if self.cuts.len() > CUTS_MAX {
            let pairs = self.cuts.chunks(2).map(|pair| {
                let mut sum = pair[0].clone();
                pair[1..].iter().for_each(|next| sum.add(next));
                sum
            });
            self.cuts = pairs.collect();
            self.interval = self.interval + self.interval;
        }
    }
}

/// Takes snapshots until `stop` is set; returns the last one.
fn take_until(
    stop: &AtomicBool,
    instance: &Instance,
    devices: &[DeviceDescription],
    before: &Reading,
    cuts: &Mutex<Cuts>,
) -> Option<Reading> {
    let mut last: Option<Reading> = None;
    let interval = || cuts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).interval;
    let mut due = before.snapshot.at + interval();
    while !stop.load(Relaxed) {
        let left = due.saturating_sub(clock::now());
        if left.0 > 0 {
            thread::park_timeout(Duration::from_nanos(left.0));
            continue;
        }
        let reading = Reading::take(instance, devices);
        let cut = Cut::between(last.as_ref().unwrap_or(before), &reading);
        cuts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(cut);
        last = Some(reading);
        // A missed snapshot is skipped.
        while due <= clock::now() {
            due += interval();
        }
    }
    last
}
