//! The laboratory: runs of a workload with what was seen of them from outside, and studies made of runs.
//!
//! ```text
//! study ──> plan ──> execution ──> bundle ──> analysis ──> report ──> (pages)
//!                      │  ^                      ^
//!                    target                    verify
//! ```
//!
//! A [`study`] is a question with claims. A [`plan`] puts its arms into random order within blocks, an
//! [`execution`] runs them against a [`target`], a [`bundle`] keeps every raw record, and the
//! [`analysis`] turns these into verdicts, again and again the same ones.
//!
//! A single run is made in a temporary database of its own ([`workload::run`]): load, calibrate, work, verify. What is
//! seen of it is [`evidence`], a value, and [`assemble`] makes it into a [record](plumb_record::Record), receipts and findings
//! included. The laboratory prints nothing; progress goes to an
//! [`Observer`].

pub mod analysis;
pub mod archiving;
pub mod assemble;
pub mod bundle;
pub mod canary;
pub mod compare;
pub mod device_mix;
pub mod device_probe;
mod disturbance;
mod error;
pub mod evidence;
pub mod execution;
pub mod host;
pub mod loops;
mod observer;
pub mod orphans;
pub mod pilot;
pub mod place;
pub mod plan;
pub mod provenance;
pub mod report;
pub mod rows;
pub mod sampler;
pub mod settings;
mod settle;
pub mod share;
pub mod stored;
pub mod study;
pub mod target;
mod temporary;
pub mod verify;
pub mod vocabulary;
mod workers;
pub mod workload;
mod written;

pub use error::LabError;
pub use observer::{Observer, Stage};
pub use temporary::{Temporary, left};

#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
