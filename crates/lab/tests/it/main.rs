//! The laboratory from outside.
//!
//! - `analysis`, `execution`: studies of made-up runs whose truth is known.
//! - `replay`: bundles of earlier programs give the numbers and verdicts that they gave then.
//! - `studies`: the studies that come with the program.
//! - `study_files`: what a study file may not say, and the studies that come with the program.

mod analysis;
mod execution;
mod replay;
mod studies;
mod study_files;
