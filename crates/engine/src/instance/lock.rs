//! The lock on a database's home: one process changes it, or several read it.

use crate::EngineError;
use plumb_io::{IoError, Lock};
use std::fs;
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;

/// The lock file's name in the home; it holds the process that may write.
pub(super) const LOCK_FILE: &str = "lock";

/// A lock that lasts as long as this.
#[derive(Debug)]
pub(super) struct HomeLock {
    file: fs::File,
    lock: Lock,
}

impl HomeLock {
    /// Locks a home; `None` when it is to be read and has no lock file: then nobody can have it open, but for who
    /// makes it.
    pub(super) fn take(home: &Path, lock: Lock) -> Result<Option<HomeLock>, EngineError> {
        let path = home.join(LOCK_FILE);
        let fail = |source| IoError::Operation { operation: "lock", path: path.clone(), source };
        let writes = lock == Lock::Exclusive;
        let opened =
            fs::OpenOptions::new().read(true).write(writes).create(writes).truncate(false).open(&path);
        let mut file = match opened {
            Err(error) if !writes && error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fail)?,
        };
        match if writes { file.try_lock() } else { file.try_lock_shared() } {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                let holder = match holder.trim() {
                    "" => "another process".to_string(),
                    number => format!("process {number}"),
                };
                return Err(EngineError::InUse { what: "database", path: home.to_path_buf(), holder });
            }
            Err(fs::TryLockError::Error(source)) => return Err(fail(source).into()),
        }
        if writes {
            file.set_len(0).map_err(fail)?;
            file.rewind().map_err(fail)?;
            write!(file, "{}", std::process::id()).map_err(fail)?;
        }
        Ok(Some(HomeLock { file, lock }))
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        if self.lock == Lock::Exclusive {
            // Who reads after us leaves no number: ours would be taken for theirs.
            let _ = self.file.set_len(0);
        }
        // Closing is not enough: a child that is being started elsewhere in this process has the descriptor too for a moment.
        let _ = self.file.unlock();
    }
}
