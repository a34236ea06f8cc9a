//! The record of a calibration, calibration.json, and queries of it.

use super::volume::VolumeRecord;
use super::{derived, doubt};
use crate::analysis::matrix::Layout;
use crate::plan::MatrixKind;
use crate::{
    CalibrateError, Curve, DerivedFigure, DeviceEnvironment, FigureKind, MainFigure, Matrix, Mode, Pattern,
    Point, ReadCost, RefusedTask, Ring, Rung, Sustained, TaskResult, Warning,
};
use plumb_host::device::DeviceDescription;
use plumb_io::DirectIo;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// Version of the record; it grows when a field changes its name or meaning, or is removed.
///
/// ```text
/// 2    `way`, `access` and `verdict` were renamed to `method`, `direct_io` and `answer`;
///      the old names are still read
/// ```
pub const SCHEMA_VERSION: u32 = 2;
/// The oldest version that is read.
const SCHEMA_VERSION_MIN: u32 = 1;

/// Limits of a storage device, and the environment for which they are valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    // Request
    pub schema_version: u32,
    /// Environment for which the figures are valid.
    pub environment: DeviceEnvironment,
    pub mode: Mode,
    /// Seed of orders, positions and data.
    pub seed: u64,
    /// Bytes of a small request.
    pub size_small: u64,
    /// Bytes of a large request.
    pub size_large: u64,
    /// Number of writes per hundred requests of the matrix.
    pub matrix_write_percent: u8,
    /// Order of the large requests of the matrix.
    #[serde(default = "random")]
    pub matrix_large_pattern: Pattern,
    /// Mean latency that limits rates, nanoseconds.
    pub max_latency_ns: u64,
    /// The paths, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeRecord>,
    /// Rates of a load over minutes, if one was kept up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustained: Option<Sustained>,
    /// Most requests a second that the caller permitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<u64>,
    /// Bytes a second of the link to the storage, if the caller stated them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_second: Option<u64>,

    // Size and time
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Measured time of each repeat, nanoseconds.
    pub task_time_ns: u64,
    /// Total time of the calibration, nanoseconds.
    pub elapsed_ns: u64,

    // Results
    pub figures: Vec<MainFigure>,
    /// The method ladder with small requests.
    pub ladder_small: Vec<Rung>,
    /// The method ladder with large requests; empty if they were not measured.
    pub ladder_large: Vec<Rung>,
    /// Cost of a read, as a line over its size.
    pub read_cost: Option<ReadCost>,
    /// Judgement of the durable writes: possible for this device or not.
    pub plausibility: Option<String>,
    /// Limits of the figures' meaning.
    pub warnings: Vec<Warning>,
    /// Reason why processor cycles are not counted, if so.
    #[serde(default)]
    pub cycles_refused: Option<String>,
    /// Tasks that were not measured, with the reason.
    #[serde(default)]
    pub refused: Vec<RefusedTask>,
    /// Every task with every repeat; the figures above derive from them.
    pub tasks: Vec<TaskResult>,
}

/// A calibration with its state and doubts, for programs that read nothing else.
#[derive(Debug, Serialize)]
pub struct Stated<'a> {
    /// Either SETTLED or IN DOUBT.
    state: &'static str,
    /// Objections to the calibration, a sentence each.
    doubts: Vec<String>,
    #[serde(flatten)]
    calibration: &'a Calibration,
}

/// Order in the matrices of older records, which lack the field.
const fn random() -> Pattern {
    Pattern::Random
}

impl Calibration {
    /// Parses a record of a calibration. Fails on an unsupported version.
    pub fn from_json(text: &str) -> Result<Calibration, CalibrateError> {
        let unreadable =
            |why: String| CalibrateError::Unreadable { why: plumb_units::cut(&why, 300).into_owned() };
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let version = value.get("schema_version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if !(u64::from(SCHEMA_VERSION_MIN)..=u64::from(SCHEMA_VERSION)).contains(&version) {
            return Err(unreadable(format!(
                "schema_version {version}, this program reads {SCHEMA_VERSION_MIN} to {SCHEMA_VERSION}"
            )));
        }
        serde_json::from_value(value).map_err(|error| unreadable(error.to_string()))
    }

    /// True if it is valid for a device;
    /// [`DeviceEnvironment::differences`] has the reasons otherwise.
    pub fn matches(&self, device: &DeviceDescription) -> bool {
        self.environment.differences(device).is_empty()
    }

    /// Returns a main figure, if it was measured.
    pub fn figure(&self, kind: FigureKind) -> Option<&MainFigure> {
        self.figures.iter().find(|figure| figure.kind == kind)
    }

    /// Returns the curve of small random requests of a mix; empty if it was not measured.
    pub fn curve(&self, write_percent: u8) -> Curve {
        Curve::of(&self.tasks, &self.usual(), write_percent)
    }

    /// Returns a curve for each measured mix of small random requests,
    /// by increasing share of writes.
    pub fn curves(&self) -> Vec<Curve> {
        let mix = |result: &TaskResult| Some(result.point()?.single()?.write_percent);
        let mut mixes: Vec<u8> = self.tasks.iter().filter_map(mix).collect();
        mixes.sort_unstable();
        mixes.dedup();
        let mut curves: Vec<Curve> = mixes.into_iter().map(|percent| self.curve(percent)).collect();
        curves.retain(|curve| !curve.points.is_empty());
        curves
    }

    /// Returns the tasks with a request completed during the measurement.
    pub fn measured(&self) -> impl Iterator<Item = &TaskResult> {
        self.tasks.iter().filter(|result| result.latency(0).count() > 0)
    }

    /// Returns the record as it is written, with derived state and doubts first;
    /// these are ignored on reading.
    pub fn stated(&self) -> Stated<'_> {
        let doubts = self.doubts();
        Stated { state: Calibration::word(&doubts), doubts, calibration: self }
    }

    /// Returns objections to it, a sentence each; empty if it is settled.
    pub fn doubts(&self) -> Vec<String> {
        doubt::of(self)
    }

    /// Returns the state of a calibration with these doubts.
    pub const fn word(doubts: &[String]) -> &'static str {
        if doubts.is_empty() { "SETTLED" } else { "IN DOUBT" }
    }

    /// Returns a figure as a share of the link; `None` if no link was stated, or for a time.
    pub fn link_share(&self, figure: &MainFigure) -> Option<f64> {
        Some(self.bytes_per_second(figure, figure.estimate.median)? / self.link_bytes_per_second? as f64)
    }

    /// Returns the figures that exceed the link with their whole interval.
    pub fn impossible(&self) -> Vec<&MainFigure> {
        let Some(link) = self.link_bytes_per_second else { return Vec::new() };
        let above = |figure: &&MainFigure| {
            self.bytes_per_second(figure, figure.estimate.low).is_some_and(|rate| rate > link as f64)
        };
        self.figures.iter().filter(above).collect()
    }

    fn bytes_per_second(&self, figure: &MainFigure, value: f64) -> Option<f64> {
        match figure.kind.unit() {
            "MB/s" => Some(value * Bytes::M as f64),
            "IOPS" => Some(value * self.size_small as f64),
            _ => None,
        }
    }

    /// Returns what follows from the main figures, with the arithmetic.
    pub fn derived(&self) -> Vec<DerivedFigure> {
        derived::of(self)
    }

    /// Returns the number of repeats of all tasks.
    pub fn repeats(&self) -> u64 {
        self.tasks.iter().map(|result| result.repeats.len() as u64).sum()
    }

    /// True if another calibration requested the same measurements.
    pub fn asked_like(&self, other: &Calibration) -> bool {
        let asked = |of: &Calibration| (of.mode, of.file_bytes, of.max_latency_ns, of.environment.direct);
        asked(self) == asked(other)
    }

    /// Returns the matrix of small and large requests.
    pub fn matrix(&self) -> Matrix {
        Matrix::of(&self.tasks, &self.matrix_layout())
    }

    pub(crate) fn matrix_layout(&self) -> Layout {
        Layout {
            like: self.usual(),
            sizes: (Bytes(self.size_small), Bytes(self.size_large)),
            kind: MatrixKind { write_percent: self.matrix_write_percent, pattern: self.matrix_large_pattern },
        }
    }

    /// True for a point with the usual method and rings, which is not a step of a ladder.
    pub fn is_usual(&self, point: &Point) -> bool {
        point.reached_like(&self.usual())
    }

    /// Returns the single small random read by the usual method.
    pub(super) fn usual(&self) -> Point {
        let direct_io = if self.environment.direct { DirectIo::Required } else { DirectIo::Off };
        // A plan starts with requests by the usual rings.
        let ring = self.tasks.first().and_then(TaskResult::point).map_or(Ring::default(), |first| first.ring);
        Point::usual(Bytes(self.size_small), self.environment.method, direct_io, ring)
    }
}
