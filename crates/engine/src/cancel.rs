//! Asking what is under way to stop.

use crate::EngineError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A request to stop, seen by every server between two pieces of work.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks to stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    /// # Errors
    /// [`EngineError::Interrupted`] once a stop was asked for.
    #[inline]
    pub fn check(&self) -> Result<(), EngineError> {
        if self.0.load(Relaxed) { Err(EngineError::Interrupted) } else { Ok(()) }
    }
}
