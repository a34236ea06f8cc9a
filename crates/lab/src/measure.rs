//! A measured index build or sort of a file: readings before it, the work, readings after it.
//!
//! The readings come from outside the code that is measured: the recorder's
//! snapshots, what the kernel counts for this process and for the block
//! devices, how the files are open and how much of them is in the page cache.
//! They are taken around the build and never within it.

use crate::host::{self, CpuTimes};
use crate::workers::WorkerCount;
use plumb_engine::file_sort::{FileSortOutcome, FileSortSpec, sort_file};
use plumb_engine::index::build::{IndexSpec, create_index};
use plumb_engine::instance::Access;
use plumb_engine::sort::summary::SortSummary;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance};
use plumb_events::{Period, Snapshot, clock};
use plumb_io::File;
use plumb_io::device::DeviceDescription;
use plumb_io::receipt::{self, DiskStats, OpenFlags, ProcessIo, Residency, ResidentMemory};
use plumb_units::{Bytes, Nanos};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Requests, bytes and nanoseconds of service time, as `io` records them.
pub type Transfers = (u64, u64, u64);

/// What an index build did, and what was seen of it from outside.
#[derive(Debug)]
pub struct Measured {
    /// What the engine says it did.
    pub outcome: Done,
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
    pub host_cpu: Option<crate::record::HostCpu>,
    /// The io-wq workers there were at the begin, and the most seen.
    pub io_wq_workers: (usize, usize),
    /// The resident set, its peak since the begin if `peak_is_of_build`.
    pub memory: Option<ResidentMemory>,
    /// Whether the kernel let the peak be reset at the begin.
    pub peak_is_of_build: bool,
}

/// What the engine says it did.
#[derive(Debug)]
pub struct Done {
    /// The name of the index that was built; none where a file was sorted.
    pub index: Option<String>,
    /// The sort.
    pub sort: SortSummary,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A data file of a tablespace.
    Data(Purpose),
    /// The file that was sorted.
    Input,
    /// The sorted file.
    Output,
}

impl Role {
    /// As reports print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Role::Data(purpose) => purpose.name(),
            Role::Input => "(input)",
            Role::Output => "(output)",
        }
    }
}

/// What was seen of a file.
#[derive(Debug)]
pub struct FileEvidence {
    /// What it is for.
    pub role: Role,
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
    measured(instance, devices, || {
        let built = create_index(instance, spec)?;
        Ok((Done { index: Some(built.index.name), sort: built.sort }, Vec::new()))
    })
}

/// Sorts a file of records, which is not in the page cache, between two readings.
///
/// # Errors
/// As the sort fails.
pub fn sort<const BYTES: usize, const KEY: usize>(
    instance: &Instance,
    spec: &FileSortSpec,
    devices: &[DeviceDescription],
) -> Result<(Measured, FileSortOutcome), EngineError> {
    let Access { disk, direct, .. } = &instance.access;
    let input = disk.open(&spec.input, plumb_io::Access::Read, *direct)?;
    if let Some(descriptor) = input.descriptor() {
        let _ = receipt::drop_cache(descriptor);
    }
    let cached_before = residency(&input);
    let mut outcome = None;
    let measured = measured(instance, devices, || {
        let sorted = sort_file::<BYTES, KEY>(instance, spec)?;
        let nothing = residency(&sorted.output).map(|pages| Residency { resident_pages: 0, ..pages });
        let files = vec![
            plain_file(Role::Input, &spec.input, &sorted.input, cached_before),
            plain_file(Role::Output, &spec.output, &sorted.output, nothing),
        ];
        let done = Done { index: None, sort: sorted.sort.clone() };
        outcome = Some(sorted);
        Ok((done, files))
    })?;
    Ok((measured, outcome.expect("the sort has succeeded")))
}

/// What was seen of a file that was opened for the work.
fn plain_file(role: Role, path: &Path, file: &File, cached_before: Option<Residency>) -> FileEvidence {
    FileEvidence {
        role,
        path: path.to_path_buf(),
        reads: file.counters().reads(),
        writes: file.counters().writes(),
        flags: file.descriptor().and_then(|descriptor| receipt::open_flags(descriptor).ok()),
        cached_before,
        cached_after: residency(file),
    }
}

/// Does work between two readings.
fn measured(
    instance: &Instance,
    devices: &[DeviceDescription],
    work: impl FnOnce() -> Result<(Done, Vec<FileEvidence>), EngineError>,
) -> Result<Measured, EngineError> {
    let cached_before = residencies(instance);
    let peak_is_of_build = receipt::reset_peak();
    let workers = WorkerCount::start();
    let wall_begin = clock::wall();
    let before = Reading::take(instance, devices);
    let (outcome, plain) = work()?;
    let after = Reading::take(instance, devices);
    let mut files = file_evidence(instance, &before, &after, cached_before);
    files.extend(plain);
    Ok(Measured {
        outcome,
        wall: (wall_begin, clock::wall()),
        begin: before.snapshot.at,
        memory: receipt::resident_memory().ok(),
        peak_is_of_build,
        io_wq_workers: workers.end(),
        files,
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
    files.map(|file| residency(&file.file)).collect()
}

fn residency(file: &File) -> Option<Residency> {
    receipt::residency(file.descriptor()?, Bytes(file.length().ok()?)).ok()
}

fn file_evidence(
    instance: &Instance,
    before: &Reading,
    after: &Reading,
    cached_before: Vec<Option<Residency>>,
) -> Vec<FileEvidence> {
    let files = instance.tablespaces().iter().flat_map(|tablespace| {
        let role = Role::Data(tablespace.purpose);
        tablespace.files.iter().map(move |file| (role, file))
    });
    let grown = |later: Transfers, earlier: Transfers| {
        (later.0 - earlier.0, later.1 - earlier.1, later.2 - earlier.2)
    };
    let counted = before.files.iter().zip(&after.files);
    let cached = cached_before.into_iter().zip(residencies(instance));
    let rows = files.zip(counted).zip(cached);
    rows.map(|(((role, file), (earlier, later)), (cached_before, cached_after))| FileEvidence {
        role,
        path: file.file.path().to_path_buf(),
        reads: grown(later.0, earlier.0),
        writes: grown(later.1, earlier.1),
        flags: file.file.descriptor().and_then(|descriptor| receipt::open_flags(descriptor).ok()),
        cached_before,
        cached_after,
    })
    .collect()
}
