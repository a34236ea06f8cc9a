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
pub use scratch::leftovers;
pub(crate) use volume::{Place, Volume, check as check_volume};

use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, named};
use std::path::Path;

/// Scratch directories of killed calibrations.
#[derive(Debug)]
pub struct ScratchLeftover;

impl Leftover for ScratchLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        named(marked, scratch::PREFIX)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        let names = [DataFile::NAME, Logs::ZEROED, Logs::ALLOCATED];
        part.is_file() && part.top().is_some_and(|name| names.contains(&name))
    }
}
