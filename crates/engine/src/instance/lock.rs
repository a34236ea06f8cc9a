//! The lock on a database's home: one process changes the database, or several read it.
//!
//! The lock file must be the home's own, without a link or a second name, because the process id
//! overwrites its contents. Only its owner may read it. Otherwise any user could hold the lock and
//! keep the database closed.

use crate::EngineError;
use crate::storage::own_file::require_own;
use plumb_io::{Directory, IoError, Lock, OpenMode};
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Name of the lock file in the home; it holds the id of the writing process.
pub(super) const LOCK_FILE: &str = "lock";

/// The lock on a home, released on drop.
#[derive(Debug)]
pub(super) struct HomeLock {
    file: fs::File,
    lock: Lock,
}

impl HomeLock {
    /// Locks a home. `None` for a reader of a home without a lock file: then no process has it
    /// open, except one that creates it.
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
                    // A file system without locks keeps no empty database.
                    let _ = home.remove(LOCK_FILE);
                }
                return Err(fail(source).into());
            }
        }
        if writes {
            // In a shared directory the file may belong to another user, and so its permissions.
            let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
            file.set_len(0).map_err(fail)?;
            file.rewind().map_err(fail)?;
            // On a full disk this fails, and other processes report a holder without its id.
            let _ = write!(file, "{}", std::process::id());
        }
        Ok(Some(HomeLock { file, lock }))
    }

    /// Makes the lock of the writing process shared, or exclusive again.
    pub(super) fn change(&self, home: &Path, lock: Lock) -> Result<(), EngineError> {
        let changed = match lock {
            Lock::Shared => self.file.try_lock_shared(),
            Lock::Exclusive => self.file.try_lock(),
        };
        changed.map_err(|error| match error {
            fs::TryLockError::WouldBlock => EngineError::InUse {
                what: "database",
                path: home.to_path_buf(),
                holder: "a reader".to_string(),
            },
            fs::TryLockError::Error(source) => {
                IoError::Operation { operation: "lock", path: home.join(LOCK_FILE), source }.into()
            }
        })
    }
}

impl Drop for HomeLock {
    fn drop(&mut self) {
        if self.lock == Lock::Exclusive {
            // A reader that locks it next writes no id, so ours would count as the reader's.
            let _ = self.file.set_len(0);
        }
        // Closing does not suffice: a child being started by another thread may hold the descriptor
        // too.
        let _ = self.file.unlock();
    }
}
