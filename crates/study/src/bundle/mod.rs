//! A bundle: the directory that keeps a study, written as the study goes.
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
//! A file is written beside its name, made durable and renamed, and the manifest is replaced
//! behind it: whenever the program dies, the manifest lists only whole files. What it does not
//! list is an unfinished rest, which a resuming study removes. The directory is held by its
//! descriptor ([`Directory`]): no file of a bundle is read, written or removed through a link.
//! While a study runs it holds the directory's
//! mark ([`Reservation`]), so that no second program goes on with it.
//!
//! Why not one file for all: a run is kept the moment it ends, and a reader may look at any of
//! them with any tool. `docs/bundle.md` has the fields.

mod contents;
mod manifest;
mod record;
mod reservation;
mod single;

pub use contents::Contents;
pub use manifest::{MANIFEST, Manifest, is_made, unlisted};
pub use record::{EndFile, Ended, Environment, LimitFigure, OrderFile, RunRecord, Settled, Stop};
pub use reservation::{Reservation, refused, write_new};
pub use single::{run_period, run_record, text, write_over};

use crate::StudyError;
use crate::plan::Plan;
use crate::vocabulary::Kinds;
use plumb_io::{Directory, EntryKind, IoError};
use serde::Serialize;
use std::io;
use std::path::Path;

pub const STUDY: &str = "study.toml";
pub const ENVIRONMENT: &str = "environment.json";
pub const ORDER: &str = "order.json";
/// The directory of the raw records.
pub const RUNS: &str = "runs";
/// What the name of a raw record ends in.
const RECORD: &str = ".json";
/// What the name of a failed run's errors ends in.
const ERRORS: &str = ".stderr";
/// What is behind the name of a file until it is whole.
const FRESH: &str = ".new";
/// The extension that such a file had in earlier versions.
const UNFINISHED: &str = "unfinished";
/// Why and when it ended.
pub const END: &str = "end.json";
pub const ANALYSIS: &str = "analysis.json";
pub const REPORTS: [&str; 2] = ["report.txt", "report.html"];
/// A calibration, in a bundle of its own.
pub const CALIBRATION: &str = "calibration.json";

/// A bundle that is being written.
#[derive(Debug)]
pub struct Bundle {
    directory: Directory,
    manifest: Manifest,
    contents: Contents,
    /// Made by this process, which may remove it again.
    is_new: bool,
    /// Held as long as it is open.
    reservation: Reservation,
}

impl Bundle {
    /// Begins a new one in a directory that was reserved for it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(
        reservation: Reservation,
        plan: &Plan,
        environment: Environment,
    ) -> Result<Bundle, StudyError> {
        let path = reservation.directory();
        let not_begun = |error| refused(path, source_of(error));
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
                // Nothing is there that a study could go on from.
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

    /// Opens one to write into it. Nothing in it changes yet, but that it has this process's mark.
    ///
    /// # Errors
    /// When another program has it open, or a file is not the one that was written.
    pub fn open(directory: &Path, kinds: &Kinds) -> Result<Bundle, StudyError> {
        // Before a mark is left in a directory that is no bundle.
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

    /// Removes what a study that was killed left unfinished. Other files that the manifest does not
    /// list stay.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn clear(&mut self) -> Result<Cleared, StudyError> {
        let unlisted = unlisted(self.directory.path(), &self.manifest)?;
        let (removed, left): (Vec<String>, Vec<String>) =
            unlisted.into_iter().partition(|name| is_made(name));
        removed.iter().try_for_each(|name| self.remove(name))?;
        Ok(Cleared { removed, left })
    }

    /// Removes a new bundle that holds no run: its study could not begin.
    pub fn discard(self) {
        if !self.is_new {
            return;
        }
        for file in self.manifest.names().chain([MANIFEST]) {
            let _ = self.directory.remove(file);
        }
        // The reservation removes the directory, unless other processes use it.
        let _ = self.directory.remove_directory(RUNS);
    }

    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Its reservation, which keeps other processes from writing to it.
    #[must_use]
    pub fn reservation(&self) -> &Reservation {
        &self.reservation
    }

    /// The hash of all that its analysis rests on.
    #[must_use]
    pub fn evidence(&self) -> String {
        self.manifest.evidence()
    }

    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Keeps a run.
    ///
    /// # Errors
    /// When it cannot be written; what was kept before is intact.
    pub fn add(&mut self, run: &RunRecord) -> Result<(), StudyError> {
        let text = json(run)?;
        let name = record_name(run.number);
        self.write(&name, &text)?;
        // What is analysed is what was written, to the last digit.
        self.contents.runs.push(record::read(&self.directory().join(name), &text)?);
        Ok(())
    }

    /// Notes how the study ended.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end(&mut self, end: EndFile) -> Result<(), StudyError> {
        self.contents.end = Some(end);
        self.write(END, &json(&end)?)
    }

    /// Ends a study that was interrupted, or killed, where it is: its figures may be looked at, and it cannot go on. One that has
    /// ended stays as it is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn end_here(&mut self) -> Result<(), StudyError> {
        if self.contents.has_ended() {
            return Ok(());
        }
        self.end(EndFile { stop: Stop::Ended, end_ns: self.contents.ran().0 })
    }

    /// Removes the analysis of an earlier end: the study goes on, and its records will no longer lead to it.
    ///
    /// # Errors
    /// When the manifest cannot be written.
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
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, name: &str, text: &str) -> Result<(), StudyError> {
        self.replace(name, text)?;
        self.manifest.list(name, text);
        self.replace(MANIFEST, &self.manifest.to_text())
    }

    /// Puts a text in the place of a file: written beside it, made durable, renamed.
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
    /// Unfinished files of a study that was killed, which were removed.
    pub removed: Vec<String>,
    pub left: Vec<String>,
}

/// The file of a run.
#[must_use]
pub fn record_name(number: u64) -> String {
    format!("{RUNS}/{number:04}{RECORD}")
}

/// The file of what a failed run printed to standard error.
#[must_use]
pub fn errors_name(number: u64) -> String {
    format!("{RUNS}/{number:04}{ERRORS}")
}

/// A value as a file has it.
///
/// # Errors
/// When it is no JSON.
pub fn json<T: Serialize>(value: &T) -> Result<String, StudyError> {
    let text = serde_json::to_string_pretty(value).map_err(|source| StudyError::Json { source })?;
    Ok(text + "\n")
}

fn not_written(path: &Path, error: IoError) -> StudyError {
    StudyError::BundleWrite { path: path.to_path_buf(), source: source_of(error) }
}

/// What the kernel said, for an error that names the file itself.
pub fn source_of(error: IoError) -> io::Error {
    match error {
        IoError::Operation { source, .. } => source,
        error => io::Error::other(error),
    }
}
