//! A fixed calibration for the tests: a virtual disk, a normal run.

use crate::run;
use plumb_calibrate::{
    Answer, AnswerSource, Buffers, Calibration, DeviceEnvironment, DeviceEvidence, DurableMethod,
    DurablePoint, Estimate, FigureKind, Load, LoadMeasurement, LogSpace, MainFigure, Measurement, Mode,
    Pattern, Point, ReadCost, RefusedTask, Repeat, Ring, Rung, RungState, SCHEMA_VERSION, Task, TaskResult,
    Warning,
};
use plumb_events::LatencyHistogram;
use plumb_io::{DirectIo, MethodKind};
use plumb_record::Host;
use plumb_study::provenance::Provenance;
use plumb_units::{Bytes, Nanos};

/// Nine repeats within half a per cent.
fn steady(median: f64) -> Estimate {
    let repeat = |number: i32| median * (1.0 + f64::from(number - 4) * 0.001);
    Estimate::of(&(0..9).map(repeat).collect::<Vec<f64>>(), 0.1).expect("nine")
}

fn shaky(median: f64) -> Estimate {
    Estimate::of(&[median * 0.8, median, median * 1.1], 0.1).expect("three")
}

/// The machine and program that made it.
pub(super) fn provenance() -> Provenance {
    Provenance {
        plumb_version: "0.1.0".to_string(),
        command_line: "plumb calibrate --path /u02/oradata --run normal".to_string(),
        host: Host {
            cpu_quota: None,
            name: "db7".to_string(),
            cpus: Some(2),
            cpu_model: "AMD EPYC".to_string(),
            memory_bytes: Some(24 << 30),
            kernel: "Linux 6.18.0".to_string(),
        },
        device: run::fixture::device(),
    }
}

pub(super) fn normal() -> Calibration {
    Calibration {
        schema_version: SCHEMA_VERSION,
        environment: environment(),
        mode: Mode::Normal,
        seed: 7,
        size_small: 8192,
        size_large: Bytes::M,
        matrix_write_percent: 0,
        matrix_large_pattern: Pattern::Random,
        max_latency_ns: 10_000_000,
        volume: None,
        sustained: None,
        max_rate: None,
        link_bytes_per_second: None,
        file_bytes: 16 << 30,
        task_time_ns: 1_000_000_000,
        elapsed_ns: 569_000_000_000,
        figures: figures(),
        ladder_small: ladder(),
        ladder_large: Vec::new(),
        read_cost: Some(ReadCost {
            start_micros: steady(45.0),
            mb_per_second: steady(1_228.8),
            measured: [8u64, 64, 256, 512, 1024]
                .map(|kib| (kib << 10, steady(45.0 + kib as f64 / 1_228.8 * 1_000.0 / 1.024 * 1.01)))
                .to_vec(),
        }),
        plausibility: Some(
            "4K O_DIRECT write, fdatasync, zeroed log takes 160 us, 140 us of it the sync".to_string(),
        ),
        warnings: vec![
            Warning::Cached { tasks: 3, example: "8K random write x32, io_uring".to_string() },
            Warning::RingWorkers { tasks: 2 },
        ],
        cycles_refused: None,
        refused: vec![RefusedTask {
            task: Task::Durable(write(512, DurableMethod::Fdatasync, DirectIo::Required, LogSpace::Zeroed)),
            why: "direct writes here are multiples of 4K".to_string(),
        }],
        tasks: tasks(),
    }
}

/// A calibration of some seconds on a quiet disk, with only the parts that each has.
pub(super) fn least() -> Calibration {
    let mut calibration = normal();
    calibration.figures.retain(|figure| figure.estimate.settled);
    calibration.tasks.truncate(1);
    calibration.ladder_small.clear();
    calibration.warnings.clear();
    calibration.refused.clear();
    Calibration { plausibility: None, read_cost: None, ..calibration }
}

fn environment() -> DeviceEnvironment {
    DeviceEnvironment {
        device: "vda".to_string(),
        disk_bytes: Some(256 << 30),
        file_system: "ext4".to_string(),
        kernel: "6.18.0".to_string(),
        mount: Some("/u02".to_string()),
        file_system_id: None,
        disk_model: None,
        path: "/u02/oradata".to_string(),
        method: MethodKind::IoUring,
        direct: true,
        processors: 2,
        virtual_disk: true,
        date: "2026-11-20T21:04:05+00:00".to_string(),
    }
}

fn figures() -> Vec<MainFigure> {
    let figure = |kind, estimate, at: &str| MainFigure { kind, estimate, at: at.to_string() };
    vec![
        figure(FigureKind::SmallReadLatency, steady(50.2), "8K random read x1"),
        figure(FigureKind::SmallReadIops, steady(75_120.0), "depth 64; 97% at 32"),
        figure(FigureKind::SequentialRead, steady(1_204.0), "1M sequential read x8"),
        figure(FigureKind::SequentialReadAll, steady(1_231.0), "1M sequential read x8, 2 threads"),
        figure(FigureKind::DurableWrite, shaky(160.0), "4K O_DIRECT write, fdatasync, zeroed log"),
    ]
}

fn ladder() -> Vec<Rung> {
    let measured = |name: &str, iops, cpu| Rung {
        name: name.to_string(),
        state: RungState::Measured {
            iops: steady(iops),
            mb_per_second: steady(iops / 128.0),
            cpu_micros: steady(cpu),
            cycles: Some(steady(cpu * 2_900.0)),
            note: (name == "SQPOLL")
                .then(|| "the kernel's polling thread keeps 1 of 2 processors busy".to_string()),
        },
    };
    let refused = Rung {
        name: "IOPOLL".to_string(),
        state: RungState::Refused {
            why: "the disk has no queues that can be polled (queue/io_poll is 0)".to_string(),
            cure: "load its driver with some: nvme.poll_queues=N".to_string(),
        },
    };
    vec![
        measured("sync", 60_000.0, 9.0),
        measured("threads", 52_000.0, 14.0),
        measured("io_uring", 75_000.0, 3.1),
        measured("+ registered buffers", 75_100.0, 2.8),
        measured("SQPOLL", 74_900.0, 13.0),
        refused,
    ]
}

fn read(pattern: Pattern, request_bytes: u64, outstanding: usize) -> Load {
    Load { pattern, request_bytes, write_percent: 0, outstanding, zone_bytes: None, path: None }
}

fn point(loads: Vec<Load>, threads: usize) -> Point {
    Point {
        loads,
        threads,
        method: MethodKind::IoUring,
        direct_io: DirectIo::Required,
        buffers: Buffers::Registered,
        ring: Ring::default(),
    }
}

fn write(request_bytes: u64, method: DurableMethod, direct_io: DirectIo, space: LogSpace) -> DurablePoint {
    DurablePoint { method, direct_io, request_bytes, space }
}

/// Three repeats of a millisecond each, with `rates` requests per second for each load.
fn result(task: Task, rates: &[f64], micros: f64, source: AnswerSource, reason: &str) -> TaskResult {
    let repeat = |round: usize| {
        let load = |rate: &f64| {
            let mut latency = LatencyHistogram::default();
            let requests = ((rate / 1e3).round() as u64).max(1);
            for request in 0..requests {
                // Times from half to one and a half of the mean, so that percentiles differ.
                let part = 0.5 + request as f64 / requests as f64;
                latency.add(Nanos((micros * part * 1e3) as u64));
            }
            LoadMeasurement { reads: requests, writes: 0, latency }
        };
        let loads: Vec<LoadMeasurement> = rates.iter().map(load).collect();
        let mut evidence = DeviceEvidence::default();
        evidence.asked.requests = loads.iter().map(LoadMeasurement::requests).sum();
        evidence.asked.read_bytes = evidence.asked.requests * 8192;
        evidence.caused_read_bytes = Some(evidence.asked.read_bytes);
        evidence.device = Some(evidence.asked);
        let cpu_ns = evidence.asked.requests * 3_100;
        let measurement = Measurement { elapsed_ns: 1_000_000, loads, cpu_ns, cycles: None, evidence };
        Repeat { round, order: round, begin_ns: 0, measurement }
    };
    let answer = Answer { source, reason: reason.to_string() };
    TaskResult { task, repeats: (0..3).map(repeat).collect(), answer }
}

fn tasks() -> Vec<TaskResult> {
    let device = |loads: Vec<Load>, threads, rates: &[f64], micros| {
        let reason = "every byte read came from a device";
        result(Task::Point(point(loads, threads)), rates, micros, AnswerSource::Device, reason)
    };
    let small = |outstanding| read(Pattern::Random, 8192, outstanding);
    let mut tasks = Vec::new();
    // Little's law below saturation, the maximum above it.
    for (write_percent, faster) in [(0, 1.0), (100, 1.4)] {
        let depth = |outstanding: usize, threads| {
            let count = outstanding as f64;
            let iops = (count / 50e-6).min(75_000.0) * faster * (1.0 - 0.4 / count);
            let load = Load { write_percent, ..small(outstanding) };
            device(vec![load], threads, &[iops], count / iops * 1e6)
        };
        tasks.extend([1, 2, 4, 8, 16, 32, 64, 128].map(|outstanding| depth(outstanding, 1)));
        tasks.push(depth(128, 2));
    }
    let reason = "writes are 1.6 times as fast as the same reads: a cache takes them";
    let mut suspected = tasks[14].clone();
    suspected.answer = Answer { source: AnswerSource::HostCacheSuspected, reason: reason.to_string() };
    tasks[14] = suspected;
    tasks.push(device(vec![read(Pattern::Random, 64 << 10, 1)], 1, &[9_760.0], 102.0));
    tasks.push(device(vec![read(Pattern::Sequential, Bytes::M, 8)], 1, &[12_000.0], 660.0));
    tasks.push(device(vec![read(Pattern::Sequential, Bytes::M, 8)], 2, &[12_300.0], 650.0));
    for large in [1usize, 4] {
        tasks.push(device(vec![read(Pattern::Random, Bytes::M, large)], 1, &[4_000.0 * large as f64], 900.0));
        for count in [1usize, 4] {
            let rates = [18_000.0 * count as f64 / (1.0 + large as f64), 4_000.0 * large as f64];
            let loads = vec![small(count), read(Pattern::Random, Bytes::M, large)];
            tasks.push(device(loads, 1, &rates, 50.0 * (1.0 + large as f64)));
        }
    }
    let sync = Point { method: MethodKind::Sync, buffers: Buffers::Ordinary, ..point(vec![small(32)], 1) };
    let reason = "every byte read came from a device";
    tasks.push(result(Task::Point(sync), &[60_000.0], 530.0, AnswerSource::Device, reason));
    tasks.extend(durable());
    tasks
}

/// Four loads on two disks: alone, at once, and as stripes. The second disk is the slower one.
pub(super) fn on_two_paths() -> Vec<TaskResult> {
    let mut tasks = Vec::new();
    let loads = [
        (Pattern::Random, 8192, 32, 0, 75_000.0),
        (Pattern::Random, 8192, 32, 100, 60_000.0),
        (Pattern::Sequential, Bytes::M, 8, 0, 1_200.0),
        (Pattern::Sequential, Bytes::M, 8, 100, 900.0),
    ];
    for (pattern, bytes, outstanding, write_percent, rate) in loads {
        let load = Load { write_percent, ..read(pattern, bytes, outstanding) };
        let on = |path| Load { path: Some(path), ..load };
        let mut add = |loads: Vec<Load>, threads, rates: &[f64]| {
            let task = Task::Point(point(loads, threads));
            tasks.push(result(task, rates, 400.0, AnswerSource::Device, "every byte came from a device"));
        };
        add(vec![on(0)], 1, &[rate]);
        add(vec![on(1)], 1, &[rate * 0.8]);
        add(vec![on(0), on(1)], 2, &[rate * 0.7, rate * 0.6]);
        add(vec![Load { outstanding: 2 * outstanding, ..load }], 2, &[rate * 1.25]);
    }
    tasks
}

fn durable() -> Vec<TaskResult> {
    let of = |kib: u64, method, direct_io, space, micros: f64, source, reason: &str| {
        let task = Task::Durable(write(kib << 10, method, direct_io, space));
        result(task, &[1e6 / micros], micros, source, reason)
    };
    let (direct, buffered, zeroed) = (DirectIo::Required, DirectIo::Off, LogSpace::Zeroed);
    let (plain, sync, dsync) = (DurableMethod::None, DurableMethod::Fdatasync, DurableMethod::ODsync);
    vec![
        of(
            4,
            plain,
            direct,
            zeroed,
            20.0,
            AnswerSource::Unknown,
            "without a sync a write may end in any cache",
        ),
        of(4, sync, direct, zeroed, 160.0, AnswerSource::Device, "a sync costs 140 us"),
        of(128, sync, direct, zeroed, 260.0, AnswerSource::Device, "a sync costs 150 us"),
        of(4, dsync, direct, zeroed, 22.0, AnswerSource::HostCacheSuspected, "a sync costs 2.0 us"),
        of(4, sync, buffered, LogSpace::Allocated, 310.0, AnswerSource::Device, "a sync costs 300 us"),
        of(
            4,
            plain,
            buffered,
            zeroed,
            2.0,
            AnswerSource::PageCache,
            "nothing asked for more than the page cache",
        ),
    ]
}
