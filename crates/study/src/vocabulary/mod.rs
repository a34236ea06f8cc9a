//! Vocabulary of a kind of target: its settings, workloads and measures, and its own sections of a
//! study file.
//!
//! ```text
//! TargetKind   registered by name ──[sections of a study file]──> Vocabulary
//! Vocabulary   which settings, workloads and measures there are in this study
//! ```
//!
//! A [`study`](crate::definition) is written in this vocabulary; a [`target`](crate::targets) acts
//! on it. A database engine has one vocabulary for all studies; that of a command follows from the
//! study's own sections. Sentences of reports about tables, files and processes are here too, so
//! that they are true of the target.

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
use std::path::Path;
use std::sync::Arc;
use toml::de::{Deserializer, Error};

/// A setting with its value, as typed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub name: String,
    pub value: String,
}

/// Foresight of a study on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    /// The target, as far as it is known before a run.
    pub target: String,
    /// In the order of the settings; a setting may be there several times.
    pub evidence: Vec<ReceiptEvidence>,
}

/// Evidence that the receipt of a setting can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptEvidence {
    pub setting: String,
    pub seen: Seen,
    /// Place where it is read, with the reason if there is none from outside.
    pub by: String,
}

/// Facts about a setting that an analysis needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingFacts {
    pub name: String,
    pub takes_effect: TakesEffect,
    /// True if it affects how requests reach a device: files in memory then show no effect.
    pub about_io: bool,
    /// Best possible evidence of its receipts.
    #[serde(default)]
    pub receipt: Seen,
}

/// A kind of target, as registered.
pub trait TargetKind: Sync {
    /// Returns its name in study files.
    fn name(&self) -> &'static str;

    /// Returns the tables of a study file that it reads itself.
    fn sections(&self) -> &'static [&'static str];

    /// Returns the table of a study file whose keys replace those of the file if this is the
    /// target; other targets ignore the table.
    fn replaces(&self) -> Option<&'static str> {
        None
    }

    /// Returns the vocabulary of a study with these sections. Fails with the first error of a
    /// section and its place in the file.
    fn vocabulary(&self, sections: Deserializer<'_>) -> Result<Vocabulary, Refusal>;
}

/// Error in a section of a study file.
#[derive(Debug)]
pub struct Refusal {
    /// Place in bytes of the file.
    pub place: Range<usize>,
    pub what: String,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        // serde names Rust types; users know numbers.
        let what = what
            .replace("expected i64", "expected a whole number")
            .replace("expected f64", "expected a number");
        Refusal { place: error.span().unwrap_or(0..0), what }
    }
}

/// All registered kinds of targets.
pub type Kinds = [&'static dyn TargetKind];

/// The settings, workloads and measures of a study.
pub trait Words: Any + fmt::Debug + Send + Sync {
    /// Returns the name of its kind of target.
    fn target(&self) -> &'static str;

    /// Returns the named setting with its value in canonical form (`4M` for `4096k`). Fails on an
    /// unknown setting, or a value out of range. The error starts with `origin`.
    fn setting(&self, name: &str, value: &str, origin: &str) -> Result<(SettingFacts, String), String>;

    /// Rejects in a new study what a kept one may contain. The error names the reason, its place in
    /// the file, and the cure.
    fn require_new(&self, _: &[&Assignment]) -> Result<(), Refusal> {
        Ok(())
    }

    /// Lists the settings in words.
    fn settings(&self) -> String;

    /// Returns the reason why this machine cannot run a level with these settings in a study with
    /// all of `study`; `None` if it can, or if only a run can tell. Starts no target.
    fn impossible(&self, _level: &[Assignment], _study: &[&Assignment]) -> Option<String> {
        None
    }

    /// Describes the target and the evidence that receipts of these settings can have, with files
    /// below this path. Starts no target.
    fn here(&self, settings: &[&Assignment], _path: &Path) -> Here {
        let evidence = settings.iter().filter_map(|set| {
            let (facts, _) = self.setting(&set.name, &set.value, "").ok()?;
            Some(ReceiptEvidence {
                by: facts.receipt.words().to_string(),
                setting: facts.name,
                seen: facts.receipt,
            })
        });
        Here { target: self.target().to_string(), evidence: evidence.collect() }
    }

    /// Rejects settings that contradict each other, wherever they are given. The error names the
    /// two settings and the cure.
    fn consistent(&self, settings: &[Assignment]) -> Result<(), String>;

    /// True if a study with these settings uses the path it is given.
    fn has_place(&self, _: &[&Assignment]) -> bool {
        true
    }

    /// Returns its workloads; empty if a study's own sections describe the work.
    fn workloads(&self) -> &'static [&'static Workload];

    fn measure(&self, name: &str) -> Option<Measure>;

    /// Lists the measures in words.
    fn measures(&self) -> String;

    /// Returns the measures that the study declares itself, each with its place
    /// in bytes of the file.
    fn declared(&self) -> Vec<(String, Range<usize>)> {
        Vec::new()
    }

    /// Returns its sections of the study file with defaults spelled out.
    fn sections(&self) -> String;

    /// Describes the work between two runs of a study with these settings, so that one
    /// does not pay for another.
    fn between_runs(&self, settings: &[&Assignment]) -> String;

    /// Describes conditions that were not randomised; `made` tells how often the data were made.
    fn not_randomised(&self, made: Made<'_>) -> String;

    /// Describes effects that the study does not test for this work.
    fn not_tested(&self, work: Option<&Work>) -> String;

    /// Returns the name of the time on a processor, and how parts of an elapsed time are computed.
    fn parts(&self) -> (&'static str, &'static str);
}

/// Frequency with which the data of a study's runs were made.
#[derive(Debug, Clone, Copy)]
pub enum Made<'a> {
    /// Once for each level of these factors; once for all arms if empty.
    Once(&'a [&'a str]),
    EachRun,
}

/// Vocabulary shared by everything derived from a study; equality compares contents.
#[derive(Debug, Clone)]
pub struct Vocabulary(Arc<dyn Words>);

impl Vocabulary {
    pub fn new(words: impl Words + 'static) -> Vocabulary {
        Vocabulary(Arc::new(words))
    }

    /// Returns the vocabulary of one kind of target; `None` if it belongs to another.
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
