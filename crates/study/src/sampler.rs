//! Looks at the machine beside a run, once a second: block devices, processors, memory.
//!
//! ```text
//! run      |--------- load ---------|--- work ---|-- verify --|
//! looks    |    |    |    |    |    |    |    |    |    |    |     one at its start, one at its end, one a second between
//! ```
//!
//! A thread of its own reads small files of /proc and /sys; nothing is added to the code whose time is measured. What is
//! kept are the kernel's own counters, so that a look that comes late loses nothing.
//!
//! Cost: five files and one more a device, 0.1 to 0.2 ms of CPU a look by estimate, or 0.02% of one processor; what it
//! really took is in the record, and the report prints it. Memory: half a kilobyte a look, 3,600 looks at most; then
//! every second one is left out and the time between two doubles, so that a day costs what an hour does.
//!
//! A process that is stopped looks at nothing: looks that are seconds apart show it, and the clock
//! that goes on while the machine is suspended shows that ([`Looks::stopped`]).
//!
//! Limits: a run shorter than a second has one sample. Pressure is what the kernel keeps in /proc/pressure, if it does.

use crate::machine::{self, CpuTimes, MemoryStall};
use plumb_events::clock;
use plumb_host::device::DeviceDescription;
use plumb_host::limits;
use plumb_host::readings::DiskStats;
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What lies between two looks.
const INTERVAL: Nanos = Nanos(1_000_000_000);
/// Looks that are kept at most.
const LOOKS_MAX: usize = 3600;
/// The shortest time by which a look comes too late because the process was stopped: a busy machine
/// delays one by less.
pub const STOPPED_MIN: Nanos = Nanos(2_000_000_000);
/// The shortest time that the machine was suspended for. Two clocks that are read one after the
/// other are apart by less.
const SUSPENDED_MIN: Nanos = Nanos(100_000_000);

/// What was seen beside a run.
#[derive(Debug, Clone)]
pub struct Looks {
    /// What was meant to lie between two of them.
    pub interval: Nanos,
    /// CPU time that they took.
    pub cost: Nanos,
    /// The block devices, by name.
    pub devices: Vec<String>,
    /// At least two, in the order of time.
    pub looks: Vec<Look>,
}

impl Looks {
    /// Returns the time that the process was stopped, or the machine suspended, in a span of the monotonic
    /// clock; none where it was not.
    #[must_use]
    pub fn stopped(&self, (begin, end): (Nanos, Nanos)) -> Option<Nanos> {
        let pairs = self.looks.windows(2).filter(|pair| pair[1].at > begin && pair[0].at < end);
        let lost = pairs.map(|pair| {
            lost((pair[0].at, pair[0].suspended), (pair[1].at, pair[1].suspended), self.interval)
        });
        Some(Nanos(lost.map(|lost| lost.0).sum())).filter(|lost| lost.0 > 0)
    }
}

/// The time between two looks in which nothing ran. A look is when it was made, and how long the
/// machine had been suspended then.
#[must_use]
pub fn lost(earlier: (Nanos, Nanos), later: (Nanos, Nanos), meant: Nanos) -> Nanos {
    let late = later.0.saturating_sub(earlier.0 + meant);
    let suspended = later.1.saturating_sub(earlier.1);
    let counted = |time: Nanos, least: Nanos| if time >= least { time } else { Nanos(0) };
    counted(late, STOPPED_MIN) + counted(suspended, SUSPENDED_MIN)
}

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    /// When, on the monotonic clock.
    pub at: Nanos,
    /// How long the machine had been suspended, from an origin that only differences can cancel.
    pub suspended: Nanos,
    /// Of each device, in their order; none of one that is gone.
    pub disks: Vec<Option<DiskStats>>,
    pub cpu: Option<CpuTimes>,
    /// The load average over one minute.
    pub load: Option<f64>,
    /// Memory that could be had without swapping.
    pub available: Option<Bytes>,
    /// Time that tasks stood still for want of memory.
    pub stalled: Option<MemoryStall>,
}

impl Look {
    fn make(devices: &[String]) -> Look {
        Look {
            at: clock::now(),
            suspended: clock::suspended(),
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
    /// Starts looking at the devices under these paths. Where no thread can be started nothing is seen.
    #[must_use]
    pub fn start(devices: &[DeviceDescription]) -> Sampler {
        let devices = names(devices);
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let look = move || look_until(&theirs, devices, INTERVAL);
        let thread = thread::Builder::new().name("beside the run".to_string()).spawn(look).ok();
        Sampler { stop, thread }
    }

    /// Ends it with a last look.
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

/// The device each file system is on, and the disks beneath where that is no part of one of them: a loop device and the
/// disk that its file lies on, but not a partition and its disk.
fn names(devices: &[DeviceDescription]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for block in devices.iter().filter_map(|device| device.block.as_ref()) {
        names.insert(block.name.clone());
        if block.partition.is_none() {
            names.extend(block.disks.iter().cloned());
        }
    }
    names.into_iter().collect()
}

fn look_until(stop: &AtomicBool, devices: Vec<String>, mut interval: Nanos) -> Looks {
    let begin = clock::now();
    let mut looks = vec![Look::make(&devices)];
    let mut due = begin + interval;
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
        // One that comes late is not made up for.
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
    fn there_is_a_look_at_each_end_and_time_goes_on_between() {
        let looks = Sampler::start(&[]).end().expect("a thread");
        assert_eq!((looks.looks.len(), looks.devices.len()), (2, 0));
        assert!(looks.looks[0].at <= looks.looks[1].at);
        assert!(looks.looks.iter().all(|look| look.cpu.is_some() && look.available.is_some()));
    }

    #[test]
    fn a_long_run_keeps_half_of_its_looks_and_doubles_the_time_between() {
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let looking = thread::spawn(move || look_until(&theirs, Vec::new(), Nanos(1_000)));
        while !looking.is_finished() {
            thread::sleep(Duration::from_millis(600));
            stop.store(true, Relaxed);
        }
        let looks = looking.join().expect("it ends");
        assert!(looks.looks.len() <= LOOKS_MAX);
        assert!(looks.looks.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }

    #[test]
    fn a_process_that_was_stopped_for_seconds_is_seen_by_its_looks_and_a_late_look_is_none() {
        let look = |seconds: u64, suspended: u64| Look {
            at: Nanos(seconds * 1_000_000_000),
            suspended: Nanos(suspended * 1_000_000_000),
            ..Look::make(&[])
        };
        let stopped = |looks: Vec<Look>, span: (u64, u64)| {
            let looks = Looks { interval: INTERVAL, cost: Nanos(0), devices: Vec::new(), looks };
            let span = (Nanos(span.0 * 1_000_000_000), Nanos(span.1 * 1_000_000_000));
            looks.stopped(span).map(|lost| lost.0 / 1_000_000_000)
        };
        assert_eq!(stopped(vec![look(0, 0), look(1, 0), look(3, 0)], (0, 3)), None, "a second late");
        assert_eq!(stopped(vec![look(0, 0), look(1, 0), look(8, 0)], (0, 8)), Some(6));
        assert_eq!(stopped(vec![look(0, 0), look(7, 0), look(8, 0)], (7, 8)), None, "before it was measured");
        assert_eq!(stopped(vec![look(0, 50), look(1, 50), look(2, 90)], (0, 2)), Some(40), "suspended");
    }
}
