//! The buffer caches of an instance: one for `db_block_size`, and one for each other size that
//! a setting gives memory to.
//!
//! The tablespace of a block decides its cache. Requests to all caches (write changed
//! blocks, discard extents) start here.

use super::buffer_cache::{BufferCache, CacheOptions, Shared};
use super::changed_blocks::ChangedBlocks;
use super::frames::DeviceProgress;
use super::latches::WriteAhead;
use crate::EngineError;
use crate::access::Access;
use crate::settings::{Setting, Settings};
use crate::storage::tablespace::{Extent, Purpose};
use crate::storage::tablespaces::Tablespaces;
use plumb_events::{Recorder, Session};
use plumb_units::{BlockSize, Bytes};
use std::sync::Arc;

/// Decides which threads write the blocks of all caches of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Database writers, as many as the settings ask for.
    Asked,
    /// The sessions themselves, so that a simulated disk sees one order of requests.
    Sessions,
}

/// The buffer caches of an instance.
#[derive(Debug)]
pub struct BufferCaches {
    /// Cache for blocks of `db_block_size`.
    own: BufferCache,
    /// Caches for other block sizes.
    sized: Vec<BufferCache>,
}

impl BufferCaches {
    /// Makes the caches that the settings ask for, without memory and without writers.
    ///
    /// # Errors
    /// If two settings give memory to a cache for blocks of `db_block_size`.
    pub fn new(
        settings: &Settings,
        writers: Writers,
        access: &Access,
        (tablespaces, recorder): (&Arc<Tablespaces>, &Recorder),
    ) -> Result<BufferCaches, EngineError> {
        let own_size = tablespaces.block_size();
        settings.require_one_cache_for(own_size)?;
        let mut number = 0;
        let mut cache = |block_size: BlockSize| {
            let size = settings.cache_size(block_size, own_size);
            let mut options = CacheOptions::of(settings, size, block_size);
            if writers == Writers::Sessions {
                options.writer_count = 0;
            }
            options.first_writer = number * options.writer_count;
            number += 1;
            BufferCache::new((options, block_size), access, Arc::clone(tablespaces), recorder.clone())
        };
        let own = cache(own_size);
        let asked = |size: &BlockSize| *size != own_size && settings.cache_size(*size, own_size) > Bytes(0);
        let sized = BlockSize::ALL.into_iter().filter(asked).map(cache).collect();
        Ok(BufferCaches { own, sized })
    }

    /// A single cache, for tests.
    #[cfg(test)]
    pub(crate) fn one(own: BufferCache) -> BufferCaches {
        BufferCaches { own, sized: Vec::new() }
    }

    /// Returns the cache for blocks of `db_block_size`.
    pub fn own(&self) -> &BufferCache {
        &self.own
    }

    /// Returns all caches, the one for `db_block_size` first.
    pub fn iter(&self) -> impl Iterator<Item = &BufferCache> {
        std::iter::once(&self.own).chain(&self.sized)
    }

    /// Returns the cache for the blocks of a tablespace.
    ///
    /// # Errors
    /// [`EngineError::NoCache`] if no cache has the tablespace's block size.
    #[inline]
    pub fn of(&self, purpose: Purpose) -> Result<&BufferCache, EngineError> {
        let Some(block_size) = purpose.own_size() else { return Ok(&self.own) };
        self.sized.iter().find(|cache| cache.block_size() == block_size).ok_or_else(|| EngineError::NoCache {
            tablespace: purpose.name(),
            block_size,
            setting: Setting::cache_of(block_size).row().name,
        })
    }

    /// Discards the blocks of these extents: see [`BufferCache::discard`]. Does nothing if no
    /// cache has their block size.
    pub fn discard(&self, session: &Session, purpose: Purpose, extents: impl IntoIterator<Item = Extent>) {
        if let Ok(cache) = self.of(purpose) {
            cache.discard(session, extents);
        }
    }

    /// Writes blocks changed in place only after their log from now
    /// on. Starts the database writers.
    ///
    /// # Errors
    /// If a thread cannot be started.
    ///
    /// # Panics
    /// If a log has been set already: see [`BufferCaches::log`].
    pub fn log_first(&self, log: &Arc<dyn WriteAhead>) -> Result<(), EngineError> {
        self.iter().try_for_each(|cache| cache.log_first(Arc::clone(log)))
    }

    /// Returns the instance's log; `None` until its transactions are opened.
    pub fn log(&self) -> Option<&dyn WriteAhead> {
        self.own.log()
    }

    /// Returns the blocks changed in place, for checkpoints to write.
    pub fn changed(&self) -> ChangedBlocks {
        ChangedBlocks::new(self.iter().map(BufferCache::share).collect::<Vec<Arc<Shared>>>())
    }

    /// Returns the transfers in flight and ended, summed over all caches.
    pub(crate) fn progress(&self) -> DeviceProgress {
        let each = self.iter().map(BufferCache::progress);
        each.reduce(DeviceProgress::with).expect("there is one for the database's own size")
    }

    /// True if sessions write blocks themselves.
    pub fn is_written_by_sessions(&self) -> bool {
        self.own.options().writer_count == 0
    }

    /// Stops the database writers of all caches: see [`BufferCache::stop`].
    pub fn stop(&self) {
        self.iter().for_each(BufferCache::stop);
    }
}
