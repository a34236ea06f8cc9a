//! Latency histograms: log-linear, mergeable, within 3.2% of every value.
//!
//! Each power of two is cut into 32 equal buckets, so a bucket is at most 1/32 of its values wide.
//! Below 32 ns each nanosecond has a bucket. 36 powers reach from there to 2^41 ns, about 36
//! minutes. Longer times share the last bucket, but the maximum is exact.
//!
//! ```text
//! buckets = 32 + 36 * 32 = 1,184 counters, 9.3 KiB: it stays in the first-level cache
//! adding  = a count of leading zeros, a shift and an increment: below 2 ns
//! ```
//!
//! Why not the log2 histogram only: its buckets are a factor of two wide, so a p99 that moved by
//! 30% would not show. A record stores only the filled buckets, each by its upper end. A session
//! has counters of this shape for each event that it has waited for.

use plumb_units::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;

const PARTS_LOG2: u32 = 5;
const PARTS: u64 = 1 << PARTS_LOG2;
const POWERS: usize = 36;
pub(crate) const BUCKETS: usize = PARTS as usize * (POWERS + 1);

/// Counts of durations by log-linear bucket.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Sparse", into = "Sparse")]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram { counts: vec![0; BUCKETS], count: 0, sum_ns: 0, max_ns: 0 }
    }
}

/// Prints the count and some quantiles, because a thousand buckets, most
/// of them empty, tell nothing.
impl fmt::Debug for LatencyHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99, max) = (self.quantile(0.5), self.quantile(0.99), self.max());
        write!(f, "{} durations: p50 {p50}, p99 {p99}, max {max}", self.count)
    }
}

impl LatencyHistogram {
    /// Counts one duration, in nanoseconds.
    #[inline]
    pub fn add(&mut self, duration: Nanos) {
        self.counts[bucket(duration.0)] += 1;
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(duration.0);
        self.max_ns = self.max_ns.max(duration.0);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &LatencyHistogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Creates a histogram from counts by bucket, with the sum and the maximum of the durations.
    pub(crate) fn of_counts(counts: Vec<u64>, sum: Nanos, max: Nanos) -> LatencyHistogram {
        assert_eq!(counts.len(), BUCKETS, "a count for each bucket");
        let count = counts.iter().sum();
        LatencyHistogram { counts, count, sum_ns: sum.0, max_ns: max.0 }
    }

    /// Subtracts an earlier state of the same histogram; the maximum stays that of all times.
    pub(crate) fn subtract(&mut self, earlier: &LatencyHistogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&earlier.counts) {
            *mine -= theirs;
        }
        self.count -= earlier.count;
        self.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
    }

    /// Returns the number of durations counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean, exact; zero without durations.
    pub fn mean(&self) -> Nanos {
        Nanos(self.sum_ns.checked_div(self.count).unwrap_or(0))
    }

    /// Returns the longest duration, exact.
    pub fn max(&self) -> Nanos {
        Nanos(self.max_ns)
    }

    /// Returns the duration that a share `quantile` (0 to 1) of them does not exceed. It is the
    /// upper end of a bucket, so at most 3.2% too long; zero without durations.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let rank = ((quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0_u64;
        for (index, count) in self.counts.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return Nanos(upper(index).min(self.max_ns));
            }
        }
        self.max()
    }

    /// Returns the filled buckets: the longest duration of each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(index, count)| (Nanos(upper(index)), *count))
    }
}

/// Returns the bucket of a duration.
#[inline]
pub(crate) fn bucket(nanos: u64) -> usize {
    if nanos < PARTS {
        return nanos as usize;
    }
    let shift = u64::BITS - 1 - nanos.leading_zeros() - PARTS_LOG2;
    // nanos >> shift is in 32..64: it selects the row of its power and the place within.
    let index = u64::from(shift) * PARTS + (nanos >> shift);
    (index as usize).min(BUCKETS - 1)
}

fn upper(index: usize) -> u64 {
    let index = index as u64;
    if index < PARTS {
        return index;
    }
    let shift = index / PARTS - 1;
    ((index % PARTS + PARTS + 1) << shift) - 1
}

/// Stored form: only filled buckets.
#[derive(Serialize, Deserialize)]
struct Sparse {
    sum_ns: u64,
    max_ns: u64,
    /// Upper ends in nanoseconds, and counts.
    buckets: Vec<(u64, u64)>,
}

impl From<LatencyHistogram> for Sparse {
    fn from(full: LatencyHistogram) -> Sparse {
        let buckets = full.buckets().map(|(upper, count)| (upper.0, count)).collect();
        Sparse { sum_ns: full.sum_ns, max_ns: full.max_ns, buckets }
    }
}

impl From<Sparse> for LatencyHistogram {
    fn from(sparse: Sparse) -> LatencyHistogram {
        let mut full =
            LatencyHistogram { sum_ns: sparse.sum_ns, max_ns: sparse.max_ns, ..Default::default() };
        for (upper, count) in sparse.buckets {
            // A stored histogram may have any values.
            let bucket = &mut full.counts[bucket(upper)];
            *bucket = bucket.saturating_add(count);
            full.count = full.count.saturating_add(count);
        }
        full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stored histogram may have any counts.
    #[test]
    fn counts_that_no_run_has_are_taken_for_the_most() {
        let most =
            Sparse { sum_ns: u64::MAX, max_ns: u64::MAX, buckets: vec![(1, u64::MAX), (1000, u64::MAX)] };
        let mut histogram = LatencyHistogram::from(most);
        histogram.merge(&histogram.clone());
        assert_eq!((histogram.count(), histogram.quantile(1.0)), (u64::MAX, histogram.quantile(0.0)));
    }

    #[test]
    fn buckets_adjoin_without_gap_or_overlap() {
        for index in 0..BUCKETS - 1 {
            assert_eq!(bucket(upper(index)), index);
            assert_eq!(bucket(upper(index) + 1), index + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_bucket_of_the_sorted_values(
            mut values in prop::collection::vec(0u64..1 << 40, 1..400),
            quantile in 0.0f64..=1.0,
        ) {
            let mut histogram = LatencyHistogram::default();
            for value in &values {
                histogram.add(Nanos(*value));
            }
            values.sort_unstable();
            let rank = ((quantile * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            let found = histogram.quantile(quantile).0;
            prop_assert!(found >= exact, "{found} < {exact}");
            prop_assert!(found as f64 <= exact as f64 * (1.0 + 1.0 / 32.0) + 1.0, "{found} > {exact}");
        }

        #[test]
        fn merging_is_adding_all(
            left in prop::collection::vec(0u64..1 << 45, 0..100),
            right in prop::collection::vec(0u64..1 << 45, 0..100),
        ) {
            let of = |values: &[u64]| {
                let mut histogram = LatencyHistogram::default();
                values.iter().for_each(|value| histogram.add(Nanos(*value)));
                histogram
            };
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let all: Vec<u64> = left.iter().chain(&right).copied().collect();
            prop_assert_eq!(&merged, &of(&all));
            let text = serde_json::to_string(&merged).expect("plain data");
            let back: LatencyHistogram = serde_json::from_str(&text).expect("its own form");
            prop_assert_eq!(back, merged);
        }
    }
}
