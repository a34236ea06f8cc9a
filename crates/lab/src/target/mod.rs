//! What a study runs against: a database with settings that can be given to a run.
//!
//! ```text
//! Vocabulary   which settings and measures there are, and when a setting takes effect
//! Target       prepare ──> [ settle ──> run ]* ──> (dropped: nothing remains)
//! ```
//!
//! A target owns what it makes. It loads data once for each set of settings that are fixed when
//! a database is made ([`TakesEffect::Creation`]); all others are given to each run. A run is
//! the whole contract of snapshot, work, snapshot, verification and receipts: it ends in the same
//! record as `plumb run`, whatever the target, so that nothing behind it knows targets apart.

pub mod embedded;
mod measure;

pub use measure::{Figure, Measure};

use crate::LabError;
use crate::bundle::{Environment, Settled};
use crate::record::Record;
use crate::study::Assignment;
use plumb_engine::instance::Cancel;
use serde::{Deserialize, Serialize};

/// When a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// When the database is made.
    Creation,
    /// When a run starts.
    Run,
}

/// What is to be known of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFacts {
    /// Its name.
    pub name: String,
    /// When it takes effect.
    pub takes_effect: TakesEffect,
    /// Whether it is about how requests reach a device, so that it says nothing of files in memory.
    pub about_io: bool,
}

/// The settings and measures of a kind of target.
pub trait Vocabulary {
    /// The setting of that name with a value in one form for each value (`4M` for `4096k`).
    ///
    /// # Errors
    /// Beginning with `origin`: there is no such setting, or the value is out of range.
    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String>;

    /// Refuses settings that contradict each other wherever they are given.
    ///
    /// # Errors
    /// Which two, and the cure.
    fn consistent(&self, settings: &[Assignment]) -> Result<(), String>;

    /// The measure of that name.
    fn measure(&self, name: &str) -> Option<Measure>;
}

/// What has to be there before the first run.
#[derive(Debug)]
pub struct Preparation<'a> {
    /// The settings of every arm.
    pub arms: &'a [Vec<Assignment>],
    /// Rows of the table.
    pub rows: u64,
    /// Seed of the rows.
    pub data_seed: u64,
    /// Names what is made for this study and no other: a study that was killed leaves it, and the
    /// one that resumes it removes it.
    pub name: &'a str,
}

/// Why a run has no record.
#[derive(Debug)]
pub enum RunError {
    /// It was asked to stop.
    Interrupted,
    /// It crashed, or refused to run; a sentence.
    Failed(String),
}

/// A database that a study runs against.
pub trait Target {
    /// What it is, where it lies and what is known of that before anything is made.
    ///
    /// # Errors
    /// When what lies under its paths cannot be told.
    fn environment(&mut self) -> Result<Environment, LabError>;

    /// Makes the databases and loads them.
    ///
    /// # Errors
    /// When there is no room, or one cannot be made; then nothing remains.
    fn prepare(&mut self, preparation: &Preparation<'_>) -> Result<(), LabError>;

    /// Lets the work before a run come to rest, within a bound.
    fn settle(&mut self) -> Settled;

    /// Does the work with these settings, verifies the result and undoes it.
    ///
    /// # Errors
    /// When it did not come to its end. A failed verification is a record that says so.
    fn run(&mut self, settings: &[Assignment], cancel: &Cancel) -> Result<Record, RunError>;
}

/// The distinct values of the settings that are fixed when a database is made, over these arms.
pub(crate) fn creation_settings(
    arms: &[Vec<Assignment>],
    vocabulary: &dyn Vocabulary,
) -> Vec<Vec<Assignment>> {
    let mut sets: Vec<Vec<Assignment>> = Vec::new();
    for arm in arms {
        let set = creation_settings_of(arm, vocabulary);
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

/// Those of one arm.
pub(crate) fn creation_settings_of(arm: &[Assignment], vocabulary: &dyn Vocabulary) -> Vec<Assignment> {
    let fixed = |set: &&Assignment| {
        let facts = vocabulary.setting(&set.name, &set.value, "");
        facts.is_ok_and(|(facts, _)| facts.takes_effect == TakesEffect::Creation)
    };
    arm.iter().filter(fixed).cloned().collect()
}
