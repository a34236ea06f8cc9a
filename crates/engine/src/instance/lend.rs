//! Lends an open database to readers in other processes.
//!
//! The locks on the home and on the data files become shared, so that other processes open the
//! database to read it ([`Instance::open_to_read`]). Meanwhile this instance changes nothing. It
//! takes the locks back when the readers have closed it.
//!
//! Rejected: closing the database and opening it again, because a run's figures, its recorder and
//! its caches belong to one instance.
//!
//! Limits: no transactions may be open. Their log and cache have committed rows that the files
//! lack.

use super::Instance;
use crate::EngineError;
use crate::storage::datafile::DataFile;
use plumb_io::Lock;

/// A database that is lent to readers.
#[derive(Debug)]
pub struct Lent<'i> {
    instance: &'i Instance,
    is_back: bool,
}

impl Instance {
    /// Lets other processes read the database until the guard is returned.
    ///
    /// # Errors
    /// If transactions are open, the database is not open to be changed, or a lock cannot be
    /// changed.
    pub fn lend(&self) -> Result<Lent<'_>, EngineError> {
        self.require_writable()?;
        if self.caches.log().is_some() {
            return Err(EngineError::Contradiction {
                first: "instances that read a closed database".to_string(),
                second: "a database with open transactions".to_string(),
                why:
                    "what they committed may be in the log and the cache alone; fill the table by direct path"
                        .to_string(),
            });
        }
        let lent = Lent { instance: self, is_back: false };
        lent.lock_all(Lock::Shared)?;
        Ok(lent)
    }
}

impl Lent<'_> {
    /// Takes the database back from its readers.
    ///
    /// # Errors
    /// If a reader still has it open.
    pub fn take_back(mut self) -> Result<(), EngineError> {
        self.is_back = true;
        self.lock_all(Lock::Exclusive)
    }

    fn lock_all(&self, lock: Lock) -> Result<(), EngineError> {
        let home = &self.instance.home;
        if let Some(held) = &self.instance.lock {
            held.change(home, lock)?;
        }
        let files = self.instance.tablespaces.iter().flat_map(|tablespace| &tablespace.files);
        files.into_iter().try_for_each(|DataFile { file, .. }| match file.lock(lock)? {
            true => Ok(()),
            false => Err(EngineError::InUse {
                what: "data file",
                path: file.path().to_path_buf(),
                holder: "a reader".to_string(),
            }),
        })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if !self.is_back {
            // An error on the way is the one to report.
            let _ = self.lock_all(Lock::Exclusive);
        }
    }
}
