//! A limit of the requests a second, so that a system in use can be measured gently.
//!
//! A request is sent at the earliest an interval after the one before. Time that passes without a
//! request is not saved up: a burst would be what the limit is to prevent. While something is
//! outstanding a thread waits for that, even if its next request is due earlier, so that every
//! latency is exact and the rate stays somewhat below the limit.

use plumb_events::now;
use plumb_units::Nanos;
use std::thread;
use std::time::Duration;

/// Times of one thread's requests under a limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// Between two requests of the thread; zero without a limit.
    interval: Nanos,
    due: Nanos,
}

impl Pace {
    /// Divides a limit of requests a second among this number of threads.
    pub(crate) fn of(max_rate: Option<u64>, sharers: usize) -> Pace {
        let second = Nanos(1_000_000_000);
        let interval = max_rate.map_or(Nanos(0), |rate| Nanos(second.0 * sharers as u64 / rate.max(1)));
        Pace { interval, due: Nanos(0) }
    }

    /// True if a request may be sent at this time; it then counts as sent.
    #[inline]
    pub(crate) fn take(&mut self, at: Nanos) -> bool {
        let due = at >= self.due;
        if due {
            self.due = at + self.interval;
        }
        due
    }

    /// Sleeps until a request may be sent, which then counts as sent.
    pub(crate) fn wait(&mut self) {
        while !self.take(now()) {
            self.sleep();
        }
    }

    /// Sleeps until a request may be sent.
    pub(crate) fn sleep(&self) {
        thread::sleep(Duration::from_nanos(self.due.saturating_sub(now()).0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_keep_their_distance_and_save_none_up() {
        let mut pace = Pace::of(Some(1_000), 2);
        let sent: Vec<u64> = (0..10_000_000).step_by(100_000).filter(|at| pace.take(Nanos(*at))).collect();
        assert_eq!(sent, [0, 2_000_000, 4_000_000, 6_000_000, 8_000_000]);
        // A pause of a second is followed by one request, and the next an interval later.
        let late: Vec<bool> = [1_000, 1_001, 1_002].map(|ms| pace.take(Nanos(ms * 1_000_000))).to_vec();
        assert_eq!(late, [true, false, true]);
        let mut unlimited = Pace::of(None, 2);
        assert!((0..3).all(|_| unlimited.take(Nanos(5))));
    }
}
