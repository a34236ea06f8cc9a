//! Steps of a calibration: file, plan, rounds, figures, record.

use crate::analysis::{FigureSearch, answer, ladder};
use crate::files::{
    Content, DataFile, Filling, Flexible, Logs, ScratchDirectory, Size, Volume, check_place, check_volume,
    fitting_length,
};
use crate::load::TaskRunner;
use crate::load::schedule::{self, Rounds, TimeBudget};
use crate::load::sustain;
use crate::measure::{CpuMeter, DeviceMeter};
use crate::plan::{LADDER_OUTSTANDING, LARGE_OUTSTANDING, MatrixKind, PlanInput, REPEATS_MIN, Step};
use crate::progress::StopCheck;
use crate::{
    AnswerSource, CalibrateError, Calibration, DeviceEnvironment, Load, MainFigure, Mode, Options, Point,
    Progress, ProgressObserver, ReadCost, Ring, SCHEMA_VERSION, TaskPlan, TaskResult, VolumeRecord, Warning,
};
use plumb_events::now;
use plumb_host::device::{DeviceDescription, DirectIoSupport, IoUringSupport, RingPart, RingSetup};
use plumb_io::{DirectIo, Disk, IoError, Method, MethodKind};
use plumb_units::{Bytes, Nanos};

/// Measures the device under the directory `path` of each description, with a file of its own
/// there. The files of several paths form one volume, as the options lay it out; the logs lie
/// on the first path. All files are removed before this returns, with or without an error.
/// Fails if a place has no device, no space or no permission to write. Also if an option is out
/// of range, a request fails, or `observer` cancels. Panics if `devices` is empty, because
/// there is then nothing to describe.
pub fn calibrate(
    devices: &[DeviceDescription],
    options: &Options,
    observer: &dyn ProgressObserver,
) -> Result<Calibration, CalibrateError> {
    devices.iter().try_for_each(check_place)?;
    calibrate_on(&Disk::Kernel, devices, &DeviceMeter::of(devices), options, observer)
}

/// Calibrates any disk; a disk in memory is for tests, and has no logs.
pub(crate) fn calibrate_on(
    disk: &Disk,
    devices: &[DeviceDescription],
    meter: &DeviceMeter,
    options: &Options,
    observer: &dyn ProgressObserver,
) -> Result<Calibration, CalibrateError> {
    options.check()?;
    check_volume(options)?;
    let (begin, stop) = (now(), StopCheck::new(observer));
    let deadline = begin + options.budget.unwrap_or(options.mode.budget());
    let mut warnings = Vec::new();
    // What the first device supports is what all points ask for.
    let device = &with_rings_that_can_be_had(&devices[0], options);
    let method = usual_method(device, options, &mut warnings);
    let scratches = devices
        .iter()
        .map(|device| ScratchDirectory::create(disk.clone(), &device.path))
        .collect::<Result<Vec<_>, _>>()?;
    let scratch = &scratches[0];
    let (size, log_bytes) = sizes(options, scratch);
    let filling = VolumeFilling { devices, scratches: &scratches, size, method, deadline, stop: &stop };
    let volume = filling.volume(options, observer)?;
    let logs = Logs::create(scratch, log_bytes, options.max_rate, &stop)?;
    note_volume(devices, &volume, size.wanted, &mut warnings);

    let direct_io = if volume.has_direct() { DirectIo::Required } else { DirectIo::Off };
    let input = PlanInput {
        usual: Point::usual(options.size_small, method, direct_io, usual_ring(device)),
        steps: Step::workable(device),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        length: volume.length(None),
        paths: volume.paths(),
        device: (!scratch.in_memory()).then_some(device),
    };
    let plan = TaskPlan::of(options, &input);
    let task_time = options.duration.unwrap_or_else(|| plan.task_time(deadline.saturating_sub(now())));
    let time = TimeBudget { begin, deadline, task_time };
    let (cpu, seed, max_rate) = (CpuMeter::start(), options.seed, options.max_rate);
    let (volume, logs) = (&volume, &logs);
    let runner = TaskRunner { scratch, volume, logs, meter, cpu: &cpu, stop: &stop, seed, max_rate };
    let mut rounds = schedule::run(&plan, &runner, observer, time)?;
    answer::judge(&mut rounds.results, device);
    // After the rounds: flash that has been written for minutes is another device.
    let writes = Load { write_percent: 100, ..Load::random_read(options.size_small, LADDER_OUTSTANDING) };
    let point = input.usual.with(vec![writes], 1);
    let sustained = options.sustain.map(|time| sustain::run(&runner, point, time, observer)).transpose()?;
    let mut calibration = assemble(device, options, &input, time, rounds, warnings);
    calibration.volume = VolumeRecord::of(devices, volume, options);
    calibration.sustained = sustained;
    calibration.refused = plan.refused;
    calibration.cycles_refused = cpu.refusal().map(str::to_string);
    Ok(calibration)
}

/// Requests outstanding at the deepest points.
const OUTSTANDING_MAX: usize = 256;
/// Divisor of the budget that limits the time of filling the file.
const FILL_PARTS: u64 = 7;
/// Requests in flight while the file is filled.
const FILL_OUTSTANDING: usize = 8;

fn sizes(options: &Options, scratch: &ScratchDirectory) -> (Size, Bytes) {
    let log_bytes = match options.mode {
        // An advanced run measures no durable writes.
        _ if scratch.in_memory() || options.mode == Mode::Advanced => Bytes(0),
        Mode::Quick => Bytes(64 * Bytes::M),
        _ => Bytes(256 * Bytes::M),
    };
    let flexible = if options.file_size.is_some() { Flexible::No } else { Flexible::Yes };
    let wanted = options.file_size.unwrap_or(options.mode.file_bytes());
    // One log of zeros, and one that is allocated.
    (Size { wanted, flexible, beside: Bytes(2 * log_bytes.0) }, log_bytes)
}

/// Returns the best rings that work, as the engine uses them.
fn usual_ring(device: &DeviceDescription) -> Ring {
    let deferred = device.io_uring.refusal(RingPart::Setup(RingSetup::Deferred)).is_none();
    Ring { setup: if deferred { RingSetup::Deferred } else { RingSetup::Plain }, ..Ring::default() }
}

/// Returns the requested method, or the best that works.
fn usual_method(device: &DeviceDescription, options: &Options, warnings: &mut Vec<Warning>) -> MethodKind {
    match (options.method, &device.io_uring) {
        (Some(kind), _) => kind,
        (None, IoUringSupport::Yes { .. }) => MethodKind::IoUring,
        (None, IoUringSupport::No { why, cure }) => {
            let by = MethodKind::Threads.name().to_string();
            warnings.push(Warning::MethodReplaced { by, why: why.clone(), cure: cure.clone() });
            MethodKind::Threads
        }
    }
}

/// Returns the device without io_uring if a limit of the process prevents the rings of its
/// deepest points. Otherwise a point would fail during the calibration. Requested rings are
/// tried when they are due.
fn with_rings_that_can_be_had(device: &DeviceDescription, options: &Options) -> DeviceDescription {
    let mut device = device.clone();
    let rings = || {
        let method = Method::start_ring(Ring::default().setup, OUTSTANDING_MAX)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).map(|_| method.channel(&[])).collect::<Result<Vec<_>, _>>()
    };
    if matches!(device.io_uring, IoUringSupport::Yes { .. })
        && options.method.is_none()
        && let Err(IoError::MethodUnsupported { why, cure, .. }) = rings()
    {
        device.io_uring = IoUringSupport::No { why, cure };
    }
    device
}

/// Paths and options of a volume whose files are to be made.
struct VolumeFilling<'a> {
    devices: &'a [DeviceDescription],
    scratches: &'a [ScratchDirectory],
    size: Size,
    method: MethodKind,
    deadline: Nanos,
    stop: &'a StopCheck<'a>,
}

impl VolumeFilling<'_> {
    /// Makes a file on each path, one after the other.
    fn volume(&self, options: &Options, observer: &dyn ProgressObserver) -> Result<Volume, CalibrateError> {
        let fill_method = Method::start(self.method, FILL_OUTSTANDING)?;
        let paths = self.devices.len() as u64;
        let left = || self.deadline.saturating_sub(now());
        let filling = Filling {
            method: &fill_method,
            content: Content::Random(options.seed),
            time_max: Nanos(left().0 / (FILL_PARTS * paths)),
            max_rate: options.max_rate,
            stop: self.stop,
        };
        let mut files = Vec::new();
        for (index, (device, scratch)) in self.devices.iter().zip(self.scratches).enumerate() {
            // Only the first path has logs, too.
            let beside = if index == 0 { self.size.beside } else { Bytes(0) };
            let size = Size { beside, ..self.size };
            let length = fitting_length(&device.path, device.space.free, size)?;
            observer.progress(&Progress {
                what: format!("writing a file of {}", length.as_setting()),
                done: 0,
                total: 0,
                elapsed: Nanos(0),
                left: left(),
            });
            files.push(DataFile::create(scratch, &device.direct_io, length, &filling)?);
        }
        Ok(Volume::of(files, options))
    }
}

fn note_volume(devices: &[DeviceDescription], volume: &Volume, wanted: Bytes, warnings: &mut Vec<Warning>) {
    let mut disks: Vec<(&str, usize)> = Vec::new();
    for (path, device) in devices.iter().enumerate() {
        if let DirectIoSupport::No { why } = &device.direct_io {
            warnings.push(Warning::NotDirect { why: why.clone() });
        }
        let made = volume.length(Some(path));
        if made < wanted {
            warnings.push(Warning::FileShort { wanted: wanted.0, made: made.0 });
        }
        let Some(block) = &device.block else { continue };
        if let Some((disk, first)) = disks.iter().find(|(disk, _)| *disk == block.disk) {
            let paths = [devices[*first].path.as_path(), device.path.as_path()].map(plumb_units::path_text);
            warnings.push(Warning::SameDisk { disk: (*disk).to_string(), paths });
        }
        disks.push((&block.disk, path));
    }
}

/// Derives the figures and builds the record.
fn assemble(
    device: &DeviceDescription,
    options: &Options,
    input: &PlanInput<'_>,
    time: TimeBudget,
    rounds: Rounds,
    mut warnings: Vec<Warning>,
) -> Calibration {
    let results = &rounds.results;
    let read_cost = ReadCost::of(results, &input.usual);
    let search = FigureSearch {
        results,
        like: &input.usual,
        size_large: options.size_large,
        processors: input.processors,
        max_latency: options.max_latency,
        read_cost: read_cost.as_ref(),
    };
    let figures = search.figures();
    let rungs = |size: Bytes, outstanding| {
        let point = input.usual.with(vec![Load::random_read(size, outstanding)], 1);
        ladder(results, &point, device, input.processors)
    };
    note_rounds(&rounds, &figures, &mut warnings);
    let kind = MatrixKind::of(options);
    Calibration {
        schema_version: SCHEMA_VERSION,
        environment: DeviceEnvironment::of(device, &input.usual, input.processors, options.date.clone()),
        mode: options.mode,
        seed: options.seed,
        size_small: options.size_small.0,
        size_large: options.size_large.0,
        matrix_write_percent: kind.write_percent,
        matrix_large_pattern: kind.pattern,
        max_latency_ns: options.max_latency.0,
        volume: None,
        sustained: None,
        max_rate: options.max_rate,
        link_bytes_per_second: options.link.map(|link| link.0),
        file_bytes: input.length.0,
        task_time_ns: time.task_time.0,
        elapsed_ns: now().saturating_sub(time.begin).0,
        ladder_small: rungs(options.size_small, LADDER_OUTSTANDING),
        ladder_large: rungs(options.size_large, LARGE_OUTSTANDING),
        plausibility: answer::plausibility(results, device),
        figures,
        read_cost,
        warnings,
        cycles_refused: None,
        refused: Vec::new(),
        tasks: rounds.results,
    }
}

fn note_rounds(rounds: &Rounds, figures: &[MainFigure], warnings: &mut Vec<Warning>) {
    let results = &rounds.results;
    // Buffered requests are read ahead and written later, so other bytes are no sign of another
    // process.
    let direct =
        |result: &&TaskResult| result.point().is_some_and(|point| point.direct_io == DirectIo::Required);
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
    // Syncs in a ring always use a worker, so only points count.
    let workers = |result: &&TaskResult| {
        result.point().is_some()
            && result.repeats.iter().any(|repeat| repeat.measurement.evidence.io_wq_workers > 0)
    };
    let suspected = |result: &&TaskResult| {
        matches!(result.answer.source, AnswerSource::PageCache | AnswerSource::HostCacheSuspected)
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
        let example = format!("{}: {}", first.task, first.answer);
        warnings.push(Warning::Cached { tasks: count(&suspected), example });
    }
}
