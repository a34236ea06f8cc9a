//! Bytes over time as data: the streams of a run, or of two runs on the same axes.
//!
//! Axes are part of the data, so that two reports can be compared side by side. Text draws them in
//! characters, a page with a script from the same data.

use crate::strip::Strip;
use plumb_units::{Bytes, total_of};
use serde::Serialize;

#[derive(Debug, Clone, Serialize)]
pub struct Chart {
    /// End of the time axis, seconds.
    pub x_max_s: f64,
    /// Top of the vertical axis, MB/s.
    pub y_max_mb_per_s: f64,
    /// Length of a bucket, seconds.
    pub bucket_s: f64,
    pub streams: Vec<Stream>,
    /// The phases, in the order of their start.
    pub bands: Vec<Band>,
    /// A line at a rate that limits the streams.
    pub limit: Option<Limit>,
    /// Samples of the machine, as panels on the same time axis.
    pub strips: Vec<Strip>,
}

/// Bytes of one kind over time.
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    pub name: String,
    /// Index of its colour in the palette, the same in every report even if other streams are idle.
    pub colour: usize,
    /// Bytes in each bucket, the first at the start.
    pub bytes: Vec<u64>,
}

/// A phase on the time axis.
#[derive(Debug, Clone, Serialize)]
pub struct Band {
    pub name: String,
    /// Start of the phase, seconds.
    pub start_s: f64,
    /// End of the phase, seconds.
    pub end_s: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    /// Name of the device or calibration.
    pub name: String,
    pub mb_per_s: f64,
}

/// Profiles of two runs on the same axes.
#[derive(Debug, Clone, Serialize)]
pub struct PairChart {
    pub title: String,
    /// The reference, then the treatment; both have the same streams in the same order.
    pub sides: [Side; 2],
}

#[derive(Debug, Clone, Serialize)]
pub struct Side {
    /// Arm and number of the run.
    pub name: String,
    /// End of the run, seconds.
    pub end_s: f64,
    pub chart: Chart,
}

impl Stream {
    /// Sum of all buckets, bytes.
    pub fn total(&self) -> u64 {
        total_of(self.bytes.iter().copied())
    }

    /// Rate of the largest bucket, MB/s.
    pub fn peak_mb_per_s(&self, bucket_s: f64) -> f64 {
        let largest = self.bytes.iter().copied().max().unwrap_or(0);
        largest as f64 / Bytes::M as f64 / bucket_s
    }

    /// Mean rate between two times, MB/s.
    pub(crate) fn rate_mb_per_s(&self, bucket_s: f64, from_s: f64, to_s: f64) -> f64 {
        let first = (from_s / bucket_s).floor() as usize;
        let last = (to_s / bucket_s).ceil() as usize;
        let buckets = self.bytes.iter().enumerate().take(last).skip(first);
        let bytes = buckets.map(|(index, bytes)| {
            let start_s = index as f64 * bucket_s;
            let overlap_s = to_s.min(start_s + bucket_s) - from_s.max(start_s);
            *bytes as f64 * (overlap_s / bucket_s).max(0.0)
        });
        bytes.sum::<f64>() / Bytes::M as f64 / (to_s - from_s)
    }
}

/// Returns the end of a vertical axis: a round number not below the value.
pub fn axis_end(value: f64) -> f64 {
    round_ceiling(value, &AXIS_ENDS)
}

/// First digits at which a vertical axis may end.
const AXIS_ENDS: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];

/// First digits of a distance between ticks.
const TICK_STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Returns the distance between at most ten ticks of a time axis with this end.
pub fn tick_step(x_max_s: f64) -> f64 {
    round_ceiling(x_max_s / 10.0, &TICK_STEPS)
}

/// Returns the smallest of the digits times a power of ten that is not below the value.
fn round_ceiling(value: f64, digits: &[f64]) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let mut ends = digits.iter().map(|digit| digit * power);
    ends.find(|end| *end >= value).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_above_the_data() {
        for (value, end) in [
            (0.0, 1.0),
            (0.27, 0.3),
            (1.0, 1.0),
            (1.1, 1.5),
            (441.0, 500.0),
            (801.0, 1000.0),
            (1000.0, 1000.0),
            (1001.0, 1500.0),
        ] {
            assert!((axis_end(value) - end).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_time_axis_has_at_most_ten_steps() {
        for (x_max_s, step_s) in [(30.0, 5.0), (0.9, 0.1), (100.0, 10.0), (101.0, 20.0)] {
            assert!((tick_step(x_max_s) - step_s).abs() < 1e-9, "{x_max_s}");
        }
    }
}
