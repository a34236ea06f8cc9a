//! Progress out, and a wish to stop in.

use crate::CalibrateError;
use plumb_units::Nanos;
use std::fmt;

/// How far a calibration has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done, in a few words.
    pub what: String,
    pub done: usize,
    /// Measurements in all, as far as it is known now.
    pub total: usize,
    /// The time since the start.
    pub elapsed: Nanos,
    /// The time left, at most.
    pub left: Nanos,
}

/// Sees the progress of a calibration and may stop it; `()` does neither.
pub trait ProgressObserver: Sync {
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// Asked several times a second, by several threads: true to stop.
    fn cancelled(&self) -> bool {
        false
    }
}

impl ProgressObserver for () {}

/// Turns the wish to stop into an error.
pub(crate) struct StopCheck<'a>(&'a dyn ProgressObserver);

impl<'a> StopCheck<'a> {
    pub(crate) fn new(observer: &'a dyn ProgressObserver) -> StopCheck<'a> {
        StopCheck(observer)
    }

    pub(crate) fn check(&self) -> Result<(), CalibrateError> {
        if self.0.cancelled() { Err(CalibrateError::Cancelled) } else { Ok(()) }
    }
}

impl fmt::Debug for StopCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopCheck").finish_non_exhaustive()
    }
}
