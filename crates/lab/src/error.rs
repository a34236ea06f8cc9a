//! Why a run could not be made. One line each; what the data turned out to be is no
//! error but a finding of the run.

use plumb_engine::EngineError;
use plumb_io::device::DeviceError;
use plumb_units::Bytes;
use std::io;
use std::path::PathBuf;

/// What can keep a run from its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The engine refused or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What lies under a path cannot be told.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A directory that was named will not do.
    #[error("{argument} {}: {why}", path.display())]
    Directory {
        /// The argument that named it.
        argument: &'static str,
        /// The directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A directory of our own cannot be made.
    #[error(
        "{argument} {}: cannot make the directory {name} in it: {source}; give this user the right to write there, or \
         name another directory",
        path.display()
    )]
    MakeDirectory {
        /// The argument that named the directory around it.
        argument: &'static str,
        /// That directory.
        path: PathBuf,
        /// The name of the one to be made.
        name: String,
        /// What the kernel answered.
        source: io::Error,
    },
    /// The file system has too little room.
    #[error(
        "{}: {needed} are needed there and {free} are free; free some space, use fewer --rows, or name a directory on \
         another file system",
        path.display()
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Room for all files.
        needed: Bytes,
        /// What there is.
        free: Bytes,
    },
    /// Files in memory do not fit it.
    #[error(
        "io_method=null keeps the files in memory: {needed} are needed and {free} are available; use fewer --rows"
    )]
    NoMemory {
        /// Memory for all files.
        needed: Bytes,
        /// What is available.
        free: Bytes,
    },
}
