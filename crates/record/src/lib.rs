//! The record of a run: what was measured, and what its report is made from.
//!
//! Plain data: every figure is a measured total in a base unit, and the unit
//! ends the field's name (`_ns`, `_bytes`, `_bytes_per_s`). Rates, averages and
//! percentages that follow from others are left to the document, so that a record cannot contradict itself.
//! Times within the run count from its start; times of day are formatted already.
//! `docs/record.md` describes it.
//!
//! Optional fields are facts that a host may refuse to tell. They are printed
//! as missing and are never guessed.

mod beside;
pub mod calendar;
mod circumstance;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod imported;
mod interval;
mod json;
mod log_io;
mod mix;
pub mod operation;
pub mod outside;
mod session_snapshot;
pub mod trace;
mod trace_summary;
mod validity;

pub use beside::{Beside, DeviceSample, DeviceTally, MemorySample, Sample};
pub use circumstance::{Circumstance, Fact, capital, headline};
pub use imported::{
    Consistency, ConsistencyTally, Consistent, Imported, ImportedFact, ImportedFigure, ImportedSection,
};
pub use interval::{Interval, Period, ProcessUse};
pub use json::RecordError;
pub use log_io::{LogIo, LogPattern};
pub use mix::{MixLimit, MixRate, is_near_mix};
pub use session_snapshot::SessionSnapshot;
pub use trace_summary::{TraceBucket, TracePoint, TraceSession, TraceSummary};
pub use validity::{RunState, Validity};

use plumb_events::{Direction, LatencyHistogram, SessionKind, SortServerSummary, Unit};
use plumb_units::total_of;
use serde::{Deserialize, Serialize};

/// The record's file in the bundle of a run.
pub const FILE: &str = "record.json";
/// The point of the run's own mix, as a job of fio.
pub const FIO_JOB: &str = "mix.fio";
/// What was seen beside the run, as a table for other programs.
pub const BESIDE: &str = "beside.csv";
/// The version of the record written by this crate; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 2;
/// The oldest version that is read. Version 1 had the CPU inside waits in DB CPU and in the waits, and no times of
/// devices; its other figures mean the same.
pub const SCHEMA_VERSION_OLDEST: u32 = 1;

/// Everything that is known of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The record's version: [`SCHEMA_VERSION`] when written by this crate.
    pub schema_version: u32,
    /// What ran, where and when.
    pub header: Header,
    /// The part of a run that it is of; none for a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// What lies under each distinct path that the run used.
    pub devices: Vec<Device>,
    /// The device's own limits, measured in the same run.
    pub calibration: Option<MeasuredLimits>,
    /// The limits of the device under the tables by a stored calibration, or why there is
    /// none; missing where there is no device.
    #[serde(default)]
    pub limits: Option<DeviceLimits>,
    /// What the device does of the workload's own mix of reads and writes; missing where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<MixLimit>,
    /// Time that its processes were stopped, or the machine suspended, while they were measured;
    /// missing where they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Readings of the machine around the work: others' use of it, and caches that answered instead
    /// of the device. Missing in records from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Vec<Circumstance>>,
    /// What was verified about the result.
    pub checks: Vec<Check>,
    /// Evidence that each setting took effect.
    pub receipts: Vec<Receipt>,
    /// What the figures mean, and what to try next.
    pub findings: Vec<Finding>,
    /// The parts of the run in the order of their start.
    pub phases: Vec<Phase>,
    /// Memory that was declared, and memory that was used.
    pub memory: Memory,
    /// The load profile's rows in printing order.
    pub load_profile: Vec<LoadRow>,
    /// CPU time of the whole host during the run.
    pub host_cpu: Option<HostCpu>,
    /// What the process used during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUse>,
    /// Wait events of foreground sessions, in any order, idle ones included.
    pub foreground_events: Vec<WaitEvent>,
    /// Wait events of background processes, in any order, idle ones included.
    pub background_events: Vec<WaitEvent>,
    /// Where each session's time went.
    pub sessions: Vec<SessionTime>,
    /// The session that did the work, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionSnapshot>,
    /// Counters of the period, in any order.
    pub statistics: Vec<StatisticRow>,
    /// Requests and bytes by the function that asked for them.
    pub io_functions: Vec<IoFunction>,
    /// Requests and bytes by data file.
    pub io_files: Vec<IoFile>,
    /// The block devices under the paths, as the kernel counts for all processes.
    #[serde(default)]
    pub io_devices: Vec<IoDevice>,
    /// What the times of `io_functions` and `io_files` end with.
    #[serde(default)]
    pub completion: Completion,
    /// Bytes over time.
    pub io_profile: IoProfile,
    /// What was seen beside the run, second by second; none where nothing looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// What happened between each snapshot within the measured work and the next; empty where none were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// Response times of the operations of a workload that has some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Response>,
    /// The sort, when the workload has one.
    pub sort: Option<Sort>,
    /// The log, when the workload has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogIo>,
    /// Sums of the trace, when one was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSummary>,
    /// What was asked of the workload, in the order of its table; empty where nothing may be asked of what ran, and in
    /// records from before this was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterRow>,
    /// Every setting the run could have had, in printing order.
    pub settings: Vec<SettingRow>,
    /// Figures that are no statistics of an engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasuredFigure>,
    /// The command, when the run was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRun>,
    /// The report of another program that the record was read from; none for a run of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

impl Record {
    /// Transactions that ended in it; none where there were none.
    #[must_use]
    pub fn transactions(&self) -> Option<u64> {
        let ended = ["user commits", "user rollbacks"];
        let ended = self.statistics.iter().filter(|statistic| ended.contains(&statistic.name.as_str()));
        Some(total_of(ended.map(|statistic| statistic.total))).filter(|count| *count > 0)
    }
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFigure {
    /// Its name.
    pub name: String,
    /// The figure, in `unit`.
    pub value: f64,
    /// The unit as it is printed; empty for a plain number.
    pub unit: String,
}

/// A file with the hash of its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HashedFile {
    /// Its path.
    pub path: String,
    /// SHA-256 in hexadecimal; none where it cannot be read.
    pub sha256: Option<String>,
}

/// A file that a command had open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedFile {
    /// Its path.
    pub path: String,
    /// The flags of open(2), of all times it was open, as octal digits.
    pub flags: String,
}

/// A command as it was started, and as it was seen from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandRun {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Variables that were set for it, each as NAME=value.
    pub environment: Vec<String>,
    /// Bytes drawn at random that its environment was made longer by.
    pub padding_bytes: u64,
    /// A hash over all that it was given: what its executables and named files hold, arguments, environment.
    pub treatment: String,
    /// The executables of its processes.
    pub executables: Vec<HashedFile>,
    /// Files that the study names, and those that it wrote.
    pub files: Vec<HashedFile>,
    /// Libraries that were mapped.
    pub libraries: Vec<String>,
    /// Files that were seen open.
    pub opened: Vec<OpenedFile>,
    /// Sockets that were seen open: what a server did for it is in no other figure.
    #[serde(default)]
    pub sockets: u64,
    /// io_uring instances.
    pub rings: u64,
    /// Requests that the kernel took out of them, as far as it was seen.
    pub ring_requests: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// Most threads at once.
    pub threads_max: u64,
    /// How often it was looked at while it lived.
    pub looks: u64,
    /// The peak of its largest process at these looks, bytes.
    pub peak_seen_bytes: u64,
    /// Bytes asked for by read and write calls.
    pub asked_read_bytes: Option<u64>,
    /// Bytes handed to write calls.
    pub asked_written_bytes: Option<u64>,
    /// Bytes that the kernel fetched from a device for it.
    pub device_read_bytes: Option<u64>,
    /// Bytes that it sent to one.
    pub device_written_bytes: Option<u64>,
    /// Flushes of the devices meanwhile, by all processes; none where no device is known.
    pub flushes: Option<u64>,
    /// How it ended.
    pub status: String,
    /// What it printed, the middle left out where that is long.
    pub output: String,
    /// What it printed to standard error, likewise.
    pub errors: String,
}

impl Record {
    /// A record of which only the head is known.
    #[must_use]
    pub fn of(header: Header) -> Record {
        Record {
            schema_version: SCHEMA_VERSION,
            header,
            period: None,
            devices: Vec::new(),
            calibration: None,
            limits: None,
            mix: None,
            stopped_ns: None,
            circumstances: None,
            checks: Vec::new(),
            receipts: Vec::new(),
            findings: Vec::new(),
            phases: Vec::new(),
            memory: Memory::default(),
            load_profile: Vec::new(),
            host_cpu: None,
            process: None,
            foreground_events: Vec::new(),
            background_events: Vec::new(),
            sessions: Vec::new(),
            session: None,
            statistics: Vec::new(),
            io_functions: Vec::new(),
            io_files: Vec::new(),
            io_devices: Vec::new(),
            completion: Completion::default(),
            io_profile: IoProfile { bucket_ns: 0, y_max_mb_per_s: None, x_max_s: None, series: Vec::new() },
            beside: None,
            intervals: Vec::new(),
            responses: Vec::new(),
            sort: None,
            log: None,
            trace: None,
            parameters: Vec::new(),
            settings: Vec::new(),
            measures: Vec::new(),
            command: None,
            imported: None,
        }
    }
}

/// What ran, where and when: the provenance of every figure in the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The report's first line, such as `PLUMB REPORT  Workload: large-sort`.
    pub title: String,
    /// The workload's name.
    pub workload: String,
    /// The version of the program that ran it.
    pub plumb_version: String,
    /// The revision it was built from.
    pub git_revision: Option<String>,
    /// The machine.
    pub host: Host,
    /// Begin of the run, ISO 8601.
    pub begin_time: String,
    /// End of the run, ISO 8601.
    pub end_time: String,
    /// Wall-clock time of the run, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU outside waits and non-idle waits summed over foreground sessions, nanoseconds; none
    /// where an imported report does not say it.
    pub db_time_ns: Option<u64>,
    /// The CPU part of the DB time, nanoseconds: that outside waits; none as above.
    pub db_cpu_ns: Option<u64>,
    /// The command as it was typed.
    pub command_line: String,
    /// The seed of the workload's data and order.
    pub seed: u64,
    /// A hash over all settings: equal hashes are equal configurations.
    pub settings_hash: String,
    /// The clock that the times were read from.
    pub clock_source: Option<String>,
    /// The smallest step that this clock was seen to make, nanoseconds.
    pub clock_precision_ns: Option<u64>,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// CPUs that the process may run on, a count; none where an imported report does not say it.
    pub cpus: Option<u32>,
    /// CPUs that a control group's quota of CPU time amounts to, such as 0.5; none without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    /// The processor's model.
    pub cpu_model: String,
    /// Memory that the process may use, bytes; none where an imported report does not say it.
    pub memory_bytes: Option<u64>,
    /// Kernel name and release.
    pub kernel: String,
}

impl Header {
    /// Returns the DB time, nanoseconds; 0 where it is not known, which rows and shares print as blank.
    #[must_use]
    pub fn db_time(&self) -> u64 {
        self.db_time_ns.unwrap_or(0)
    }

    /// Returns the CPU part of the DB time, nanoseconds; 0 where it is not known.
    #[must_use]
    pub fn db_cpu(&self) -> u64 {
        self.db_cpu_ns.unwrap_or(0)
    }
}

impl Host {
    /// The processors in words: `4 CPUs`, `1 CPU, quota 0.2`.
    #[must_use]
    pub fn processors(&self) -> String {
        let quota = self.cpu_quota.map_or(String::new(), |quota| format!(", quota {quota}"));
        match self.cpus {
            Some(cpus) => format!("{cpus} CPU{}{quota}", if cpus == 1 { "" } else { "s" }),
            None => "an unknown number of CPUs".to_string(),
        }
    }
}

/// What lies under one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The directory that was asked about.
    pub path: String,
    /// File system type.
    pub filesystem: String,
    /// Mount options, comma-separated as the kernel gives them.
    pub mount_options: String,
    /// The block device's name.
    pub device: String,
    /// The model that the device reports.
    pub model: Option<String>,
    /// Why the device is held to be virtual; none for a physical one.
    pub virtual_reason: Option<String>,
    /// The write cache as the kernel states it: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether the device takes forced-unit-access writes.
    pub fua: Option<bool>,
    /// Whether the device says that it rotates.
    pub rotational: Option<bool>,
    /// Logical block size, bytes.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size, bytes.
    pub physical_block_bytes: Option<u64>,
    /// The request queue's limits.
    pub queue: QueueLimits,
    /// Direct I/O on this path.
    pub direct_io: DirectIoAnswer,
    /// io_uring on this host.
    pub io_uring: IoUringAnswer,
    /// True if the run opened its files past the page cache, false if it went through it; missing
    /// of a device that no run used, and in records from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_direct_io: Option<bool>,
    /// Layers below the file system that may answer without the disk, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
    /// The I/O method that the run used.
    pub io_method: String,
    /// Why that method.
    pub io_method_reason: String,
    /// What to know before believing a figure from this path.
    pub notes: Vec<String>,
}

/// The limits of a block device's request queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueLimits {
    /// The I/O scheduler.
    pub scheduler: Option<String>,
    /// Requests that the queue holds, a count.
    pub nr_requests: Option<u64>,
    /// The largest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Memory segments in one request, a count.
    pub max_segments: Option<u64>,
    /// Hardware queues, a count.
    pub hardware_queues: Option<u64>,
    /// Whether completions can be polled for.
    pub io_poll: Option<bool>,
}

/// Whether a path takes direct I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DirectIoAnswer {
    /// It does, with these alignments.
    Available {
        /// What a buffer's address must be a multiple of, bytes.
        memory_alignment_bytes: u64,
        /// What an offset and a length must be a multiple of, bytes.
        offset_alignment_bytes: u64,
    },
    /// It does not.
    Unavailable {
        /// The kernel's answer or the file system's nature.
        reason: String,
    },
}

/// Whether the host offers io_uring.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum IoUringAnswer {
    /// It does.
    Available {
        /// What the probe found to work.
        detail: String,
    },
    /// It does not.
    Unavailable {
        /// The kernel's answer.
        reason: String,
    },
}

/// What the device under the tables can do, by a calibration made before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DeviceLimits {
    /// There is one that holds for it.
    Calibrated(StoredCalibration),
    /// There is none.
    NotCalibrated {
        /// Why none that was found holds.
        reason: String,
        /// What to do.
        cure: String,
    },
}

/// A calibration made before, and where it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCalibration {
    /// The file it was read from.
    pub source: String,
    /// When it was made, ISO 8601.
    pub date: String,
    /// How long before the run that was, seconds; none where the date tells nothing.
    pub age_s: Option<u64>,
    /// What it measured: `quick`, `normal` and so on.
    pub mode: String,
    /// What speaks against it, a sentence each: it is IN DOUBT where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Sequential read, bytes a second, by one thread or by all, whichever was more.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// Sequential write, bytes a second, by one thread or by all, whichever was more.
    pub sequential_write_bytes_per_s: Option<f64>,
    /// Its main figures.
    pub figures: Vec<LimitFigure>,
}

/// A figure of a calibration, from repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFigure {
    /// Its name, such as `sequential_read`.
    pub name: String,
    /// The median, in `unit`.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end of its interval.
    pub high: f64,
    /// The unit.
    pub unit: String,
    /// Whether its repeats agreed.
    pub settled: bool,
    /// The point it was found at.
    pub at: String,
}

impl Record {
    /// The calibration that rates are held against.
    #[must_use]
    pub fn calibrated(&self) -> Option<&StoredCalibration> {
        match self.limits.as_ref()? {
            DeviceLimits::Calibrated(stored) => Some(stored),
            DeviceLimits::NotCalibrated { .. } => None,
        }
    }
}

/// The device's own limits, measured in the same run as the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLimits {
    /// The path that was measured.
    pub path: String,
    /// Sequential read, bytes a second: the median of several parts.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// The lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_low_bytes_per_s: Option<f64>,
    /// The upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_high_bytes_per_s: Option<f64>,
    /// Why no rate is held against it; none where its parts agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_unsettled: Option<String>,
    /// Median latency of one random 8K read with nothing else in flight, nanoseconds.
    pub random_read_8k_ns: Option<u64>,
    /// What the run reached of these limits.
    pub shares: Vec<LimitShare>,
}

/// A throughput against the limit that bounds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitShare {
    /// What was reached, such as `table reads while runs were formed`.
    pub what: String,
    /// What was reached, bytes a second.
    pub reached_bytes_per_s: f64,
    /// The limit's name, such as `the device's sequential read`.
    pub limit: String,
    /// The limit, bytes a second.
    pub limit_bytes_per_s: f64,
    /// The lower end of its interval; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_low_bytes_per_s: Option<f64>,
    /// The upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_high_bytes_per_s: Option<f64>,
}

impl LimitShare {
    /// The share that was reached, of the limit and of both ends of its interval: the largest last.
    #[must_use]
    pub fn shares(&self) -> (f64, Option<[f64; 2]>) {
        let of = |limit: f64| self.reached_bytes_per_s / limit.max(1.0);
        let ends = self.limit_high_bytes_per_s.zip(self.limit_low_bytes_per_s);
        (of(self.limit_bytes_per_s), ends.map(|(high, low)| [of(high), of(low)]))
    }
}

impl MeasuredLimits {
    /// The sequential read that rates may be held against; none where its parts did not agree.
    #[must_use]
    pub fn sequential_limit(&self) -> Option<f64> {
        self.sequential_read_bytes_per_s.filter(|_| self.sequential_read_unsettled.is_none())
    }
}

/// One statement about the result that was checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked, such as `index SALES_IX(STORE_ID, PROD_ID)`.
    pub name: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found.
    pub detail: String,
    /// Time the check took, nanoseconds.
    pub elapsed_ns: u64,
}

/// Evidence, from outside the code that applied a setting, that it took effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The setting's name.
    pub setting: String,
    /// The value that was asked for.
    pub asked: String,
    /// What was observed.
    pub evidence: String,
    /// What the evidence says about the setting.
    pub held: Held,
    /// Where that was seen.
    #[serde(default, skip_serializing_if = "Seen::is_outside")]
    pub seen: Seen,
}

/// Where what speaks for a setting was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// It was asked for, and nothing more is known.
    Asked,
    /// The program that was given it says so.
    Inside,
    /// By the kernel, or on the disk; what older records have is not told apart.
    #[default]
    Outside,
}

impl Seen {
    /// Whether it is what records need not say.
    #[must_use]
    pub fn is_outside(&self) -> bool {
        *self == Seen::Outside
    }
}

/// What the evidence says about a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The setting took effect.
    Held,
    /// The setting did not take effect: the run is invalid.
    Contradicted,
    /// Nothing could be observed.
    NotChecked,
}

/// What the figures mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What was seen.
    pub what: String,
    /// The figures that show it.
    pub evidence: String,
    /// What to try next; empty when there is nothing to do.
    pub advice: String,
}

/// A part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// The phase's name, such as `sort runs`.
    pub name: String,
    /// The operation it belongs to, such as `index build`.
    pub operation: String,
    /// Start, nanoseconds from the run's start.
    pub start_ns: u64,
    /// End, nanoseconds from the run's start.
    pub end_ns: u64,
    /// Rows that the phase handled, a count.
    pub rows: u64,
    /// Bytes that the phase read and wrote.
    pub bytes: u64,
    /// Which way they went, where all went the same; missing in records from before this was kept.
    #[serde(default)]
    pub direction: Option<Direction>,
}

/// Memory that was declared, and memory that was used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The parts of the budget that was fixed before the first row.
    pub areas: Vec<MemoryArea>,
    /// What the program itself may take beside the budget, bytes.
    pub overhead_bytes: Option<u64>,
    /// The process's largest resident set, bytes.
    pub peak_rss_bytes: Option<u64>,
}

impl Memory {
    /// All areas, bytes.
    #[must_use]
    pub fn declared_bytes(&self) -> u64 {
        total_of(self.areas.iter().map(|area| area.bytes))
    }

    /// What the peak may come to: the areas and the program itself, bytes.
    #[must_use]
    pub fn budget_bytes(&self) -> u64 {
        self.declared_bytes() + self.overhead_bytes.unwrap_or(0)
    }
}

/// One part of the memory budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryArea {
    /// The area's name, such as `Buffer Cache`.
    pub name: String,
    /// Its size, bytes.
    pub bytes: u64,
}

/// A row of the load profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// What is counted, with its unit, such as `DB Time(s)` or `Physical reads (MB)`.
    pub name: String,
    /// The total over the run in the unit that the name states.
    pub total: f64,
    /// Whether it counts whole things; false in records that were written before this was kept.
    #[serde(default)]
    pub is_count: bool,
}

/// CPU time of the whole host during the run, as the kernel counts it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCpu {
    /// User time over all CPUs, nanoseconds.
    pub user_ns: u64,
    /// System time with interrupts, nanoseconds.
    pub system_ns: u64,
    /// Idle with I/O outstanding, nanoseconds.
    pub iowait_ns: u64,
    /// Taken by the hypervisor for others, nanoseconds.
    pub steal_ns: u64,
    /// Idle, nanoseconds.
    pub idle_ns: u64,
    /// Load average over one minute at the start.
    pub load_begin: Option<f64>,
    /// Load average over one minute at the end.
    pub load_end: Option<f64>,
}

impl HostCpu {
    /// The time of all CPUs together, nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.system_ns + self.iowait_ns + self.steal_ns + self.idle_ns
    }
}

/// The name of the wait class whose events are no part of DB time.
pub const IDLE_CLASS: &str = "Idle";

/// What one kind of session waited for on one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitEvent {
    /// The event's name.
    pub event: String,
    /// Its wait class; [`IDLE_CLASS`] is no part of DB time.
    pub wait_class: String,
    /// Waits, a count.
    pub waits: u64,
    /// Time waited, nanoseconds.
    pub time_ns: u64,
    /// The longest wait, nanoseconds; none where an imported report does not say it.
    pub max_ns: Option<u64>,
    /// Waits by length: entry 0 counts those below 1 us, entry i those in [2^(i-1), 2^i) us; the last holds all above.
    pub histogram: Vec<u64>,
    /// The same within 3.2%, which quantiles are taken from; missing in records from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyHistogram>,
}

impl WaitEvent {
    /// Whether the time is no part of DB time.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.wait_class == IDLE_CLASS
    }
}

/// Where one session's time went. What is left of the elapsed time is printed as unaccounted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionTime {
    /// The session's name, such as `p000`.
    pub name: String,
    /// Its role, such as `PX sort server`.
    pub role: String,
    /// Foreground or background.
    pub kind: SessionKind,
    /// From its start to its end, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time that it used outside waits, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time that it used inside waits and that is a part of them, nanoseconds.
    #[serde(default)]
    pub wait_cpu_ns: u64,
    /// Time in waits that are not idle, nanoseconds.
    pub wait_ns: u64,
    /// Time in idle waits, nanoseconds.
    pub idle_ns: u64,
    /// Ready to run without a CPU, as the kernel's scheduler counts it outside waits, nanoseconds.
    pub run_queue_ns: Option<u64>,
}

impl SessionTime {
    /// Elapsed time that is neither CPU, nor a wait, nor the run queue, nanoseconds.
    /// It can fall below zero by the error of the CPU inside waits, which is estimated from some of them.
    #[must_use]
    pub fn unaccounted_ns(&self) -> i64 {
        let parts = [self.cpu_ns, self.wait_ns, self.idle_ns, self.run_queue_ns.unwrap_or(0)];
        let known = parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
        i64::try_from(i128::from(self.elapsed_ns) - i128::from(known)).unwrap_or(i64::MIN)
    }
}

/// A counter's growth over the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatisticRow {
    /// The statistic's name.
    pub name: String,
    /// Its growth, in `unit`.
    pub total: u64,
    /// The unit.
    pub unit: Unit,
}

/// Requests in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTally {
    /// Requests, a count.
    pub requests: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Service time summed over requests, nanoseconds: from the hand-over to the kernel to the [`Completion`].
    /// None where an imported report does not say it.
    pub time_ns: Option<u64>,
}

impl Default for IoTally {
    fn default() -> IoTally {
        IoTally { requests: 0, bytes: 0, time_ns: Some(0) }
    }
}

impl IoTally {
    /// Adds another tally of the same kind. The time of both is known if that of each is that moved anything.
    pub fn add(&mut self, next: &IoTally) {
        self.time_ns = match (self.requests, next.requests) {
            (_, 0) => self.time_ns,
            (0, _) => next.time_ns,
            _ => self.time_ns.zip(next.time_ns).map(|(one, two)| one + two),
        };
        self.requests += next.requests;
        self.bytes += next.bytes;
    }
}

/// When a request counts as complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When the system call that moved it returned.
    Exact,
    /// When its session saw it in a ring's completion queue, which may be long after.
    #[default]
    Seen,
}

/// The I/O of one block device during the run, by all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoDevice {
    /// The kernel's name of the disk or partition.
    pub device: String,
    /// Reads, after the kernel has split and merged them; their time is that in the block layer and the device.
    pub reads: IoTally,
    /// Writes, the same.
    pub writes: IoTally,
    /// Time with a request under way, nanoseconds; missing in records from before this was kept.
    #[serde(default)]
    pub busy_ns: Option<u64>,
    /// The same, weighted with how many there were, nanoseconds.
    #[serde(default)]
    pub weighted_ns: Option<u64>,
}

/// The I/O of one function (a stream, such as `Direct Reads temp`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoFunction {
    /// The function's name.
    pub function: String,
    /// Reads.
    pub reads: IoTally,
    /// Writes.
    pub writes: IoTally,
}

/// The I/O of one data file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoFile {
    /// The tablespace it belongs to.
    pub tablespace: String,
    /// The file's path.
    pub path: String,
    /// Reads.
    pub reads: IoTally,
    /// Writes.
    pub writes: IoTally,
}

/// Bytes over time. Give every report the same series in the same order, empty ones too: colours follow the order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoProfile {
    /// The length of a bucket, nanoseconds.
    pub bucket_ns: u64,
    /// The top of the vertical axis, MB/s (2^20 bytes); none takes the next round number above the data.
    pub y_max_mb_per_s: Option<f64>,
    /// The end of the time axis, seconds; none takes the run's elapsed time.
    pub x_max_s: Option<f64>,
    /// One stream each.
    pub series: Vec<ProfileSeries>,
}

/// One stream of the I/O profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileSeries {
    /// The stream's name, such as `table reads`.
    pub name: String,
    /// Whether its bytes came from the device or went to it.
    pub direction: Direction,
    /// Bytes moved in each bucket, the first at the run's start.
    pub bytes: Vec<u64>,
}

/// How long one kind of operation took, from its begin, or from when it was due where operations arrive by themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// What it does, such as `select`.
    pub operation: String,
    /// How often it took how long.
    pub latency: LatencyHistogram,
}

/// What the sort did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sort {
    /// Work areas that held all their rows, a count.
    pub optimal: u64,
    /// Work areas that spilled and merged once, a count.
    pub one_pass: u64,
    /// Work areas that merged more than once, a count.
    pub multi_pass: u64,
    /// Rows sorted, a count.
    pub rows: u64,
    /// Runs written, a count.
    pub runs: u64,
    /// Bytes of these runs, intermediate ones not counted.
    pub run_bytes: u64,
    /// Times each row was merged at most, a count.
    pub merge_passes: u64,
    /// Runs merged at once at most, a count.
    pub merge_width: u64,
    /// Merges before the final one, a count.
    pub intermediate_merges: u64,
    /// Cost of reading one block over the cost of each further block of a request; 0 when no merge depended on it.
    pub sort_read_fac: u64,
    /// Where that value came from.
    pub sort_read_fac_source: String,
    /// `sort_direct_writes` as it was asked for.
    pub sort_direct_writes: String,
    /// What it was resolved to.
    pub direct_writes_used: bool,
    /// Why.
    pub direct_writes_reason: String,
    /// The sort servers.
    pub servers: Vec<SortServerSummary>,
}

/// A parameter of the workload as the run had it, its default included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterRow {
    /// The parameter's name.
    pub name: String,
    /// Its value as it would be typed.
    pub value: String,
}

/// A setting as the run had it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingRow {
    /// The setting's name.
    pub name: String,
    /// Its value as it would be typed.
    pub value: String,
    /// What the log took where the value left that to it, as the method that `auto` came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Whether the value is the default.
    pub is_default: bool,
    /// Where a value other than the default was set, such as `--set`.
    pub source: String,
    /// One line of help.
    pub description: String,
}
