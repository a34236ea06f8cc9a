//! How the laboratory tells its caller about progress. It prints nothing itself.

use plumb_events::Recorder;
use plumb_units::Nanos;
use std::path::{Path, PathBuf};

/// What a run is about to do, with what its progress is read from.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Files are made in these directories, `bytes` in all.
    Files { directories: &'a [PathBuf], bytes: u64 },
    Load {
        recorder: &'a Recorder,
        /// Rows to come; 0 where that is not known.
        rows: u64,
    },
    Build {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        rows: u64,
    },
    /// Rows are imported by transactions.
    Import {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        /// Rows to come; 0 where that is not known.
        rows: u64,
    },
    /// Sessions read and update at random.
    RandomIo {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        /// How long they will; 0 where that is not known.
        time: Nanos,
    },
    /// Tables and indexes are checked.
    Verify {
        /// Counts the work of the database.
        recorder: &'a Recorder,
        blocks: u64,
    },
    /// A run of a study begins.
    Study {
        done: u64,
        /// Runs of the whole plan.
        runs: u64,
        /// Its block; 0 warms up.
        block: usize,
        blocks: usize,
        arm: &'a str,
        /// How long the study will last at most; none before that can be told.
        left: Option<Nanos>,
    },
}

/// Start of a line on standard error that says why sessions of a run wait: it is no error.
pub const WAITS: &str = "sessions wait for ";

/// Follows a run, and remembers what must be removed if the program is killed.
pub trait Observer: Sync {
    /// The run has reached this stage.
    fn stage(&self, stage: &Stage<'_>);

    /// From now on an interrupt must wait for an orderly end.
    fn begins(&self);

    /// A directory of the run's own has been made, which goes when the run ends.
    fn made(&self, directory: &Path);

    /// Sessions wait, and nothing goes on: a line that says why.
    fn waits(&self, _: &str) {}
}
