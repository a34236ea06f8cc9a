//! The storage under a path: mount, block devices, queue, and the ways of access that work here.
//!
//! [`describe`] answers, for one directory, the questions with which a report opens:
//!
//! - the file system, its disk and the layers between them;
//! - write cache, FUA, scheduler and number of hardware queues;
//! - direct I/O and its alignment; io_uring, or the cure where it does not work.
//!
//! [`notes`] turns the answers into sentences.
//!
//! Mechanism:
//!
//! ```text
//! path -> mount (mountinfo, by mount id) -> device number
//!      -> /sys/dev/block/M:m -> partition -> dm, md, loop, btrfs, overlay -> disk(s)
//!      -> queue of the disk
//! path -> probe file (unlinked at once) -> O_DIRECT write and read, io_uring NOP and read
//! ```
//!
//! Why not the obvious way: each feature is tried, because versions and names do not show if it
//! works. A container may have a new kernel and a seccomp filter that forbids io_uring. tmpfs opens
//! with `O_DIRECT` and has no device. A file system may accept `O_DIRECT` and still read through
//! the page cache. The mount is found by its id. `st_dev` names no mount on btrfs and overlay, and
//! stacked mounts defeat the longest prefix.
//!
//! Limits: Linux only. Parts that the kernel hides are not described: the host under a virtual
//! disk, the server under NFS, the disks of a ZFS pool. A fact that sysfs lacks is `None`,
//! never a default. ZFS before 2.3 accepts `O_DIRECT` and caches outside the page cache, which
//! is not seen here. The probe creates one small file in the directory and unlinks it before
//! using it; nothing else is written.

mod block;
mod direct;
mod loops;
mod mount;
mod notes;
mod queue;
mod ring;
#[cfg(test)]
mod tests;

pub use direct::is_memory_file_system;
pub use loops::{LoopDevice, loop_devices};
pub use notes::notes;
pub use ring::{IoUringSupport, RingPart, RingRefusal, RingSetup};

use crate::kernel::{self, Host};
use crate::roots::{self, Roots};
use direct::ProbeFile;
use plumb_units::Bytes;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Describes the storage under `path`, an existing directory or file. Creates and unlinks a probe
/// file in the directory (or next to the file); `ring` tries io_uring on it.
///
/// # Errors
/// When the path does not exist, or `/proc` does not list its mount. A probe that fails is no
/// error: the description reports it.
pub fn describe(path: &Path, ring: RingProbe) -> Result<DeviceDescription, DeviceError> {
    describe_under(&Roots::real(), path, ring)
}

/// Tries io_uring on a probe file.
pub type RingProbe = fn(&Probed<'_>) -> IoUringSupport;

/// Facts that a probe of io_uring needs.
#[derive(Debug)]
pub struct Probed<'a> {
    /// Limits that the kernel sets for this process.
    pub host: &'a Host,
    /// The probe file through the page cache; `None` if none could be created.
    pub buffered: Option<&'a File>,
    /// The same file opened for direct I/O; `None` where the kernel refused.
    pub direct: Option<&'a File>,
    /// Support of direct I/O for the file. If it works, the block at the offset of
    /// one alignment has been written.
    pub direct_io: &'a DirectIoSupport,
    /// Block device under the file; `None` if there is none or sysfs hides it.
    pub block: Option<&'a BlockDevice>,
}

/// A path that could not be described.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path cannot be resolved.
    #[error("cannot resolve {}: {source}; name a directory that exists", path.display())]
    Resolve {
        /// Path as the caller gave it.
        path: PathBuf,
        /// The kernel's error from the resolution.
        source: io::Error,
    },
    /// The mount table cannot be read.
    #[error("cannot read the mount table {}: {source}; /proc must be mounted", table.display())]
    MountTable {
        /// The file that holds the table.
        table: PathBuf,
        /// The kernel's error from the read.
        source: io::Error,
    },
    /// The file system does not report its type, and no line of the mount table covers the path.
    #[error("no mount in {} holds {}, and statfs failed: {source}", table.display(), path.display())]
    NoMount {
        /// Path of the directory or file, absolute and without links.
        path: PathBuf,
        /// The file that holds the table.
        table: PathBuf,
        /// The kernel's error from stat(2) or statfs(2).
        source: io::Error,
    },
    /// The size of the file system cannot be read.
    #[error("statvfs of {} failed: {source}", path.display())]
    Space {
        /// Path of the directory or file, absolute and without links.
        path: PathBuf,
        /// The kernel's error from statvfs(2).
        source: io::Error,
    },
}

/// The storage under a path, top down.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDescription {
    // Place of the path
    /// The path, absolute and without links.
    pub path: PathBuf,
    /// The mount that holds it.
    pub mount: Mount,
    /// The room in its file system.
    pub space: Space,

    // Layers below
    /// The layers from the file system down to the disks, one line each.
    pub stack: Vec<String>,
    /// The block device; `None` when there is none or sysfs does not show it.
    pub block: Option<BlockDevice>,
    /// Virtual machine, virtual disk, and the evidence.
    pub virtualization: Virtualization,

    // Access
    /// Support of direct I/O in this directory.
    pub direct_io: DirectIoSupport,
    /// Support of io_uring in this process, on a file in this directory.
    pub io_uring: IoUringSupport,
    /// Version of the kernel and its limits for this process.
    pub host: Host,
}

/// A line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Directory on which it is mounted.
    pub mount_point: PathBuf,
    /// The type of the file system: `ext4`, `xfs`, `overlay`.
    pub file_system: String,
    /// The options of the mount, then those of the file system, each once.
    pub options: Vec<String>,
    /// Mounted source: a device file, `server:/export`, or any word.
    pub source: String,
    /// The device number the kernel gives the file system; major 0 is made up.
    pub device: DeviceNumber,
    /// The id of the mount, as `statx` gives it for a file within.
    id: u64,
}

/// The number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Number of the driver; 0 for file systems without a device of their own.
    pub major: u32,
    /// Number of the device within its driver.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The room in a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that an ordinary user may still fill.
    pub free: Bytes,
    /// The size of the file system.
    pub total: Bytes,
    /// The block size of the file system.
    pub block_size: Bytes,
    /// True if the mount is read-only.
    pub read_only: bool,
    /// Id that the file system reports (`f_fsid`): from its UUID on ext4 and btrfs, the number
    /// of its device on xfs.
    pub id: u64,
}

/// A block device and the disk at the bottom of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// The device the file system is on: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// The number of that device; `None` where sysfs does not show it.
    pub number: Option<DeviceNumber>,
    /// The partition number, when the device is one.
    pub partition: Option<u32>,
    /// The disk at the bottom; the first of [`Self::disks`].
    pub disk: String,
    /// All disks at the bottom: several under striping and mirrors.
    pub disks: Vec<String>,
    /// The capacity of the disk.
    pub disk_size: Option<Bytes>,
    /// Vendor that the disk reports: a name, or a number on virtio.
    pub vendor: Option<String>,
    /// Model that the disk reports.
    pub model: Option<String>,
    /// The kernel driver nearest to the disk: `virtio_blk`, `nvme`, `sd`.
    pub driver: Option<String>,
    /// The queue of the disk.
    pub queue: Queue,
    /// The queue of the device that the file system is on, if that is neither the disk nor a
    /// partition of it (dm, md, loop). The file system sees the limits of this queue; scheduler and
    /// hardware queues are those of the disk.
    pub upper_queue: Option<Queue>,
    /// The capacity of that device, under the same condition.
    pub upper_size: Option<Bytes>,
    /// Layers that may answer a request without the disk, a sentence each: a loop device
    /// over the page cache, a cache device, memory, a network. Empty if sysfs shows none:
    /// every request reaches the disk.
    pub caches: Vec<String>,
    /// True if a loop device reaches its file by direct I/O (sysfs
    /// `loop/dio`); `None` for other devices.
    pub loop_direct_io: Option<bool>,
}

/// The request queue of a disk; `None` for each value that sysfs lacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Mode of the write cache, as the kernel sees it.
    pub write_cache: Option<WriteCache>,
    /// True if one write can be forced to the medium without a flush of the whole cache.
    pub fua: Option<bool>,
    /// The scheduler in use: `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// The schedulers to choose from, the one in use among them.
    pub schedulers: Vec<String>,
    /// Requests that the queue holds before a submitter has to wait.
    pub nr_requests: Option<u64>,
    /// The largest request (sysfs `max_sectors_kb`); larger ones are split.
    pub request_size_max: Option<Bytes>,
    /// Most pieces of memory in a request (sysfs `max_segments`).
    pub max_segments: Option<u64>,
    /// Hardware queues (directories in sysfs `mq`).
    pub hardware_queues: Option<usize>,
    /// True if completions can be polled (io_uring `IOPOLL`).
    pub io_poll: Option<bool>,
    /// True if the disk reports that it rotates.
    pub rotational: Option<bool>,
    /// The smallest unit that can be addressed.
    pub logical_block_size: Option<Bytes>,
    /// The smallest unit the disk writes without reading first.
    pub physical_block_size: Option<Bytes>,
    /// The largest discard request; zero: no discard.
    pub discard_max: Option<Bytes>,
    /// The largest write that is never torn (`RWF_ATOMIC`); zero: none.
    pub atomic_write_unit_max: Option<Bytes>,
    /// Bytes that the kernel reads ahead in buffered sequential reads.
    pub read_ahead: Option<Bytes>,
}

/// Mode of a disk's write cache, as the kernel sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// A completed write may be in a volatile cache: durability needs a flush.
    WriteBack,
    /// A completed write is durable: the kernel sends no flush.
    WriteThrough,
}

impl fmt::Display for WriteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WriteCache::WriteBack => "write back",
            WriteCache::WriteThrough => "write through",
        })
    }
}

/// Virtual machine, virtual disk, and the evidence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Virtualization {
    /// The kernel runs under a hypervisor.
    pub machine: bool,
    /// The disk is made by software: a hypervisor's, a loop device, memory.
    pub disk: bool,
    /// The facts that show it, one line each.
    pub evidence: Vec<String>,
}

/// Support of direct I/O, with its alignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectIoSupport {
    /// One block was written and read back with `O_DIRECT`.
    Yes {
        /// Multiple at which a buffer's address must lie, in bytes.
        memory_align: Bytes,
        /// Multiple of which offset and length must be, in bytes.
        offset_align: Bytes,
        /// Source of the two alignments.
        source: AlignmentSource,
    },
    /// It does not reach a device here, or could not be tried.
    No {
        /// The reason, in one line.
        why: String,
    },
}

/// Source of the alignment for direct I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlignmentSource {
    /// The file system, through `statx`; a write and a read confirmed it.
    Statx,
    /// Trial of ever larger alignments.
    Probe,
}

fn describe_under(roots: &Roots, path: &Path, ring: RingProbe) -> Result<DeviceDescription, DeviceError> {
    let path =
        path.canonicalize().map_err(|source| DeviceError::Resolve { path: path.to_owned(), source })?;
    let table = mount::read_table(roots)?;
    let mount = match mount::find(&table, &path, mount::id_of(&path)) {
        Some(mount) => mount.clone(),
        None => mount::unlisted(&path).map_err(|source| {
            let table = mount::table_path(roots);
            DeviceError::NoMount { path: path.clone(), table, source }
        })?,
    };
    let space = space(&path)?;
    let beneath = block::descend(roots, &table, &mount);
    let directory = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    let probe = ProbeFile::create(directory);
    // The direct probe comes first, because it checks that the page cache holds nothing of the
    // file, and the ring reads it through the page cache.
    let direct_io = direct::support(&probe, &mount.file_system);
    let host = kernel::read(roots);
    let probe = probe.as_ref().ok();
    let io_uring = ring(&Probed {
        host: &host,
        buffered: probe.map(|probe| &probe.buffered),
        direct: probe.and_then(ProbeFile::direct),
        direct_io: &direct_io,
        block: beneath.block.as_ref(),
    });
    Ok(DeviceDescription {
        mount,
        space,
        stack: beneath.stack,
        block: beneath.block,
        virtualization: beneath.virtualization,
        direct_io,
        io_uring,
        host,
        path,
    })
}

/// Returns the name of the disk on which files with this `st_dev` are. On tmpfs there is none.
pub fn disk(number: u64) -> Option<String> {
    let number = DeviceNumber { major: rustix::fs::major(number), minor: rustix::fs::minor(number) };
    let block = Roots::real().sys.join(format!("dev/block/{number}")).canonicalize().ok()?;
    let disk = if block.join("partition").exists() { block.parent()? } else { block.as_path() };
    Some(disk.file_name()?.to_str()?.to_string())
}

/// Returns the names of all disks that have a size, without partitions; none without sysfs.
pub fn disks() -> Vec<String> {
    let system = Roots::real().sys.join("block");
    let has_size =
        |name: &String| roots::text(&system.join(name).join("size")).is_some_and(|sectors| sectors != "0");
    roots::names(&system).into_iter().filter(has_size).collect()
}

/// Returns the space of the file system of a path, without a probe file.
///
/// # Errors
/// [`DeviceError::Space`] if statvfs(2) fails.
pub fn space(path: &Path) -> Result<Space, DeviceError> {
    let stat = rustix::fs::statvfs(path)
        .map_err(|errno| DeviceError::Space { path: path.to_owned(), source: errno.into() })?;
    Ok(Space {
        free: Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)),
        total: Bytes(stat.f_blocks.saturating_mul(stat.f_frsize)),
        block_size: Bytes(stat.f_bsize),
        read_only: stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
        id: stat.f_fsid,
    })
}
