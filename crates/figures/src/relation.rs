//! Relations of figures: one side is computed, the other is printed, and both are intervals.
//!
//! A relation that fails by little says less than one that fails by much. The gap is the distance
//! of both intervals over the larger middle: 1,140.2 against 1,140.4 is 0.0002, and 5.1 million
//! against 137 is 1.

use plumb_units::ValueRange;

/// The relation of the computed interval to the printed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    Equal,
    /// The computed value is not above the printed one.
    AtMost,
    /// The computed value is not below the printed one.
    AtLeast,
}

impl Test {
    /// True if a value of each interval is in this relation.
    #[must_use]
    pub fn holds(self, computed: ValueRange, printed: ValueRange) -> bool {
        match self {
            Test::Equal => computed.meets(printed),
            Test::AtMost => computed.may_be_at_most(printed),
            Test::AtLeast => printed.may_be_at_most(computed),
        }
    }
}

/// A product of figures over a product of others, by the keys of the figures.
#[derive(Debug, Clone, Copy)]
pub struct Quotient {
    /// The factors above the line.
    pub over: &'static [&'static str],
    /// The factors below the line.
    pub under: &'static [&'static str],
    /// A factor that no figure has, such as 100 for per cent.
    pub factor: f64,
}

impl Quotient {
    /// Returns the quotient of these keys.
    #[must_use]
    pub const fn new(over: &'static [&'static str], under: &'static [&'static str]) -> Quotient {
        Quotient { over, under, factor: 1.0 }
    }

    /// Returns the values that the quotient may have; `None` if a figure lacks, or if the divisor
    /// may be zero.
    #[must_use]
    pub fn of(&self, figure: impl Fn(&str) -> Option<ValueRange>) -> Option<ValueRange> {
        let product = |keys: &[&str], first: ValueRange| {
            keys.iter().try_fold(first, |product, key| Some(product.times(figure(key)?)))
        };
        let over = product(self.over, ValueRange::exactly(self.factor))?;
        if self.under.is_empty() {
            Some(over)
        } else {
            over.over(product(self.under, ValueRange::exactly(1.0))?)
        }
    }
}

/// Returns the distance of two intervals as a share of the larger middle; 0 if they meet, 1 if they
/// have nothing in common.
#[must_use]
pub fn gap(one: ValueRange, two: ValueRange) -> f64 {
    let distance = (one.low - two.high).max(two.low - one.high);
    if distance <= 0.0 || one.meets(two) {
        return 0.0;
    }
    let size = [one, two].map(|range| range.middle().abs()).into_iter().fold(f64::MIN_POSITIVE, f64::max);
    (distance / size).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(low: f64, high: f64) -> ValueRange {
        ValueRange { low, high }
    }

    #[test]
    fn a_gap_is_a_share_of_the_larger_side() {
        assert_eq!(gap(range(0.0, 2.0), range(1.0, 3.0)), 0.0);
        assert!((gap(range(99.5, 100.5), range(89.5, 90.5)) - 0.09).abs() < 1e-12);
        assert!(gap(range(5.1e6, 5.2e6), range(137.0, 138.0)) > 0.98);
        assert_eq!(gap(range(f64::MAX, f64::MAX), range(0.0, 1.0)), 1.0);
    }

    #[test]
    fn a_quotient_needs_all_of_its_figures_and_a_divisor_above_zero() {
        let quotient = Quotient { over: &["time"], under: &["waits"], factor: 100.0 };
        let of = |waits: f64| {
            quotient.of(|key| match key {
                "time" => Some(range(1.0, 2.0)),
                _ => (waits >= 0.0).then_some(ValueRange::exactly(waits)),
            })
        };
        assert_eq!(of(4.0), Some(range(25.0, 50.0)));
        assert_eq!([of(0.0), of(-1.0)], [None, None]);
    }
}
