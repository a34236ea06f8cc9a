//! A directory's claim to log files outside of it. It is refused where another copy has gone on
//! with them, by the epochs ([`epoch`](super::epoch)), and where the database that they name is
//! there.

use super::checkpoint::{self, Checkpoint};
use super::epoch::{Epochs, Standing};
use super::log_file::{FILE_HEADER, FileHeader, Owner};
use crate::EngineError;
use crate::database_id::DatabaseId;
use crate::storage::control::Catalog;
use crate::storage::log_places::{LogPlaces, MemberId};
use crate::storage::own_file::require_own_at;
use plumb_io::{Disk, OpenMode};
use std::path::Path;

/// A directory that would go on with log files outside of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) disk: &'a Disk,
    /// The directory as it was named.
    pub(crate) home: &'a Path,
    /// The directory with all links resolved.
    pub(crate) canonical: &'a Path,
    pub(crate) database: DatabaseId,
    /// The epochs of its control block.
    pub(crate) epochs: Epochs,
}

impl Claim<'_> {
    /// Refuses a member that another copy of the database has gone on with, or whose database is
    /// still where it was.
    pub(super) fn judge(&self, path: &Path, owner: &Owner) -> Result<Standing, EngineError> {
        let standing = self.epochs.standing(owner.epoch);
        if standing == Standing::Continued {
            let (path, last) = (path.to_path_buf(), owner.home.clone());
            return Err(EngineError::Continued { path, last, home: self.home.to_path_buf() });
        }
        let is_named = !owner.home.as_os_str().is_empty() && !self.disk.is_memory();
        if is_named && owner.home != self.canonical && self.has_rival(owner) {
            let (path, original) = (path.to_path_buf(), owner.home.clone());
            return Err(EngineError::CopyOf { path, original, home: self.home.to_path_buf() });
        }
        Ok(standing)
    }

    /// True if the database of the directory that a member names could go on with it. One that
    /// cannot be read is not known to be gone.
    fn has_rival(&self, owner: &Owner) -> bool {
        let Ok(found) = Catalog::find(&owner.home) else { return true };
        if found.is_none_or(|found| found.database != self.database) {
            return false;
        }
        let disk = Disk::Kernel;
        if !disk.exists(&checkpoint::path(&owner.home)) {
            return false;
        }
        let rival = Checkpoint::find(&disk, &owner.home, self.database);
        rival.is_none_or(|rival| rival.epochs.standing(owner.epoch) == Standing::Own)
    }

    /// Refuses a directory whose log files outside of it are another copy's, whatever is to be
    /// written. A log file that is missing or damaged is for the opening of the log to report.
    ///
    /// # Errors
    /// As [`Claim::judge`], or when a member is a link or another database's.
    pub(crate) fn require_log(&self, places: &LogPlaces, log: &Checkpoint) -> Result<(), EngineError> {
        let all = MemberId::all(log.log_files, log.members);
        for id in all.filter(|id| places.is_outside(id.member)) {
            let path = places.path(self.home, self.database, id);
            require_own_at(self.disk, &path, OpenMode::Write)?;
            let Ok(head) = self.disk.read_head(&path, FILE_HEADER as usize) else { continue };
            if FileHeader::read(&head, self.database, &path)?.is_some() {
                self.judge(&path, &FileHeader::owner(&head))?;
            }
        }
        Ok(())
    }
}
