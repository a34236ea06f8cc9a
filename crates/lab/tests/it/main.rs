//! The laboratory from outside.
//!
//! - `study_files`: what a study file may not say, and the studies that come with the program.

mod study_files;
