//! Who looks on: progress out, a wish to stop in.

use crate::CalibrateError;
use plumb_units::Nanos;
use std::fmt;

/// How far a calibration is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done, in a few words.
    pub what: String,
    /// Measurements that are done.
    pub done: usize,
    /// Measurements in all, as far as it is known now.
    pub total: usize,
    /// The time since the start.
    pub elapsed: Nanos,
    /// The time left, at most.
    pub left: Nanos,
}

/// Looks on while a calibration runs; `()` does not care.
pub trait Watch: Sync {
    /// Called before each measurement.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// Asked several times a second, by several threads: whether to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// Turns the wish to stop into an error.
pub(crate) struct Guard<'a>(&'a dyn Watch);

impl<'a> Guard<'a> {
    pub(crate) fn new(watch: &'a dyn Watch) -> Guard<'a> {
        Guard(watch)
    }

    pub(crate) fn check(&self) -> Result<(), CalibrateError> {
        if self.0.cancelled() { Err(CalibrateError::Cancelled) } else { Ok(()) }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
