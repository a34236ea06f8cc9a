//! Files: opened direct or buffered, in the kernel's keeping or in memory.
//!
//! A [`Disk`] decides where files live. `Disk::Kernel` is the real thing. The
//! null device, `Disk::Memory`, keeps them in this process, so that a run
//! costs what the engine costs: what remains is one copy per request.

use crate::IoError;
use crate::sim::{MemoryDisk, MemoryFile};
use rustix::fs::{self, FallocateFlags, Mode, OFlags, RenameFlags, fallocate, fdatasync, fstat, ftruncate};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Whether the page cache is bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// Direct, or an error.
    Required,
    /// Through the page cache.
    Off,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An existing file, to be read only.
    Read,
    /// An existing file, to be read and written.
    Write,
    /// A new file, to be read and written; an error if it exists.
    Create,
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
    /// Opens a file.
    ///
    /// # Errors
    /// When the file is not there (or, for `Create`, is there), may not be
    /// accessed, or direct I/O is required and refused.
    pub fn open(&self, path: &Path, access: Access, direct: DirectIo) -> Result<File, IoError> {
        let backing = match self {
            Disk::Kernel => Backing::Kernel(open_kernel(path, access, direct)?),
            Disk::Memory(disk) => Backing::Memory(
                disk.open(path, access == Access::Create)
                    .map_err(|errno| IoError::operation(verb(access), path, errno))?,
            ),
        };
        Ok(File { path: path.to_path_buf(), backing, direct, counters: FileCounters::default() })
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
            Disk::Kernel => fs::renameat_with(fs::CWD, from, fs::CWD, to, RenameFlags::NOREPLACE),
            Disk::Memory(disk) => disk.rename(from, to),
        }
        .map_err(|errno| IoError::operation("make", to, errno))
    }

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// When the device reports a failed write.
    pub fn sync_directory(&self, path: &Path) -> Result<(), IoError> {
        match self {
            Disk::Kernel => fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                .and_then(fs::fsync)
                .map_err(|errno| IoError::operation("sync", path, errno)),
            Disk::Memory(_) => Ok(()),
        }
    }
}

fn verb(access: Access) -> &'static str {
    if access == Access::Create { "create" } else { "open" }
}

fn open_kernel(path: &Path, access: Access, direct: DirectIo) -> Result<OwnedFd, IoError> {
    let mut flags = OFlags::CLOEXEC
        | match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
    if direct == DirectIo::Required {
        flags |= OFlags::DIRECT;
    }
    fs::open(path, flags, Mode::from_raw_mode(0o640)).map_err(|errno| {
        // open(2) with O_CREAT may leave a new, empty file behind when O_DIRECT is refused.
        if errno == Errno::INVAL && direct == DirectIo::Required {
            if access == Access::Create {
                let _ = fs::unlink(path);
            }
            let why = "the file system refuses O_DIRECT".to_string();
            return IoError::DirectUnsupported { path: path.to_path_buf(), why };
        }
        IoError::operation(verb(access), path, errno)
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
    backing: Backing,
    direct: DirectIo,
    counters: FileCounters,
}

impl File {
    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
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

    /// Cuts the file to `bytes`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn truncate(&self, bytes: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => ftruncate(fd, bytes),
            Backing::Memory(file) => {
                file.truncate(bytes);
                Ok(())
            }
        }
        .map_err(|errno| IoError::operation("truncate", &self.path, errno))
    }

    /// Makes the file `bytes` long and takes the space for it, which reads as zeros
    /// and is not written. Where the file system cannot, the file is only made as long.
    ///
    /// # Errors
    /// When there is not so much space, or the kernel refuses.
    pub fn allocate(&self, bytes: u64) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => match fallocate(fd, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => ftruncate(fd, bytes),
                allocated => allocated,
            },
            Backing::Memory(file) => file.allocate(bytes),
        }
        .map_err(|errno| IoError::operation("take the space for", &self.path, errno))
    }

    /// Makes what was written durable (fdatasync).
    ///
    /// # Errors
    /// When the device reports a failed write. Never retry: the kernel may have
    /// marked the lost pages clean (Rebello et al., USENIX ATC 2020).
    pub fn sync_data(&self) -> Result<(), IoError> {
        match &self.backing {
            Backing::Kernel(fd) => fdatasync(fd),
            Backing::Memory(_) => Ok(()),
        }
        .map_err(|errno| IoError::operation("sync", &self.path, errno))
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
            Backing::Memory(file) => file.write(from, offset),
        }
    }
}
