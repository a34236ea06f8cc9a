//! Studies: runs of a target in an order drawn at random, and the verdicts on their records.
//!
//! ```text
//! definition ──> plan ──> execution ──> bundle ──> analysis ──> report ──> (pages)
//!                           │  ^                      ^
//!                          targets                  verify
//! ```
//!
//! A [`definition`] is a question with claims. A [`plan`] orders its arms at random within blocks,
//! an [`execution`] runs them against a [target](targets), a [`bundle`] keeps every raw record, and
//! the [`analysis`] derives the verdicts, the same ones from the same bundle. [`compare`] judges two
//! sets of runs that no plan has ordered.
//!
//! An analysis reads only a bundle. This crate does not know the engine: the program registers the
//! embedded target like any other. [`machine`], [`sampler`] and [`disturbance`] read what happens on
//! the machine during a run of any target.
//!
//! Nothing is printed; progress goes to an [`Observer`].

pub mod analysis;
pub mod bundle;
pub mod canary;
pub mod compare;
pub mod definition;
pub mod disturbance;
mod error;
pub mod execution;
pub mod machine;
mod observer;
pub mod pilot;
pub mod plan;
pub mod provenance;
pub mod report;
pub mod sampler;
pub mod settle;
pub mod targets;
pub mod verify;
pub mod vocabulary;
pub mod written;

pub use error::StudyError;
pub use observer::{Observer, Stage, WAITS};
