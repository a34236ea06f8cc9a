//! Numbers of files by path, so that a trace of requests can name a file in four bytes.
//!
//! A path has one number in this process, however often it is opened; a database has dozens of paths, and those of one on a disk in memory are
//! the same each time. The lock is taken when a file is opened and when a trace is read.

use plumb_events::locked;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// A process that opens more paths than this, one after another, has no use for a trace of them: the rest share a number.
const MOST: usize = 4096;

/// The number of a path.
pub(crate) fn of(path: &Path) -> u32 {
    let mut paths = locked(&PATHS);
    // What was opened last is opened again soon. As bytes: a path that is spelt otherwise has another number, and by components it takes longer
    // than to open the file in memory.
    let found = paths.iter().rposition(|known| known.as_os_str() == path.as_os_str());
    let number = found.unwrap_or_else(|| {
        if paths.len() < MOST {
            paths.push(path.to_path_buf());
        }
        paths.len() - 1
    });
    number as u32
}

/// The path of a file's number.
#[must_use]
pub fn path_of_number(number: u32) -> Option<PathBuf> {
    locked(&PATHS).get(number as usize).cloned()
}
