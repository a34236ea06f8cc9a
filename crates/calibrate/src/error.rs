//! Errors that name what was found, what was needed and the cure.

use plumb_io::IoError;
use plumb_units::Bytes;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a calibration could not be made.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// The file would not fit.
    #[error("calibration under {} needs {needed} and {free} are free: {cure}", path.display())]
    NotEnoughSpace {
        path: PathBuf,
        /// The file, the logs and what must stay free.
        needed: Bytes,
        /// What the file system has for this user.
        free: Bytes,
        /// A size that would fit, if any does.
        cure: String,
    },
    /// There is no device under the path.
    #[error("{} is on {file_system}, which keeps files in memory: there is no storage to measure", path.display())]
    InMemory {
        path: PathBuf,
        /// The type of its file system.
        file_system: String,
    },
    /// Nothing may be written there.
    #[error("{} is mounted read-only, and calibration needs a file of its own there: remount it with mount -o remount,rw", path.display())]
    ReadOnly { path: PathBuf },
    /// The directory for the files could not be made.
    #[error("cannot make a directory in {}: {source}{}", path.display(), plumb_io::cure(source, path, "give this user the right to write there"))]
    Directory { path: PathBuf, source: io::Error },
    /// An option is out of its range.
    #[error("{option} = {value} is not possible: {range}")]
    Option { option: &'static str, value: String, range: String },
    /// A file is not open in the way asked for.
    #[error("{} was opened with {asked}, but the kernel has it open with flags {found:o}", path.display())]
    OpenedOtherwise {
        path: PathBuf,
        asked: String,
        /// All flags that the kernel names.
        found: u32,
    },
    /// What the kernel knows of a file could not be read.
    #[error("cannot read what the kernel knows of {}: {source}; /proc must be mounted", path.display())]
    Receipt { path: PathBuf, source: io::Error },
    /// A text is no record, or one of another version.
    #[error("not a calibration that this program reads ({why}): use the release that wrote it")]
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
    #[error(transparent)]
    Io(#[from] IoError),
    /// The caller asked to stop.
    #[error("the calibration was stopped; its file is removed and nothing was stored")]
    Cancelled,
}

impl From<plumb_io::Failed> for CalibrateError {
    fn from(failed: plumb_io::Failed) -> CalibrateError {
        failed.error.into()
    }
}
