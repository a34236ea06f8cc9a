//! The state of each buffer in one word: its number of pins, or that it is taken.
//!
//! A model checker takes this file with its own atomics (`crates/engine/tests/it/cache_model.rs`).

use super::ask_huge_pages;
use super::atomic::{AtomicU32, Ordering};

/// Bit of a taken buffer. The bits below count its pins.
const TAKEN: u32 = 1 << 31;

/// The words of all buffers, by number.
#[derive(Debug)]
pub(crate) struct Pins(Vec<AtomicU32>);

impl Pins {
    /// Creates the words of `count` idle buffers.
    pub(crate) fn new(count: usize) -> Pins {
        let mut words = Vec::with_capacity(count);
        ask_huge_pages(words.spare_capacity_mut());
        words.extend((0..count).map(|_| AtomicU32::new(0)));
        Pins(words)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds one pin. Panics if the buffer is taken, or has 2^31 - 1 pins.
    #[inline]
    pub(crate) fn pin(&self, index: u32) {
        let word = &self.0[index as usize];
        // Acquire: pairs with the release of the owner that wrote the content.
        let before = word.fetch_add(1, Ordering::Acquire);
        if before >= TAKEN - 1 {
            word.fetch_sub(1, Ordering::Relaxed);
            panic!("buffer {index} is pinned while it is taken, or too often: {before:#x}");
        }
    }

    /// Removes one pin, with release: see below.
    #[inline]
    pub(crate) fn unpin(&self, index: u32) {
        // Release: this reader's loads come before the next owner's stores.
        self.0[index as usize].fetch_sub(1, Ordering::Release);
    }

    /// Takes the buffer; false if it is pinned or taken.
    #[inline]
    pub(crate) fn take(&self, index: u32) -> bool {
        let word = &self.0[index as usize];
        word.compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Ends the ownership. Panics if the buffer is not taken.
    #[inline]
    pub(crate) fn give_back(&self, index: u32) {
        let before = self.0[index as usize].fetch_sub(TAKEN, Ordering::Release);
        assert!(before >= TAKEN, "buffer {index} is given back by who has not taken it");
    }

    /// True if the buffer has neither pins nor an owner; a pin may follow at once.
    #[inline]
    pub(crate) fn is_idle(&self, index: u32) -> bool {
        self.0[index as usize].load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_taken(&self, index: u32) -> bool {
        self.0[index as usize].load(Ordering::Relaxed) >= TAKEN
    }
}
