//! Made-up results, so that what follows from results can be tested without a disk.

use crate::durable::Logs;
use crate::effort::EffortMeter;
use crate::evidence::{DeviceMeter, Traffic};
use crate::file::{CalibrationFile, Filling};
use crate::home::Home;
use crate::runner::Runner;
use crate::watch::Guard;
use crate::{Evidence, LatencyHistogram, LoadMeasurement, Measurement, Repeat, Task, TaskResult};
use plumb_io::device::{self, DeviceDescription};
use plumb_io::{Disk, Method, MethodKind};
use plumb_units::{Bytes, Nanos};
use tempfile::TempDir;

/// A directory beside the test program, for the system's own may be in memory, and what lies under it.
pub(crate) fn place() -> (TempDir, DeviceDescription) {
    let program = std::env::current_exe().expect("a test program");
    let directory = tempfile::tempdir_in(program.parent().expect("in a directory")).expect("a directory");
    let device = device::describe(directory.path()).expect("a description");
    (directory, device)
}

/// Lends a runner with a small file and small logs under a place.
pub(crate) fn with_runner(device: &DeviceDescription, use_it: impl FnOnce(&Runner<'_>)) {
    let (guard, meter, effort) = (Guard::new(&()), DeviceMeter::of(device), EffortMeter::start());
    let home = Home::create(Disk::Kernel, &device.path).expect("a home");
    let method = Method::start(MethodKind::Threads, 8).expect("a method");
    let filling = Filling { method: &method, seed: 1, time_max: Nanos(u64::MAX), guard: &guard };
    let length = Bytes(16 * Bytes::M);
    let file = CalibrationFile::create(&home, &device.direct_io, length, &filling).expect("a file");
    let logs = Logs::create(&home, Bytes(Bytes::M), &guard).expect("logs");
    use_it(&Runner {
        home: &home,
        file: &file,
        logs: &logs,
        meter: &meter,
        effort: &effort,
        guard: &guard,
        seed: 1,
    });
}

/// A result of one load whose repeats had these many requests in one second, each of
/// which took `micros`; the device moved what was asked for.
pub(crate) fn result(task: Task, requests: &[u64], micros: u64) -> TaskResult {
    let mut result = TaskResult::new(task);
    let bytes = result.request_bytes(0);
    let writes = result.point().is_none_or(|point| point.loads[0].write_percent == 100);
    for (round, requests) in requests.iter().copied().enumerate() {
        let mut latency = LatencyHistogram::default();
        (0..requests).for_each(|_| latency.add(Nanos(micros * 1000)));
        let load = if writes {
            LoadMeasurement { reads: 0, writes: requests, latency }
        } else {
            LoadMeasurement { reads: requests, writes: 0, latency }
        };
        let moved = Traffic {
            requests,
            read_bytes: if writes { 0 } else { requests * bytes },
            write_bytes: if writes { requests * bytes } else { 0 },
        };
        let evidence = Evidence {
            asked: moved,
            syncs: if result.durable().is_some() { requests } else { 0 },
            caused_read_bytes: Some(moved.read_bytes),
            device: Some(moved),
            flushes: Some(requests),
            span_ns: 1_000_000_000,
            ..Evidence::default()
        };
        let measurement = Measurement {
            elapsed_ns: 1_000_000_000,
            loads: vec![load],
            cpu_ns: requests * 3000,
            cycles: None,
            evidence,
        };
        result.repeats.push(Repeat { round, order: round, begin_ns: 0, measurement });
    }
    result
}
