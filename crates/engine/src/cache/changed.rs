//! The blocks that were changed in place and are not on disk, as checkpoints see them.

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

    /// Whether all that was changed before the LSN has been written, though not synced.
    #[must_use]
    pub fn are_written(&self, before: Lsn) -> bool {
        let is_written =
            |cache: &Arc<Shared>| cache.latches.first_unwritten().is_none_or(|first| first >= before);
        self.0.iter().all(is_written)
    }

    /// Has the blocks written that were changed before the LSN, and waits for it.
    ///
    /// # Errors
    /// When a write fails, or the cache has failed.
    pub fn write(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        self.0.iter().try_for_each(|cache| cache.write_changed(session, before))
    }

    /// Writes one batch of each cache's, carried by the session: for caches without database writers.
    ///
    /// # Errors
    /// As [`ChangedBlocks::write`].
    pub fn write_some(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        self.0.iter().try_for_each(|cache| database_writer::carry_changed(cache, session, before))
    }
}
