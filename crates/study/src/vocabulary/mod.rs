//! What can be said of a kind of target: its settings, its workloads and its measures, and what a study file may have
//! for it alone.
//!
//! ```text
//! TargetKind   registered by name ──[sections of a study file]──> Vocabulary
//! Vocabulary   which settings, workloads and measures there are in this study
//! ```
//!
//! A [`study`](crate::definition) is written in these words; a [`target`](crate::targets) acts on them. For a database engine
//! the words are the same in every study; for a command they follow from the study's own sections. What a report says of tables,
//! files and processes is said here too, so that it is true of the target.

mod measure;

pub use measure::{Figure, Join, Measure};
pub use plumb_proof::verdict::Better;
pub use plumb_record::Seen;
pub use plumb_units::TakesEffect;

use plumb_workload::{Work, Workload};
use serde::{Deserialize, Serialize, Serializer};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use toml::de::{Deserializer, Error};

/// A setting with its value, as it would be typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub name: String,
    pub value: String,
}

/// What is to be known of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFacts {
    pub name: String,
    pub takes_effect: TakesEffect,
    /// Whether it is about how requests reach a device, so that it says nothing of files in memory.
    pub about_io: bool,
    /// The best that a receipt of it can rest on.
    #[serde(default)]
    pub receipt: Seen,
}

/// A kind of target, as it is registered.
pub trait TargetKind: Sync {
    /// Its name in study files.
    fn name(&self) -> &'static str;

    /// The tables of a study file that it reads itself.
    fn sections(&self) -> &'static [&'static str];

    /// The words of a study with these sections.
    ///
    /// # Errors
    /// What is wrong with a section, with its place in the file.
    fn vocabulary(&self, sections: Deserializer<'_>) -> Result<Vocabulary, Refusal>;
}

/// What is wrong with a section of a study file.
#[derive(Debug)]
pub struct Refusal {
    /// Where, in bytes of the file.
    pub place: Range<usize>,
    pub what: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        // serde names types of Rust.
        let what = what
            .replace("expected i64", "expected a whole number")
            .replace("expected f64", "expected a number");
        Refusal { place: error.span().unwrap_or(0..0), what }
    }
}

/// The kinds of targets that there are.
pub type Kinds = [&'static dyn TargetKind];

/// The settings, workloads and measures of a study.
pub trait Words: Any + fmt::Debug + Send + Sync {
    /// The name of its kind of target.
    fn target(&self) -> &'static str;

    /// The setting of that name with a value in one form for each value (`4M` for `4096k`).
    ///
    /// # Errors
    /// Beginning with `origin`: there is no such setting, or the value is out of range.
    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String>;

    /// Refuses in a new study with these settings what one that was kept may have.
    ///
    /// # Errors
    /// What it is, with its place in the file, and the cure.
    fn require_new(&self, _: &[&Assignment]) -> Result<(), Refusal> {
        Ok(())
    }

    /// Which settings there are, in words.
    fn settings(&self) -> String;

    /// Refuses settings that contradict each other wherever they are given.
    ///
    /// # Errors
    /// Which two, and the cure.
    fn consistent(&self, settings: &[Assignment]) -> Result<(), String>;

    /// True if a study with these settings has something under the path that it is given.
    fn has_place(&self, _: &[&Assignment]) -> bool {
        true
    }

    /// The workloads that it carries out; none where a study's own sections say what is run.
    fn workloads(&self) -> &'static [&'static Workload];

    /// The measure of that name.
    fn measure(&self, name: &str) -> Option<Measure>;

    /// Which measures there are, in words.
    fn measures(&self) -> String;

    /// The measures that the study declares itself, each with its place in the file, in bytes.
    fn declared(&self) -> Vec<(String, Range<usize>)> {
        Vec::new()
    }

    /// Its sections of the study file, everything spelled out.
    fn sections(&self) -> String;

    /// Describes what happens between two runs of a study with these settings, so that one does not
    /// pay for another.
    fn between_runs(&self, settings: &[&Assignment]) -> String;

    /// What no draw decided, in a sentence; `made` are the factors whose levels take effect when a database is made.
    fn not_randomised(&self, made: Made<'_>) -> String;

    /// What the study says nothing about for this work, a sentence.
    fn not_tested(&self, work: Option<&Work>) -> String;

    /// The name of the time on a processor, and how the parts of an elapsed time came about.
    fn parts(&self) -> (&'static str, &'static str);
}

/// How often the data of a study's runs were made.
#[derive(Debug, Clone, Copy)]
pub enum Made<'a> {
    /// Once for each level of these factors; for all arms where there are none.
    Once(&'a [&'a str]),
    EachRun,
}

/// The words of a study, shared by all that comes of it. Two are equal when they say the same.
#[derive(Debug, Clone)]
pub struct Vocabulary(Arc<dyn Words>);

impl Vocabulary {
    #[must_use]
    pub fn new(words: impl Words + 'static) -> Vocabulary {
        Vocabulary(Arc::new(words))
    }

    /// The words as their kind of target has them; none if they are of another kind.
    #[must_use]
    pub fn of<T: Words>(&self) -> Option<&T> {
        let words: &dyn Any = &*self.0;
        words.downcast_ref()
    }
}

impl std::ops::Deref for Vocabulary {
    type Target = dyn Words;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for Vocabulary {
    fn eq(&self, other: &Vocabulary) -> bool {
        self.target() == other.target() && self.sections() == other.sections()
    }
}

impl Serialize for Vocabulary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.target().serialize(serializer)
    }
}
