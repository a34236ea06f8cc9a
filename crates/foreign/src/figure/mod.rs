//! Figures of a report: tables of them, stamps of time, checks by their arithmetic.

pub mod check;
pub(crate) mod rounding;
pub mod sheet;
pub(crate) mod shown;
pub mod stamp;
