//! Seeded random numbers (SplitMix64), sufficient for shuffling and filling.
//!
//! The output passes the usual tests and does not compress, and one word costs about a nanosecond.
//! The whole state is the seed that a calibration records.

use plumb_units::SplitMix;

/// A stream of random words.
#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random(SplitMix(seed))
    }

    /// Returns the stream of one part of a calibration, independent of other parts.
    pub(crate) fn part(seed: u64, part: u64) -> Random {
        let mut random = SplitMix(seed ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.draw();
        Random(random)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.draw()
    }

    /// Returns a number below `limit`, which must not be zero; the bias is below limit / 2^64.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        debug_assert!(limit > 0);
        ((u128::from(self.word()) * u128::from(limit)) >> 64) as u64
    }

    /// Puts items in random order with equal probabilities (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }

    /// Fills a buffer with bytes that no device can compress.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(size_of::<u64>()) {
            let word = self.word().to_le_bytes();
            part.copy_from_slice(&word[..part.len()]);
        }
    }
}
