//! An interval of values, such as those that print as one text.

use serde::Serialize;

/// An interval of values that a figure may have. An end may be infinite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ValueRange {
    /// The least value that is allowed.
    pub low: f64,
    /// The greatest value that is allowed.
    pub high: f64,
}

impl ValueRange {
    /// Returns the interval that has one value alone.
    pub const fn exactly(value: f64) -> ValueRange {
        ValueRange { low: value, high: value }
    }

    /// Returns the value halfway between both ends.
    pub fn middle(self) -> f64 {
        self.low / 2.0 + self.high / 2.0
    }

    /// Returns the smallest interval that has the sum of a value of each.
    #[must_use]
    pub fn plus(self, other: ValueRange) -> ValueRange {
        ValueRange { low: self.low + other.low, high: self.high + other.high }
    }

    /// Returns the smallest interval that has the product of a value of each.
    #[must_use]
    pub fn times(self, other: ValueRange) -> ValueRange {
        let ends =
            [self.low * other.low, self.low * other.high, self.high * other.low, self.high * other.high];
        let [low, high] = [f64::min, f64::max].map(|end: fn(f64, f64) -> f64| {
            ends.into_iter().filter(|end| !end.is_nan()).reduce(end).unwrap_or(0.0)
        });
        ValueRange { low, high }
    }

    /// Returns the values that a quotient may have; none where the divisor may be zero or less.
    #[must_use]
    pub fn over(self, divisor: ValueRange) -> Option<ValueRange> {
        let low = self.low / if self.low < 0.0 { divisor.low } else { divisor.high };
        let high = self.high / if self.high < 0.0 { divisor.high } else { divisor.low };
        (divisor.low > 0.0).then_some(ValueRange { low, high })
    }

    /// True if both have a value in common. A relative 1e-9 is left for the arithmetic of floats.
    pub fn meets(self, other: ValueRange) -> bool {
        self.may_be_at_most(other) && other.may_be_at_most(self)
    }

    /// True if a value of this interval is at most one of the other, with the same slack.
    pub fn may_be_at_most(self, other: ValueRange) -> bool {
        let ends = [self.low, other.high].into_iter().filter(|end| end.is_finite());
        // The error of sums and products of floats. An end that is infinite, or is not compared,
        // has no part in it: otherwise everything would meet it.
        self.low <= other.high + 1e-9 * ends.map(f64::abs).fold(0.0, f64::max)
    }

    /// Returns the values that both have.
    #[must_use]
    pub fn and(self, other: ValueRange) -> Option<ValueRange> {
        let both = ValueRange { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(low: f64, high: f64) -> ValueRange {
        ValueRange { low, high }
    }

    #[test]
    fn an_infinite_end_meets_what_it_reaches_and_nothing_else() {
        let above = range(5.0, f64::INFINITY);
        assert!(above.meets(range(0.0, 6.0)) && above.meets(above));
        assert!(!above.meets(range(0.0, 3.0)), "an infinite slack holds always");
        assert!(!range(5.0, f64::MAX).meets(range(0.0, 3.0)), "and so does a very large one");
        assert!(!range(0.0, 3.0).meets(above));
        assert!(!range(f64::NEG_INFINITY, 1.0).meets(range(2.0, 3.0)));
        assert!(!above.may_be_at_most(range(0.0, 3.0)) && range(0.0, 3.0).may_be_at_most(above));
    }

    #[test]
    fn floats_that_differ_in_their_last_digit_meet() {
        assert!(ValueRange::exactly(0.1 + 0.2).meets(ValueRange::exactly(0.3)));
        assert!(!ValueRange::exactly(0.3).meets(ValueRange::exactly(0.300_001)));
    }
}
