//! Integration tests of studies: of the embedded engine, of commands and of simulated runs.
//!
//! - `analysis`, `execution`: studies of simulated runs with known truth.
//! - `arms`: comparison of two arms of one study.
//! - `replay`: bundles of earlier versions give the same numbers and verdicts.
//! - `plans`, `studies`: the shipped studies, their plans and pilots.
//! - `inline`, `study_files`: valid and invalid studies on the command line and in files.

mod analysis;
mod arms;
mod execution;
mod inline;
mod plans;
mod replay;
mod studies;
mod study_files;
