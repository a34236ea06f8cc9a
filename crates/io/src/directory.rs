//! A directory held by its descriptor: the one way to reach what lies in it.
//!
//! What it does: files and directories in it are opened, made, renamed, removed and synced by names
//! relative to the descriptor. No name leads out of it, no symbolic link on the way is followed, a
//! new file is never one that is there already, and only a regular file is opened as one.
//!
//! How: openat2(2) with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS. Where the kernel lacks it or a
//! filter of system calls denies it, one openat(2) with O_NOFOLLOW for each component of the name.
//!
//! Why: a path is looked up again at every call. Between two calls another process may move the directory
//! and put another one in its place, or a directory from elsewhere may contain links to files of
//! its reader. A descriptor stays with the directory that was opened, wherever that is moved.
//!
//! Rejected: cap-std, which follows links inside the directory and has no rename that refuses to
//! replace; it would have brought eight crates for calls that rustix already has.
//!
//! Limits: mounts are crossed, so that `mirror` of a database may be another disk. The path of the
//! directory itself may have links: it is what the user named. A second hard link cannot be told
//! from the first; a caller that must not share a file asks for the number of its links.
//!
//! - D1 A name has normal components only: neither `..` nor a leading `/`.

mod found;

pub use found::Found;

use crate::IoError;
use crate::kind::word_of;
use crate::sim::{self, DurableCall};
use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, fchmod, fcntl_getfl,
    fcntl_setfl, fstat, fsync, mkdirat, openat, openat2, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Readable and writable by their owner alone: control files, locks.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
/// A lookup beneath a descriptor gives up with EAGAIN when something is renamed meanwhile.
const RESOLVE_TRIES: u32 = 128;

/// A directory held by its descriptor.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    descriptor: OwnedFd,
}

/// What an entry of a directory is, without following it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
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
    /// Its name in the directory.
    pub name: OsString,
    /// Its kind, links not followed.
    pub kind: EntryKind,
}

impl Directory {
    /// Opens a directory that exists.
    ///
    /// # Errors
    /// When it does not exist, is no directory or may not be read.
    pub fn open(path: &Path) -> Result<Directory, IoError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The directory of a path of one part.
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let descriptor = fs::open(named, flags, Mode::empty())
            .map_err(|errno| IoError::operation("open", named, errno))?;
        Ok(Directory { path: path.to_path_buf(), descriptor })
    }

    /// Opens a directory, after making it and those around it as needed. The names of those that
    /// were made are durable when this returns.
    ///
    /// # Errors
    /// When one cannot be made, or its parent cannot be synced.
    pub fn create(path: &Path) -> Result<Directory, IoError> {
        make_durably(path)?;
        Directory::open(path)
    }

    /// The path that it was opened by, for messages. The directory may have been moved since.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The descriptor.
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// Opens a regular file to read it.
    ///
    /// # Errors
    /// When it is not there, is reached through a link or is no regular file.
    pub fn read_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let opened = self.open_regular(name, OFlags::RDONLY, Mode::empty());
        opened.map(std::fs::File::from).map_err(|error| self.failed("open", name, error))
    }

    /// Opens a regular file to read and write it.
    ///
    /// # Errors
    /// As [`Directory::read_file`].
    pub fn write_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let opened = self.open_regular(name, OFlags::RDWR, Mode::empty());
        opened.map(std::fs::File::from).map_err(|error| self.failed("open", name, error))
    }

    /// Makes a new file.
    ///
    /// # Errors
    /// When something has the name, be it a link that leads nowhere.
    pub fn create_file(&self, name: impl AsRef<Path>) -> Result<std::fs::File, IoError> {
        let name = name.as_ref();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let opened = self.open_regular(name, flags, Mode::from_raw_mode(0o666));
        opened.map(std::fs::File::from).map_err(|error| self.failed("create", name, error))
    }

    /// Reads a whole regular file of at most `most` bytes; `None` when it is not there.
    ///
    /// # Errors
    /// When it is longer, is no regular file, is reached through a link or cannot be read.
    pub fn read(&self, name: impl AsRef<Path>, most: u64) -> Result<Option<Vec<u8>>, IoError> {
        let name = name.as_ref();
        match self.open_regular(name, OFlags::RDONLY, Mode::empty()) {
            Ok(file) => read_at_most(file, most).map(Some).map_err(|error| self.failed("read", name, error)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.failed("open", name, error)),
        }
    }

    /// Replaces a file by one with these bytes, durably and whole: after a crash either the old or
    /// the new one is found. The process's mask decides who may read the new one.
    ///
    /// # Errors
    /// When it cannot be written: the old one then stands. Or when the directory cannot be synced:
    /// the new one stands, but may not after a power cut.
    pub fn replace(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<(), IoError> {
        let name = name.as_ref();
        self.put(name, bytes, None).map_err(|errno| self.failed("write", name, errno.into()))?;
        self.sync(name.parent().unwrap_or(Path::new("")))
    }

    /// As [`Directory::replace`], readable by the owner alone; without the sync of the directory.
    pub(crate) fn put_private(&self, name: &Path, bytes: &[u8]) -> Result<(), Errno> {
        self.put(name, bytes, Some(OWNER_ONLY))
    }

    fn put(&self, name: &Path, bytes: &[u8], mode: Option<Mode>) -> Result<(), Errno> {
        let fresh = with_suffix(name, ".new");
        // What a killed process left. A link of the name is removed itself, never what it leads to.
        match self.unlink(&fresh, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let file = self.resolve(&fresh, flags, mode.unwrap_or(Mode::from_raw_mode(0o666)))?;
        let write = || {
            if let Some(mode) = mode {
                // The process's mask may have taken more.
                fchmod(&file, mode)?;
            }
            let mut file = std::fs::File::from(file);
            file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            fsync(&file)?;
            let (directory, last) = self.parent(&fresh)?;
            renameat(&directory, last, &directory, last_of(name)?)
        };
        write().inspect_err(|_| {
            // The error to report is the first one.
            let _ = self.unlink(&fresh, AtFlags::empty());
        })
    }

    /// Gives a file or directory another name within the directory.
    ///
    /// # Errors
    /// When it is not there, or something has the new name.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), IoError> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.rename_once(from, to).map_err(|errno| self.failed("make", to, errno.into()))
    }

    pub(crate) fn rename_once(&self, from: &Path, to: &Path) -> Result<(), Errno> {
        let (old, new) = (self.parent(from)?, self.parent(to)?);
        match renameat_with(&old.0, old.1, &new.0, new.1, RenameFlags::NOREPLACE) {
            // Network file systems, and kernels before 3.15.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rename_by_link((old.0.as_fd(), old.1), (new.0.as_fd(), new.1))
            }
            renamed => renamed,
        }
    }

    /// Gives a file another name within the directory, in place of what has it.
    ///
    /// # Errors
    /// When it is not there, or the kernel refuses.
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
    /// When it is not there or is a directory.
    pub fn remove(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        self.unlink(name, AtFlags::empty()).map_err(|errno| self.failed("remove", name, errno.into()))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// When it is not there, is no directory or is not empty.
    pub fn remove_directory(&self, name: impl AsRef<Path>) -> Result<(), IoError> {
        let name = name.as_ref();
        self.unlink(name, AtFlags::REMOVEDIR).map_err(|errno| self.failed("remove", name, errno.into()))
    }

    pub(crate) fn unlink(&self, name: &Path, flags: AtFlags) -> Result<(), Errno> {
        let (directory, last) = self.parent(name)?;
        unlinkat(directory, last, flags)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When something has the name.
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
    /// When it is not there, is no directory or is reached through a link.
    pub fn directory(&self, name: impl AsRef<Path>) -> Result<Directory, IoError> {
        let name = name.as_ref();
        let opened = self.resolve(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let descriptor = opened.map_err(|errno| self.failed("open", name, errno.into()))?;
        Ok(Directory { path: self.path.join(name), descriptor })
    }

    /// Returns what has a name; `None` when nothing has it or it cannot be reached.
    #[must_use]
    pub fn kind(&self, name: impl AsRef<Path>) -> Option<EntryKind> {
        let (directory, last) = self.parent(name.as_ref()).ok()?;
        let found = statat(directory, last, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(EntryKind::of(FileType::from_raw_mode(found.st_mode)))
    }

    /// Returns how many names a file has (hard links); `None` when it is not there.
    #[must_use]
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
            // A descriptor of its own: reading moves the offset of the one that is held.
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
                    // The file system does not say.
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

    /// Makes the names in a directory durable: the one of this name within it, itself for an empty
    /// name.
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

    /// Opens a name that must be a regular file's.
    pub(crate) fn open_regular(
        &self,
        name: &Path,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, std::io::Error> {
        regular(self.resolve(name, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)?)
    }

    /// The directory that a name lies in, and the last part of the name.
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
        // Unlike openat(2), openat2(2) refuses rights of what is not to be made.
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

    /// Does what openat2 does, a component at a time.
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

/// Makes a directory and those around it as needed, each with its name made durable; an empty path
/// is the present one.
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
            // Another process that has made it meanwhile may not have synced it yet.
            _ => {}
        }
        let around = directory.parent().unwrap_or(Path::new(""));
        sim::note(|| DurableCall::SyncDirectory(around.to_path_buf()));
        Directory::open(around)?.sync("")?;
        made.push(directory);
    }
    Ok(made)
}

/// Reads a whole regular file that the user or a bundle names, of at most `most` bytes. Links on
/// the way are followed.
///
/// # Errors
/// When it is not there, is longer, is a pipe, a device or a directory, or cannot be read.
pub fn read_regular(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    read_at_most(open_regular(path)?.into(), most)
}

/// Opens a regular file that the user or a bundle names, to read it. Links on the way are followed.
///
/// # Errors
/// When it is not there, is a pipe, a device or a directory, or may not be read.
pub fn open_regular(path: &Path) -> std::io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    regular(fs::open(path, flags, Mode::empty())?).map(std::fs::File::from)
}

/// Passes on a regular file that was opened without waiting: the open of a pipe would wait for its
/// other end. The flag is taken off again, because a ring answers EAGAIN for a file that has it.
pub(crate) fn regular(file: OwnedFd) -> std::io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    if kind == FileType::RegularFile {
        let flags = fcntl_getfl(&file)?;
        fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
        return Ok(file);
    }
    Err(std::io::Error::other(format!("it is {}, expected a regular file", word_of(kind))))
}

fn read_at_most(file: OwnedFd, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!(
            "it is longer than {most} bytes, the most that it can have"
        )));
    }
    Ok(bytes)
}

/// True if nothing has the name.
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

/// Renames without replacing where the kernel cannot: gives a second name, then removes the first.
/// A crash between the two leaves both.
pub(crate) fn rename_by_link(from: Named<'_>, to: Named<'_>) -> Result<(), Errno> {
    match fs::linkat(from.0, from.1, to.0, to.1, AtFlags::empty()) {
        Ok(()) => unlinkat(from.0, from.1, AtFlags::empty()),
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => rename_over_own(from, to),
        Err(errno) => Err(errno),
    }
}

/// The same where files have one name: renames onto an empty file that this call has made.
pub(crate) fn rename_over_own(from: Named<'_>, to: Named<'_>) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(openat(to.0, to.1, flags, Mode::from_raw_mode(0o640))?);
    renameat(from.0, from.1, to.0, to.1).inspect_err(|_| {
        let _ = unlinkat(to.0, to.1, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests;
