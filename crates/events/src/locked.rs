//! Mutexes of what is valid at any moment, and signals of those who change it.

use crate::sharing;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How long who shares its thread waits for a signal that it does not hear.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Locks one: a panic of another thread must not hide what it has. Who holds it may wait meanwhile.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    sharing::patiently(|| try_locked(mutex), || mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Locks one if nobody has it.
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits until a signal comes, for no reason, or for so long.
pub fn wait_signal<'m, T>(
    (mutex, signal): (&'m Mutex<T>, &Condvar),
    guard: MutexGuard<'m, T>,
    most: Duration,
) -> MutexGuard<'m, T> {
    if !sharing::is_shared() {
        return signal.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner).0;
    }
    drop(guard);
    sharing::sleep(LOOK_AGAIN.min(most));
    locked(mutex)
}
