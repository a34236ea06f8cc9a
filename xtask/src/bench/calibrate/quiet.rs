//! Waiting for a quiet moment: a pair of measurements beside a compiler compares two
//! moments of the compiler.
//!
//! Processors are looked at for a tenth of a second while nothing is asked of them. They
//! are quiet when others use less than a tenth of their time. The wait has an end: a
//! machine that is never quiet gives wide intervals, and the report says how often that was.

use plumb_events::now;
use plumb_units::Nanos;
use std::time::Duration;
use std::{fs, thread};

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
        let before = ticks();
        thread::sleep(LOOK);
        // Where nobody counts, nobody can tell.
        let Some(busy) = before.zip(ticks()).map(|(before, after)| busy_share(before, after)) else {
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

/// Ticks of all processors since the start: idle ones, and all.
fn ticks() -> Option<(u64, u64)> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    // user nice system idle iowait irq softirq steal; guest time is in user's.
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
}

fn busy_share(before: (u64, u64), after: (u64, u64)) -> f64 {
    let (idle, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    if all == 0 { 1.0 } else { 1.0 - idle as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_ticks_are_not_busy() {
        let at =
            |user, idle| parse(&format!("cpu  {user} 0 5 {idle} 10 0 0 5 0 0\ncpu0 1\n")).expect("ticks");
        assert_eq!(at(80, 900), (910, 1_000));
        assert!((busy_share(at(80, 900), at(85, 915)) - 0.25).abs() < 1e-9);
        assert_eq!(busy_share(at(80, 900), at(80, 900)), 1.0);
        assert_eq!(parse("intr 1"), None);
    }
}
