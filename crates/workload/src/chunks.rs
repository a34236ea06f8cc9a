//! The rows of a generated table, in chunks that any thread can make from their number alone.

use plumb_units::SplitMix;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of a chunk, but for the last: some 350 KB of them.
pub(crate) const CHUNK_ROWS: u64 = 8192;

/// The chunks of a table, each handed out once.
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

    /// The number of the next chunk; there are as many as callers ask for, and no rows in those
    /// behind the last.
    pub(crate) fn take(&self) -> u64 {
        // Relaxed: the number is all that callers share.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The numbers of a chunk's rows.
    pub(crate) fn rows(&self, chunk: u64) -> Range<u64> {
        let first = chunk.saturating_mul(CHUNK_ROWS).min(self.rows);
        first..first.saturating_add(CHUNK_ROWS).min(self.rows)
    }

    /// The generator of a chunk. The seed is spread over the upper bits, so that
    /// the chunks of one small seed are not those of the next; seeding then mixes
    /// both into the whole state.
    pub(crate) fn generator(&self, chunk: u64) -> Xoshiro256PlusPlus {
        let chunk_seed = self.seed.wrapping_mul(0x9FB2_1C65_1E98_DF25).rotate_left(32) ^ chunk;
        Xoshiro256PlusPlus::seed_from_u64(chunk_seed)
    }
}

/// The number of a value from SplitMix64: neighbours get unrelated ones.
#[inline]
pub(crate) fn mix(number: u64) -> u64 {
    SplitMix::at(0, number.wrapping_add(1))
}
