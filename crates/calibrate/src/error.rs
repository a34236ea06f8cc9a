//! Errors with the value found, the value required and the cure.

use plumb_io::IoError;
use plumb_units::Bytes;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a calibration failed.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// The file does not fit on the file system.
    #[error("calibration under {} needs {needed} and {free} are free: {cure}", path.display())]
    NotEnoughSpace {
        path: PathBuf,
        /// Bytes of the file, of the logs, and of the space that must stay free.
        needed: Bytes,
        /// Bytes that the file system has for this user.
        free: Bytes,
        /// A size that would fit, if there is one.
        cure: String,
    },
    /// There is no device under the path.
    #[error("{} is on {file_system}, which keeps files in memory: there is no storage to measure", path.display())]
    InMemory {
        path: PathBuf,
        /// Type of the file system.
        file_system: String,
    },
    /// The file system does not allow writes.
    #[error("{} is mounted read-only, and calibration needs a file of its own there: remount it with mount -o remount,rw", path.display())]
    ReadOnly { path: PathBuf },
    /// The directory for the files could not be made.
    #[error("cannot make a directory in {}: {source}{}", path.display(), plumb_io::cure(source, path, "give this user the right to write there"))]
    Directory { path: PathBuf, source: io::Error },
    /// An option is out of its range.
    #[error("{option} = {value} is not possible: {range}")]
    Option {
        option: &'static str,
        value: String,
        /// The valid range of the option.
        range: String,
    },
    /// The open flags of a file differ from the requested ones.
    #[error("{} was opened with {asked}, but the kernel has it open with flags {found:o}", path.display())]
    OpenedOtherwise {
        path: PathBuf,
        /// Names of the requested flags.
        asked: String,
        /// All flags that the kernel reports.
        found: u32,
    },
    /// The kernel's facts about a file could not be read.
    #[error("cannot read what the kernel knows of {}: {source}; /proc must be mounted", path.display())]
    Receipt { path: PathBuf, source: io::Error },
    /// The text is no record, or has an unsupported version.
    #[error("not a calibration that this program reads ({why}): use the release that wrote it")]
    Unreadable {
        /// The first error in the text.
        why: String,
    },
    #[error(transparent)]
    Io(#[from] IoError),
    /// The caller cancelled the calibration.
    #[error("the calibration was stopped; its file is removed and nothing was stored")]
    Cancelled,
}

impl From<plumb_io::Failed> for CalibrateError {
    fn from(failed: plumb_io::Failed) -> CalibrateError {
        failed.error.into()
    }
}
