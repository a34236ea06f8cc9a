//! Files: opened direct or buffered, in the kernel's keeping or in memory.
//!
//! A [`Disk`] decides where files live. `Disk::Kernel` is the real thing. The
//! null device, `Disk::Memory`, keeps them in this process, so that a run
//! costs what the engine costs: what remains is one copy per request.
//!
//! A write can be made durable in three places, and which of them is cheapest
//! only a measurement tells: in the file ([`Durability`], an open flag), in the
//! request ([`crate::Operation::WriteDurable`], [`crate::Operation::WriteAndSync`],
//! [`crate::Operation::WriteAndSyncAll`])
//! or by a call of its own ([`File::sync_data`], [`File::sync_all`]).
//!
//! A file that only one process may have open is locked ([`File::lock`]) by flock(2), so the lock ends with the process.

use crate::sim::{self, DurableCall, MemoryDisk, MemoryFile};
use crate::{IoError, file_number};
use rustix::fs::{
    self, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, fallocate, fdatasync, fstat, fsync,
    ftruncate,
};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How long a lock is waited for, and how often it is tried: the kernel takes some milliseconds to close the rings of
/// a process that was killed, and until then they hold its files.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Whether the page cache is bypassed; records say `direct` or `buffered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectIo {
    /// Direct, or an error.
    #[serde(rename = "direct")]
    Required,
    /// Through the page cache.
    #[serde(rename = "buffered")]
    Off,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, to be read only.
    Read,
    /// An existing file, to be read and written.
    Write,
    /// A new file, to be read and written; an error if it exists.
    Create,
}

/// What a sync makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// The bytes, with what is needed to read them back (fdatasync).
    Data,
    /// All that the file system notes of the file, too (fsync).
    All,
}

/// Who else may have a file open while it is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Others that only read it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// When a write to a file is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the file has been synced.
    OnSync,
    /// When the write returns, with what is needed to read it back (`O_DSYNC`).
    Data,
    /// When the write returns, with all that the file system notes of it (`O_SYNC`).
    All,
}

impl Durability {
    /// The C names: rustix's `OFlags::DSYNC` has the bits of `O_SYNC`.
    fn flags(self) -> OFlags {
        let bits = match self {
            Durability::OnSync => 0,
            Durability::Data => libc::O_DSYNC,
            Durability::All => libc::O_SYNC,
        };
        OFlags::from_bits_retain(bits.cast_unsigned())
    }
}

/// Where files live.
#[derive(Debug, Clone)]
pub enum Disk {
    /// In the file system.
    Kernel,
    /// In the memory of this process: the null device.
    Memory(Arc<MemoryDisk>),
}

impl Disk {
    /// Opens a file whose writes are durable once it has been synced.
    ///
    /// # Errors
    /// When the file is not there (or, for `Create`, is there), may not be
    /// accessed, or direct I/O is required and refused.
    pub fn open(&self, path: &Path, mode: OpenMode, direct: DirectIo) -> Result<File, IoError> {
        self.open_durable(path, mode, direct, Durability::OnSync)
    }

    /// Opens a file and says when its writes are durable.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub fn open_durable(
        &self,
        path: &Path,
        mode: OpenMode,
        direct: DirectIo,
        durability: Durability,
    ) -> Result<File, IoError> {
        let backing = match self {
            Disk::Kernel => Backing::Kernel(open_kernel(path, mode, direct, durability)?),
            Disk::Memory(disk) => Backing::Memory(
                disk.open(path, mode == OpenMode::Create)
                    .map_err(|errno| IoError::operation(verb(mode), path, errno))?,
            ),
        };
        let counters = FileCounters::default();
        let number = file_number::of(path);
        Ok(File { path: path.to_path_buf(), number, backing, direct, durability, counters })
    }

    /// Removes a file.
    ///
    /// # Errors
    /// When it is not there or may not be removed.
    pub fn remove(&self, path: &Path) -> Result<(), IoError> {
        match self {
            Disk::Kernel => fs::unlink(path),
            Disk::Memory(disk) => disk.remove(path),
        }
        .map_err(|errno| IoError::operation("remove", path, errno))
    }

    /// Gives a file another name in the same file system.
    ///
    /// # Errors
    /// When it is not there, or something of the new name is.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match self {
            Disk::Kernel => match fs::renameat_with(fs::CWD, from, fs::CWD, to, RenameFlags::NOREPLACE) {
                // Network file systems, and kernels before 3.15.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => rename_by_link(from, to),
                renamed => renamed,
            },
            Disk::Memory(disk) => disk.rename(from, to),
        }
        .map_err(|errno| IoError::operation("make", to, errno))
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// When the device reports a failed write.
    pub fn sync_directory(&self, path: &Path) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncDirectory(path.to_path_buf()));
        match self {
            Disk::Kernel => fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                .and_then(fs::fsync)
                .map_err(|errno| IoError::operation("sync", path, errno)),
            Disk::Memory(disk) => {
                disk.sync_directory(path).map_err(|errno| IoError::operation("sync", path, errno))
            }
        }
    }

    /// Whether something has this name.
    #[must_use]
    pub fn exists(&self, path: &Path) -> bool {
        match self {
            Disk::Kernel => path.exists(),
            Disk::Memory(disk) => disk.exists(path),
        }
    }

    /// All of a small file; `None` when it is not there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_small(&self, path: &Path) -> Result<Option<Vec<u8>>, IoError> {
        let read = match self {
            Disk::Kernel => std::fs::read(path),
            Disk::Memory(disk) => read_from_memory(disk, path),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(IoError::operation("read", path, error)),
        }
    }

    /// A number that nobody has had before: from the kernel, or from the seed of a disk that can lose power.
    #[must_use]
    pub fn random_id(&self) -> u128 {
        let drawn = if let Disk::Memory(disk) = self { disk.draw() } else { None };
        drawn.unwrap_or_else(random_id)
    }

    /// Replaces a small file by another with these bytes, durably and whole: what is found after a crash is the old
    /// one or the new one. It is readable by its owner alone. A disk in memory keeps no such file, unless it can lose
    /// power.
    ///
    /// # Errors
    /// When it cannot be written; the old one then still stands. Or when the directory cannot be synced: the new one
    /// stands, but may not after a power cut.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let mut beside = path.as_os_str().to_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        if let Disk::Memory(disk) = self {
            disk.replace(&beside, path, bytes).map_err(|errno| IoError::operation("write", path, errno))?;
            return self.sync_directory(path.parent().unwrap_or(Path::new(".")));
        }
        write_beside(&beside, bytes).and_then(|()| fs::rename(&beside, path)).map_err(|errno| {
            // The error to report is the first one.
            let _ = fs::unlink(&beside);
            IoError::operation("write", path, errno)
        })?;
        sim::note(|| DurableCall::Replace(path.to_path_buf()));
        self.sync_directory(path.parent().unwrap_or(Path::new(".")))
    }
}

fn read_from_memory(disk: &MemoryDisk, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = disk.open(path, false)?;
    let mut bytes = vec![0; file.length() as usize];
    let read = file.read(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn write_beside(path: &Path, bytes: &[u8]) -> Result<(), Errno> {
    let owner = Mode::RUSR | Mode::WUSR;
    let file = fs::open(path, OFlags::CLOEXEC | OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC, owner)?;
    // What a killed process left may have another mode.
    fs::fchmod(&file, owner)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    fsync(file)
}

/// A number that nobody has had before, from the kernel's random numbers.
///
/// # Panics
/// When the kernel has none: it always has once the machine has started.
#[must_use]
pub fn random_id() -> u128 {
    let mut bytes = [0; 16];
    // Up to 256 bytes come whole.
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(count, Ok(bytes.len()));
    u128::from_le_bytes(bytes)
}

/// A rename that replaces nothing, where the kernel has none: a second name, and then not the first any more. A
/// crash between the two leaves both.
fn rename_by_link(from: &Path, to: &Path) -> Result<(), Errno> {
    match fs::link(from, to) {
        Ok(()) => fs::unlink(from),
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => rename_over_own(from, to),
        Err(errno) => Err(errno),
    }
}

/// The same where files have one name: onto an empty file that this call has made.
fn rename_over_own(from: &Path, to: &Path) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    drop(fs::open(to, flags, Mode::from_raw_mode(0o640))?);
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::unlink(to);
    })
}

fn verb(mode: OpenMode) -> &'static str {
    if mode == OpenMode::Create { "create" } else { "open" }
}

fn open_kernel(
    path: &Path,
    mode: OpenMode,
    direct: DirectIo,
    durability: Durability,
) -> Result<OwnedFd, IoError> {
    let mut flags = OFlags::CLOEXEC
        | durability.flags()
        | match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::RDWR,
            OpenMode::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
    if direct == DirectIo::Required {
        flags |= OFlags::DIRECT;
    }
    fs::open(path, flags, Mode::from_raw_mode(0o640)).map_err(|errno| {
        // open(2) with O_CREAT may leave a new, empty file behind when O_DIRECT is refused.
        if errno == Errno::INVAL && direct == DirectIo::Required {
            if mode == OpenMode::Create {
                let _ = fs::unlink(path);
            }
            let why = "the file system refuses O_DIRECT".to_string();
            return IoError::DirectUnsupported { path: path.to_path_buf(), why };
        }
        IoError::operation(verb(mode), path, errno)
    })
}

/// Requests and bytes of one file, since it was opened.
#[derive(Debug, Default)]
pub struct FileCounters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    read_ns: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
    write_ns: AtomicU64,
}

impl FileCounters {
    pub(crate) fn add(&self, write: bool, bytes: u64, nanos: u64) {
        let (requests, total, time) = if write {
            (&self.writes, &self.write_bytes, &self.write_ns)
        } else {
            (&self.reads, &self.read_bytes, &self.read_ns)
        };
        requests.fetch_add(1, Relaxed);
        total.fetch_add(bytes, Relaxed);
        time.fetch_add(nanos, Relaxed);
    }

    /// Requests, bytes and nanoseconds of service time of the reads.
    #[must_use]
    pub fn reads(&self) -> (u64, u64, u64) {
        (self.reads.load(Relaxed), self.read_bytes.load(Relaxed), self.read_ns.load(Relaxed))
    }

    /// Requests, bytes and nanoseconds of service time of the writes.
    #[must_use]
    pub fn writes(&self) -> (u64, u64, u64) {
        (self.writes.load(Relaxed), self.write_bytes.load(Relaxed), self.write_ns.load(Relaxed))
    }
}

#[derive(Debug)]
enum Backing {
    Kernel(OwnedFd),
    Memory(Arc<MemoryFile>),
}

/// An open file.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    number: u32,
    backing: Backing,
    direct: DirectIo,
    durability: Durability,
    counters: FileCounters,
}

impl File {
    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of its path in traces: see [`path_of_number`](crate::path_of_number).
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether it was opened past the page cache.
    #[must_use]
    pub fn direct(&self) -> DirectIo {
        self.direct
    }

    /// Its requests and bytes so far.
    #[must_use]
    pub fn counters(&self) -> &FileCounters {
        &self.counters
    }

    /// The descriptor, for receipts; `None` on the null device.
    #[must_use]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.backing {
            Backing::Kernel(fd) => Some(fd.as_fd()),
            Backing::Memory(_) => None,
        }
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn length(&self) -> Result<u64, IoError> {
        match &self.backing {
            Backing::Kernel(fd) => fstat(fd).map(|stat| stat.st_size.unsigned_abs()),
            Backing::Memory(file) => Ok(file.length()),
        }
        .map_err(|errno| IoError::operation("stat", &self.path, errno))
    }

    /// Locks the file until it is closed or unlocked; false when another process, or this one by another name, has
    /// it open in a way that does not allow that. A file in memory has no other user.
    ///
    /// # Errors
    /// When the file system cannot lock.
    pub fn lock(&self, lock: Lock) -> Result<bool, IoError> {
        let Backing::Kernel(fd) = &self.backing else { return Ok(true) };
        let operation = match lock {
            Lock::Shared => FlockOperation::NonBlockingLockShared,
            Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        for _ in 0..LOCK_TRIES {
            match fs::flock(fd, operation) {
                Ok(()) => return Ok(true),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(LOCK_PAUSE),
                Err(errno) => return Err(IoError::operation("lock", &self.path, errno)),
            }
        }
        Ok(false)
    }

    /// Ends a lock now: a ring that knows the file keeps it open for some milliseconds more.
    pub fn unlock(&self) {
        if let Backing::Kernel(fd) = &self.backing {
            // It ends with the file at the latest.
            let _ = fs::flock(fd, FlockOperation::Unlock);
        }
    }

    /// Cuts the file to `bytes`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => ftruncate(fd, bytes),
            Backing::Memory(file) => file.truncate(bytes),
        }
        .map_err(|errno| IoError::operation("truncate", &self.path, errno))
    }

    /// Gives the file blocks for `bytes` and at least that length (fallocate). They
    /// read as zeros and were never written: the first write to each also changes
    /// the file's map of blocks.
    ///
    /// # Errors
    /// When the space is not there or the file system cannot allocate ahead.
    pub fn allocate(&self, bytes: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => fallocate(fd, FallocateFlags::empty(), 0, bytes),
            Backing::Memory(file) => file.allocate(bytes),
        }
        .map_err(|errno| IoError::operation("allocate space for", &self.path, errno))
    }

    /// Makes what was written durable, with what is needed to read it back (fdatasync).
    ///
    /// # Errors
    /// When the device reports a failed write. Never retry: the kernel may have
    /// marked the lost pages clean (Rebello et al., USENIX ATC 2020).
    pub fn sync_data(&self) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncFile(self.path.clone()));
        self.sync_once(Sync::Data).map_err(|errno| IoError::operation("sync", &self.path, errno))
    }

    /// Makes what was written durable, with all that the file system notes of it (fsync).
    ///
    /// # Errors
    /// As [`File::sync_data`], and never to be retried either.
    pub fn sync_all(&self) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncFile(self.path.clone()));
        self.sync_once(Sync::All).map_err(|errno| IoError::operation("sync", &self.path, errno))
    }

    /// One fdatasync or fsync.
    pub(crate) fn sync_once(&self, sync: Sync) -> Result<(), Errno> {
        match (&self.backing, sync) {
            (Backing::Kernel(fd), Sync::Data) => fdatasync(fd),
            (Backing::Kernel(fd), Sync::All) => fsync(fd),
            (Backing::Memory(file), _) => file.sync(),
        }
    }

    /// One read system call; fewer bytes than asked for may come.
    pub(crate) fn read_once(&self, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pread(fd, into, offset),
            Backing::Memory(file) => file.read(into, offset),
        }
    }

    /// One write system call; fewer bytes than given may go.
    pub(crate) fn write_once(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pwrite(fd, from, offset),
            Backing::Memory(file) if self.durability != Durability::OnSync => {
                file.write_durable(from, offset)
            }
            Backing::Memory(file) => file.write(from, offset),
        }
    }

    /// One write system call that returns when the bytes are durable (`RWF_DSYNC`).
    pub(crate) fn write_durable_once(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pwritev2(fd, &[IoSlice::new(from)], offset, ReadWriteFlags::DSYNC),
            Backing::Memory(file) => file.write_durable(from, offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_kernel_has_no_such_rename_nothing_is_replaced_either() {
        for rename in [rename_by_link, rename_over_own] {
            let directory = tempfile::tempdir().expect("a directory");
            let [from, to] = ["from", "to"].map(|name| directory.path().join(name));
            std::fs::write(&from, "new").expect("a file");
            std::fs::write(&to, "old").expect("a file");
            assert_eq!(rename(&from, &to), Err(Errno::EXIST));
            assert_eq!(std::fs::read_to_string(&to).expect("there"), "old");
            std::fs::remove_file(&to).expect("removed");
            assert_eq!(rename(&from, &to), Ok(()));
            assert_eq!(std::fs::read_to_string(&to).expect("there"), "new");
            assert!(!from.exists());
            assert!(rename(&from, &to).is_err());
            std::fs::remove_file(&to).expect("removed");
            assert_eq!(rename(&from, &to), Err(Errno::NOENT));
            assert!(!to.exists(), "nothing is left of what failed");
        }
    }
}
