//! The buffer cache and the database writers: the conventional path.
//!
//! What it does: blocks are read into frames that all sessions share
//! ([`CacheReader`]), and blocks that sessions format in frames are written by
//! background processes ([`CacheWriter`], [`database_writer`]). A sort with
//! `sort_direct_writes=false` goes this way, and so does every look-up by index.
//!
//! How a block is written: the session asks for a free frame, formats and seals
//! the block in it, and puts it at the end of the dirty list (LRUW). A database
//! writer takes a batch from the list's head, sorts it by file and block, and
//! writes it. A session that finds no free frame waits on `free buffer waits`;
//! one that must know its blocks on disk waits on `local write wait`. Writers are
//! posted when a quarter of the frames is dirty, or when somebody waits for them.
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
//! Owned and Reading frames whose owner gives up become Free. Each arrow is a
//! function of [`frames`], which is all state and no waiting; [`latches`]
//! adds the mutex, the waits and their names, and [`handles`] are what sessions hold of a frame meanwhile. These three
//! are model-checked (`tests/it/cache_model.rs`); [`buffer_cache`] is the whole, with its files and its database writers.
//!
//! One mutex, four conditions. A sort's block takes it four times (frame, seal,
//! gather, written), each time for less than 100 ns: at 20,000 blocks a second
//! that is below 1% of the time. A hit takes 40 ns in all and the mutex for less; it
//! saturates at some ten million hits a second, above what two dozen sessions do
//! that also look at the blocks. When a workload of nothing but hits comes, the
//! frames can be split by address into several such states without a change
//! outside `latches`.
//!
//! A block that is read alone or ahead goes into its frame: the frame lends the request its buffer, which comes back whatever came of the
//! read, unless the ring itself fails; then the frame is lost with it. A copy would take one of the 15 us of CPU
//! of a random read, because neither side of it is in the processor's caches. Of a read alone the session makes the call itself, whatever
//! `io_method` says: a ring is for many requests at once, such as those of sessions that share a thread.
//!
//! Writes are copied, so that a block can be looked at while it is written, adjacent blocks can be joined, and rings register a few staging
//! buffers. A multiblock read is one request into one staging buffer: frames lie apart.
//!
//! A pin is one in the count of its buffer (`plumb_io::BufferPool`). Unpinning takes no lock and wakes nobody; a session
//! that finds every frame pinned looks again after a millisecond.
//!
//! Replacement is a clock with touch counts. A hit raises the frame's count, up to
//! three, and moves nothing; the hand lowers counts and takes the first clean
//! frame that has none left. Single blocks begin with a count of one. Blocks of a multiblock read begin
//! without, and wait in a list of their own until somebody else asks for them: while that list has more than an eighth of the frames, the oldest of
//! it is taken before the hand moves. So a scan recycles its own frames, and a table that is scanned again soon is kept (after the queue A1in of 2Q). Without that list
//! a scan moves the hand past the hot blocks, which lose a count each time it comes by: of a hot set of half the cache that is read as often as the scan, by
//! a Markov chain of their counts, one read in seven would miss. Temp blocks
//! never come before the hand: once written they go to the cold queue, which is
//! emptied first, so a sort whose blocks are written in time recycles its own
//! frames. A sort that is faster than the database writers takes clean frames from
//! the clock before it waits, and so displaces blocks of other sessions.
//!
//! What that costs beside fio and PostgreSQL is measured by `cargo xtask bench slob`, and stands in docs/measured/slob.md. A block that is missed is a system call and
//! two switches of threads, where one job of fio takes in many at once: three times its CPU. On a shared server a session that waits lets the next one run, without either.
//!
//! In a large cache a hit is a chain of waits for memory: the bucket, the frame, the block. So a frame is one cache line, frames, buckets and the counts
//! of pins lie in huge pages, and the block's first line is asked for as soon as its frame's number is known.
//!
//! Why not mmap or the page cache: neither lets a session say what it waits for.
//!
//! Mixing the paths: direct reads do not look into the cache. So before blocks that were
//! written through the cache are read directly, [`CacheWriter::drain`] (or `finish`) is
//! called; and before extents that may be cached are given back, [`BufferCache::discard`],
//! or an old copy would hide the next owner's direct writes.
//!
//! A block that transactions change is changed in place: the session takes its buffer
//! (Changing; others wait on `buffer busy waits`) and gives them back with the
//! LSN of the record. Such a block is not written before its log ([`WriteAhead`]); its checksum is made when it is copied to
//! be written. One that is changed while it is being written is Dirty again at once, and is not written again before that write has ended.
//!
//! Changed blocks are in the checkpoint queue besides, by the LSN of their first change that is not on disk. Writers take blocks from its head when
//! they are further behind the log than it says ([`WriteAhead::write_behind`]), so that a checkpoint finds its blocks written; a batch is written in the
//! order of place, whichever list it comes from.
//!
//! Without database writers (`writer_count` 0, on a simulated disk) a session that needs a frame writes a
//! batch itself, so that one thread can step many sessions.
//!
//! A cache has blocks of one size. An instance has one for `db_block_size`, and one for each other size that a setting gives
//! memory to ([`caches`]), each with frames, a latch and writers of its own: no cache can take another's memory.
//!
//! Limits: what a `CacheWriter` has
//! not drained is lost with the process, and nothing refers to it.
//!
//! Invariants:
//! - B1 A frame's bytes are changed by its owner alone, who has taken its buffer: the frame is Owned, Reading or Changing.
//! - B2 An address is in at most one frame.
//! - B3 A frame is in the cold queue at most once, and then it is Free or Clean;
//!   it is in the dirty list at most once, and always if it is Dirty.
//! - B4 A frame that is pinned is not taken.
//! - B5 A writer's extents are given back only when no frame of theirs is Dirty or
//!   Writing.
//! - B6 After the first failed write every call fails with it, and nobody waits.
//! - B7 The counts of dirty, writing, reading and resident frames, and of the unwritten blocks
//!   of each writer, are those that a walk over all frames would find.
//! - B9 The checkpoint queue has each frame once for a change that is dirty and once for one that is in flight.
//! - B10 A frame is in the list of scans at most once, and always if its block is one of a scan that nobody has asked for since: then it is Clean.
//! - B11 A cache has blocks of tablespaces of its own block size alone.
//! - B8 A database writer writes each block of a batch once, in one request, and
//!   begins no batch while blocks of the one before are in flight.

pub mod buffer_cache;
pub mod caches;
mod changed;
pub mod database_writer;
mod frames;
mod handles;
mod latches;
pub mod reader;
pub mod writer;

// As the files name them that a model checker takes with its own: see `latches`.
use crate::EngineError;
use crate::storage::tablespace::Purpose;
use plumb_events::sharing as thread;
use plumb_io::{BufferPin, BufferPool, IoBuffer};
use std::sync;

pub use buffer_cache::{BlockCheck, BufferCache, CacheOptions};
pub use caches::BufferCaches;
pub use changed::ChangedBlocks;
pub(crate) use frames::DeviceProgress;
pub use handles::{ChangingBlock, PinnedBlock};
pub use latches::WriteAhead;
pub use reader::CacheReader;
pub use writer::{CacheWriter, CacheWriterOptions};

#[cfg(test)]
mod tests;
