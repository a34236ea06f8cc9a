//! A bell that wakes one background process.

use plumb_events::locked;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sessions ring it, one thread hears it. A ring while the thread is awake ends its next sleep.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    fn rung(&self) -> MutexGuard<'_, bool> {
        locked(&self.rung)
    }

    pub(crate) fn ring(&self) {
        *self.rung() = true;
        self.heard.notify_one();
    }

    /// Sleeps until a ring, at most for `most`.
    pub(crate) fn sleep(&self, most: Duration) {
        let mut rung = self.rung();
        if !*rung {
            rung = self.heard.wait_timeout(rung, most).unwrap_or_else(PoisonError::into_inner).0;
        }
        *rung = false;
    }
}
