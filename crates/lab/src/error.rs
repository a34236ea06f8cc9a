//! Why a run could not be made, one line each. What a run finds out about its data is not an error.

use crate::study::StudyError;
use plumb_engine::EngineError;
use plumb_events::Interrupted;
use plumb_host::device::DeviceError;
use plumb_io::{IoError, cure};
use plumb_record::RecordError;
use plumb_units::{Bytes, Nanos, RowCount};
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
        "{argument} {}: cannot make the directory {name} in it: {source}{}",
        path.display(),
        cure(source, &path.join(name), "give this user the right to write there, or name another directory")
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
        "{}: {needed} are needed there and {free} are free; free some space, make the work smaller, or name a directory on \
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
    /// A file system of our own that cannot be made.
    #[error("cannot {step} for {}: {why}", path.display())]
    Loop {
        /// What could not be done.
        step: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// Why not, and what to do.
        why: String,
    },
    /// A study file that cannot be run.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// A study whose design cannot be.
    #[error("study {study}: {why}")]
    Plan {
        /// Its name.
        study: String,
        /// What is wrong.
        why: String,
    },
    /// A budget in which nothing could be learnt.
    #[error(
        "--budget {:.1} s is too small for one block: its {runs} runs{} take {:.1} s at least; give it more{}",
        budget.seconds(),
        if rows.0 > 0 { format!(" of {rows} rows") } else { String::new() },
        needed.seconds(),
        fewer(*rows)
    )]
    Budget {
        /// The budget.
        budget: Nanos,
        /// Runs of a block.
        runs: usize,
        /// Rows of a run; 0 where `--rows` does not say how many.
        rows: RowCount,
        /// What a block takes at least.
        needed: Nanos,
    },
    /// A budget without room for a block that counts, as the first runs show.
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
        /// The budget.
        budget: Nanos,
        /// Runs that were made.
        made: usize,
        /// Runs of warm-up and block.
        runs: usize,
        /// Rows of a run; 0 where `--rows` does not say how many.
        rows: RowCount,
        /// What was spent.
        spent: Nanos,
        /// What all of them take.
        needed: Nanos,
        /// False if the study made file systems of its own, which are gone.
        resumable: bool,
    },
    /// Arms of a study that come to the same on this machine.
    #[error(
        "{one} and {other} come to the same on this machine: one treatment under two names; give one of them another value, \
         or say expects = \"same\" at the top of the study"
    )]
    OneTreatment {
        /// What one arm sets that the other does not.
        one: String,
        /// What the other one sets.
        other: String,
    },
    /// A directory for a new bundle that has something in it, or a file for a report that is there.
    #[error(
        "{}: there is something in it, and nothing is written over: name a new {}{}",
        path.display(),
        if path.is_dir() { "directory" } else { "file" },
        if *resumable { format!(", or go on with its study by `plumb study --resume {}`", path.display()) } else { String::new() }
    )]
    BundleOccupied {
        /// The directory or file.
        path: PathBuf,
        /// Whether it is a study's.
        resumable: bool,
    },
    /// A bundle that another program writes.
    #[error(
        "{} is being written by another process: wait until its run or study ends, or stop it first",
        path.display()
    )]
    BundleInUse {
        /// The directory.
        path: PathBuf,
    },
    /// A place for a bundle or a report within the bundle of a study.
    #[error(
        "{} lies in the bundle of a study, {}, which `plumb verify` would refuse from then on; name a place outside it",
        path.display(),
        study.display()
    )]
    BundleInside {
        /// The place.
        path: PathBuf,
        /// The directory of the study's bundle.
        study: PathBuf,
    },
    /// Reports of a run that cannot be written.
    #[error(
        "cannot write reports to {}: {source}{}",
        path.display(),
        cure(source, path, "name a directory that this user may write to with --bundle")
    )]
    Reports {
        /// The directory or file.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A file of a bundle cannot be written.
    #[error(
        "cannot write {}: {source}{}; what the bundle holds already is whole: go on by `plumb study --resume BUNDLE`",
        path.display(),
        cure(source, path, "give this user the right to write there")
    )]
    BundleWrite {
        /// The file.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// A file of a bundle cannot be read.
    #[error("cannot read {}: {why}", path.display())]
    BundleRead {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The record of a run that this program does not read.
    #[error("{}: {source}", path.display())]
    Record {
        /// Its file.
        path: PathBuf,
        /// What it says of itself.
        source: RecordError,
    },
    /// A period of a run between snapshots that it does not have.
    #[error(
        "{}: there is no period from snapshot {first} to {last}: {}",
        path.display(),
        match taken {
            Some(taken) => format!("its snapshots are 1 to {taken}, and a period begins before it ends"),
            None => "it has no snapshots; `plumb run --snapshot 10s` takes some".to_string(),
        }
    )]
    NoPeriod {
        /// The bundle.
        path: PathBuf,
        /// Where it was to begin.
        first: usize,
        /// Where it was to end.
        last: usize,
        /// The last snapshot that was taken; none where none were.
        taken: Option<usize>,
    },
    /// An analysis that another version of this program wrote.
    #[error(
        "{}: its schema version is {found}, and this program writes version {expected}; `plumb report {}` works it out \
         again from the raw records",
        path.display(),
        bundle.display()
    )]
    AnalysisVersion {
        /// The analysis.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        expected: u32,
        /// Its bundle.
        bundle: PathBuf,
    },
    /// Two sets of runs that do not compare.
    #[error("{why}")]
    Sides {
        /// Why not, and what to name instead.
        why: String,
    },
    /// A bundle without a run that compares.
    #[error("{}: {why}", path.display())]
    NoRuns {
        /// The bundle.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A file of a bundle is not the one that was written.
    #[error("{} is not as it was written: {why}", path.display())]
    Tampered {
        /// The file.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// A study that cannot go on here.
    #[error("cannot resume {}: {why}; begin a new study instead", path.display())]
    Resume {
        /// The bundle.
        path: PathBuf,
        /// What is different.
        why: String,
    },
    /// A value that is no JSON.
    #[error("this cannot be written as JSON: {source}")]
    Json {
        /// What the serialiser says.
        source: serde_json::Error,
    },
    /// A thread could not be started, or a file not reached.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A run that nothing makes: the parent is another version of this program.
    #[error("there is no runner {name:?} in this program: start the study with this program itself")]
    Runner {
        /// The runner that was asked for.
        name: String,
    },
    /// The program cannot be run again for a run of its own.
    #[error("cannot start {} for a run: {source}", program.display())]
    Child {
        /// The program.
        program: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
}

impl From<Interrupted> for LabError {
    fn from(_: Interrupted) -> LabError {
        EngineError::Interrupted.into()
    }
}

/// A cure that only data of ours have.
fn fewer(rows: RowCount) -> &'static str {
    if rows.0 > 0 { ", or use fewer --rows" } else { "" }
}
