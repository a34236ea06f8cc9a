//! A study given by values instead of a file: a workload and its factors.
//!
//! The values become a draft, as the text of a file does, so one parser checks both. An error names
//! the option of a value instead of a line.

use super::Study;
use super::draft::{Draft, DraftClaim, DraftValue, StudyFileError};
use super::file::{ALPHA, BLOCKS_MAX};
use crate::vocabulary::{TargetKind, Vocabulary};
use plumb_proof::randomisation::blocks_needed;
use plumb_workload::Work;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

/// A name with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The option with the value, as `--set x=1`.
    pub origin: String,
    /// The name of a setting or a parameter.
    pub name: String,
    pub value: String,
}

/// A setting with its levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varied {
    /// The option with the values.
    pub origin: String,
    /// The setting, which gives the factor its name.
    pub setting: String,
    /// At least two; the first is the reference.
    pub values: Vec<String>,
    /// The expectation of each value against the reference, as in a claim of a file.
    pub expect: String,
}

/// A workload with the factors of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inline {
    pub workload: String,
    /// Parameters that all runs share.
    pub parameters: Vec<Given>,
    /// Settings that all runs share.
    pub settings: Vec<Given>,
    /// The factors, which are crossed.
    pub factors: Vec<Varied>,
    /// The figure for the comparison of runs; without it the workload's own.
    pub measure: Option<Given>,
    /// True if equal levels are intended.
    pub expects_same: bool,
}

/// Fewest blocks of a study.
const BLOCKS: usize = 10;
/// Most characters of a composed name.
const NAME_CHARACTERS: usize = 64;

/// Checks a study given by values. Fails with the first fault and its origin.
pub fn inline(asked: &Inline, kind: &'static dyn TargetKind) -> Result<Study, StudyFileError> {
    let vocabulary = kind.vocabulary(Deserializer::from(Spanned::new(0..0, DeTable::new())));
    let vocabulary = vocabulary.map_err(|refusal| StudyFileError::new(refusal.what))?;
    let own = format!("plumb study {}", asked.workload);
    let names: Vec<&str> = asked.factors.iter().map(|factor| factor.setting.as_str()).collect();
    let measure = measure_of(asked, &vocabulary);
    let judged = measure.as_ref().map_or("elapsed", |(_, name)| name);
    let question = format!("Does {} matter for {judged} of {}?", names.join(" or "), asked.workload);
    let blocks = blocks(asked).to_string();
    let mut draft = Draft::stated(&own);
    draft.set(&own, "name", short(&format!("{}-{}", asked.workload, names.join("-"))).as_str());
    draft.set(&own, "title", format!("{} by {}", asked.workload, names.join(", ")).as_str());
    draft.set(&own, "question", question.as_str());
    draft.set(&own, "workload", asked.workload.as_str());
    draft.set(&own, "blocks", DraftValue::Number(&blocks));
    if let Some((origin, name)) = measure {
        draft.set(origin.unwrap_or(&own), "statistic", name);
    }
    if asked.expects_same {
        draft.set("--same", "expects", "same");
    }
    for (table, given) in [("parameters", &asked.parameters), ("settings", &asked.settings)] {
        for Given { origin, name, value } in given {
            draft.set_in(origin, table, name, value.as_str());
        }
    }
    asked.factors.iter().for_each(|factor| state(&mut draft, factor));
    claims(&mut draft, &asked.factors);
    draft.check(&[kind])
}

/// Returns the measure with its option: the requested one, otherwise the workload's own. A
/// workload that runs for a time has operations a second; others have the elapsed time (`None`).
/// With a fixed arrival rate the number of operations is fixed, so their time is compared.
fn measure_of<'a>(asked: &'a Inline, vocabulary: &Vocabulary) -> Option<(Option<&'a str>, &'a str)> {
    if let Some(given) = &asked.measure {
        return Some((Some(&given.origin), &given.value));
    }
    let workload = vocabulary.workloads().iter().find(|workload| workload.name == asked.workload)?;
    workload.parameter("run-time")?;
    let mut work = Work::of(workload);
    // An error is ignored here, because the reader of the draft reports it.
    asked.parameters.iter().for_each(|given| drop(work.set(&given.name, &given.value)));
    let name = match (work.value("work-loop"), work.value("rate")) {
        (Some(1..), _) => return None,
        (_, Some(1..)) => "db time per execute count",
        _ => "execute count/s",
    };
    Some((None, name))
}

/// Returns the fewest blocks that can prove something with this number of claims.
fn blocks(asked: &Inline) -> i64 {
    let claims: usize = asked.factors.iter().map(|factor| factor.values.len().saturating_sub(1)).sum();
    let blocks = BLOCKS.max(blocks_needed(ALPHA, claims.max(1)));
    i64::try_from(blocks).map_or(BLOCKS_MAX, |blocks| blocks.min(BLOCKS_MAX))
}

fn state(draft: &mut Draft<'_>, factor: &Varied) {
    let levels = factor.values.iter().map(|value| DraftValue::from(value.as_str())).collect();
    let setting = DraftValue::from(factor.setting.as_str());
    let rows = [("name", setting.clone()), ("setting", setting), ("levels", DraftValue::List(levels))];
    draft.push(&factor.origin, "factor", rows);
}

/// States a claim for each value against the reference.
fn claims(draft: &mut Draft<'_>, factors: &[Varied]) {
    let mut names: Vec<String> = Vec::new();
    for factor in factors {
        let Some((reference, others)) = factor.values.split_first() else { continue };
        for value in others {
            let mut name = short(&format!("{}-{value}", factor.setting));
            if names.contains(&name) {
                name = short(&format!("{}-{}-{value}", names.len() + 1, factor.setting));
            }
            let text = format!("{0}={value} against {0}={reference}.", factor.setting);
            let claim = DraftClaim {
                name: &name,
                text: &text,
                factor: &factor.setting,
                from: reference,
                to: value,
                expect: &factor.expect,
            };
            draft.push_claim(&factor.origin, &claim);
            names.push(name);
        }
    }
}

/// Returns a text in the form of a name: other characters become `_`, and a long text is cut.
fn short(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    text.chars().take(NAME_CHARACTERS).map(|letter| if plain(letter) { letter } else { '_' }).collect()
}
