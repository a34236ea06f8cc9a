//! The buffer cache and the database writers: the conventional path.
//!
//! Blocks are read into frames that all sessions share ([`CacheReader`]). Blocks that sessions
//! format in frames are written by background processes ([`CacheWriter`], [`database_writer`]). A
//! sort with `sort_direct_writes=false` goes this way, and so does every lookup by index.
//!
//! The life of a write: the session takes a free frame, formats and seals the block in it, and puts
//! it at the end of the dirty list (LRUW). A database writer takes a batch from the list's head,
//! sorts it by file and block, and writes it. A session that finds no free frame waits on `free
//! buffer waits`; one that needs its blocks on disk waits on `local write wait`. Writers are posted
//! when a quarter of the frames is dirty, or when a session waits for them.
//!
//! ```text
//!         take              begin_read           arrived
//! Free ----------> Owned ---------------> Reading -------> Clean <---+
//!   ^               |  ^                                   |  |      |
//!   | forget        |  +---------------- take -------------+  |      | written
//!   +---------------|-----------------------------------------+      |
//!   |      dirtied  v        gather                                  |
//!   +------------ Dirty --------------> Writing ---------------------+
//! ```
//! Owned and Reading frames whose owner gives up become Free. Each arrow is a function of
//! [`frames`], which holds state and never waits. [`latches`] adds the mutex, the waits and their
//! names; [`handles`] are the holds that sessions have on a frame. These three are model-checked
//! (`tests/it/cache_model.rs`). [`buffer_cache`] adds the files and the database writers.
//!
//! One mutex, four conditions. A sort's block takes the mutex four times (frame, seal, gather,
//! written), each time for less than 100 ns: at 20,000 blocks a second that is below 1% of the
//! time. A hit takes 40 ns and holds the mutex for less. The mutex saturates at about ten
//! million hits a second, more than two dozen sessions reach that also read the blocks. For a
//! workload of nothing but hits the frames can be split by address into several such states,
//! without a change outside `latches`.
//!
//! A block that is read singly or ahead goes straight into its frame. The frame lends the request
//! its buffer, which comes back even if the read fails; only if the ring itself fails is the frame
//! lost with it. A copy would cost one of the 15 us of CPU of a random read, because neither side
//! of it is in the processor's caches. The session makes the call for a single read itself at any
//! `io_method`: a ring is for many requests at once, such as those of sessions that share a thread.
//!
//! Writes are copied. So a block can be read while it is written, adjacent blocks can be joined,
//! and rings register only a few staging buffers. A multiblock read is one request into one staging
//! buffer, because frames are not adjacent.
//!
//! A pin is one in the count of its buffer (`plumb_io::BufferPool`). Unpinning takes no lock and
//! wakes no session; a session that finds every frame pinned checks again after a millisecond.
//!
//! Replacement is a clock with touch counts. A hit raises the frame's count, up to three, and moves
//! nothing; the hand lowers counts and takes the first clean frame that has none left. Single
//! blocks begin with a count of one.
//!
//! Blocks of a multiblock read begin with none, and stay in a list of their own until another
//! request asks for them. While that list has more than an eighth of the frames, its oldest block
//! is taken before the hand moves. So a scan recycles its own frames, and a table that is scanned
//! again soon is kept (after the queue A1in of 2Q). Without that list each pass of the hand during
//! a scan would lower the counts of hot blocks. A Markov chain of these counts gives the loss for a
//! hot set of half the cache, read as often as the scan: one read in seven would miss.
//!
//! Temp blocks never pass under the hand: once written they go to the cold queue, which is emptied
//! first. So a sort whose blocks are written in time recycles its own frames. A sort that is faster
//! than the database writers takes clean frames from the clock before it waits, and so displaces
//! blocks of other sessions.
//!
//! docs/measured/slob.md has the figures next to fio. A miss is a system call and two thread
//! switches, three times the CPU of fio, one job of which completes many requests at once. On a
//! shared server a waiting session runs the next one instead, without either.
//!
//! In a large cache a hit is a chain of memory stalls: the bucket, the frame, the block. So a frame
//! is one cache line; frames, buckets and pin counts lie in huge pages; and the block's first line
//! is prefetched as soon as its frame's number is known.
//!
//! Why not mmap or the page cache: with neither can a session name what it waits for.
//!
//! Mixing the paths: direct reads bypass the cache. So [`CacheWriter::drain`] (or
//! `finish`) comes before direct reads of blocks written through the cache.
//! [`BufferCache::discard`] comes before extents that may be cached are released, or an
//! old copy would hide the next owner's direct writes.
//!
//! A block that transactions change is changed in place: the session takes its buffer (Changing;
//! others wait on `buffer busy waits`) and returns it with the LSN of the record. Such a block is
//! not written before its log ([`WriteAhead`]); its checksum is computed when it is copied to be
//! written. A block changed while it is being written is Dirty again at once, and is not written
//! again before that write has ended.
//!
//! Changed blocks are also in the checkpoint queue, by the LSN of their first change that is not on
//! disk. Writers take blocks from its head while these are older than [`WriteAhead::write_behind`],
//! so that a checkpoint finds its blocks written. A batch is written in the order of address,
//! whichever list its blocks come from.
//!
//! Without database writers (`writer_count` 0, on a simulated disk) a session that needs a frame
//! writes a batch itself. So one thread can step many sessions.
//!
//! A cache has blocks of one size. An instance has one for `db_block_size`, and one for each other
//! size that a setting gives memory to ([`caches`]). Each has its own frames, latch and writers: no
//! cache can take another's memory.
//!
//! Limits: blocks that a `CacheWriter` has not drained are lost with the process,
//! and nothing refers to them.
//!
//! Invariants:
//! - B1 Only its owner, which has taken its buffer, changes a frame's bytes: the frame is Owned,
//!   Reading or Changing.
//! - B2 An address is in at most one frame.
//! - B3 A frame is in the cold queue at most once, and then it is Free or Clean;
//!   it is in the dirty list at most once, and always if it is Dirty.
//! - B4 A frame that is pinned is not taken.
//! - B5 A writer's extents are released only when no frame of theirs is Dirty or Writing.
//! - B6 After the first failed write every call fails with it, and no session waits.
//! - B7 A walk over all frames would find the same counts of dirty, writing, reading and resident
//!   frames, and of each writer's unwritten blocks.
//! - B8 A database writer writes each block of a batch once, in one request. It begins no batch
//!   while blocks of the one before are in flight.
//! - B9 The checkpoint queue has each frame once for a change that is dirty and once for
//!   one that is in flight.
//! - B10 A frame is in the list of scans at most once. It is always there if a scan read its block
//!   and no request has asked for it since; then it is Clean.
//! - B11 A cache has blocks of tablespaces of its own block size alone.

pub mod buffer_cache;
pub mod caches;
mod changed_blocks;
pub mod database_writer;
mod frames;
mod handles;
mod latches;
pub mod reader;
pub mod writer;

// These names are resolved by a model checker to its own versions: see `latches`.
use crate::EngineError;
use crate::storage::tablespace::Purpose;
use plumb_events::sharing as thread;
use plumb_io::{BufferPin, BufferPool, IoBuffer};
use std::sync;

pub use buffer_cache::{BlockCheck, BufferCache, CacheOptions};
pub use caches::BufferCaches;
pub use changed_blocks::ChangedBlocks;
pub use frames::CachedBlocks;
pub(crate) use frames::DeviceProgress;
pub use handles::{ChangingBlock, PinnedBlock};
pub use latches::WriteAhead;
pub use reader::CacheReader;
pub use writer::{CacheWriter, CacheWriterOptions};

#[cfg(test)]
mod tests;
