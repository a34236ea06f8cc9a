//! Repeatable measurement of a storage device's limits, of which later figures are shares.
//!
//! [`calibrate`] makes a file of its own under a path, measures it with the methods of `plumb-io`
//! and returns a [`Calibration`]. That has the raw repeats of every point, the main figures with
//! their intervals, warnings, and the environment for which they are valid.
//!
//! Each step has a folder:
//!
//! ```text
//! plan      mode -> tasks: points (loads kept outstanding) and durable writes
//! files     a directory of its own: the data file, the logs
//! measure   one repeat: latencies, processor time, the kernel's counters of the device;
//!           all repeats of a task: median, interval, settled or the reason why not
//! load      rounds, each task once a round, in shuffled order; a task: threads that keep
//!           requests outstanding, or one that writes a log
//! analysis  curves, matrix, ladder, read cost, main figures; device or cache; warnings
//! store     the record, its environment, agreement of two records, ORION's CSV files
//! ```
//!
//! A folder uses only those above it, and the files `error`, `pace`, `progress` and `random` of
//! this level.
//!
//! Rejected: one long run for each point in ascending order. A device that slows down, another
//! process or a warming cache would look like an effect of the depth. Rounds in random order spread
//! such changes over all points, so that they widen every interval and become visible.
//!
//! Limits: it measures a file of a file system, not a raw device. It cannot empty a host's cache
//! under a virtual disk, but reports a suspicion. It prints nothing, and reads clocks through
//! `plumb-events` only.

mod calibrate;

mod plan;

mod files;
mod load;
mod measure;

mod analysis;
mod store;

mod error;
mod pace;
mod progress;
mod random;

pub use analysis::{
    Curve, CurvePoint, FigureKind, MainFigure, Matrix, MatrixCell, ReadCost, Rung, RungState, Warning,
};
pub use calibrate::calibrate;
pub use error::CalibrateError;
pub use files::{ScratchLeftover, leftovers};
pub use load::{Sustained, SustainedLevel, Window};
pub use measure::{
    Answer, AnswerSource, DeviceEvidence, Estimate, Interval, LoadMeasurement, Measurement, Repeat,
    TaskResult, busy,
};
pub use plan::{
    Advanced, Buffers, Cells, DurableMethod, DurablePoint, Files, Load, LogSpace, Mode, Options, Pattern,
    Point, RefusedTask, Ring, Task, TaskPlan, VolumeLayout,
};
pub use progress::{Progress, ProgressObserver};
pub use store::{
    AGREEMENT_LIMIT, Agreement, Calibration, DerivedFigure, DerivedKind, DeviceEnvironment, Disagreement,
    SCHEMA_VERSION, VolumePath, VolumeRates, VolumeRecord, csv,
};

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
