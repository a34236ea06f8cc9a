//! The buffers of a cache: each has one owner that may change it, or any number of readers.
//!
//! [`BufferPool::take`] gives a buffer to an owner, which gives it back when its content
//! is complete. A [`BufferPin`] reads a buffer that has no owner, and blocks owners
//! while it lives. No call waits: a request that cannot be met is refused, and the
//! cache, whose waits have names, retries.
//!
//! Mechanism: buffers lie in one arena in the order of their numbers. A word for each counts its
//! pins ([`pins`]). Pinning and unpinning are one atomic addition each, without a lock.
//!
//! Why not an `Arc` for each buffer: every block read would allocate one, and in a large cache
//! every hit would wait for one more memory access. These words are 4 bytes a buffer: 4 MB for a
//! cache of 8 GB in blocks of 8K, which mostly stay in the processor's cache.
//!
//! Limits: a buffer that its owner does not give back is lost to the pool. Sixteen words
//! share a cache line, so threads that pin blocks of adjacent frames contend for it, as they
//! do for the cache's mutex.

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
    /// Length of each buffer in bytes.
    bytes: usize,
    pins: Pins,
}

impl BufferPool {
    /// Maps `count` buffers of `bytes` each, zeroed and idle: see [`Arena::buffers`].
    ///
    /// # Errors
    /// When the kernel has no memory, or the address space has no room for it.
    ///
    /// # Panics
    /// When `bytes` is not a positive multiple of 512 or `count` is zero.
    pub fn new(bytes: usize, count: usize) -> Result<BufferPool, IoError> {
        Ok(BufferPool { arena: Arena::new(bytes, count)?, bytes, pins: Pins::new(count) })
    }

    /// Returns the number of buffers, fixed at the start.
    pub fn count(&self) -> usize {
        self.pins.count()
    }

    /// Returns the memory of all buffers, to register it with a ring.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Gives the buffer to an owner, which has exclusive access until it gives it back; `None`
    /// while it is pinned or taken.
    #[must_use]
    pub fn take(&self, index: u32) -> Option<IoBuffer> {
        self.pins.take(index).then(|| {
            // SAFETY: `take` won the word, so this IoBuffer is the only one. It is dropped before
            // the word is reset, and no pin succeeds meanwhile.
            #[allow(unsafe_code)]
            unsafe {
                self.arena.cut(index as usize, self.bytes)
            }
        })
    }

    /// Returns the buffer from its owner to the pool.
    ///
    /// # Panics
    /// When the buffer has another number or belongs to another pool.
    pub fn give_back(&self, index: u32, buffer: IoBuffer) {
        assert!(self.arena.is_cut(index as usize, self.bytes, &buffer), "buffer {index} is another one");
        drop(buffer);
        self.pins.give_back(index);
    }

    /// Pins the buffer for one more reader.
    ///
    /// # Panics
    /// When it is taken, or has 2^31 - 1 pins already.
    #[inline]
    #[must_use]
    pub fn pin(&self, index: u32) -> BufferPin<'_> {
        self.pins.pin(index);
        BufferPin { pool: self, index }
    }

    /// True if the buffer has neither pins nor an owner; a pin may follow at once.
    #[inline]
    pub fn is_idle(&self, index: u32) -> bool {
        self.pins.is_idle(index)
    }

    /// True while an owner has the buffer.
    pub fn is_taken(&self, index: u32) -> bool {
        self.pins.is_taken(index)
    }

    /// Prefetches the first bytes of the buffer, ahead of their use.
    #[inline]
    pub fn prefetch(&self, index: u32) {
        self.arena.prefetch(index as usize * self.bytes);
    }
}

/// A reader's hold of a buffer, which stays unchanged while this lives.
#[derive(Debug)]
pub struct BufferPin<'a> {
    pool: &'a BufferPool,
    index: u32,
}

impl Deref for BufferPin<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: no owner can take the buffer while its word counts this pin.
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
