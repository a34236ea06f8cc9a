//! A study: a question, what is varied, and the claims that were written before the run.
//!
//! ```text
//! file.toml ──[file]──> Study ──[plan]──> arms in random order within blocks
//! ```
//!
//! A [`Study`] is checked: every setting is known and in range, every level is named
//! once, every claim compares arms that exist. Its text form ([`Study::to_toml`]) has everything
//! spelled out, whatever was left to a default or given on the command line, and reads back as the
//! same study; it is what a bundle keeps and what names a study by its hash.

pub mod catalog;
mod claim;
mod draft;
mod factor;
mod file;
mod inline;
mod published;
mod text;

pub use claim::{Claim, Expectation, Sides};
pub use draft::{Draft, DraftValue, StudyFileError};
pub use factor::{Factor, Level};
pub use file::{parse, parse_kept};
pub use inline::{Given, Inline, Varied, inline};
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
    /// A statistic of the run's record.
    pub statistic: String,
    /// Its largest possible value a second, in the statistic's unit.
    pub per_second_max: f64,
    pub reason: String,
}

/// A factor of a fraction whose levels follow from those of others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Generator {
    /// The factor, which comes behind all free ones.
    pub factor: usize,
    /// The free factors whose product it is.
    pub product: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// Its name, in titles and paths.
    pub name: String,
    pub title: String,
    pub question: String,
    /// The publication whose conclusions the claims test; empty when they are the study's own.
    pub source: String,
    /// The words that it is written in, and with them the kind of its target.
    #[serde(rename = "target")]
    pub vocabulary: Vocabulary,
    /// What every run does; none where the target's own sections say it.
    #[serde(serialize_with = "work_as_map")]
    pub work: Option<Work>,
    pub blocks: usize,
    /// What runs are compared by, unless a claim names another.
    pub measure: Measure,
    /// The smallest effect worth finding, a share.
    pub sought: f64,
    /// The error allowed to the whole study, a share.
    pub alpha: f64,
    /// How the order within a block is drawn.
    pub order: Order,
    /// Levels that set the same are meant: the program is compared with itself.
    pub expects_same: bool,
    /// Settings that all arms share.
    pub settings: Vec<Assignment>,
    /// What is varied; the first level of each is the reference.
    pub factors: Vec<Factor>,
    /// Factors that follow from others; none in a full design.
    pub generators: Vec<Generator>,
    pub claims: Vec<Claim>,
    pub bounds: Vec<Bound>,
    pub published: Option<Published>,
}

/// The workload with the values of its parameters.
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
    /// Rows of the data; 0 where the work has none.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.work.as_ref().map_or(0, Work::rows)
    }

    /// The rows that `--rows` could make fewer; 0 where the work does not take it.
    #[must_use]
    pub fn rows_asked(&self) -> RowCount {
        let takes = self.work.as_ref().is_some_and(|work| work.workload.parameter("rows").is_some());
        RowCount(if takes { self.rows() } else { 0 })
    }

    /// What is run, as it is shown.
    #[must_use]
    pub fn work_shown(&self) -> String {
        match &self.work {
            Some(work) => format!("{}, {} rows", work.workload.name, RowCount(work.rows())),
            None => format!("a {}", self.vocabulary.target()),
        }
    }

    /// The arms that its factors make.
    ///
    /// # Errors
    /// When there are too many, or the generators make no design.
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

    /// The name of the combination of these levels, such as `async=TRUE area=1M`.
    #[must_use]
    pub fn arm_name(&self, levels: &[usize]) -> String {
        let named = self.factors.iter().zip(levels);
        named
            .map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level].label))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Every setting with every value that the study gives it.
    pub fn all_settings(&self) -> impl Iterator<Item = &Assignment> {
        let levels = self.factors.iter().flat_map(|factor| &factor.levels);
        self.settings.iter().chain(levels.flat_map(|level| &level.settings))
    }

    /// The settings of the combination of these levels, those that all arms share first.
    #[must_use]
    pub fn arm_settings(&self, levels: &[usize]) -> Vec<Assignment> {
        let own = self.factors.iter().zip(levels).flat_map(|(factor, level)| &factor.levels[*level].settings);
        self.settings.iter().chain(own).cloned().collect()
    }
}
