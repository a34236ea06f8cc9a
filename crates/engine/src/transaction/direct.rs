//! Redo of direct path loads: each block whole, before it is written.
//!
//! A load needs none to survive a crash: its blocks are durable before its table is in the catalog.
//! What needs it is a copy that is made meanwhile: a backup has the log from its checkpoint on, so
//! that a table whose load began behind that is made again from it ([`crate::backup`]).
//!
//! A block has the LSN of its record, whichever of the two writes it: the load, or a recovery. As
//! nobody else knows of the block before the table is entered, no checkpoint has to wait for it.
//!
//! Which loads are logged: all where `force_logging` is on; where copies of the log are made
//! (`archive_log_mode`) those that do not ask for none; no others.

use super::Transactions;
use super::worker::Worker;
use crate::EngineError;
use crate::storage::tablespace::Purpose;
use crate::table::load::{BlockLog, LogsBlocks};
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};

/// Whether a load asks for its redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logging {
    /// It is logged where the database keeps its log.
    Logging,
    /// It is not, unless the database forces it.
    NoLogging,
}

impl Transactions<'_> {
    /// What logs the blocks of a direct path load; none where it is not logged.
    #[must_use]
    pub fn log_of_load(&self, asked: Logging) -> Option<&dyn BlockLog> {
        let log = &self.instance.settings.log;
        let kept = asked == Logging::Logging && log.archive_log_mode;
        (kept || log.force_logging).then_some(self as &dyn BlockLog)
    }
}

impl BlockLog for Transactions<'_> {
    fn begin(&self) -> Lsn {
        self.log.end()
    }

    fn server<'s>(&'s self, session: &'s Session) -> Result<Box<dyn LogsBlocks + 's>, EngineError> {
        Ok(Box::new(self.worker_of_definition(session)?))
    }

    fn make_durable(&self, session: &Session) -> Result<(), EngineError> {
        self.log.make_durable(session, self.log.end())
    }
}

impl LogsBlocks for Worker<'_> {
    fn log(&mut self, place: (Purpose, BlockAddress), block: &[u8]) -> Result<Lsn, EngineError> {
        self.log_image(place, block)
    }
}
