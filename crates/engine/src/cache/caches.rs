//! The buffer caches of an instance: one for blocks of `db_block_size`, and one for each other size
//! that a setting gives memory to.
//!
//! Which cache a block is in follows from its tablespace. What is asked of all of them (that
//! changed blocks are written, that extents are forgotten) is asked here.

use super::buffer_cache::{BufferCache, CacheOptions, Shared};
use super::changed::ChangedBlocks;
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

/// How the blocks of all caches of an instance are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// As the settings say, by database writers.
    Asked,
    /// By the sessions, so that a disk sees one order of requests.
    Sessions,
}

/// The buffer caches of an instance.
#[derive(Debug)]
pub struct BufferCaches {
    /// That of `db_block_size`.
    own: BufferCache,
    /// Those of other sizes.
    sized: Vec<BufferCache>,
}

impl BufferCaches {
    /// The caches that the settings ask for, without memory and without writers.
    ///
    /// # Errors
    /// When there is to be a second cache for blocks of `db_block_size`.
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

    /// One cache alone, for tests of its shape.
    #[cfg(test)]
    pub(crate) fn one(own: BufferCache) -> BufferCaches {
        BufferCaches { own, sized: Vec::new() }
    }

    /// The cache for blocks of `db_block_size`.
    #[must_use]
    pub fn own(&self) -> &BufferCache {
        &self.own
    }

    /// All of them, that of `db_block_size` first.
    pub fn iter(&self) -> impl Iterator<Item = &BufferCache> {
        std::iter::once(&self.own).chain(&self.sized)
    }

    /// The cache that has the blocks of a tablespace.
    ///
    /// # Errors
    /// [`EngineError::NoCache`] when there is none for blocks of its size.
    #[inline]
    pub fn of(&self, purpose: Purpose) -> Result<&BufferCache, EngineError> {
        let Some(block_size) = purpose.own_size() else { return Ok(&self.own) };
        self.sized.iter().find(|cache| cache.block_size() == block_size).ok_or_else(|| EngineError::NoCache {
            tablespace: purpose.name(),
            block_size,
            setting: Setting::cache_of(block_size).row().name,
        })
    }

    /// Forgets the blocks of these extents: see [`BufferCache::discard`]. Where there is no cache
    /// for them there is nothing to forget.
    pub fn discard(&self, session: &Session, purpose: Purpose, extents: impl IntoIterator<Item = Extent>) {
        if let Ok(cache) = self.of(purpose) {
            cache.discard(session, extents);
        }
    }

    /// From now on no block that was changed in place is written before its log. Starts the
    /// database writers.
    ///
    /// # Errors
    /// When a thread cannot be started.
    ///
    /// # Panics
    /// When there is a log already: see [`BufferCaches::is_logged`].
    pub fn log_first(&self, log: &Arc<dyn WriteAhead>) -> Result<(), EngineError> {
        self.iter().try_for_each(|cache| cache.log_first(Arc::clone(log)))
    }

    /// The log of the instance; `None` as long as its transactions have not been opened.
    #[must_use]
    pub fn log(&self) -> Option<&dyn WriteAhead> {
        self.own.log()
    }

    /// The blocks that were changed in place, for who makes checkpoints.
    #[must_use]
    pub fn changed(&self) -> ChangedBlocks {
        ChangedBlocks::new(self.iter().map(BufferCache::share).collect::<Vec<Arc<Shared>>>())
    }

    /// How far the device has come with the blocks that all of them asked for.
    pub(crate) fn progress(&self) -> DeviceProgress {
        let each = self.iter().map(BufferCache::progress);
        each.reduce(DeviceProgress::with).expect("there is one for the database's own size")
    }

    /// Whether sessions write blocks themselves.
    #[must_use]
    pub fn is_written_by_sessions(&self) -> bool {
        self.own.options().writer_count == 0
    }

    /// Stops the database writers: see [`BufferCache::stop`].
    pub fn stop(&self) {
        self.iter().for_each(BufferCache::stop);
    }
}
