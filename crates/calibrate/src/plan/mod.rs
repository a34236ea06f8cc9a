//! The plan: tasks of a mode, and their measured time.
//!
//! Tasks form a set: a point with several purposes is in it once.
//!
//! ```text
//! part              quick                 the full modes           in
//! small curves      read, write, 70/30    the same, to depth 256   quick simple oltp normal
//! large             1 and all threads     the same, + writes       quick simple dss normal
//! matrix            -                     9 x 5, read              normal; advanced: as asked
//! hot zone          1 point               the same                 all but advanced
//! ladder            small, 8 rungs        small and large          all but advanced
//! read cost         5 sizes               the same                 all but advanced
//! durable writes    4K, 14 kinds          512 B to 1M, 100 kinds   quick oltp normal
//! ```
//!
//! A mode has a total time budget. The time left after making the file is divided equally among all
//! tasks, `REPEATS_MIN` times each. A fifth is kept for further repeats of unsettled tasks. Quick
//! has 48 tasks, (27 - 4) s * 0.8 / (48 * 3) = 128 ms each, 100 of them measured. Normal has about
//! 200 tasks, 0.7 s each.
//!
//! Tasks that this device does not support are listed separately, with the reason.

mod durable;
mod options;
mod point;
mod steps;

pub use durable::{DurableMethod, DurablePoint, LogSpace};
pub use options::{Advanced, Cells, Mode, Options, VolumeLayout};
pub use point::{Buffers, Files, Load, Pattern, Point, Ring};
pub(crate) use steps::{STEPS, Step};

use plumb_host::device::DeviceDescription;
use plumb_io::DirectIo;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One task of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Loads that are kept outstanding.
    Point(Point),
    /// Durable writes, one after the other.
    Durable(DurablePoint),
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Task::Point(point) => point.fmt(f),
            Task::Durable(point) => point.fmt(f),
        }
    }
}

/// Input of a plan besides the options.
#[derive(Debug)]
pub(crate) struct PlanInput<'a> {
    /// A single small random read, with the method and rings of all points except the ladder's.
    pub usual: Point,
    /// The steps of the ladder that work on this device.
    pub steps: Vec<Step>,
    /// Number of processors of the machine.
    pub processors: usize,
    /// Length of the file in bytes, or of all files together.
    pub length: Bytes,
    pub paths: usize,
    /// Device under the file; `None` in memory, where nothing is durable.
    pub device: Option<&'a DeviceDescription>,
}

/// Tasks of a mode on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPlan {
    /// The tasks, each of them once.
    pub tasks: Vec<Task>,
    /// Tasks of the mode that this device does not support.
    pub refused: Vec<RefusedTask>,
}

/// A task that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTask {
    pub task: Task,
    /// The reason, with the cure if there is one.
    pub why: String,
}

/// Fewest repeats from which a figure may settle.
pub(crate) const REPEATS_MIN: usize = 3;
/// Time of a task besides its measurement: threads, rings, buffers, the ramp.
const OVERHEAD: Nanos = Nanos(12_000_000);
const TASK_TIME_MIN: Nanos = Nanos(40_000_000);
const TASK_TIME_MAX: Nanos = Nanos(5_000_000_000);
/// Large requests outstanding when their highest rate is measured.
pub(crate) const LARGE_OUTSTANDING: usize = 8;
/// Small requests outstanding when methods are compared.
pub(crate) const LADDER_OUTSTANDING: usize = 32;
/// Writes per hundred requests of a transaction system: 70 reads to 30 writes.
pub(crate) const MIXED_PERCENT: u8 = 30;
/// A part of the file so small that any cache in front of the disk holds it.
const HOT_ZONE: Bytes = Bytes(32 * Bytes::M);

impl TaskPlan {
    pub(crate) fn of(options: &Options, input: &PlanInput<'_>) -> TaskPlan {
        let mut plan = TaskPlan { tasks: Vec::new(), refused: Vec::new() };
        let small = options.size_small;
        if options.mode == Mode::Advanced {
            for (small, large) in options.advanced.cells() {
                plan.cell(options, input, MatrixKind::of(options), small, large);
            }
            return plan;
        }
        // These three are in every calibration, so that any two can be compared.
        plan.add(Task::Point(input.usual.clone()));
        plan.add(input.point(Load::random_read(small, LADDER_OUTSTANDING), 1));
        plan.large(options, input, Pattern::Sequential, 0);
        let full = options.mode != Mode::Quick;
        if matches!(options.mode, Mode::Quick | Mode::Simple | Mode::Oltp | Mode::Normal) {
            plan.curves(small, input, full);
        }
        if matches!(options.mode, Mode::Quick | Mode::Simple | Mode::Dss | Mode::Normal) {
            plan.large(options, input, Pattern::Random, 0);
            plan.large(options, input, Pattern::Sequential, 100);
            if full {
                plan.large(options, input, Pattern::Random, 100);
                plan.matrix(options, input, &[0], &LARGE_COUNTS);
            }
        }
        if options.mode == Mode::Normal {
            plan.matrix(options, input, &[0, 1, 2, 4, 8, 16, 32, 64, 128], &[0, 1, 2, 4, 8]);
        }
        plan.hot_zone(small, input);
        plan.ladder(small, LADDER_OUTSTANDING, input);
        if full {
            plan.ladder(options.size_large, LARGE_OUTSTANDING, input);
        }
        plan.read_cost(small, input);
        plan.volume(options, input);
        if matches!(options.mode, Mode::Quick | Mode::Oltp | Mode::Normal) {
            plan.durable(input, full);
        }
        plan
    }

    /// Returns the measured time of each task if `time` is left for all of them.
    pub(crate) fn task_time(&self, time: Nanos) -> Nanos {
        let turns = (self.tasks.len() * REPEATS_MIN).max(1) as u64;
        // A ramp of an eighth is added to the measured time.
        let each = (time.0 / 5 * 4 / turns).saturating_sub(OVERHEAD.0) / 9 * 8;
        Nanos(each).clamp(TASK_TIME_MIN, TASK_TIME_MAX)
    }

    fn add(&mut self, task: Task) {
        if !self.tasks.contains(&task) {
            self.tasks.push(task);
        }
    }

    fn curves(&mut self, small: Bytes, input: &PlanInput<'_>, full: bool) {
        let reads: &[usize] =
            if full { &[1, 2, 4, 8, 16, 32, 64, 128, 256] } else { &[1, 2, 4, 8, 16, 32, 64, 128] };
        let writes: &[usize] = if full { reads } else { &[1, 8, 32, 128] };
        let mixed: &[usize] = if full { reads } else { &[32] };
        for (percent, depths) in [(0, reads), (100, writes), (MIXED_PERCENT, mixed)] {
            for depth in depths {
                self.add(input.point(Load { write_percent: percent, ..Load::random_read(small, *depth) }, 1));
            }
            if percent != MIXED_PERCENT || full {
                let load = Load { write_percent: percent, ..Load::random_read(small, 128) };
                self.add(input.point(load, input.processors));
            }
        }
    }

    fn large(&mut self, options: &Options, input: &PlanInput<'_>, pattern: Pattern, write_percent: u8) {
        let load =
            Load { pattern, write_percent, ..Load::random_read(options.size_large, LARGE_OUTSTANDING) };
        self.add(input.point(load, 1));
        self.add(input.point(load, input.processors.min(LARGE_OUTSTANDING)));
    }

    fn matrix(&mut self, options: &Options, input: &PlanInput<'_>, small: &[usize], large: &[usize]) {
        for large in large {
            for small in small {
                self.cell(options, input, MatrixKind::READS, *small, *large);
            }
        }
    }

    fn cell(
        &mut self,
        options: &Options,
        input: &PlanInput<'_>,
        kind: MatrixKind,
        small: usize,
        large: usize,
    ) {
        let loads = cell((options.size_small, options.size_large), kind, small, large);
        if !loads.is_empty() {
            self.add(Task::Point(input.usual.with(loads, 1)));
        }
    }

    fn hot_zone(&mut self, small: Bytes, input: &PlanInput<'_>) {
        if input.length.0 >= 4 * HOT_ZONE.0 {
            let load = Load { zone_bytes: Some(HOT_ZONE.0), ..Load::random_read(small, LADDER_OUTSTANDING) };
            self.add(input.point(load, 1));
        }
    }

    fn ladder(&mut self, size: Bytes, outstanding: usize, input: &PlanInput<'_>) {
        let like = input.usual.with(vec![Load::random_read(size, outstanding)], 1);
        for step in &input.steps {
            self.add(Task::Point(step.point(&like)));
        }
    }

    fn read_cost(&mut self, small: Bytes, input: &PlanInput<'_>) {
        for size in READ_COST_SIZES.into_iter().chain([small]) {
            self.add(input.point(Load::random_read(size, 1), 1));
        }
    }

    /// Measures each path alone, all at the same time, and as one volume.
    fn volume(&mut self, options: &Options, input: &PlanInput<'_>) {
        if input.paths < 2 {
            return;
        }
        for kind in volume_loads(options.size_small, options.size_large) {
            let on = |path| Load { path: Some(path), ..kind };
            for path in 0..input.paths {
                self.add(input.point(on(path), 1));
            }
            let together = (0..input.paths).map(on).collect();
            self.add(Task::Point(input.usual.with(together, input.paths)));
            let volume = Load { outstanding: kind.outstanding * input.paths, ..kind };
            self.add(input.point(volume, input.paths));
        }
    }

    fn durable(&mut self, input: &PlanInput<'_>, full: bool) {
        let Some(device) = input.device else { return };
        let sizes: &[u64] = if full { &[512, 4096, 16 << 10, 128 << 10, 1 << 20] } else { &[4096] };
        let methods: &[DurableMethod] = if full { &DurableMethod::ALL } else { &QUICK_DURABLE };
        for request_bytes in sizes.iter().copied() {
            for direct_io in [DirectIo::Required, DirectIo::Off] {
                for method in methods.iter().copied() {
                    let zeroed = DurablePoint { method, direct_io, request_bytes, space: LogSpace::Zeroed };
                    let allocated = DurablePoint { space: LogSpace::Allocated, ..zeroed };
                    let usual = method == DurableMethod::Fdatasync;
                    for (point, wanted) in
                        [(zeroed, true), (allocated, usual || full && request_bytes == 4096)]
                    {
                        match point.refusal(device) {
                            _ if !wanted => {}
                            None => self.add(Task::Durable(point)),
                            Some(why) => self.refused.push(RefusedTask { task: Task::Durable(point), why }),
                        }
                    }
                }
            }
        }
    }
}

/// Loads of one path when several are compared: small and large, reads and writes.
pub(crate) fn volume_loads(small: Bytes, large: Bytes) -> [Load; 4] {
    let random = Load::random_read(small, LADDER_OUTSTANDING);
    let scan = Load { pattern: Pattern::Sequential, ..Load::random_read(large, LARGE_OUTSTANDING) };
    let written = |load| Load { write_percent: 100, ..load };
    [random, written(random), scan, written(scan)]
}

/// Durable writes of a quick run.
const QUICK_DURABLE: [DurableMethod; 6] = [
    DurableMethod::None,
    DurableMethod::Fdatasync,
    DurableMethod::Fsync,
    DurableMethod::ODsync,
    DurableMethod::RwfDsync,
    DurableMethod::RingLinked,
];

/// Numbers of small requests outstanding in a matrix.
pub(crate) const SMALL_COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Numbers of large requests outstanding in a matrix.
pub(crate) const LARGE_COUNTS: [usize; 5] = [1, 2, 4, 8, 16];

/// Request sizes of the read cost curve, besides the small one.
pub(crate) const READ_COST_SIZES: [Bytes; 4] =
    [Bytes(64 * Bytes::K), Bytes(256 * Bytes::K), Bytes(512 * Bytes::K), Bytes(Bytes::M)];

impl PlanInput<'_> {
    fn point(&self, load: Load, threads: usize) -> Task {
        Task::Point(self.usual.with(vec![load], threads))
    }
}

/// Mix and order of a matrix's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MatrixKind {
    /// Number of writes per hundred requests.
    pub write_percent: u8,
    /// Order of the large requests; small ones are random.
    pub pattern: Pattern,
}

impl MatrixKind {
    pub(crate) const READS: MatrixKind = MatrixKind { write_percent: 0, pattern: Pattern::Random };

    /// Returns the requested kind in an advanced run, random reads in the others.
    pub(crate) fn of(options: &Options) -> MatrixKind {
        let Advanced { write_percent, large_pattern: pattern, .. } = options.advanced;
        if options.mode == Mode::Advanced { MatrixKind { write_percent, pattern } } else { MatrixKind::READS }
    }
}

/// Returns the loads of a matrix cell, small and large; each is omitted if its number is 0.
pub(crate) fn cell(sizes: (Bytes, Bytes), kind: MatrixKind, small: usize, large: usize) -> Vec<Load> {
    let loads = [(Pattern::Random, sizes.0, small), (kind.pattern, sizes.1, large)];
    let load = |(pattern, size, outstanding)| Load {
        pattern,
        write_percent: kind.write_percent,
        ..Load::random_read(size, outstanding)
    };
    loads.into_iter().filter(|(_, _, outstanding)| *outstanding > 0).map(load).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_io::MethodKind;

    fn plan(mode: Mode) -> TaskPlan {
        let options = Options::new(mode, 1, "today");
        let input = PlanInput {
            usual: Point::usual(options.size_small, MethodKind::IoUring, DirectIo::Required, Ring::default()),
            steps: STEPS.to_vec(),
            processors: 2,
            length: Bytes(2 * Bytes::G),
            paths: 1,
            device: None,
        };
        TaskPlan::of(&options, &input)
    }

    #[test]
    fn every_mode_but_advanced_measures_what_others_are_compared_by() {
        let common = plan(Mode::Quick).tasks;
        for mode in [Mode::Simple, Mode::Normal, Mode::Oltp, Mode::Dss] {
            let tasks = plan(mode).tasks;
            assert!(common[..4].iter().all(|task| tasks.contains(task)), "{mode}");
        }
    }

    #[test]
    fn no_task_stands_in_a_plan_twice() {
        for mode in Mode::ALL.iter().copied() {
            let tasks = plan(mode).tasks;
            for (index, task) in tasks.iter().enumerate() {
                assert!(!tasks[..index].contains(task), "{mode}: {task}");
            }
        }
    }

    #[test]
    fn times_fit_the_budget() {
        for mode in Mode::ALL.iter().copied() {
            let (plan, budget) = (plan(mode), mode.budget());
            let each = plan.task_time(budget);
            let all = (each.0 / 8 * 9 + OVERHEAD.0) * (plan.tasks.len() * REPEATS_MIN) as u64;
            assert!(all <= budget.0, "{mode}: {} tasks of {each} take {}", plan.tasks.len(), Nanos(all));
        }
    }

    #[test]
    fn the_quick_plan_reads_as_a_list() {
        let lines: Vec<String> = plan(Mode::Quick).tasks.iter().map(Task::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
