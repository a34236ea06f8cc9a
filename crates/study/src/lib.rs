//! Studies: runs of a target in random order, and verdicts on their records.
//!
//! ```text
//! definition ──> plan ──> execution ──> bundle ──> analysis ──> report ──> (pages)
//!                           │  ^                      ^
//!                          targets                  verify
//! ```
//!
//! A [`definition`] is a question with claims. A [`plan`] orders its arms at random within blocks.
//! An [`execution`] runs them against a [target](targets), and a [`bundle`] keeps every raw record.
//! The [`analysis`] derives verdicts, the same ones from the same bundle. [`compare`] judges two
//! sets of runs that no plan has ordered.
//!
//! An analysis reads only a bundle. This crate does not know the engine: the program registers the
//! embedded target like any other. [`machine`], [`sampler`] and [`disturbance`] read the state of
//! the machine during a run of any target.
//!
//! Nothing is printed; progress goes to an [`Observer`].

pub mod analysis;
pub mod best_level;
pub mod bundle;
pub mod canary;
pub mod compare;
pub mod definition;
pub mod disturbance;
mod error;
pub mod execution;
pub mod file_journal;
pub mod machine;
mod observer;
pub mod pilot;
pub mod plan;
pub mod provenance;
pub mod report;
pub mod sampler;
pub mod settle;
pub mod share;
pub mod targets;
pub mod verify;
pub mod vocabulary;

pub use error::StudyError;
pub use observer::{Observer, Stage, WAITS};
