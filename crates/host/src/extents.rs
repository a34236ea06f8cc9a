//! The places of a file's bytes on its disk, as the file system reports them (FIEMAP).
//!
//! ```text
//! file    0 ─────────── 1M ───── 3M            physical: bytes from the start of the block
//! disk    └─ 7,340,032  └─ 90,112              device with the file system
//! ```
//!
//! Limits: ext4, xfs and others with one block device. Bytes without a place of their own are left
//! out: not allocated yet, inline in metadata, compressed. Btrfs reports addresses of its own.

use plumb_units::Bytes;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A run of bytes of a file that lie next to each other on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// Offset in the file of the first byte.
    pub logical: Bytes,
    /// Offset on the block device with the file system, which may be a partition.
    pub physical: Bytes,
    /// Number of bytes that lie together.
    pub length: Bytes,
}

/// Extents that one call returns.
const BATCH: usize = 128;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more_reserved: [u32; 3],
}

/// `struct fiemap` of linux/fiemap.h, with room for a batch.
#[repr(C)]
#[derive(Debug)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

const _: () = assert!(size_of::<RawExtent>() == 56, "the layout of the kernel");
const _: () = assert!(size_of::<Request>() == 32 + 56 * BATCH, "the layout of the kernel");

/// `_IOWR('f', 11, struct fiemap)`: the size in the number is that of the head.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// The last extent of the file.
const LAST: u32 = 0x1;
/// Place unknown, not allocated, encoded, inline in metadata or in the tail of a block.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200 | 0x400;

/// Returns the extents of a file in the order of their offsets, at most about `most`.
///
/// # Errors
/// When the file system has no FIEMAP, as tmpfs, or fails.
pub fn extents(file: BorrowedFd<'_>, most: usize) -> io::Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let batch = read(file, start)?;
        found.extend(batch.iter().filter(|raw| raw.flags & NO_PLACE == 0).map(|raw| FileExtent {
            logical: Bytes(raw.logical),
            physical: Bytes(raw.physical),
            length: Bytes(raw.length),
        }));
        let Some(last) = batch.last() else { return Ok(found) };
        let end = last.logical.saturating_add(last.length);
        // A length of 0 would not end.
        if last.flags & LAST != 0 || found.len() >= most || end <= start {
            return Ok(found);
        }
        start = end;
    }
}

fn read(file: BorrowedFd<'_>, start: u64) -> io::Result<Vec<RawExtent>> {
    let extents = [RawExtent::default(); BATCH];
    let length = u64::MAX - start;
    let mut request =
        Box::new(Request { start, length, flags: 0, mapped: 0, count: BATCH as u32, reserved: 0, extents });
    // SAFETY: the request is a live structure with the layout of the kernel's, which writes at most
    // `count` extents behind the head. The array has room for `count`.
    #[allow(unsafe_code)]
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *request) };
    match result {
        0 => Ok(request.extents[..(request.mapped as usize).min(BATCH)].to_vec()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_on_a_disk_has_places_for_all_of_its_bytes() {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = directory.path().join("file");
        let mut file = std::fs::File::create_new(&path).expect("a file");
        std::io::Write::write_all(&mut file, &vec![7; 1 << 20]).expect("written");
        file.sync_all().expect("on the disk");
        let found = match extents(file.as_fd(), 1000) {
            Ok(found) => found,
            Err(error) => return println!("skipped: no FIEMAP here: {error}"),
        };
        if found.is_empty() {
            return println!("skipped: this file system places no bytes");
        }
        assert_eq!(found[0].logical, Bytes(0));
        // Blocks behind the end may be allocated ahead.
        let within =
            |extent: &FileExtent| (1_u64 << 20).saturating_sub(extent.logical.0).min(extent.length.0);
        assert_eq!(found.iter().map(within).sum::<u64>(), 1 << 20, "{found:?}");
        assert!(found.is_sorted_by_key(|extent| extent.logical), "{found:?}");
    }

    #[test]
    fn a_pipe_has_no_places() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        assert!(extents(reader.as_fd(), 10).is_err());
    }
}
