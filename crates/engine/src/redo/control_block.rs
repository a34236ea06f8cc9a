//! The control block of an open log: the last checkpoint, and the LSN that a backup keeps the log
//! from.

use super::checkpoint::{Checkpoint, ControlFile};
use crate::EngineError;
use plumb_events::{Session, locked};
use plumb_units::Lsn;
use std::sync::{Mutex, MutexGuard};

/// The control block as a session changes it.
#[derive(Debug)]
pub(super) struct Written {
    file: ControlFile,
    checkpoint: Checkpoint,
}

impl Written {
    pub(super) fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Replaces it durably; it has the next serial number.
    pub(super) fn write(&mut self, session: &Session, next: Checkpoint) -> Result<(), EngineError> {
        let next = Checkpoint { serial: self.checkpoint.serial + 1, ..next };
        self.file.write(session, &next)?;
        self.checkpoint = next;
        Ok(())
    }
}

/// The control block, and the hold of a backup on the log.
#[derive(Debug)]
pub(crate) struct ControlBlock {
    written: Mutex<Written>,
    /// Needed from here on for a backup, although no transaction and no recovery needs it.
    held: Mutex<Option<Lsn>>,
}

impl ControlBlock {
    pub(super) fn new(file: ControlFile, checkpoint: Checkpoint) -> ControlBlock {
        ControlBlock { written: Mutex::new(Written { file, checkpoint }), held: Mutex::default() }
    }

    /// Locks it to be changed.
    pub(super) fn change(&self) -> MutexGuard<'_, Written> {
        locked(&self.written)
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        self.change().checkpoint
    }

    /// Returns the LSN from which on the log is needed, where a checkpoint needs it from `low` on.
    pub(super) fn needed_from(&self, low: Lsn) -> Lsn {
        locked(&self.held).map_or(low, |held| held.min(low))
    }

    /// Keeps the log from the last checkpoint's record on, until the hold is dropped or
    /// [`ControlBlock::let_go`].
    pub(crate) fn hold(&self) -> Result<Held<'_>, EngineError> {
        let written = self.change();
        let mut held = locked(&self.held);
        if held.is_some() {
            return Err(EngineError::Contradiction {
                first: "a backup".to_string(),
                second: "another one under way".to_string(),
                why: "one is made at a time; wait for it".to_string(),
            });
        }
        *held = Some(written.checkpoint.low);
        Ok(Held(self))
    }

    /// Holds nothing any more, because sessions need the room. False when nothing was held.
    pub(crate) fn let_go(&self) -> bool {
        locked(&self.held).take().is_some()
    }
}

/// The log, held for a backup.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a ControlBlock);

impl Held<'_> {
    /// True until a session has needed the room.
    pub(crate) fn is_held(&self) -> bool {
        locked(&self.0.held).is_some()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.let_go();
    }
}
