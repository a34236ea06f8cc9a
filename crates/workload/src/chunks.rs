//! The rows of a generated table, in chunks that any thread can make from their numbers.

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
    let mut hash = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}
