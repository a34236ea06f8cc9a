//! One run: a workload on the engine, and the evidence of it.
//!
//! [`workload::run`] makes a temporary database, loads it, calibrates the device, does the work and
//! verifies the result. [`evidence`] is the value with all counters and checks of the run.
//! [`assemble`] derives the [record](plumb_record::Record) from it, with receipts and findings.
//! [`embedded`] makes the runs of a study, each in its own process.
//!
//! Nothing is printed; progress goes to an [`Observer`](plumb_study::Observer).

pub mod archiving;
pub mod assemble;
pub mod calibration_store;
pub mod device_mix;
pub mod device_probe;
pub mod embedded;
mod error;
pub mod evidence;
pub mod instances;
pub mod loops;
pub mod place;
pub mod rows;
pub mod settings;
mod temporary;
mod workers;
pub mod workload;

pub use error::RunError;
pub use temporary::{Temporary, TemporaryLeftover, left};

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
