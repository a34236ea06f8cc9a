//! Regular files that the user or a bundle names, opened as no other kind.
//!
//! Why: opening a pipe waits for its other end, and reading a device or an endless file never ends.
//! Either may have the name that a user or a bundle gives.

use crate::kind::word_of;
use rustix::fs::{self, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Reads a whole regular file of at most `most` bytes. Links on the way are followed.
///
/// # Errors
/// When it does not exist, is longer, is a pipe, a device or a directory, or cannot be read.
pub fn read_regular(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    read_at_most(open_regular(path)?.into(), most)
}

/// Opens a regular file for reading. Links on the way are followed.
///
/// # Errors
/// When it does not exist, is a pipe, a device or a directory, or may not be read.
pub fn open_regular(path: &Path) -> std::io::Result<std::fs::File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    regular(fs::open(path, flags, Mode::empty())?).map(std::fs::File::from)
}

/// Returns the file if it is a regular one. The caller opened it with O_NONBLOCK, because opening
/// a pipe would wait for its other end. The flag is cleared here, because a ring answers EAGAIN
/// for a file that has it.
///
/// # Errors
/// When it is of another kind, which the error names.
pub fn regular(file: OwnedFd) -> std::io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    if kind == FileType::RegularFile {
        let flags = fcntl_getfl(&file)?;
        fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
        return Ok(file);
    }
    Err(std::io::Error::other(format!("it is {}, expected a regular file", word_of(kind))))
}

/// Reads an open file of at most `most` bytes.
///
/// # Errors
/// When it is longer or cannot be read.
pub fn read_at_most(file: OwnedFd, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!(
            "it is longer than {most} bytes, the most that it can have"
        )));
    }
    Ok(bytes)
}
