//! Reports progress to the caller; nothing is printed here.

use plumb_events::Recorder;
use plumb_units::Nanos;
use std::path::{Path, PathBuf};

/// A stage of a run that begins now, with the counters that show its progress.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Files are created in these directories, `bytes` in total.
    Files { directories: &'a [PathBuf], bytes: u64 },
    Load {
        recorder: &'a Recorder,
        /// Rows to load; 0 if unknown.
        rows: u64,
    },
    Build {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        rows: u64,
    },
    Scan {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        /// Rows to read; 0 if unknown.
        rows: u64,
    },
    /// Rows are imported by transactions.
    Import {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        /// Rows to import; 0 if unknown.
        rows: u64,
    },
    /// Sessions read and update at random.
    RandomIo {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        /// Planned duration; 0 if unknown.
        time: Nanos,
    },
    /// Tables and indexes are checked.
    Verify {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        blocks: u64,
    },
    /// A run of a study starts.
    Study {
        done: u64,
        /// Runs of the whole plan.
        runs: u64,
        /// Block of the run; 0 is the warm-up.
        block: usize,
        blocks: usize,
        arm: &'a str,
        /// Longest remaining time of the study; `None` before it can be estimated.
        left: Option<Nanos>,
    },
}

/// Start of a line on standard error with the reason why sessions of a run wait; not an error.
pub const WAITS: &str = "sessions wait for ";

/// Follows a run, and remembers what must be removed if the program is killed.
pub trait Observer: Sync {
    /// The run has reached this stage.
    fn stage(&self, stage: &Stage<'_>);

    /// From now on an interrupt must wait for an orderly end.
    fn begins(&self);

    /// A directory for this run was created; it is removed when the run ends.
    fn made(&self, directory: &Path);

    /// All sessions wait; the line gives the reason.
    fn waits(&self, _: &str) {}
}
