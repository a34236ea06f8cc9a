//! The start of a task: its threads start together, or not at all.
//!
//! A point has several threads. None may start before all are ready, or part of the measurement
//! would lack some of them. So each thread arrives at the start and waits there. If one never
//! arrives (it could not be started, failed in preparation or panicked), the start is called off
//! and no thread waits for it:
//!
//! ```text
//! waiting -- the last arrives ----------------> begun: all run in the same window
//!         -- a thread is refused, or ends ----> called off: all return
//! ```
//!
//! Invariants:
//! - T1 A thread that waits at the start is released by the last to arrive or by the first that
//!   ends without arriving ([`Present`]).

use crate::CalibrateError;
use crate::measure::{CpuMeter, CpuUse};
use plumb_events::{locked, now};
use plumb_host::limits;
use plumb_io::IoError;
use plumb_units::Nanos;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Divisor of the measured time that gives the ramp, within these bounds.
const RAMP_PARTS: u64 = 8;
const RAMP_MIN: Nanos = Nanos(5_000_000);
const RAMP_MAX: Nanos = Nanos(500_000_000);

/// The measured period of a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    /// End of the ramp before the measurement.
    pub begin: Nanos,
    pub end: Nanos,
    /// Processor use of the process at the start of the ramp.
    pub cpu: CpuUse,
}

/// Barrier of a task's threads.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    state: Mutex<State>,
    changed: Condvar,
    time: Nanos,
    cpu: &'a CpuMeter,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Number of threads that have not arrived.
    Waiting(usize),
    Begun(Window),
    CalledOff,
}

impl<'a> Start<'a> {
    /// Makes a start for this number of threads, which measure for `time`.
    pub(crate) fn new(threads: usize, time: Nanos, cpu: &'a CpuMeter) -> Start<'a> {
        Start { state: Mutex::new(State::Waiting(threads)), changed: Condvar::new(), time, cpu }
    }

    /// Waits for the other threads; `None` if the start is called off.
    pub(crate) fn arrive(&self) -> Option<Window> {
        let mut state = self.state();
        if let State::Waiting(missing) = *state {
            *state = if missing > 1 { State::Waiting(missing - 1) } else { State::Begun(self.window()) };
            self.changed.notify_all();
        }
        loop {
            match *state {
                State::Begun(window) => return Some(window),
                State::CalledOff => return None,
                State::Waiting(_) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn window(&self) -> Window {
        let ramp = Nanos(self.time.0 / RAMP_PARTS).clamp(RAMP_MIN, RAMP_MAX);
        let cpu = self.cpu.read();
        let begin = now() + ramp;
        Window { begin, end: begin + self.time, cpu }
    }

    /// Releases all waiting threads, unless the task has started.
    fn call_off(&self) {
        let mut state = self.state();
        if matches!(*state, State::Waiting(_)) {
            *state = State::CalledOff;
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

/// Held by a thread until it ends: one that never arrived calls the start off.
struct Present<'a, 'b>(&'a Start<'b>);

impl Drop for Present<'_, '_> {
    fn drop(&mut self) {
        self.0.call_off();
    }
}

/// Runs each of `works` on a thread of its own, made by `builder`. A work arrives at the start
/// once, and returns `None` if that was called off. Fails if a thread cannot be started, or with
/// the first error of a work.
pub(crate) fn together<T: Send>(
    works: Vec<impl FnOnce(&Start<'_>) -> Result<Option<T>, CalibrateError> + Send>,
    start: &Start<'_>,
    builder: impl Fn(usize) -> thread::Builder,
) -> Result<Vec<T>, CalibrateError> {
    let wanted = works.len();
    thread::scope(|scope| {
        let (mut threads, mut failure, mut results) = (Vec::new(), None, Vec::new());
        for (started, work) in works.into_iter().enumerate() {
            let member = move || {
                let _present = Present(start);
                work(start)
            };
            match builder(started).spawn_scoped(scope, member) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    start.call_off();
                    let what = format!("the {wanted} threads of a measurement, but only {started}");
                    let limit = limits::threads(wanted - started);
                    failure = Some(IoError::Threads { what, source, limit }.into());
                    break;
                }
            }
        }
        for thread in threads {
            match thread.join() {
                Ok(Ok(result)) => results.extend(result),
                Ok(Err(error)) => {
                    failure.get_or_insert(error);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(results), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREADS: usize = 3;

    /// Starts three threads. The second one prepares by `second`, on a stack of this size.
    fn check(second: fn() -> Result<(), CalibrateError>, stack_bytes: usize) -> Result<usize, String> {
        let cpu = CpuMeter::start();
        let start = Start::new(THREADS, Nanos(1_000_000), &cpu);
        let works: Vec<_> = (0..THREADS)
            .map(|index| {
                move |start: &Start<'_>| {
                    if index == 1 {
                        second()?;
                    }
                    Ok(start.arrive().map(|window| window.end))
                }
            })
            .collect();
        let builder = |index| {
            let builder = thread::Builder::new();
            if index == 1 { builder.stack_size(stack_bytes) } else { builder }
        };
        let results = together(works, &start, builder).map_err(|error| error.to_string())?;
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "one window for all");
        Ok(results.len())
    }

    const STACK: usize = 128 << 10;

    #[test]
    fn all_begin_in_the_same_window() {
        assert_eq!(check(|| Ok(()), STACK), Ok(THREADS));
    }

    #[test]
    fn nobody_waits_for_a_thread_that_cannot_be_started() {
        let error = check(|| Ok(()), usize::MAX / 2).expect_err("no such stack");
        assert!(error.starts_with("cannot start the 3 threads of a measurement, but only 1: "), "{error}");
    }

    #[test]
    fn nobody_waits_for_a_thread_that_failed() {
        let failed = || Err(CalibrateError::Cancelled);
        assert_eq!(check(failed, STACK), Err(CalibrateError::Cancelled.to_string()));
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let panicked = std::panic::catch_unwind(|| check(|| panic!("while it got ready"), STACK));
        assert!(panicked.is_err());
    }
}
