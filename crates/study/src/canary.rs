//! The canary: fixed work before each run that no treatment affects.
//!
//! A slower machine shows in the canary as well as in the run. A fixed loop shows fewer processor
//! cycles (other guests, frequency, heat). Fixed reads show a slower device (spent credits, other
//! guests). The analysis takes these times as covariates and reports when they change
//! ([`crate::analysis`]). [`plumb_io::canary`] has the work.

use plumb_io::canary;
use serde::{Deserialize, Serialize};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canary {
    pub cpu_ns: u64,
    /// Time of the fixed reads, nanoseconds; `None` without a file that allows direct reads.
    pub read_ns: Option<u64>,
}

impl Canary {
    /// Runs the loop, and the reads from this file.
    pub fn sing(file: Option<&Path>) -> Canary {
        let cpu_ns = canary::loop_time().0;
        Canary { cpu_ns, read_ns: file.and_then(canary::read_time).map(|time| time.0) }
    }
}
