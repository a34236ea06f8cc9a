//! A figure of repeated measurements, as studies state it: the pseudo-median with its exact 95%
//! interval (`proof::signed_rank`).

use plumb_proof::interval::Interval;
use plumb_proof::signed_rank;

/// The error that intervals are allowed.
const ALPHA: f64 = 0.05;

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

    pub(super) fn show(&self, decimals: usize) -> String {
        let Figure { value, interval: Interval { low, high } } = self;
        if high.is_finite() {
            format!("{value:.decimals$} [{low:.decimals$}, {high:.decimals$}]")
        } else {
            format!("{value:.decimals$} (too few rounds for an interval)")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_interval_or_says_that_it_needs_more_rounds() {
        assert_eq!(Figure::of([2.0; 8]).show(1), "2.0 [2.0, 2.0]");
        assert_eq!(Figure::of([0.5; 3]).show(3), "0.500 (too few rounds for an interval)");
    }
}
