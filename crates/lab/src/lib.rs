//! The laboratory: runs of a workload, with what was seen of them from outside.
//!
//! A run is made in a temporary database of its own ([`large_sort::run`]): load,
//! calibrate, build, verify. [`measure`] takes readings around the build, and
//! [`assemble`] turns them into the context of a report, receipts and findings
//! included. The laboratory prints nothing; whoever wants to see how far a run is
//! looks on as an [`Observer`].

pub mod assemble;
pub mod calendar;
mod error;
pub mod host;
pub mod large_sort;
pub mod measure;
mod observer;
pub mod place;
pub mod record_sort;
pub mod settings;
mod sizing;
mod temporary;
mod workers;

pub use error::LabError;
pub use observer::{Observer, Stage};
pub use temporary::Temporary;
