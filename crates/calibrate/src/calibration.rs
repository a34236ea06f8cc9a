//! A calibration: made by [`calibrate`], stored by its caller, compared later.

use crate::durable::Logs;
use crate::effort::EffortMeter;
use crate::environment::{device_name, disk_bytes, disk_model, file_system_id, kernel};
use crate::estimate::REPEATS_MIN;
use crate::evidence::DeviceMeter;
use crate::figures::Scheme;
use crate::file::{CalibrationFile, Filling, Flexible, Size, check_place, fitting_length};
use crate::home::Home;
use crate::ladder::{Step, ladder};
use crate::plan::{Kind, LADDER_OUTSTANDING, LARGE_OUTSTANDING, Terrain, usual_buffers};
use crate::rounds::{self, Clockwork, Rounds};
use crate::runner::Runner;
use crate::watch::Guard;
use crate::{
    Access, CalibrateError, Curve, Environment, Figure, FigureKind, Files, Load, Matrix, Mode, Options,
    Pattern, Plan, Point, Progress, ReadCost, RefusedTask, Ring, Rung, Setup, Source, TaskResult, Warning,
    Watch, Way, matrix, verdict,
};
use plumb_events::now;
use plumb_io::device::{DeviceDescription, DirectIoSupport, IoUringSupport, RingPart};
use plumb_io::{Disk, Method, MethodKind, RingSetup};
use plumb_units::{Bytes, Nanos, path_text};
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
    /// The order of the large requests of the matrix.
    #[serde(default = "random")]
    pub matrix_large_pattern: Pattern,
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
    /// Why processor cycles are not counted, where they are not.
    #[serde(default)]
    pub cycles_refused: Option<String>,
    /// What would have been measured, and why it was not.
    #[serde(default)]
    pub refused: Vec<RefusedTask>,
    /// Every task with every repeat: all of the above follows from them.
    pub tasks: Vec<TaskResult>,
}

/// The matrices of records from before this was chosen.
const fn random() -> Pattern {
    Pattern::Random
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
    let logs = Logs::create(&home, log_bytes, &guard)?;
    note_file(device, &file, size.wanted, &mut warnings);

    let access = if file.has_direct() { Access::Direct } else { Access::Buffered };
    let steps = Step::workable(device);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let durable_device = (!home.in_memory()).then_some(device);
    let terrain = Terrain {
        way,
        ring: usual_ring(device),
        steps: &steps,
        access,
        processors,
        length: file.length(),
        device: durable_device,
    };
    let plan = Plan::of(options, &terrain);
    let task_time = options.duration.unwrap_or_else(|| plan.task_time(deadline.saturating_sub(now())));
    let clockwork = Clockwork { begin, deadline, task_time };
    let effort = EffortMeter::start();
    let runner = Runner {
        home: &home,
        file: &file,
        logs: &logs,
        meter,
        effort: &effort,
        guard: &guard,
        seed: options.seed,
    };
    let mut rounds = rounds::run(&plan, &runner, meter, watch, clockwork)?;
    verdict::judge(&mut rounds.results, device);
    let mut calibration = assemble(device, options, &terrain, clockwork, rounds, warnings);
    calibration.refused = plan.refused;
    calibration.cycles_refused = effort.refusal().map(str::to_string);
    Ok(calibration)
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

/// The rings of an engine: the best that work.
fn usual_ring(device: &DeviceDescription) -> Ring {
    let deferred = device.io_uring.refusal(RingPart::Setup(RingSetup::Deferred)).is_none();
    Ring { setup: if deferred { Setup::Deferred } else { Setup::Plain }, files: Files::Ordinary }
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
    let alone = |bytes| alone(bytes, terrain.way, terrain.access, terrain.ring);
    let like = alone(options.size_small.0);
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
        let mut point = alone(bytes);
        point.loads.iter_mut().for_each(|load| load.outstanding = outstanding);
        ladder(results, &point, device, terrain.processors)
    };
    note_rounds(&rounds, &figures, &mut warnings);
    Calibration {
        schema_version: SCHEMA_VERSION,
        environment: environment(device, options, terrain),
        mode: options.mode,
        seed: options.seed,
        size_small: options.size_small.0,
        size_large: options.size_large.0,
        matrix_write_percent: Kind::advanced(options).write_percent,
        matrix_large_pattern: Kind::advanced(options).pattern,
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
        cycles_refused: None,
        refused: Vec::new(),
        tasks: rounds.results,
    }
}

/// A random read alone, by the usual method.
fn alone(request_bytes: u64, way: Way, access: Access, ring: Ring) -> Point {
    let load =
        Load { pattern: Pattern::Random, request_bytes, write_percent: 0, outstanding: 1, zone_bytes: None };
    Point { loads: vec![load], threads: 1, way, access, buffers: usual_buffers(way), ring }
}

fn environment(device: &DeviceDescription, options: &Options, terrain: &Terrain<'_>) -> Environment {
    Environment {
        device: device_name(device),
        disk_bytes: disk_bytes(device),
        file_system: device.mount.file_system.clone(),
        kernel: kernel(device),
        mount: Some(device.mount.mount_point.display().to_string()),
        file_system_id: Some(file_system_id(device)),
        disk_model: disk_model(device),
        path: path_text(&device.path),
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
    // A sync in a ring is a worker's by nature: only points count.
    let workers = |result: &&TaskResult| {
        result.point().is_some()
            && result.repeats.iter().any(|repeat| repeat.measurement.evidence.io_wq_workers > 0)
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
        Matrix::of(&self.tasks, &self.matrix_scheme())
    }

    pub(crate) fn matrix_scheme(&self) -> matrix::Scheme {
        matrix::Scheme {
            like: self.like(),
            sizes: (Bytes(self.size_small), Bytes(self.size_large)),
            kind: Kind { write_percent: self.matrix_write_percent, pattern: self.matrix_large_pattern },
        }
    }

    /// Whether a point was measured as most are, and not as a rung of a ladder.
    #[must_use]
    pub fn is_usual(&self, point: &Point) -> bool {
        let like = self.like();
        let asked = |of: &Point| (of.way, of.access, of.buffers, of.ring);
        asked(point) == asked(&like)
    }

    fn like(&self) -> Point {
        let way = self.environment.method.parse::<MethodKind>().map_or(Way::Sync, Way::from);
        let access = if self.environment.direct { Access::Direct } else { Access::Buffered };
        // A plan begins with requests by the usual rings.
        let ring = self.tasks.first().and_then(TaskResult::point).map_or(Ring::default(), |first| first.ring);
        alone(self.size_small, way, access, ring)
    }
}
