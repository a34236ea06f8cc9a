//! Errors that name the operation, the place, what was found and the cure.

use plumb_host::kind::what_is;
use plumb_host::limits;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A failure between the engine and a file.
#[derive(Debug, Error)]
pub enum IoError {
    /// A read or write failed.
    #[error("{operation} of {length} bytes at offset {offset} of {} failed: {source}{}", path.display(), hint(source, path))]
    Transfer {
        /// The transfer's verb: `read` or `write`.
        operation: &'static str,
        /// Path by which the file was opened.
        path: PathBuf,
        /// Byte offset at which the transfer began.
        offset: u64,
        /// Bytes that the request asked for.
        length: usize,
        /// The kernel's error, with its cure in the message.
        source: io::Error,
    },
    /// A read found the end of the file where there should be data.
    #[error("{} was cut short: it ends at byte {found}, but a read needs bytes {offset} to {}; restore the file from a copy or load its tables again", path.display(), offset + *length as u64)]
    CutShort {
        /// Path by which the file was opened.
        path: PathBuf,
        /// Byte offset at which the read began.
        offset: u64,
        /// Bytes that the request asked for.
        length: usize,
        /// Byte offset of the file's end.
        found: u64,
    },
    /// A file operation other than a transfer failed.
    #[error("cannot {operation} {}: {source}{}", path.display(), hint(source, path))]
    Operation {
        /// The failed operation as a verb: `open`, `create`, `sync`.
        operation: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// The kernel's error, with the free space where the file system is full.
        source: io::Error,
    },
    /// Direct I/O was required and is not available.
    #[error("direct I/O was asked for, but {} cannot do it: {why}; put the files on another file system, or set filesystemio_options to asynch or none", path.display())]
    DirectUnsupported {
        /// Path of the file or directory.
        path: PathBuf,
        /// The reason, as the end of a sentence.
        why: String,
    },
    /// An I/O method was required and is not available.
    #[error("io_method={method} does not work here: {why}; {cure}, or set io_method=auto")]
    MethodUnsupported {
        /// The method's name as `io_method` takes it.
        method: &'static str,
        /// The reason, as the end of a sentence.
        why: String,
        /// The cure, as the end of a sentence.
        cure: String,
    },
    /// Threads could not be started.
    #[error("cannot start {what}: {source}; {limit}")]
    Threads {
        /// The threads, for the message: their number and their work.
        what: String,
        /// The kernel's error from the failed start.
        source: io::Error,
        /// The limit that was hit, its value and what it must be.
        limit: String,
    },
    /// The kernel has no memory for buffers.
    #[error("cannot map {bytes} bytes for I/O buffers: {source}; lower the memory settings or free memory")]
    Memory {
        /// Bytes that were to be mapped.
        bytes: usize,
        /// The kernel's error from the failed mapping.
        source: io::Error,
    },
}

impl IoError {
    /// Extracts the kernel's error, for a message that names the file itself.
    pub fn into_source(self) -> io::Error {
        match self {
            IoError::Operation { source, .. } => source,
            error => io::Error::other(error),
        }
    }

    /// Returns the error of a file operation that has just failed. The path's file system is asked
    /// for its free space now.
    pub fn operation(operation: &'static str, path: &Path, source: impl Into<io::Error>) -> IoError {
        IoError::Operation { operation, path: path.to_path_buf(), source: noted(source.into(), path) }
    }

    /// True if the file system, or the user's share of it, is full.
    pub fn is_full(&self) -> bool {
        let IoError::Operation { source, .. } = self else { return false };
        is_full(source)
    }

    /// Returns the error of one thread that could not be started.
    pub fn thread(what: impl Into<String>, source: io::Error) -> IoError {
        IoError::Threads { what: what.into(), source, limit: limits::threads(1) }
    }
}

/// Notes the free space of a full file system now, because the caller
/// removes its unfinished files next.
pub(crate) fn noted(source: io::Error, path: &Path) -> io::Error {
    if matches!(source.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) {
        io::Error::new(source.kind(), format!("{source}{}", hint(&source, path)))
    } else {
        source
    }
}

/// Returns the cure of an error as the end of a sentence. A full file system, a limit and the like
/// have one cure, whatever was tried; `otherwise` is the cure for all other errors.
pub fn cure(source: &io::Error, path: &Path, otherwise: &str) -> String {
    match source.raw_os_error() {
        // The message has its hint already: see `noted`.
        None if is_full(source) => String::new(),
        Some(
            libc::ENOSPC
            | libc::EDQUOT
            | libc::EFBIG
            | libc::ENAMETOOLONG
            | libc::EMFILE
            | libc::EROFS
            | libc::EIO,
        ) => hint(source, path),
        Some(libc::ENOENT | libc::ENOTDIR | libc::EEXIST) => {
            format!("{}; {otherwise}", explained(source, path))
        }
        _ => format!("; {otherwise}"),
    }
}

fn is_full(source: &io::Error) -> bool {
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns the known cure of an error as the end of a sentence; empty for an error without one.
fn hint(source: &io::Error, path: &Path) -> String {
    let directory = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    // A relative path of one component has an empty parent.
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    match source.raw_os_error() {
        Some(libc::ENOSPC) => rustix::fs::statvfs(directory).map_or_else(
            |_| hint_of_room(0, (0, 0)),
            |fs| hint_of_room(fs.f_bavail.saturating_mul(fs.f_frsize), (fs.f_favail, fs.f_files)),
        ),
        Some(libc::EDQUOT) => format!("; this user's share of the file system is used up (quota): {MORE_ROOM}"),
        Some(libc::EINVAL) => "; direct I/O needs offsets, lengths and buffers aligned to the device's block: try filesystemio_options=asynch".to_string(),
        Some(libc::EOPNOTSUPP) => "; the kernel, the file system or the device cannot do it in this way: choose another method or directory".to_string(),
        Some(libc::EACCES | libc::EPERM) => "; give this user the right to read and write there, or choose another directory".to_string(),
        Some(libc::EROFS) => "; the file system is mounted read-only: choose a place on another one".to_string(),
        Some(libc::ENOENT) => match explained(source, path) {
            known if known.is_empty() => "; it does not exist: check the spelling or create it first".to_string(),
            known => known,
        },
        Some(libc::ENOTDIR | libc::EEXIST) => explained(source, path),
        Some(libc::ENAMETOOLONG) => {
            "; a name has at most 255 bytes, with what stands behind it until the file is whole: choose a shorter one".to_string()
        }
        Some(libc::EMFILE) => {
            let (limit, cure) = limits::files();
            format!("; {limit}: {cure}")
        }
        Some(libc::EFBIG) => hint_of_limits(),
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

/// Names the component that stops a path: the first that is no directory, or the file that has the
/// path's own name. Empty where there is neither.
fn explained(source: &io::Error, path: &Path) -> String {
    let mut around: Vec<&Path> =
        path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()).collect();
    around.reverse();
    for above in around {
        match what_is(above).filter(|_| !above.is_dir()) {
            Some(found) => return format!("; {} is {found}, expected a directory", above.display()),
            None if above.is_dir() => {}
            None => return format!("; there is no directory {}: make it first", above.display()),
        }
    }
    let expected = match source.raw_os_error() {
        Some(libc::ENOTDIR) => ", expected a directory",
        _ => "",
    };
    what_is(path).map_or(String::new(), |found| format!("; {} is {found}{expected}", path.display()))
}

const MORE_ROOM: &str = "free some space, or choose a place on another file system";

/// Returns the resource that a full file system lacks. The kernel reports ENOSPC both for a lack of
/// inodes and for a lack of blocks.
fn hint_of_room(free_bytes: u64, (free_inodes, inodes): (u64, u64)) -> String {
    // btrfs reports no number of inodes.
    match inodes > 0 && free_inodes == 0 && free_bytes > 0 {
        true => format!(
            "; no inode of {inodes} was free there at that moment, and {free_bytes} bytes were: remove some files, or choose a place on another file system"
        ),
        false => format!("; {free_bytes} bytes were free there at that moment: {MORE_ROOM}"),
    }
}

/// Returns the cure for a file that grew past a limit, as the end of a sentence.
fn hint_of_limits() -> String {
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) => format!(
            "; this process may make no file longer than {limit} bytes (RLIMIT_FSIZE): raise the limit (ulimit -f)"
        ),
        None => "; the file system takes no file of that length: choose a place on another one".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{IoError, cure, hint_of_room};
    use rustix::io::Errno;
    use std::io;
    use std::path::Path;

    #[test]
    fn a_full_file_system_says_what_it_lacks() {
        let of = |free, inodes| hint_of_room(free, inodes);
        assert!(of(56_860_672, (0, 64)).starts_with("; no inode of 64 was free there"));
        for of_space in [of(0, (0, 64)), of(4096, (7, 64)), of(4096, (0, 0))] {
            assert!(of_space.contains("bytes were free there at that moment: free some space"), "{of_space}");
        }
    }

    #[test]
    fn an_error_has_one_cure_whatever_was_tried() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "").expect("a file");
        std::os::unix::fs::symlink("nowhere", at("link")).expect("a link");
        let cure = |errno: Errno, path: &Path| cure(&errno.into(), path, "do this");
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::FBIG, Errno::NAMETOOLONG] {
            let said = cure(errno, &at("new"));
            assert!(said.starts_with("; ") && !said.contains("do this"), "{errno}: {said}");
        }
        let noted: io::Error = super::noted(Errno::NOSPC.into(), &at("new"));
        assert_eq!(super::cure(&noted, &at("new"), "do this"), "", "it says so already");
        assert_eq!(cure(Errno::ACCESS, &at("new")), "; do this");
        let shown = |name: &str| at(name).display().to_string();
        let file = format!("; {} is a file", shown("file"));
        assert_eq!(cure(Errno::EXIST, &at("file")), format!("{file}; do this"));
        for below in ["file/b", "file/b/c"] {
            assert_eq!(cure(Errno::NOTDIR, &at(below)), format!("{file}, expected a directory; do this"));
        }
        let said = IoError::operation("open", &at("link"), Errno::NOENT).to_string();
        assert!(
            said.ends_with(&format!("; {} is a symbolic link that leads nowhere", shown("link"))),
            "{said}"
        );
        let said = IoError::operation("open", &at("none/b"), Errno::NOENT).to_string();
        assert!(
            said.ends_with(&format!("; there is no directory {}: make it first", shown("none"))),
            "{said}"
        );
        let said = IoError::operation("open", &at("none"), Errno::NOENT).to_string();
        assert!(said.ends_with("; it does not exist: check the spelling or create it first"), "{said}");
    }
}
