//! Directories named by a user's argument, and the program's own directories made in them.
//!
//! Each error names the argument to change, so the argument travels with the path.

use crate::error::cure;
use plumb_host::kind::what_is;
use plumb_host::owner::Owner;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A directory that an argument names and that is unusable.
#[derive(Debug, thiserror::Error)]
pub enum NamedDirectoryError {
    /// It is missing, of another kind, or out of reach.
    #[error("{argument} {}: {why}", path.display())]
    Refused {
        /// The argument that named it.
        argument: &'static str,
        /// Path of the refused directory, as given.
        path: PathBuf,
        /// The reason, and the cure.
        why: String,
    },
    /// The program's own directory cannot be made in it.
    #[error(
        "{argument} {}: cannot make the directory {name} in it: {source}{}",
        path.display(),
        cure(source, &path.join(name), "give this user the right to write there, or name another directory")
    )]
    Make {
        /// The argument that named the directory around it.
        argument: &'static str,
        /// Path of the directory around it.
        path: PathBuf,
        /// The name of the one to be made.
        name: String,
        /// The kernel's error from mkdir(2) or from the lock.
        source: io::Error,
    },
}

/// Returns the directory's absolute path without links, because commands run from other working
/// directories may read it later.
///
/// # Errors
/// When it does not exist, is no directory, or cannot be resolved.
pub fn require(argument: &'static str, path: &Path) -> Result<PathBuf, NamedDirectoryError> {
    let refuse = |why: &str| {
        let why = why.to_string();
        Err(NamedDirectoryError::Refused { argument, path: path.to_path_buf(), why })
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => path.canonicalize().or_else(|error| refuse(&error.to_string())),
        Ok(_) => {
            let found = what_is(path).unwrap_or("no directory");
            refuse(&format!("it is {found}, expected a directory; name the directory it is in"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => match what_is(path) {
            Some(link) => refuse(&format!("it is {link}, expected a directory; name another one")),
            None => refuse("there is no such directory; make it first, or name another one"),
        },
        Err(error) => {
            refuse(&format!("{error}{}", cure(&error, path, "name a directory that this user may write to")))
        }
    }
}

/// Creates a directory of the program's own; returns false if it exists.
///
/// # Errors
/// When it cannot be created and does not exist.
pub fn make(argument: &'static str, path: &Path, directory: &Path) -> Result<bool, NamedDirectoryError> {
    match fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(false),
        Err(source) => Err(cannot_make(argument, path, directory, source)),
    }
}

/// Marks a directory as this process's. If that fails, removes the
/// directory, unless it has contents.
///
/// # Errors
/// When another process owns it, or it cannot be written.
pub fn own(argument: &'static str, path: &Path, directory: &Path) -> Result<Owner, NamedDirectoryError> {
    Owner::of_directory(directory).map_err(|source| {
        // A directory of another process is not empty, and stays.
        let _ = fs::remove_dir(directory);
        cannot_make(argument, path, directory, source)
    })
}

fn cannot_make(
    argument: &'static str,
    path: &Path,
    directory: &Path,
    source: io::Error,
) -> NamedDirectoryError {
    let name = directory.file_name().unwrap_or_default().display().to_string();
    NamedDirectoryError::Make { argument, path: path.to_path_buf(), name, source }
}
