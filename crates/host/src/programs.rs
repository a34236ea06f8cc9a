//! Programs of the machine, by name. Relative entries of PATH are skipped: the directory in which
//! plumb runs may be a stranger's, and plumb may run as root.

use std::path::PathBuf;

/// Directories of tools that PATH may lack.
const SYSTEM: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Returns the absolute directories of PATH.
#[must_use]
pub fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect()
}

/// Returns the file of a program in PATH or in the system's directories, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    let directories = directories().into_iter().chain(SYSTEM.map(PathBuf::from));
    directories.map(|directory| directory.join(name)).find(|file| file.is_file())
}
