//! Waiting for a quiet moment, because a pair of measurements next to a compiler compares two
//! moments of the compiler.
//!
//! Processor times are read over a tenth of a second in which this program does nothing. The
//! machine is quiet if others use less than a tenth of it. The wait has an end: a machine that is
//! never quiet gives wide intervals, and the report says how often that was.

use plumb_events::now;
use plumb_record::HostCpu;
use plumb_study::machine::CpuTimes;
use plumb_units::Nanos;
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(100);
/// Others use at most so much of the processors' time.
const BUSY_SHARE_MAX: f64 = 0.1;

/// Use of the processors just before a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// Others hardly used the processors.
    Quiet,
    /// They still did when the wait ended.
    Busy,
}

/// Waits for a quiet moment, at most so long.
pub(super) fn wait(longest: Nanos) -> Moment {
    let end = now() + longest;
    loop {
        let before = CpuTimes::read();
        thread::sleep(LOOK);
        let used = before.zip(CpuTimes::read()).map(|(before, after)| after.since(&before, None, None));
        // Without the kernel's counts the moment may be a busy one.
        let Some(busy) = used.map(|used| busy_share(&used)) else {
            return Moment::Busy;
        };
        if busy <= BUSY_SHARE_MAX {
            return Moment::Quiet;
        }
        if now() >= end {
            return Moment::Busy;
        }
    }
}

/// Share of the processors' time that was used; all of it if no time passed.
fn busy_share(used: &HostCpu) -> f64 {
    let all = used.total_ns();
    if all == 0 { 1.0 } else { 1.0 - (used.idle_ns + used.iowait_ns) as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_time_is_not_busy() {
        let used = |user_ns, idle_ns| HostCpu {
            user_ns,
            system_ns: 5,
            iowait_ns: 10,
            steal_ns: 0,
            idle_ns,
            load_begin: None,
            load_end: None,
        };
        assert!((busy_share(&used(5, 20)) - 0.25).abs() < 1e-9);
        assert_eq!(busy_share(&HostCpu { system_ns: 0, iowait_ns: 0, ..used(0, 0) }), 1.0);
    }
}
