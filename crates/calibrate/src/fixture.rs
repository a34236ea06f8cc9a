//! Synthetic results, so that analysis can be tested without a disk.

use crate::files::{Content, DataFile, Filling, ScratchDirectory};
use crate::measure::Traffic;
use crate::progress::StopCheck;
use crate::{
    Calibration, DeviceEnvironment, DeviceEvidence, Estimate, FigureKind, LoadMeasurement, MainFigure,
    Measurement, Mode, Pattern, ReadCost, Repeat, Rung, RungState, SCHEMA_VERSION, Task, TaskResult, Warning,
};
use plumb_events::LatencyHistogram;
use plumb_host::device::{DeviceDescription, DirectIoSupport};
use plumb_io::sim::MemoryDisk;
use plumb_io::{Disk, Method, MethodKind};
use plumb_units::{Bytes, Nanos};
use std::path::Path;
use tempfile::TempDir;

/// Returns a directory next to the test program with its device, because the system's
/// own may be in memory.
pub(crate) fn place() -> (TempDir, DeviceDescription) {
    let program = std::env::current_exe().expect("a test program");
    let directory = tempfile::tempdir_in(program.parent().expect("in a directory")).expect("a directory");
    let device = plumb_io::describe_device(directory.path()).expect("a description");
    (directory, device)
}

pub(crate) fn memory_file(length: Bytes) -> DataFile {
    let scratch = ScratchDirectory::create(Disk::Memory(MemoryDisk::new()), Path::new("/memory"));
    let method = Method::start(MethodKind::Sync, 8).expect("a method");
    let stop = StopCheck::new(&());
    let filling = Filling {
        method: &method,
        content: Content::Random(7),
        time_max: Nanos(u64::MAX),
        max_rate: None,
        stop: &stop,
    };
    let none = DirectIoSupport::No { why: "memory".to_string() };
    DataFile::create(&scratch.expect("a directory"), &none, length, &filling).expect("a file")
}

/// Returns a result of one load. Each repeat had this number of requests in one second, each took
/// `micros`, and the device moved the requested bytes.
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
        let evidence = DeviceEvidence {
            asked: moved,
            syncs: if result.durable().is_some() { requests } else { 0 },
            caused_read_bytes: Some(moved.read_bytes),
            device: Some(moved),
            flushes: Some(requests),
            span_ns: 1_000_000_000,
            ..DeviceEvidence::default()
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

fn estimate(values: &[f64]) -> Estimate {
    Estimate::of(values, 0.1).expect("there are values")
}

fn environment() -> DeviceEnvironment {
    DeviceEnvironment {
        device: "vda".to_string(),
        disk_bytes: Some(256 * Bytes::G),
        file_system: "ext4".to_string(),
        kernel: "6.18.0".to_string(),
        mount: Some("/data".to_string()),
        file_system_id: None,
        disk_model: None,
        path: "/data".to_string(),
        method: MethodKind::IoUring,
        direct: true,
        processors: 2,
        virtual_disk: true,
        date: "2026-01-02 03:04".to_string(),
    }
}

/// A calibration of three figures and a ladder of three rungs, without tasks.
pub(crate) fn calibration() -> Calibration {
    let of =
        |kind, values: &[f64], at: &str| MainFigure { kind, estimate: estimate(values), at: at.to_string() };
    let measured = |iops, cpu| RungState::Measured {
        iops: estimate(&[iops; 3]),
        mb_per_second: estimate(&[iops / 128.0; 3]),
        cpu_micros: estimate(&[cpu; 3]),
        cycles: None,
        note: None,
    };
    let rung = |name: &str, state| Rung { name: name.to_string(), state };
    let why = "the disk has no polled queues".to_string();
    let refused = RungState::Refused { why, cure: String::new() };
    Calibration {
        schema_version: SCHEMA_VERSION,
        environment: environment(),
        mode: Mode::Quick,
        seed: 7,
        size_small: 8192,
        size_large: Bytes::M,
        matrix_write_percent: 0,
        matrix_large_pattern: Pattern::Random,
        max_latency_ns: 10_000_000,
        link_bytes_per_second: None,
        volume: None,
        sustained: None,
        max_rate: None,
        file_bytes: 2 * Bytes::G,
        task_time_ns: 150_000_000,
        elapsed_ns: 26_900_000_000,
        figures: vec![
            of(FigureKind::SmallReadLatency, &[50.1, 50.2, 51.0], "8K random read x1"),
            of(FigureKind::SmallReadIops, &[75_000.0; 9], "depth 64, 2 threads; 97% at 32"),
            of(FigureKind::SequentialRead, &[1200.0, 1210.0, 1500.0], "1M sequential read x8"),
        ],
        ladder_small: vec![
            rung("sync", measured(60_000.0, 5.0)),
            rung("io_uring", measured(75_000.0, 2.9)),
            rung("+ IOPOLL", refused),
        ],
        ladder_large: Vec::new(),
        read_cost: Some(ReadCost {
            start_micros: estimate(&[45.0; 3]),
            mb_per_second: estimate(&[1228.8; 3]),
            measured: Vec::new(),
        }),
        plausibility: Some("4K write, fdatasync, zeroed log takes 160 us, 140 us of it the sync".to_string()),
        warnings: vec![Warning::OtherLoad {
            busy_rounds: 2,
            requests_per_second: 812.0,
            tasks: 5,
            bytes_per_second: 3e8,
        }],
        cycles_refused: Some("this processor offers no cycle counter".to_string()),
        refused: Vec::new(),
        tasks: Vec::new(),
    }
}
