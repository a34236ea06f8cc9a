//! The record of a run: its measurements, the source of its report.
//!
//! Plain data: every figure is a measured total in a base unit, and the unit ends the field's name
//! (`_ns`, `_bytes`, `_bytes_per_s`). Derived rates, averages and percentages are left to the
//! document, so that a record cannot contradict itself. Times within the run count from its start;
//! times of day are formatted already. `docs/record.md` describes it.
//!
//! Optional fields are facts that a host may not report. They are printed as missing and are never
//! guessed.

mod beside;
mod build;
pub mod calendar;
mod circumstance;
mod device;
pub mod figures;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod imported;
mod interval;
mod io_stats;
mod json;
mod log_io;
mod mix;
pub mod operation;
pub mod outside;
pub mod plan;
mod receipt;
mod scan;
mod session_snapshot;
pub mod share;
mod snoop;
pub mod trace;
mod trace_summary;
mod users;
mod validity;

pub use beside::{Beside, DeviceSample, DeviceTally, MemorySample, Sample};
pub use build::Build;
pub use circumstance::{Circumstance, Fact, capital, headline};
pub use imported::{
    Consistency, ConsistencyTally, Consistent, Imported, ImportedAnswer, ImportedFact, ImportedFigure,
    ImportedSection,
};
pub use interval::{Interval, Period};
pub use io_stats::{
    BufferWaits, IoFile, IoFunction, IoGroup, IoSize, KernelIo, LargeRequests, PoolBlocks, PoolStats,
    TablespaceShape, TablespaceStats,
};
pub use json::RecordError;
pub use log_io::{LogIo, LogPattern};
pub use mix::{MixLimit, MixRate, is_near_mix};
pub use receipt::{Held, Receipt, ReceiptReading, Receipts, Ruling, Seen, Shift};
pub use scan::{ColumnSum, Scan, ScanInstance};
pub use session_snapshot::SessionSnapshot;
pub use snoop::{
    RequestSizes, Snoop, SnoopAmplification, SnoopBuffer, SnoopCalls, SnoopDepth, SnoopMap, SnoopPart,
    SnoopPattern, SnoopPlace, SnoopRequests,
};
pub use trace_summary::{TraceBucket, TracePoint, TraceSession, TraceSummary};
pub use users::{SessionsTime, Users, UsersPart};
pub use validity::{RunState, Validity};

pub use plumb_host::readings::ProcessUse;

use plumb_events::{Direction, LatencyHistogram, SessionKind, SortServerSummary, Unit};
use plumb_units::total_of;
use serde::{Deserialize, Serialize};

/// Name of the record's file in the bundle of a run.
pub const FILE: &str = "record.json";
/// Name of the fio job with the run's own mix.
pub const FIO_JOB: &str = "mix.fio";
/// Name of the CSV file with the samples of the machine.
pub const BESIDE: &str = "beside.csv";
/// Version of the record; it grows when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 2;
/// The oldest version that is read. Version 1 included the CPU inside waits both in DB CPU and in
/// the waits, and had no times of devices. Its other figures have the same meaning.
pub const SCHEMA_VERSION_OLDEST: u32 = 1;

/// All data of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the record: [`SCHEMA_VERSION`] when written by this crate.
    pub schema_version: u32,
    /// Workload, program, machine and times of the run.
    pub header: Header,
    /// The covered part of a run; `None` for a whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// Device under each distinct path that the run used.
    pub devices: Vec<Device>,
    /// The device's own limits, measured in the same run.
    pub calibration: Option<MeasuredLimits>,
    /// Limits of the tables' device from a stored calibration, or the reason why there are
    /// none. Missing without a device.
    #[serde(default)]
    pub limits: Option<DeviceLimits>,
    /// The device's rate for the workload's own mix of reads and writes; missing without a mix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mix: Option<MixLimit>,
    /// Time for which the processes were stopped or the machine was suspended during the
    /// measurement; missing if neither occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ns: Option<u64>,
    /// Judged use of the machine by others, and caches that answered instead of the
    /// device. Missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Vec<Circumstance>>,
    pub checks: Vec<Check>,
    /// Evidence that each setting took effect.
    pub receipts: Vec<Receipt>,
    /// Figures of receipts by which the evidence of two runs is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ReceiptReading>,
    /// Conclusions from the figures, with advice.
    pub findings: Vec<Finding>,
    /// The parts of the run in the order of their start.
    pub phases: Vec<Phase>,
    /// Declared memory and used memory.
    pub memory: Memory,
    /// Rows of the load profile in printing order.
    pub load_profile: Vec<LoadRow>,
    /// CPU time of the whole host during the run.
    pub host_cpu: Option<HostCpu>,
    /// Resources used by the process during the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessUse>,
    /// Wait events of foreground sessions, in any order, idle ones included.
    pub foreground_events: Vec<WaitEvent>,
    /// Wait events of background processes, in any order, idle ones included.
    pub background_events: Vec<WaitEvent>,
    /// Samples behind the events, if their times are estimates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Parts of each session's time.
    pub sessions: Vec<SessionTime>,
    /// Figures of the session that did the work, if it was a single one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionSnapshot>,
    /// Counters of the period, in any order.
    pub statistics: Vec<StatisticRow>,
    /// Requests and bytes by stream and function.
    pub io_functions: Vec<IoFunction>,
    /// Requests and bytes by data file.
    pub io_files: Vec<IoFile>,
    /// Bytes between this process and devices, counted by the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_io: Option<KernelIo>,
    /// Block and extent sizes of the tablespaces; empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tablespaces: Vec<TablespaceShape>,
    /// Buffer caches by block size; empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffer_pools: Vec<PoolStats>,
    /// The block devices under the paths, counted by the kernel for all processes.
    #[serde(default)]
    pub io_devices: Vec<IoDevice>,
    /// End of the times in `io_functions` and `io_files`.
    #[serde(default)]
    pub completion: Completion,
    pub io_profile: IoProfile,
    /// Samples of the machine, once a second; `None` without a sampler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Intervals between consecutive snapshots; empty if none were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// Response times of the workload's operations, if it has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<Response>,
    /// The sort, if the workload has one.
    pub sort: Option<Sort>,
    /// Full scans, if the workload has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<Scan>,
    /// Users that read while the work ran, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<Users>,
    /// The log, if the workload has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogIo>,
    /// Sums of the request trace, if one was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceSummary>,
    /// Parameters of the workload, in the order of its table. Empty if it takes
    /// none, and in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<ParameterRow>,
    /// Every setting with its value in the run, in printing order.
    pub settings: Vec<SettingRow>,
    /// Figures other than statistics of an engine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasuredFigure>,
    /// The command, if the run was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandRun>,
    /// Plan of the work as the database printed it, of a further execution with times; only the
    /// warm-up runs of a study have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Sizes of the requests of that execution, on a server that was made for the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_sizes: Option<RequestSizes>,
    /// The report of another program that the record was read from; none for a run of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
    /// Sums of a trace of other programs; none for a run of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoop: Option<Snoop>,
    /// Database server that did the work, such as `PostgreSQL 15.18`; none for the embedded engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

impl Record {
    /// Returns the number of transactions ended; `None` if there were none.
    pub fn transactions(&self) -> Option<u64> {
        let ended = ["user commits", "user rollbacks"];
        let ended = self.statistics.iter().filter(|statistic| ended.contains(&statistic.name.as_str()));
        Some(total_of(ended.map(|statistic| statistic.total))).filter(|count| *count > 0)
    }
}

/// A figure measured by the target itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFigure {
    pub name: String,
    /// The figure, in the unit of `unit`.
    pub value: f64,
    /// Unit as it is printed; empty for a plain number.
    pub unit: String,
}

/// A file with the hash of its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HashedFile {
    pub path: String,
    /// SHA-256 in hexadecimal; `None` if the file cannot be read.
    pub sha256: Option<String>,
}

/// A file that a command had open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedFile {
    pub path: String,
    /// Flags of open(2), of all times it was open, as octal digits.
    pub flags: String,
}

/// A command as it was started, with observations from outside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandRun {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Variables set for it, each as NAME=value.
    pub environment: Vec<String>,
    /// Random number of bytes added to its environment.
    pub padding_bytes: u64,
    /// Hash of everything it was given: contents of executables
    /// and named files, arguments, environment.
    pub treatment: String,
    /// The executables of its processes.
    pub executables: Vec<HashedFile>,
    /// Files that the study names, and those that it wrote.
    pub files: Vec<HashedFile>,
    /// Paths of libraries that were mapped.
    pub libraries: Vec<String>,
    /// Files observed to be open.
    pub opened: Vec<OpenedFile>,
    /// Sockets observed to be open: the work of a server for it is in no other figure.
    #[serde(default)]
    pub sockets: u64,
    pub rings: u64,
    /// Requests that the kernel took from the rings, as far as observed.
    pub ring_requests: u64,
    pub processes: u64,
    /// Largest number of threads at once.
    pub threads_max: u64,
    /// Number of samples while it lived.
    pub looks: u64,
    /// Peak resident set of its largest process in the samples, bytes.
    pub peak_seen_bytes: u64,
    /// Bytes requested by read calls.
    pub asked_read_bytes: Option<u64>,
    /// Bytes passed to write calls.
    pub asked_written_bytes: Option<u64>,
    /// Bytes that the kernel read from a device for it.
    pub device_read_bytes: Option<u64>,
    /// Bytes that the kernel sent to a device for it.
    pub device_written_bytes: Option<u64>,
    /// Flushes of the devices during the run, by all processes; `None` without a known device.
    pub flushes: Option<u64>,
    /// Exit status, or the signal that ended it.
    pub status: String,
    /// Standard output, with the middle cut if it is long.
    pub output: String,
    /// Standard error, with the middle cut if it is long.
    pub errors: String,
}

impl Record {
    /// A record with only its header.
    pub fn of(header: Header) -> Record {
        Record { schema_version: SCHEMA_VERSION, header, ..Record::default() }
    }
}

/// Workload, program, machine and times: the provenance of every figure in the report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The report's first line, such as `PLUMB REPORT  Workload: large-sort`.
    pub title: String,
    pub workload: String,
    /// Version of the program that ran it.
    pub plumb_version: String,
    /// Revision of the sources built; `None` if unknown.
    pub git_revision: Option<String>,
    /// Profile that the program was compiled with, and the engine's opt-level if that is low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    pub host: Host,
    /// Start of the run, ISO 8601.
    pub begin_time: String,
    /// End of the run, ISO 8601.
    pub end_time: String,
    /// Wall-clock time of the run, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU outside waits and non-idle waits, summed over foreground sessions, nanoseconds.
    pub db_time_ns: Option<u64>,
    /// The CPU part of the DB time, nanoseconds: that outside waits; none as above.
    pub db_cpu_ns: Option<u64>,
    /// The command as it was typed.
    pub command_line: String,
    /// Seed of the workload's data and order; none where an imported report has no workload of
    /// this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Hash of all settings: equal hashes are equal configurations.
    pub settings_hash: String,
    /// The clock that the times were read from.
    pub clock_source: Option<String>,
    /// Smallest observed step of this clock, nanoseconds.
    pub clock_precision_ns: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    pub name: String,
    /// CPUs that the process may run on, a count; none where an imported report does not say it.
    pub cpus: Option<u32>,
    /// CPUs that a control group's quota of CPU time amounts to, such as 0.5; none without a quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_quota: Option<f64>,
    pub cpu_model: String,
    /// Memory that the process may use, bytes; none where an imported report does not say it.
    pub memory_bytes: Option<u64>,
    pub kernel: String,
}

impl Header {
    /// Returns the DB time, nanoseconds; 0 if it is unknown, which rows and shares print as blank.
    pub fn db_time(&self) -> u64 {
        self.db_time_ns.unwrap_or(0)
    }

    /// Returns the CPU part of the DB time, nanoseconds; 0 where it is not known.
    pub fn db_cpu(&self) -> u64 {
        self.db_cpu_ns.unwrap_or(0)
    }
}

impl Host {
    /// Describes the processors: `4 CPUs`, `1 CPU, quota 0.2`.
    pub fn processors(&self) -> String {
        let quota = self.cpu_quota.map_or(String::new(), |quota| format!(", quota {quota}"));
        match self.cpus {
            Some(cpus) => format!("{cpus} CPU{}{quota}", if cpus == 1 { "" } else { "s" }),
            None => "an unknown number of CPUs".to_string(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The directory that the run used.
    pub path: String,
    pub filesystem: String,
    /// Mount options, comma-separated as the kernel prints them.
    pub mount_options: String,
    pub device: String,
    /// Model reported by the device.
    pub model: Option<String>,
    /// Reason to consider the device virtual; `None` for a physical one.
    pub virtual_reason: Option<String>,
    /// Write cache as the kernel reports it: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// True if the device supports forced-unit-access writes.
    pub fua: Option<bool>,
    /// True if the device reports rotation.
    pub rotational: Option<bool>,
    pub logical_block_bytes: Option<u64>,
    pub physical_block_bytes: Option<u64>,
    pub queue: QueueLimits,
    /// Support of direct I/O on this path.
    pub direct_io: DirectIoAnswer,
    /// Support of io_uring on this host.
    pub io_uring: IoUringAnswer,
    /// True if the run's files bypassed the page cache. Missing for a device without a
    /// run, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_direct_io: Option<bool>,
    /// Layers below the file system that may answer without the disk, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<String>,
    /// The I/O method that the run used.
    pub io_method: String,
    /// Reason for the I/O method.
    pub io_method_reason: String,
    /// Caveats about figures from this path.
    pub notes: Vec<String>,
}

/// Limits of a block device's request queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueLimits {
    pub scheduler: Option<String>,
    /// Number of requests that the queue holds.
    pub nr_requests: Option<u64>,
    /// Size of the largest request, KiB.
    pub max_sectors_kb: Option<u64>,
    /// Number of memory segments in one request.
    pub max_segments: Option<u64>,
    pub hardware_queues: Option<u64>,
    /// True if completions can be polled.
    pub io_poll: Option<bool>,
}

/// Support of direct I/O on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DirectIoAnswer {
    /// Direct I/O works, with these alignments.
    Available {
        /// Alignment of a buffer's address, bytes.
        memory_alignment_bytes: u64,
        /// Alignment of an offset and a length, bytes.
        offset_alignment_bytes: u64,
    },
    Unavailable {
        /// The kernel's answer or the file system's nature.
        reason: String,
    },
}

/// Support of io_uring on the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum IoUringAnswer {
    Available {
        /// Features that the probe found to work.
        detail: String,
    },
    Unavailable {
        /// The kernel's error, in words.
        reason: String,
    },
}

/// Limits of the tables' device from an earlier calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum DeviceLimits {
    Calibrated(StoredCalibration),
    NotCalibrated {
        /// Reason why no calibration found is valid.
        reason: String,
        /// Advice for getting a valid one.
        cure: String,
    },
}

/// An earlier calibration, with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredCalibration {
    /// The file it was read from.
    pub source: String,
    /// Date of the calibration, ISO 8601.
    pub date: String,
    /// Age at the run's start, seconds; `None` if the date cannot be parsed.
    pub age_s: Option<u64>,
    /// Extent of the calibration: `quick`, `normal` and so on.
    pub mode: String,
    /// Objections to it, a sentence each: any of them puts it IN DOUBT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Sequential read, bytes per second, by one thread or by all, whichever was more.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// Sequential write, bytes per second, by one thread or by all, whichever was more.
    pub sequential_write_bytes_per_s: Option<f64>,
    pub figures: Vec<LimitFigure>,
}

/// A figure of a calibration, from repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitFigure {
    /// Key of the figure, such as `sequential_read`.
    pub name: String,
    /// The median, in the unit of `unit`.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    pub unit: String,
    /// True if its repeats agreed.
    pub settled: bool,
    /// The point that gave the figure.
    pub at: String,
}

impl Record {
    /// Returns the calibration that rates are compared with.
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
    /// Sequential read, bytes per second: the median of several parts.
    pub sequential_read_bytes_per_s: Option<f64>,
    /// Lower end of its interval, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_low_bytes_per_s: Option<f64>,
    /// Upper end of its interval, bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_high_bytes_per_s: Option<f64>,
    /// Reason why no rate is compared with it; `None` if its parts agreed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential_read_unsettled: Option<String>,
    /// Median latency of one random 8K read with nothing else in flight, nanoseconds.
    pub random_read_8k_ns: Option<u64>,
    /// Shares of these limits that the run reached.
    pub shares: Vec<LimitShare>,
}

/// A throughput with the limit that bounds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitShare {
    /// Name of the throughput, such as `table reads while runs were formed`.
    pub what: String,
    /// The throughput, bytes per second.
    pub reached_bytes_per_s: f64,
    /// Name of the limit, such as `the device's sequential read`.
    pub limit: String,
    /// The limit, bytes per second.
    pub limit_bytes_per_s: f64,
    /// Lower end of its interval; `None` without an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_low_bytes_per_s: Option<f64>,
    /// Upper end of its interval; `None` without an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_high_bytes_per_s: Option<f64>,
}

impl LimitShare {
    /// Returns the share of the limit, and those of both ends of its interval, the largest last.
    pub fn shares(&self) -> (f64, Option<[f64; 2]>) {
        let of = |limit: f64| self.reached_bytes_per_s / limit.max(1.0);
        let ends = self.limit_high_bytes_per_s.zip(self.limit_low_bytes_per_s);
        (of(self.limit_bytes_per_s), ends.map(|(high, low)| [of(high), of(low)]))
    }
}

impl MeasuredLimits {
    /// Returns the sequential read as a limit; `None` if its parts did not agree.
    pub fn sequential_limit(&self) -> Option<f64> {
        self.sequential_read_bytes_per_s.filter(|_| self.sequential_read_unsettled.is_none())
    }
}

/// A checked statement about the result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Subject of the check, such as `index SALES_IX(STORE_ID, PROD_ID)`.
    pub name: String,
    pub passed: bool,
    pub detail: String,
    /// Time of the check, nanoseconds.
    pub elapsed_ns: u64,
}

/// Samples of a program's wait events. Their times are shares of exact times off CPU, and
/// `waits` of an event counts samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Mean time between two samples, nanoseconds.
    pub interval_ns: u64,
    pub samples: u64,
    /// Number of samples that were taken late.
    pub late: u64,
    /// CPU time that sampling cost, nanoseconds.
    pub cost_ns: u64,
    /// Standard error of each foreground event's time.
    pub errors: Vec<SamplingError>,
}

/// Standard error of the time of an event, from its number of samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplingError {
    pub event: String,
    pub error_ns: u64,
}

/// A conclusion from the figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the rule, such as `R7`; empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// The conclusion, in a sentence.
    pub what: String,
    /// The figures that show it.
    pub evidence: String,
    /// Advice; empty if there is nothing to do.
    pub advice: String,
    /// Reason for which the conclusion may be wrong; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub caveat: String,
    /// DB time that could be saved at most, nanoseconds; none where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saves_ns: Option<u64>,
    /// Command of the study that would prove it; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub study: String,
}

/// A part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name of the phase, such as `sort runs`.
    pub name: String,
    /// Operation of the phase, such as `index build`.
    pub operation: String,
    /// Start, nanoseconds from the run's start.
    pub start_ns: u64,
    /// End, nanoseconds from the run's start.
    pub end_ns: u64,
    /// Number of rows that the phase processed.
    pub rows: u64,
    /// Bytes that the phase read and wrote.
    pub bytes: u64,
    /// Direction of all bytes, if there is only one; missing in older records.
    #[serde(default)]
    pub direction: Option<Direction>,
}

/// Declared memory and used memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Parts of the budget that was fixed before the first row.
    pub areas: Vec<MemoryArea>,
    /// Memory of the program itself besides the budget, bytes.
    pub overhead_bytes: Option<u64>,
    /// Largest resident set of the process, bytes.
    pub peak_rss_bytes: Option<u64>,
}

impl Memory {
    /// Sum of all areas, bytes.
    pub fn declared_bytes(&self) -> u64 {
        total_of(self.areas.iter().map(|area| area.bytes))
    }

    /// Limit of the peak: the areas and the program itself, bytes.
    pub fn budget_bytes(&self) -> u64 {
        self.declared_bytes() + self.overhead_bytes.unwrap_or(0)
    }
}

/// One part of the memory budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryArea {
    pub name: String,
    pub bytes: u64,
}

/// A row of the load profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Quantity with its unit, such as `DB Time(s)` or `Physical reads (MB)`.
    pub name: String,
    /// Total over the run, in the unit that the name states.
    pub total: f64,
    /// True if it counts whole things; false in older records.
    #[serde(default)]
    pub is_count: bool,
}

/// CPU time of the whole host during the run, counted by the kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostCpu {
    /// User time over all CPUs, nanoseconds.
    pub user_ns: u64,
    /// System time with interrupts, nanoseconds.
    pub system_ns: u64,
    /// Idle with I/O outstanding, nanoseconds.
    pub iowait_ns: u64,
    /// Given to other guests by the hypervisor, nanoseconds.
    pub steal_ns: u64,
    /// Idle without I/O outstanding, nanoseconds.
    pub idle_ns: u64,
    /// Load average over one minute at the start.
    pub load_begin: Option<f64>,
    /// Load average over one minute at the end.
    pub load_end: Option<f64>,
}

impl HostCpu {
    /// Time of all CPUs together, nanoseconds.
    pub fn total_ns(&self) -> u64 {
        self.user_ns + self.system_ns + self.iowait_ns + self.steal_ns + self.idle_ns
    }
}

/// Name of the wait class excluded from DB time.
pub const IDLE_CLASS: &str = "Idle";

/// Waits of one kind of session for one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitEvent {
    pub event: String,
    /// Wait class; [`IDLE_CLASS`] is excluded from DB time.
    pub wait_class: String,
    pub waits: u64,
    pub time_ns: u64,
    pub max_ns: Option<u64>,
    /// Waits by length: entry 0 counts those below 1 us, entry i those in [2^(i-1), 2^i) us. The
    /// last entry has no upper end.
    pub histogram: Vec<u64>,
    /// Waits by length within 3.2%, for quantiles; missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyHistogram>,
}

impl WaitEvent {
    /// True if the time is excluded from DB time.
    pub fn is_idle(&self) -> bool {
        self.wait_class == IDLE_CLASS
    }
}

/// Parts of one session's time; the remainder is printed as unaccounted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionTime {
    /// Name of the session, such as `p000`.
    pub name: String,
    /// Role such as `PX sort server`.
    pub role: String,
    pub kind: SessionKind,
    /// From its start to its end, nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time used outside waits, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time used inside waits, which is part of them, nanoseconds.
    #[serde(default)]
    pub wait_cpu_ns: u64,
    /// Time in waits that are not idle, nanoseconds.
    pub wait_ns: u64,
    /// Time in idle waits, nanoseconds.
    pub idle_ns: u64,
    /// Time ready to run without a CPU outside waits, from the kernel's scheduler, nanoseconds.
    pub run_queue_ns: Option<u64>,
}

impl SessionTime {
    /// Elapsed time that is neither CPU, nor a wait, nor the run queue, nanoseconds. It may be
    /// negative, because the CPU inside waits is an estimate from some of them.
    pub fn unaccounted_ns(&self) -> i64 {
        let parts = [self.cpu_ns, self.wait_ns, self.idle_ns, self.run_queue_ns.unwrap_or(0)];
        let known = parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
        i64::try_from(i128::from(self.elapsed_ns) - i128::from(known)).unwrap_or(i64::MIN)
    }
}

/// Growth of a counter over the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatisticRow {
    pub name: String,
    /// Growth of the counter, in `unit`.
    pub total: u64,
    pub unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTally {
    pub requests: u64,
    pub bytes: u64,
    /// Service time summed over requests, nanoseconds: from the call of the kernel to the
    /// [`Completion`]. `None` if an imported report lacks it.
    pub time_ns: Option<u64>,
}

impl Default for IoTally {
    fn default() -> IoTally {
        IoTally { requests: 0, bytes: 0, time_ns: Some(0) }
    }
}

impl IoTally {
    /// Adds another tally of the same kind. The sum's time is known if each
    /// tally with requests has one.
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

/// Moment at which a request counts as complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When the system call that moved it returned.
    Exact,
    /// When its session read it from a ring's completion queue, which may be long after.
    #[default]
    Seen,
}

/// I/O of one block device during the run, by all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoDevice {
    /// The kernel's name of the disk or partition.
    pub device: String,
    /// Reads after the kernel's splits and merges, with their time in the
    /// block layer and the device.
    pub reads: IoTally,
    /// Writes after the kernel's splits and merges.
    pub writes: IoTally,
    /// Time with a request in flight, nanoseconds; missing in older records.
    #[serde(default)]
    pub busy_ns: Option<u64>,
    /// Time in flight summed over requests, nanoseconds.
    #[serde(default)]
    pub weighted_ns: Option<u64>,
}

/// Bytes over time. Every report must have the same series in the same order, empty ones too,
/// because their index chooses the colour.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IoProfile {
    /// Length of a bucket, nanoseconds.
    pub bucket_ns: u64,
    /// Top of the vertical axis, MB/s (2^20 bytes); `None` is the next round number above the data.
    pub y_max_mb_per_s: Option<f64>,
    /// End of the time axis, seconds; `None` is the run's elapsed time.
    pub x_max_s: Option<f64>,
    pub series: Vec<ProfileSeries>,
}

/// One stream of the I/O profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileSeries {
    /// Name of the stream, such as `table reads`.
    pub name: String,
    /// Read if its bytes came from the device.
    pub direction: Direction,
    /// Bytes moved in each bucket, the first at the run's start.
    pub bytes: Vec<u64>,
}

/// Response times of one kind of operation, from its start, or from its due time if
/// operations arrive at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// Kind of operation, such as `select`.
    pub operation: String,
    pub latency: LatencyHistogram,
    /// Time in which these operations were done, nanoseconds; the run's if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sort {
    /// Number of work areas that held all their rows.
    pub optimal: u64,
    /// Number of work areas that spilled and merged once.
    pub one_pass: u64,
    /// Number of work areas that merged more than once.
    pub multi_pass: u64,
    pub rows: u64,
    pub runs: u64,
    /// Bytes of these runs, without intermediate ones.
    pub run_bytes: u64,
    /// Largest number of merges of a row.
    pub merge_passes: u64,
    /// Largest number of runs merged at once.
    pub merge_width: u64,
    /// Number of merges before the final one.
    pub intermediate_merges: u64,
    /// Cost of reading one block over the cost of each further block of a request; 0 if
    /// no merge depended on it.
    pub sort_read_fac: u64,
    pub sort_read_fac_source: String,
    /// Value of `sort_direct_writes` as requested.
    pub sort_direct_writes: String,
    /// The effective value of `sort_direct_writes`.
    pub direct_writes_used: bool,
    /// Reason for the effective value.
    pub direct_writes_reason: String,
    pub servers: Vec<SortServerSummary>,
    /// Builds at the same time, if there were several; `servers` has those of all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sorters: Vec<SortBuild>,
}

/// One of several sorts at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SortBuild {
    pub index: String,
    pub elapsed_ns: u64,
    pub servers: u64,
    /// Memory that its servers got, bytes.
    pub area_bytes: u64,
    pub rows: u64,
    pub runs: u64,
    /// Bytes of all runs that it wrote.
    pub run_bytes: u64,
    /// Largest number of merges of a row.
    pub merge_passes: u64,
    /// Largest number of runs merged at once.
    pub merge_width: u64,
    pub intermediate_merges: u64,
}

/// A parameter of the workload with its value in the run, defaults included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParameterRow {
    pub name: String,
    /// Value as it would be typed.
    pub value: String,
}

/// A setting with its value in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SettingRow {
    pub name: String,
    /// Value as it would be typed.
    pub value: String,
    /// The log's choice for a value that left it to the log, such as the method for `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// True if the value is the default.
    pub is_default: bool,
    /// Source of a value other than the default, such as `--set`.
    pub source: String,
    pub description: String,
}
