//! A study that is stated in values instead of a file: a workload and what is varied of it.
//!
//! The values become what a file's text becomes, so one reader checks both. A refusal names the
//! option that a value comes from in place of a line.

use super::{
    ALPHA, Age, BLOCKS_MAX, Place, RawClaim, RawFactor, RawStudy, Reader, Study, StudyFileError, Text, Word,
};
use crate::vocabulary::{TargetKind, Vocabulary};
use plumb_proof::randomisation::blocks_needed;
use plumb_workload::Work;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// A name with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The option that it comes from, as `--set x=1`.
    pub origin: String,
    /// The name of a setting or a parameter.
    pub name: String,
    pub value: String,
}

/// A setting with the values that it takes in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    /// The option that it comes from.
    pub origin: String,
    /// The setting, whose name the factor has.
    pub setting: String,
    /// At least two; the first is the reference.
    pub values: Vec<String>,
    /// The expectation of each value against the reference, as in a claim of a file.
    pub expect: String,
}

/// A workload and what is varied of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline {
    pub workload: String,
    /// Parameters that all runs share.
    pub parameters: Vec<Stated>,
    /// Settings that all runs share.
    pub settings: Vec<Stated>,
    /// The factors, which are crossed.
    pub factors: Vec<Varied>,
    /// The figure that runs are compared by; without it the workload's own.
    pub measure: Option<Stated>,
    /// True if values that come to the same are meant.
    pub expects_same: bool,
}

/// Blocks of a study of few claims.
const BLOCKS: usize = 10;
/// Characters of a name that is made of others.
const NAME_CHARACTERS: usize = 64;

/// Checks a study that is stated in values.
///
/// # Errors
/// The first thing that is wrong, with its origin.
pub fn inline(asked: &Inline, kind: &dyn TargetKind) -> Result<Study, StudyFileError> {
    let vocabulary = kind.vocabulary(Deserializer::from(Spanned::new(0..0, DeTable::new())));
    let vocabulary = vocabulary.map_err(|refusal| StudyFileError(refusal.what))?;
    let mut origins = Origins(vec![format!("plumb study {}", asked.workload)]);
    let raw = raw(asked, &vocabulary, &mut origins);
    let of_span = |span: Range<usize>| origins.0.get(span.start).cloned().unwrap_or_default();
    Reader { place: Place(&of_span), vocabulary, age: Age::New }.study(&raw)
}

/// The origins of values, in the order of their spans.
struct Origins(Vec<String>);

impl Origins {
    /// A value that comes from there.
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

/// Returns the default measure of a workload: operations a second of one that goes on for a time,
/// otherwise the elapsed time (none). Where operations arrive at a rate their number is given, so
/// their time is compared.
fn measure_of(asked: &Inline, vocabulary: &Vocabulary) -> Option<&'static str> {
    let workload = vocabulary.workloads().iter().find(|workload| workload.name == asked.workload)?;
    workload.parameter("run-time")?;
    let mut work = Work::of(workload);
    // What is refused is refused by the reader.
    asked.parameters.iter().for_each(|stated| drop(work.set(&stated.name, &stated.value)));
    match (work.value("work-loop"), work.value("rate")) {
        (Some(1..), _) => None,
        (_, Some(1..)) => Some("db time per execute count"),
        _ => Some("execute count/s"),
    }
}

/// As many blocks as can prove something of so many claims.
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

/// A claim for each value beside the reference.
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

/// A text as a name: what cannot stand in one becomes `_`, and what is too long is cut.
fn short(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.chars().take(NAME_CHARACTERS).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}
