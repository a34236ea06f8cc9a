//! How closely checkpoints and database writers follow the log.
//!
//! A checkpoint is begun when the log goes on in the next file, or earlier where
//! `log_checkpoint_interval` is less than two files. It is complete when the blocks that were
//! changed before it are written; database writers see to that by staying a fixed stretch of log
//! behind. With n files of which each begins with a checkpoint, that stretch is n - 1.5 files: then
//! the checkpoint of the second oldest file is complete half a file before the oldest one is needed
//! again.
//!
//! ```text
//!          redo                    write_behind             end
//!  file 1   | file 2                |    file 3              |
//!           |<------ spacing ------>|<------- stretch ------>|      what a recovery does again: at most both
//! ```
//! Why not always close behind: each checkpoint has every block that changes after it logged whole
//! once.

use super::bell::Bell;
use super::log_file::FILE_HEADER;
use super::log_writer::{BatchPlace, LogFile};
use plumb_units::Lsn;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// When checkpoints are due. All numbers of bytes are of log blocks, as [`BatchPlace::written`]
/// counts them.
#[derive(Debug)]
pub(crate) struct Pace {
    spacing: u64,
    stretch: u64,
    /// At the end of the last batch, and where the last checkpoint was begun.
    end: AtomicU64,
    last: AtomicU64,
    write_behind: AtomicU64,
    /// Where it was worked out for; that is done for each 64th of the stretch.
    looked: AtomicU64,
    due: AtomicBool,
    /// Heard by who begins and completes them.
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

    /// A batch was written, which is not among the places yet.
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

    /// A checkpoint was begun.
    pub(super) fn begun(&self) {
        self.last.store(self.end.load(Relaxed), Relaxed);
        self.due.store(false, Release);
    }

    /// Blocks that were changed before it should be written.
    pub(crate) fn write_behind(&self) -> Lsn {
        Lsn(self.write_behind.load(Acquire))
    }

    /// Whether a checkpoint should be begun.
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Acquire)
    }

    /// Rung when one becomes due.
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }
}
