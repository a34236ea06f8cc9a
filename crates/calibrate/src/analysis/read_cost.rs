//! Cost of a read: t(bytes) = s + bytes / B, one request at a time.
//!
//! The line is fitted to the mean latencies of random reads of several sizes by least squares of
//! relative errors. The scatter of a time grows with the time, and in a plain fit the longest reads
//! would determine the start. Each repeat has one line. Start and rate are medians over the
//! repeats, with intervals like those of all figures.
//!
//! It determines the figures that plan a merge:
//!
//! ```text
//! sort_read_fac = (s + b / B) / (b / B)        the first block over each further one
//! merge fan-in  = sort area / (sort_read_fac * b)
//! s = 45 us, B = 1.2 GB/s, b = 8K: b / B = 6.4 us, sort_read_fac = 8, 32M / 64K = 512 runs
//! ```
//!
//! Limits: reads that compete with writes or with each other cost more.

use crate::measure::{SETTLED_LIMIT, find};
use crate::plan::READ_COST_SIZES;
use crate::{Estimate, Load, Point, TaskResult};
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// Cost of reads, as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadCost {
    /// s: time of a read before its first byte, microseconds.
    pub start_micros: Estimate,
    /// B: MB per second after the start.
    pub mb_per_second: Estimate,
    /// Sizes and mean latencies (microseconds) on the line.
    pub measured: Vec<(u64, Estimate)>,
}

impl ReadCost {
    /// Fits the cost to results; `like` is the read of a small request.
    pub(crate) fn of(results: &[TaskResult], like: &Point) -> Option<ReadCost> {
        let mut sizes: Vec<u64> = READ_COST_SIZES.map(|size| size.0).to_vec();
        sizes.push(like.single()?.request_bytes);
        sizes.sort_unstable();
        sizes.dedup();
        let of_size = |bytes: &u64| {
            let point = like.with(vec![Load::random_read(Bytes(*bytes), 1)], 1);
            find(results, &point).map(|result| (*bytes, result))
        };
        let found: Vec<(u64, &TaskResult)> = sizes.iter().filter_map(of_size).collect();
        let repeats = found.iter().map(|(_, result)| result.repeats.len()).min()?;
        if found.len() < 2 {
            return None;
        }
        let lines: Vec<(f64, f64)> = (0..repeats).filter_map(|repeat| line(&found, repeat)).collect();
        let starts: Vec<f64> = lines.iter().map(|(start, _)| start * 1e6).collect();
        let rates: Vec<f64> = lines.iter().map(|(_, rate)| rate / Bytes::M as f64).collect();
        Some(ReadCost {
            start_micros: Estimate::of(&starts, SETTLED_LIMIT)?,
            mb_per_second: Estimate::of(&rates, SETTLED_LIMIT)?,
            measured: found
                .iter()
                .filter_map(|(bytes, result)| Some((*bytes, result.mean_micros(0)?)))
                .collect(),
        })
    }

    /// Returns the cost of a read's first block relative to a further one, at least 1.
    #[must_use]
    pub fn sort_read_fac(&self, block: Bytes) -> u64 {
        let transfer = block.0 as f64 / (self.mb_per_second.median * Bytes::M as f64);
        let ratio = (self.start_micros.median / 1e6 + transfer) / transfer;
        if ratio.is_finite() { (ratio.round() as u64).max(1) } else { 1 }
    }

    /// Describes a merge of blocks in a sort area of 32M, in a line.
    #[must_use]
    pub fn of_a_merge(&self, block: Bytes) -> String {
        let area = Bytes(32 * Bytes::M);
        format!(
            "sort_read_fac {} of {} blocks, so {} runs at once in a sort area of {}",
            self.sort_read_fac(block),
            block.as_setting(),
            self.merge_fan_in(area, block),
            area.as_setting()
        )
    }

    /// Returns the number of runs that one merge takes in a sort area, at least two.
    #[must_use]
    pub fn merge_fan_in(&self, sort_area: Bytes, block: Bytes) -> u64 {
        (sort_area.0 / (self.sort_read_fac(block) * block.0).max(1)).max(2)
    }
}

/// Fits the line to one repeat of each size.
fn line(found: &[(u64, &TaskResult)], repeat: usize) -> Option<(f64, f64)> {
    let times = found.iter().map(|(bytes, result)| {
        let latency = &result.repeats.get(repeat)?.measurement.loads.first()?.latency;
        (latency.count() > 0).then(|| (*bytes as f64, latency.mean().seconds()))
    });
    fit(&times.collect::<Option<Vec<_>>>()?)
}

/// Returns the start in seconds and bytes per second; `None` if longer reads take no longer.
fn fit(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    // Each error is divided by the time: weights of 1 / t^2 in the normal equations.
    let sum = |term: fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|(bytes, seconds)| term(*bytes, *seconds) / (seconds * seconds)).sum()
    };
    let (weight, x, y) = (sum(|_, _| 1.0), sum(|b, _| b), sum(|_, s| s));
    let (xx, xy) = (sum(|b, _| b * b), sum(|b, s| b * s));
    let slope = (weight * xy - x * y) / (weight * xx - x * x);
    let start = (y - slope * x) / weight;
    if !slope.is_finite() || slope <= 0.0 {
        return None;
    }
    // A negative start is impossible, so the line then goes through zero.
    Some(if start >= 0.0 { (start, 1.0 / slope) } else { (0.0, xx / xy) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found_and_the_merge_follows() {
        let time = |bytes: f64| 45e-6 + bytes / 1.2e9;
        let points: Vec<(f64, f64)> = [8e3, 64e3, 256e3, 1e6].map(|bytes| (bytes, time(bytes))).to_vec();
        let (start, rate) = fit(&points).expect("a line");
        assert!((start - 45e-6).abs() < 1e-9 && (rate - 1.2e9).abs() < 1e3, "{start} {rate}");
        let one = |value: f64| Estimate::of(&[value; 3], 0.1).expect("three values");
        let cost =
            ReadCost { start_micros: one(45.0), mb_per_second: one(1.2 * 1024.0), measured: Vec::new() };
        assert_eq!(cost.sort_read_fac(Bytes(8192)), 8);
        assert_eq!(cost.merge_fan_in(Bytes(32 * Bytes::M), Bytes(8192)), 512);
    }

    #[test]
    fn a_device_with_equal_read_times_has_no_line() {
        assert_eq!(fit(&[(8e3, 1e-3), (64e3, 1e-3), (1e6, 0.9e-3)]), None);
        let through_zero = fit(&[(1e3, 0.5e-6), (1e6, 1e-3)]).expect("a line");
        assert_eq!(through_zero.0, 0.0);
    }
}
