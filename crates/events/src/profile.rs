//! The I/O profile: bytes per stream over time, in a bounded number of buckets.
//!
//! A bucket starts one millisecond wide. When an event falls past the last of the 4,096
//! buckets, pairs are summed and the width doubles. So an hour costs the same memory as a
//! second, and nothing is dropped: at most 32 KiB for each stream that a session uses.

use crate::IoStream;
use plumb_units::Nanos;
use std::array;
use std::iter::repeat_n;

const BUCKET_COUNT: usize = 4096;
const FIRST_WIDTH: u64 = 1_000_000;

/// Bytes moved per stream and time bucket since an origin.
#[derive(Debug, Clone)]
pub struct Profile {
    origin: Nanos,
    width: u64,
    /// Buckets of each stream up to its last byte. A session uses few of the streams, so that an
    /// unused one has no memory.
    streams: [Vec<u64>; IoStream::COUNT],
}

impl Profile {
    /// Creates an empty profile that starts at `origin`.
    pub fn new(origin: Nanos) -> Profile {
        Profile { origin, width: FIRST_WIDTH, streams: array::from_fn(|_| Vec::new()) }
    }

    /// Returns the width of a bucket in nanoseconds.
    pub fn width(&self) -> Nanos {
        Nanos(self.width)
    }

    /// Returns the time at which the first bucket starts.
    pub fn origin(&self) -> Nanos {
        self.origin
    }

    /// Returns the bytes of one stream, bucket by bucket, up to the last bucket of any stream.
    pub fn series(&self, stream: IoStream) -> impl Iterator<Item = u64> {
        let length = self.streams.iter().map(Vec::len).max().unwrap_or(0);
        let own = &self.streams[stream as usize];
        own.iter().copied().chain(repeat_n(0, length - own.len()))
    }

    /// Counts bytes whose transfer ran from `begin` to `end`. They are spread evenly over that
    /// time, so that an asynchronous write of 512K that took 3 ms makes no spike at its end.
    pub fn add(&mut self, stream: IoStream, begin: Nanos, end: Nanos, bytes: u64) {
        let last = self.bucket_at(end);
        let first = self.bucket_at(begin).min(last);
        let buckets = &mut self.streams[stream as usize];
        if buckets.len() <= last {
            buckets.resize(last + 1, 0);
        }
        let shares = (last - first + 1) as u64;
        buckets[first..=last].iter_mut().for_each(|bucket| *bucket += bytes / shares);
        buckets[last] += bytes % shares;
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
        for (mine, theirs) in self.streams.iter_mut().zip(&other.streams) {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0);
            }
            mine.iter_mut().zip(theirs).for_each(|(total, bytes)| *total += bytes);
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
        for buckets in &mut self.streams {
            *buckets = buckets.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_memory_only_for_the_streams_that_it_uses() {
        let mut profile = Profile::new(Nanos(0));
        for second in 0..600 {
            profile.add(IoStream::CacheReads, Nanos(0), Nanos(second * 1_000_000_000), 8192);
        }
        let buckets: usize = profile.streams.iter().map(Vec::capacity).sum();
        assert!(buckets <= 2 * BUCKET_COUNT, "{buckets}");
        assert_eq!(profile.series(IoStream::LogWrites).count(), profile.series(IoStream::CacheReads).count());
    }
}
