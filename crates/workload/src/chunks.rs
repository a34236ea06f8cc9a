//! The rows of a generated table, in chunks that any thread can make from their numbers.

use plumb_units::SplitMix;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a chunk, except the last: about 350 KB of them.
pub(crate) const CHUNK_ROWS: u64 = 8192;

/// The chunks of a table, each given to one caller.
#[derive(Debug)]
pub(crate) struct Chunks {
    rows: u64,
    seed: u64,
    next: AtomicU64,
}

impl Chunks {
    pub(crate) fn new(rows: u64, seed: u64) -> Chunks {
        Chunks { rows, seed, next: AtomicU64::new(0) }
    }

    /// Returns the number of the next chunk; a number past the last chunk has no rows.
    pub(crate) fn take(&self) -> u64 {
        // Relaxed, because callers share only the number.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the numbers of a chunk's rows.
    pub(crate) fn rows(&self, chunk: u64) -> Range<u64> {
        let first = chunk.saturating_mul(CHUNK_ROWS).min(self.rows);
        first..first.saturating_add(CHUNK_ROWS).min(self.rows)
    }

    /// Returns the generator of a chunk. The seed is spread over the upper bits, so that the chunks
    /// of one small seed are not those of the next. Seeding then mixes both into the whole state.
    pub(crate) fn generator(&self, chunk: u64) -> Xoshiro256PlusPlus {
        let chunk_seed = self.seed.wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(32) ^ chunk;
        Xoshiro256PlusPlus::seed_from_u64(chunk_seed)
    }
}

/// Returns the finalizer of splitmix64, which gives neighbours unrelated values.
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    SplitMix::at(0, number.wrapping_add(1))
}
