//! What a storage can do, repeatably: the limits that every later figure is a share of.
//!
//! What it does: [`calibrate`] makes a file of its own under a path, measures it
//! by `plumb-io`'s own methods and returns a [`Calibration`]: the raw repeats of
//! every point, the main figures with their intervals, what was suspicious, and
//! the environment that all of it holds for.
//!
//! How, a folder a step:
//!
//! ```text
//! plan      mode -> tasks: points (loads kept outstanding) and durable writes
//! files     a directory of our own: the data file, the logs
//! load      rounds, each task once a round, in shuffled order; a task: threads that keep
//!           requests outstanding, or one that writes a log
//! measure   what a repeat is made of: latencies, processor time, what the device saw;
//!           all repeats of a task: median, interval, settled or not and why
//! analysis  curves, matrix, ladder, read cost, main figures; device or cache; warnings
//! store     the record, its environment, agreement of two records, ORION's CSV files
//! ```
//!
//! A folder uses only those above it, and of this level `error`, `progress` and `random`.
//!
//! Why not the obvious way, one long run a point in ascending order: a device
//! that slows down, a neighbour that wakes up or a cache that warms then looks
//! like an effect of the depth. Spread over rounds in random order it widens
//! the interval of every figure alike, and is seen.
//!
//! Limits: it measures a file system's file, not a raw device. The cache of a
//! host under a virtual disk cannot be emptied from here; it can be suspected.
//! It prints nothing, and reads clocks through `plumb-events` only.

mod calibrate;

mod plan;

mod files;
mod load;
mod measure;

mod analysis;
mod store;

mod error;
mod progress;
mod random;

pub use analysis::{
    Curve, CurvePoint, FigureKind, MainFigure, Matrix, MatrixCell, ReadCost, Rung, RungState, Warning,
};
pub use calibrate::calibrate;
pub use error::CalibrateError;
pub use files::leftovers;
pub use load::TaskSession;
pub use measure::{
    Answer, AnswerSource, DeviceEvidence, Estimate, Interval, LoadMeasurement, Measurement, Repeat,
    TaskResult,
};
pub use plan::{
    Advanced, Buffers, Cells, DurableMethod, DurablePoint, Files, Load, LogSpace, Mode, Options, Pattern,
    Point, RefusedTask, Ring, Task, TaskPlan,
};
pub use progress::{Progress, ProgressObserver};
pub use store::{
    AGREEMENT_LIMIT, Agreement, Calibration, DeviceEnvironment, Disagreement, SCHEMA_VERSION, csv,
};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
