//! Traces of real programs, where the kernel permits them.
//!
//! - `found`: every request of programs with known requests, counted and in order.
//! - `faults`: processes that end, fork or do not exist, files that are renamed, missing rights.
//!
//! Without the rights each test prints a line and passes, unless `PLUMB_REQUIRE_TRACE` is set. The
//! tests take turns, because a machine under load is slow and names of short processes are lost.

mod faults;
mod found;

use plumb_record::Snoop;
use plumb_snoop::{Capture, Live, Show, SnoopError, SnoopTarget, is_refusal};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One trace at a time.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a trace; none if this machine does not permit it.
fn start(target: SnoopTarget) -> Option<Capture> {
    match Capture::start(target) {
        Ok(capture) => Some(capture),
        Err(error @ SnoopError::NoTracepoint { .. }) => skipped(&error),
        Err(error) if is_refusal(&error) => skipped(&error),
        Err(error) => panic!("{error}"),
    }
}

fn skipped(error: &SnoopError) -> Option<Capture> {
    assert!(std::env::var_os("PLUMB_REQUIRE_TRACE").is_none(), "PLUMB_REQUIRE_TRACE is set: {error}");
    println!("skipped: {error}");
    None
}

/// Traces a command to its end.
fn traced(words: &[&str]) -> Option<Snoop> {
    let words = words.iter().map(|word| word.to_string()).collect();
    let mut capture = start(SnoopTarget::Command(words))?;
    let mut live = Live::new(Show::Nothing, capture.begin());
    while capture.is_alive() {
        capture.step(&mut live).expect("a step");
    }
    let ended = capture.wait().expect("a command").expect("it ended");
    assert!(ended.status.success(), "{}", ended.status);
    Some(finished(&mut capture, &mut live))
}

/// Ends a trace: every event that happened was read or counted as lost.
fn finished(capture: &mut Capture, live: &mut Live) -> Snoop {
    capture.finish(live).expect("the end");
    let snoop = capture.sums(live);
    let happened: u64 = snoop.buffers.iter().map(|buffer| buffer.events).sum();
    assert_eq!(capture.decoded() + snoop.lost(), happened, "{:?}", snoop.buffers);
    snoop
}
