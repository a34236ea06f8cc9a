//! A study stated in values instead of a file: a workload and the settings to vary.
//!
//! The values become the same raw form as a file's text, so one reader checks both. An error names
//! the option that a value comes from in place of a line.

use super::{
    ALPHA, Age, BLOCKS_MAX, Place, RawClaim, RawFactor, RawStudy, Reader, Study, StudyFileError, Text, Word,
};
use crate::vocabulary::{TargetKind, Vocabulary};
use plumb_proof::randomisation::blocks_needed;
use plumb_workload::Work;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The option that gives it, as `--set x=1`.
    pub origin: String,
    /// Name of a setting or a parameter.
    pub name: String,
    pub value: String,
}

/// A setting with the values to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    /// The option that gives it.
    pub origin: String,
    /// Name of the setting and of its factor.
    pub setting: String,
    /// At least two; the first is the reference.
    pub values: Vec<String>,
    /// Expectation of each value against the reference, as in a claim of a file.
    pub expect: String,
}

/// A workload and the settings to vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline {
    pub workload: String,
    pub parameters: Vec<Stated>,
    pub settings: Vec<Stated>,
    /// Factors; all combinations of their values run.
    pub factors: Vec<Varied>,
    /// Measure of the comparison; the workload's own if `None`.
    pub measure: Option<Stated>,
    /// True if values with equal effect are allowed.
    pub expects_same: bool,
}

/// Blocks of a study with few claims.
const BLOCKS: usize = 10;
/// Largest number of characters of a composed name.
const NAME_CHARACTERS: usize = 64;

/// Checks a study stated in values.
///
/// # Errors
/// The first error, with its origin.
pub fn inline(asked: &Inline, kind: &dyn TargetKind) -> Result<Study, StudyFileError> {
    let vocabulary = kind.vocabulary(Deserializer::from(Spanned::new(0..0, DeTable::new())));
    let vocabulary = vocabulary.map_err(|refusal| StudyFileError(refusal.what))?;
    let mut origins = Origins(vec![format!("plumb study {}", asked.workload)]);
    let raw = raw(asked, &vocabulary, &mut origins);
    let of_span = |span: Range<usize>| origins.0.get(span.start).cloned().unwrap_or_default();
    Reader { place: Place(&of_span), vocabulary, age: Age::New }.study(&raw)
}

/// Origins of values; a span is an index into them.
struct Origins(Vec<String>);

impl Origins {
    /// Wraps a value with its origin.
    fn of<T>(&mut self, origin: &str, value: T) -> Spanned<T> {
        let known = self.0.iter().position(|known| known == origin);
        let place = known.unwrap_or_else(|| {
            self.0.push(origin.to_string());
            self.0.len() - 1
        });
        Spanned::new(place..place, value)
    }

    fn pair(&mut self, stated: &Stated) -> (Text, Spanned<Word>) {
        let name = self.of(&stated.origin, stated.name.clone());
        (name, self.of(&stated.origin, Word::Text(stated.value.clone())))
    }
}

fn raw(asked: &Inline, vocabulary: &Vocabulary, origins: &mut Origins) -> RawStudy {
    let own = origins.0[0].clone();
    let names: Vec<&str> = asked.factors.iter().map(|factor| factor.setting.as_str()).collect();
    let name = short(&format!("{}-{}", asked.workload, names.join("-")));
    let measure = asked.measure.clone().or_else(|| {
        let name = measure_of(asked, vocabulary)?.to_string();
        Some(Stated { origin: own.clone(), name: String::new(), value: name })
    });
    let judged = measure.as_ref().map_or("elapsed", |measure| measure.value.as_str());
    RawStudy {
        name: origins.of(&own, name),
        title: format!("{} by {}", asked.workload, names.join(", ")),
        question: format!("Does {} matter for {judged} of {}?", names.join(" or "), asked.workload),
        source: String::new(),
        workload: Some(origins.of(&own, asked.workload.clone())),
        rows: None,
        data_seed: None,
        parameters: asked.parameters.iter().map(|stated| origins.pair(stated)).collect(),
        blocks: origins.of(&own, toml::Value::Integer(blocks(asked))),
        statistic: measure.map(|measure| origins.of(&measure.origin, measure.value)),
        sought: None,
        order: None,
        expects: asked.expects_same.then(|| origins.of("--same", "same".to_string())),
        settings: asked.settings.iter().map(|stated| origins.pair(stated)).collect(),
        factor: asked.factors.iter().map(|factor| raw_factor(factor, origins)).collect(),
        generator: Vec::new(),
        claim: claims(&asked.factors, origins),
        bound: Vec::new(),
        published: None,
    }
}

/// Returns the default measure of a workload: operations per second if it runs for a given time,
/// otherwise the elapsed time (`None`). If operations arrive at a given rate, their number is
/// fixed, so their time is compared.
fn measure_of(asked: &Inline, vocabulary: &Vocabulary) -> Option<&'static str> {
    let workload = vocabulary.workloads().iter().find(|workload| workload.name == asked.workload)?;
    workload.parameter("run-time")?;
    let mut work = Work::of(workload);
    // The reader reports these errors.
    asked.parameters.iter().for_each(|stated| drop(work.set(&stated.name, &stated.value)));
    match (work.value("work-loop"), work.value("rate")) {
        (Some(1..), _) => None,
        (_, Some(1..)) => Some("db time per execute count"),
        _ => Some("execute count/s"),
    }
}

/// Returns the number of blocks that can prove one of these claims.
fn blocks(asked: &Inline) -> i64 {
    let claims: usize = asked.factors.iter().map(|factor| factor.values.len().saturating_sub(1)).sum();
    let blocks = BLOCKS.max(blocks_needed(ALPHA, claims.max(1)));
    i64::try_from(blocks).map_or(BLOCKS_MAX, |blocks| blocks.min(BLOCKS_MAX))
}

fn raw_factor(factor: &Varied, origins: &mut Origins) -> RawFactor {
    let name = origins.of(&factor.origin, factor.setting.clone());
    let level = |value: &String| origins.of(&factor.origin, toml::Value::String(value.clone()));
    RawFactor { setting: Some(name.clone()), levels: factor.values.iter().map(level).collect(), name }
}

/// Makes a claim for each value except the reference.
fn claims(factors: &[Varied], origins: &mut Origins) -> Vec<RawClaim> {
    let mut claims: Vec<RawClaim> = Vec::new();
    for factor in factors {
        let Some((reference, others)) = factor.values.split_first() else { continue };
        for value in others {
            let mut name = short(&format!("{}-{value}", factor.setting));
            if claims.iter().any(|claim| *claim.name.get_ref() == name) {
                name = short(&format!("{}-{}-{value}", claims.len() + 1, factor.setting));
            }
            let word = |text: &String| Word::Text(text.clone());
            claims.push(RawClaim {
                name: origins.of(&factor.origin, name),
                text: format!("{0}={value} against {0}={reference}.", factor.setting),
                factor: origins.of(&factor.origin, factor.setting.clone()),
                from: origins.of(&factor.origin, word(reference)),
                to: origins.of(&factor.origin, word(value)),
                with: None,
                at: super::Words::new(),
                expect: origins.of(&factor.origin, factor.expect.clone()),
                statistic: None,
                phase: None,
            });
        }
    }
    claims
}

/// Makes a name of a text: invalid characters become `_`, and it is cut to length.
fn short(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.chars().take(NAME_CHARACTERS).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}
