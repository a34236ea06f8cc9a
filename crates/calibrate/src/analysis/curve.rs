//! Curves: rate and latency of small requests over the number outstanding.
//!
//! The maximum is the largest median of the curve. The largest of several noisy figures is somewhat
//! too large, by less than its own interval. So the saturation depth is not that of the maximum. It
//! is the smallest depth within [`SATURATED`] of it.

use crate::{Estimate, Point, TaskResult};
use plumb_units::Nanos;

/// Share of the maximum rate from which on a depth saturates a device.
pub const SATURATED: f64 = 0.97;

/// Measurements at one depth of a curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// Number of requests outstanding, over all threads.
    pub outstanding: usize,
    /// Number of threads that make them.
    pub threads: usize,
    pub iops: Estimate,
    /// Mean latency of requests, microseconds.
    pub mean_micros: Estimate,
    /// p50, p90, p99 and p99.9 of the latency, microseconds.
    pub percentiles_micros: [Estimate; 4],
    /// Longest latency of all repeats, microseconds.
    pub max_micros: f64,
}

/// Small random requests of one mix at several depths.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Number of writes per hundred requests.
    pub write_percent: u8,
    /// One point for each depth, by depth and then by threads.
    pub points: Vec<CurvePoint>,
}

impl Curve {
    /// Extracts the curve of a mix from results; `like` has the properties
    /// that all its points share.
    pub(crate) fn of(results: &[TaskResult], like: &Point, write_percent: u8) -> Curve {
        let mut points: Vec<CurvePoint> =
            results.iter().filter_map(|result| curve_point(result, like, write_percent)).collect();
        points.sort_by_key(|point| (point.outstanding, point.threads));
        Curve { write_percent, points }
    }

    /// Returns the point with the highest rate.
    pub fn maximum(&self) -> Option<&CurvePoint> {
        highest(self.points.iter())
    }

    /// Returns the smallest depth that saturates.
    pub fn saturation(&self) -> Option<&CurvePoint> {
        let enough = self.maximum()?.iops.median * SATURATED;
        self.points.iter().find(|point| point.iops.median >= enough)
    }

    /// Returns the highest rate with a mean latency of at most this.
    pub fn within(&self, latency: Nanos) -> Option<&CurvePoint> {
        highest(self.points.iter().filter(|point| point.mean_micros.median <= latency.micros()))
    }
}

fn highest<'a>(points: impl Iterator<Item = &'a CurvePoint>) -> Option<&'a CurvePoint> {
    points.max_by(|left, right| left.iops.median.total_cmp(&right.iops.median))
}

fn curve_point(result: &TaskResult, like: &Point, write_percent: u8) -> Option<CurvePoint> {
    let point = result.point()?;
    let (load, wanted) = (point.single()?, like.single()?);
    let mut same = *wanted;
    (same.outstanding, same.write_percent) = (load.outstanding, write_percent);
    // The steps of the method ladder make the same requests with other rings.
    if *load != same || !point.reached_like(like) {
        return None;
    }
    let percentile = |quantile| result.latency_micros(0, quantile);
    Some(CurvePoint {
        outstanding: load.outstanding,
        threads: point.threads,
        iops: result.iops(0)?,
        mean_micros: result.mean_micros(0)?,
        percentiles_micros: [percentile(0.5)?, percentile(0.9)?, percentile(0.99)?, percentile(0.999)?],
        max_micros: result.latency(0).max().micros(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(rates: &[(usize, f64, f64)]) -> Curve {
        let one = |value: f64| Estimate::of(&[value; 3], 0.1).expect("three values");
        let points = rates.iter().map(|(outstanding, iops, micros)| CurvePoint {
            outstanding: *outstanding,
            threads: 1,
            iops: one(*iops),
            mean_micros: one(*micros),
            percentiles_micros: [one(*micros), one(*micros), one(*micros), one(*micros)],
            max_micros: *micros,
        });
        Curve { write_percent: 0, points: points.collect() }
    }

    #[test]
    fn saturation_is_the_first_depth_near_the_maximum() {
        let curve = curve(&[(1, 20e3, 50.0), (8, 70e3, 110.0), (16, 74e3, 210.0), (32, 75e3, 420.0)]);
        assert_eq!(curve.maximum().map(|point| point.outstanding), Some(32));
        assert_eq!(curve.saturation().map(|point| point.outstanding), Some(16));
        assert_eq!(curve.within(Nanos(200_000)).map(|point| point.outstanding), Some(8));
        assert_eq!(curve.within(Nanos(10_000)), None);
    }
}
