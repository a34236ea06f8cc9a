//! A descriptor of any process, from `/proc/PID/fd` and `fdinfo`.

use plumb_host::kernel::status_field;
use plumb_units::path_text;
use rustix::fs::OFlags;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Kind of a descriptor's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A file of a file system.
    Regular,
    Disk,
    /// A socket, pipe, terminal or other thing without a disk.
    Other,
    Unknown,
}

/// A descriptor as /proc shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Raw {
    /// Path as text, with ` (deleted)` if it has none any more.
    pub path: String,
    /// The kernel's number of the device with the file, or of the disk itself.
    pub device: u32,
    pub inode: u64,
    /// Bytes of a regular file.
    pub size: Option<u64>,
    pub kind: FileKind,
    pub flags: OFlags,
    /// Position of the next read or write; none if /proc does not show it.
    pub position: Option<u64>,
}

/// Reads a descriptor; none if its process has ended or closed it.
pub fn read(proc: &Path, pid: u32, number: i32) -> Option<Raw> {
    let directory = proc.join(pid.to_string());
    let link = directory.join("fd").join(number.to_string());
    let path = fs::read_link(&link).ok()?;
    let found = fs::metadata(&link).ok()?;
    let info = fs::read_to_string(directory.join("fdinfo").join(number.to_string())).unwrap_or_default();
    let flags = status_field(&info, "flags").and_then(|flags| u32::from_str_radix(flags, 8).ok());
    let kind = match found.mode() & 0o170_000 {
        0o100_000 => FileKind::Regular,
        0o060_000 => FileKind::Disk,
        _ => FileKind::Other,
    };
    Some(Raw {
        path: path_text(&path),
        device: kernel_device(if kind == FileKind::Disk { found.rdev() } else { found.dev() }),
        inode: found.ino(),
        size: Some(found.len()).filter(|_| kind == FileKind::Regular),
        kind,
        flags: OFlags::from_bits_retain(flags.unwrap_or(0)),
        position: status_field(&info, "pos").and_then(|position| position.parse().ok()),
    })
}

/// Converts the number of a device from that of stat(2) to that of tracepoints.
pub fn kernel_device(device: u64) -> u32 {
    rustix::fs::major(device) << 20 | rustix::fs::minor(device) & 0xf_ffff
}
