//! The gate: changes of blocks share it, and a checkpoint closes it for a moment.
//!
//! A session leaves the gate only after it has returned its changed blocks as dirty. So once a
//! checkpoint has closed the gate, the cache knows every block with a change of a lower LSN as
//! dirty.

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use plumb_events::sharing;
use plumb_units::Lsn;
use std::sync::PoisonError;

/// The LSN at which the last checkpoint began, behind the gate. Sharded, because each change enters
/// and leaves it: with one lock, two threads would contend for its cache line.
#[derive(Debug)]
pub(super) struct Floor(ShardedLock<Lsn>);

impl Floor {
    pub(super) fn new(begin: Lsn) -> Floor {
        Floor(ShardedLock::new(begin))
    }

    pub(super) fn enter(&self) -> Gate<'_> {
        let gate = || self.0.read().unwrap_or_else(PoisonError::into_inner);
        Gate(sharing::patiently(|| self.0.try_read().ok(), gate))
    }

    /// Closes the gate, runs `work`, and sets the floor to the LSN that it returns.
    pub(super) fn close<T>(&self, work: impl FnOnce() -> (Lsn, T)) -> T {
        let gate = || self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut floor = sharing::patiently(|| self.0.try_write().ok(), gate);
        let (begin, result) = work();
        *floor = begin;
        result
    }
}

/// A share of the gate; no checkpoint begins while a session holds one.
#[derive(Debug)]
pub struct Gate<'a>(ShardedLockReadGuard<'a, Lsn>);

impl Gate<'_> {
    /// Returns the LSN at which the last checkpoint began. A block with a lower LSN is
    /// logged whole when it changes.
    pub fn floor(&self) -> Lsn {
        *self.0
    }
}
