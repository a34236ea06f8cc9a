//! Mutexes of what is valid at any moment.

use crate::sharing;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Locks one: a panic of another thread must not hide what it has. Who holds it may wait meanwhile.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let attempt = || match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    sharing::patiently(attempt, || mutex.lock().unwrap_or_else(PoisonError::into_inner))
}
