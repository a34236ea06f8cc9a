//! The kinds of files at a path, in the words of messages.

use rustix::fs::{self, FileType};
use std::path::Path;

/// Returns the kind of file at a path, as a message names it; `None` when the path does not exist.
pub fn what_is(path: &Path) -> Option<&'static str> {
    match fs::stat(path) {
        Ok(found) => Some(word_of(FileType::from_raw_mode(found.st_mode))),
        Err(_) => fs::lstat(path).is_ok().then_some("a symbolic link that leads nowhere"),
    }
}

/// Returns the word of messages for a kind of file.
pub fn word_of(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "something else",
    }
}
