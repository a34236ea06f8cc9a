//! A delay before every request: an effect of known size, with which the laboratory is tested.
//!
//! The session sleeps, and the wait of the request's event includes the sleep, so times still add
//! up. A kernel sleeps longer than asked, by some 50 us where timers are slack. So the delay is
//! kept as a debt: each request adds its share, each sleep subtracts its true length, and a request
//! without debt does not sleep. The mean is exact but for the excess of the channel's last sleep.
//! Why not spin: the time would be CPU instead of a wait.

use plumb_events::{now, sharing};
use plumb_units::Nanos;
use std::time::Duration;

/// The delay still owed to a channel's requests.
#[derive(Debug)]
pub(super) struct Delay {
    each: Nanos,
    /// Nanoseconds of delay still owed; negative after an oversleep.
    owed: i128,
}

impl Delay {
    /// Returns a delay of `each` a request; `None` for zero.
    pub(super) fn of(each: Nanos) -> Option<Delay> {
        (each > Nanos(0)).then_some(Delay { each, owed: 0 })
    }

    /// Sleeps as long as the requests so far are owed. Returns the time slept.
    pub(super) fn pass(&mut self) -> Nanos {
        self.owed += i128::from(self.each.0);
        let Ok(owed) = u64::try_from(self.owed) else { return Nanos(0) };
        let begin = now();
        sharing::sleep(Duration::from_nanos(owed));
        let slept = now().saturating_sub(begin);
        self.owed -= i128::from(slept.0);
        slept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_is_ahead_of_what_it_owes() {
        assert!(Delay::of(Nanos(0)).is_none());
        let mut delay = Delay::of(Nanos(20_000)).expect("a delay");
        let begin = now();
        for request in 1..=50_u64 {
            delay.pass();
            assert!(now().saturating_sub(begin) >= Nanos(20_000 * request));
            assert!(delay.owed <= 0);
        }
    }
}
