//! The laboratory: runs of a workload with what was seen of them from outside, and studies made of runs.
//!
//! ```text
//! study ──> plan ──> execution ──> bundle ──> analysis ──> report
//!                      │  ^                      ^
//!                    target                    verify
//! ```
//!
//! A [`study`] is a question with claims. A [`plan`] puts its arms into random order within blocks, an
//! [`execution`] runs them against a [`target`], a [`bundle`] keeps every raw record, and the
//! [`analysis`] turns these into verdicts, again and again the same ones.
//!
//! A single run is made in a temporary database of its own ([`large_sort::run`]): load,
//! calibrate, build, verify. [`measure`] takes readings around the build, and
//! [`assemble`] turns them into the context of a report, receipts and findings
//! included. The laboratory prints nothing; whoever wants to see how far a run is
//! looks on as an [`Observer`].

pub mod analysis;
pub mod assemble;
pub mod bundle;
pub mod calendar;
pub mod compare;
pub mod document;
mod error;
pub mod execution;
pub mod host;
pub mod large_sort;
pub mod measure;
mod observer;
pub mod orphans;
pub mod place;
pub mod plan;
pub mod record;
pub mod record_sort;
pub mod report;
pub mod settings;
mod settle;
mod sizing;
pub mod stored;
pub mod study;
pub mod target;
mod temporary;
pub mod verify;
mod workers;

pub use error::LabError;
pub use observer::{Observer, Stage};
pub use temporary::Temporary;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;
