//! A bundle: the directory of a study, written while the study runs.
//!
//! ```text
//! study.toml          the study, with everything spelled out
//! environment.json    where it ran, and by which program
//! order.json          seed and order
//! runs/0001.json ...  one raw record a run, in order of execution
//! runs/0002.stderr    what a run that failed printed to standard error
//! end.json            why and when it ended
//! analysis.json       what follows from the above; report.txt and report.html show it
//! manifest.sha256     checksums of all of them, as sha256sum prints them
//! ```
//!
//! A file is written under a temporary name, made durable and renamed, then the manifest is
//! replaced. At any crash the manifest lists only whole files. Unlisted files of a study are
//! unfinished, and a resumed study removes them. The directory is held by its descriptor
//! ([`Directory`]): no file of a bundle is read, written or removed through a link. A running study
//! holds the directory's mark ([`Reservation`]), so that no second program continues it.
//!
//! Rejected: one file for everything. With many files, a run is kept the moment it ends, and any
//! tool reads any part. `docs/bundle.md` has the fields.

mod contents;
pub mod listing;
mod manifest;
mod record;
mod reservation;
mod single;

pub use contents::Contents;
pub use manifest::{MANIFEST, Manifest, is_made, unlisted};
pub use record::{EndFile, Ended, Environment, LimitFigure, OrderFile, RunRecord, Settled, Stop};
pub use reservation::{BundleLeftover, LAST, Reservation, TABLES, refused, write_new};
pub use single::{run_period, run_record, text, write_over};

use crate::StudyError;
use crate::plan::Plan;
use crate::vocabulary::Kinds;
use plumb_io::{Directory, EntryKind, IoError};
use serde::Serialize;
use std::path::Path;

pub const STUDY: &str = "study.toml";
pub const ENVIRONMENT: &str = "environment.json";
pub const ORDER: &str = "order.json";
/// Directory of the raw records.
pub const RUNS: &str = "runs";
/// Suffix of a raw record's name.
const RECORD: &str = ".json";
/// Suffix of the file with a failed run's errors.
const ERRORS: &str = ".stderr";
/// Extension of such a file in earlier versions.
const UNFINISHED: &str = "unfinished";
pub const END: &str = "end.json";
pub const ANALYSIS: &str = "analysis.json";
pub const REPORTS: [&str; 2] = ["report.txt", "report.html"];
/// Calibration, in a bundle of its own.
pub const CALIBRATION: &str = "calibration.json";

/// A bundle open for writing.
#[derive(Debug)]
pub struct Bundle {
    directory: Directory,
    manifest: Manifest,
    contents: Contents,
    /// True if this process made the bundle, so that it may remove it.
    is_new: bool,
    reservation: Reservation,
}

impl Bundle {
    /// Starts a bundle in a directory that was reserved for it.
    pub fn create(
        reservation: Reservation,
        plan: &Plan,
        environment: Environment,
    ) -> Result<Bundle, StudyError> {
        let path = reservation.directory();
        let not_begun = |error: IoError| refused(path, error.into_source());
        let directory = Directory::open(path).map_err(not_begun)?;
        directory.make_directory(RUNS).map_err(not_begun)?;
        let mut bundle = Bundle {
            directory,
            manifest: Manifest::default(),
            contents: Contents { plan: plan.clone(), environment, runs: Vec::new(), end: None },
            is_new: true,
            reservation,
        };
        match bundle.begin(plan) {
            Ok(()) => Ok(bundle),
            Err(error) => {
                bundle.discard();
                // Nothing exists yet from which a study could resume, so the error does not suggest
                // it.
                Err(match error {
                    StudyError::BundleWrite { path, source } => refused(&path, source),
                    error => error,
                })
            }
        }
    }

    fn begin(&mut self, plan: &Plan) -> Result<(), StudyError> {
        self.write(STUDY, &plan.study.to_toml())?;
        let environment = json(&self.contents.environment)?;
        self.write(ENVIRONMENT, &environment)?;
        self.write(ORDER, &json(&OrderFile::of(plan))?)
    }

    /// Opens a bundle for writing. Nothing changes yet, except that this process marks the
    /// directory. Fails if another program has it open, or a file has changed.
    pub fn open(directory: &Path, kinds: &Kinds) -> Result<Bundle, StudyError> {
        // Checked first, so that no mark is left in a directory that is no bundle.
        Manifest::read(directory)?;
        let reservation = Reservation::existing(directory)?;
        let (manifest, contents) = Contents::read(directory, kinds)?;
        let directory = Directory::open(directory).map_err(|error| not_written(directory, error))?;
        if directory.kind(RUNS) != Some(EntryKind::Directory) {
            let why = "it is no directory, and the records of runs go there".to_string();
            return Err(StudyError::Tampered { path: directory.path().join(RUNS), why });
        }
        Ok(Bundle { directory, manifest, contents, is_new: false, reservation })
    }

    /// Removes files that a killed study left unfinished. Other unlisted files stay.
    pub fn clear(&mut self) -> Result<Cleared, StudyError> {
        let unlisted = unlisted(self.directory.path(), &self.manifest)?;
        let (removed, left): (Vec<String>, Vec<String>) =
            unlisted.into_iter().partition(|name| is_made(name));
        removed.iter().try_for_each(|name| self.remove(name))?;
        Ok(Cleared { removed, left })
    }

    /// Removes a new bundle without a run, because its study could not start.
    pub fn discard(self) {
        if !self.is_new {
            return;
        }
        for file in self.manifest.names().chain([MANIFEST]) {
            let _ = self.directory.remove(file);
        }
        // The reservation removes the directory unless other processes use it.
        let _ = self.directory.remove_directory(RUNS);
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Reservation that keeps other processes from writing.
    pub fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// Hash of the analysis's input.
    pub fn evidence(&self) -> String {
        self.manifest.evidence()
    }

    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes and lists a run's record. If that fails, earlier runs stay intact.
    pub fn add(&mut self, run: &RunRecord) -> Result<(), StudyError> {
        let text = json(run)?;
        let name = record_name(run.number);
        self.write(&name, &text)?;
        // The analysis uses the record as read back, so that it sees the written digits.
        self.contents.runs.push(record::read(&self.directory().join(name), &text)?);
        Ok(())
    }

    /// Records the end of the study.
    pub fn end(&mut self, end: EndFile) -> Result<(), StudyError> {
        self.contents.end = Some(end);
        self.write(END, &json(&end)?)
    }

    /// Ends an interrupted or killed study, so that its figures may be read; it cannot continue.
    /// An ended study is unchanged.
    pub fn end_here(&mut self) -> Result<(), StudyError> {
        if self.contents.has_ended() {
            return Ok(());
        }
        self.end(EndFile { stop: Stop::Ended, end_ns: self.contents.ran().0 })
    }

    /// Removes end and analysis, because the study continues and its records
    /// will no longer match them.
    pub fn go_on(&mut self) -> Result<(), StudyError> {
        self.contents.end = None;
        let said: Vec<&str> =
            [END, ANALYSIS].into_iter().chain(REPORTS).filter(|name| self.manifest.lists(name)).collect();
        if said.is_empty() {
            return Ok(());
        }
        said.iter().for_each(|name| self.manifest.strike(name));
        self.replace(MANIFEST, &self.manifest.to_text())?;
        said.iter().try_for_each(|name| self.remove(name))
    }

    /// Writes a file, whole or not at all, and lists it.
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), StudyError> {
        self.replace(name, text)?;
        self.manifest.list(name, text);
        self.replace(MANIFEST, &self.manifest.to_text())
    }

    /// Replaces a file: writes a temporary one, makes it durable, renames it.
    fn replace(&self, name: &str, text: &str) -> Result<(), StudyError> {
        let written = self.directory.replace(name, text.as_bytes());
        written.map_err(|error| not_written(&self.directory().join(name), error))
    }

    fn remove(&self, name: &str) -> Result<(), StudyError> {
        self.directory.remove(name).map_err(|error| not_written(&self.directory().join(name), error))
    }
}

/// Files of a bundle that its manifest does not list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    /// Removed files: a killed study left them unfinished.
    pub removed: Vec<String>,
    pub left: Vec<String>,
}

/// Returns the file name of a run's record.
pub fn record_name(number: u64) -> String {
    format!("{RUNS}/{number:04}{RECORD}")
}

/// Returns the file name of a failed run's standard error.
pub fn errors_name(number: u64) -> String {
    format!("{RUNS}/{number:04}{ERRORS}")
}

/// Formats a value as an indented JSON file.
pub fn json<T: Serialize>(value: &T) -> Result<String, StudyError> {
    let text = serde_json::to_string_pretty(value).map_err(|source| StudyError::Json { source })?;
    Ok(text + "\n")
}

fn not_written(path: &Path, error: IoError) -> StudyError {
    StudyError::BundleWrite { path: path.to_path_buf(), source: error.into_source() }
}
