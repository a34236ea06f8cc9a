//! The plan: which tasks a mode runs, and how long each.
//!
//! Tasks are a set: a point that serves several purposes stands in it once.
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
//! A mode has a time budget and not a time per task: what is left after the file
//! is made is dealt out to all tasks alike, `REPEATS_MIN` times each, and a fifth
//! is kept for further repeats of what has not settled. Quick: 48 tasks,
//! (27 - 4) s * 0.8 / (48 * 3) = 128 ms each, 100 of them measured; normal: about 200
//! tasks, 0.7 s each.
//!
//! What cannot be measured here stands beside the tasks with the reason.

use crate::estimate::REPEATS_MIN;
use crate::ladder::Step;
use crate::{
    Access, Buffers, DurableMethod, DurablePoint, Load, Mode, Options, Pattern, Point, Ring, Space, Way,
};
use plumb_io::device::DeviceDescription;
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One thing to measure.
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

/// What a plan is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terrain<'a> {
    /// The method that all points but the ladder's use.
    pub way: Way,
    /// How its rings are made.
    pub ring: Ring,
    /// The rungs of the ladder that work here.
    pub steps: &'a [Step],
    /// How the file is reached.
    pub access: Access,
    /// Processors.
    pub processors: usize,
    /// The file's length.
    pub length: Bytes,
    /// What lies under it; `None` in memory, where nothing is durable.
    pub device: Option<&'a DeviceDescription>,
}

/// What a mode runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The tasks, each once.
    pub tasks: Vec<Task>,
    /// What the mode would run and this device cannot do.
    pub refused: Vec<RefusedTask>,
}

/// A task that cannot be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTask {
    /// What was to be measured.
    pub task: Task,
    /// Why it cannot be, and the cure where there is one.
    pub why: String,
}

/// What each task costs besides its measurement: threads, rings, buffers, the ramp.
const OVERHEAD: Nanos = Nanos(12_000_000);
const TASK_TIME_MIN: Nanos = Nanos(40_000_000);
const TASK_TIME_MAX: Nanos = Nanos(5_000_000_000);
/// What outstanding large requests a maximum is looked for at.
pub(crate) const LARGE_OUTSTANDING: usize = 8;
/// What outstanding small requests the methods are compared at.
pub(crate) const LADDER_OUTSTANDING: usize = 32;
/// The mix of a transaction system: 70 reads to 30 writes.
pub(crate) const MIXED_PERCENT: u8 = 30;
/// A part of the file that a cache in front of a disk holds if it holds anything.
const HOT_ZONE: Bytes = Bytes(32 * Bytes::M);

impl Plan {
    pub(crate) fn of(options: &Options, terrain: &Terrain<'_>) -> Plan {
        let mut plan = Plan { tasks: Vec::new(), refused: Vec::new() };
        let small = options.size_small.0;
        if options.mode == Mode::Advanced {
            for (small, large) in options.advanced.cells() {
                plan.cell(options, terrain, Kind::advanced(options), small, large);
            }
            return plan;
        }
        // These three are in every calibration, so that any two can be compared.
        plan.add(terrain.point(vec![load(Pattern::Random, small, 0, 1)], 1));
        plan.add(terrain.point(vec![load(Pattern::Random, small, 0, LADDER_OUTSTANDING)], 1));
        plan.large(options, terrain, Pattern::Sequential, 0);
        let full = options.mode != Mode::Quick;
        if matches!(options.mode, Mode::Quick | Mode::Simple | Mode::Oltp | Mode::Normal) {
            plan.curves(small, terrain, full);
        }
        if matches!(options.mode, Mode::Quick | Mode::Simple | Mode::Dss | Mode::Normal) {
            plan.large(options, terrain, Pattern::Random, 0);
            plan.large(options, terrain, Pattern::Sequential, 100);
            if full {
                plan.large(options, terrain, Pattern::Random, 100);
                plan.matrix(options, terrain, &[0], &LARGE_COUNTS);
            }
        }
        if options.mode == Mode::Normal {
            plan.matrix(options, terrain, &[0, 1, 2, 4, 8, 16, 32, 64, 128], &[0, 1, 2, 4, 8]);
        }
        plan.hot_zone(small, terrain);
        plan.ladder(small, LADDER_OUTSTANDING, terrain);
        if full {
            plan.ladder(options.size_large.0, LARGE_OUTSTANDING, terrain);
        }
        plan.read_cost(small, terrain);
        if matches!(options.mode, Mode::Quick | Mode::Oltp | Mode::Normal) {
            plan.durable(terrain, full);
        }
        plan
    }

    /// How long each task is measured when `time` is left for all of them.
    pub(crate) fn task_time(&self, time: Nanos) -> Nanos {
        let turns = (self.tasks.len() * REPEATS_MIN).max(1) as u64;
        // A ramp of an eighth comes on top of what is measured.
        let each = (time.0 / 5 * 4 / turns).saturating_sub(OVERHEAD.0) / 9 * 8;
        Nanos(each).clamp(TASK_TIME_MIN, TASK_TIME_MAX)
    }

    fn add(&mut self, task: Task) {
        if !self.tasks.contains(&task) {
            self.tasks.push(task);
        }
    }

    fn curves(&mut self, small: u64, terrain: &Terrain<'_>, full: bool) {
        let reads: &[usize] =
            if full { &[1, 2, 4, 8, 16, 32, 64, 128, 256] } else { &[1, 2, 4, 8, 16, 32, 64, 128] };
        let writes: &[usize] = if full { reads } else { &[1, 8, 32, 128] };
        let mixed: &[usize] = if full { reads } else { &[32] };
        for (percent, depths) in [(0, reads), (100, writes), (MIXED_PERCENT, mixed)] {
            for depth in depths {
                self.add(terrain.point(vec![load(Pattern::Random, small, percent, *depth)], 1));
            }
            if percent != MIXED_PERCENT || full {
                self.add(terrain.point(vec![load(Pattern::Random, small, percent, 128)], terrain.processors));
            }
        }
    }

    fn large(&mut self, options: &Options, terrain: &Terrain<'_>, pattern: Pattern, write_percent: u8) {
        let load = load(pattern, options.size_large.0, write_percent, LARGE_OUTSTANDING);
        self.add(terrain.point(vec![load], 1));
        self.add(terrain.point(vec![load], terrain.processors.min(LARGE_OUTSTANDING)));
    }

    fn matrix(&mut self, options: &Options, terrain: &Terrain<'_>, small: &[usize], large: &[usize]) {
        for large in large {
            for small in small {
                self.cell(options, terrain, Kind::READS, *small, *large);
            }
        }
    }

    fn cell(&mut self, options: &Options, terrain: &Terrain<'_>, kind: Kind, small: usize, large: usize) {
        let loads = cell((options.size_small, options.size_large), kind, small, large);
        if !loads.is_empty() {
            self.add(terrain.point(loads, 1));
        }
    }

    fn hot_zone(&mut self, small: u64, terrain: &Terrain<'_>) {
        if terrain.length.0 >= 4 * HOT_ZONE.0 {
            let mut load = load(Pattern::Random, small, 0, LADDER_OUTSTANDING);
            load.zone_bytes = Some(HOT_ZONE.0);
            self.add(terrain.point(vec![load], 1));
        }
    }

    fn ladder(&mut self, request_bytes: u64, outstanding: usize, terrain: &Terrain<'_>) {
        let like = terrain.like(vec![load(Pattern::Random, request_bytes, 0, outstanding)], 1);
        for step in terrain.steps {
            self.add(Task::Point(step.point(&like)));
        }
    }

    fn read_cost(&mut self, small: u64, terrain: &Terrain<'_>) {
        for bytes in READ_COST_BYTES.into_iter().chain([small]) {
            self.add(terrain.point(vec![load(Pattern::Random, bytes, 0, 1)], 1));
        }
    }

    fn durable(&mut self, terrain: &Terrain<'_>, full: bool) {
        let Some(device) = terrain.device else { return };
        let sizes: &[u64] = if full { &[512, 4096, 16 << 10, 128 << 10, 1 << 20] } else { &[4096] };
        let methods: &[DurableMethod] = if full { &DurableMethod::ALL } else { &QUICK_DURABLE };
        for request_bytes in sizes.iter().copied() {
            for access in [Access::Direct, Access::Buffered] {
                for method in methods.iter().copied() {
                    let zeroed = DurablePoint { method, access, request_bytes, space: Space::Zeroed };
                    let allocated = DurablePoint { space: Space::Allocated, ..zeroed };
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

/// The ways to a durable write that a quick run has time for.
const QUICK_DURABLE: [DurableMethod; 6] = [
    DurableMethod::None,
    DurableMethod::Fdatasync,
    DurableMethod::Fsync,
    DurableMethod::ODsync,
    DurableMethod::RwfDsync,
    DurableMethod::RingLinked,
];

/// Numbers of small requests outstanding that a matrix goes through.
pub(crate) const SMALL_COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Numbers of large requests outstanding.
pub(crate) const LARGE_COUNTS: [usize; 5] = [1, 2, 4, 8, 16];

/// The request sizes of the read cost curve, besides the small one.
pub(crate) const READ_COST_BYTES: [u64; 4] = [64 << 10, 256 << 10, 512 << 10, 1 << 20];

impl Terrain<'_> {
    fn point(&self, loads: Vec<Load>, threads: usize) -> Task {
        Task::Point(self.like(loads, threads))
    }

    fn like(&self, loads: Vec<Load>, threads: usize) -> Point {
        let Terrain { way, access, ring, .. } = *self;
        Point { loads, threads, way, access, buffers: usual_buffers(way), ring }
    }
}

/// Buffers are registered where there is something to register them with.
pub(crate) fn usual_buffers(way: Way) -> Buffers {
    if way == Way::IoUring { Buffers::Registered } else { Buffers::Ordinary }
}

fn load(pattern: Pattern, request_bytes: u64, write_percent: u8, outstanding: usize) -> Load {
    Load { pattern, request_bytes, write_percent, outstanding, zone_bytes: None }
}

/// What the requests of a matrix are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// How many in a hundred are writes.
    pub write_percent: u8,
    /// The order of the large ones; small ones are random.
    pub pattern: Pattern,
}

impl Kind {
    pub(crate) const READS: Kind = Kind { write_percent: 0, pattern: Pattern::Random };

    /// Those of the options: as asked for in an advanced run, random reads in the others.
    pub(crate) fn advanced(options: &Options) -> Kind {
        if options.mode != Mode::Advanced {
            return Kind::READS;
        }
        Kind { write_percent: options.advanced.write_percent, pattern: options.advanced.large_pattern }
    }
}

/// The loads of a cell of the matrix, small and large, without those of none.
pub(crate) fn cell(sizes: (Bytes, Bytes), kind: Kind, small: usize, large: usize) -> Vec<Load> {
    let (size_small, size_large) = sizes;
    let loads = [(Pattern::Random, size_small, small), (kind.pattern, size_large, large)];
    loads
        .into_iter()
        .filter(|(_, _, count)| *count > 0)
        .map(|(pattern, size, count)| load(pattern, size.0, kind.write_percent, count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ladder::STEPS;
    use crate::{Files, Setup};

    const TERRAIN: Terrain<'_> = Terrain {
        way: Way::IoUring,
        ring: Ring { setup: Setup::Deferred, files: Files::Ordinary },
        steps: &STEPS,
        access: Access::Direct,
        processors: 2,
        length: Bytes(2 * Bytes::G),
        device: None,
    };

    fn plan(mode: Mode) -> Plan {
        Plan::of(&Options::new(mode, 1, "today"), &TERRAIN)
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
        for mode in Mode::ALL {
            let tasks = plan(mode).tasks;
            for (index, task) in tasks.iter().enumerate() {
                assert!(!tasks[..index].contains(task), "{mode}: {task}");
            }
        }
    }

    #[test]
    fn times_fit_the_budget() {
        for mode in Mode::ALL {
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
