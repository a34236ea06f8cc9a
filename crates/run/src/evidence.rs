//! Evidence: what was seen of a run, as one value.
//!
//! ```text
//! reading ──> work ──> reading        Measured: the difference, from outside the code that is measured
//! Instance ──> Inside                 what the engine says of itself
//! Asked, Measured, Inside, disk  ──>  Evidence ──> receipts, findings, the record
//! ```
//!
//! The readings come from outside the code that is measured: the recorder's
//! snapshots, what the kernel counts for this process and for the block
//! devices, how the files are open and how much of them is in the page cache.
//! They are taken around the work and never within it.
//!
//! Rules read nothing but this value, no instance and no /proc: a test changes one fact of it and sees the rule that
//! rests on it fail.

mod snapshots;

pub use snapshots::Cut;

use crate::device_mix::{self, Mix};
use crate::device_probe::{self, Calibrated};
use crate::workers::WorkerCount;
use plumb_engine::access::Access;
use plumb_engine::backup::Copied;
use plumb_engine::cache::BufferCache;
use plumb_engine::check::CheckLine;
use plumb_engine::redo::{Log, SyncChoice};
use plumb_engine::sort::plan::SortPlan;
use plumb_engine::sort::summary::SortSummary;
use plumb_engine::storage::control::Catalog;
use plumb_engine::storage::header::FileShape;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::table::load::LoadOutcome;
use plumb_engine::transaction::Logging;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_events::SortServerSummary;
use plumb_events::{LatencyHistogram, Period, PhaseSpan, Profile, Snapshot, clock};
use plumb_host::device::DeviceDescription;
use plumb_host::readings::{self, DiskStats, OpenFlags, ProcessIo, Residency, ResidentMemory};
use plumb_io::{DirectIo, Disk, File};
use plumb_record::trace::RunTrace;
use plumb_record::{Check, DeviceLimits, ParameterRow};
use plumb_study::disturbance::{Stretch, Watched};
use plumb_study::machine::{self, CpuTimes};
use plumb_study::sampler::Looks;
use plumb_units::{BlockCount, BlockSize, Bytes, Nanos, path_of_text};
use plumb_workload::TextShape;
use plumb_workload::slob::{Kind, Operation, SlobSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a run was asked to do.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The workload's name, in titles.
    pub workload: String,
    /// What it is about: a table or a file.
    pub data: String,
    /// What was measured, as phases are headed.
    pub measures: &'static str,
    /// The command as it could be typed.
    pub command_line: String,
    /// The seed of its rows; 0 where none were made.
    pub seed: u64,
    /// The workload's parameters with their values; empty of a command that is no workload.
    pub parameters: Vec<ParameterRow>,
    /// Whether the files were made large enough beforehand, so that growth is an error of the run.
    pub files_presized: bool,
    /// When the first phase began, on the monotonic clock.
    pub begin: Nanos,
    /// Where its files were asked to lie, by the words of [`crate::place::Placed`].
    pub placed: Vec<PlaceAsked>,
}

/// A place that was asked for.
#[derive(Debug, Clone)]
pub struct PlaceAsked {
    pub word: String,
    /// The directories, as they were given.
    pub value: String,
    /// Each of them without links, and the device number that the kernel gives files in it; none where it does not tell.
    pub directories: Vec<(PathBuf, Option<u64>)>,
}

impl PlaceAsked {
    /// Asks the kernel about the directories of a word.
    #[must_use]
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

/// The device number of what lies at a path (st_dev).
fn device_number(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|found| found.dev())
}

/// A tablespace as the instance has it open.
#[derive(Debug, Clone)]
pub struct TablespaceFacts {
    pub purpose: Purpose,
    /// The size of its blocks.
    pub block_size: BlockSize,
    pub extent_blocks: BlockCount,
    pub files: Vec<PathBuf>,
    pub size: Bytes,
}

#[derive(Debug, Clone)]
pub struct CacheFacts {
    /// The size of its blocks.
    pub block_size: BlockSize,
    pub frames: u64,
    /// Blocks of the tablespace for tables of this block size that it holds.
    pub cached_blocks: u64,
    /// What the kernel has mapped of their memory; none before the cache is used, or where /proc does not tell.
    pub mapped: Option<Bytes>,
}

/// What the engine says of itself at the end of the work.
#[derive(Debug, Clone)]
pub struct Inside {
    /// A value for every setting.
    pub settings: Settings,
    /// How it reaches the files, and why so.
    pub access: Access,
    pub degree: usize,
    pub home: PathBuf,
    pub tablespaces: Vec<TablespaceFacts>,
    pub catalog: Catalog,
    /// The buffer caches, that of `db_block_size` first.
    pub caches: Vec<CacheFacts>,
    /// The plan that the settings make for a sort, worked out anew; none where they make none.
    pub plan: Option<Arc<SortPlan>>,
    /// Every phase since the database was opened.
    pub phases: Vec<PhaseSpan>,
    /// Bytes over time since then.
    pub profile: Profile,
    /// When that was, on the monotonic clock.
    pub origin: Nanos,
}

impl Inside {
    #[must_use]
    pub fn of(instance: &Instance) -> Inside {
        let tablespace = |found: &plumb_engine::storage::tablespace::Tablespace| TablespaceFacts {
            purpose: found.purpose,
            block_size: found.block_size,
            extent_blocks: found.extent_blocks,
            files: found.files.iter().map(|file| file.file.path().to_path_buf()).collect(),
            size: found.size(),
        };
        let cache = |found: &BufferCache| CacheFacts {
            block_size: found.block_size(),
            frames: found.options().frame_count as u64,
            cached_blocks: found.cached_blocks(instance.tablespaces().tables_of(found.block_size())),
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

    /// Takes the settings that are fixed when a database is made from the one that is open: the run
    /// did not make it.
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

    /// The tablespace of a purpose.
    #[must_use]
    pub fn tablespace(&self, purpose: Purpose) -> &TablespaceFacts {
        let found = self.tablespaces.iter().find(|tablespace| tablespace.purpose == purpose);
        found.expect("what is asked about is in every database")
    }

    #[must_use]
    pub fn cache(&self) -> &CacheFacts {
        &self.caches[0]
    }

    /// Whether the files are in memory, so that nothing about files can be observed.
    #[must_use]
    pub fn in_memory(&self) -> bool {
        matches!(self.access.disk, Disk::Memory(_))
    }
}

/// Everything that is known of a run.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What it was asked to do.
    pub asked: Asked,
    /// What the engine says of itself.
    pub inside: Inside,
    /// What was seen around the work.
    pub measured: Measured,
    /// What the headers of the data files say, read back from the disk.
    pub headers: Vec<FileShape>,
    /// What lies under the paths.
    pub devices: Vec<DeviceDescription>,
    /// What verification found; empty where none ran.
    pub checks: Vec<Check>,
    /// The device's limits, where they were measured in the same run.
    pub calibrated: Option<Calibrated>,
    /// What the device under the tables can do, or why that is not known; none where there is no device.
    pub limits: Option<DeviceLimits>,
    /// What was seen beside the run; none where nothing looked.
    pub beside: Option<Looks>,
    /// What the device does of the workload's mix, before the work and after it; none where it has none.
    pub mix: Option<MixSeen>,
}

/// A workload's mix, and what the device does of it: before the work and after it, or why that is not known.
#[derive(Debug, Clone)]
pub struct MixSeen {
    pub path: PathBuf,
    /// The mix that was asked for, before the work.
    pub before: MixPoint,
    /// The mix that the work had, after it.
    pub after: MixPoint,
}

/// A mix, and the device's rate for it, or why that is not known.
#[derive(Debug, Clone)]
pub struct MixPoint {
    pub mix: Mix,
    pub rate: Result<device_mix::Measured, String>,
}

impl Evidence {
    /// Collects what is known of a run whose database is still open.
    #[must_use]
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
        // In memory there is no file to read back.
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

    /// The same with what was seen beside the run.
    #[must_use]
    pub fn with_beside(self, beside: Option<Looks>) -> Evidence {
        Evidence { beside, ..self }
    }

    /// The same with what the device does of the workload's mix.
    #[must_use]
    pub fn with_mix(self, mix: Option<MixSeen>) -> Evidence {
        Evidence { mix, ..self }
    }

    /// The same with the limits of the device.
    #[must_use]
    pub fn with_limits(self, calibrated: Option<Calibrated>, limits: Option<DeviceLimits>) -> Evidence {
        Evidence { calibrated, limits, ..self }
    }
}

/// The checks of a verification that passed, or the one that did not, which is named after `subject`.
#[must_use]
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

/// Requests, bytes and nanoseconds of service time, as `io` records them.
pub type Transfers = (u64, u64, u64);

/// What the work did, and what was seen of it from outside.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What the engine says it did.
    pub outcome: Done,
    pub period: Period,
    /// Wall-clock time at the start and the end.
    pub wall: (Duration, Duration),
    /// Monotonic time at the start.
    pub begin: Nanos,
    /// What the kernel counted for this process.
    pub process_io: Option<ProcessIo>,
    /// What it counted for each block device, by name.
    pub disks: BTreeMap<String, DiskStats>,
    pub files: Vec<FileEvidence>,
    /// CPU time of the host.
    pub host_cpu: Option<plumb_record::HostCpu>,
    pub process: Option<plumb_record::ProcessUse>,
    /// What the machine did meanwhile.
    pub(crate) machine: Stretch,
    /// What happened between the snapshots within the work; empty where none were asked for.
    pub cuts: Vec<Cut>,
    /// The io-wq workers at the start, and the most seen.
    pub io_wq_workers: (usize, usize),
    /// The resident set, its peak since the start if `peak_is_of_work`.
    pub memory: Option<ResidentMemory>,
    /// Whether the kernel let the peak be reset at the start.
    pub peak_is_of_work: bool,
    /// Every request, where a trace was asked for.
    pub trace: Option<RunTrace>,
}

/// What the engine says it did.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// The name of the index that was built; none where none was.
    pub index: Option<String>,
    /// The sort; none where nothing was sorted.
    pub sort: Option<SortSummary>,
    /// The import; none where nothing was imported.
    pub import: Option<ImportDone>,
    /// The create table as select; none where there was none.
    pub ctas: Option<CtasDone>,
    /// The log; none where nothing was logged.
    pub log: Option<LogDone>,
    /// Random reads and updates; none where there were none.
    pub slob: Option<SlobDone>,
}

/// The log of the work, as the engine says that it was written.
#[derive(Debug, Clone)]
pub struct LogDone {
    /// How its writes became durable, and why so.
    pub sync: SyncChoice,
    /// Whether its files are reached past the page cache.
    pub direct: DirectIo,
    /// The nice value of LGWR, as /proc has it; none where sessions do its work.
    pub lgwr_nice: Option<i32>,
    /// Memory that held records read back, for old versions of rows.
    pub read_back: Bytes,
    /// Its files, and the bytes of each.
    pub files: (u64, Bytes),
    /// Second members of its files.
    pub second_members: Vec<PathBuf>,
    /// The state that the work began in; none where nothing was done to reach one.
    pub start: Option<LogStart>,
}

impl LogDone {
    #[must_use]
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

/// The state of a log just before the work.
#[derive(Debug, Clone)]
pub struct LogStart {
    /// Which of its files it was in, from 1.
    pub file: usize,
    /// Where the next record went, in bytes from the file's first batch.
    pub offset: u64,
    /// Bytes of log that a recovery would have done again.
    pub to_recover: Bytes,
    /// Whether every changed block had been written.
    pub blocks_written: bool,
    /// Pages of the log files in the page cache; none where that cannot be told.
    pub cached: Option<Residency>,
    /// Pages of the data files there; likewise.
    pub data_cached: Option<Residency>,
}

/// What a session has besides its blocks: its stack as far as it is used, its ring, its counters of waits.
pub const SESSION_BYTES: u64 = 640 * Bytes::K;
/// What a session that updates has besides. Of 32 of them each had some 1 MB resident in all, by /proc/self/smaps; what of it is its stack and what the
/// allocator's was not told apart.
pub const UPDATER_BYTES: u64 = 384 * Bytes::K;

#[derive(Debug, Clone)]
pub struct SlobDone {
    pub spec: SlobSpec,
    /// Sessions that came to their end.
    pub took_part: u64,
    /// Response times of selects, updates and scans.
    pub responses: [LatencyHistogram; 3],
    pub rows_read: u64,
    pub rows_updated: u64,
    pub rows_scanned: u64,
    /// Operations that were due and had not begun at the end.
    pub behind: u64,
    /// The operations of the session that had most and of the one that had least.
    pub operations: (u64, u64),
    /// Operations on the hot spot, and on the hot schema.
    pub hot: u64,
    /// Operations that went to the first schema because it was their turn.
    pub in_hot_schema: u64,
    pub pauses: u64,
    /// Updates in the first half of their hundred operations.
    pub early_updates: u64,
    /// The schemas that sessions have for their own.
    pub schemas: BTreeSet<u64>,
}

impl SlobDone {
    #[must_use]
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

    /// Notes an operation, and how long its response took.
    pub fn note(&mut self, operation: &Operation, response: Nanos) {
        let is_early = self.count() % 100 < 50;
        self.responses[operation.kind as usize].add(response);
        self.hot += u64::from(operation.hot);
        self.in_hot_schema += u64::from(operation.in_hot_schema);
        self.pauses += u64::from(operation.think.is_some());
        self.early_updates += u64::from(is_early && operation.kind == Kind::Update);
    }

    /// Adds what a session did.
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

    #[must_use]
    pub fn count_of(&self, kind: Kind) -> u64 {
        self.responses[kind as usize].count()
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.responses.iter().map(LatencyHistogram::count).sum()
    }

    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows_read + self.rows_updated + self.rows_scanned
    }
}

/// A create table as select.
#[derive(Debug, Clone, Copy)]
pub struct CtasDone {
    /// The block size that was asked for.
    pub block_size: BlockSize,
    /// The shape of the rows that was asked for.
    pub shape: TextShape,
    /// Whether redo was asked for.
    pub logging: Logging,
    /// Whether the blocks were logged.
    pub logged: bool,
    /// Whether all of the source was in the buffer cache; none where it is not read through it.
    pub source_cached: Option<bool>,
    /// The table that was made.
    pub loaded: LoadOutcome,
    /// The backup that was made with it; none where it obliged to none.
    pub backup: Option<Copied>,
}

#[derive(Debug, Clone, Copy)]
pub struct ImportDone {
    /// Bytes of an array that were asked for.
    pub array_bytes: u64,
    /// Rows of a transaction that were asked for; none for those of an array.
    pub rows_per_commit: Option<u64>,
    /// Sessions that were asked for.
    pub sessions: u64,
    pub row_count: u64,
    pub row_bytes: u64,
    pub commit_count: u64,
}

impl Done {
    /// The sort servers, where there were any.
    #[must_use]
    pub fn servers(&self) -> &[SortServerSummary] {
        self.sort.as_ref().map_or(&[], |sort| &sort.servers)
    }
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileRole {
    /// A data file of a tablespace.
    Data(Purpose),
    /// The file that was sorted.
    Input,
    Output,
    Log,
}

impl FileRole {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FileRole::Data(purpose) => purpose.name(),
            FileRole::Input => "(input)",
            FileRole::Output => "(output)",
            FileRole::Log => "(log)",
        }
    }
}

/// What was seen of a file.
#[derive(Debug, Clone)]
pub struct FileEvidence {
    pub role: FileRole,
    pub path: PathBuf,
    pub reads: Transfers,
    pub writes: Transfers,
    /// The flags it is open with; none for a file in memory, or when /proc does not tell.
    pub flags: Option<OpenFlags>,
    /// Pages in the page cache before the work.
    pub cached_before: Option<Residency>,
    /// Pages in the page cache after the work.
    pub cached_after: Option<Residency>,
    /// Why these pages say nothing of how requests reached it; none where they do.
    pub pages_untold: Option<&'static str>,
    /// Its length after the work.
    pub length: Option<Bytes>,
    /// The number of the device it lies on, as the kernel gives it for the path; none for a file in memory.
    pub device: Option<u64>,
}

#[derive(Debug)]
struct Reading {
    snapshot: Snapshot,
    process_io: Option<ProcessIo>,
    used: Option<readings::ProcessUse>,
    disks: BTreeMap<String, DiskStats>,
    files: Vec<(Transfers, Transfers)>,
    cpu: Option<CpuTimes>,
    load: Option<f64>,
}

impl Reading {
    /// The snapshot comes last: what is begun behind this, and ended behind the next, is of the same period.
    fn take(instance: &Instance, devices: &[DeviceDescription]) -> Reading {
        let names = devices.iter().filter_map(|device| Some(device.block.as_ref()?.name.clone()));
        let disks = names.filter_map(|name| DiskStats::read(&name).ok().map(|stats| (name, stats))).collect();
        let files = instance.tablespaces().iter().flat_map(|tablespace| &tablespace.files);
        let counted = |file: &plumb_engine::storage::datafile::DataFile| {
            (file.file.counters().reads(), file.file.counters().writes())
        };
        Reading {
            process_io: ProcessIo::read().ok(),
            used: readings::ProcessUse::read().ok(),
            disks,
            files: files.map(counted).collect(),
            cpu: CpuTimes::read(),
            load: machine::load_average(),
            snapshot: instance.recorder.snapshot(),
        }
    }
}

/// What was seen of a file that was opened for the work.
#[must_use]
pub fn of_plain_file(
    role: FileRole,
    path: &Path,
    file: &File,
    cached_before: Option<Residency>,
) -> FileEvidence {
    FileEvidence {
        role,
        path: path.to_path_buf(),
        reads: file.counters().reads(),
        writes: file.counters().writes(),
        flags: file.descriptor().and_then(|descriptor| readings::open_flags(descriptor).ok()),
        cached_before,
        cached_after: residency(file),
        pages_untold: pages_untold(file),
        length: file.length().ok().map(Bytes),
        device: device_number(path),
    }
}

/// What was moved to and from each log file so far, and its pages in the page cache.
#[must_use]
pub fn before_log(log: &Log) -> Vec<(Transfers, Transfers, Option<Residency>)> {
    let of = |file: &File| (file.counters().reads(), file.counters().writes(), residency(file));
    log.files().map(of).collect()
}

/// What was seen of the log files since then.
#[must_use]
pub fn of_log(log: &Log, before: &[(Transfers, Transfers, Option<Residency>)]) -> Vec<FileEvidence> {
    let files = log.files().zip(before).map(|(file, (reads, writes, cached))| {
        let seen = of_plain_file(FileRole::Log, file.path(), file, *cached);
        FileEvidence { reads: grown(seen.reads, *reads), writes: grown(seen.writes, *writes), ..seen }
    });
    files.collect()
}

/// Does work between two readings; it answers with what it did, and with the files of its own that it used.
///
/// # Errors
/// As the work fails.
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
    let mut files = file_evidence(instance, &before, &after, cached_before);
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
        process_io: after.process_io.zip(before.process_io).map(|(later, earlier)| later.since(&earlier)),
        disks: difference(&after.disks, &before.disks),
        host_cpu: snapshots::host_cpu(&before, &after),
        process: snapshots::process(&before, &after),
        machine,
        cuts,
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

/// The pages of a file in the page cache.
#[must_use]
pub fn residency(file: &File) -> Option<Residency> {
    readings::residency(file.descriptor()?, Bytes(file.length().ok()?)).ok()
}

fn pages_untold(file: &File) -> Option<&'static str> {
    readings::pages_untold(file.descriptor()?)
}

fn grown(later: Transfers, earlier: Transfers) -> Transfers {
    (later.0 - earlier.0, later.1 - earlier.1, later.2 - earlier.2)
}

fn file_evidence(
    instance: &Instance,
    before: &Reading,
    after: &Reading,
    cached_before: Vec<Option<Residency>>,
) -> Vec<FileEvidence> {
    let files = instance.tablespaces().iter().flat_map(|tablespace| {
        let role = FileRole::Data(tablespace.purpose);
        tablespace.files.iter().map(move |file| (role, file))
    });
    let counted = before.files.iter().zip(&after.files);
    let cached = cached_before.into_iter().zip(residencies(instance));
    let rows = files.zip(counted).zip(cached);
    rows.map(|(((role, file), (earlier, later)), (cached_before, cached_after))| FileEvidence {
        role,
        path: file.file.path().to_path_buf(),
        reads: grown(later.0, earlier.0),
        writes: grown(later.1, earlier.1),
        flags: file.file.descriptor().and_then(|descriptor| readings::open_flags(descriptor).ok()),
        cached_before,
        cached_after,
        pages_untold: pages_untold(&file.file),
        length: file.file.length().ok().map(Bytes),
        device: device_number(file.file.path()),
    })
    .collect()
}
