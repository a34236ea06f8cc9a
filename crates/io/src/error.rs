//! Errors that name the operation, the place, what was found and the cure.

use plumb_host::limits;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What can go wrong between the engine and a file.
#[derive(Debug, Error)]
pub enum IoError {
    /// A read or write failed.
    #[error("{operation} of {length} bytes at offset {offset} of {} failed: {source}{}", path.display(), hint(source, path))]
    Transfer {
        /// `read` or `write`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Where in the file.
        offset: u64,
        /// Bytes asked for.
        length: usize,
        /// What the kernel said.
        source: io::Error,
    },
    /// A read found the end of the file where there should be data.
    #[error("{} was cut short: it ends at byte {found}, but a read needs bytes {offset} to {}; restore the file from a copy or load its tables again", path.display(), offset + *length as u64)]
    CutShort {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// Bytes asked for.
        length: usize,
        /// Where the file ends.
        found: u64,
    },
    /// A file operation other than a transfer failed.
    #[error("cannot {operation} {}: {source}{}", path.display(), hint(source, path))]
    Operation {
        /// What was tried, as a verb: `open`, `create`, `sync`.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Direct I/O was required and is not to be had.
    #[error("direct I/O was asked for, but {} cannot do it: {why}; put the files on another file system, or set filesystemio_options to asynch or none", path.display())]
    DirectUnsupported {
        /// The file or directory.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// An I/O method was required and is not to be had.
    #[error("io_method={method} does not work here: {why}; {cure}, or set io_method=auto")]
    MethodUnsupported {
        /// The method's name.
        method: &'static str,
        /// Why not.
        why: String,
        /// What would help.
        cure: String,
    },
    /// Threads could not be started.
    #[error("cannot start {what}: {source}; {limit}")]
    Threads {
        /// Which.
        what: String,
        /// What the kernel said.
        source: io::Error,
        /// The limit that was hit, its value and what it must be.
        limit: String,
    },
    /// Memory for buffers could not be had.
    #[error("cannot map {bytes} bytes for I/O buffers: {source}; lower the memory settings or free memory")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What the kernel said.
        source: io::Error,
    },
}

impl IoError {
    /// A file operation that failed just now.
    pub fn operation(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> IoError {
        IoError::Operation { operation, path: path.to_path_buf(), source: noted(source.into(), path) }
    }

    /// True if the file system, or the user's share of it, is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let IoError::Operation { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// One thread that could not be started.
    #[must_use]
    pub fn thread(what: impl Into<String>, source: io::Error) -> IoError {
        IoError::Threads { what: what.into(), source, limit: limits::threads(1) }
    }
}

/// Of a full file system what is free now: before anything that was begun is removed again.
pub(crate) fn noted(source: io::Error, path: &Path) -> io::Error {
    if source.raw_os_error() == Some(libc::ENOSPC) {
        io::Error::new(source.kind(), format!("{source}{}", hint(&source, path)))
    } else {
        source
    }
}

/// The cure for the errors whose cure is known, as the end of a sentence.
fn hint(source: &io::Error, path: &Path) -> String {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    match source.raw_os_error() {
        Some(libc::ENOSPC) => rustix::fs::statvfs(directory).map_or_else(
            |_| hint_of_room(0, (0, 0)),
            |fs| hint_of_room(fs.f_bavail.saturating_mul(fs.f_frsize), (fs.f_favail, fs.f_files)),
        ),
        Some(libc::EINVAL) => "; direct I/O needs offsets, lengths and buffers aligned to the device's block: try filesystemio_options=asynch".to_string(),
        Some(libc::EOPNOTSUPP) => "; the kernel, the file system or the device cannot do it in this way: choose another method or --path".to_string(),
        Some(libc::EACCES | libc::EPERM) => "; give this user the right to read and write there, or choose another --path".to_string(),
        Some(libc::EROFS) => "; the file system is mounted read-only: choose another --path".to_string(),
        Some(libc::ENOENT) => "; it does not exist: check the spelling or create it first".to_string(),
        Some(libc::EMFILE) => {
            let (limit, cure) = limits::files();
            format!("; {limit}: {cure}")
        }
        Some(libc::EFBIG) => hint_of_limits(source),
        Some(libc::ECANCELED) => {
            format!("; the kernel could not start a thread of the ring for it: {}", limits::threads(1))
        }
        Some(libc::ELOOP) => {
            "; a symbolic link is on the way, and none is followed there: put the file itself in its place".to_string()
        }
        Some(libc::EIO) => "; the device reports an error: look at the kernel's log (dmesg)".to_string(),
        _ => String::new(),
    }
}

/// What a full file system lacks: the kernel says the same of a file that has no inode and of one
/// that has no blocks.
fn hint_of_room(free_bytes: u64, (free_inodes, inodes): (u64, u64)) -> String {
    // btrfs has no number of inodes.
    match inodes > 0 && free_inodes == 0 && free_bytes > 0 {
        true => format!(
            "; no inode of {inodes} was free there at that moment, and {free_bytes} bytes were: remove some files or choose another --path"
        ),
        false => {
            format!(
                "; {free_bytes} bytes were free there at that moment: free some space or choose another --path"
            )
        }
    }
}

/// What to do about a file that grew past a limit, as the end of a sentence; empty for other errors.
#[must_use]
pub fn hint_of_limits(source: &io::Error) -> String {
    if source.raw_os_error() != Some(libc::EFBIG) {
        return String::new();
    }
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) => format!(
            "; this process may make no file longer than {limit} bytes (RLIMIT_FSIZE): raise the limit (ulimit -f)"
        ),
        None => "; the file system takes no file of that length: choose another --path".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::hint_of_room;

    #[test]
    fn a_full_file_system_says_what_it_lacks() {
        let of = |free, inodes| hint_of_room(free, inodes);
        assert!(of(56_860_672, (0, 64)).starts_with("; no inode of 64 was free there"));
        for of_space in [of(0, (0, 64)), of(4096, (7, 64)), of(4096, (0, 0))] {
            assert!(of_space.contains("bytes were free there at that moment: free some space"), "{of_space}");
        }
    }
}
