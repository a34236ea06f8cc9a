//! Requests to stop running work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A request to stop, which every server checks between two pieces of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

/// Error of work that stopped because of a [`Cancel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("interrupted: what was under way has been removed")
    }
}

impl std::error::Error for Interrupted {}

impl Cancel {
    /// Requests the stop; every clone of this value sees it.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// Returns at once unless a stop was requested.
    ///
    /// # Errors
    /// [`Interrupted`] once a stop was requested.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        if self.0.load(Relaxed) { Err(Interrupted) } else { Ok(()) }
    }
}
