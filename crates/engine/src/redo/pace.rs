//! Pace: the distance at which checkpoints and database writers follow the log.
//!
//! A checkpoint begins when the log switches to the next file, or earlier if
//! `log_checkpoint_interval` is below two files. It is complete when all blocks changed before it
//! are written. Database writers ensure that by staying a fixed stretch of log behind. With n
//! files, each of which begins with a checkpoint, the stretch is n - 1.5 files. Then the checkpoint
//! of the second oldest file completes half a file before the oldest one is needed again.
//!
//! ```text
//!          redo                    write_behind             end
//!  file 1   | file 2                |    file 3              |
//!           |<------ spacing ------>|<------- stretch ------>|    recovery applies at most both
//! ```
//! Rejected: following closely at all times. After each checkpoint, every changed block is logged
//! whole once.

use super::bell::Bell;
use super::log_file::FILE_HEADER;
use super::log_writer::{BatchPlace, LogFile};
use plumb_units::Lsn;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Decides when checkpoints are due. Bytes are of log blocks, as in [`BatchPlace::written`].
#[derive(Debug)]
pub(crate) struct Pace {
    spacing: u64,
    stretch: u64,
    /// End of the last batch, and its value when the last checkpoint began.
    end: AtomicU64,
    last: AtomicU64,
    write_behind: AtomicU64,
    /// Target for which `write_behind` was last computed, once per 64th of the stretch.
    looked: AtomicU64,
    due: AtomicBool,
    /// Rings for the thread that begins and completes checkpoints.
    bell: Bell,
}

impl Pace {
    pub(super) fn of(files: &[LogFile], interval: u64) -> Pace {
        let file = files.iter().map(|file| file.bytes - FILE_HEADER).min().expect("a log has files");
        let all = file * files.len() as u64;
        let half = if interval == 0 { u64::MAX } else { interval / 2 };
        Pace {
            spacing: file.min(half),
            stretch: (all - file - file / 2).min(half),
            end: AtomicU64::new(0),
            last: AtomicU64::new(0),
            write_behind: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            due: AtomicBool::new(false),
            bell: Bell::default(),
        }
    }

    /// Notes a written batch, which is not among `places` yet.
    pub(super) fn written(&self, places: &VecDeque<BatchPlace>, batch: &BatchPlace) {
        self.end.store(batch.written, Relaxed);
        if let Some(target) = batch.written.checked_sub(self.stretch)
            && target >= self.looked.load(Relaxed) + self.stretch / 64
        {
            self.looked.store(target, Relaxed);
            let ahead = places.partition_point(|place| place.written <= target);
            if let Some(last) = ahead.checked_sub(1).map(|at| places[at]) {
                self.write_behind.store(last.end.0, Release);
            }
        }
        let switched = places.back().is_some_and(|before| before.file != batch.file);
        if switched || batch.written - self.last.load(Relaxed).min(batch.written) >= self.spacing {
            self.due.store(true, Release);
            self.bell.ring();
        }
    }

    pub(super) fn begun(&self) {
        self.last.store(self.end.load(Relaxed), Relaxed);
        self.due.store(false, Release);
    }

    /// Returns the LSN before which changed blocks should be written.
    pub(crate) fn write_behind(&self) -> Lsn {
        Lsn(self.write_behind.load(Acquire))
    }

    /// True if a checkpoint should begin.
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Acquire)
    }

    /// Returns the bell that rings when a checkpoint becomes due.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}
