//! The scratch directory of a calibration, and everything in it.
//!
//! Invariants:
//! - H1 Only files that this process created exclusively, in a directory that it created
//!   exclusively, are opened for writing.
//! - H2 When the directory is dropped, in a panic too, its files and then its directory are
//!   removed. The directory is removed only when it is empty: files of other processes stay.
//!
//! A killed process leaves its directory behind, with its mark in it
//! ([`ScratchLeftover`](super::ScratchLeftover)).
//! [`leftovers`] names the directories of other calibrations, running ones too, and removes none.

use crate::CalibrateError;
use plumb_events::locked;
use plumb_host::owner::Owner;
use plumb_io::{DirectIo, Disk, Durability, File, IoError, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

/// Prefix of the name of every scratch directory.
pub(super) const PREFIX: &str = "plumb-calibrate-";
/// Scratch directories that one process may have under one path; more are a mistake.
const DIRECTORIES_MAX: usize = 100;

/// Returns directories of other calibrations under `path`: of killed ones, and of running ones.
pub fn leftovers(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let is_scratch = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(PREFIX);
    let mut found: Vec<PathBuf> = entries.flatten().filter(is_scratch).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// A directory that this process made and removes.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    disk: Disk,
    directory: PathBuf,
    files: Mutex<Vec<PathBuf>>,
    /// Mark that distinguishes the directory from that of a killed process (H1).
    owner: Option<Owner>,
}

impl ScratchDirectory {
    pub(crate) fn create(disk: Disk, under: &Path) -> Result<ScratchDirectory, CalibrateError> {
        let directory = match &disk {
            Disk::Memory(_) => under.join(PREFIX),
            _ => new_directory(under)?,
        };
        let mut scratch = ScratchDirectory { disk, directory, files: Mutex::default(), owner: None };
        if !scratch.in_memory() {
            let owner = Owner::of_directory(&scratch.directory);
            let refused = |source| CalibrateError::Directory { path: under.to_path_buf(), source };
            scratch.owner = Some(owner.map_err(refused)?);
        }
        Ok(scratch)
    }

    /// Returns the path of a file of this name.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    #[cfg(test)]
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// True if the files are in the memory of this process.
    pub(crate) fn in_memory(&self) -> bool {
        matches!(self.disk, Disk::Memory(_))
    }

    /// Creates a file, which must not exist (H1).
    pub(crate) fn create_file(&self, name: &str, direct: DirectIo) -> Result<File, IoError> {
        let path = self.path_of(name);
        let file = self.disk.open(&path, OpenMode::Create, direct)?;
        locked(&self.files).push(path);
        Ok(file)
    }

    /// Opens a file of this directory again, with other flags.
    pub(crate) fn reopen(
        &self,
        file: &File,
        direct: DirectIo,
        durability: Durability,
    ) -> Result<File, IoError> {
        assert!(file.path().starts_with(&self.directory), "H1: only files of this directory are opened");
        self.disk.open_durable(file.path(), OpenMode::Write, direct, durability)
    }

    /// Removes one of the files before the end.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), IoError> {
        let mut files = locked(&self.files);
        let Some(index) = files.iter().position(|file| file == path) else { return Ok(()) };
        files.swap_remove(index);
        self.disk.remove(path)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        for path in files.drain(..) {
            // A file that cannot be removed remains as a leftover; drop cannot report it.
            let _ = self.disk.remove(&path);
        }
        if !self.in_memory() {
            self.owner = None;
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

fn new_directory(under: &Path) -> Result<PathBuf, CalibrateError> {
    let process = std::process::id();
    for number in 0..DIRECTORIES_MAX {
        let directory = under.join(format!("{PREFIX}{process}-{number}"));
        match fs::create_dir(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                return Err(CalibrateError::ReadOnly { path: under.to_path_buf() });
            }
            Err(source) => return Err(CalibrateError::Directory { path: under.to_path_buf(), source }),
        }
    }
    let source =
        io::Error::new(io::ErrorKind::AlreadyExists, format!("{DIRECTORIES_MAX} of this process are there"));
    Err(CalibrateError::Directory { path: under.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_directory_removes_its_files_and_spares_others() {
        let under = tempfile::tempdir().expect("a directory");
        let scratch = ScratchDirectory::create(Disk::Kernel, under.path()).expect("a directory");
        let second = ScratchDirectory::create(Disk::Kernel, under.path()).expect("another directory");
        scratch.create_file("data", DirectIo::Off).expect("a file");
        scratch.create_file("data", DirectIo::Off).expect_err("H1: a file that exists is not opened");
        let foreign = second.directory().join("foreign");
        fs::write(&foreign, "kept").expect("a file of somebody else");
        assert_eq!(leftovers(under.path()).len(), 2);
        let first = scratch.directory().to_path_buf();
        drop((scratch, second));
        assert!(!first.exists());
        assert_eq!(fs::read_to_string(&foreign).expect("spared"), "kept");
    }

    #[test]
    fn a_scratch_directory_is_removed_when_its_owner_panics() {
        let under = tempfile::tempdir().expect("a directory");
        let path = under.path().to_path_buf();
        let panicked = std::panic::catch_unwind(move || {
            let scratch = ScratchDirectory::create(Disk::Kernel, &path).expect("a directory");
            scratch.create_file("data", DirectIo::Off).expect("a file");
            assert!(scratch.in_memory(), "this fails, and the directory must go");
        });
        assert!(panicked.is_err());
        assert!(leftovers(under.path()).is_empty());
    }
}
