//! What has a name in a directory, and second names of it.

use super::{Directory, EntryKind};
use crate::IoError;
use rustix::fs::{AtFlags, FileType, linkat, statat};
use rustix::io::Errno;
use std::path::Path;

/// What has a name, without following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// File, directory or neither.
    pub kind: EntryKind,
    /// The number of the user whom it belongs to.
    pub owner: u32,
    /// The file system that it is on, and its number there: equal for two names of one file.
    pub identity: (u64, u64),
    /// Bytes that it takes of the file system.
    pub allocated: u64,
}

/// Bytes of a block as `stat` counts them.
const STAT_BLOCK: u64 = 512;

impl Directory {
    /// Returns what has a name; `None` when nothing has it or it cannot be reached.
    #[must_use]
    pub fn found(&self, name: impl AsRef<Path>) -> Option<Found> {
        let (directory, last) = self.parent(name.as_ref()).ok()?;
        let found = statat(directory, last, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Found {
            kind: EntryKind::of(FileType::from_raw_mode(found.st_mode)),
            owner: found.st_uid,
            identity: (found.st_dev, found.st_ino),
            allocated: u64::try_from(found.st_blocks).unwrap_or(0) * STAT_BLOCK,
        })
    }

    /// Gives a file a second name within the directory; false where the file system has one name
    /// for each file, or this process may not give it another.
    ///
    /// # Errors
    /// When it is not there, or something has the new name.
    pub fn link(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<bool, IoError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let link = || {
            let (old, new) = (self.parent(from)?, self.parent(to)?);
            linkat(&old.0, old.1, &new.0, new.1, AtFlags::empty())
        };
        match link() {
            Ok(()) => Ok(true),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => Ok(false),
            Err(errno) => Err(self.failed("make", to, errno.into())),
        }
    }
}
