//! Numbers of files by path, so that a trace of requests can name a file in four bytes.
//!
//! A path has one number in this process, however often it is opened. A database has dozens of
//! paths; on a disk in memory they are the same each time. The lock is taken when a file is opened
//! and when a trace is read.

use plumb_events::locked;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// Most paths with numbers of their own; all later ones share the last. A process that opens more
/// paths has no use for a trace.
const MOST: usize = 4096;

/// Returns the number of a path.
pub(crate) fn of(path: &Path) -> u32 {
    let mut paths = locked(&PATHS);
    // Searches from the end, because the last opened path is the likeliest. Compares
    // bytes: comparing components takes longer than opening a file in memory. A path spelt
    // in two ways has two numbers.
    let found = paths.iter().rposition(|known| known.as_os_str() == path.as_os_str());
    let number = found.unwrap_or_else(|| {
        if paths.len() < MOST {
            paths.push(path.to_path_buf());
        }
        paths.len() - 1
    });
    number as u32
}

/// Returns the path of a file's number; `None` for a number not given out.
pub fn path_of_number(number: u32) -> Option<PathBuf> {
    locked(&PATHS).get(number as usize).cloned()
}
