//! Progress reports, and cancellation.

use crate::CalibrateError;
use plumb_units::Nanos;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Current task in a few words.
    pub what: String,
    pub done: usize,
    /// Number of all measurements, as far as known.
    pub total: usize,
    pub elapsed: Nanos,
    /// Longest time that the rest may take.
    pub left: Nanos,
}

/// Observes the progress of a calibration and may cancel it; `()` does neither.
pub trait ProgressObserver: Sync {
    /// Reports progress before each measurement.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// Called several times a second, by several threads; returns true to cancel.
    fn cancelled(&self) -> bool {
        false
    }
}

impl ProgressObserver for () {}

/// Converts a cancellation into an error.
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
