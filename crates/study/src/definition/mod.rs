//! A study: a question, factors, and claims written before the run.
//!
//! ```text
//! file.toml ──[file]──> Study ──[plan]──> arms in random order within blocks
//! ```
//!
//! A [`Study`] is checked: every setting is known and in range, every label is unique, every claim
//! compares existing arms. Its text form ([`Study::to_toml`]) spells out defaults and options of
//! the command line, and parses to the same study. A bundle keeps this text, and its hash
//! identifies the study.

pub mod catalog;
mod claim;
mod draft;
mod factor;
mod file;
mod inline;
mod possible;
mod published;
mod text;

pub use claim::{Claim, Expectation, Of, Sides};
pub use draft::{Draft, DraftClaim, DraftValue, StudyFileError};
pub use factor::{Factor, Level};
pub use file::{parse, parse_kept};
pub use inline::{Given, Inline, Varied, inline};
pub use possible::LeftOut;
pub use published::{Published, PublishedRow, minutes};

use crate::vocabulary::{Assignment, Measure, Vocabulary};
use plumb_proof::ProofError;
use plumb_proof::design::{self, Design, Order};
use plumb_units::RowCount;
use plumb_workload::{Shown, Work};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A figure that no machine can exceed, stated by the study's author.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// Statistic of the run's record.
    pub statistic: String,
    /// Largest possible value per second, in the statistic's unit.
    pub per_second_max: f64,
    pub reason: String,
}

/// A factor of a fraction whose levels are determined by other factors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generator {
    /// Index of the factor, after all free ones.
    pub factor: usize,
    /// Free factors whose product it is.
    pub product: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// Used in titles and paths.
    pub name: String,
    pub title: String,
    pub question: String,
    /// Publication whose conclusions the claims test; empty if they are the study's own.
    pub source: String,
    /// Vocabulary of the study, and with it the kind of its target.
    #[serde(rename = "target")]
    pub vocabulary: Vocabulary,
    /// Work of every run; `None` if the target's own sections describe it.
    #[serde(serialize_with = "work_as_map")]
    pub work: Option<Work>,
    pub blocks: usize,
    /// Measure of comparisons, unless a claim names another.
    pub measure: Measure,
    /// Smallest effect of interest, a share.
    pub sought: f64,
    /// Error allowed to the whole study, a share.
    pub alpha: f64,
    /// Randomisation of the order within a block.
    pub order: Order,
    /// True if levels may have equal settings: the program is compared with itself.
    pub expects_same: bool,
    pub settings: Vec<Assignment>,
    /// Varied factors; the first level of each is the reference.
    pub factors: Vec<Factor>,
    /// Factors determined by others; empty in a full design.
    pub generators: Vec<Generator>,
    pub claims: Vec<Claim>,
    pub bounds: Vec<Bound>,
    pub published: Option<Published>,
}

/// Serializes the workload with the values of its parameters.
fn work_as_map<S: Serializer>(work: &Option<Work>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(work) = work else { return serializer.serialize_none() };
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("workload", work.workload.name)?;
    work.values().try_for_each(|(name, value)| match value {
        Shown::Number(number) => map.serialize_entry(name, &number),
        Shown::Text(text) => map.serialize_entry(name, &text),
    })?;
    map.end()
}

impl Study {
    /// Rows of the data; 0 if the work has none.
    pub fn rows(&self) -> u64 {
        self.work.as_ref().map_or(0, Work::rows)
    }

    /// Rows that `--rows` could reduce; 0 if the work does not take this option.
    pub fn rows_asked(&self) -> RowCount {
        let takes = self.work.as_ref().is_some_and(|work| work.workload.parameter("rows").is_some());
        RowCount(if takes { self.rows() } else { 0 })
    }

    /// Returns the workload as it is shown.
    pub fn work_shown(&self) -> String {
        match &self.work {
            Some(work) => format!("{}, {} rows", work.workload.name, RowCount(work.rows())),
            None => format!("a {}", self.vocabulary.target()),
        }
    }

    /// Returns the arms that the factors form. Fails if there are too many, or
    /// the generators form no design.
    pub fn design(&self) -> Result<Design, ProofError> {
        let factor = |factor: &Factor| design::Factor {
            name: factor.name.clone(),
            levels: factor.levels.iter().map(|level| level.label.clone()).collect(),
        };
        let factors = self.factors.iter().map(factor).collect();
        if self.generators.is_empty() {
            return Design::full(factors);
        }
        let products: Vec<Vec<usize>> =
            self.generators.iter().map(|generator| generator.product.clone()).collect();
        Design::fraction(factors, &products)
    }

    /// Returns the name of the combination of these levels, such as `async=TRUE area=1M`.
    pub fn arm_name(&self, levels: &[usize]) -> String {
        let named = self.factors.iter().zip(levels);
        named
            .map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level].label))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Returns every setting with every value that the study gives it.
    pub fn all_settings(&self) -> impl Iterator<Item = &Assignment> {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        self.settings.iter().chain(levels.flat_map(|level| &level.settings))
    }

    /// Returns the settings of the combination of these levels; shared settings come first.
    pub fn arm_settings(&self, levels: &[usize]) -> Vec<Assignment> {
        let own = self.factors.iter().zip(levels).flat_map(|(factor, level)| &factor.levels[*level].settings);
        self.settings.iter().chain(own).cloned().collect()
    }
}
