//! The record of a calibration and further files derived from it.
//!
//! ```text
//! calibration   calibration.json: every repeat of every task, and derived figures
//! environment   the device, file system and kernel for which it is valid
//! volume        several paths: their rates alone, together and as one volume
//! agreement     comparison of two records' figures
//! csv           ORION's files of the matrix, and two more
//! ```
//!
//! Figures are kept although they derive from the repeats. Readers of the record need no analysis,
//! and a later version may derive others.
//!
//! Limits: no file is opened here; the caller stores the text.

mod agreement;
mod calibration;
pub mod csv;
mod doubt;
mod environment;
mod volume;

pub use agreement::{AGREEMENT_LIMIT, Agreement, Disagreement};
pub use calibration::{Calibration, SCHEMA_VERSION};
pub use environment::DeviceEnvironment;
pub use volume::{VolumePath, VolumeRates, VolumeRecord};
