//! A delay put before every request, so that the laboratory can be held to an effect of known size.
//!
//! The session sleeps, and the wait of the request's event has the time: it adds up as any other.
//! A kernel sleeps longer than it is asked to, by some 50 us where timers are slack. So the delay is
//! kept as a debt: each request adds its share, each sleep takes off what it really took, and a
//! request that finds nothing owed does not sleep. The mean is exact but for the excess of the
//! channel's last sleep. Why not spin: the processor would be busy, and the time would be CPU
//! instead of a wait.

use plumb_events::{now, sharing};
use plumb_units::Nanos;
use std::time::Duration;

/// What a channel owes to its requests.
#[derive(Debug)]
pub(super) struct Delay {
    each: Nanos,
    /// Nanoseconds still to be slept; below 0, slept in advance.
    owed: i128,
}

impl Delay {
    /// A delay of so much for each request; none for 0.
    pub(super) fn of(each: Nanos) -> Option<Delay> {
        (each > Nanos(0)).then_some(Delay { each, owed: 0 })
    }

    /// Lets one request's share pass, on average. Gives how long it slept.
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
