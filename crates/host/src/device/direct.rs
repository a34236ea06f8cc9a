//! Tests direct I/O in a directory, and finds its alignment.
//!
//! The probe creates a file without a name (`O_TMPFILE`), so that a signal or kill leaves none. It
//! opens it a second time with `O_DIRECT`. File systems without such files, as NFS, get one with a
//! name, which is unlinked. The probe writes and reads one block in memory that is aligned exactly
//! as claimed and no better. The claim is that of
//! `statx` (kernel 6.1 and later, not every file system); without one, growing alignments are
//! tried. At the end the page cache must hold nothing of the file: otherwise the file system
//! accepts the flag and reads buffered.
//!
//! Memory file systems are rejected by name: since kernel 6.6 tmpfs opens with `O_DIRECT`, and a
//! run there would measure memory.

use super::{AlignmentSource, DirectIoSupport};
use crate::readings;
use plumb_units::Bytes;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// File systems that keep files in memory.
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// The alignments tried, in bytes: from a sector to the largest page of known machines.
const ALIGNMENTS: [usize; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];

/// True if file systems of this type keep files in memory, on no device.
pub fn is_memory_file_system(file_system: &str) -> bool {
    MEMORY_FILE_SYSTEMS.contains(&file_system)
}

/// A file without a name in the directory under test, opened both ways.
#[derive(Debug)]
pub(super) struct ProbeFile {
    /// The file opened to read and write through the page cache.
    pub buffered: File,
    /// The file opened with `O_DIRECT`, or the kernel's error.
    direct: io::Result<File>,
}

impl ProbeFile {
    /// Returns the file opened for direct I/O; `None` where the kernel refused.
    pub(super) fn direct(&self) -> Option<&File> {
        self.direct.as_ref().ok()
    }
}

impl ProbeFile {
    /// Creates the file and opens it twice. A name contains this process's number, so that no other
    /// file is touched.
    pub(super) fn create(directory: &Path) -> io::Result<ProbeFile> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        if let Ok(buffered) = rustix::fs::open(directory, flags | OFlags::TMPFILE, mode) {
            let path = format!("/proc/self/fd/{}", buffered.as_raw_fd());
            let direct = rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty());
            let buffered = File::from(buffered);
            // Other errors are of /proc, not of the file system.
            if matches!(direct, Ok(_) | Err(Errno::INVAL)) {
                return Ok(ProbeFile { buffered, direct: direct.map(File::from).map_err(io::Error::from) });
            }
        }
        let serial = CREATED.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".plumb-probe-{}-{serial}", std::process::id()));
        let buffered = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, mode)?;
        // Not created with O_DIRECT, because a refusal would leave the name behind.
        let direct = rustix::fs::open(&path, flags | OFlags::DIRECT, Mode::empty());
        rustix::fs::unlink(&path)?;
        Ok(ProbeFile {
            buffered: File::from(buffered),
            direct: direct.map(File::from).map_err(io::Error::from),
        })
    }
}

/// Tries direct I/O on the probe file.
pub(super) fn support(probe: &io::Result<ProbeFile>, file_system: &str) -> DirectIoSupport {
    if is_memory_file_system(file_system) {
        let why = format!("{file_system} keeps files in memory: there is no device to reach");
        return DirectIoSupport::No { why };
    }
    let result = match probe {
        Err(error) => Err(format!("not tried: no file can be created here: {error}")),
        Ok(ProbeFile { direct: Err(error), .. }) => {
            Err(format!("{file_system} refuses to open with O_DIRECT: {error}"))
        }
        Ok(ProbeFile { direct: Ok(file), .. }) => {
            try_alignments(file, file_system).and_then(|found| uncached(file, file_system, found))
        }
    };
    result.unwrap_or_else(|why| DirectIoSupport::No { why })
}

fn try_alignments(file: &File, file_system: &str) -> Result<DirectIoSupport, String> {
    match claimed_alignment(file) {
        Some((0, _) | (_, 0)) => {
            return Err(format!("{file_system} opens with O_DIRECT, and statx says it has no effect"));
        }
        Some((memory, offset)) if transfer(file, memory, offset).is_ok() => {
            return Ok(yes(memory, offset, AlignmentSource::Statx));
        }
        // A claim that fails is treated as none.
        _ => {}
    }
    let mut last_error = io::Error::from(io::ErrorKind::Unsupported);
    for offset in ALIGNMENTS {
        for memory in ALIGNMENTS.into_iter().filter(|memory| *memory <= offset) {
            match transfer(file, memory, offset) {
                Ok(()) => return Ok(yes(memory, offset, AlignmentSource::Probe)),
                Err(error) => last_error = error,
            }
        }
    }
    Err(format!("{file_system} opens with O_DIRECT, but a transfer fails: {last_error}"))
}

fn yes(memory: usize, offset: usize, source: AlignmentSource) -> DirectIoSupport {
    DirectIoSupport::Yes { memory_align: Bytes(memory as u64), offset_align: Bytes(offset as u64), source }
}

/// Returns the alignments of memory and of offsets that the file system claims. Zero: no direct I/O
/// on this file. `None`: it claims none.
fn claimed_alignment(file: &File) -> Option<(usize, usize)> {
    let answer = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let claimed = answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    claimed.then_some((answer.stx_dio_mem_align as usize, answer.stx_dio_offset_align as usize))
}

/// Writes and reads back one block of `offset` bytes at that offset, in memory aligned to
/// `memory` bytes and no better.
fn transfer(file: &File, memory: usize, offset: usize) -> io::Result<()> {
    let mut store = vec![0u8; 3 * memory + offset];
    let start = store.as_ptr().align_offset(2 * memory) + memory;
    let block = store.get_mut(start..start + offset).ok_or(io::ErrorKind::InvalidInput)?;
    let pattern = |index: usize| (index % 251) as u8 ^ 0xA5;
    for (index, byte) in block.iter_mut().enumerate() {
        *byte = pattern(index);
    }
    let written = rustix::io::pwrite(file, block, offset as u64)?;
    block.fill(0);
    let read = rustix::io::pread(file, &mut *block, offset as u64)?;
    let same = block.iter().enumerate().all(|(index, byte)| *byte == pattern(index));
    if written == offset && read == offset && same {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "the block read is not the block written"))
    }
}

/// Returns `found` unless the page cache holds pages of the file.
fn uncached(file: &File, file_system: &str, found: DirectIoSupport) -> Result<DirectIoSupport, String> {
    let length = file.metadata().map(|metadata| Bytes(metadata.len()));
    match length.and_then(|length| readings::residency(file.as_fd(), length)) {
        Ok(residency) if residency.resident_pages > 0 => {
            Err(format!("{file_system} opens with O_DIRECT and then reads through the page cache"))
        }
        _ => Ok(found),
    }
}
