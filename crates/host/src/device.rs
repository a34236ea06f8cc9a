//! What lies under a path: mount, block devices, queue, and which ways of
//! reaching them really work here.
//!
//! What it does: [`describe`] answers, for one directory, the questions a
//! report has to open with. Which file system, on which disk, behind which
//! layers; is there a write cache, FUA, a scheduler, more than one hardware
//! queue; does direct I/O work and with which alignment; does io_uring work,
//! and if not, what cures it. [`notes`] turns the answers into sentences.
//!
//! How:
//!
//! ```text
//! path -> mount (mountinfo, by mount id) -> device number
//!      -> /sys/dev/block/M:m -> partition -> dm, md, loop, btrfs, overlay -> disk(s)
//!      -> queue of the disk
//! path -> probe file (unlinked at once) -> O_DIRECT write and read, io_uring NOP and read
//! ```
//!
//! Why not the obvious way: capability is tried, not inferred from versions
//! and names. A container may have a new kernel and a seccomp filter that
//! forbids io_uring; tmpfs opens with `O_DIRECT` and has no device; a file
//! system may take `O_DIRECT` and read through the page cache all the same.
//! The mount is found by its id rather than by `st_dev`, which on btrfs and
//! overlay names no mount, or by the longest prefix, which stacked mounts defeat.
//!
//! Limits: Linux only. What the kernel does not show (the host under a virtual
//! disk, the server under NFS, the disks of a ZFS pool) is not described, and
//! a fact that sysfs lacks is `None`, never a default. ZFS before 2.3 accepts
//! `O_DIRECT` and caches outside the page cache: that is not seen here. The
//! probe creates one small file in the directory and unlinks it before using
//! it; nothing else is written.

mod block;
mod direct;
mod mount;
mod notes;
mod queue;
mod ring;
#[cfg(test)]
mod tests;

pub use direct::is_memory_file_system;
pub use notes::notes;
pub use ring::{IoUringSupport, RingPart, RingRefusal, RingSetup};

use crate::kernel::{self, Host};
use crate::roots::Roots;
use direct::ProbeFile;
use plumb_units::Bytes;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Describes what lies under `path`, an existing directory or file. A probe
/// file is made and unlinked in the directory (or beside the file); `ring` tries io_uring on it.
///
/// # Errors
/// When the path does not exist, or `/proc` does not tell its mount. A probe
/// that fails is not an error: it is an answer in the description.
pub fn describe(path: &Path, ring: RingProbe) -> Result<DeviceDescription, DeviceError> {
    describe_under(&Roots::real(), path, ring)
}

/// Tries io_uring on a probe file.
pub type RingProbe = fn(&Probed<'_>) -> IoUringSupport;

/// What a probe of io_uring is given.
#[derive(Debug)]
pub struct Probed<'a> {
    /// What the kernel allows this process.
    pub host: &'a Host,
    /// The probe file through the page cache; `None`: none could be made.
    pub buffered: Option<&'a File>,
    /// The same file past the page cache; `None` where the kernel has not opened it so.
    pub direct: Option<&'a File>,
    /// Whether direct I/O works on it. Where it does, the block at the offset of one alignment
    /// has been written.
    pub direct_io: &'a DirectIoSupport,
    /// The device under it.
    pub block: Option<&'a BlockDevice>,
}

/// Why a path could not be described.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path cannot be resolved.
    #[error("cannot resolve {}: {source}; name a directory that exists", path.display())]
    Resolve {
        /// The path as given.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The mount table cannot be read.
    #[error("cannot read the mount table {}: {source}; /proc must be mounted", table.display())]
    MountTable {
        /// The file that holds the table.
        table: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The file system does not say what it is, and no line of the mount table covers the path.
    #[error("no mount in {} holds {}, and statfs failed: {source}", table.display(), path.display())]
    NoMount {
        /// The resolved path.
        path: PathBuf,
        /// The file that holds the table.
        table: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The size of the file system cannot be read.
    #[error("statvfs of {} failed: {source}", path.display())]
    Space {
        /// The resolved path.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
}

/// What lies under a path.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDescription {
    // What holds the path.
    /// The path, absolute and without links.
    pub path: PathBuf,
    /// The mount that holds it.
    pub mount: Mount,
    /// The room in its file system.
    pub space: Space,

    // What is beneath.
    /// The layers from the file system down to the disks, one line each.
    pub stack: Vec<String>,
    /// The block device; `None` when there is none or sysfs does not show it.
    pub block: Option<BlockDevice>,
    /// Whether machine and disk are virtual, and how that is known.
    pub virtualization: Virtualization,

    // How it can be reached.
    /// Whether direct I/O works in this directory.
    pub direct_io: DirectIoSupport,
    /// Whether io_uring works in this process, on a file in this directory.
    pub io_uring: IoUringSupport,
    /// What the kernel is and allows this process.
    pub host: Host,
}

/// A line of the mount table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The type of the file system: `ext4`, `xfs`, `overlay`.
    pub file_system: String,
    /// The options of the mount, then those of the file system, each once.
    pub options: Vec<String>,
    /// What is mounted: a device file, `server:/export`, or any word.
    pub source: String,
    /// The device number the kernel gives the file system; major 0 is made up.
    pub device: DeviceNumber,
    /// The id of the mount, as `statx` gives it for a file within.
    id: u64,
}

/// The number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceNumber {
    /// Which driver; 0 for file systems without a device of their own.
    pub major: u32,
    /// Which device of the driver.
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
    /// What an ordinary user may still fill.
    pub free: Bytes,
    /// The size of the file system.
    pub total: Bytes,
    /// The block size of the file system.
    pub block_size: Bytes,
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// What the file system calls itself (`f_fsid`): from its UUID on ext4 and btrfs,
    /// the number of its device on xfs.
    pub id: u64,
}

/// A block device and the disk at the bottom of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// The device the file system is on: `vda`, `nvme0n1p2`, `dm-0`.
    pub name: String,
    /// The number of that device, where sysfs tells it.
    pub number: Option<DeviceNumber>,
    /// The partition number, when the device is one.
    pub partition: Option<u32>,
    /// The disk at the bottom; the first of [`Self::disks`].
    pub disk: String,
    /// All disks at the bottom: several under striping and mirrors.
    pub disks: Vec<String>,
    /// The capacity of the disk.
    pub disk_size: Option<Bytes>,
    /// Who made the disk, as it says: a name, or a number on virtio.
    pub vendor: Option<String>,
    /// The model of the disk, as it says.
    pub model: Option<String>,
    /// The kernel driver nearest to the disk: `virtio_blk`, `nvme`, `sd`.
    pub driver: Option<String>,
    /// The queue of the disk.
    pub queue: Queue,
    /// The queue of the device the file system is on, when that is neither the
    /// disk nor a partition of it (dm, md, loop): its limits are what the file
    /// system sees, while scheduler and hardware queues are those of the disk.
    pub upper_queue: Option<Queue>,
    /// The capacity of the device that the file system is on, under the same condition.
    pub upper_size: Option<Bytes>,
    /// Layers that may answer a request without the disk, a sentence each: a loop device over the
    /// page cache, a cache on another device, memory, a network. Empty where every request reaches
    /// the disk as far as sysfs tells.
    pub caches: Vec<String>,
    /// Whether a loop device reaches its file by direct I/O (sysfs `loop/dio`); `None` for other devices.
    pub loop_direct_io: Option<bool>,
}

/// The request queue of a disk; `None` where sysfs does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Whether a completed write may sit in a cache that a power cut empties.
    pub write_cache: Option<WriteCache>,
    /// Whether one write can be forced to the medium without a flush of all.
    pub fua: Option<bool>,
    /// The scheduler in use: `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// The schedulers to choose from, the one in use among them.
    pub schedulers: Vec<String>,
    /// Requests the queue holds before a submitter has to wait.
    pub nr_requests: Option<u64>,
    /// The largest request (sysfs `max_sectors_kb`); larger ones are split.
    pub request_size_max: Option<Bytes>,
    /// Pieces of memory in a request at most (sysfs `max_segments`).
    pub max_segments: Option<u64>,
    /// Hardware queues (directories in sysfs `mq`).
    pub hardware_queues: Option<usize>,
    /// Whether completions can be polled (io_uring `IOPOLL`).
    pub io_poll: Option<bool>,
    /// Whether the disk says it rotates.
    pub rotational: Option<bool>,
    /// The smallest unit that can be addressed.
    pub logical_block_size: Option<Bytes>,
    /// The smallest unit the disk writes without reading first.
    pub physical_block_size: Option<Bytes>,
    /// The largest discard request; zero: no discard.
    pub discard_max: Option<Bytes>,
    /// The largest write that is never torn (`RWF_ATOMIC`); zero: none.
    pub atomic_write_unit_max: Option<Bytes>,
    /// How far the kernel reads ahead in buffered sequential reads.
    pub read_ahead: Option<Bytes>,
}

/// What the kernel takes the disk's write cache to be.
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

/// Whether machine and disk are virtual.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Virtualization {
    /// The kernel runs under a hypervisor.
    pub machine: bool,
    /// The disk is made by software: a hypervisor's, a loop device, memory.
    pub disk: bool,
    /// What says so, one line each.
    pub evidence: Vec<String>,
}

/// Whether direct I/O works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectIoSupport {
    /// One block was written and read back with `O_DIRECT`.
    Yes {
        /// What the address of a buffer must be a multiple of.
        memory_align: Bytes,
        /// What offset and length must be a multiple of.
        offset_align: Bytes,
        /// Who says so.
        source: AlignmentSource,
    },
    /// It does not reach a device here, or could not be tried.
    No {
        /// The reason, in one line.
        why: String,
    },
}

/// Who named the alignment of direct I/O.
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
    // The direct probe comes first: it checks that nothing of the file is in
    // the page cache, and the ring reads it through the page cache.
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

fn space(path: &Path) -> Result<Space, DeviceError> {
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
