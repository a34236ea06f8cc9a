//! Receipts: evidence that a setting took effect, from outside the code that
//! set it.
//!
//! It reads back the kernel's view of an open file, a process, a thread and a disk. Each
//! reading is a plain value. Counters have a `since` that subtracts an earlier reading, so a
//! run is two readings and a difference.
//!
//! ```text
//! was it direct?          open_flags, residency, ProcessIo against DiskStats
//! did it reach the disk?  ProcessIo (asked for) against DiskStats (done)
//! was it asynchronous?    io_wq_workers: requests that fell back to a worker
//! what did it cost?       CycleCounter
//! did memory hold?        resident_memory, reset_peak
//! ```
//!
//! Why not the obvious way: asking the code that opened the file, or `fcntl`
//! through the same handle type, proves that an intention was recorded.
//! `/proc/self/fdinfo` is what any other process would see of it. Where the
//! kernel refuses an answer the reading is an error or `None`, never zero: a
//! zero would pass for evidence.
//!
//! Limits: Linux only. Counters of a process miss bytes that the kernel writes back after its end;
//! those of a disk include the requests of all processes. The caller times the readings. A reading
//! costs a system call or a small file: take them around a run, not within.

mod cycles;
#[cfg(test)]
mod tests;

pub use cycles::CycleCounter;

use plumb_units::{Bytes, Latest, Nanos, counters};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Pid;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::{fs, io};

/// The unit of sectors in the kernel's statistics and of `st_blocks`,
/// whatever the disk's own block size.
const SECTOR_BYTES: u64 = 512;

/// The flags a file is open with, as the kernel lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFlags {
    /// `O_DIRECT`: past the page cache, where the file system can.
    pub direct: bool,
    /// `O_DSYNC`, which `O_SYNC` includes: each write is durable when it returns.
    pub dsync: bool,
    /// `O_SYNC`: each write is durable with all metadata when it returns.
    pub sync: bool,
    /// `O_APPEND`: each write goes to the end.
    pub append: bool,
    /// All flags as the bits of open(2).
    pub raw: u32,
}

/// Reads the flags of an open file back from `/proc/self/fdinfo`.
///
/// # Errors
/// When `/proc` is not mounted or has no `flags` line.
pub fn open_flags(fd: BorrowedFd<'_>) -> io::Result<OpenFlags> {
    let path = format!("/proc/self/fdinfo/{}", fd.as_raw_fd());
    flags_of(&read_text(&path)?).ok_or_else(|| malformed(&path))
}

/// Parses the flags in the text of a fdinfo file.
pub(crate) fn flags_of(info: &str) -> Option<OpenFlags> {
    u32::from_str_radix(field(info, "flags")?, 8).ok().map(OpenFlags::of_bits)
}

impl OpenFlags {
    /// Returns the flags of these bits of open(2).
    pub fn of_bits(raw: u32) -> OpenFlags {
        // Uses the C constants, because rustix's DSYNC has the bits of O_SYNC.
        let has = |flag: libc::c_int| raw & flag as u32 == flag as u32;
        OpenFlags {
            direct: has(libc::O_DIRECT),
            dsync: has(libc::O_DSYNC),
            sync: has(libc::O_SYNC),
            append: has(libc::O_APPEND),
            raw,
        }
    }

    /// Returns the union of two sets of flags.
    #[must_use]
    pub fn with(self, other: OpenFlags) -> OpenFlags {
        OpenFlags::of_bits(self.raw | other.raw)
    }

    /// True if the named flag is set: `O_DIRECT`, `O_DSYNC`, `O_SYNC` or
    /// `O_APPEND`; `None` for another name.
    pub fn has(&self, name: &str) -> Option<bool> {
        match name {
            "O_DIRECT" => Some(self.direct),
            "O_DSYNC" => Some(self.dsync),
            "O_SYNC" => Some(self.sync),
            "O_APPEND" => Some(self.append),
            _ => None,
        }
    }
}

/// Requests and bytes of this process since it started (`/proc/self/io`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes that read calls asked for, from the page cache or not. Requests
    /// through io_uring are not counted.
    pub rchar: Bytes,
    /// Bytes that write calls passed; without io_uring, too.
    pub wchar: Bytes,
    /// Number of read system calls.
    pub syscr: u64,
    /// Number of write system calls.
    pub syscw: u64,
    /// Bytes this process caused to be fetched from a device.
    pub read_bytes: Bytes,
    /// Bytes that this process caused to be sent to a device: direct writes, and pages that
    /// it dirtied, counted when dirtied.
    pub write_bytes: Bytes,
    /// Part of `write_bytes` that was never sent, because the file was truncated or removed first.
    pub cancelled_write_bytes: Bytes,
}

impl ProcessIo {
    /// Reads the counters of this process, all its threads together.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or the kernel keeps no such counters.
    pub fn read() -> io::Result<ProcessIo> {
        ProcessIo::at("/proc/self/io")
    }

    /// Reads the counters of another process, even of one that has ended and was not waited for.
    /// They include the children that it waited for.
    ///
    /// # Errors
    /// The errors that [`ProcessIo::read`] returns, and when this user may not read them.
    pub fn of(process: Pid) -> io::Result<ProcessIo> {
        ProcessIo::at(&format!("/proc/{}/io", process.as_raw_nonzero()))
    }

    fn at(path: &str) -> io::Result<ProcessIo> {
        let text = read_text(path)?;
        let value = |name| {
            let value = field(&text, name).and_then(|value| value.parse::<u64>().ok());
            value.ok_or_else(|| malformed(path))
        };
        Ok(ProcessIo {
            rchar: Bytes(value("rchar")?),
            wchar: Bytes(value("wchar")?),
            syscr: value("syscr")?,
            syscw: value("syscw")?,
            read_bytes: Bytes(value("read_bytes")?),
            write_bytes: Bytes(value("write_bytes")?),
            cancelled_write_bytes: Bytes(value("cancelled_write_bytes")?),
        })
    }
}

counters!(ProcessIo { rchar, wchar, syscr, syscw, read_bytes, write_bytes, cancelled_write_bytes });

/// Processor time and context switches of this process: all threads together, ended ones included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// CPU time in user and kernel mode, nanoseconds.
    pub cpu_ns: u64,
    /// Switches of a thread that waited.
    pub voluntary_switches: u64,
    /// Switches of a thread whose processor was taken away.
    pub involuntary_switches: u64,
}

impl ProcessUse {
    /// Reads getrusage(2), because `/proc/self/status` has the switches of one thread only.
    ///
    /// # Errors
    /// When the kernel refuses the call.
    pub fn read() -> io::Result<ProcessUse> {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
        #[allow(unsafe_code)]
        // SAFETY: the pointer is to memory for the structure that the call fills.
        let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        #[allow(unsafe_code)]
        // SAFETY: the call has filled it, as its result says.
        let usage = unsafe { usage.assume_init() };
        let nanos = |time: libc::timeval| {
            time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1_000
        };
        Ok(ProcessUse {
            cpu_ns: nanos(usage.ru_utime) + nanos(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw.unsigned_abs(),
            involuntary_switches: usage.ru_nivcsw.unsigned_abs(),
        })
    }
}

counters!(ProcessUse { cpu_ns, voluntary_switches, involuntary_switches });

/// Completed requests of one kind on a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Number of requests that were completed.
    pub completed: u64,
    /// Requests that were merged into another before it was sent.
    pub merged: u64,
    /// Bytes transferred, or covered by discards.
    pub bytes: Bytes,
    /// The time from submission to completion, all requests added up.
    pub time: Nanos,
}

/// Flushes that a disk has completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlushCounts {
    /// Flushes completed; one may serve several waiting syncs.
    pub completed: u64,
    /// The time from submission to completion, all flushes added up.
    pub time: Nanos,
}

/// Counters of a disk or partition since it appeared, for all processes. Times have
/// the resolution of a millisecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Completed reads, with their bytes.
    pub reads: RequestCounts,
    /// Completed writes, with their bytes.
    pub writes: RequestCounts,
    /// Requests in flight at the time of the reading.
    pub in_flight: Latest,
    /// Time during which at least one request was in flight.
    pub io_time: Nanos,
    /// That time weighted with the number of requests in flight.
    pub weighted_io_time: Nanos,
    /// Discards; `None` before kernel 4.18.
    pub discards: Option<RequestCounts>,
    /// Flushes; `None` before kernel 5.5. A partition's are counted at its disk.
    pub flushes: Option<FlushCounts>,
}

impl DiskStats {
    /// Reads the statistics of a disk or partition by its kernel name, `vda`,
    /// from sysfs or else from `/proc/diskstats`.
    ///
    /// # Errors
    /// `NotFound` when neither knows the device.
    pub fn read(device: &str) -> io::Result<DiskStats> {
        // sysfs writes `!` for the slashes in a device's name.
        let path = format!("/sys/class/block/{}/stat", device.replace('/', "!"));
        if let Ok(text) = read_text(&path) {
            return DiskStats::parse(&text).ok_or_else(|| malformed(&path));
        }
        let path = "/proc/diskstats";
        let text = read_text(path)?;
        let line = text.lines().find_map(|line| {
            // The line has `major minor name`, then the fields of sysfs.
            let (_, rest) = line.split_once(&format!(" {device} "))?;
            Some(rest)
        });
        let unknown = || {
            let message = format!("no statistics of the device {device} in sysfs or {path}");
            io::Error::new(io::ErrorKind::NotFound, message)
        };
        DiskStats::parse(line.ok_or_else(unknown)?).ok_or_else(|| malformed(path))
    }

    /// Parses the fields in the order of the kernel's `Documentation/block/stat.rst`.
    fn parse(text: &str) -> Option<DiskStats> {
        let numbers: Vec<u64> =
            text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let at = |index: usize| numbers.get(index).copied();
        let requests = |first: usize| {
            Some(RequestCounts {
                completed: at(first)?,
                merged: at(first + 1)?,
                bytes: Bytes(at(first + 2)?.saturating_mul(SECTOR_BYTES)),
                time: millis(at(first + 3)?),
            })
        };
        Some(DiskStats {
            reads: requests(0)?,
            writes: requests(4)?,
            in_flight: Latest(at(8)?),
            io_time: millis(at(9)?),
            weighted_io_time: millis(at(10)?),
            discards: requests(11),
            flushes: at(15)
                .zip(at(16))
                .map(|(completed, time)| FlushCounts { completed, time: millis(time) }),
        })
    }
}

counters!(RequestCounts { completed, merged, bytes, time: elapsed });
counters!(FlushCounts { completed, time: elapsed });
counters!(DiskStats {
    reads,
    writes,
    in_flight,
    io_time: elapsed,
    weighted_io_time: elapsed,
    discards,
    flushes
});

/// Pages of a file in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Pages in the page cache.
    pub resident_pages: u64,
    /// Resident pages not yet written; `None` where only mincore answers. tmpfs has no device to
    /// write to and reports none.
    pub dirty_pages: Option<u64>,
    /// Pages of the requested range.
    pub total_pages: u64,
    /// System call that counted them.
    pub source: ResidencySource,
}

/// System call that counted the resident pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResidencySource {
    /// The system call `cachestat` (kernel 6.5 and later).
    Cachestat,
    /// A mapping of the file and `mincore`.
    Mincore,
}

/// Counts the pages of the first `length` bytes that the page cache holds.
/// The range may pass the end of the file; pages there are not resident.
///
/// # Errors
/// When neither call works. `PermissionDenied` when the file is neither this user's nor open for
/// writing, because mincore would then report every page as resident.
pub fn residency(fd: BorrowedFd<'_>, length: Bytes) -> io::Result<Residency> {
    let total_pages = length.0.div_ceil(rustix::param::page_size() as u64);
    if total_pages == 0 {
        let source = ResidencySource::Cachestat;
        return Ok(Residency { resident_pages: 0, dirty_pages: Some(0), total_pages, source });
    }
    match cachestat(fd, length) {
        Ok(counts) => Ok(Residency {
            resident_pages: counts.cached,
            dirty_pages: Some(counts.dirty),
            total_pages,
            source: ResidencySource::Cachestat,
        }),
        // A seccomp filter older than the call answers EPERM instead of ENOSYS.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(Residency {
            resident_pages: mincore(fd, length.0)?,
            dirty_pages: None,
            total_pages,
            source: ResidencySource::Mincore,
        }),
        Err(errno) => Err(errno.into()),
    }
}

/// Magic numbers of file systems, from statfs(2).
const OVERLAYFS: u64 = 0x794c_7630;
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const ZFS: u64 = 0x2fc1_2fc1;
const FUSE: u64 = 0x6573_5546;

/// Returns the reason why a file's page counts do not show the path of its
/// requests; `None` where they do.
pub fn pages_untold(fd: BorrowedFd<'_>) -> Option<&'static str> {
    untold(rustix::fs::fstatfs(fd).ok()?.f_type as u64)
}

fn untold(file_system: u64) -> Option<&'static str> {
    match file_system {
        FUSE => {
            Some("FUSE may drop the pages of a file when it is opened, and this run opens it to count them")
        }
        OVERLAYFS => Some("on overlayfs its pages belong to the file below, which the kernel does not name"),
        ZFS => Some("ZFS keeps its blocks in a cache of its own"),
        TMPFS | RAMFS => Some("on tmpfs a file is its pages in memory, and no device is below them"),
        _ => None,
    }
}

/// `struct cachestat_range` of the kernel.
#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat` of the kernel, in pages.
#[repr(C)]
#[derive(Default)]
struct CachestatCounts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The number of the system call, the same on every architecture but alpha.
const SYS_CACHESTAT: libc::c_long = 451;

fn cachestat(fd: BorrowedFd<'_>, length: Bytes) -> Result<CachestatCounts, Errno> {
    let range = CachestatRange { offset: 0, length: length.0 };
    let mut counts = CachestatCounts::default();
    #[allow(unsafe_code)]
    // SAFETY: both pointers are to live structures with the layout the call
    // takes, and the kernel keeps neither.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, fd.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if result == 0 {
        return Ok(counts);
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

/// Bytes mapped at a time: the answer has a byte a page, 64 KiB.
const MINCORE_WINDOW_BYTES: u64 = 256 * Bytes::M;

fn mincore(fd: BorrowedFd<'_>, length: u64) -> io::Result<u64> {
    if !mincore_tells_the_truth(fd)? {
        let message = "the page cache of a file is shown to its owner and its writers only";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    // Pages past the end of the file cannot be resident.
    let length = length.min(rustix::fs::fstat(fd)?.st_size as u64);
    let mut resident_pages = 0;
    let mut offset = 0;
    while offset < length {
        let window = MINCORE_WINDOW_BYTES.min(length - offset);
        resident_pages += mincore_window(fd, offset, window as usize)?;
        offset += window;
    }
    Ok(resident_pages)
}

/// Since kernel 5.2 mincore reports all pages as resident to a caller that neither owns the file
/// nor may write to it.
fn mincore_tells_the_truth(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let user = rustix::process::geteuid();
    let writable = rustix::fs::fcntl_getfl(fd)?.intersects(OFlags::RDWR | OFlags::WRONLY);
    Ok(writable || user.is_root() || rustix::fs::fstat(fd)?.st_uid == user.as_raw())
}

#[allow(unsafe_code)]
fn mincore_window(fd: BorrowedFd<'_>, offset: u64, length: usize) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    let mut pages = vec![0u8; length.div_ceil(rustix::param::page_size())];
    // SAFETY: a new mapping at an address of the kernel's choice touches no
    // other; its memory is never read, so a file that shrinks does no harm.
    let address =
        unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, fd, offset)? };
    // SAFETY: the range is the mapping just made, and the answer has a byte
    // for each of its pages.
    let result = unsafe { libc::mincore(address, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping was made above and nothing refers to it.
    unsafe { munmap(address, length)? };
    if result != 0 {
        return Err(error);
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64)
}

/// Writes the file's dirty pages, asks the kernel to drop all pages, and returns those that stay:
/// mapped ones, locked ones and those without another copy, as on tmpfs.
///
/// # Errors
/// When the sync fails, or the page cache cannot be read. The file must be a regular one:
/// a device has no length.
pub fn drop_cache(fd: BorrowedFd<'_>) -> io::Result<Residency> {
    rustix::fs::fdatasync(fd)?;
    rustix::fs::fadvise(fd, 0, None, rustix::fs::Advice::DontNeed)?;
    residency(fd, Bytes(rustix::fs::fstat(fd)?.st_size as u64))
}

/// Counts the kernel threads that serve this process's io_uring requests. Each stands for a request
/// that could not be issued without blocking, now or a short while ago.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn io_wq_workers() -> io::Result<usize> {
    let mut workers = 0;
    for task in fs::read_dir("/proc/self/task")? {
        // A thread that ends between listing and reading is not counted.
        let name = fs::read(task?.path().join("comm")).unwrap_or_default();
        workers += usize::from(name.starts_with(b"iou-wrk"));
    }
    Ok(workers)
}

/// Physical memory of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResidentMemory {
    /// Present size. The kernel counts in batches by thread, so this lags by some pages.
    pub rss: Bytes,
    /// Largest size since the start of the process or [`reset_peak`].
    pub peak: Bytes,
}

/// Reads `VmRSS` and `VmHWM` of this process.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn resident_memory() -> io::Result<ResidentMemory> {
    let path = "/proc/self/status";
    let text = read_text(path)?;
    let value = |name| {
        let kib = field(&text, name).and_then(|value| value.strip_suffix(" kB"));
        let kib = kib.and_then(|kib| kib.trim().parse::<u64>().ok());
        kib.map(|kib| Bytes(kib * Bytes::K)).ok_or_else(|| malformed(path))
    };
    Ok(ResidentMemory { rss: value("VmRSS")?, peak: value("VmHWM")? })
}

/// Returns the bytes of an address range that are mapped for reading and writing.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn mapped(range: &Range<usize>) -> io::Result<Bytes> {
    let mut within = 0;
    for line in read_text("/proc/self/maps")?.lines() {
        let mut fields = line.split_whitespace();
        let ends = fields.next().and_then(|span| span.split_once('-'));
        let Some((start, end)) = ends else { continue };
        let address = |text| usize::from_str_radix(text, 16).unwrap_or(0);
        if fields.next().is_some_and(|flags| flags.starts_with("rw")) {
            within += address(end).min(range.end).saturating_sub(address(start).max(range.start));
        }
    }
    Ok(Bytes(within as u64))
}

/// Sets the peak of [`resident_memory`] to the present size. False where the kernel refuses: the
/// peak then covers the whole life of the process.
#[must_use = "when this fails the peak covers more than the run"]
pub fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn read_text(path: &str) -> io::Result<String> {
    fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {path}: {error}")))
}

fn malformed(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not in the form expected"))
}

/// Returns the value of a `name: value` line.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

const NANOS_PER_MILLI: u64 = 1_000_000;

fn millis(millis: u64) -> Nanos {
    Nanos(millis.saturating_mul(NANOS_PER_MILLI))
}

/// The kernel prints milliseconds in 32 bits, which wrap after 49 days.
fn elapsed(later: Nanos, earlier: Nanos) -> Nanos {
    let [later, earlier] = [later, earlier].map(|time| (time.0 / NANOS_PER_MILLI) as u32);
    millis(u64::from(later.wrapping_sub(earlier)))
}
