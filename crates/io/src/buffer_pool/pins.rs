//! Who uses a buffer: a word for each, with how many look at it, or that one has taken it.
//!
//! A model checker takes this file with its own atomics (`crates/engine/tests/it/cache_model.rs`).

use super::ask_huge_pages;
use super::atomic::{AtomicU32, Ordering};

/// One has taken it. What is below is a count of pins.
const TAKEN: u32 = 1 << 31;

/// The words of all buffers.
#[derive(Debug)]
pub(crate) struct Pins(Vec<AtomicU32>);

impl Pins {
    /// Nobody uses any of so many.
    pub(crate) fn new(count: usize) -> Pins {
        let mut words = Vec::with_capacity(count);
        ask_huge_pages(words.spare_capacity_mut());
        words.extend((0..count).map(|_| AtomicU32::new(0)));
        Pins(words)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// One more looks at it. Panics where it is taken, or has 2^31 - 1 pins.
    #[inline]
    pub(crate) fn pin(&self, index: u32) {
        let word = &self.0[index as usize];
        // What its last owner wrote is to be seen.
        let before = word.fetch_add(1, Ordering::Acquire);
        if before >= TAKEN - 1 {
            word.fetch_sub(1, Ordering::Relaxed);
            panic!("buffer {index} is pinned while it is taken, or too often: {before:#x}");
        }
    }

    /// One of those who look at it does no more.
    #[inline]
    pub(crate) fn unpin(&self, index: u32) {
        // Who takes it has to come after this look.
        self.0[index as usize].fetch_sub(1, Ordering::Release);
    }

    /// One takes it, unless somebody uses it.
    #[inline]
    pub(crate) fn take(&self, index: u32) -> bool {
        let word = &self.0[index as usize];
        word.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Its owner has it no more. Panics where it is not taken.
    #[inline]
    pub(crate) fn give_back(&self, index: u32) {
        let before = self.0[index as usize].fetch_sub(TAKEN, Ordering::Release);
        assert!(before >= TAKEN, "buffer {index} is given back by who has not taken it");
    }

    /// Whether nobody uses it: until somebody pins it, it can be taken.
    #[inline]
    pub(crate) fn is_idle(&self, index: u32) -> bool {
        self.0[index as usize].load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_taken(&self, index: u32) -> bool {
        self.0[index as usize].load(Ordering::Relaxed) >= TAKEN
    }
}
