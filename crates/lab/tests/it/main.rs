//! The laboratory from outside.
//!
//! - `replay`: bundles of earlier programs give the numbers and verdicts that they gave then.
//! - `study_files`: what a study file may not say, and the studies that come with the program.

mod replay;
mod study_files;
