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
//! Limits: a run shorter than a second has one sample. Pressure is what the kernel keeps in /proc/pressure, if it does.

use crate::host::{self, CpuTimes, MemoryStall};
use plumb_events::clock;
use plumb_io::device::DeviceDescription;
use plumb_io::limits;
use plumb_io::receipt::DiskStats;
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

/// The counters at one moment.
#[derive(Debug, Clone)]
pub struct Look {
    /// When, on the monotonic clock.
    pub at: Nanos,
    /// Of each device, in their order; none of one that is gone.
    pub disks: Vec<Option<DiskStats>>,
    /// Of all processors.
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
            disks: devices.iter().map(|name| DiskStats::read(name).ok()).collect(),
            cpu: CpuTimes::read(),
            load: host::load_average(),
            available: limits::memory().map(|memory| memory.available),
            stalled: MemoryStall::read(),
        }
    }
}

/// The looking thread.
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
            interval = interval + interval;
        }
        // One that comes late is not made up for.
        while due <= clock::now() {
            due = due + interval;
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
}
