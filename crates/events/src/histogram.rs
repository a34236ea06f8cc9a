//! Log2 histograms of durations, from one microsecond up.

use plumb_units::Nanos;

/// Number of buckets in a histogram.
pub const BUCKETS: usize = 32;

/// Counts by duration: bucket 0 holds durations under 1 us, bucket i those from 2^(i-1) to 2^i us.
/// The last bucket has no upper end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram(pub [u64; BUCKETS]);

impl Histogram {
    /// Returns the bucket of a duration.
    #[inline]
    pub fn bucket(duration: Nanos) -> usize {
        let micros = duration.0 / 1_000;
        ((u64::BITS - micros.leading_zeros()) as usize).min(BUCKETS - 1)
    }

    /// Returns the upper end of a bucket in microseconds, exclusive.
    pub fn upper_micros(bucket: usize) -> u64 {
        1u64 << bucket
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }
}
