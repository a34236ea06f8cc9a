//! Targets of a study: a database or any program, with settings for each run.
//!
//! ```text
//! Target       prepare ──> [ ready ──> run ]* ──> (dropped: nothing remains)
//! ```
//!
//! A target owns everything it makes. It loads data once for all runs, unless arms differ in
//! settings fixed when a database is made
//! ([`TakesEffect::Creation`](crate::vocabulary::TakesEffect)). Then each run has data of its own.
//! Otherwise the place of its files would pass for the effect of the setting, and more blocks would
//! only confirm it. A run follows one contract: snapshot, work, snapshot, verification and
//! receipts. It ends in the same record as `plumb run` for any target, so that later stages do not
//! distinguish targets.
//!
//! The program registers the kinds of targets; nothing here names them.

pub mod child;
pub mod command;

use crate::StudyError;
use crate::bundle::{Environment, Settled};
use crate::canary::Canary;
use crate::observer::Observer;
use crate::vocabulary::{Assignment, TakesEffect, Vocabulary};
use plumb_calibrate::Calibration;
use plumb_events::Cancel;
use plumb_record::{Record, RequestSizes};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Arguments for opening a target.
pub struct Opening<'a> {
    /// Directory for the target's files.
    pub path: &'a Path,
    /// This program, for runs in processes of their own.
    pub program: PathBuf,
    /// The command as it was typed.
    pub command_line: String,
    /// Calibration of the device under the path.
    pub calibration: Option<Calibration>,
    /// Stops runs and preparation in progress.
    pub cancel: Cancel,
    /// Receives progress, and the paths of files to clean up.
    pub observer: &'a dyn Observer,
}

/// Preparation before the first run.
#[derive(Debug)]
pub struct Preparation<'a> {
    pub arms: &'a [Vec<Assignment>],
    /// True if arms with equal effect are allowed: the program is compared with itself.
    pub expects_same: bool,
    /// Name for files of this study alone: a killed study leaves them,
    /// and its resumption removes them.
    pub name: &'a str,
}

/// Reason why a run has no record.
#[derive(Debug)]
pub enum NoRecord {
    /// It was asked to stop.
    Interrupted,
    /// It crashed, rejected the run, or exited with an error.
    Failed(Failure),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub why: String,
    /// Most informative line of its process's output; `None` without output.
    pub said: Option<String>,
    /// Standard error of its process.
    pub errors: String,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { why, ..Failure::default() }
    }
}

impl Failure {
    /// Formats the failure and its whole standard error as one line, because no file keeps the
    /// standard error of such a run.
    pub fn whole(&self) -> String {
        let lines: Vec<&str> = self.errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.len() < 2 { self.line(None) } else { format!("{}: {}", self.why, lines.join(" | ")) }
    }

    /// Formats the failure in a line; `kept` names the file with its standard error.
    pub fn line(&self, kept: Option<&str>) -> String {
        let kept = kept.map_or(String::new(), |kept| format!(" ({kept})"));
        let said = self.said.as_ref().map_or(String::new(), |said| format!(": {said}"));
        format!("{}{kept}{said}", self.why)
    }
}

/// Plan of an arm, with the requests of its execution.
#[derive(Debug)]
pub struct ExplainedPlan {
    /// The plan as it was printed.
    pub plan: String,
    /// Sizes of the requests of its execution; `None` if the target cannot have them.
    pub sizes: Option<RequestSizes>,
}

pub trait Target {
    /// Describes the target and its environment before anything is made. Fails if the device under
    /// a path cannot be determined.
    fn environment(&mut self) -> Result<Environment, StudyError>;

    /// Makes what the runs need, such as loaded databases. Fails if there is no room, or something
    /// cannot be made. Then nothing is left behind.
    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError>;

    /// Makes the data that only the run with these settings needs. Waits until earlier work
    /// has settled, within a bound.
    fn ready(&mut self, settings: &[Assignment]) -> Result<Settled, StudyError>;

    /// Runs the canary before a run, with reads if the target has a device: it measures the
    /// machine, independent of the settings.
    fn sing(&self) -> Canary {
        Canary::sing(None)
    }

    /// Does the work with these settings, verifies the result and undoes it. A failed verification
    /// is part of the record, not an error.
    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord>;

    /// Executes the work with these settings once more and returns its plan; `None` if the work has
    /// none. Measured runs have no plan, because its times distort theirs.
    fn explain(&mut self, _: &[Assignment], _: &Cancel) -> Result<Option<ExplainedPlan>, NoRecord> {
        Ok(None)
    }

    /// Undoes what was made outside the target's own files; returns a line for each part that
    /// stays.
    fn end(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// Returns the settings of an arm that are fixed when a database is made.
pub fn creation_settings_of(arm: &[Assignment], vocabulary: &Vocabulary) -> Vec<Assignment> {
    let fixed = |set: &&Assignment| {
        let facts = vocabulary.setting(&set.name, &set.value, "");
        facts.is_ok_and(|(facts, _)| facts.takes_effect <= TakesEffect::Offline)
    };
    arm.iter().filter(fixed).cloned().collect()
}
