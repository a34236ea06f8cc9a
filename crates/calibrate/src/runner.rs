//! Runs one task once: a point on its lanes, or a durable write on a log.

use crate::durable::{self, Logs};
use crate::effort::{Effort, EffortMeter};
use crate::evidence::{DeviceMeter, Traffic};
use crate::file::CalibrationFile;
use crate::home::Home;
use crate::lane::{Lane, LaneResult, Part};
use crate::random::Random;
use crate::team::{self, Start, Window};
use crate::watch::Guard;
use crate::{Access, CalibrateError, DurablePoint, Evidence, LoadMeasurement, Measurement, Point, Task, Way};
use plumb_events::{Recorder, SessionKind, Statistic};
use plumb_units::{Bytes, Nanos};
use std::ops::Range;
use std::thread;

/// A lane keeps its buffers elsewhere.
const LANE_STACK_BYTES: usize = 256 << 10;

/// What tasks run on.
#[derive(Debug)]
pub(crate) struct Runner<'a> {
    pub home: &'a Home,
    pub file: &'a CalibrationFile,
    pub logs: &'a Logs,
    pub meter: &'a DeviceMeter,
    pub effort: &'a EffortMeter,
    pub guard: &'a Guard<'a>,
    pub seed: u64,
}

impl Runner<'_> {
    /// Runs a task once, measuring for `time`. `order` tells this repeat from all others.
    pub(crate) fn run(&self, task: &Task, order: usize, time: Nanos) -> Result<Measurement, CalibrateError> {
        self.guard.check()?;
        let random = Random::part(self.seed, order as u64);
        match task {
            Task::Point(point) => self.run_point(point, random, time),
            Task::Durable(point) => self.run_durable(*point, random, time),
        }
    }

    /// On a thread of its own: the kernel's workers for the syncs of its ring end with
    /// it, and are not taken for those of the point that follows.
    fn run_durable(
        &self,
        point: DurablePoint,
        random: Random,
        time: Nanos,
    ) -> Result<Measurement, CalibrateError> {
        let before = self.meter.read();
        let alone = Start::new(1, time, self.effort);
        let write = |_: &Start<'_>| durable::run(self, point, random, time).map(Some);
        let thread = |_| thread::Builder::new().name("log-writer".to_string()).stack_size(LANE_STACK_BYTES);
        let mut measurements = team::run(vec![write], &alone, thread)?;
        let Some(mut measurement) = measurements.pop() else { unreachable!("a writer that did not fail") };
        let Evidence { asked, syncs, io_wq_workers, .. } = measurement.evidence;
        measurement.evidence = Evidence { asked, syncs, io_wq_workers, ..self.meter.since(&before) };
        Ok(measurement)
    }

    fn run_point(
        &self,
        point: &Point,
        mut random: Random,
        time: Nanos,
    ) -> Result<Measurement, CalibrateError> {
        if point.access == Access::Buffered {
            self.file.drop_cache();
        }
        let lanes = lanes(point, self.file.length());
        let method = point.start()?;
        let recorder = Recorder::new();
        let start = Start::new(lanes.len(), time, self.effort);
        let file = self.file.by(point.access);
        let work = |parts: Vec<Part>| {
            let (recorder, method, random) = (&recorder, &method, Random::seeded(random.word()));
            move |start: &Start<'_>| {
                let session = recorder.session("calibration lane", SessionKind::Probe);
                let lane = Lane::prepare(&session, file, self.guard, method, point, parts, random)?;
                start.arrive().map(|window| Ok((window, lane.run(window, self.effort)?))).transpose()
            }
        };
        let works = lanes.into_iter().map(work).collect();
        let thread =
            |index| thread::Builder::new().name(format!("lane-{index:03}")).stack_size(LANE_STACK_BYTES);
        let before = self.meter.read();
        let results = team::run(works, &start, thread)?;
        let seen = self.meter.since(&before);
        let snapshot = recorder.snapshot();
        let evidence = Evidence {
            ring_requests: snapshot.statistic(Statistic::RingRequests),
            ring_fixed_requests: snapshot.statistic(Statistic::RingFixedRequests),
            ring_fixed_file_requests: snapshot.statistic(Statistic::RingFixedFileRequests),
            ..seen
        };
        Ok(together(point, &results, time, evidence))
    }
}

/// Spreads the outstanding requests of a point over its threads.
fn lanes(point: &Point, length: Bytes) -> Vec<Vec<Part>> {
    let threads = match point.way {
        // A thread in a system call has one request outstanding.
        Way::Sync => point.outstanding(),
        Way::Threads | Way::IoUring => point.threads.clamp(1, point.outstanding()),
    };
    let mut lanes: Vec<Vec<Part>> = vec![Vec::new(); threads];
    let mut first = 0;
    for (load_index, load) in point.loads.iter().enumerate() {
        let zone = load.zone_bytes.map_or(length.0, |zone| zone.min(length.0));
        let units = (zone / load.request_bytes).max(1);
        let sharing = threads.min(load.outstanding);
        for place in 0..sharing {
            let outstanding = load.outstanding / sharing + usize::from(place < load.outstanding % sharing);
            let part =
                Part { load_index, load: *load, outstanding, stretch: stretch(units, place, sharing), units };
            // The next load begins where this one ended, so that no lane gets both while another gets none.
            lanes[(first + place) % threads].push(part);
        }
        first += sharing;
    }
    lanes
}

/// The stretch of a file that one of several threads goes through.
fn stretch(units: u64, place: usize, sharing: usize) -> Range<u64> {
    let bound = |index: usize| units * index as u64 / sharing as u64;
    let begin = bound(place);
    begin..bound(place + 1).max(begin + 1)
}

/// Puts the lanes of a point together.
fn together(point: &Point, lanes: &[(Window, LaneResult)], time: Nanos, evidence: Evidence) -> Measurement {
    let mut loads = vec![LoadMeasurement::default(); point.loads.len()];
    let (mut asked, mut effort, mut workers) = (Traffic::default(), Effort::default(), 0);
    for (window, lane) in lanes {
        for (load, part) in loads.iter_mut().zip(&lane.loads) {
            load.merge(part);
        }
        asked.merge(lane.asked);
        workers = workers.max(lane.io_wq_workers);
        // Both readings are the process's: the lane that ended last has read all of it.
        let spent = lane.effort.since(window.effort);
        effort = if spent.time > effort.time { spent } else { effort };
    }
    let evidence = Evidence { asked, io_wq_workers: workers, ..evidence };
    Measurement { elapsed_ns: time.0, loads, cpu_ns: effort.time.0, cycles: effort.cycles, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffers, Load, Pattern, Ring};

    fn check(way: Way, threads: usize, outstanding: &[usize], expected: &[&[usize]]) {
        let load = |outstanding: &usize| Load {
            pattern: Pattern::Random,
            request_bytes: 8192,
            write_percent: 0,
            outstanding: *outstanding,
            zone_bytes: None,
        };
        let loads = outstanding.iter().map(load).collect();
        let point = Point {
            loads,
            threads,
            way,
            access: Access::Direct,
            buffers: Buffers::Ordinary,
            ring: Ring::default(),
        };
        let found: Vec<Vec<usize>> = lanes(&point, Bytes(1 << 30))
            .iter()
            .map(|lane| lane.iter().map(|part| part.outstanding).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn outstanding_requests_are_spread_over_the_threads() {
        check(Way::IoUring, 1, &[5], &[&[5]]);
        check(Way::IoUring, 2, &[5], &[&[3], &[2]]);
        check(Way::IoUring, 4, &[2], &[&[1], &[1]]);
        check(Way::IoUring, 2, &[1, 1], &[&[1], &[1]]);
        check(Way::IoUring, 1, &[4, 2], &[&[4, 2]]);
        check(Way::Sync, 1, &[3], &[&[1], &[1], &[1]]);
        check(Way::Sync, 1, &[2, 1], &[&[1], &[1], &[1]]);
    }

    #[test]
    fn stretches_adjoin() {
        assert_eq!([stretch(10, 0, 3), stretch(10, 1, 3), stretch(10, 2, 3)], [0..3, 3..6, 6..10]);
        assert_eq!(stretch(1, 1, 2), 0..1);
    }
}
