//! Sums of calls and requests, of bounded size.

pub mod map;
pub mod pattern;
pub mod tally;
