//! Asking what is under way to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A request to stop, seen by every server between two pieces of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// The answer of a [`Cancel`] that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("interrupted: what was under way has been removed")
    }
}

impl std::error::Error for Interrupted {}

impl Cancel {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Goes on unless a stop was asked for.
    ///
    /// # Errors
    /// [`Interrupted`] once a stop was asked for.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}
