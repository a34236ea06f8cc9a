//! The buffer cache: its options, and the life of its database writers.
//!
//! Sessions take frames from [`Latches`]. Without database writers (a simulated disk,
//! whose requests one thread orders) that can fail; then the session writes a batch
//! itself and asks again, here.
//!
//! Memory is mapped and writers are started at first use, so an unused cache has neither.

use super::database_writer;
use super::frames::{CachedBlocks, DeviceProgress};
use super::handles::{ChangingBlock, OwnedFrame};
use super::latches::{Claim, Latches, Patience, WriteAhead};
use crate::EngineError;
use crate::access::Access;
use crate::settings::{BlockChecksum, Setting, Settings};
use crate::storage::tablespace::{Extent, Purpose, Tablespace};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{PoolCounts, Recorder, Role, Session, locked};
use plumb_host::limits::Quota;
use plumb_io::{Arena, BufferPool, IoError, Method};
use plumb_units::{BlockAddress, BlockSize, Bytes, FileId, Lsn, Nanos};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// Size of a cache, and how its blocks are written.
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    /// Number of frames, one block each.
    pub frame_count: usize,
    /// Number of database writers. With 0, a session that needs a frame or a written
    /// block writes a batch itself.
    pub writer_count: usize,
    /// Number of this cache's first writer; writers are numbered across all caches of the instance.
    pub first_writer: usize,
    /// Largest number of blocks in a writer's batch.
    pub batch_blocks: usize,
    /// Largest number of adjacent blocks joined to one write request.
    pub request_blocks: usize,
    /// Largest number of blocks that a prefetch reads at once.
    pub prefetch_blocks: usize,
    /// Part of a block that a read verifies.
    pub check: BlockCheck,
}

/// Part of a block that is verified when it is read into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCheck {
    /// The header and the checksum of the whole block.
    Whole,
    /// The header alone, without its checksum.
    Header,
}

impl CacheOptions {
    /// Returns the options that the settings give to a cache of `size` bytes; `debug_cache_blocks`
    /// overrides the size. Requests are of one block: see [`database_writer`].
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

/// A buffer cache of an instance, for blocks of one size. Dropping it stops its writers.
#[derive(Debug)]
pub struct BufferCache {
    shared: Arc<Shared>,
    /// Empty until a writer is first needed.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// State shared by sessions and database writers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) method: Method,
    writer_threads: Quota,
    pub(super) tablespaces: Arc<Tablespaces>,
    pub(super) recorder: Recorder,
    pub(super) latches: Latches,
}

impl BufferCache {
    /// Makes a cache without memory and without writers; the first use makes both.
    ///
    /// # Panics
    /// If a number among the options is zero.
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

    /// Returns the size of the cache and the bounds of its batches and requests.
    pub fn options(&self) -> &CacheOptions {
        &self.shared.latches.options
    }

    /// Discards the blocks of these extents, written or not, and waits for those in
    /// flight. Call it before extents that may be cached go back to their tablespace, also
    /// after the cache has failed.
    pub fn discard(&self, session: &Session, extents: impl IntoIterator<Item = Extent>) {
        for extent in extents {
            self.shared.latches.discard(session, (0..extent.blocks).map(|block| extent.address(block)));
        }
    }

    /// Writes blocks changed in place only after their log from now
    /// on. Starts the database writers.
    ///
    /// # Errors
    /// If a thread cannot be started.
    ///
    /// # Panics
    /// If a log has been set already: see [`BufferCache::log`].
    pub fn log_first(&self, log: Arc<dyn WriteAhead>) -> Result<(), EngineError> {
        self.shared.latches.log_first(log);
        self.start_writers()
    }

    /// Returns the instance's log; `None` until its transactions are opened.
    pub fn log(&self) -> Option<&dyn WriteAhead> {
        self.shared.latches.log()
    }

    /// Returns the transfers in flight and the number that have ended.
    pub(crate) fn progress(&self) -> DeviceProgress {
        self.shared.latches.progress()
    }

    /// Returns the size of its blocks.
    pub fn block_size(&self) -> BlockSize {
        self.shared.latches.block_size
    }

    /// Returns the number of cached blocks of a tablespace, in any state.
    pub fn cached_blocks(&self, purpose: Purpose) -> u64 {
        self.shared.latches.count_of(purpose)
    }

    /// Returns the number of its blocks of each tablespace.
    pub fn census(&self) -> Vec<CachedBlocks> {
        self.shared.latches.census()
    }

    /// Returns the work of the cache since it was made.
    pub fn counts(&self) -> PoolCounts {
        self.shared.latches.counts()
    }

    /// Returns the number and time of waits for blocks of each file that another session holds.
    pub fn file_waits(&self) -> BTreeMap<FileId, (u64, Nanos)> {
        self.shared.latches.file_waits()
    }

    pub(super) fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Stops each database writer after its current batch. Blocks still dirty then are not written.
    pub fn stop(&self) {
        self.shared.latches.stop();
        let mut threads = locked(&self.threads);
        for thread in threads.drain(..) {
            // A writer that panicked has printed its message and closed the cache.
            let _ = thread.join();
        }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Starts the database writers unless they run already.
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
                    // Running with fewer writers than the setting asks
                    // for would falsify a measurement.
                    self.shared.latches.fail(error.to_string());
                    self.shared.latches.writer_ended();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Returns the memory of its buffers; `None` before first use.
    pub fn memory(&self) -> Option<Arena> {
        self.shared.latches.memory().map(BufferPool::arena).cloned()
    }

    /// Recounts all frames, compares, and returns the number of sessions waiting for a free buffer.
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

/// Calls of sessions, which write a batch themselves where no database writer runs.
impl Shared {
    /// Returns the most blocks that one multiblock read may pin. If a scan could pin all frames, no
    /// other session could continue.
    pub(super) fn multiblock_max(&self) -> u32 {
        (self.latches.options.frame_count / 4).max(1) as u32
    }

    /// Returns the tablespace of a purpose; its block size must be that of the cache.
    pub(super) fn tablespace(&self, purpose: Purpose) -> &Tablespace {
        let tablespace = self.tablespaces.get(purpose);
        debug_assert_eq!(
            tablespace.block_size, self.latches.block_size,
            "B11: a frame holds a block of its own size"
        );
        tablespace
    }

    /// Pins the block if it is cached, else returns a frame to
    /// read it into; never [`Claim::Unavailable`].
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

    /// Returns a frame for a new block of this address. Other sessions wait for the block until
    /// its owner has changed it.
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

    /// Returns a frame in which to format a block.
    pub(super) fn own(&self, session: &Session) -> Result<OwnedFrame<'_>, EngineError> {
        loop {
            match self.latches.own(session)? {
                Some(frame) => return Ok(frame),
                None => database_writer::carry(self, session)?,
            }
        }
    }

    /// Waits until every block first changed before the LSN is written.
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
