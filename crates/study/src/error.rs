//! Errors of making, keeping or judging a study, one line each. A failed verification is no error:
//! the run's record has it.

use crate::definition::StudyFileError;
use plumb_events::Interrupted;
use plumb_host::device::DeviceError;
use plumb_io::named_directory::NamedDirectoryError;
use plumb_io::{IoError, cure};
use plumb_record::RecordError;
use plumb_units::{Nanos, RowCount};
use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Reason why a study has no verdict.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error("{Interrupted}")]
    Interrupted,
    /// The target rejected the study or failed, in its own words.
    #[error(transparent)]
    Target(Box<dyn Error + Send + Sync>),
    /// A named directory cannot be used.
    #[error(transparent)]
    Place(#[from] NamedDirectoryError),
    /// The device under a path cannot be determined.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A study file that cannot be run.
    #[error(transparent)]
    File(#[from] StudyFileError),
    /// A study without a possible design.
    #[error("study {study}: {why}")]
    Plan { study: String, why: String },
    /// A budget too small for a single block.
    #[error(
        "--budget {:.1} s is too small for one block: its {runs} runs{} take {:.1} s at least; give it more{}",
        budget.seconds(),
        if rows.0 > 0 { format!(" of {rows} rows") } else { String::new() },
        needed.seconds(),
        fewer(*rows)
    )]
    Budget {
        budget: Nanos,
        runs: usize,
        /// Rows of a run; 0 if `--rows` does not set them.
        rows: RowCount,
        /// Least time of a block.
        needed: Nanos,
    },
    /// A budget without room for a block that counts, according to the first runs.
    #[error(
        "--budget {:.1} s is not enough for a block that counts: {} of {runs} runs (warm-up and block) took {:.1} s; {} of {:.0} s \
         or more{}",
        budget.seconds(),
        made,
        spent.seconds(),
        if *resumable {
            "go on with --resume and a --budget"
        } else {
            "its file systems are removed, so study again with a --budget"
        },
        needed.seconds().ceil(),
        fewer(*rows)
    )]
    BudgetSpent {
        budget: Nanos,
        made: usize,
        /// Runs of warm-up and block.
        runs: usize,
        /// Rows of a run; 0 if `--rows` does not set them.
        rows: RowCount,
        spent: Nanos,
        /// Expected time of all of them.
        needed: Nanos,
        /// False if the study made file systems of its own, which are removed.
        resumable: bool,
    },
    /// Arms of a study with equal effect on this machine.
    #[error(
        "{one} and {other} come to the same on this machine: one treatment under two names; give one of them another value, \
         or say expects = \"same\" at the top of the study"
    )]
    OneTreatment {
        /// Settings of one arm that the other lacks.
        one: String,
        /// Settings of the other arm.
        other: String,
    },
    /// The new bundle's directory is not empty, or the report's file exists.
    #[error(
        "{}: there is something in it, and nothing is written over: name a new {}{}",
        path.display(),
        if path.is_dir() { "directory" } else { "file" },
        if *resumable { format!(", or go on with its study by `plumb study --resume {}`", path.display()) } else { String::new() }
    )]
    BundleOccupied {
        path: PathBuf,
        /// True if it holds a study.
        resumable: bool,
    },
    /// Another process writes the bundle.
    #[error(
        "{} is being written by another process: wait until its run or study ends, or stop it first",
        path.display()
    )]
    BundleInUse { path: PathBuf },
    /// A place for a bundle or a report inside a study's bundle.
    #[error(
        "{} lies in the bundle of a study, {}, which `plumb verify` would refuse from then on; name a place outside it",
        path.display(),
        study.display()
    )]
    BundleInside {
        path: PathBuf,
        /// Directory of the study's bundle.
        study: PathBuf,
    },
    /// Reports of a run cannot be written.
    #[error(
        "cannot write reports to {}: {source}{}",
        path.display(),
        cure(source, path, "name a directory that this user may write to with --bundle")
    )]
    Reports { path: PathBuf, source: io::Error },
    /// A file of a bundle cannot be written.
    #[error(
        "cannot write {}: {source}{}; what the bundle holds already is whole: go on by `plumb study --resume BUNDLE`",
        path.display(),
        cure(source, path, "give this user the right to write there")
    )]
    BundleWrite { path: PathBuf, source: io::Error },
    /// A file of a bundle cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    BundleRead { path: PathBuf, why: String },
    /// A run's record that this version does not read.
    #[error("{}: {source}", path.display())]
    Record {
        path: PathBuf,
        /// Schema version found and expected.
        source: RecordError,
    },
    /// A period of a run between snapshots that it lacks.
    #[error(
        "{}: there is no period from snapshot {first} to {last}: {}",
        path.display(),
        match taken {
            Some(taken) => format!("its snapshots are 1 to {taken}, and a period begins before it ends"),
            None => "it has no snapshots; `plumb run --snapshot 10s` takes some".to_string(),
        }
    )]
    NoPeriod {
        path: PathBuf,
        /// First snapshot of the period.
        first: usize,
        /// Last snapshot of the period.
        last: usize,
        /// Last snapshot of the run; `None` if it has none.
        taken: Option<usize>,
    },
    /// An analysis written by another version of this program.
    #[error(
        "{}: its schema version is {found}, and this program writes version {expected}; `plumb report {}` works it out \
         again from the raw records",
        path.display(),
        bundle.display()
    )]
    AnalysisVersion { path: PathBuf, found: u64, expected: u32, bundle: PathBuf },
    /// Two sets of runs that cannot be compared.
    #[error("{why}")]
    Sides {
        /// The reason, and what to name instead.
        why: String,
    },
    /// A bundle without a comparable run.
    #[error("{}: {why}", path.display())]
    NoRuns { path: PathBuf, why: String },
    /// A file of a bundle has changed.
    #[error("{} is not as it was written: {why}", path.display())]
    Tampered { path: PathBuf, why: String },
    /// A study that cannot continue here.
    #[error("cannot resume {}: {why}; begin a new study instead", path.display())]
    Resume { path: PathBuf, why: String },
    /// A value that cannot be serialised as JSON.
    #[error("this cannot be written as JSON: {source}")]
    Json { source: serde_json::Error },
    /// A thread could not be started, or a file could not be accessed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// An unknown runner: the parent is another version of this program.
    #[error("there is no runner {name:?} in this program: start the study with this program itself")]
    Runner { name: String },
    /// The program cannot be started as a child for a run.
    #[error("cannot start {} for a run: {source}", program.display())]
    Child { program: PathBuf, source: io::Error },
}

impl From<Interrupted> for StudyError {
    fn from(_: Interrupted) -> StudyError {
        StudyError::Interrupted
    }
}

/// A cure for data that this program generates.
fn fewer(rows: RowCount) -> &'static str {
    if rows.0 > 0 { ", or use fewer --rows" } else { "" }
}
