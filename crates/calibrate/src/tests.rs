//! Whole calibrations: on files in memory, and shortly on a real file.

use crate::calibrate::calibrate_on;
use crate::fixture::place;
use crate::measure::DeviceMeter;
use crate::{
    Advanced, Agreement, AnswerSource, CalibrateError, Calibration, Cells, DurableMethod, FigureKind, Mode,
    Options, Progress, ProgressObserver, RungState, Task, VolumeLayout, Warning, calibrate, csv, leftovers,
};
use plumb_events::{Event, IoStream, Recorder, Role};
use plumb_host::device::{DirectIoSupport, IoUringSupport};
use plumb_io::sim::{Faults, MemoryDisk};
use plumb_io::{Arena, DirectIo, Disk, Method, MethodKind, Operation, Request};
use plumb_units::{Bytes, Nanos};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Options for a run of about a second, with enough time on a busy machine.
fn short(mode: Mode) -> Options {
    Options {
        file_size: Some(Bytes(64 * Bytes::M)),
        budget: Some(Nanos(60_000_000_000)),
        duration: Some(Nanos(15_000_000)),
        advanced: Advanced {
            cells: Cells::Max,
            num_small: Some(2),
            num_large: Some(1),
            ..Options::new(mode, 42, "").advanced
        },
        ..Options::new(mode, 42, "2026-01-02")
    }
}

fn in_memory(
    disk: &Arc<MemoryDisk>,
    options: &Options,
    watch: &dyn ProgressObserver,
) -> Result<Calibration, CalibrateError> {
    let (_directory, mut device) = place();
    device.direct_io = DirectIoSupport::No { why: "files are in memory".to_string() };
    let options = Options { method: Some(MethodKind::Sync), ..options.clone() };
    calibrate_on(&Disk::Memory(Arc::clone(disk)), &[device], &DeviceMeter::none(), &options, watch)
}

#[test]
fn a_calibration_in_memory_measures_every_cell() {
    let disk = MemoryDisk::new();
    let calibration = in_memory(&disk, &short(Mode::Advanced), &()).expect("a calibration");
    assert!(disk.paths().is_empty(), "the file is removed");
    let matrix = calibration.matrix();
    assert_eq!((matrix.small.as_slice(), matrix.large.as_slice()), (&[0, 1, 2][..], &[0, 1][..]));
    assert_eq!(matrix.cells.len(), 5);
    for cell in &matrix.cells {
        assert_eq!(cell.iops.is_some(), cell.small > 0);
        assert_eq!(cell.mb_per_second.is_some(), cell.large > 0);
    }
    assert!(csv::iops(&matrix).starts_with("Large/Small, 1, 2\n0, "));
    assert!(calibration.tasks.iter().all(|result| result.answer.source == AnswerSource::Unknown));
    for result in &calibration.tasks {
        assert!(result.repeats.len() >= 3, "{}", result.task);
        for repeat in &result.repeats {
            assert!(repeat.measurement.loads.iter().all(|load| load.requests() == load.latency.count()));
        }
    }
}

#[test]
fn a_record_survives_being_stored() {
    let calibration = in_memory(&MemoryDisk::new(), &short(Mode::Advanced), &()).expect("a calibration");
    let text = serde_json::to_string(&calibration).expect("plain data");
    let back: Calibration = serde_json::from_str(&text).expect("its own form");
    assert_eq!(back.tasks, calibration.tasks);
    assert_eq!(back.environment, calibration.environment);
    let agreement = back.agreement(&calibration);
    assert_eq!(agreement.len(), calibration.figures.len());
    // A start of zero has no ratio.
    let none = |agreement: &Agreement| agreement.ratio.is_nan() && agreement.kind == FigureKind::ReadStart;
    assert!(agreement.iter().all(|agreement| agreement.agrees || none(agreement)), "{agreement:?}");
}

#[test]
fn the_order_of_tasks_depends_on_seed_and_round() {
    let order = |seed| {
        let options = Options { seed, ..short(Mode::Advanced) };
        let calibration = in_memory(&MemoryDisk::new(), &options, &()).expect("a calibration");
        let mut turns: Vec<(usize, usize)> = Vec::new();
        for (index, result) in calibration.tasks.iter().enumerate() {
            turns.extend(result.repeats.iter().take(3).map(|repeat| (repeat.order, index)));
        }
        turns.sort_unstable();
        turns.into_iter().map(|(_, index)| index).take(15).collect::<Vec<usize>>()
    };
    let first = order(1);
    assert_eq!(first, order(1));
    assert_ne!(first, order(2));
    assert_ne!(first[..5], first[5..10]);
}

#[test]
fn a_failed_request_ends_the_calibration_by_name() {
    let disk = MemoryDisk::new();
    disk.plan_faults(Faults { fail_read: Some(1000), ..Faults::default() });
    let error = in_memory(&disk, &short(Mode::Advanced), &()).expect_err("a read fails");
    assert!(error.to_string().starts_with("read of "), "{error}");
    assert!(disk.paths().is_empty());
    disk.plan_faults(Faults { capacity: Some(32 << 20), ..Faults::default() });
    let error = in_memory(&disk, &short(Mode::Advanced), &()).expect_err("the disk is full");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(disk.paths().is_empty());
}

/// Cancels after this number of checks.
struct Impatient(AtomicUsize);

impl ProgressObserver for Impatient {
    fn progress(&self, progress: &Progress) {
        assert!(progress.done <= progress.total);
    }

    fn cancelled(&self) -> bool {
        self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn whoever_asks_to_stop_finds_no_file_left() {
    // The fill checks 64 times, once per request; then each task checks before it starts.
    for looks in [0, 10, 64, 66] {
        let (directory, device) = place();
        let watch = Impatient(AtomicUsize::new(looks));
        let stopped = calibrate(std::slice::from_ref(&device), &short(Mode::Advanced), &watch);
        assert!(matches!(stopped, Err(CalibrateError::Cancelled)), "not stopped at look {looks}");
        assert!(leftovers(directory.path()).is_empty());
    }
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let (_directory, device) = place();
    let options = Options { size_small: Bytes(3000), ..short(Mode::Quick) };
    let error = calibrate(std::slice::from_ref(&device), &options, &()).expect_err("no power of two");
    assert_eq!(error.to_string(), "size_small = 3000 is not possible: a power of two from 512 to 16M");
    let options = Options { file_size: Some(Bytes(1 << 20)), ..short(Mode::Quick) };
    let error = calibrate(std::slice::from_ref(&device), &options, &()).expect_err("too small");
    assert_eq!(error.to_string(), "file_size = 1M is not possible: at least 16M (16 large requests)");
    let options = Options { file_size: Some(Bytes(1 << 60)), ..short(Mode::Quick) };
    let error = calibrate(std::slice::from_ref(&device), &options, &()).expect_err("too large");
    assert!(matches!(error, CalibrateError::NotEnoughSpace { .. }), "{error}");
}

#[test]
fn threads_replace_a_missing_io_uring() {
    let (_directory, mut device) = place();
    device.io_uring = IoUringSupport::No { why: "forbidden".to_string(), cure: "allow it".to_string() };
    let options = Options { duration: Some(Nanos(2_000_000)), ..short(Mode::Quick) };
    let calibration = calibrate(std::slice::from_ref(&device), &options, &()).expect("a calibration");
    assert_eq!(calibration.environment.method, MethodKind::Threads);
    let warned =
        |warning: &Warning| matches!(warning, Warning::MethodReplaced { cure, .. } if cure == "allow it");
    assert!(calibration.warnings.iter().any(warned), "{:?}", calibration.warnings);
    let refused = |state: &RungState| matches!(state, RungState::Refused { cure, .. } if cure == "allow it");
    let rungs: Vec<&str> = calibration
        .ladder_small
        .iter()
        .filter(|rung| !refused(&rung.state))
        .map(|rung| rung.name.as_str())
        .collect();
    assert_eq!(rungs, ["sync", "threads"]);
    let by_ring =
        |task: &Task| matches!(task, Task::Durable(point) if point.method == DurableMethod::RingLinked);
    assert!(!calibration.tasks.iter().any(|result| by_ring(&result.task)));
    let said = calibration.refused.iter().find(|refused| by_ring(&refused.task)).expect("a refusal");
    assert_eq!(said.why, "no io_uring: forbidden; allow it");
}

/// Reads a file of its own past the page cache until `stop` is set.
fn disturb(directory: &Path, stop: &AtomicBool) {
    let path = directory.join("neighbour");
    std::fs::write(&path, vec![1u8; 8 << 20]).expect("a file");
    let file = Disk::Kernel.open(&path, plumb_io::OpenMode::Write, DirectIo::Required).expect("the file");
    file.sync_data().expect("durable");
    let file = Arc::new(file);
    let recorder = Recorder::new();
    let session = recorder.session(Role::User);
    let mut channel = Method::start(MethodKind::Sync, 1).expect("a method").channel(&[]).expect("a channel");
    let (_arena, mut buffers) = Arena::buffers(1 << 20, 1).expect("memory");
    let mut place = 0;
    while !stop.load(Relaxed) {
        let buffer = buffers.pop().expect("a buffer");
        let request = Request {
            operation: Operation::Read,
            file: Arc::clone(&file),
            offset: (place % 8) << 20,
            range: 0..buffer.len(),
            buffer,
            event: Event::DirectPathRead,
            stream: IoStream::TableReads,
            tag: 0,
        };
        channel.submit(&session, request).expect("a request");
        buffers.push(channel.wait(&session, Event::DirectPathRead).expect("a read").buffer);
        place += 1;
    }
}

#[test]
fn a_device_that_somebody_else_uses_is_marked() {
    let (directory, device) = place();
    if device.block.is_none() || matches!(device.direct_io, DirectIoSupport::No { .. }) {
        println!("skipped: no statistics name the device, or nothing reaches it past the page cache");
        return;
    }
    let stop = AtomicBool::new(false);
    let calibration = std::thread::scope(|scope| {
        scope.spawn(|| disturb(directory.path(), &stop));
        let calibration = calibrate(std::slice::from_ref(&device), &short(Mode::Advanced), &());
        stop.store(true, Relaxed);
        calibration.expect("a calibration")
    });
    let marked = calibration.warnings.iter().find_map(|warning| match warning {
        Warning::OtherLoad { busy_rounds, tasks, .. } => Some((*busy_rounds, *tasks)),
        _ => None,
    });
    let (busy_rounds, tasks) = marked.expect("another load");
    assert!(busy_rounds > 0, "seen before the rounds");
    assert!(tasks > 0, "seen during the tasks");
    let beside =
        calibration.tasks.iter().filter_map(|task| task.iops(0)).filter_map(|estimate| estimate.reason);
    assert!(
        beside.into_iter().any(|reason| reason.contains("another load")),
        "and no figure of them has settled"
    );
    assert!(leftovers(directory.path()).is_empty());
}

/// The first version lacks the choice of rings.
#[test]
fn a_record_of_an_earlier_version_is_read() {
    let calibration = in_memory(&MemoryDisk::new(), &short(Mode::Advanced), &()).expect("a calibration");
    let mut record = serde_json::to_value(&calibration).expect("plain data");
    record["schema_version"] = 1.into();
    for key in ["matrix_large_pattern", "cycles_refused", "refused"] {
        record.as_object_mut().expect("an object").remove(key).expect("a field");
    }
    for task in record["tasks"].as_array_mut().expect("tasks") {
        let point = task["task"]["point"].as_object_mut().expect("a point");
        point.remove("ring").expect("a field");
        for (now, then) in [("method", "way"), ("direct_io", "access")] {
            let value = point.remove(now).expect("a field");
            point.insert(then.to_string(), value);
        }
        let answer = task.as_object_mut().expect("a task").remove("answer").expect("a field");
        task["verdict"] = answer;
        for repeat in task["repeats"].as_array_mut().expect("repeats") {
            let measurement = repeat["measurement"].as_object_mut().expect("a measurement");
            measurement.remove("cycles").expect("a field");
            let evidence = measurement["evidence"].as_object_mut().expect("evidence");
            evidence.remove("ring_fixed_file_requests").expect("a field");
        }
    }
    let back = Calibration::from_json(&record.to_string()).expect("an earlier record");
    assert_eq!(back.matrix(), calibration.matrix());
    assert_eq!(back.tasks[0].answer, calibration.tasks[0].answer);
}

#[test]
fn a_record_of_a_later_version_is_rejected() {
    let check = |text: &str, expected: &str| {
        let error = Calibration::from_json(text).expect_err("refused").to_string();
        assert_eq!(
            error,
            format!("not a calibration that this program reads ({expected}): use the release that wrote it")
        );
    };
    check("{\"schema_version\": 3}", "schema_version 3, this program reads 1 to 2");
    check("{}", "schema_version 0, this program reads 1 to 2");
}

#[test]
fn a_short_quick_run_gives_the_main_figures() {
    let (directory, device) = place();
    let calibration =
        calibrate(std::slice::from_ref(&device), &short(Mode::Quick), &()).expect("a calibration");
    assert!(leftovers(directory.path()).is_empty());
    assert!(calibration.matches(&device));
    for kind in FigureKind::ALL
        .iter()
        .filter(|kind| !matches!(kind, FigureKind::RandomWrite | FigureKind::RandomWriteAll))
    {
        let figure = calibration.figure(*kind);
        assert!(figure.is_some_and(|figure| figure.estimate.median > 0.0), "{}", kind.name());
    }
    let mut elsewhere = device.clone();
    elsewhere.mount.file_system = "xfs".to_string();
    assert!(!calibration.matches(&elsewhere));
}

#[test]
fn several_paths_are_measured_alone_together_and_as_one_volume() {
    let (_directory, mut first) = place();
    first.direct_io = DirectIoSupport::No { why: "files are in memory".to_string() };
    let mut second = first.clone();
    second.path = first.path.join("second");
    let options = Options {
        method: Some(MethodKind::Sync),
        duration: Some(Nanos(2_000_000)),
        layout: VolumeLayout::Raid0,
        ..short(Mode::Quick)
    };
    let disk = MemoryDisk::new();
    let devices = [first, second];
    let made = calibrate_on(&Disk::Memory(Arc::clone(&disk)), &devices, &DeviceMeter::none(), &options, &());
    let calibration = made.expect("a calibration");
    assert!(disk.paths().is_empty(), "both files are removed");
    let volume = calibration.volume.as_ref().expect("several paths");
    assert_eq!(volume.layout, VolumeLayout::Raid0);
    assert_eq!(volume.paths.iter().map(|path| path.bytes).collect::<Vec<_>>(), [64 << 20; 2]);
    assert_eq!(calibration.file_bytes, 128 << 20);
    let rates = calibration.volume_rates();
    let units: Vec<&str> = rates.iter().map(|rate| rate.unit).collect();
    assert_eq!(units, ["IOPS", "IOPS", "MB/s", "MB/s"]);
    for rate in &rates {
        assert_eq!(rate.alone.len(), 2);
        assert!(rate.alone.iter().all(|alone| alone.median > 0.0), "{}", rate.load);
        assert!(rate.share.median > 0.0 && rate.volume_share.median > 0.0, "{}", rate.load);
    }
    assert_eq!(
        calibration.warnings.iter().filter(|warning| matches!(warning, Warning::SameDisk { .. })).count(),
        usize::from(devices[0].block.is_some())
    );
    let text = serde_json::to_string(&calibration).expect("plain data");
    assert_eq!(Calibration::from_json(&text).expect("its own form").volume, calibration.volume);
}
