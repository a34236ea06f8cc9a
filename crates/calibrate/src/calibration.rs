//! A calibration: made by [`calibrate`], stored by its caller, compared later.

use crate::durable::Logs;
use crate::environment::{device_name, disk_bytes, kernel};
use crate::estimate::REPEATS_MIN;
use crate::evidence::DeviceMeter;
use crate::figures::Scheme;
use crate::file::{CalibrationFile, Filling, Flexible, Size, check_place, fitting_length};
use crate::home::Home;
use crate::ladder::ladder;
use crate::plan::{LADDER_OUTSTANDING, LARGE_OUTSTANDING, Terrain, usual_buffers};
use crate::rounds::{self, Clockwork, Rounds};
use crate::runner::Runner;
use crate::watch::Guard;
use crate::{
    Access, CalibrateError, Curve, Environment, Figure, FigureKind, Load, Matrix, Mode, Options, Pattern,
    Plan, Point, Progress, ReadCost, Rung, Source, TaskResult, Warning, Watch, Way, verdict,
};
use plumb_events::now;
use plumb_io::device::{DeviceDescription, DirectIoSupport, IoUringSupport};
use plumb_io::{Disk, Method, MethodKind};
use plumb_units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The version of the record; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// What a storage can do, and what that holds for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    // What was asked for.
    /// The record's version.
    pub schema_version: u32,
    /// What it holds for.
    pub environment: Environment,
    /// What was measured.
    pub mode: Mode,
    /// What orders, places and data follow from.
    pub seed: u64,
    /// The bytes of a small request.
    pub size_small: u64,
    /// The bytes of a large request.
    pub size_large: u64,
    /// How many in a hundred requests of the matrix are writes.
    pub matrix_write_percent: u8,
    /// The mean latency that rates are limited by.
    pub max_latency_ns: u64,

    // How it went.
    /// The length of the file.
    pub file_bytes: u64,
    /// How long each repeat was measured.
    pub task_time_ns: u64,
    /// How long it took in all.
    pub elapsed_ns: u64,

    // What it found.
    /// The main figures.
    pub figures: Vec<Figure>,
    /// The methods, with small requests.
    pub ladder_small: Vec<Rung>,
    /// The methods, with large requests; empty where they were not measured.
    pub ladder_large: Vec<Rung>,
    /// What a read costs.
    pub read_cost: Option<ReadCost>,
    /// Whether a durable write can have been durable.
    pub plausibility: Option<String>,
    /// What limits the meaning of all this.
    pub warnings: Vec<Warning>,
    /// Every task with every repeat: all of the above follows from them.
    pub tasks: Vec<TaskResult>,
}

/// Measures what lies under `device.path`, a directory, with a file of its own.
/// The file is removed before this returns, with an error or without.
///
/// # Errors
/// When the place will not do (no device, no space, no right to write), an option
/// is out of range, a request fails, or `watch` asks to stop.
pub fn calibrate(
    device: &DeviceDescription,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Calibration, CalibrateError> {
    check_place(device)?;
    calibrate_on(Disk::Kernel, device, &DeviceMeter::of(device), options, watch)
}

/// The same on any disk; one in memory is for tests, and has no logs.
pub(crate) fn calibrate_on(
    disk: Disk,
    device: &DeviceDescription,
    meter: &DeviceMeter,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Calibration, CalibrateError> {
    options.check()?;
    let (begin, guard) = (now(), Guard::new(watch));
    let deadline = begin + options.budget.unwrap_or(options.mode.budget());
    let mut warnings = Vec::new();
    let way = way(device, options, &mut warnings);
    let home = Home::create(disk, &device.path)?;
    let (size, log_bytes) = sizes(options, &home);
    let length = fitting_length(&device.path, device.space.free, size)?;
    let preparing = Progress {
        what: format!("writing a file of {}", length.as_setting()),
        done: 0,
        total: 0,
        elapsed: Nanos(0),
        left: deadline.saturating_sub(begin),
    };
    watch.progress(&preparing);
    let method = Method::start(way.kind(), FILL_OUTSTANDING)?;
    let time_max = Nanos(deadline.saturating_sub(begin).0 / FILL_PARTS);
    let filling = Filling { method: &method, seed: options.seed, time_max, guard: &guard };
    let file = CalibrationFile::create(&home, &device.direct_io, length, &filling)?;
    let logs = Logs::create(&home, log_bytes)?;
    note_file(device, &file, size.wanted, &mut warnings);

    let access = if file.has_direct() { Access::Direct } else { Access::Buffered };
    let ways = ways(device);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let durable_device = (!home.in_memory()).then_some(device);
    let terrain =
        Terrain { way, ways: &ways, access, processors, length: file.length(), device: durable_device };
    let plan = Plan::of(options, &terrain);
    let task_time = options.duration.unwrap_or_else(|| plan.task_time(deadline.saturating_sub(now())));
    let clockwork = Clockwork { begin, deadline, task_time };
    let runner = Runner { home: &home, file: &file, logs: &logs, meter, guard: &guard, seed: options.seed };
    let mut rounds = rounds::run(&plan, &runner, meter, watch, clockwork)?;
    verdict::judge(&mut rounds.results, device);
    Ok(assemble(device, options, &terrain, clockwork, rounds, warnings))
}

/// The file may take this part of the time.
const FILL_PARTS: u64 = 7;
/// Requests in flight while the file is filled.
const FILL_OUTSTANDING: usize = 8;

fn sizes(options: &Options, home: &Home) -> (Size, Bytes) {
    let log_bytes = match options.mode {
        _ if home.in_memory() => Bytes(0),
        Mode::Quick => Bytes(64 * Bytes::M),
        _ => Bytes(256 * Bytes::M),
    };
    let flexible = if options.file_size.is_some() { Flexible::No } else { Flexible::Yes };
    let wanted = options.file_size.unwrap_or(options.mode.file_bytes());
    // One log of zeros, and one that is allocated.
    (Size { wanted, flexible, beside: Bytes(2 * log_bytes.0) }, log_bytes)
}

fn ways(device: &DeviceDescription) -> Vec<Way> {
    let mut ways = vec![Way::Sync, Way::Threads];
    if matches!(device.io_uring, IoUringSupport::Yes { .. }) {
        ways.push(Way::IoUring);
    }
    ways
}

/// The method asked for, or the best that works.
fn way(device: &DeviceDescription, options: &Options, warnings: &mut Vec<Warning>) -> Way {
    match (options.method, &device.io_uring) {
        (Some(kind), _) => Way::from(kind),
        (None, IoUringSupport::Yes { .. }) => Way::IoUring,
        (None, IoUringSupport::No { why, cure }) => {
            let by = MethodKind::Threads.name().to_string();
            warnings.push(Warning::MethodReplaced { by, why: why.clone(), cure: cure.clone() });
            Way::Threads
        }
    }
}

fn note_file(device: &DeviceDescription, file: &CalibrationFile, wanted: Bytes, warnings: &mut Vec<Warning>) {
    if let DirectIoSupport::No { why } = &device.direct_io {
        warnings.push(Warning::NotDirect { why: why.clone() });
    }
    let made = file.length();
    if made < wanted {
        warnings.push(Warning::FileShort { wanted: wanted.0, made: made.0 });
    }
}

/// Derives the figures and puts all together.
fn assemble(
    device: &DeviceDescription,
    options: &Options,
    terrain: &Terrain<'_>,
    clockwork: Clockwork,
    rounds: Rounds,
    mut warnings: Vec<Warning>,
) -> Calibration {
    let results = &rounds.results;
    let like = alone(options.size_small.0, terrain.way, terrain.access);
    let read_cost = ReadCost::of(results, &like);
    let scheme = Scheme {
        results,
        like: &like,
        size_large: options.size_large.0,
        processors: terrain.processors,
        max_latency: options.max_latency,
        read_cost: read_cost.as_ref(),
    };
    let figures = scheme.figures();
    let rungs = |bytes, outstanding| {
        let mut point = alone(bytes, terrain.way, terrain.access);
        point.loads.iter_mut().for_each(|load| load.outstanding = outstanding);
        ladder(results, &point, device)
    };
    note_rounds(&rounds, &figures, &mut warnings);
    Calibration {
        schema_version: SCHEMA_VERSION,
        environment: environment(device, options, terrain),
        mode: options.mode,
        seed: options.seed,
        size_small: options.size_small.0,
        size_large: options.size_large.0,
        matrix_write_percent: if options.mode == Mode::Advanced { options.advanced.write_percent } else { 0 },
        max_latency_ns: options.max_latency.0,
        file_bytes: terrain.length.0,
        task_time_ns: clockwork.task_time.0,
        elapsed_ns: now().saturating_sub(clockwork.begin).0,
        ladder_small: rungs(options.size_small.0, LADDER_OUTSTANDING),
        ladder_large: rungs(options.size_large.0, LARGE_OUTSTANDING),
        plausibility: verdict::plausibility(results, device),
        figures,
        read_cost,
        warnings,
        tasks: rounds.results,
    }
}

/// A random read alone, by the usual method.
fn alone(request_bytes: u64, way: Way, access: Access) -> Point {
    let load =
        Load { pattern: Pattern::Random, request_bytes, write_percent: 0, outstanding: 1, zone_bytes: None };
    Point { loads: vec![load], threads: 1, way, access, buffers: usual_buffers(way) }
}

fn environment(device: &DeviceDescription, options: &Options, terrain: &Terrain<'_>) -> Environment {
    Environment {
        device: device_name(device),
        disk_bytes: disk_bytes(device),
        file_system: device.mount.file_system.clone(),
        kernel: kernel(device),
        path: device.path.display().to_string(),
        method: terrain.way.kind().name().to_string(),
        direct: terrain.access == Access::Direct,
        processors: terrain.processors,
        virtual_disk: device.virtualization.disk,
        date: options.date.clone(),
    }
}

fn note_rounds(rounds: &Rounds, figures: &[Figure], warnings: &mut Vec<Warning>) {
    let results = &rounds.results;
    // Buffered requests are read ahead and written later: more or less than asked for is no neighbour.
    let direct = |result: &&TaskResult| result.point().is_some_and(|point| point.access == Access::Direct);
    let rates: Vec<f64> =
        results.iter().filter(direct).filter_map(TaskResult::other_rate).map(|rate| rate.0).collect();
    if rounds.busy_rounds > 0 || !rates.is_empty() {
        warnings.push(Warning::OtherLoad {
            busy_rounds: rounds.busy_rounds,
            requests_per_second: rounds.other_load.unwrap_or(0.0),
            tasks: rates.len(),
            bytes_per_second: rates.iter().copied().fold(0.0, f64::max),
        });
    }
    let workers = |result: &&TaskResult| {
        result.repeats.iter().any(|repeat| repeat.measurement.evidence.io_wq_workers > 0)
    };
    let suspected = |result: &&TaskResult| {
        matches!(result.verdict.source, Source::PageCache | Source::HostCacheSuspected)
    };
    let few = |result: &&TaskResult| result.repeats.len() < REPEATS_MIN;
    let count = |which: &dyn Fn(&&TaskResult) -> bool| results.iter().filter(which).count();
    if count(&workers) > 0 {
        warnings.push(Warning::RingWorkers { tasks: count(&workers) });
    }
    if count(&few) > 0 {
        warnings.push(Warning::TimeRanOut { tasks: count(&few) });
    }
    let unsettled = figures.iter().filter_map(|figure| {
        Some(format!("{} ({})", figure.kind.name().trim_start(), figure.estimate.reason.as_ref()?))
    });
    let unsettled: Vec<String> = unsettled.collect();
    if !unsettled.is_empty() {
        warnings.push(Warning::NotSettled { figures: unsettled });
    }
    if let Some(first) = results.iter().find(suspected) {
        let example = format!("{}: {}", first.task, first.verdict);
        warnings.push(Warning::Cached { tasks: count(&suspected), example });
    }
}

impl Calibration {
    /// Whether it holds for a device; [`Environment::differences`] says why not.
    #[must_use]
    pub fn matches(&self, device: &DeviceDescription) -> bool {
        self.schema_version == SCHEMA_VERSION && self.environment.differences(device).is_empty()
    }

    /// A main figure, if it was measured.
    #[must_use]
    pub fn figure(&self, kind: FigureKind) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.kind == kind)
    }

    /// A value as a share of a main figure: 0.81 of the sequential read.
    #[must_use]
    pub fn share(&self, kind: FigureKind, value: f64) -> Option<f64> {
        let limit = self.figure(kind)?.estimate.median;
        (limit > 0.0).then(|| value / limit)
    }

    /// The curve of small random requests of a mix; empty if it was not measured.
    #[must_use]
    pub fn curve(&self, write_percent: u8) -> Curve {
        Curve::of(&self.tasks, &self.like(), write_percent)
    }

    /// The matrix of small and large requests.
    #[must_use]
    pub fn matrix(&self) -> Matrix {
        let sizes = (Bytes(self.size_small), Bytes(self.size_large));
        Matrix::of(&self.tasks, &self.like(), sizes, self.matrix_write_percent)
    }

    fn like(&self) -> Point {
        let way = self.environment.method.parse::<MethodKind>().map_or(Way::Sync, Way::from);
        let access = if self.environment.direct { Access::Direct } else { Access::Buffered };
        alone(self.size_small, way, access)
    }
}
