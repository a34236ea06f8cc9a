//! Studies from outside, of the embedded engine, of commands and of made-up runs.
//!
//! - `analysis`, `execution`: studies of made-up runs whose truth is known.
//! - `arms`: two arms of one study beside each other.
//! - `replay`: bundles of earlier programs give the numbers and verdicts that they gave then.
//! - `plans`, `studies`: the studies that come with the program, their plans and pilots.
//! - `inline`, `study_files`: what a study may say on the command line and in a file, and what not.

mod analysis;
mod arms;
mod execution;
mod inline;
mod plans;
mod replay;
mod studies;
mod study_files;
