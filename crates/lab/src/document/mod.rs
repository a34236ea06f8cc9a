//! Reports: a document of each kind, filled from what owns the data.
//!
//! `plumb_report` has the document and its renderers; here is what is said, a folder a kind. Figures that follow from
//! others (rates, shares, averages, what is unaccounted for) are computed here. Nothing is tested here: verdicts and
//! intervals come with the data.

pub mod calibration;
pub mod compare;
pub mod run;
pub mod study;

#[cfg(test)]
mod browser;
