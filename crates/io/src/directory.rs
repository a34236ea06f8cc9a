//! A directory held by its descriptor: the one way to reach what lies in it.
//!
//! Names relative to the descriptor open, create, rename, remove and sync files and directories in
//! it. No name leads out of it and no symbolic link on the way is followed. Creating a file fails
//! if the name is taken, and only a regular file is opened as a file.
//!
//! Mechanism: openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Where the kernel lacks it or
//! a system call filter denies it, one openat(2) with O_NOFOLLOW for each component of the name.
//!
//! Why: each call resolves a path again. Between two calls another process may replace the
//! directory by another one, or a directory from elsewhere may contain links to files of its
//! reader. A descriptor stays with the directory that was opened, wherever that is moved.
//!
//! Rejected: cap-std, which follows links inside the directory and lacks a rename that refuses to
//! replace; it adds eight crates for calls that rustix already has.
//!
//! Limits: mounts are crossed, so that `mirror` of a database may be another disk. The path of the
//! directory itself may have links, because the user named it. A second hard link cannot be told
//! from the first; a caller that must not share a file checks its number of links.
//!
//! - D1 A name has normal components only: neither `..` nor a leading `/`.

mod found;

pub use found::Found;

use crate::IoError;
use crate::sim::{self, DurableCall};
use plumb_host::regular;
use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, fchmod, fsync, mkdirat, openat,
    openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Mode of control files and locks: readable and writable by the owner alone.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
/// Attempts of a lookup beneath a descriptor: it fails with EAGAIN when
/// another process renames something meanwhile.
const RESOLVE_TRIES: u32 = 128;

/// End of the name of a file that is written before it takes its place; a kill may leave it.
pub const FRESH: &str = ".new";

/// A directory held by its descriptor.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// Kind of a directory entry; links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file, the only kind that is opened as a file.
    File,
    /// A directory, or a mount point.
    Directory,
    /// A symbolic link, whatever it points to.
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl EntryKind {
    fn of(kind: FileType) -> EntryKind {
        match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Other,
        }
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name of the entry, without its directory.
    pub name: OsString,
    /// Kind of the entry itself; links are not followed.
    pub kind: EntryKind,
}

impl Directory {
    /// Opens a directory that exists.
    ///
    /// # Errors
    /// When it does not exist, is no directory or may not be read.
    pub fn open(path: &Path) -> Result<Directory, IoError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // A relative path of one component has an empty parent.
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let descriptor = fs::open(named, flags, Mode::empty())
            .map_err(|errno| IoError::operation("open", named, errno))?;
        Ok(Directory { path: path.to_path_buf(), descriptor })
    }

    /// Opens a directory, after creating it and its missing parents. The names of those that were
    /// created are durable when this returns.
    ///
    /// # Errors
    /// When one cannot be created, or its parent cannot be synced.
    pub fn create(path: &Path) -> Result<Directory, IoError> {
        make_durably(path)?;
        Directory::open(path)
    }

    /// Returns the path by which it was opened, for messages. The directory
    /// may have been moved since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the held descriptor, for calls relative to it.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// When it does not exist, is reached through a link or is no regular file.
    pub fn read_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let opened = self.open_regular(name, OFlags::RDONLY, Mode::empty());
        opened.map(std::fs::File::from).map_err(|error| self.failed("open", name, error))
    }

    /// Opens a regular file to read and write it.
    ///
    /// # Errors
    /// The errors that [`Directory::read_file`] returns.
    pub fn write_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let opened = self.open_regular(name, OFlags::RDWR, Mode::empty());
        opened.map(std::fs::File::from).map_err(|error| self.failed("open", name, error))
    }

    /// Creates a regular file to read and write it.
    ///
    /// # Errors
    /// When the name is taken, even by a link that leads nowhere.
    pub fn create_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let opened = self.open_regular(name, flags, Mode::from_raw_mode(0o666));
        opened.map(std::fs::File::from).map_err(|error| self.failed("create", name, error))
    }

    /// Reads a whole regular file of at most `most` bytes; `None` when it does not exist.
    ///
    /// # Errors
    /// When it is longer, is no regular file, is reached through a link or cannot be read.
    pub fn read(&self, name: impl AsRef<Path>, most: u64) -> Result<Option<Vec<u8>>, IoError> {
        let name = name.as_ref();
        match self.open_regular(name, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => {
                regular::read_at_most(file, most).map(Some).map_err(|error| self.failed("read", name, error))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("open", name, error)),
        }
    }

    /// Replaces a file durably and atomically: after a crash either the old or the new bytes are
    /// found. The process's umask decides the mode of the new file.
    ///
    /// # Errors
    /// When it cannot be written: the old file is unchanged. When the directory cannot be synced:
    /// the new file is in place, but a power cut may undo the rename.
    pub fn replace(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<(), IoError> {
        let name = name.as_ref();
        self.put(name, bytes, None).map_err(|errno| self.failed("write", name, errno.into()))?;
        self.sync(name.parent().unwrap_or(Path::new("")))
    }

    /// As [`Directory::replace`], readable by the owner alone, but without
    /// the sync of the directory.
    pub(crate) fn put_private(&self, name: &Path, bytes: &[u8]) -> Result<(), Errno> {
        self.put(name, bytes, Some(OWNER_ONLY))
    }

    fn put(&self, name: &Path, bytes: &[u8], mode: Option<Mode>) -> Result<(), Errno> {
        let fresh = with_suffix(name, FRESH);
        // A killed process may have left one. Unlinking removes a link itself, never its target.
        match self.unlink(&fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = self.resolve(&fresh, flags, mode.unwrap_or(Mode::from_raw_mode(0o666)))?;
        let write = || {
            if let Some(mode) = mode {
                // The process's umask may have cleared bits of the mode.
                fchmod(&file, mode)?;
            }
            let mut file = std::fs::File::from(file);
            file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            fsync(&file)?;
            let (directory, last) = self.parent(&fresh)?;
            renameat(&directory, last, &directory, last_of(name)?)
        };
        write().inspect_err(|_| {
            // The first error is the one to report.
            let _ = self.unlink(&fresh, AtFlags::empty());
        })
    }

    /// Renames a file or directory within this directory.
    ///
    /// # Errors
    /// When it does not exist, or the new name is taken.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), IoError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.rename_once(from, to).map_err(|errno| self.failed("make", to, errno.into()))
    }

    pub(crate) fn rename_once(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let (old, new) = (self.parent(from)?, self.parent(to)?);
        match renameat_with(&old.0, old.1, &new.0, new.1, RenameFlags::NOREPLACE) {
            // Network file systems and kernels before 3.15 lack NOREPLACE.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rename_by_link((old.0.as_fd(), old.1), (new.0.as_fd(), new.1))
            }
            renamed => renamed,
        }
    }

    /// Renames a file within this directory and replaces any file of the new name.
    ///
    /// # Errors
    /// When it does not exist, or the kernel refuses.
    pub fn rename_over(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), IoError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let rename = || {
            let (old, new) = (self.parent(from)?, self.parent(to)?);
            renameat(&old.0, old.1, &new.0, new.1)
        };
        rename().map_err(|errno| self.failed("make", to, errno.into()))
    }

    /// Removes a file, or a link itself.
    ///
    /// # Errors
    /// When it does not exist or is a directory.
    pub fn remove(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        self.unlink(name, AtFlags::empty()).map_err(|errno| self.failed("remove", name, errno.into()))
    }

    /// Removes an empty directory by its name.
    ///
    /// # Errors
    /// When it does not exist, is no directory or is not empty.
    pub fn remove_directory(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        self.unlink(name, AtFlags::REMOVEDIR).map_err(|errno| self.failed("remove", name, errno.into()))
    }

    pub(crate) fn unlink(&self, name: &Path, flags: AtFlags) -> Result<(), Errno> {
        let (directory, last) = self.parent(name)?;
        unlinkat(directory, last, flags)
    }

    /// Creates a directory, of which only its parent must exist.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn make_directory(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        let make = || {
            let (directory, last) = self.parent(name)?;
            mkdirat(directory, last, Mode::from_raw_mode(0o777))
        };
        make().map_err(|errno| self.failed("create directory", name, errno.into()))
    }

    /// Opens a directory within the directory.
    ///
    /// # Errors
    /// When it does not exist, is no directory or is reached through a link.
    pub fn directory(&self, name: impl AsRef<Path>) -> Result<Directory, IoError> {
        let name = name.as_ref();
        let opened = self.resolve(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let descriptor = opened.map_err(|errno| self.failed("open", name, errno.into()))?;
        Ok(Directory { path: self.path.join(name), descriptor })
    }

    /// Returns the kind of the entry; `None` when it does not exist or cannot be reached.
    pub fn kind(&self, name: impl AsRef<Path>) -> Option<EntryKind> {
        let (directory, last) = self.parent(name.as_ref()).ok()?;
        let found = statat(directory, last, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(EntryKind::of(FileType::from_raw_mode(found.st_mode)))
    }

    /// Returns the number of hard links of a file; `None` when it does not exist.
    pub fn links(&self, name: impl AsRef<Path>) -> Option<u64> {
        let (directory, last) = self.parent(name.as_ref()).ok()?;
        let found = statat(directory, last, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        #[allow(clippy::unnecessary_cast, reason = "it has 32 bits on other processors")]
        Some(found.st_nlink as u64)
    }

    /// Lists the directory, sorted by name.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, IoError> {
        let list = || {
            // Reading moves a descriptor's offset, so this uses one of its own.
            let listed = self.resolve(Path::new(""), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            let mut buffer = [MaybeUninit::uninit(); 8192];
            let mut read = RawDir::new(&listed, &mut buffer);
            let mut entries = Vec::new();
            while let Some(entry) = read.next() {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                let name = OsStr::from_bytes(name).to_os_string();
                let kind = match entry.file_type() {
                    // The file system does not report kinds: ask for this entry's.
                    FileType::Unknown => self.kind(&name).unwrap_or(EntryKind::Other),
                    kind => EntryKind::of(kind),
                };
                entries.push(Entry { name, kind });
            }
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(entries)
        };
        list().map_err(|errno: Errno| self.failed("read directory", Path::new(""), errno.into()))
    }

    /// Makes the names in a subdirectory durable; an empty name is the directory itself.
    ///
    /// # Errors
    /// When the device reports a failed write.
    pub fn sync(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        self.sync_once(name).map_err(|errno| self.failed("sync", name, errno.into()))
    }

    pub(crate) fn sync_once(&self, name: &Path) -> Result<(), Errno> {
        if name.as_os_str().is_empty() {
            return fsync(&self.descriptor);
        }
        fsync(self.resolve(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)
    }

    fn failed(&self, operation: &'static str, name: &Path, error: std::io::Error) -> IoError {
        let path = if name.as_os_str().is_empty() { self.path.clone() } else { self.path.join(name) };
        IoError::operation(operation, &path, error)
    }

    /// Opens a name and fails unless it is a regular file.
    pub(crate) fn open_regular(
        &self,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, std::io::Error> {
        regular::regular(self.resolve(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)?)
    }

    /// Opens the parent of a name, and returns it with the name's last component.
    fn parent<'n>(&self, name: &'n Path) -> Result<(OwnedFd, &'n OsStr), Errno> {
        let last = last_of(name)?;
        let above = name.parent().unwrap_or(Path::new(""));
        Ok((self.resolve(above, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?, last))
    }

    /// Opens a name beneath the directory, through no link.
    pub(crate) fn resolve(&self, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let normal = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        if !name.components().all(normal) {
            return Err(Errno::XDEV);
        }
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        // Unlike openat(2), openat2(2) rejects a mode without O_CREAT.
        let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
        let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..RESOLVE_TRIES {
            match openat2(&self.descriptor, name, flags, mode, beneath) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::NOSYS | Errno::PERM) => return self.walk(name, flags, mode),
                opened => return opened,
            }
        }
        self.walk(name, flags, mode)
    }

    /// Does the work of openat2, one component at a time.
    fn walk(&self, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut parts = name.components().peekable();
        let mut at = openat(&self.descriptor, ".", step, Mode::empty())?;
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return openat(&at, part.as_os_str(), flags, mode);
            }
            at = openat(&at, part.as_os_str(), step, Mode::empty())?;
        }
        openat(&at, ".", flags, mode)
    }
}

/// Creates a directory and its missing parents, each with a durable name. An empty path is the
/// current directory. Returns those created, parents first.
pub(crate) fn make_durably(path: &Path) -> Result<Vec<PathBuf>, IoError> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.exists())
        .map(Path::to_path_buf)
        .collect();
    let mut made = Vec::new();
    for directory in missing.into_iter().rev() {
        match std::fs::create_dir(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(IoError::operation("create directory", &directory, error));
            }
            // Another process may have created it meanwhile without having synced it yet.
            _ => {}
        }
        let around = directory.parent().unwrap_or(Path::new(""));
        sim::note(|| DurableCall::SyncDirectory(around.to_path_buf()));
        Directory::open(around)?.sync("")?;
        made.push(directory);
    }
    Ok(made)
}

/// True if the name does not exist.
pub(crate) fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

fn last_of(name: &Path) -> Result<&OsStr, Errno> {
    name.file_name().ok_or(Errno::INVAL)
}

pub(crate) fn with_suffix(name: &Path, suffix: &str) -> PathBuf {
    let mut name = name.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

type Named<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Renames without replacing where the kernel cannot: adds a second link, then removes the first. A
/// crash between the two leaves both.
pub(crate) fn rename_by_link(from: Named<'_>, to: Named<'_>) -> Result<(), Errno> {
    match fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()) {
        Ok(()) => unlinkat(from.0, from.1, AtFlags::empty()),
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => rename_over_own(from, to),
        Err(errno) => Err(errno),
    }
}

/// Renames without replacing where hard links are unsupported: renames onto an empty file
/// that this call has created.
pub(crate) fn rename_over_own(from: Named<'_>, to: Named<'_>) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(openat(to.0, to.1, flags, Mode::from_raw_mode(0o640))?);
    renameat(from.0, from.1, to.0, to.1).inspect_err(|_| {
        let _ = unlinkat(to.0, to.1, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests;
