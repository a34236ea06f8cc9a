//! The points, as plumb measures them and as fio is asked for them, and their results.

use anyhow::ensure;
use plumb_calibrate::{Buffers, DurableMethod, DurablePoint, Load, LogSpace, Pattern, Point, Ring, Task};
use plumb_host::device::RingSetup;
use plumb_host::device::{DeviceDescription, DirectIoSupport, IoUringSupport};
use plumb_io::{DirectIo, MethodKind};
use plumb_units::Bytes;

/// A set-up of rings that any thread may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum RingChoice {
    Plain,
    Cooperative,
    Deferred,
}

impl RingChoice {
    fn setup(self) -> RingSetup {
        match self {
            RingChoice::Plain => RingSetup::Plain,
            RingChoice::Cooperative => RingSetup::Cooperative,
            RingChoice::Deferred => RingSetup::Deferred,
        }
    }
}

/// Result of a tool in one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    pub(super) iops: f64,
    /// Processor time a request, microseconds.
    pub(super) cpu_micros: f64,
    /// Kernel threads that carried out ring requests; 0 where they were not counted.
    pub(super) io_wq_workers: usize,
}

/// One point and all its rounds.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) task: Task,
    /// plumb and fio, a pair a round.
    pub(super) rounds: Vec<(Outcome, Outcome)>,
    /// Rounds that began in a quiet moment.
    pub(super) quiet: usize,
}

impl Comparison {
    /// The points, each without rounds.
    pub(super) fn all(ring: RingChoice) -> Vec<Comparison> {
        let point = |pattern, bytes, percent, depth| point(pattern, bytes, percent, depth, ring);
        let (small, large) = (8 * Bytes::K, Bytes::M);
        let tasks = [
            point(Pattern::Random, small, 0, 1),
            point(Pattern::Random, small, 0, 32),
            point(Pattern::Sequential, large, 0, 8),
            point(Pattern::Random, small, 100, 32),
            Task::Durable(DurablePoint {
                method: DurableMethod::Fdatasync,
                direct_io: DirectIo::Required,
                request_bytes: 4 * Bytes::K,
                space: LogSpace::Zeroed,
            }),
        ];
        tasks.into_iter().map(|task| Comparison { task, rounds: Vec::new(), quiet: 0 }).collect()
    }

    /// A rate as this point's is stated: MB/s of large requests, otherwise requests a second.
    pub(super) fn stated(&self, iops: f64) -> String {
        match request_bytes(&self.task) {
            Bytes::M.. => format!("{:.0} MB/s", iops * request_bytes(&self.task) as f64 / Bytes::M as f64),
            _ => format!("{iops:.0} IOPS"),
        }
    }
}

fn point(
    pattern: Pattern,
    request_bytes: u64,
    write_percent: u8,
    outstanding: usize,
    ring: RingChoice,
) -> Task {
    let load = Load { pattern, request_bytes, write_percent, outstanding, zone_bytes: None, path: None };
    Task::Point(Point {
        loads: vec![load],
        threads: 1,
        method: MethodKind::IoUring,
        direct_io: DirectIo::Required,
        buffers: Buffers::Registered,
        ring: Ring { setup: ring.setup(), ..Ring::default() },
    })
}

/// The bytes of each request.
pub(super) fn request_bytes(task: &Task) -> u64 {
    match task {
        Task::Point(point) => point.loads.first().map_or(0, |load| load.request_bytes),
        Task::Durable(point) => point.request_bytes,
    }
}

/// Refuses a place where the points cannot be what they are called.
pub(super) fn require(device: &DeviceDescription) -> anyhow::Result<()> {
    let path = device.path.display();
    if let DirectIoSupport::No { why } = &device.direct_io {
        anyhow::bail!("{path}: direct I/O does not work there ({why}); name a --path on a disk");
    }
    if let IoUringSupport::No { why, cure } = &device.io_uring {
        anyhow::bail!("io_uring does not work here: {why}; {cure}");
    }
    ensure!(!device.space.read_only, "{path} is mounted read-only; choose another --path");
    Ok(())
}
