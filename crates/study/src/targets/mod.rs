//! What a study runs against: a database, or any program, with settings that can be given to a run.
//!
//! ```text
//! Target       prepare ──> [ ready ──> run ]* ──> (dropped: nothing remains)
//! ```
//!
//! A target owns what it makes. It loads data once for all runs, unless arms differ in settings that are fixed when
//! a database is made ([`TakesEffect::Creation`](crate::vocabulary::TakesEffect)): then each run has data of its own, because where
//! files come to lie would otherwise pass for the effect of the setting, and more blocks would only make that surer. A
//! run is the whole contract of snapshot, work, snapshot, verification and receipts: it ends in the same
//! record as `plumb run`, whatever the target, so that nothing behind it knows targets apart.
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
use plumb_record::Record;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a target is opened with.
pub struct Opening<'a> {
    /// Where it makes what it needs.
    pub path: &'a Path,
    /// This program, for runs that are processes of their own.
    pub program: PathBuf,
    /// The command as it was typed.
    pub command_line: String,
    /// What is known of the device under the path.
    pub calibration: Option<Calibration>,
    /// Ends what is under way.
    pub cancel: Cancel,
    /// Is told of what is made.
    pub observer: &'a dyn Observer,
}

/// What has to be there before the first run.
#[derive(Debug)]
pub struct Preparation<'a> {
    /// The settings of every arm.
    pub arms: &'a [Vec<Assignment>],
    /// Arms that come to the same are meant: the program is compared with itself.
    pub expects_same: bool,
    /// Names what is made for this study and no other: a study that was killed leaves it, and the
    /// one that resumes it removes it.
    pub name: &'a str,
}

/// Why a run has no record.
#[derive(Debug)]
pub enum NoRecord {
    /// It was asked to stop.
    Interrupted,
    /// It crashed, refused to run, or did not end as it should.
    Failed(Failure),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub why: String,
    /// The line that says most of what its process printed about it; none where nothing was printed.
    pub said: Option<String>,
    /// All that its process printed to standard error.
    pub errors: String,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { why, ..Failure::default() }
    }
}

impl Failure {
    /// It in a line, with all that was printed: for what no bundle keeps.
    #[must_use]
    pub fn whole(&self) -> String {
        let lines: Vec<&str> = self.errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.len() < 2 { self.line(None) } else { format!("{}: {}", self.why, lines.join(" | ")) }
    }

    /// It in a line; `kept` names the file that has all that was printed.
    #[must_use]
    pub fn line(&self, kept: Option<&str>) -> String {
        let kept = kept.map_or(String::new(), |kept| format!(" ({kept})"));
        let said = self.said.as_ref().map_or(String::new(), |said| format!(": {said}"));
        format!("{}{kept}{said}", self.why)
    }
}

/// Something that a study runs against.
pub trait Target {
    /// What it is, where it lies and what is known of that before anything is made.
    ///
    /// # Errors
    /// When what lies under its paths cannot be told.
    fn environment(&mut self) -> Result<Environment, StudyError>;

    /// Makes what the runs need, such as loaded databases.
    ///
    /// # Errors
    /// When there is no room, or something cannot be made; then nothing remains.
    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), StudyError>;

    /// Makes what belongs to the run with these settings alone, and lets the work before it come to rest, within a bound.
    ///
    /// # Errors
    /// When it cannot be made.
    fn ready(&mut self, settings: &[Assignment]) -> Result<Settled, StudyError>;

    /// Fixed work before a run, with reads where a device belongs to the target: it shows how fast the machine is, whatever the settings.
    fn sing(&self) -> Canary {
        Canary::sing(None)
    }

    /// Does the work with these settings, verifies the result and undoes it.
    ///
    /// # Errors
    /// When it did not come to its end. A failed verification is a record that says so.
    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, NoRecord>;
}

/// The settings of an arm that are fixed when a database is made.
#[must_use]
pub fn creation_settings_of(arm: &[Assignment], vocabulary: &Vocabulary) -> Vec<Assignment> {
    let fixed = |set: &&Assignment| {
        let facts = vocabulary.setting(&set.name, &set.value, "");
        facts.is_ok_and(|(facts, _)| facts.takes_effect <= TakesEffect::Offline)
    };
    arm.iter().filter(fixed).cloned().collect()
}
