//! The gate: shared by changes of blocks, and closed for a moment by a checkpoint.
//!
//! A session leaves it only when the blocks that it changed are given back as dirty. So when a
//! checkpoint has closed it, every change with a lower LSN is in a block that the cache knows to be
//! dirty.

use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use plumb_events::sharing;
use plumb_units::Lsn;
use std::sync::PoisonError;

/// The LSN at which the last checkpoint began, behind the gate. In shards, because each change
/// enters and leaves it: on one lock two threads that do nothing else take turns at its cache line.
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

    /// Runs `work` with the gate closed, and sets the floor to the LSN that it returns.
    pub(super) fn close<T>(&self, work: impl FnOnce() -> (Lsn, T)) -> T {
        let gate = || self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut floor = sharing::patiently(|| self.0.try_write().ok(), gate);
        let (begin, result) = work();
        *floor = begin;
        result
    }
}

/// The gate, entered. While it is held no checkpoint begins.
#[derive(Debug)]
pub struct Gate<'a>(ShardedLockReadGuard<'a, Lsn>);

impl Gate<'_> {
    /// Returns the LSN at which the last checkpoint began: a block with a lower one is logged whole
    /// when it changes.
    #[must_use]
    pub fn floor(&self) -> Lsn {
        *self.0
    }
}
