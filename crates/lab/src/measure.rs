//! A measured index build: readings before it, the build, readings after it.
//!
//! The readings come from outside the code that is measured: the recorder's
//! snapshots, what the kernel counts for this process and for the block
//! devices, how the files are open and how much of them is in the page cache.
//! They are taken around the build and never within it.

use crate::host::{self, CpuTimes};
use crate::workers::WorkerCount;
use plumb_engine::index::build::{BuildOutcome, IndexSpec, create_index};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance};
use plumb_events::{Period, Snapshot, clock};
use plumb_io::device::DeviceDescription;
use plumb_io::receipt::{self, DiskStats, OpenFlags, ProcessIo, Residency, ResidentMemory};
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Requests, bytes and nanoseconds of service time.
pub type Transfers = (u64, u64, u64);

/// What an index build did, and what was seen of it from outside.
#[derive(Debug)]
pub struct Measured {
    /// What the engine says it did.
    pub outcome: BuildOutcome,
    /// What its sessions recorded.
    pub period: Period,
    /// Wall-clock time at the begin and the end.
    pub wall: (Duration, Duration),
    /// Monotonic time at the begin.
    pub begin: Nanos,
    /// What the kernel counted for this process.
    pub process_io: Option<ProcessIo>,
    /// What it counted for each block device, by name.
    pub disks: BTreeMap<String, DiskStats>,
    /// Each data file.
    pub files: Vec<FileEvidence>,
    /// CPU time of the host.
    pub host_cpu: Option<plumb_report::context::HostCpu>,
    /// The io-wq workers there were at the begin, and the most seen.
    pub io_wq_workers: (usize, usize),
    /// The resident set, its peak since the begin if `peak_is_of_build`.
    pub memory: Option<ResidentMemory>,
    /// Whether the kernel let the peak be reset at the begin.
    pub peak_is_of_build: bool,
}

/// What was seen of a data file.
#[derive(Debug)]
pub struct FileEvidence {
    /// Its tablespace.
    pub purpose: Purpose,
    /// Its path.
    pub path: PathBuf,
    /// Reads during the build.
    pub reads: Transfers,
    /// Writes during the build.
    pub writes: Transfers,
    /// The flags it is open with; none for a file in memory, or when /proc does not tell.
    pub flags: Option<OpenFlags>,
    /// Pages in the page cache before the build.
    pub cached_before: Option<Residency>,
    /// Pages in the page cache after the build.
    pub cached_after: Option<Residency>,
}

/// Readings that count up.
#[derive(Debug)]
struct Reading {
    snapshot: Snapshot,
    process_io: Option<ProcessIo>,
    disks: BTreeMap<String, DiskStats>,
    files: Vec<(Transfers, Transfers)>,
    cpu: Option<CpuTimes>,
    load: Option<f64>,
}

impl Reading {
    fn take(instance: &Instance, devices: &[DeviceDescription]) -> Reading {
        let names = devices.iter().filter_map(|device| Some(device.block.as_ref()?.name.clone()));
        let disks = names.filter_map(|name| DiskStats::read(&name).ok().map(|stats| (name, stats))).collect();
        let files = instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files);
        let counted = |file: &plumb_engine::storage::datafile::DataFile| {
            (file.file.counters().reads(), file.file.counters().writes())
        };
        Reading {
            process_io: ProcessIo::read().ok(),
            disks,
            files: files.map(counted).collect(),
            cpu: CpuTimes::read(),
            load: host::load_average(),
            snapshot: instance.recorder.snapshot(),
        }
    }
}

/// Takes the data files out of the page cache, so that what is read comes from
/// the device. What cannot be dropped is seen in the residency before the build.
pub fn make_cold(instance: &Instance) {
    for file in instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files) {
        if let Some(descriptor) = file.file.descriptor() {
            let _ = receipt::drop_cache(descriptor);
        }
    }
}

/// Builds an index between two readings.
///
/// # Errors
/// As the build fails.
pub fn build(
    instance: &Instance,
    spec: &IndexSpec,
    devices: &[DeviceDescription],
) -> Result<Measured, EngineError> {
    let cached_before = residencies(instance);
    let peak_is_of_build = receipt::reset_peak();
    let workers = WorkerCount::start();
    let wall_begin = clock::wall();
    let before = Reading::take(instance, devices);
    let outcome = create_index(instance, spec)?;
    let after = Reading::take(instance, devices);
    Ok(Measured {
        outcome,
        wall: (wall_begin, clock::wall()),
        begin: before.snapshot.at,
        memory: receipt::resident_memory().ok(),
        peak_is_of_build,
        io_wq_workers: workers.end(),
        files: file_evidence(instance, &before, &after, cached_before),
        process_io: after.process_io.zip(before.process_io).map(|(later, earlier)| later.since(&earlier)),
        disks: difference(&after.disks, &before.disks),
        host_cpu: after
            .cpu
            .zip(before.cpu)
            .map(|(later, earlier)| later.since(&earlier, before.load, after.load)),
        period: after.snapshot.since(&before.snapshot),
    })
}

fn difference(
    later: &BTreeMap<String, DiskStats>,
    earlier: &BTreeMap<String, DiskStats>,
) -> BTreeMap<String, DiskStats> {
    let both = later.iter().filter_map(|(name, stats)| Some((name.clone(), stats.since(earlier.get(name)?))));
    both.collect()
}

fn residencies(instance: &Instance) -> Vec<Option<Residency>> {
    let files = instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files);
    files
        .map(|file| {
            let length = file.file.length().ok()?;
            receipt::residency(file.file.descriptor()?, Bytes(length)).ok()
        })
        .collect()
}

fn file_evidence(
    instance: &Instance,
    before: &Reading,
    after: &Reading,
    cached_before: Vec<Option<Residency>>,
) -> Vec<FileEvidence> {
    let files = instance.tablespaces().iter().flat_map(|tablespace| {
        let purpose = tablespace.purpose;
        tablespace.files.iter().map(move |file| (purpose, file))
    });
    let grown = |later: Transfers, earlier: Transfers| {
        (later.0 - earlier.0, later.1 - earlier.1, later.2 - earlier.2)
    };
    let counted = before.files.iter().zip(&after.files);
    let cached = cached_before.into_iter().zip(residencies(instance));
    let rows = files.zip(counted).zip(cached);
    rows.map(|(((purpose, file), (earlier, later)), (cached_before, cached_after))| FileEvidence {
        purpose,
        path: file.file.path().to_path_buf(),
        reads: grown(later.0, earlier.0),
        writes: grown(later.1, earlier.1),
        flags: file.file.descriptor().and_then(|descriptor| receipt::open_flags(descriptor).ok()),
        cached_before,
        cached_after,
    })
    .collect()
}
