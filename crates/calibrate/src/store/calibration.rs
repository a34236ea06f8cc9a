//! The record of a calibration, calibration.json, and what can be asked of it.

use super::doubt;
use crate::analysis::matrix::Layout;
use crate::plan::MatrixKind;
use crate::{
    CalibrateError, Curve, DeviceEnvironment, FigureKind, MainFigure, Matrix, Mode, Pattern, Point, ReadCost,
    RefusedTask, Ring, Rung, TaskResult, Warning,
};
use plumb_host::device::DeviceDescription;
use plumb_io::DirectIo;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// The version of the record; it grows when a field changes its name or meaning, or goes.
///
/// ```text
/// 2    `way`, `access` and `verdict` are named `method`, `direct_io` and `answer`; they are read as such
/// ```
pub const SCHEMA_VERSION: u32 = 2;
/// The oldest version that is read.
const SCHEMA_VERSION_MIN: u32 = 1;

/// What a storage can do, and what that holds for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    // What was asked for.
    pub schema_version: u32,
    pub environment: DeviceEnvironment,
    pub mode: Mode,
    /// What orders, places and data follow from.
    pub seed: u64,
    /// The bytes of a small request.
    pub size_small: u64,
    /// The bytes of a large request.
    pub size_large: u64,
    /// How many in a hundred requests of the matrix are writes.
    pub matrix_write_percent: u8,
    /// The order of the large requests of the matrix.
    #[serde(default = "random")]
    pub matrix_large_pattern: Pattern,
    /// The mean latency that rates are limited by.
    pub max_latency_ns: u64,

    // How it went.
    /// The length of the file.
    pub file_bytes: u64,
    /// How long each repeat was measured.
    pub task_time_ns: u64,
    /// How long it took in all.
    pub elapsed_ns: u64,

    // What it found.
    pub figures: Vec<MainFigure>,
    /// The methods, with small requests.
    pub ladder_small: Vec<Rung>,
    /// The methods, with large requests; empty where they were not measured.
    pub ladder_large: Vec<Rung>,
    pub read_cost: Option<ReadCost>,
    /// Whether a durable write can have been durable.
    pub plausibility: Option<String>,
    /// What limits the meaning of all this.
    pub warnings: Vec<Warning>,
    /// Why processor cycles are not counted, where they are not.
    #[serde(default)]
    pub cycles_refused: Option<String>,
    /// What would have been measured, and why it was not.
    #[serde(default)]
    pub refused: Vec<RefusedTask>,
    /// Every task with every repeat: the figures above follow from them.
    pub tasks: Vec<TaskResult>,
}

/// A calibration with what a program has to know that reads no more.
#[derive(Debug, Serialize)]
pub struct Stated<'a> {
    state: &'static str,
    /// What speaks against it, a sentence each.
    doubts: Vec<String>,
    #[serde(flatten)]
    calibration: &'a Calibration,
}

/// The matrices of records from before this was chosen.
const fn random() -> Pattern {
    Pattern::Random
}

impl Calibration {
    /// Reads a record.
    ///
    /// # Errors
    /// When it is none, or one of another version.
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

    /// True when it holds for a device; [`DeviceEnvironment::differences`] says why not.
    #[must_use]
    pub fn matches(&self, device: &DeviceDescription) -> bool {
        self.environment.differences(device).is_empty()
    }

    /// A main figure, if it was measured.
    #[must_use]
    pub fn figure(&self, kind: FigureKind) -> Option<&MainFigure> {
        self.figures.iter().find(|figure| figure.kind == kind)
    }

    /// The curve of small random requests of a mix; empty if it was not measured.
    #[must_use]
    pub fn curve(&self, write_percent: u8) -> Curve {
        Curve::of(&self.tasks, &self.usual(), write_percent)
    }

    /// A curve for each mix of small random requests that was measured, those of fewer writes
    /// first.
    #[must_use]
    pub fn curves(&self) -> Vec<Curve> {
        let mix = |result: &TaskResult| Some(result.point()?.single()?.write_percent);
        let mut mixes: Vec<u8> = self.tasks.iter().filter_map(mix).collect();
        mixes.sort_unstable();
        mixes.dedup();
        let mut curves: Vec<Curve> = mixes.into_iter().map(|percent| self.curve(percent)).collect();
        curves.retain(|curve| !curve.points.is_empty());
        curves
    }

    /// The tasks of which a request completed while it was measured.
    pub fn measured(&self) -> impl Iterator<Item = &TaskResult> {
        self.tasks.iter().filter(|result| result.latency(0).count() > 0)
    }

    /// The record as it is written: with its word and its doubts first, which follow from it and
    /// are not read.
    #[must_use]
    pub fn stated(&self) -> Stated<'_> {
        let doubts = self.doubts();
        Stated { state: Calibration::word(&doubts), doubts, calibration: self }
    }

    /// Returns what speaks against it, a sentence each; nothing of one that is settled.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        doubt::of(self)
    }

    /// The word for a calibration with these doubts.
    #[must_use]
    pub const fn word(doubts: &[String]) -> &'static str {
        if doubts.is_empty() { "SETTLED" } else { "IN DOUBT" }
    }

    /// Repeats of all tasks, a count.
    #[must_use]
    pub fn repeats(&self) -> u64 {
        self.tasks.iter().map(|result| result.repeats.len() as u64).sum()
    }

    /// True when another calibration asked for the same measurements.
    #[must_use]
    pub fn asked_like(&self, other: &Calibration) -> bool {
        let asked = |of: &Calibration| (of.mode, of.file_bytes, of.max_latency_ns, of.environment.direct);
        asked(self) == asked(other)
    }

    /// The matrix of small and large requests.
    #[must_use]
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

    /// True of a point that was measured by the usual method and rings, and not as a step of a
    /// ladder.
    #[must_use]
    pub fn is_usual(&self, point: &Point) -> bool {
        point.reached_like(&self.usual())
    }

    /// A small random read alone, by the usual method.
    fn usual(&self) -> Point {
        let direct_io = if self.environment.direct { DirectIo::Required } else { DirectIo::Off };
        // A plan begins with requests by the usual rings.
        let ring = self.tasks.first().and_then(TaskResult::point).map_or(Ring::default(), |first| first.ring);
        Point::usual(Bytes(self.size_small), self.environment.method, direct_io, ring)
    }
}
