//! The view that checkpoints have of blocks changed in place and not yet on disk.

use super::buffer_cache::Shared;
use super::database_writer;
use crate::EngineError;
use plumb_events::Session;
use plumb_units::Lsn;
use std::sync::Arc;

/// The changed blocks of all buffer caches of an instance.
#[derive(Debug, Clone)]
pub struct ChangedBlocks(Vec<Arc<Shared>>);

impl ChangedBlocks {
    pub(super) fn new(caches: Vec<Arc<Shared>>) -> ChangedBlocks {
        ChangedBlocks(caches)
    }

    /// True if every block first changed before the LSN has been written; it need not be synced.
    pub fn are_written(&self, before: Lsn) -> bool {
        let is_written =
            |cache: &Arc<Shared>| cache.latches.first_unwritten().is_none_or(|first| first >= before);
        self.0.iter().all(is_written)
    }

    /// Writes the blocks first changed before the LSN, and waits until they are written.
    ///
    /// # Errors
    /// If a write fails, or the cache has failed.
    pub fn write(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        self.0.iter().try_for_each(|cache| cache.write_changed(session, before))
    }

    /// Writes one batch of each cache in the calling session, for caches without database writers.
    ///
    /// # Errors
    /// The same errors as [`ChangedBlocks::write`].
    pub fn write_some(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        self.0.iter().try_for_each(|cache| database_writer::carry_changed(cache, session, before))
    }
}
