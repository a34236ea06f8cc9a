//! Mutexes of what is valid at any moment, and signals of those who change it.

use crate::{Event, Session, sharing};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// How long who shares its thread waits for a signal that it does not hear.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Locks one: a panic of another thread must not hide what it has. Who holds it may wait meanwhile.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    sharing::patiently(|| attempt(mutex), || mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The same of one that is held for long: the wait for it is the session's, under this name.
pub fn latched<'m, T>(mutex: &'m Mutex<T>, session: &Session, event: Event) -> MutexGuard<'m, T> {
    attempt(mutex).unwrap_or_else(|| session.wait(event, || locked(mutex)))
}

fn attempt<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
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
