//! Confidence intervals.

/// Ends of a confidence interval, both inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// What too few blocks give.
    pub const UNBOUNDED: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// Whether the value is one of those not rejected.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
