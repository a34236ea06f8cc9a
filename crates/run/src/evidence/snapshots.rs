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

use super::{Reading, difference, file_rows, pools};
use crate::rows::{self, Counted};
use plumb_engine::{EngineError, Instance, Setting};
use plumb_events::{SessionKind, clock};
use plumb_host::device::DeviceDescription;
use plumb_io::IoError;
use plumb_record::{HostCpu, Interval, PoolStats, ProcessUse};
use plumb_units::Nanos;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Largest number of cuts kept.
const CUTS_MAX: usize = 360;

/// Returns the rows between two snapshots. Times are those of the monotonic clock; the rest of an
/// interval needs the whole run.
fn between(instance: &Instance, earlier: &Reading, later: &Reading) -> Interval {
    let period = later.snapshot.since(&earlier.snapshot);
    let counted = Counted::of(&period);
    let mut statistics = counted.statistics();
    statistics.retain(|row| row.total > 0);
    let moved = later.process_io.zip(earlier.process_io).map(|(later, earlier)| later.since(&earlier));
    let is_used = |pool: &PoolStats| pool.counts.gets + pool.counts.reads + pool.counts.writes > 0;
    Interval {
        begin_ns: earlier.snapshot.at.0,
        end_ns: later.snapshot.at.0,
        db_time_ns: counted.db_time.0,
        db_cpu_ns: counted.db_cpu.0,
        host_cpu: host_cpu(earlier, later),
        process: process(earlier, later),
        load_profile: Vec::new(),
        foreground_events: rows::events(&period, SessionKind::Foreground),
        background_events: rows::events(&period, SessionKind::Background),
        sessions: rows::sessions(&period),
        statistics,
        io_functions: rows::functions(&period),
        io_files: file_rows(instance, [earlier, later]),
        kernel_io: moved.map(rows::kernel),
        buffer_pools: pools(instance, [earlier, later]).filter(is_used).collect(),
        io_devices: rows::devices(&difference(&later.disks, &earlier.disks)),
    }
}

/// CPU time of the host between two readings.
pub(super) fn host_cpu(earlier: &Reading, later: &Reading) -> Option<HostCpu> {
    let both = later.cpu.zip(earlier.cpu);
    both.map(|(later_cpu, earlier_cpu)| later_cpu.since(&earlier_cpu, earlier.load, later.load))
}

/// Resources of the process between two readings.
pub(super) fn process(earlier: &Reading, later: &Reading) -> Option<ProcessUse> {
    later.used.zip(earlier.used).map(|(later, earlier)| later.since(&earlier))
}

/// Does work between two readings, with a snapshot every `snapshot_interval`, and keeps the trace
/// if one was armed. Returns both readings, the cuts between snapshots (none without an interval)
/// and the result of the work.
pub(super) fn around<T>(
    instance: &Instance,
    devices: &[DeviceDescription],
    work: impl FnOnce() -> Result<T, EngineError>,
) -> Result<([Reading; 2], Vec<Interval>, T), EngineError> {
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
    cuts.push(between(instance, last.as_ref().unwrap_or(&before), &after));
    Ok(([before, after], cuts.cuts, outcome))
}

/// Cuts so far, and the interval between two.
struct Cuts {
    cuts: Vec<Interval>,
    interval: Nanos,
}

impl Cuts {
    fn push(&mut self, cut: Interval) {
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
        let cut = between(instance, last.as_ref().unwrap_or(before), &reading);
        cuts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(cut);
        last = Some(reading);
        // A missed snapshot is skipped.
        while due <= clock::now() {
            due += interval();
        }
    }
    last
}
