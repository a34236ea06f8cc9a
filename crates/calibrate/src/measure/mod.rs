//! Measurements: one repeat of a task, and estimates from all its repeats.
//!
//! ```text
//! cpu          processor time and cycles of the process
//! evidence     the kernel's counters of the device
//! measurement  one repeat: latencies, processor time, evidence
//! results      all repeats of a task, and the source of its answers
//! estimate     a figure of them: median, interval, settled or not
//! ```
//!
//! The raw repeats are kept instead of their means, so that later versions can compute every figure
//! of a record again.
//!
//! Limits: nothing here knows the purpose of a task; that is in `analysis`.

mod cpu;
mod estimate;
mod evidence;
mod measurement;
mod results;

pub(crate) use cpu::{CpuMeter, CpuUse};
pub use estimate::{Estimate, Interval};
pub use evidence::{DeviceEvidence, busy};
pub(crate) use evidence::{DeviceMeter, Traffic};
pub use measurement::{LoadMeasurement, Measurement, Repeat};
pub use results::{Answer, AnswerSource, TaskResult};
pub(crate) use results::{SETTLED_LIMIT, find};
