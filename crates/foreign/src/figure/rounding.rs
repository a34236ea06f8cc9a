//! Exact values from printed ones: nanoseconds, whole counts, the middle of two intervals.

use plumb_units::ValueRange;

/// Converts seconds to whole nanoseconds; `None` for a negative time.
#[must_use]
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round().clamp(0.0, u64::MAX as f64) as u64
}

/// Rounds a count or a number of bytes to the integer of a record.
#[must_use]
pub fn whole(value: f64) -> u64 {
    value.round().clamp(0.0, u64::MAX as f64) as u64
}

/// Returns the best estimate of a figure known in two ways: the middle of the values that both
/// allow, otherwise the middle of the narrower interval.
#[must_use]
pub fn best(one: Option<ValueRange>, two: Option<ValueRange>) -> Option<f64> {
    let width = |range: &ValueRange| range.high - range.low;
    match (one, two) {
        (Some(one), Some(two)) => {
            let narrower = if width(&one) <= width(&two) { one } else { two };
            Some(one.and(two).unwrap_or(narrower).middle())
        }
        (one, two) => one.or(two).map(ValueRange::middle),
    }
}
