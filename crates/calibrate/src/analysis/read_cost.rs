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
use plumb_units::{Bytes, ReadLine};
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
        let lines: Vec<ReadLine> = (0..repeats).filter_map(|repeat| line(&found, repeat)).collect();
        let starts: Vec<f64> = lines.iter().map(|line| line.start_seconds * 1e6).collect();
        let rates: Vec<f64> = lines.iter().map(|line| line.bytes_per_second / Bytes::M as f64).collect();
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
    pub fn sort_read_fac(&self, block: Bytes) -> u64 {
        let line = ReadLine {
            start_seconds: self.start_micros.median / 1e6,
            bytes_per_second: self.mb_per_second.median * Bytes::M as f64,
        };
        line.read_fac(block.0)
    }

    /// Describes a merge of blocks in a sort area of 32M, in a line.
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
    pub fn merge_fan_in(&self, sort_area: Bytes, block: Bytes) -> u64 {
        (sort_area.0 / (self.sort_read_fac(block) * block.0).max(1)).max(2)
    }
}

/// Fits the line to one repeat of each size.
fn line(found: &[(u64, &TaskResult)], repeat: usize) -> Option<ReadLine> {
    let times = found.iter().map(|(bytes, result)| {
        let latency = &result.repeats.get(repeat)?.measurement.loads.first()?.latency;
        (latency.count() > 0).then(|| (*bytes as f64, latency.mean().seconds()))
    });
    ReadLine::fit(&times.collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_follows_from_the_cost() {
        let one = |value: f64| Estimate::of(&[value; 3], 0.1).expect("three values");
        let cost =
            ReadCost { start_micros: one(45.0), mb_per_second: one(1.2 * 1024.0), measured: Vec::new() };
        assert_eq!(cost.sort_read_fac(Bytes(8192)), 8);
        assert_eq!(cost.merge_fan_in(Bytes(32 * Bytes::M), Bytes(8192)), 512);
    }
}
