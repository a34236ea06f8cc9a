//! The report that compares two sets of runs, laid out as an AWR compare-period report.
//!
//! It adds to AWR's columns what a reader needs to believe a difference: the interval of the ratio, p, n
//! and a verdict; and it leaves `%Diff` blank where that would be noise. Tests are the caller's.

pub mod context;
pub mod html;
pub mod text;

mod section;

pub use context::{
    COMPARE_SCHEMA_VERSION, CompareContext, Difference, Group, Outcome, Pairing, Period, Sample, samples,
};

#[cfg(test)]
mod tests;
