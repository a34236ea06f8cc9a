//! What a storage can do, repeatably: the limits that every later figure is a share of.
//!
//! What it does: [`calibrate`] makes a file of its own under a path, measures it
//! by `plumb-io`'s own methods and returns a [`Calibration`]: the raw repeats of
//! every point, the main figures with their intervals, what was suspicious, and
//! the environment that all of it holds for.
//!
//! How:
//!
//! ```text
//! mode -> plan of tasks -> rounds, each task once a round, in shuffled order
//!      -> a task: loads kept outstanding for a while, or durable writes one by one
//!      -> a measurement: latency histograms, CPU, what the device saw of it
//!      -> all repeats of a task: median, interval, settled or not and why
//!      -> figures, verdicts (device or cache), warnings
//! ```
//!
//! Why not the obvious way, one long run a point in ascending order: a device
//! that slows down, a neighbour that wakes up or a cache that warms then looks
//! like an effect of the depth. Spread over rounds in random order it widens
//! the interval of every figure alike, and is seen.
//!
//! Limits: it measures a file system's file, not a raw device. The cache of a
//! host under a virtual disk cannot be emptied from here; it can be suspected.
//! It prints nothing, and reads clocks through `plumb-events` only.

mod options;

mod plan;
mod point;
mod watch;

mod durable;
mod effort;
mod file;
mod home;
mod lane;
mod rounds;
mod runner;
mod team;
mod workbench;

mod evidence;
mod measurement;
mod verdict;

mod estimate;
mod histogram;
mod random;

mod agreement;
mod calibration;
pub mod csv;
mod curve;
mod environment;
mod error;
mod figures;
mod ladder;
mod matrix;
mod read_cost;
mod results;
mod summary;
mod warning;

pub use agreement::{AGREEMENT_LIMIT, Agreement, Disagreement};
pub use calibration::{Calibration, SCHEMA_VERSION, calibrate};
pub use curve::{Curve, CurvePoint};
pub use durable::{DurableMethod, DurablePoint, Space};
pub use environment::Environment;
pub use error::CalibrateError;
pub use estimate::{Estimate, Interval};
pub use evidence::Evidence;
pub use figures::{Figure, FigureKind};
pub use histogram::LatencyHistogram;
pub use home::leftovers;
pub use ladder::{Rung, RungState};
pub use matrix::{Matrix, MatrixCell};
pub use measurement::{LoadMeasurement, Measurement, Repeat};
pub use options::{Advanced, Cells, Mode, Options};
pub use plan::{Plan, RefusedTask, Task};
pub use point::{Access, Buffers, Files, Load, Pattern, Point, Ring, Setup, Way};
pub use read_cost::ReadCost;
pub use results::TaskResult;
pub use verdict::{Source, Verdict};
pub use warning::Warning;
pub use watch::{Progress, Watch};
pub use workbench::Workbench;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
