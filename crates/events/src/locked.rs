//! Mutexes whose content is valid at any moment, and signals of its changes.

use crate::sharing;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Pause between polls of a session that shares its thread, because no signal wakes it.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Locks a mutex, also after a panic of another holder, whose error must not be hidden. The holder
/// may wait while it holds the lock.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    sharing::patiently(|| try_locked(mutex), || mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Locks a mutex if it is free.
pub(crate) fn try_locked<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Waits until the signal comes or `most` has passed; may also wake spuriously.
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
