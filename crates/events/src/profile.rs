//! The I/O profile: bytes per stream over time, in a bounded number of buckets.
//!
//! A bucket starts one millisecond wide. When an event falls past the last of the 4,096
//! buckets, pairs are summed and the width doubles. So an hour costs the same memory as a
//! second, and nothing is dropped.

use crate::IoStream;
use plumb_units::Nanos;

const BUCKET_COUNT: usize = 4096;
const FIRST_WIDTH: u64 = 1_000_000;

/// Bytes moved per stream and time bucket since an origin.
#[derive(Debug, Clone)]
pub struct Profile {
    origin: Nanos,
    width: u64,
    buckets: Vec<[u64; IoStream::COUNT]>,
}

impl Profile {
    /// Creates an empty profile that starts at `origin`.
    #[must_use]
    pub fn new(origin: Nanos) -> Profile {
        Profile { origin, width: FIRST_WIDTH, buckets: Vec::new() }
    }

    /// Returns the width of a bucket in nanoseconds.
    #[must_use]
    pub fn width(&self) -> Nanos {
        Nanos(self.width)
    }

    /// Returns the time at which the first bucket starts.
    #[must_use]
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// Returns the bytes of one stream, bucket by bucket.
    pub fn series(&self, stream: IoStream) -> impl Iterator<Item = u64> {
        self.buckets.iter().map(move |bucket| bucket[stream as usize])
    }

    /// Counts bytes whose transfer ran from `begin` to `end`. They are spread evenly over that
    /// time, so that an asynchronous write of 512K that took 3 ms makes no spike at its end.
    pub fn add(&mut self, stream: IoStream, begin: Nanos, end: Nanos, bytes: u64) {
        let last = self.bucket_at(end);
        let first = self.bucket_at(begin).min(last);
        let last = self.bucket_at(end);
        if self.buckets.len() <= last {
            self.buckets.resize(last + 1, [0; IoStream::COUNT]);
        }
        let shares = (last - first + 1) as u64;
        for bucket in &mut self.buckets[first..=last] {
            bucket[stream as usize] += bytes / shares;
        }
        self.buckets[last][stream as usize] += bytes % shares;
    }

    /// Adds another profile, which may have another width but must share the origin.
    pub fn merge(&mut self, other: &Profile) {
        debug_assert_eq!(self.origin, other.origin);
        let mut other = other.clone();
        while self.width < other.width {
            self.fold();
        }
        while other.width < self.width {
            other.fold();
        }
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), [0; IoStream::COUNT]);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            for (total, bytes) in mine.iter_mut().zip(theirs) {
                *total += bytes;
            }
        }
    }

    fn bucket_at(&mut self, at: Nanos) -> usize {
        let since = at.saturating_sub(self.origin).0;
        while since / self.width >= BUCKET_COUNT as u64 {
            self.fold();
        }
        (since / self.width) as usize
    }

    fn fold(&mut self) {
        self.width *= 2;
        self.buckets = self
            .buckets
            .chunks(2)
            .map(|pair| {
                let mut sum = pair[0];
                if let Some(second) = pair.get(1) {
                    for (total, bytes) in sum.iter_mut().zip(second) {
                        *total += bytes;
                    }
                }
                sum
            })
            .collect();
    }
}
