//! Mutexes of what is valid at any moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks one: a panic of another thread must not hide what it has.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
