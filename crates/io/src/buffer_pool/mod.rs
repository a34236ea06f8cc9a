//! The buffers of a cache: each is taken by one, who may change it, or looked at by many.
//!
//! What it does: [`BufferPool::take`] gives a buffer to an owner, who gives it back when its content is whole; a [`BufferPin`] shows a buffer that
//! nobody has taken, and keeps it from being taken as long as it lives. Nobody waits here: what can not be had is refused, and the cache,
//! whose waits have names, asks again.
//!
//! How: buffers lie in one arena in the order of their numbers, and a word for each says how many pins it has ([`pins`]). To pin and to unpin is
//! an atomic addition each, and takes no lock.
//!
//! Why not an `Arc` for each buffer: each would be an allocation, made anew whenever a block is read, and in a large cache one more wait for
//! memory at every hit. These words are 4 bytes a buffer: 4 MB for a cache of 8 GB in blocks of 8K, which mostly stay in the processor's cache.
//!
//! Limits: a buffer that its owner does not give back is lost to the pool. Sixteen words share a cache line, so those who pin blocks of adjacent frames
//! at once take it from each other, as they do the cache's mutex.

mod pins;

use crate::IoError;
use crate::arena::{Arena, IoBuffer, ask_huge_pages};
use pins::Pins;
use std::ops::Deref;
use std::sync::atomic;

/// Buffers of one size, by number.
#[derive(Debug)]
pub struct BufferPool {
    arena: Arena,
    /// Of each buffer.
    bytes: usize,
    pins: Pins,
}

impl BufferPool {
    /// Maps `count` buffers of `bytes` each, zeroed, which nobody uses: see [`Arena::buffers`].
    ///
    /// # Errors
    /// When the kernel has no memory, or an address space has no room for so much.
    ///
    /// # Panics
    /// When `bytes` is not a positive multiple of 512 or `count` is zero.
    pub fn new(bytes: usize, count: usize) -> Result<BufferPool, IoError> {
        Ok(BufferPool { arena: Arena::new(bytes, count)?, bytes, pins: Pins::new(count) })
    }

    /// How many buffers there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.pins.count()
    }

    /// Their memory.
    #[must_use]
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Gives the buffer to an owner, who alone sees it until it is given back; `None` while it is pinned or taken.
    #[must_use]
    pub fn take(&self, index: u32) -> Option<IoBuffer> {
        self.pins.take(index).then(|| {
            // SAFETY: who has turned the word makes the only one, and it goes before the word is turned back; nobody pins it meanwhile.
            #[allow(unsafe_code)]
            unsafe {
                self.arena.cut(index as usize, self.bytes)
            }
        })
    }

    /// The owner is done with the buffer.
    ///
    /// # Panics
    /// When it is not the buffer of this number.
    pub fn give_back(&self, index: u32, buffer: IoBuffer) {
        assert!(self.arena.is_cut(index as usize, self.bytes, &buffer), "buffer {index} is another one");
        drop(buffer);
        self.pins.give_back(index);
    }

    /// Lets one more look at the buffer.
    ///
    /// # Panics
    /// When it is taken, or has 2^31 - 1 pins.
    #[inline]
    #[must_use]
    pub fn pin(&self, index: u32) -> BufferPin<'_> {
        self.pins.pin(index);
        BufferPin { pool: self, index }
    }

    /// Whether nobody uses the buffer: until somebody pins it, it can be taken.
    #[inline]
    #[must_use]
    pub fn is_idle(&self, index: u32) -> bool {
        self.pins.is_idle(index)
    }

    /// Whether an owner has the buffer.
    #[must_use]
    pub fn is_taken(&self, index: u32) -> bool {
        self.pins.is_taken(index)
    }

    /// Asks for the first bytes of the buffer, so that they are there when it is looked at a little later.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        self.arena.prefetch(index as usize * self.bytes);
    }
}

/// A look at a buffer, which stays as it is while this lives.
#[derive(Debug)]
pub struct BufferPin<'a> {
    pool: &'a BufferPool,
    index: u32,
}

impl Deref for BufferPin<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: nobody can take the buffer to change it while its word counts this pin.
        #[allow(unsafe_code)]
        unsafe {
            self.pool.arena.bytes(self.index as usize, self.pool.bytes)
        }
    }
}

impl Drop for BufferPin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pool.pins.unpin(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_taken_by_one_or_pinned_by_many() {
        let pool = BufferPool::new(4096, 2).expect("memory");
        let mut buffer = pool.take(1).expect("nobody uses it");
        assert!(pool.take(1).is_none() && pool.is_taken(1) && !pool.is_taken(0));
        buffer.fill(7);
        pool.give_back(1, buffer);
        let (one, another) = (pool.pin(1), pool.pin(1));
        assert!(one.iter().chain(another.iter()).all(|byte| *byte == 7));
        assert!(pool.pin(0).iter().all(|byte| *byte == 0));
        drop(one);
        assert!(pool.take(1).is_none() && !pool.is_idle(1));
        drop(another);
        assert!(pool.is_idle(1) && pool.take(1).is_some());
    }

    #[test]
    #[should_panic(expected = "buffer 0 is pinned while it is taken")]
    fn a_buffer_that_is_taken_is_not_pinned() {
        let pool = BufferPool::new(4096, 1).expect("memory");
        let _buffer = pool.take(0);
        let _ = pool.pin(0);
    }

    #[test]
    #[should_panic(expected = "buffer 0 is another one")]
    fn a_buffer_is_given_back_by_its_number() {
        let pool = BufferPool::new(4096, 2).expect("memory");
        let buffer = pool.take(1).expect("nobody uses it");
        pool.give_back(0, buffer);
    }

    #[test]
    #[should_panic(expected = "buffer 0 is another one")]
    fn a_buffer_of_another_pool_is_not_given_back() {
        let [pool, other] = [(); 2].map(|()| BufferPool::new(4096, 1).expect("memory"));
        let _ = pool.take(0);
        pool.give_back(0, other.take(0).expect("nobody uses it"));
    }
}
