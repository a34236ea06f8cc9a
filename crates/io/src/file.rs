//! Files: opened direct or buffered, in the file system or in memory.
//!
//! A [`Disk`] decides where files live. `Disk::Kernel` is the file system. `Disk::Held` is the same
//! for a database whose directory is held: paths below it are resolved from its descriptor
//! ([`Directory`]). The null device, `Disk::Memory`, keeps files in this process: a run then costs
//! what the engine costs, and one copy per request.
//!
//! A write can be made durable in three places, of which only a measurement shows the cheapest:
//! - in the file ([`Durability`], an open flag);
//! - in the request ([`crate::Operation::WriteDurable`], [`crate::Operation::WriteAndSync`],
//!   [`crate::Operation::WriteAndSyncAll`]);
//! - by a separate call ([`File::sync_data`], [`File::sync_all`]).
//!
//! A file that only one process may have open is locked ([`File::lock`]) by flock(2), so that the
//! lock ends with the process.

use crate::directory::{self, Directory, EntryKind};
use crate::sim::{self, DurableCall, MemoryDisk, MemoryFile};
use crate::{IoError, file_number};
use plumb_host::rights;
use plumb_units::counters;
use rustix::fs::{
    self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, RenameFlags, fallocate, fdatasync, fstat,
    fsync, ftruncate,
};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Number of attempts to take a lock, a pause apart. After a process is killed, its rings hold its
/// files open until the kernel has closed them, some milliseconds later.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The most bytes of a file that is read whole: a control file has one line for each extent.
const SMALL_MOST: u64 = 1 << 30;

/// Page cache use of a file; records print `direct` or `buffered`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DirectIo {
    /// Bypasses the page cache; opening fails where the file system cannot.
    #[serde(rename = "direct")]
    Required,
    /// Reads and writes through the page cache.
    #[serde(rename = "buffered")]
    Off,
}

/// Access for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, to be read only.
    Read,
    /// An existing file, to be read and written.
    Write,
    /// A new file, to be read and written; an error if it exists.
    Create,
}

/// Extent of a sync: bytes or all metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// The bytes, and the metadata needed to read them back (fdatasync).
    Data,
    /// The bytes and all metadata of the file (fsync).
    All,
}

/// Access that a lock leaves to other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Others may hold a shared lock, to read.
    Shared,
    /// Others may hold no lock.
    Exclusive,
}

/// Point at which a write to a file is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the file has been synced.
    OnSync,
    /// When the write returns, with the metadata needed to read it back (`O_DSYNC`).
    Data,
    /// When the write returns, with all metadata of the file (`O_SYNC`).
    All,
}

impl Durability {
    /// Uses the C constants, because rustix's `OFlags::DSYNC` has the bits of `O_SYNC`.
    fn flags(self) -> OFlags {
        let bits = match self {
            Durability::OnSync => 0,
            Durability::Data => libc::O_DSYNC,
            Durability::All => libc::O_SYNC,
        };
        OFlags::from_bits_retain(bits.cast_unsigned())
    }
}

/// Space that a call of [`File::allocate`] obtained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// The file has blocks of its own.
    Reserved,
    /// The file has its length alone: a full disk shows only when the file is written.
    Lengthened,
}

/// Place in which files are opened.
#[derive(Debug, Clone)]
pub enum Disk {
    /// The file system, by the paths as given.
    Kernel,
    /// The file system; a path below this directory's is resolved from its descriptor
    /// and follows no symbolic link.
    Held(Arc<Directory>),
    /// In the memory of this process: the null device.
    Memory(Arc<MemoryDisk>),
}

impl Disk {
    /// Opens a file whose writes are durable once it has been synced.
    ///
    /// # Errors
    /// When the file does not exist (or, for `Create`, exists) or may not be accessed, or the file
    /// system refuses the direct I/O that is required.
    pub fn open(&self, path: &Path, mode: OpenMode, direct: DirectIo) -> Result<File, IoError> {
        self.open_durable(path, mode, direct, Durability::OnSync)
    }

    /// Opens a file whose writes are durable at the point that `durability` names.
    ///
    /// # Errors
    /// The errors that [`Disk::open`] returns.
    pub fn open_durable(
        &self,
        path: &Path,
        mode: OpenMode,
        direct: DirectIo,
        durability: Durability,
    ) -> Result<File, IoError> {
        let backing = match self {
            Disk::Memory(disk) => Backing::Memory(
                disk.open(path, mode == OpenMode::Create)
                    .map_err(|errno| IoError::operation(verb(mode), path, errno))?,
            ),
            _ => Backing::Kernel(self.open_kernel(path, mode, direct, durability)?),
        };
        let counters = FileCounters::default();
        let number = file_number::of(path);
        Ok(File { path: path.to_path_buf(), number, backing, direct, durability, counters })
    }

    /// True for the null device and for a disk that can lose power.
    pub fn is_memory(&self) -> bool {
        matches!(self, Disk::Memory(_))
    }

    /// Returns the held directory that a path lies below, and the name in it.
    pub fn held<'a>(&'a self, path: &'a Path) -> Option<(&'a Directory, &'a Path)> {
        let Disk::Held(directory) = self else { return None };
        path.strip_prefix(directory.path()).ok().map(|name| (&**directory, name))
    }

    fn open_kernel(
        &self,
        path: &Path,
        mode: OpenMode,
        direct: DirectIo,
        durability: Durability,
    ) -> Result<OwnedFd, IoError> {
        let flags = open_flags(mode, direct, durability);
        let rights = Mode::from_raw_mode(0o640);
        let open = |flags| match self.held(path) {
            Some((directory, name)) => directory.open_regular(name, flags, rights),
            None => fs::open(path, flags | OFlags::NONBLOCK | OFlags::NOCTTY, rights)
                .map_err(std::io::Error::from)
                .and_then(plumb_host::regular::regular),
        };
        open(flags).map_err(|error| {
            let is_refused = error.raw_os_error() == Some(libc::EINVAL) && direct == DirectIo::Required;
            if !is_refused {
                return IoError::operation(verb(mode), path, error);
            }
            if mode == OpenMode::Create {
                // open(2) with O_CREAT may leave a new, empty file behind when O_DIRECT is refused.
                let _ = self.remove(path);
            } else if let Err(error) = open(flags.difference(OFlags::DIRECT)) {
                // The kernel answers the same for a pipe or a device on any file system.
                return IoError::operation(verb(mode), path, error);
            }
            let why = "the file system refuses O_DIRECT".to_string();
            IoError::DirectUnsupported { path: path.to_path_buf(), why }
        })
    }

    /// Removes a file by its path.
    ///
    /// # Errors
    /// When it does not exist or may not be removed.
    pub fn remove(&self, path: &Path) -> Result<(), IoError> {
        match (self, self.held(path)) {
            (Disk::Memory(disk), _) => disk.remove(path),
            (_, Some((directory, name))) => directory.unlink(name, AtFlags::empty()),
            _ => fs::unlink(path),
        }
        .map_err(|errno| IoError::operation("remove", path, errno))
    }

    /// Removes an empty directory. A disk in memory has none: nothing is done.
    ///
    /// # Errors
    /// When it does not exist, or is not empty.
    pub fn remove_directory(&self, path: &Path) -> Result<(), IoError> {
        match (self, self.held(path)) {
            (Disk::Memory(_), _) => Ok(()),
            // The name of the held directory is an entry of its parent, which is not held.
            (_, Some((directory, name))) if !name.as_os_str().is_empty() => {
                directory.unlink(name, AtFlags::REMOVEDIR)
            }
            _ => fs::rmdir(path),
        }
        .map_err(|errno| IoError::operation("remove", path, errno))
    }

    /// Creates a directory and its missing parents, each with a durable name. Returns those that
    /// were created, parents first; a disk in memory has none.
    ///
    /// # Errors
    /// When one cannot be created, or its parent cannot be synced.
    pub fn make_directory(&self, path: &Path) -> Result<Vec<PathBuf>, IoError> {
        match (self, self.held(path)) {
            (Disk::Memory(_), _) => Ok(Vec::new()),
            (_, Some((directory, name))) => {
                if name.as_os_str().is_empty() || directory.kind(name) == Some(EntryKind::Directory) {
                    return Ok(Vec::new());
                }
                directory.make_directory(name)?;
                directory.sync(name.parent().unwrap_or(Path::new("")))?;
                Ok(vec![path.to_path_buf()])
            }
            _ => directory::make_durably(path),
        }
    }

    /// Renames a file within its file system.
    ///
    /// # Errors
    /// When it does not exist, or the new name is taken.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match (self, self.held(from).zip(self.held(to))) {
            (Disk::Memory(disk), _) => disk.rename(from, to),
            (_, Some(((directory, from), (_, to)))) => directory.rename_once(from, to),
            _ => match fs::renameat_with(fs::CWD, from, fs::CWD, to, RenameFlags::NOREPLACE) {
                // Network file systems, and kernels before 3.15.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    directory::rename_by_link((fs::CWD, from.as_os_str()), (fs::CWD, to.as_os_str()))
                }
                renamed => renamed,
            },
        }
        .map_err(|errno| IoError::operation("make", to, errno))
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// When the device reports a failed write.
    pub fn sync_directory(&self, path: &Path) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncDirectory(path.to_path_buf()));
        match (self, self.held(path)) {
            (Disk::Memory(disk), _) => disk.sync_directory(path),
            (_, Some((directory, name))) => directory.sync_once(name),
            // A relative path of one component has an empty parent.
            _ if path.as_os_str().is_empty() => return self.sync_directory(Path::new(".")),
            _ => fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .and_then(fs::fsync),
        }
        .map_err(|errno| IoError::operation("sync", path, errno))
    }

    /// True if the name is taken; below a held directory a link counts as itself.
    pub fn exists(&self, path: &Path) -> bool {
        match (self, self.held(path)) {
            (Disk::Memory(disk), _) => disk.exists(path),
            (_, Some((directory, name))) => name.as_os_str().is_empty() || directory.kind(name).is_some(),
            _ => path.exists(),
        }
    }

    /// Reads all of a small regular file; `None` when it does not exist.
    ///
    /// # Errors
    /// When it cannot be read, is longer than a gigabyte, or is no regular file.
    pub fn read_small(&self, path: &Path) -> Result<Option<Vec<u8>>, IoError> {
        let read = match (self, self.held(path)) {
            (Disk::Memory(disk), _) => read_from_memory(disk, path),
            (_, Some((directory, name))) => return directory.read(name, SMALL_MOST),
            _ => plumb_host::regular::read_regular(path, SMALL_MOST),
        };
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if directory::is_missing(&error) => Ok(None),
            Err(error) => Err(IoError::operation("read", path, error)),
        }
    }

    /// Reads the first bytes of a regular file, fewer where it is shorter.
    ///
    /// # Errors
    /// When it does not exist, or cannot be read.
    pub fn read_head(&self, path: &Path, bytes: usize) -> Result<Vec<u8>, IoError> {
        let file = self.open(path, OpenMode::Read, DirectIo::Off)?;
        let mut head = vec![0; bytes];
        let read = file.read_once(&mut head, 0).map_err(|errno| IoError::operation("read", path, errno))?;
        head.truncate(read);
        Ok(head)
    }

    /// Draws a number that is unique with near certainty: from the kernel, or from the seed of a
    /// disk that can lose power.
    pub fn random_id(&self) -> u128 {
        let drawn = if let Disk::Memory(disk) = self { disk.draw() } else { None };
        drawn.unwrap_or_else(random_id)
    }

    /// Replaces a small file durably and atomically: after a crash either the old or the new
    /// bytes are found. Only its owner may read it. A disk in memory keeps such a file only
    /// if it can lose power.
    ///
    /// # Errors
    /// When it cannot be written: the old file is unchanged. When the directory cannot be synced:
    /// the new file is in place, but a power cut may undo the rename.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let around = path.parent().unwrap_or(Path::new(""));
        let failed = |errno: Errno| IoError::operation("write", path, errno);
        match (self, self.held(path)) {
            (Disk::Memory(disk), _) => {
                let mut beside = path.as_os_str().to_os_string();
                beside.push(crate::FRESH);
                disk.replace(Path::new(&beside), path, bytes).map_err(failed)?;
                return self.sync_directory(path.parent().unwrap_or(Path::new(".")));
            }
            (_, Some((directory, name))) => directory.put_private(name, bytes).map_err(failed)?,
            _ => {
                let name = path.file_name().map(Path::new).ok_or_else(|| failed(Errno::INVAL))?;
                Directory::open(around)?.put_private(name, bytes).map_err(failed)?;
            }
        }
        sim::note(|| DurableCall::Replace(path.to_path_buf()));
        self.sync_directory(around)
    }
}

impl Disk {
    /// Replaces a small file in a held directory as [`Disk::replace`] does, and keeps a reserve
    /// file next to it for the next time. A replacement that finds the file system full removes the
    /// reserve and tries once more. So a command that frees space can run on a full disk.
    ///
    /// # Errors
    /// The errors that [`Disk::replace`] returns.
    pub fn replace_with_reserve(&self, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
        let Some((directory, name)) = self.held(path) else { return self.replace(path, bytes) };
        let reserve = Reserve { directory, name: directory::with_suffix(name, RESERVE) };
        match self.replace(path, bytes) {
            Err(error) if error.is_full() && directory.remove(&reserve.name).is_ok() => {
                self.replace(path, bytes)?;
            }
            replaced => replaced?,
        }
        reserve.keep(bytes.len() as u64);
        Ok(())
    }
}

/// Suffix that the name of a reserve adds to its file's name.
pub const RESERVE: &str = ".reserve";
const RESERVE_LEAST: u64 = 64 << 10;

struct Reserve<'a> {
    directory: &'a Directory,
    name: PathBuf,
}

impl Reserve<'_> {
    /// Creates the reserve, or a longer one, where there is room. On a full disk it does nothing.
    fn keep(&self, file_bytes: u64) {
        let needed = RESERVE_LEAST.max(2 * file_bytes);
        let found = self.directory.read_file(&self.name).ok();
        if found.as_ref().and_then(|file| file.metadata().ok()).is_some_and(|found| found.len() >= file_bytes)
        {
            return;
        }
        if found.is_some() {
            let _ = self.directory.remove(&self.name);
        }
        let Ok(file) = self.directory.create_file(&self.name) else { return };
        if fallocate(&file, FallocateFlags::empty(), 0, needed).is_err() {
            let _ = self.directory.remove(&self.name);
        }
    }
}

fn read_from_memory(disk: &MemoryDisk, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = disk.open(path, false)?;
    let mut bytes = vec![0; file.length() as usize];
    let read = file.read(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Draws 128 bits from the kernel's random numbers: unique with near certainty.
///
/// # Panics
/// When the kernel has no random numbers: once the machine has started, it always has.
pub fn random_id() -> u128 {
    let mut bytes = [0; 16];
    // getrandom(2) delivers up to 256 bytes whole.
    let count = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    assert_eq!(count, Ok(bytes.len()));
    u128::from_le_bytes(bytes)
}

fn verb(mode: OpenMode) -> &'static str {
    if mode == OpenMode::Create { "create" } else { "open" }
}

fn open_flags(mode: OpenMode, direct: DirectIo, durability: Durability) -> OFlags {
    let access = match mode {
        OpenMode::Read => OFlags::RDONLY,
        OpenMode::Write => OFlags::RDWR,
        OpenMode::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
    };
    let direct = if direct == DirectIo::Required { OFlags::DIRECT } else { OFlags::empty() };
    OFlags::CLOEXEC | durability.flags() | access | direct
}

/// Number of size classes: up to 2 KiB, 4 KiB and so on up to 1 MiB, and above.
pub const SIZE_CLASSES: usize = 11;

/// Returns the largest request of a size class, bytes; `None` for the last class.
pub const fn class_bytes(class: usize) -> Option<u64> {
    if class + 1 < SIZE_CLASSES { Some(2048 << class) } else { None }
}

/// Returns the size class of a request.
const fn class_of(bytes: u64) -> usize {
    let doublings = u64::BITS - (bytes.saturating_sub(1) >> 11).leading_zeros();
    if (doublings as usize) < SIZE_CLASSES { doublings as usize } else { SIZE_CLASSES - 1 }
}

/// Requests, with their bytes and service time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// Number of completed requests, in this direction and size class.
    pub requests: u64,
    /// Bytes that these requests moved.
    pub bytes: u64,
    /// Nanoseconds of service time, all requests added up.
    pub nanos: u64,
}

counters!(Moves { requests, bytes, nanos });

/// Requests, bytes and service time of one file since it was opened, by direction and size.
#[derive(Debug, Default)]
pub struct FileCounters {
    reads: [MoveCounters; SIZE_CLASSES],
    writes: [MoveCounters; SIZE_CLASSES],
}

#[derive(Debug, Default)]
struct MoveCounters {
    requests: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
}

impl MoveCounters {
    fn get(&self) -> Moves {
        let [requests, bytes, nanos] =
            [&self.requests, &self.bytes, &self.nanos].map(|counter| counter.load(Relaxed));
        Moves { requests, bytes, nanos }
    }
}

impl FileCounters {
    pub(crate) fn add(&self, write: bool, bytes: u64, nanos: u64) {
        let counters = &(if write { &self.writes } else { &self.reads })[class_of(bytes)];
        counters.requests.fetch_add(1, Relaxed);
        counters.bytes.fetch_add(bytes, Relaxed);
        counters.nanos.fetch_add(nanos, Relaxed);
    }

    /// Returns the reads by size class: see [`class_bytes`] for the sizes.
    pub fn reads(&self) -> [Moves; SIZE_CLASSES] {
        self.reads.each_ref().map(MoveCounters::get)
    }

    /// Returns the writes by size class.
    pub fn writes(&self) -> [Moves; SIZE_CLASSES] {
        self.writes.each_ref().map(MoveCounters::get)
    }
}

#[derive(Debug)]
enum Backing {
    Kernel(OwnedFd),
    Memory(Arc<MemoryFile>),
}

/// An open file, on the kernel or in memory.
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
    /// Wraps an open descriptor, for tests of files that are not regular.
    #[cfg(test)]
    pub(crate) fn of_descriptor(path: &Path, descriptor: OwnedFd) -> File {
        File {
            path: path.to_path_buf(),
            number: file_number::of(path),
            backing: Backing::Kernel(descriptor),
            direct: DirectIo::Off,
            durability: Durability::OnSync,
            counters: FileCounters::default(),
        }
    }

    /// Returns the path by which the file was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of its path in traces: see [`path_of_number`](crate::path_of_number).
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the page cache use that it was opened with.
    pub fn direct(&self) -> DirectIo {
        self.direct
    }

    /// Returns the counts of its requests and bytes since it was opened.
    pub fn counters(&self) -> &FileCounters {
        &self.counters
    }

    /// Returns the descriptor, for receipts; `None` on the null device.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.backing {
            Backing::Kernel(fd) => Some(fd.as_fd()),
            Backing::Memory(_) => None,
        }
    }

    /// Returns the file's length in bytes.
    ///
    /// # Errors
    /// When the kernel cannot stat the file.
    pub fn length(&self) -> Result<u64, IoError> {
        match &self.backing {
            Backing::Kernel(fd) => fstat(fd).map(|stat| stat.st_size.unsigned_abs()),
            Backing::Memory(file) => Ok(file.length()),
        }
        .map_err(|errno| IoError::operation("stat", &self.path, errno))
    }

    /// Locks the file until it is closed or unlocked. Waits up to a second, then returns
    /// false: another open file description holds a lock that conflicts. A file in memory
    /// has no other user: true.
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

    /// Releases the lock now, because a ring that registered the file keeps it open for
    /// some milliseconds after the close.
    pub fn unlock(&self) {
        if let Backing::Kernel(fd) = &self.backing {
            // A failed unlock is harmless: the lock ends when the file is closed.
            let _ = fs::flock(fd, FlockOperation::Unlock);
        }
    }

    /// Cuts the file to `bytes`.
    ///
    /// # Errors
    /// When the kernel refuses to shorten it.
    pub fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => ftruncate(fd, bytes),
            Backing::Memory(file) => file.truncate(bytes),
        }
        .map_err(|errno| IoError::operation("truncate", &self.path, errno))
    }

    /// Fails where the file system has less than `more` bytes free. Otherwise the writes would
    /// first fill the disk, and other processes would find it full meanwhile.
    ///
    /// # Errors
    /// When fewer bytes are free.
    pub fn require_room(&self, more: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => require_left(fd, more)
                .map_err(|errno| IoError::operation("allocate space for", &self.path, errno)),
            // A simulated disk fails where it is full.
            Backing::Memory(_) => Ok(()),
        }
    }

    /// Fails where the file system, once this file is truncated, would have less than `bytes` free:
    /// room to write the file again.
    ///
    /// # Errors
    /// When fewer bytes would be free.
    pub fn require_room_again(&self, bytes: u64) -> Result<(), IoError> {
        let Backing::Kernel(fd) = &self.backing else { return Ok(()) };
        let own = fstat(fd).map(|found| found.st_blocks.cast_unsigned().saturating_mul(512));
        own.and_then(|own| require_left(fd, bytes.saturating_sub(own)))
            .map_err(|errno| IoError::operation("allocate space for", &self.path, errno))
    }

    /// Gives the file blocks for `bytes` and at least that length (fallocate). They
    /// read as zeros and were never written: the first write to each also changes
    /// the file's map of blocks.
    ///
    /// Fails at once where the file system has too few free blocks, because ext4 would first
    /// allocate all that are left.
    ///
    /// ext2, NFS before 4.2 and many FUSE file systems cannot allocate: there the file is only
    /// lengthened. Rejected: writing zeros, which would write all bytes of a sort's output twice.
    ///
    /// # Errors
    /// When the space is not free.
    pub fn allocate(&self, bytes: u64) -> Result<Space, IoError> {
        let allocated = match &self.backing {
            Backing::Kernel(fd) => not_there(fd, bytes)
                .and_then(|more| require_left(fd, more))
                .and_then(|()| fallocate(fd, FallocateFlags::empty(), 0, bytes)),
            Backing::Memory(file) => file.allocate(bytes),
        };
        let space = match allocated {
            Ok(()) => Ok(Space::Reserved),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.lengthen(bytes).map(|()| Space::Lengthened),
            Err(errno) => Err(errno),
        };
        space.map_err(|errno| IoError::operation("allocate space for", &self.path, errno))
    }

    fn lengthen(&self, bytes: u64) -> Result<(), Errno> {
        match &self.backing {
            Backing::Kernel(fd) => {
                if not_there(fd, bytes)? > 0 {
                    ftruncate(fd, bytes)
                } else {
                    Ok(())
                }
            }
            Backing::Memory(file) => file.truncate(bytes.max(file.length())),
        }
    }

    /// Makes written bytes durable, with the metadata needed to read them back (fdatasync).
    ///
    /// # Errors
    /// When the device reports a failed write. Never retry: the kernel may have
    /// marked the lost pages clean (Rebello et al., USENIX ATC 2020).
    pub fn sync_data(&self) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncFile(self.path.clone()));
        self.sync_once(Sync::Data).map_err(|errno| IoError::operation("sync", &self.path, errno))
    }

    /// Makes written bytes durable, with all metadata of the file (fsync).
    ///
    /// # Errors
    /// The errors that [`File::sync_data`] returns; never retry this call either.
    pub fn sync_all(&self) -> Result<(), IoError> {
        sim::note(|| DurableCall::SyncFile(self.path.clone()));
        self.sync_once(Sync::All).map_err(|errno| IoError::operation("sync", &self.path, errno))
    }

    pub(crate) fn sync_once(&self, sync: Sync) -> Result<(), Errno> {
        match (&self.backing, sync) {
            (Backing::Kernel(fd), Sync::Data) => fdatasync(fd),
            (Backing::Kernel(fd), Sync::All) => fsync(fd),
            (Backing::Memory(file), _) => file.sync(),
        }
    }

    /// Issues one read system call; it may return fewer bytes than requested.
    pub(crate) fn read_once(&self, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pread(fd, into, offset),
            Backing::Memory(file) => file.read(into, offset),
        }
    }

    /// Issues one write system call; it may take fewer bytes than given.
    pub(crate) fn write_once(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pwrite(fd, from, offset),
            Backing::Memory(file) if self.durability != Durability::OnSync => {
                file.write_durable(from, offset)
            }
            Backing::Memory(file) => file.write(from, offset),
        }
    }

    /// Issues one write system call that returns when the bytes are durable (`RWF_DSYNC`).
    pub(crate) fn write_durable_once(&self, from: &[u8], offset: u64) -> Result<usize, Errno> {
        match &self.backing {
            Backing::Kernel(fd) => pwritev2(fd, &[IoSlice::new(from)], offset, ReadWriteFlags::DSYNC),
            Backing::Memory(file) => file.write_durable(from, offset),
        }
    }
}

/// Returns the bytes that the file lacks to reach this length.
fn not_there(fd: &OwnedFd, bytes: u64) -> Result<u64, Errno> {
    Ok(bytes.saturating_sub(fs::fstat(fd)?.st_size.cast_unsigned()))
}

/// Fails with ENOSPC if the file system has less free. Some FUSE file systems
/// report no sizes: these pass.
fn require_left(fd: &OwnedFd, more: u64) -> Result<(), Errno> {
    let left = fs::fstatvfs(fd)?;
    // Only root may use the blocks that the file system reserves.
    let free = if rights::caller() == 0 { left.f_bfree } else { left.f_bavail };
    let is_known = left.f_blocks > 0;
    match is_known && more > free.saturating_mul(left.f_frsize) {
        true => Err(Errno::NOSPC),
        false => Ok(()),
    }
}
