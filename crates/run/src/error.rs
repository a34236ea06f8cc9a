//! Errors of making a run, one line each. A failed verification is no error: the record has it.

use plumb_engine::EngineError;
use plumb_events::Interrupted;
use plumb_host::device::DeviceError;
use plumb_io::IoError;
use plumb_io::named_directory::NamedDirectoryError;
use plumb_study::StudyError;
use plumb_units::Bytes;
use std::path::PathBuf;

/// Reason why a run did not finish.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine rejected the run or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The device under a path cannot be described.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A named directory cannot be used.
    #[error(transparent)]
    Place(#[from] NamedDirectoryError),
    /// The file system has too little room.
    #[error(
        "{}: {needed} are needed there and {free} are free; free some space, make the work smaller, or name a directory on \
         another file system",
        path.display()
    )]
    NoRoom { path: PathBuf, needed: Bytes, free: Bytes },
    /// Files in memory need more than is available.
    #[error(
        "io_method=null keeps the files in memory: {needed} are needed and {free} are available; use fewer --rows"
    )]
    NoMemory { needed: Bytes, free: Bytes },
    /// A file system for a run cannot be made.
    #[error("cannot {step} for {}: {why}", path.display())]
    Loop {
        step: &'static str,
        path: PathBuf,
        /// The reason, and the cure.
        why: String,
    },
    /// A file cannot be accessed, or a thread not started.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The study around the run failed.
    #[error(transparent)]
    Study(#[from] StudyError),
}

impl From<Interrupted> for RunError {
    fn from(_: Interrupted) -> RunError {
        EngineError::Interrupted.into()
    }
}

impl From<RunError> for StudyError {
    fn from(error: RunError) -> StudyError {
        match error {
            RunError::Study(error) => error,
            RunError::Engine(EngineError::Interrupted) => StudyError::Interrupted,
            other => StudyError::Target(Box::new(other)),
        }
    }
}
