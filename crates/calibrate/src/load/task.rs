//! Runs one task once, a point on its threads or a durable write on a log, with all readings.
//!
//! ```text
//! read the device -> start threads -> ramp, measured, drain -> join -> read the device
//! ```
//!
//! The outstanding requests of a point are divided evenly among its threads. Sequential requests of
//! each thread have a range of the file of their own.

use super::log_writer;
use super::requests::{LoadThread, ThreadResult, ThreadShare};
use super::start::{self, Start, Window};
use crate::files::{Logs, Place, ScratchDirectory, Volume};
use crate::measure::{CpuMeter, CpuUse, DeviceMeter, Traffic};
use crate::pace::Pace;
use crate::progress::StopCheck;
use crate::random::Random;
use crate::{CalibrateError, DeviceEvidence, DurablePoint, Load, LoadMeasurement, Measurement, Point, Task};
use plumb_events::{Recorder, Role, Statistic};
use plumb_io::{DirectIo, MethodKind};
use plumb_units::Nanos;
use std::ops::Range;
use std::thread;

/// Small stacks suffice, because buffers are not on them.
const STACK_BYTES: usize = 256 << 10;

/// Environment in which tasks run.
#[derive(Debug)]
pub(crate) struct TaskRunner<'a> {
    pub scratch: &'a ScratchDirectory,
    pub volume: &'a Volume,
    pub logs: &'a Logs,
    pub meter: &'a DeviceMeter,
    pub cpu: &'a CpuMeter,
    pub stop: &'a StopCheck<'a>,
    pub seed: u64,
    /// Most requests a second, over all threads; `None`: no limit.
    pub max_rate: Option<u64>,
}

impl TaskRunner<'_> {
    /// Runs a task once, measuring for `time`. `order` is unique for each repeat.
    pub(crate) fn run(&self, task: &Task, order: usize, time: Nanos) -> Result<Measurement, CalibrateError> {
        self.stop.check()?;
        let random = Random::part(self.seed, order as u64);
        match task {
            Task::Point(point) => self.run_point(point, random, time),
            Task::Durable(point) => self.run_durable(*point, random, time),
        }
    }

    /// Runs a durable write on a thread of its own. The kernel's workers for syncs of its ring end
    /// with the thread, so that they do not count for the next point.
    fn run_durable(
        &self,
        point: DurablePoint,
        random: Random,
        time: Nanos,
    ) -> Result<Measurement, CalibrateError> {
        let before = self.meter.read();
        let alone = Start::new(1, time, self.cpu);
        let write = |_: &Start<'_>| log_writer::run(self, point, random, time).map(Some);
        let thread = |_| thread::Builder::new().name("log-writer".to_string()).stack_size(STACK_BYTES);
        let mut measurements = start::together(vec![write], &alone, thread)?;
        let Some(mut measurement) = measurements.pop() else { unreachable!("a writer that did not fail") };
        let DeviceEvidence { asked, syncs, io_wq_workers, .. } = measurement.evidence;
        measurement.evidence = DeviceEvidence { asked, syncs, io_wq_workers, ..self.meter.since(&before) };
        Ok(measurement)
    }

    fn run_point(
        &self,
        point: &Point,
        mut random: Random,
        time: Nanos,
    ) -> Result<Measurement, CalibrateError> {
        if point.direct_io == DirectIo::Off {
            self.volume.drop_cache();
        }
        let shares = shares(point, self.volume);
        let pace = Pace::of(self.max_rate, shares.len());
        let method = point.start()?;
        let recorder = Recorder::new();
        let start = Start::new(shares.len(), time, self.cpu);
        let place = |load: &Load| self.volume.place(load.path, point.direct_io);
        let places: Vec<Place<'_>> = point.loads.iter().map(place).collect();
        let work = |shares: Vec<ThreadShare>| {
            let (recorder, method, random) = (&recorder, &method, Random::seeded(random.word()));
            let places = &places;
            move |start: &Start<'_>| {
                let session = recorder.session(Role::CalibrationLoad);
                let load = LoadThread::prepare(&session, places, self.stop, method, point, shares, random)?;
                start.arrive().map(|window| Ok((window, load.run(window, pace, self.cpu)?))).transpose()
            }
        };
        let works = shares.into_iter().map(work).collect();
        let thread = |index| thread::Builder::new().name(format!("load-{index:03}")).stack_size(STACK_BYTES);
        let before = self.meter.read();
        let results = start::together(works, &start, thread)?;
        let seen = self.meter.since(&before);
        let snapshot = recorder.snapshot();
        let evidence = DeviceEvidence {
            ring_requests: snapshot.statistic(Statistic::RingRequests),
            ring_fixed_requests: snapshot.statistic(Statistic::RingFixedRequests),
            ring_fixed_file_requests: snapshot.statistic(Statistic::RingFixedFileRequests),
            ..seen
        };
        Ok(together(point, &results, time, evidence))
    }
}

/// Divides the outstanding requests of a point among its threads.
fn shares(point: &Point, volume: &Volume) -> Vec<Vec<ThreadShare>> {
    let threads = match point.method {
        // A thread in a system call has one request outstanding.
        MethodKind::Sync => point.outstanding(),
        MethodKind::Threads | MethodKind::IoUring => point.threads.clamp(1, point.outstanding()),
    };
    let mut shares: Vec<Vec<ThreadShare>> = vec![Vec::new(); threads];
    let mut first = 0;
    for (load_index, load) in point.loads.iter().enumerate() {
        let length = volume.length(load.path);
        let zone = load.zone_bytes.map_or(length.0, |zone| zone.min(length.0));
        let units = (zone / load.request_bytes).max(1);
        let sharing = threads.min(load.outstanding);
        for place in 0..sharing {
            let outstanding = load.outstanding / sharing + usize::from(place < load.outstanding % sharing);
            let share = ThreadShare {
                load_index,
                load: *load,
                outstanding,
                stretch: stretch(units, place, sharing),
                units,
            };
            // The next load starts after this one's threads, so that no thread has both while
            // another has none.
            shares[(first + place) % threads].push(share);
        }
        first += sharing;
    }
    shares
}

/// Returns the range of a file for one of several threads.
fn stretch(units: u64, place: usize, sharing: usize) -> Range<u64> {
    let bound = |index: usize| units * index as u64 / sharing as u64;
    let begin = bound(place);
    begin..bound(place + 1).max(begin + 1)
}

/// Merges the measurements of a point's threads.
fn together(
    point: &Point,
    threads: &[(Window, ThreadResult)],
    time: Nanos,
    evidence: DeviceEvidence,
) -> Measurement {
    let mut loads = vec![LoadMeasurement::default(); point.loads.len()];
    let (mut asked, mut cpu, mut workers) = (Traffic::default(), CpuUse::default(), 0);
    for (window, thread) in threads {
        for (load, part) in loads.iter_mut().zip(&thread.loads) {
            load.merge(part);
        }
        asked.add(&thread.asked);
        workers = workers.max(thread.io_wq_workers);
        // Both readings are of the process, so the thread that ended last has the whole.
        let spent = thread.cpu.since(&window.cpu);
        cpu = if spent.time > cpu.time { spent } else { cpu };
    }
    let evidence = DeviceEvidence { asked, io_wq_workers: workers, ..evidence };
    Measurement { elapsed_ns: time.0, loads, cpu_ns: cpu.time.0, cycles: cpu.cycles, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffers, Pattern, Ring};
    use plumb_units::Bytes;

    fn check(method: MethodKind, threads: usize, outstanding: &[usize], expected: &[&[usize]]) {
        let load = |outstanding: &usize| Load {
            pattern: Pattern::Random,
            request_bytes: 8192,
            write_percent: 0,
            outstanding: *outstanding,
            zone_bytes: None,
            path: None,
        };
        let loads = outstanding.iter().map(load).collect();
        let point = Point {
            loads,
            threads,
            method,
            direct_io: DirectIo::Required,
            buffers: Buffers::Ordinary,
            ring: Ring::default(),
        };
        let volume = Volume::single(crate::fixture::memory_file(Bytes(Bytes::M)));
        let found: Vec<Vec<usize>> = shares(&point, &volume)
            .iter()
            .map(|thread| thread.iter().map(|share| share.outstanding).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn outstanding_requests_are_spread_over_the_threads() {
        check(MethodKind::IoUring, 1, &[5], &[&[5]]);
        check(MethodKind::IoUring, 2, &[5], &[&[3], &[2]]);
        check(MethodKind::IoUring, 4, &[2], &[&[1], &[1]]);
        check(MethodKind::IoUring, 2, &[1, 1], &[&[1], &[1]]);
        check(MethodKind::IoUring, 1, &[4, 2], &[&[4, 2]]);
        check(MethodKind::Sync, 1, &[3], &[&[1], &[1], &[1]]);
        check(MethodKind::Sync, 1, &[2, 1], &[&[1], &[1], &[1]]);
    }

    #[test]
    fn stretches_adjoin() {
        assert_eq!([stretch(10, 0, 3), stretch(10, 1, 3), stretch(10, 2, 3)], [0..3, 3..6, 6..10]);
        assert_eq!(stretch(1, 1, 2), 0..1);
    }
}
