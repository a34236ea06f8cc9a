//! Evidence: everything observed of a run, as one value.
//!
//! ```text
//! reading ──> work ──> reading        Measured: the difference, from outside the measured code
//! Instance ──> Inside                 state reported by the engine
//! Asked, Measured, Inside, disk  ──>  Evidence ──> receipts, findings, the record
//! ```
//!
//! The readings come from outside the measured code. They are the recorder's snapshots, the
//! kernel's counters of this process and of the block devices, and the files' open flags and cached
//! pages. They are taken around the work and never within it.
//!
//! Rules read nothing but this value, no instance and no /proc. So a test changes one fact, and
//! sees the rule that depends on it fail.

mod file_moves;
mod snapshots;
mod users;

use file_moves::FileMoves;
pub use users::{PartCounts, UsersDone, UsersMark};

use crate::device_mix::{self, Mix};
use crate::device_probe::{self, Calibrated};
use crate::workers::WorkerCount;
use plumb_engine::access::Access;
use plumb_engine::backup::Copied;
use plumb_engine::cache::{BufferCache, CachedBlocks};
use plumb_engine::check::CheckLine;
use plumb_engine::redo::{Log, SyncChoice};
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::sort::summary::SortSummary;
use plumb_engine::storage::control::Catalog;
use plumb_engine::storage::header::FileShape;
use plumb_engine::storage::tablespace::{Purpose, Tablespace};
use plumb_engine::table::load::LoadOutcome;
use plumb_engine::transaction::Logging;
use plumb_engine::view::copy::LoadDegree;
use plumb_engine::view::totals::{Checksum, Totals};
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::{
    Direction, IoStream, LatencyHistogram, Period, PhaseSpan, PoolCounts, Profile, Snapshot,
    SortServerSummary, clock,
};
use plumb_host::device::DeviceDescription;
use plumb_host::readings::{self, DiskStats, OpenFlags, ProcessIo, Residency, ResidentMemory};
use plumb_io::{DirectIo, Disk, File};
use plumb_record::trace::RunTrace;
use plumb_record::{
    BufferWaits, Check, DeviceLimits, Interval, IoFile, IoTally, ParameterRow, PoolBlocks, PoolStats,
    ScanInstance, SortBuild,
};
use plumb_study::disturbance::{Stretch, Watched};
use plumb_study::machine::{self, CpuTimes};
use plumb_study::sampler::Looks;
use plumb_units::{BlockCount, BlockSize, Bytes, FileId, Nanos, path_of_text};
use plumb_workload::TextShape;
use plumb_workload::slob::{Kind, Operation, SlobSpec};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Request that the run carries out.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Name of the workload, in titles.
    pub workload: String,
    /// Name of the table or file.
    pub data: String,
    /// Title of the measured phases.
    pub measures: &'static str,
    /// The command as it could be typed.
    pub command_line: String,
    /// Seed of the rows; 0 if none were made.
    pub seed: u64,
    /// Parameters of the workload with their values; empty for a command that is no workload.
    pub parameters: Vec<ParameterRow>,
    /// True if the files were presized, so that growth is an error of the run.
    pub files_presized: bool,
    /// Start of the first phase on the monotonic clock.
    pub begin: Nanos,
    /// Requested directories of the files, by the words of [`crate::place::Placed`].
    pub placed: Vec<PlaceAsked>,
}

impl Asked {
    /// Returns the request of a command on a user's own data, which has neither seed nor
    /// parameters. The caller fills in workload, data and command line.
    pub fn of_own_data(begin: Nanos) -> Asked {
        Asked {
            workload: String::new(),
            data: String::new(),
            measures: "",
            command_line: String::new(),
            seed: 0,
            parameters: Vec::new(),
            files_presized: false,
            begin,
            placed: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct PlaceAsked {
    pub word: String,
    /// The directories as the user gave them.
    pub value: String,
    /// Each directory without links, with the kernel's device number of files
    /// in it; `None` if unknown.
    pub directories: Vec<(PathBuf, Option<u64>)>,
}

impl PlaceAsked {
    /// Reads the device numbers of a word's directories.
    pub fn of(word: &str, value: &str) -> PlaceAsked {
        let directories = value.split(',').map(|directory| {
            let path = path_of_text(directory);
            let path = path.canonicalize().unwrap_or(path);
            let device = device_number(&path);
            (path, device)
        });
        PlaceAsked { word: word.to_string(), value: value.to_string(), directories: directories.collect() }
    }
}

/// Returns the device number of a path (st_dev).
fn device_number(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.dev())
}

/// A tablespace of the open instance.
#[derive(Debug, Clone)]
pub struct TablespaceFacts {
    pub purpose: Purpose,
    pub block_size: BlockSize,
    pub extent_blocks: BlockCount,
    pub files: Vec<PathBuf>,
    pub size: Bytes,
}

#[derive(Debug, Clone)]
pub struct CacheFacts {
    pub block_size: BlockSize,
    pub frames: u64,
    /// Bytes that the kernel mapped for the cache; `None` before its first use, or without /proc.
    pub mapped: Option<Bytes>,
}

/// State of the engine at the end of the work.
#[derive(Debug, Clone)]
pub struct Inside {
    /// A value for every setting.
    pub settings: Settings,
    /// I/O method and direct I/O, with the reasons.
    pub access: Access,
    pub degree: usize,
    pub home: PathBuf,
    pub tablespaces: Vec<TablespaceFacts>,
    pub catalog: Catalog,
    /// The buffer caches, with that of `db_block_size` first.
    pub caches: Vec<CacheFacts>,
    /// Plan of a sort with these settings, computed again; `None` if they allow none.
    pub plan: Option<Arc<SortPlan>>,
    /// Every phase since the database was opened.
    pub phases: Vec<PhaseSpan>,
    /// Bytes over time since the database was opened.
    pub profile: Profile,
    /// Time of the opening on the monotonic clock.
    pub origin: Nanos,
}

impl Inside {
    pub fn of(instance: &Instance) -> Inside {
        let tablespace = |found: &Tablespace| TablespaceFacts {
            purpose: found.purpose,
            block_size: found.block_size,
            extent_blocks: found.extent_blocks,
            files: found.files.iter().map(|file| file.file.path().to_path_buf()).collect(),
            size: found.size(),
        };
        let cache = |found: &BufferCache| CacheFacts {
            block_size: found.block_size(),
            frames: found.options().frame_count as u64,
            mapped: found.memory().and_then(|memory| readings::mapped(&memory.addresses()).ok()),
        };
        Inside {
            settings: instance.settings.clone(),
            access: instance.access.clone(),
            degree: instance.parallel_degree(),
            home: instance.home().to_path_buf(),
            tablespaces: instance.tablespaces().iter().map(tablespace).collect(),
            catalog: instance.catalog().clone(),
            caches: instance.caches().iter().map(cache).collect(),
            plan: device_probe::plan(instance).ok().map(Arc::new),
            phases: instance.recorder.phases(),
            profile: instance.recorder.profile(),
            origin: instance.recorder.origin(),
        }
    }

    /// Takes the settings that are fixed when a database is made from the open one, because the
    /// run did not make it.
    fn adopt(&mut self, log: Option<&LogDone>) {
        let settings = &mut self.settings;
        if let Some(users) = self.tablespaces.iter().find(|found| found.purpose == Purpose::Users) {
            let block = users.block_size.bytes() as u64;
            settings.adopt(Setting::DbBlockSize, block);
            settings.adopt(Setting::ExtentSize, u64::from(users.extent_blocks.0) * block);
            settings.adopt(Setting::DataFiles, users.files.len() as u64);
        }
        if let Some((files, Bytes(bytes))) = log.map(|log| log.files) {
            settings.adopt(Setting::LogFileGroups, files);
            settings.adopt(Setting::LogFileSize, bytes);
        }
        if let Some(log) = log {
            settings.adopt(Setting::LogFileMembers, if log.second_members.is_empty() { 1 } else { 2 });
        }
    }

    pub fn tablespace(&self, purpose: Purpose) -> &TablespaceFacts {
        let found = self.tablespaces.iter().find(|tablespace| tablespace.purpose == purpose);
        found.expect("what is asked about is in every database")
    }

    pub fn cache(&self) -> &CacheFacts {
        &self.caches[0]
    }

    /// True if the files are in memory, so that nothing about files can be observed.
    pub fn in_memory(&self) -> bool {
        matches!(self.access.disk, Disk::Memory(_))
    }
}

/// Everything observed of a run.
#[derive(Debug, Clone)]
pub struct Evidence {
    pub asked: Asked,
    /// State of the engine at the end of the work.
    pub inside: Inside,
    /// Counters read around the work.
    pub measured: Measured,
    /// Headers of the data files, read back from disk.
    pub headers: Vec<FileShape>,
    pub devices: Vec<DeviceDescription>,
    /// Results of the verification; empty if none ran.
    pub checks: Vec<Check>,
    /// The device's limits, if they were measured in the same run.
    pub calibrated: Option<Calibrated>,
    /// Stored limits of the tables' device, or the reason why there are none.
    /// `None` for files in memory.
    pub limits: Option<DeviceLimits>,
    /// Samples during the run; `None` without a sampler.
    pub beside: Option<Looks>,
    /// The device's rate for the workload's mix, before and after the work; `None` without a mix.
    pub mix: Option<MixSeen>,
}

/// The device's rates for a workload's mix, before and after the work.
#[derive(Debug, Clone)]
pub struct MixSeen {
    pub path: PathBuf,
    /// The requested mix, measured before the work.
    pub before: MixPoint,
    /// The mix of the work done, measured after it.
    pub after: MixPoint,
}

/// A mix with the device's rate, or the reason why there is none.
#[derive(Debug, Clone)]
pub struct MixPoint {
    pub mix: Mix,
    pub rate: Result<device_mix::Measured, String>,
}

impl Evidence {
    /// Collects the evidence of a run whose database is still open.
    pub fn of(
        instance: &Instance,
        asked: Asked,
        measured: Measured,
        devices: &[DeviceDescription],
        checks: Vec<Check>,
    ) -> Evidence {
        let mut inside = Inside::of(instance);
        if !asked.files_presized {
            inside.adopt(measured.outcome.log.as_ref());
        }
        let files = inside.tablespaces.iter().flat_map(|tablespace| &tablespace.files);
        // Files in memory have no headers to read back.
        let headers = files.filter_map(|file| FileShape::read(file).ok()).collect();
        let devices = devices.to_vec();
        Evidence {
            asked,
            inside,
            measured,
            headers,
            devices,
            checks,
            calibrated: None,
            limits: None,
            beside: None,
            mix: None,
        }
    }

    #[must_use]
    pub fn with_beside(self, beside: Option<Looks>) -> Evidence {
        Evidence { beside, ..self }
    }

    #[must_use]
    pub fn with_mix(self, mix: Option<MixSeen>) -> Evidence {
        Evidence { mix, ..self }
    }

    #[must_use]
    pub fn with_limits(self, calibrated: Option<Calibrated>, limits: Option<DeviceLimits>) -> Evidence {
        Evidence { calibrated, limits, ..self }
    }
}

/// Returns the checks of a verification that passed. A failed one is
/// a single check named `subject`.
pub fn checks(found: Result<Vec<CheckLine>, EngineError>, subject: &str) -> Vec<Check> {
    let passed = |line: CheckLine| Check {
        name: line.name,
        passed: true,
        detail: line.detail,
        elapsed_ns: line.elapsed.0,
    };
    match found {
        Ok(lines) => lines.into_iter().map(passed).collect(),
        Err(error) => {
            vec![Check { name: subject.to_string(), passed: false, detail: error.to_string(), elapsed_ns: 0 }]
        }
    }
}

/// The work done, with the counters read around it.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Summary of the work by the engine.
    pub outcome: Done,
    pub period: Period,
    /// Wall-clock time at the start and the end.
    pub wall: (Duration, Duration),
    /// Monotonic time at the start.
    pub begin: Nanos,
    /// The kernel's counters of this process.
    pub process_io: Option<ProcessIo>,
    /// The kernel's counters of each block device, by name.
    pub disks: BTreeMap<String, DiskStats>,
    pub files: Vec<FileEvidence>,
    /// The buffer caches, in the order of [`Inside::caches`].
    pub pools: Vec<PoolStats>,
    pub host_cpu: Option<plumb_record::HostCpu>,
    pub process: Option<plumb_record::ProcessUse>,
    /// Counters of the whole machine, for circumstances.
    pub(crate) machine: Stretch,
    /// Rows between the snapshots within the work, with times of the monotonic clock; empty if none
    /// were requested.
    pub cuts: Vec<Interval>,
    /// The io-wq workers at the start, and the largest number seen.
    pub io_wq_workers: (usize, usize),
    /// The resident set, with its peak since the start if `peak_is_of_work`.
    pub memory: Option<ResidentMemory>,
    /// True if the kernel allowed resetting the peak at the start.
    pub peak_is_of_work: bool,
    /// Every request, if a trace was requested.
    pub trace: Option<RunTrace>,
}

/// Summary of the work by the engine.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// Name of the index that was built, if any.
    pub index: Option<String>,
    /// The sort; `None` if nothing was sorted.
    pub sort: Option<SortSummary>,
    /// The import; `None` if nothing was imported.
    pub import: Option<ImportDone>,
    /// The create table as select, if it was the work.
    pub ctas: Option<CtasDone>,
    /// The log; `None` if nothing was logged.
    pub log: Option<LogDone>,
    /// Random reads and updates, if they were the work.
    pub slob: Option<SlobDone>,
    /// Full scans, if they were the work.
    pub scan: Option<ScanDone>,
    /// The copy of rows, if it was the work.
    pub copy: Option<CopyDone>,
    /// Builds at the same time; empty for a single one.
    pub sorters: Vec<SortBuild>,
    /// Users that read while the work ran, if there were any.
    pub users: Option<UsersDone>,
}

/// A copy of rows into another table.
#[derive(Debug, Clone, Copy)]
pub struct CopyDone {
    pub load: LoadDegree,
    pub logging: Logging,
    /// True if the blocks were logged.
    pub logged: bool,
    /// Rows that the target had before.
    pub old: u64,
    pub block_bytes: u64,
    pub source_blocks: u64,
    /// Summary of the new rows.
    pub loaded: LoadOutcome,
}

/// Full scans of a table.
#[derive(Debug, Clone)]
pub struct ScanDone {
    pub columns: Vec<String>,
    /// Condition on the rows; `None` for all rows.
    pub predicate: Option<String>,
    pub checksum: Checksum,
    /// Blocks of the table, which every stream reads.
    pub block_count: u64,
    pub block_bytes: u64,
    pub extents: u64,
    pub streams: Vec<StreamDone>,
    /// Processes that read the closed database; empty if this one scanned.
    pub instances: Vec<InstanceDone>,
}

/// Scan of a share of the table by one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstanceDone {
    pub seen: ScanInstance,
    /// Bytes that the kernel fetched from a device for the instance; `None` if unknown, and for
    /// this process.
    pub fetched: Option<u64>,
}

/// Fills in the requests of a period. Counts of streams have no service times.
pub fn with_io(instance: ScanInstance, period: &Period) -> ScanInstance {
    let sum = |is: &dyn Fn(IoStream) -> bool| {
        let streams = IoStream::ALL.iter().filter(|stream| is(**stream));
        let seen = streams.map(|stream| period.stream(*stream));
        seen.fold(IoTally::default(), |sum, seen| IoTally {
            requests: sum.requests + seen.count,
            bytes: sum.bytes + seen.bytes,
            ..sum
        })
    };
    ScanInstance {
        direct_reads: sum(&|stream| stream == IoStream::TableReads),
        cache_reads: sum(&|stream| stream == IoStream::CacheReads),
        writes: sum(&|stream| stream.direction() == Direction::Write),
        ..instance
    }
}

impl ScanDone {
    /// Returns the instances that scanned. Without others it is this process.
    pub fn instances_of(&self, period: &Period) -> Vec<ScanInstance> {
        if !self.instances.is_empty() {
            return self.instances.iter().map(|instance| instance.seen.clone()).collect();
        }
        let own = ScanInstance {
            name: "this process".to_string(),
            extents: self.extents,
            share_bytes: self.bytes(),
            rows: self.streams.iter().map(|stream| stream.totals.row_count).sum(),
            elapsed_ns: period.elapsed.0,
            ..ScanInstance::default()
        };
        vec![with_io(own, period)]
    }

    /// Returns the bytes that all streams should have read.
    pub fn bytes(&self) -> u64 {
        self.block_count * self.block_bytes * self.streams.len() as u64
    }
}

/// One scan of the whole table.
#[derive(Debug, Clone)]
pub struct StreamDone {
    pub totals: Totals,
    pub elapsed: Nanos,
}

/// The log of the work, as the engine wrote it.
#[derive(Debug, Clone)]
pub struct LogDone {
    /// The sync method, with the reason.
    pub sync: SyncChoice,
    /// Required if its files bypass the page cache.
    pub direct: DirectIo,
    /// The nice value of LGWR from /proc; `None` if sessions write the log.
    pub lgwr_nice: Option<i32>,
    /// Memory of records read back for old versions of rows.
    pub read_back: Bytes,
    /// Number of its files, and the bytes of each.
    pub files: (u64, Bytes),
    pub second_members: Vec<PathBuf>,
    /// State of the log at the start of the work; `None` if none was prepared.
    pub start: Option<LogStart>,
}

impl LogDone {
    pub fn of(log: &Log, start: Option<LogStart>) -> LogDone {
        let files = log.files().count() as u64;
        LogDone {
            sync: log.sync().clone(),
            direct: log.direct(),
            lgwr_nice: log.lgwr_nice(),
            read_back: log.read_back_memory(),
            files: (files, Bytes(log.total().0 / files.max(1))),
            second_members: log.second_members(),
            start,
        }
    }
}

/// State of a log just before the work.
#[derive(Debug, Clone)]
pub struct LogStart {
    /// Number of its current file, from 1.
    pub file: usize,
    /// Offset of the next record, in bytes from the file's first batch.
    pub offset: u64,
    /// Bytes of log that a recovery would apply.
    pub to_recover: Bytes,
    /// True if every changed block had been written.
    pub blocks_written: bool,
    /// Pages of the log files in the page cache; `None` if unknown.
    pub cached: Option<Residency>,
    /// Pages of the data files in the page cache; `None` if unknown.
    pub data_cached: Option<Residency>,
}

/// Memory of a session besides its blocks: the used part of its stack, its ring, its wait counters.
pub const SESSION_BYTES: u64 = 640 * Bytes::K;
/// Further memory of a session that updates. With 32 of them each had about 1 MB resident in total,
/// by /proc/self/smaps. Stack and allocator were not separated.
pub const UPDATER_BYTES: u64 = 384 * Bytes::K;

#[derive(Debug, Clone)]
pub struct SlobDone {
    pub spec: SlobSpec,
    /// Number of sessions that finished.
    pub took_part: u64,
    /// Response times of selects, updates and scans.
    pub responses: [LatencyHistogram; 3],
    pub rows_read: u64,
    pub rows_updated: u64,
    pub rows_scanned: u64,
    /// Operations due but not begun at the end.
    pub behind: u64,
    /// Most and fewest operations of a session.
    pub operations: (u64, u64),
    /// Operations in the hot spot.
    pub hot: u64,
    /// Operations in the first schema because of the hot schema's frequency.
    pub in_hot_schema: u64,
    pub pauses: u64,
    /// Updates in the first half of their hundred operations.
    pub early_updates: u64,
    /// Schemas that sessions use as their own.
    pub schemas: BTreeSet<u64>,
}

impl SlobDone {
    pub fn of(spec: &SlobSpec) -> SlobDone {
        SlobDone {
            spec: spec.clone(),
            took_part: 0,
            responses: Default::default(),
            rows_read: 0,
            rows_updated: 0,
            rows_scanned: 0,
            behind: 0,
            operations: (0, u64::MAX),
            hot: 0,
            in_hot_schema: 0,
            pauses: 0,
            early_updates: 0,
            schemas: BTreeSet::new(),
        }
    }

    /// Counts an operation and its response time.
    pub fn note(&mut self, operation: &Operation, response: Nanos) {
        let is_early = self.count() % 100 < 50;
        self.responses[operation.kind as usize].add(response);
        self.hot += u64::from(operation.hot);
        self.in_hot_schema += u64::from(operation.in_hot_schema);
        self.pauses += u64::from(operation.think.is_some());
        self.early_updates += u64::from(is_early && operation.kind == Kind::Update);
    }

    /// Adds the counts of a session.
    pub fn add(&mut self, part: &SlobDone) {
        for (mine, theirs) in self.responses.iter_mut().zip(&part.responses) {
            mine.merge(theirs);
        }
        let count = part.count();
        self.operations = (self.operations.0.max(count), self.operations.1.min(count));
        self.took_part += part.took_part;
        self.rows_read += part.rows_read;
        self.rows_updated += part.rows_updated;
        self.rows_scanned += part.rows_scanned;
        self.behind += part.behind;
        self.hot += part.hot;
        self.in_hot_schema += part.in_hot_schema;
        self.pauses += part.pauses;
        self.early_updates += part.early_updates;
        self.schemas.extend(&part.schemas);
    }

    pub fn count_of(&self, kind: Kind) -> u64 {
        self.responses[kind as usize].count()
    }

    pub fn count(&self) -> u64 {
        self.responses.iter().map(LatencyHistogram::count).sum()
    }

    pub fn rows(&self) -> u64 {
        self.rows_read + self.rows_updated + self.rows_scanned
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CtasDone {
    /// Requested block size of the table.
    pub block_size: BlockSize,
    /// Requested shape of the rows.
    pub shape: TextShape,
    /// Requested logging of the load.
    pub logging: Logging,
    /// True if the blocks were logged.
    pub logged: bool,
    /// True if the whole source was in the buffer cache; `None` if it is read directly.
    pub source_cached: Option<bool>,
    /// Summary of the table made.
    pub loaded: LoadOutcome,
    /// The backup after the load; `None` if the load needs none.
    pub backup: Option<Copied>,
}

#[derive(Debug, Clone, Copy)]
pub struct ImportDone {
    /// Requested bytes of an array.
    pub array_bytes: u64,
    /// Requested rows of a transaction; `None` for one array each.
    pub rows_per_commit: Option<u64>,
    /// Number of sessions as requested.
    pub sessions: u64,
    pub row_count: u64,
    pub row_bytes: u64,
    pub commit_count: u64,
}

impl Done {
    /// Returns the sort servers; empty without a sort.
    pub fn servers(&self) -> &[SortServerSummary] {
        self.sort.as_ref().map_or(&[], |sort| &sort.servers)
    }
}

/// Purpose of a file in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// A data file of a tablespace.
    Data(Purpose),
    /// Input of a file sort.
    Input,
    Output,
    Log,
}

impl FileRole {
    pub const fn name(self) -> &'static str {
        match self {
            FileRole::Data(purpose) => purpose.name(),
            FileRole::Input => "(input)",
            FileRole::Output => "(output)",
            FileRole::Log => "(log)",
        }
    }
}

/// Counters and state of a file.
#[derive(Debug, Clone)]
pub struct FileEvidence {
    pub role: FileRole,
    pub path: PathBuf,
    /// Requests to it in the form of the record.
    pub io: IoFile,
    /// The open flags; `None` for a file in memory, or without /proc.
    pub flags: Option<OpenFlags>,
    /// Pages in the page cache before the work.
    pub cached_before: Option<Residency>,
    /// Pages in the page cache after the work.
    pub cached_after: Option<Residency>,
    /// Reason why these pages show nothing about requests; `None` if they do.
    pub pages_untold: Option<&'static str>,
    /// Length of the file after the work.
    pub length: Option<Bytes>,
    /// The kernel's device number for the path; `None` for a file in memory.
    pub device: Option<u64>,
}

#[derive(Debug)]
struct Reading {
    snapshot: Snapshot,
    process_io: Option<ProcessIo>,
    used: Option<readings::ProcessUse>,
    disks: BTreeMap<String, DiskStats>,
    files: Vec<FileMoves>,
    pools: Vec<PoolCounts>,
    cpu: Option<CpuTimes>,
    load: Option<f64>,
}

impl Reading {
    /// Takes the snapshot last: requests started after it and ended after the
    /// next belong to one period.
    fn take(instance: &Instance, devices: &[DeviceDescription]) -> Reading {
        let names = devices.iter().filter_map(|device| Some(device.block.as_ref()?.name.clone()));
        let disks = names.filter_map(|name| DiskStats::read(&name).ok().map(|stats| (name, stats))).collect();
        let files = instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files);
        let waits = instance.caches().iter().flat_map(BufferCache::file_waits);
        let waits = waits.map(|(file, (waits, time))| (file, BufferWaits { waits, time_ns: time.0 }));
        let waits: BTreeMap<FileId, BufferWaits> = waits.collect();
        let counted = |file: &plumb_engine::storage::datafile::DataFile| {
            FileMoves::of(&file.file, waits.get(&file.id).copied().unwrap_or_default())
        };
        Reading {
            process_io: ProcessIo::read().ok(),
            used: readings::ProcessUse::read().ok(),
            disks,
            files: files.map(counted).collect(),
            pools: instance.caches().iter().map(BufferCache::counts).collect(),
            cpu: CpuTimes::read(),
            load: machine::load_average(),
            snapshot: instance.recorder.snapshot(),
        }
    }
}

/// Returns the observations of a file that was opened for the work.
pub fn of_plain_file(
    role: FileRole,
    path: &Path,
    file: &File,
    cached_before: Option<Residency>,
) -> FileEvidence {
    FileEvidence {
        role,
        path: path.to_path_buf(),
        io: FileMoves::of(file, BufferWaits::default()).row(role, file, None),
        flags: file.descriptor().and_then(|descriptor| readings::open_flags(descriptor).ok()),
        cached_before,
        cached_after: residency(file),
        pages_untold: pages_untold(file),
        length: file.length().ok().map(Bytes),
        device: device_number(path),
    }
}

/// Does work between two readings; it returns its summary, and the files of its own that it used.
pub fn around(
    instance: &Instance,
    devices: &[DeviceDescription],
    work: impl FnOnce() -> Result<(Done, Vec<FileEvidence>), EngineError>,
) -> Result<Measured, EngineError> {
    let cached_before = residencies(instance);
    let peak_is_of_work = readings::reset_peak();
    let workers = WorkerCount::start();
    let wall_begin = clock::wall();
    let watched = Watched::of(devices);
    let earlier = watched.read();
    let ([before, after], cuts, (outcome, plain)) = snapshots::around(instance, devices, work)?;
    let machine = Stretch::between(&watched, &earlier, &watched.read());
    let pools = pools(instance, [&before, &after]).zip(instance.caches().iter());
    let pools = pools.map(|(pool, cache)| PoolStats {
        census: cache.census().iter().map(cached_blocks).collect(),
        ..pool
    });
    let pools = pools.collect();
    let mut files = file_evidence(instance, [&before, &after], cached_before);
    files.extend(plain);
    Ok(Measured {
        outcome,
        wall: (wall_begin, clock::wall()),
        begin: before.snapshot.at,
        memory: readings::resident_memory().ok(),
        peak_is_of_work,
        trace: instance
            .recorder
            .trace([&before.snapshot, &after.snapshot])
            .map(|trace| RunTrace::of_run(&trace, plumb_io::path_of_number)),
        io_wq_workers: workers.end(),
        files,
        pools,
        process_io: after.process_io.zip(before.process_io).map(|(later, earlier)| later.since(&earlier)),
        disks: difference(&after.disks, &before.disks),
        host_cpu: snapshots::host_cpu(&before, &after),
        process: snapshots::process(&before, &after),
        machine,
        cuts,
        period: after.snapshot.since(&before.snapshot),
    })
}

/// Does work that is logged between two readings; returns also the log and its files.
pub fn around_logged(
    instance: &Instance,
    devices: &[DeviceDescription],
    log: &Log,
    start: Option<LogStart>,
    work: impl FnOnce() -> Result<Done, EngineError>,
) -> Result<Measured, EngineError> {
    let counted = |file: &File| FileMoves::of(file, BufferWaits::default());
    let before: Vec<_> = log.files().map(|file| (counted(file), residency(file))).collect();
    around(instance, devices, || {
        let done = Done { log: Some(LogDone::of(log, start)), ..work()? };
        let files = log.files().zip(before).map(|(file, (before, cached))| FileEvidence {
            io: counted(file).since(&before).row(FileRole::Log, file, None),
            ..of_plain_file(FileRole::Log, file.path(), file, cached)
        });
        Ok((done, files.collect()))
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
    data_files(instance).map(|(_, file)| residency(file)).collect()
}

/// Returns the pages of a file in the page cache.
pub fn residency(file: &File) -> Option<Residency> {
    readings::residency(file.descriptor()?, Bytes(file.length().ok()?)).ok()
}

fn pages_untold(file: &File) -> Option<&'static str> {
    readings::pages_untold(file.descriptor()?)
}

/// Returns the work of each cache between two readings.
fn pools(instance: &Instance, [before, after]: [&Reading; 2]) -> impl Iterator<Item = PoolStats> {
    let counts = after.pools.iter().zip(&before.pools).map(|(later, earlier)| later.since(earlier));
    instance.caches().iter().zip(counts).map(|(cache, counts)| PoolStats {
        block_bytes: cache.block_size().bytes() as u64,
        buffers: cache.options().frame_count as u64,
        counts,
        census: Vec::new(),
    })
}

fn cached_blocks(row: &CachedBlocks) -> PoolBlocks {
    PoolBlocks { tablespace: row.purpose.name().to_string(), blocks: row.blocks, dirty: row.dirty }
}

/// Returns the requests to each data file between two readings.
fn file_rows(instance: &Instance, [before, after]: [&Reading; 2]) -> Vec<IoFile> {
    let counted = after.files.iter().zip(&before.files).map(|(later, earlier)| later.since(earlier));
    let rows = data_files(instance).zip(counted);
    rows.map(|((tablespace, file), moves)| {
        moves.row(FileRole::Data(tablespace.purpose), file, Some(tablespace.block_size))
    })
    .collect()
}

fn data_files(instance: &Instance) -> impl Iterator<Item = (&Tablespace, &File)> {
    let tablespaces = instance.tablespaces().iter();
    tablespaces.flat_map(|found| found.files.iter().map(move |file| (found, &*file.file)))
}

fn file_evidence(
    instance: &Instance,
    readings: [&Reading; 2],
    cached_before: Vec<Option<Residency>>,
) -> Vec<FileEvidence> {
    let rows = data_files(instance).zip(file_rows(instance, readings)).zip(cached_before);
    rows.map(|(((tablespace, file), io), cached_before)| FileEvidence {
        io,
        ..of_plain_file(FileRole::Data(tablespace.purpose), file.path(), file, cached_before)
    })
    .collect()
}
