//! The buffer cache: its options, and the life of its database writers.
//!
//! A session's way to frames is [`Latches`]; where that ends because no database writer runs (a
//! simulated disk, whose requests one thread orders) the session writes a batch itself and asks
//! again, here.
//!
//! Memory is mapped and writers are started at first use: an instance that never uses the cache has
//! neither.

use super::database_writer;
use super::frames::DeviceProgress;
use super::handles::{ChangingBlock, OwnedFrame};
use super::latches::{Claim, Latches, Patience, WriteAhead};
use crate::EngineError;
use crate::access::Access;
use crate::settings::{BlockChecksum, Setting, Settings};
use crate::storage::tablespace::{Extent, Purpose, Tablespace};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Recorder, Role, Session, locked};
use plumb_host::limits::Quota;
use plumb_io::{Arena, BufferPool, IoError, Method};
use plumb_units::{BlockAddress, BlockSize, Bytes, Lsn};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Size of a cache, and how its blocks are written.
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    /// How many blocks it holds.
    pub frame_count: usize,
    /// How many database writers; 0: a session that needs a frame, or blocks on disk, writes a
    /// batch itself.
    pub writer_count: usize,
    /// The number of the first of them: each has one of its own among those of all caches.
    pub first_writer: usize,
    /// Most blocks in a batch.
    pub batch_blocks: usize,
    /// Most adjacent blocks that a database writer joins to one request.
    pub request_blocks: usize,
    /// Most blocks that a session asks for at once without having to.
    pub prefetch_blocks: usize,
    /// What of a block is verified when it is read.
    pub check: BlockCheck,
}

/// What is verified of a block that comes into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCheck {
    /// Its header, and its bytes by their checksum.
    Whole,
    /// Its header.
    Header,
}

impl CacheOptions {
    /// As the settings say, of a cache of so many bytes. Requests are of one block: see
    /// [`database_writer`].
    #[must_use]
    pub fn of(settings: &Settings, size: Bytes, block_size: BlockSize) -> CacheOptions {
        let blocks = (size.0 / block_size.bytes() as u64).max(1);
        let asked = settings.debug.debug_cache_blocks;
        CacheOptions {
            frame_count: if asked > 0 { asked } else { blocks } as usize,
            writer_count: settings.cache.db_writer_processes,
            first_writer: 0,
            batch_blocks: settings.cache.db_block_write_batch,
            request_blocks: 1,
            prefetch_blocks: settings.cache.db_block_prefetch_limit,
            check: match settings.cache.db_block_checksum {
                BlockChecksum::Off => BlockCheck::Header,
                BlockChecksum::Typical => BlockCheck::Whole,
            },
        }
    }
}

/// A buffer cache of an instance, for blocks of one size. Its writers are stopped when it is
/// dropped.
#[derive(Debug)]
pub struct BufferCache {
    shared: Arc<Shared>,
    /// The database writers, once started.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What sessions and database writers share.
#[derive(Debug)]
pub(super) struct Shared {
    // What it works for.
    pub(super) method: Method,
    writer_threads: Quota,
    pub(super) tablespaces: Arc<Tablespaces>,
    pub(super) recorder: Recorder,
    /// The frames, and how large they and their cache are.
    pub(super) latches: Latches,
}

impl BufferCache {
    /// A cache without memory and without writers: both come with its first use.
    ///
    /// # Panics
    /// When a number among the options is zero.
    #[must_use]
    pub fn new(
        (options, block_size): (CacheOptions, BlockSize),
        access: &Access,
        tablespaces: Arc<Tablespaces>,
        recorder: Recorder,
    ) -> BufferCache {
        for number in [options.frame_count, options.batch_blocks, options.request_blocks] {
            assert!(number > 0, "a cache has frames and batches");
        }
        let size = match block_size == tablespaces.block_size() {
            true => Setting::DbCacheSize,
            false => Setting::cache_of(block_size),
        };
        let shared = Shared {
            latches: Latches::new(options, block_size, size.row().name),
            method: access.method.clone(),
            writer_threads: access.servers.threads.clone(),
            tablespaces,
            recorder,
        };
        BufferCache { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// How large it is, and how it is written.
    #[must_use]
    pub fn options(&self) -> &CacheOptions {
        &self.shared.latches.options
    }

    /// Forgets the blocks of these extents, written or not: they are going to belong
    /// to another segment. Waits for those that are being written. To be called
    /// before extents that may be in the cache are given back; also when the
    /// cache has failed.
    pub fn discard(&self, session: &Session, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            self.shared.latches.discard(session, (0..extent.blocks).map(|block| extent.address(block)));
        }
    }

    /// From now on no block that was changed in place is written before its log. Starts the
    /// database writers.
    ///
    /// # Errors
    /// When a thread cannot be started.
    ///
    /// # Panics
    /// When there is a log already: see [`BufferCache::is_logged`].
    pub fn log_first(&self, log: Arc<dyn WriteAhead>) -> Result<(), EngineError> {
        self.shared.latches.log_first(log);
        self.start_writers()
    }

    /// The log of the instance; `None` as long as its transactions have not been opened.
    #[must_use]
    pub fn log(&self) -> Option<&dyn WriteAhead> {
        self.shared.latches.log()
    }

    /// How far the device has come with the blocks that it was asked for.
    pub(crate) fn progress(&self) -> DeviceProgress {
        self.shared.latches.progress()
    }

    /// The size of its blocks.
    #[must_use]
    pub fn block_size(&self) -> BlockSize {
        self.shared.latches.block_size
    }

    /// How many blocks it holds of a tablespace, whatever is done with them.
    #[must_use]
    pub fn cached_blocks(&self, purpose: Purpose) -> u64 {
        self.shared.latches.count_of(purpose)
    }

    pub(super) fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Stops the database writers after the batch they have in hand. What is dirty
    /// then has no owner any more and is not written.
    pub fn stop(&self) {
        self.shared.latches.stop();
        let mut threads = locked(&self.threads);
        for thread in threads.drain(..) {
            // A writer that panicked has printed why, and closed the cache.
            let _ = thread.join();
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Starts the database writers unless they have been.
    pub(super) fn start_writers(&self) -> Result<(), EngineError> {
        let mut threads = locked(&self.threads);
        if !threads.is_empty() {
            return Ok(());
        }
        let CacheOptions { first_writer: first, writer_count, .. } = self.shared.latches.options;
        for number in first..first + writer_count {
            let name = Role::DatabaseWriter.numbered(number);
            let shared = Arc::clone(&self.shared);
            self.shared.latches.writer_begins();
            let started = self.shared.writer_threads.thread().and_then(|share| {
                let run = move || {
                    let _share = share;
                    database_writer::run(&shared, number);
                };
                thread::Builder::new().name(name.clone()).spawn(run)
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    let error = IoError::thread(format!("database writer {name}"), source);
                    // Fewer writers than asked for would falsify a measurement.
                    self.shared.latches.fail(error.to_string());
                    self.shared.latches.writer_ended();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// The memory of its buffers; none before its first use.
    #[must_use]
    pub fn memory(&self) -> Option<Arena> {
        self.shared.latches.memory().map(BufferPool::arena).cloned()
    }

    /// Counts everything anew, and says how many sessions wait for a free buffer.
    #[cfg(test)]
    pub(super) fn check(&self) -> usize {
        self.shared.latches.check()
    }
}

impl Drop for BufferCache {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What sessions do.
impl Shared {
    /// The most blocks that one multiblock read may pin: with all of them pinned
    /// by a scan no other session could go on.
    pub(super) fn multiblock_max(&self) -> u32 {
        (self.latches.options.frame_count / 4).max(1) as u32
    }

    /// The tablespace of a purpose, whose blocks are of the cache's size.
    pub(super) fn tablespace(&self, purpose: Purpose) -> &Tablespace {
        let tablespace = self.tablespaces.get(purpose);
        debug_assert_eq!(
            tablespace.block_size, self.latches.block_size,
            "B11: a frame holds a block of its own size"
        );
        tablespace
    }

    /// The block if it is in the cache, or a frame to read it into; never [`Claim::Unavailable`].
    #[inline]
    pub(super) fn claim(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<Claim<'_>, EngineError> {
        loop {
            match self.latches.claim(session, purpose, address, Patience::Wait)? {
                Claim::Unavailable => database_writer::carry(self, session)?,
                claim => return Ok(claim),
            }
        }
    }

    /// A frame for a new block of this address, which only its owner sees until it has been
    /// changed.
    pub(super) fn begin_new(
        &self,
        session: &Session,
        purpose: Purpose,
        address: BlockAddress,
    ) -> Result<ChangingBlock<'_>, EngineError> {
        loop {
            match self.latches.begin_new(session, purpose, address)? {
                Some(block) => return Ok(block),
                None => database_writer::carry(self, session)?,
            }
        }
    }

    /// A frame to format a block in.
    pub(super) fn own(&self, session: &Session) -> Result<OwnedFrame<'_>, EngineError> {
        loop {
            match self.latches.own(session)? {
                Some(frame) => return Ok(frame),
                None => database_writer::carry(self, session)?,
            }
        }
    }

    /// Has all blocks written that were first changed before the LSN, and waits for it.
    pub(super) fn write_changed(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        if self.latches.options.writer_count > 0 {
            return self.latches.write_changed(session, before);
        }
        while self.latches.is_unwritten(before)? {
            database_writer::carry_changed(self, session, before)?;
        }
        Ok(())
    }
}
