//! The measured files, in a directory that the calibration makes and removes.
//!
//! ```text
//! PATH/plumb-calibrate-PID-N/    scratch      removed when the calibration ends, in a panic too
//!     data                       data_file    random bytes, written once, for points
//!                                volume       the files of several paths as one
//!     log                        log_file     zeros, written once, for durable writes
//!     log-allocated              log_file     allocated, never written; new for each repeat
//! ```
//!
//! Rejected: an existing file or a device. A calibration writes, and must not destroy anything.
//!
//! Limits: a process that is killed leaves its directory behind; [`leftovers`] finds it.

mod data_file;
mod log_file;
mod scratch;
mod volume;

pub(crate) use data_file::{Content, DataFile, Filling, Flexible, Size, check_place, fitting_length};
pub(crate) use log_file::{LogFile, Logs};
pub(crate) use scratch::ScratchDirectory;
pub use scratch::{ScratchLeftover, leftovers};
pub(crate) use volume::{Place, Volume, check as check_volume};
