//! A figure of repeated measurements, as studies state it: the pseudo-median with its exact 95%
//! interval (`proof::signed_rank`). Ratios are estimated by their logarithms, from pairs that were
//! measured in turn.

use plumb_proof::interval::Interval;
use plumb_proof::signed_rank;

/// The error that intervals are allowed.
const ALPHA: f64 = 0.05;

/// The good side of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    AtLeast,
    AtMost,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// Unbounded with fewer than six measurements.
    pub(super) interval: Interval,
}

impl Figure {
    pub(super) fn of(values: impl AsRef<[f64]>) -> Figure {
        let values = values.as_ref();
        Figure { value: signed_rank::estimate(values), interval: signed_rank::interval(values, ALPHA) }
    }

    /// Estimates a ratio from those of pairs.
    pub(super) fn of_ratios(ratios: impl AsRef<[f64]>) -> Figure {
        let logs: Vec<f64> = ratios.as_ref().iter().map(|ratio| ratio.ln()).collect();
        let Figure { value, interval } = Figure::of(&logs);
        Figure {
            value: value.exp(),
            interval: Interval { low: interval.low.exp(), high: interval.high.exp() },
        }
    }

    pub(super) fn show(&self, decimals: usize) -> String {
        let Figure { value, interval: Interval { low, high } } = self;
        if high.is_finite() {
            format!("{value:.decimals$} [{low:.decimals$}, {high:.decimals$}]")
        } else {
            format!("{value:.decimals$} (too few rounds for an interval)")
        }
    }

    /// States if the goal is reached, and if the interval leaves no doubt.
    pub(super) fn verdict(&self, goal: Goal, limit: f64) -> &'static str {
        let good = |value: f64| match goal {
            Goal::AtLeast => value >= limit,
            Goal::AtMost => value <= limit,
        };
        match (good(self.value), good(self.interval.low), good(self.interval.high)) {
            (true, true, true) => "reached",
            (true, ..) => "reached, not beyond doubt",
            (false, false, false) => "missed",
            (false, ..) => "missed, not beyond doubt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_reached_or_missed_and_doubt_is_said() {
        let clear = Figure::of_ratios([1.01, 1.0, 0.99, 1.02, 1.0, 1.01, 0.99, 1.0]);
        assert_eq!(clear.verdict(Goal::AtLeast, 0.97), "reached");
        assert_eq!(clear.verdict(Goal::AtMost, 0.97), "missed");
        assert_eq!(clear.verdict(Goal::AtMost, 1.0 + 1e-9), "reached, not beyond doubt");
        assert_eq!(Figure::of_ratios([0.5; 8]).verdict(Goal::AtLeast, 0.97), "missed");
        let few = Figure::of_ratios([0.5; 3]);
        assert_eq!(few.verdict(Goal::AtLeast, 0.97), "missed, not beyond doubt");
        assert_eq!(few.show(3), "0.500 (too few rounds for an interval)");
    }
}
