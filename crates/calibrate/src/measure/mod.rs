//! Measurements: what one repeat of a task records, and what follows from all repeats of it.
//!
//! ```text
//! cpu          processor time and cycles of the process
//! evidence     what the kernel counted at the device meanwhile
//! measurement  one repeat: these three
//! results      all repeats of a task, and what answered it
//! estimate     a figure of them: median, interval, settled or not
//! ```
//!
//! Why the raw repeats are kept and not their means: every figure of a record can be worked
//! out again from its repeats, by later versions too.
//!
//! Limits: nothing here knows what a task is for; that is `analysis`.

mod cpu;
mod estimate;
mod evidence;
mod measurement;
mod results;

pub(crate) use cpu::{CpuMeter, CpuUse};
pub use estimate::{Estimate, Interval};
pub use evidence::DeviceEvidence;
pub(crate) use evidence::{DeviceMeter, Traffic};
pub use measurement::{LoadMeasurement, Measurement, Repeat};
pub use results::{Answer, AnswerSource, TaskResult};
pub(crate) use results::{SETTLED_LIMIT, find};
