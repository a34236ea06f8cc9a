//! Confidence intervals.

/// Ends of a confidence interval, both inside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end; minus infinity if unbounded.
    pub low: f64,
    /// Upper end; plus infinity if unbounded.
    pub high: f64,
}

impl Interval {
    /// Interval of too few blocks, which excludes nothing.
    pub const UNBOUNDED: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// True if the value lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}
