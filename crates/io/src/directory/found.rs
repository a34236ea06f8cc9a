//! Attributes of a directory entry, and second links to it.

use super::{Directory, EntryKind};
use crate::IoError;
use rustix::fs::{AtFlags, FileType, linkat, statat};
use rustix::io::Errno;
use std::path::Path;

/// Attributes of a directory entry; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Kind of the entry itself.
    pub kind: EntryKind,
    /// Numeric id of the owning user.
    pub owner: u32,
    /// Device and inode number: equal for two links of one file.
    pub identity: (u64, u64),
    /// Bytes allocated in the file system.
    pub allocated: u64,
}

/// Bytes of a block as `stat` counts them.
const STAT_BLOCK: u64 = 512;

impl Directory {
    /// Returns the attributes of an entry; `None` when it does not exist or cannot be reached.
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

    /// Adds a second hard link within the directory. Returns false where the file system allows one
    /// link a file, or this process may not add another.
    ///
    /// # Errors
    /// When it does not exist, or the new name is taken.
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
