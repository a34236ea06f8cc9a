//! What is kept of a calibration: the record and what is written beside it.
//!
//! ```text
//! calibration   calibration.json: every repeat of every task, and what followed from them
//! environment   the device, file system and kernel it holds for
//! agreement     the figures of two records
//! csv           ORION's files of the matrix, and two more
//! ```
//!
//! Why figures are kept though they follow from the repeats: readers of the record need
//! none of the analysis, and a later version may find others.
//!
//! Limits: no file is opened here; the caller stores the text.

mod agreement;
mod calibration;
pub mod csv;
mod doubt;
mod environment;

pub use agreement::{AGREEMENT_LIMIT, Agreement, Disagreement};
pub use calibration::{Calibration, SCHEMA_VERSION};
pub use environment::DeviceEnvironment;
