//! Samples the machine during a run, once a second: block devices, processors, memory.
//!
//! ```text
//! run      |--------- load ---------|--- work ---|-- verify --|
//! samples  |    |    |    |    |    |    |    |    |    |    |   start, end and every second
//! ```
//!
//! A thread of its own reads small files of /proc and /sys; the timed code is unchanged. The
//! samples are the kernel's cumulative counters, so a late sample loses nothing.
//!
//! Cost: five files and one more per device, estimated at 0.1 to 0.2 ms of CPU a sample, or 0.02%
//! of one processor. The record has the measured cost, and the report prints it. Memory: half a
//! kilobyte a sample, at most 3,600 samples. Beyond that every second sample is dropped and the
//! interval doubles, so that a day costs no more than an hour.
//!
//! A stopped process takes no samples: samples that are seconds apart show it. The clock that
//! continues during suspension shows a suspended machine ([`Looks::stopped`]).
//!
//! Runs of the engine and of commands have the same samples. A command's devices are those below
//! its path, otherwise all disks of the machine.
//!
//! Limits: a run shorter than a second has only its first and last sample. Pressure is what the
//! kernel keeps in /proc/pressure, if it does.

use crate::machine::{self, CpuTimes, MemoryStall};
use plumb_events::clock;
use plumb_host::device::DeviceDescription;
use plumb_host::limits;
use plumb_host::readings::{DiskStats, RequestCounts};
use plumb_record::{Beside, DeviceSample, DeviceTally, MemorySample, Sample};
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two samples of a run below an hour.
const INTERVAL: Nanos = Nanos(1_000_000_000);
/// Largest number of samples kept.
const LOOKS_MAX: usize = 3600;
/// Shortest delay outside the run queue that counts as a stopped process. A thread that reads /proc
/// is delayed by less.
pub const STOPPED_MIN: Nanos = Nanos(2_000_000_000);
/// Shortest time that counts as suspension; two clocks read one after the other differ by less.
const SUSPENDED_MIN: Nanos = Nanos(100_000_000);

/// Samples taken during a run.
#[derive(Debug, Clone)]
pub struct Looks {
    /// Planned time between two samples.
    pub interval: Nanos,
    /// CPU time of the samples.
    pub cost: Nanos,
    pub devices: Vec<String>,
    /// At least two, in the order of time.
    pub looks: Vec<Look>,
}

impl Looks {
    /// Returns the time that the process was stopped, or the machine suspended, within a span of
    /// the monotonic clock. `None` if neither occurred.
    pub fn stopped(&self, (begin, end): (Nanos, Nanos)) -> Option<Nanos> {
        let pairs = self.looks.windows(2).filter(|pair| pair[1].beat.at > begin && pair[0].beat.at < end);
        let lost = pairs.map(|pair| pair[1].beat.lost_since(&pair[0].beat, self.interval));
        Some(Nanos(lost.map(|lost| lost.0).sum())).filter(|lost| lost.0 > 0)
    }

    /// Returns the growth of the counters between consecutive samples, on another clock.
    pub fn beside(&self, since_start: impl Fn(Nanos) -> u64) -> Beside {
        let samples = self.looks.windows(2).map(|pair| Sample {
            begin_ns: since_start(pair[0].beat.at),
            end_ns: since_start(pair[1].beat.at),
            ..self.sample(&pair[0], &pair[1])
        });
        Beside { interval_ns: self.interval.0, cost_ns: self.cost.0, samples: samples.collect() }
    }

    fn sample(&self, earlier: &Look, later: &Look) -> Sample {
        let disks = self.devices.iter().zip(&earlier.disks).zip(&later.disks);
        let device = |((name, earlier), later): ((&String, &Option<DiskStats>), &Option<DiskStats>)| {
            let grown = later.zip(*earlier).map(|(later, earlier)| later.since(&earlier));
            let Some(grown) = grown else {
                return DeviceSample { device: name.clone(), ..DeviceSample::default() };
            };
            DeviceSample {
                device: name.clone(),
                reads: tally(&grown.reads),
                writes: tally(&grown.writes),
                busy_ns: grown.io_time.0,
                weighted_ns: grown.weighted_io_time.0,
            }
        };
        let stalled = later.stalled.zip(earlier.stalled);
        let stalled = |of: fn(&MemoryStall) -> u64| {
            stalled.map(|(later, earlier)| of(&later).saturating_sub(of(&earlier)))
        };
        let cpu = later.cpu.zip(earlier.cpu);
        Sample {
            devices: disks.map(device).collect(),
            cpu: cpu.map(|(later_cpu, earlier_cpu)| later_cpu.since(&earlier_cpu, earlier.load, later.load)),
            memory: Some(MemorySample {
                available_bytes: later.available.map(|bytes| bytes.0),
                some_stalled_ns: stalled(|stall| stall.some_ns),
                full_stalled_ns: stalled(|stall| stall.full_ns),
            }),
            ..Sample::default()
        }
    }
}

fn tally(counts: &RequestCounts) -> DeviceTally {
    DeviceTally {
        requests: counts.completed,
        merged: counts.merged,
        bytes: counts.bytes.0,
        time_ns: counts.time.0,
    }
}

/// A moment in which the sampling thread ran. Only differences of the last two fields are
/// meaningful.
#[derive(Debug, Clone, Copy, Default)]
pub struct Beat {
    /// Time on the monotonic clock.
    pub at: Nanos,
    /// Accumulated suspension of the machine.
    pub suspended: Nanos,
    /// Accumulated time of the thread in the run queue.
    pub queued: Nanos,
}

impl Beat {
    pub fn now() -> Beat {
        Beat { at: clock::now(), suspended: clock::suspended(), queued: clock::thread_queued() }
    }

    /// Returns the time since an earlier beat in which nothing could run, if the thread wanted to
    /// sleep for `meant`. A thread that waits for a busy processor is in the run queue; one whose
    /// process is stopped is not.
    pub fn lost_since(&self, earlier: &Beat, meant: Nanos) -> Nanos {
        let queued = self.queued.saturating_sub(earlier.queued);
        let late = self.at.saturating_sub(earlier.at + meant + queued);
        let suspended = self.suspended.saturating_sub(earlier.suspended);
        let counted = |time: Nanos, least: Nanos| if time >= least { time } else { Nanos(0) };
        counted(late, STOPPED_MIN) + counted(suspended, SUSPENDED_MIN)
    }
}

#[derive(Debug, Clone)]
pub struct Look {
    pub beat: Beat,
    /// Counters of each device, in the order of `devices`; `None` if the device disappeared.
    pub disks: Vec<Option<DiskStats>>,
    pub cpu: Option<CpuTimes>,
    /// The load average over one minute.
    pub load: Option<f64>,
    /// Memory that is available without swapping.
    pub available: Option<Bytes>,
    /// Accumulated time in which tasks waited for memory.
    pub stalled: Option<MemoryStall>,
}

impl Look {
    fn make(devices: &[String]) -> Look {
        Look {
            beat: Beat::now(),
            disks: devices.iter().map(|name| DiskStats::read(name).ok()).collect(),
            cpu: CpuTimes::read(),
            load: machine::load_average(),
            available: limits::memory().map(|memory| memory.available),
            stalled: MemoryStall::read(),
        }
    }
}

#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Looks>>,
}

impl Sampler {
    /// Starts sampling the devices under these paths. Without a thread there are no samples.
    #[must_use]
    pub fn start(devices: &[DeviceDescription]) -> Sampler {
        Sampler::of(names(devices))
    }

    /// Starts sampling devices by their names. The first sample precedes the return, because a
    /// short run may be over before the thread starts.
    #[must_use]
    pub fn of(devices: Vec<String>) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let mut first = Look::make(&devices);
        // The thread has not waited for a processor yet.
        first.beat.queued = Nanos(0);
        let look = move || look_until(&theirs, devices, first, INTERVAL);
        let thread = thread::Builder::new().name("beside the run".to_string()).spawn(look).ok();
        Sampler { stop, thread }
    }

    /// Takes a last sample and stops the thread.
    #[must_use]
    pub fn end(mut self) -> Option<Looks> {
        self.join()
    }

    fn join(&mut self) -> Option<Looks> {
        self.stop.store(true, Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// Returns the device of each file system, and the disks below unless it is a partition of one. So
/// a loop device and its disk are both sampled, a partition without its disk.
pub fn names(devices: &[DeviceDescription]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for block in devices.iter().filter_map(|device| device.block.as_ref()) {
        names.insert(block.name.clone());
        if block.partition.is_none() {
            names.extend(block.disks.iter().cloned());
        }
    }
    names.into_iter().collect()
}

fn look_until(stop: &AtomicBool, devices: Vec<String>, first: Look, mut interval: Nanos) -> Looks {
    let mut due = first.beat.at + interval;
    let mut looks = vec![first];
    while !stop.load(Relaxed) {
        let left = due.saturating_sub(clock::now());
        if left.0 > 0 {
            thread::park_timeout(Duration::from_nanos(left.0));
            continue;
        }
        looks.push(Look::make(&devices));
        if looks.len() >= LOOKS_MAX {
            let mut number = 0;
            looks.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            interval += interval;
        }
        // A missed sample is skipped.
        while due <= clock::now() {
            due += interval;
        }
    }
    looks.push(Look::make(&devices));
    Looks { interval, cost: clock::thread_cpu(), devices, looks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_taken_at_each_end_and_times_increase() {
        let looks = Sampler::start(&[]).end().expect("a thread");
        assert_eq!((looks.looks.len(), looks.devices.len()), (2, 0));
        assert!(looks.looks[0].beat.at <= looks.looks[1].beat.at);
        assert!(looks.looks.iter().all(|look| look.cpu.is_some() && look.available.is_some()));
    }

    #[test]
    fn a_long_run_keeps_half_of_its_samples() {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let looking = thread::spawn(move || look_until(&theirs, Vec::new(), Look::make(&[]), Nanos(1_000)));
        while !looking.is_finished() {
            thread::sleep(Duration::from_millis(600));
            stop.store(true, Relaxed);
        }
        let looks = looking.join().expect("it ends");
        assert!(looks.looks.len() <= LOOKS_MAX);
        assert!(looks.looks.windows(2).all(|pair| pair[0].beat.at <= pair[1].beat.at));
    }

    #[test]
    fn samples_show_a_stopped_process_but_not_a_late_sample() {
        let beat = |[at, suspended, queued]: [u64; 3]| {
            let [at, suspended, queued] = [at, suspended, queued].map(|s| Nanos(s * 1_000_000_000));
            Look { beat: Beat { at, suspended, queued }, ..Look::make(&[]) }
        };
        let look = |seconds, suspended| beat([seconds, suspended, 0]);
        let stopped = |looks: Vec<Look>, span: (u64, u64)| {
            let looks = Looks { interval: INTERVAL, cost: Nanos(0), devices: Vec::new(), looks };
            let span = (Nanos(span.0 * 1_000_000_000), Nanos(span.1 * 1_000_000_000));
            looks.stopped(span).map(|lost| lost.0 / 1_000_000_000)
        };
        assert_eq!(stopped(vec![look(0, 0), look(1, 0), look(3, 0)], (0, 3)), None, "a second late");
        assert_eq!(stopped(vec![look(0, 0), look(1, 0), look(8, 0)], (0, 8)), Some(6));
        let busy = vec![beat([0, 0, 0]), beat([1, 0, 0]), beat([8, 0, 5])];
        assert_eq!(stopped(busy, (0, 8)), None, "it waited for a processor");
        assert_eq!(stopped(vec![look(0, 0), look(7, 0), look(8, 0)], (7, 8)), None, "before it was measured");
        assert_eq!(stopped(vec![look(0, 50), look(1, 50), look(2, 90)], (0, 2)), Some(40), "suspended");
    }
}
