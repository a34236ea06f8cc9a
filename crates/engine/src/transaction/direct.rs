//! Redo of direct path loads: each block is logged whole before it is written.
//!
//! A load does not need redo to survive a crash, because its blocks are durable before its table is
//! in the catalog. A backup taken meanwhile needs it: the backup holds the log from its checkpoint
//! on, and rebuilds from it a table whose load began later ([`crate::backup`]).
//!
//! A block has the LSN of its record, both when the load writes it and when recovery does. No
//! checkpoint waits for the block, because no other session knows of it before the table is in the
//! catalog.
//!
//! All loads are logged with `force_logging`. With copies of the log (`archive_log_mode`), loads
//! are logged unless they ask for none. Otherwise no load is logged.

use super::Transactions;
use super::worker::Worker;
use crate::EngineError;
use crate::storage::tablespace::Purpose;
use crate::table::load::{BlockLog, LogsBlocks};
use plumb_events::Session;
use plumb_units::{BlockAddress, Lsn};

/// Choice of a load to have its blocks logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logging {
    /// Logged if the database copies its log files.
    Logging,
    /// Not logged, unless the database forces it.
    NoLogging,
}

impl Transactions<'_> {
    /// Returns the log for the blocks of a direct path load; `None` if it is not logged.
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
