//! What a calibration's report is made from.
//!
//! Plain data, like a run's context: the unit ends a field's name. Estimates are what
//! whoever measured made of repeats; nothing is estimated here. What was not measured
//! is an empty list or `None`, and has no section.

use crate::record::{Device, Host};
use serde::{Deserialize, Serialize};

/// The version of [`CalibrationContext`]; a field's new meaning is a new version.
pub const CALIBRATION_SCHEMA_VERSION: u32 = 1;

/// Everything one calibration's report says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationContext {
    /// [`CALIBRATION_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What was measured, how, where and when.
    pub header: CalibrationHeader,
    /// What lies under the path.
    pub device: Device,
    /// The main figures in printing order.
    pub figures: Vec<MainFigure>,
    /// Latency over throughput, one curve a mix of reads and writes.
    pub curves: Vec<Curve>,
    /// Rates of requests large enough to be counted in MB/s.
    pub transfers: Vec<Transfer>,
    /// Small and large requests at the same time.
    pub matrix: Option<LoadMatrix>,
    /// What a durable write costs.
    pub durable: Vec<DurableWrite>,
    /// Whether a durable write can have been durable, in one line.
    pub plausibility: Option<String>,
    /// The same requests by every I/O method, one ladder a size.
    pub ladders: Vec<Ladder>,
    /// Why processor cycles are not counted; none where they are.
    pub cycles_refused: Option<String>,
    /// What a read costs by its size.
    pub read_cost: Option<ReadCost>,
    /// Every point, with what answered it.
    pub points: Vec<MeasuredPoint>,
    /// What would have been measured, and why it was not.
    pub refused: Vec<RefusedPoint>,
    /// Another load that was seen on the device, in one line.
    pub other_load: Option<String>,
    /// What limits the meaning of the figures, a sentence each.
    pub warnings: Vec<String>,
}

/// What was measured, how, where and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationHeader {
    /// The report's first line.
    pub title: String,
    /// The version of the program.
    pub plumb_version: String,
    /// The machine.
    pub host: Host,
    /// When it began, ISO 8601.
    pub begin_time: String,
    /// The command as it was typed.
    pub command_line: String,
    /// What was measured: `quick`, `normal` and so on.
    pub mode: String,
    /// The seed of orders, places and data.
    pub seed: u64,
    /// The I/O method of all points but the ladders'.
    pub method: String,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// The length of the file.
    pub file_bytes: u64,
    /// The bytes of a small request.
    pub small_bytes: u64,
    /// The bytes of a large request.
    pub large_bytes: u64,
    /// How long each repeat was measured.
    pub repeat_ns: u64,
    /// Repeats of all points, a count.
    pub repeats: u64,
    /// How long it took in all.
    pub elapsed_ns: u64,
}

/// A figure from repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the repeats.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The interval's confidence, 0 to 1; none: it is the range of too few repeats.
    pub confidence: Option<f64>,
    /// Repeats, a count.
    pub repeats: u64,
    /// Why it has not settled; none: it has.
    pub unsettled: Option<String>,
}

/// A main figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MainFigure {
    /// Its name.
    pub name: String,
    /// The unit of its number.
    pub unit: String,
    /// Its number.
    pub estimate: Estimate,
    /// The point it was found at.
    pub at: String,
    /// Whether it is one of the few to read first.
    pub headline: bool,
}

/// Small random requests of one mix at several depths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The mix, such as `reads`.
    pub name: String,
    /// One a depth, ascending; a depth may be there for one thread and for several.
    pub points: Vec<CurvePoint>,
}

/// One depth of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Requests outstanding, a count.
    pub depth: u64,
    /// Threads that they are spread over, a count.
    pub threads: u64,
    /// Requests a second.
    pub iops: Estimate,
    /// The latency.
    pub latency_us: LatencyPercentiles,
    /// Whether it is the first, by depth and then by threads, that saturates the device.
    pub saturates: bool,
}

/// A latency's percentiles, microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyPercentiles {
    /// Half of the requests took at most so long.
    pub p50: Estimate,
    /// Nine in ten.
    pub p90: Estimate,
    /// 99 in a hundred.
    pub p99: Estimate,
    /// 999 in a thousand.
    pub p999: Estimate,
    /// The longest of all.
    pub max: f64,
}

/// The rate of requests of one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// What was asked for, such as `1M sequential read x8`.
    pub what: String,
    /// The bytes of each request.
    pub request_bytes: u64,
    /// Requests outstanding, a count.
    pub depth: u64,
    /// Threads, a count.
    pub threads: u64,
    /// MB (2^20 bytes) a second.
    pub mb_per_s: Estimate,
}

/// Small and large requests at the same time, as ORION lays them out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadMatrix {
    /// Numbers of small requests, the columns.
    pub small: Vec<u64>,
    /// Numbers of large requests, the rows.
    pub large: Vec<u64>,
    /// The cells that were measured.
    pub cells: Vec<MatrixCell>,
}

/// One cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixCell {
    /// Large requests outstanding, a count.
    pub large: u64,
    /// Small requests outstanding, a count.
    pub small: u64,
    /// Small requests a second; none in column 0.
    pub iops: Option<Estimate>,
    /// Mean latency of small requests, milliseconds; none in column 0.
    pub latency_ms: Option<Estimate>,
    /// MB (2^20 bytes) a second of large requests; none in row 0.
    pub mb_per_s: Option<Estimate>,
}

/// A durable write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DurableWrite {
    /// The bytes of each write.
    pub request_bytes: u64,
    /// How durability was asked for, such as `fdatasync`.
    pub method: String,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// Whether the log was written with zeros before; false: it was merely allocated.
    pub zeroed: bool,
    /// The median time of a write, microseconds.
    pub p50_us: Estimate,
    /// 99 in a hundred took at most so long, microseconds.
    pub p99_us: Estimate,
    /// What made it durable, or did not.
    pub source: Source,
}

/// The same requests by every I/O method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// The requests, such as `8K random read x32`.
    pub requests: String,
    /// The methods, plainest first.
    pub rungs: Vec<Rung>,
}

/// One method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Rung {
    /// It works.
    Measured {
        /// The method, or what it adds to the one above.
        name: String,
        /// Requests a second.
        iops: Estimate,
        /// Processor time a request, microseconds.
        cpu_us: Estimate,
        /// Processor cycles a request; none where nothing counts them.
        cycles: Option<Estimate>,
        /// What must be known beside the figures.
        note: Option<String>,
    },
    /// It was not measured.
    Refused {
        /// The method, or what it adds to the one above.
        name: String,
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
}

/// What a read costs: t(bytes) = start + bytes / rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadCost {
    /// What it costs before its first byte, microseconds.
    pub start_us: Estimate,
    /// MB (2^20 bytes) a second once it runs.
    pub mb_per_s: Estimate,
    /// The times that the line goes through.
    pub measured: Vec<ReadTime>,
    /// What follows for a merge, in one line.
    pub consequence: String,
}

/// The mean time of reads of one size, nothing else in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadTime {
    /// The bytes of the read.
    pub request_bytes: u64,
    /// Its time, microseconds.
    pub mean_us: Estimate,
}

/// A point and what answered it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredPoint {
    /// What was asked for.
    pub what: String,
    /// Whether it was to bypass the page cache.
    pub direct: bool,
    /// Requests a second, of its first load.
    pub iops: Estimate,
    /// The median latency, microseconds.
    pub p50_us: f64,
    /// 99 in a hundred took at most so long, microseconds.
    pub p99_us: f64,
    /// Processor time a request, microseconds.
    pub cpu_us: Option<f64>,
    /// Bytes at the device as a share of those asked for; none where nobody counts them.
    pub device_share: Option<f64>,
    /// What answered.
    pub source: Source,
    /// How that is known.
    pub reason: String,
}

/// A point that was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefusedPoint {
    /// What was to be asked for.
    pub what: String,
    /// Why it was not, and the cure where there is one.
    pub why: String,
}

/// What answered a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The device.
    Device,
    /// This machine's page cache.
    PageCache,
    /// A cache that only its speed gives away.
    HostCacheSuspected,
    /// Nothing tells.
    Unknown,
}
