//! Analysis of the results of all tasks together, as pure functions.
//!
//! ```text
//! answer      device or cache: the source of each task's answers
//! curve       rate and latency over the requests outstanding
//! matrix      small and large requests together, as ORION lays them out
//! ladder      the same requests by every method
//! read_cost   t(bytes) = s + bytes / B, and its consequences for a merge
//! figures     the main figures, by which calibrations are compared
//! derived     what follows from them: commits, time of a scan, parameters of optimizers
//! warning     limits of the figures' meaning
//! ```
//!
//! Rejected: analysing while measuring. One result serves several of these, and a record can be
//! analysed again.
//!
//! Limits: nothing is pooled over tasks; a figure is the estimate of one task or of a line through
//! several.

pub(crate) mod answer;
mod curve;
pub(crate) mod derived;
mod figures;
mod ladder;
pub(crate) mod matrix;
mod read_cost;
mod warning;

pub use curve::{Curve, CurvePoint};
pub use derived::{DerivedFigure, DerivedKind};
pub(crate) use figures::FigureSearch;
pub use figures::{FigureKind, MainFigure};
pub(crate) use ladder::ladder;
pub use ladder::{Rung, RungState};
pub use matrix::{Matrix, MatrixCell};
pub use read_cost::ReadCost;
pub use warning::Warning;
