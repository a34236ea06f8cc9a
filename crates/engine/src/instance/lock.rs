//! The lock on a database's home: one process changes it, or several read it.
//!
//! The lock file is one of the home's own: not reached through a link and with no second name,
//! because the number of the process is written over what it contains. It is readable by its owner
//! alone, otherwise any user could hold the lock and keep the database closed.

use crate::EngineError;
use crate::storage::own_file::require_own;
use plumb_io::{Directory, IoError, Lock, OpenMode};
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;

/// The lock file's name in the home; it holds the process that may write.
pub(super) const LOCK_FILE: &str = "lock";

/// A lock that lasts as long as this.
#[derive(Debug)]
pub(super) struct HomeLock {
    file: fs::File,
    lock: Lock,
}

impl HomeLock {
    /// Locks a home; `None` when it is to be read and has no lock file: then no process has it open
    /// but one that makes it.
    pub(super) fn take(home: &Directory, lock: Lock) -> Result<Option<HomeLock>, EngineError> {
        let path = home.path().join(LOCK_FILE);
        let fail = |source| IoError::Operation { operation: "lock", path: path.clone(), source };
        let writes = lock == Lock::Exclusive;
        require_own(home, LOCK_FILE, if writes { OpenMode::Write } else { OpenMode::Read })?;
        let (mut file, made) = match (home.kind(LOCK_FILE), writes) {
            (None, false) => return Ok(None),
            (None, true) => (home.create_file(LOCK_FILE)?, true),
            (Some(_), false) => (home.read_file(LOCK_FILE)?, false),
            (Some(_), true) => (home.write_file(LOCK_FILE)?, false),
        };
        match if writes { file.try_lock() } else { file.try_lock_shared() } {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = (&mut file).take(32).read_to_string(&mut holder);
                let holder = match holder.trim().parse::<u32>() {
                    Ok(number) => format!("process {number}"),
                    Err(_) => "another process".to_string(),
                };
                return Err(EngineError::InUse { what: "database", path: home.path().to_path_buf(), holder });
            }
            Err(fs::TryLockError::Error(source)) => {
                if made {
                    // A file system that cannot lock keeps no empty database.
                    let _ = home.remove(LOCK_FILE);
                }
                return Err(fail(source).into());
            }
        }
        if writes {
            // It may be another user's in a directory of several: then the rights are that user's
            // to set.
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
            file.set_len(0).map_err(fail)?;
            file.rewind().map_err(fail)?;
            // A full disk has no room for it: then others are told of a process without its number.
            let _ = write!(file, "{}", std::process::id());
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
        // Closing is not enough: a child that is being started elsewhere in this process has the
        // descriptor too for a moment.
        let _ = self.file.unlock();
    }
}
