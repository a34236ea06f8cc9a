//! The blocks that were changed in place and are not on disk, as checkpoints see them.

use super::buffer_cache::Shared;
use super::database_writer;
use crate::EngineError;
use plumb_events::Session;
use plumb_units::Lsn;
use std::sync::Arc;

/// The changed blocks of a buffer cache.
#[derive(Debug, Clone)]
pub struct ChangedBlocks(Arc<Shared>);

impl ChangedBlocks {
    pub(super) fn new(shared: Arc<Shared>) -> ChangedBlocks {
        ChangedBlocks(shared)
    }

    /// Whether all that was changed before the LSN has been written, though not synced.
    #[must_use]
    pub fn are_written(&self, before: Lsn) -> bool {
        self.0.first_unwritten().is_none_or(|first| first >= before)
    }

    /// Has the blocks written that were changed before the LSN, and waits for it.
    ///
    /// # Errors
    /// When a write fails, or the cache has failed.
    pub fn write(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        self.0.write_changed(session, before)
    }

    /// Writes one batch of them, carried by the session: for caches without database writers.
    ///
    /// # Errors
    /// As [`ChangedBlocks::write`].
    pub fn write_some(&self, session: &Session, before: Lsn) -> Result<(), EngineError> {
        database_writer::carry_changed(&self.0, session, before)
    }
}
