//! The best level of an ordered factor, from the bundle of a study that has ended.
//!
//! The levels are in the order of the study file. The runs of a level are those of all arms that
//! have it, so other factors are averaged over. The measure of the study is maximised, or its
//! inverse where less is better; any other measure may have a limit. It is a reading of the runs
//! and no claim: [`crate::analysis`] tests.

use crate::bundle::Contents;
use crate::vocabulary::{Better, Measure};
use plumb_proof::knee::{self, Knee, KneeLevel, KneeSought};
use plumb_units::median;

/// Share of the highest rate that is enough.
const ENOUGH: f64 = 0.95;

/// Levels of a factor with their medians, and the best of them.
#[derive(Debug, Clone)]
pub struct BestLevel {
    pub factor: String,
    pub measure: Measure,
    /// Measure with a limit, and the limit in its unit.
    pub limited: Option<(Measure, f64)>,
    pub levels: Vec<LevelRow>,
    /// Places in `levels`; `None` if no level keeps the limit.
    pub knee: Option<Knee>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LevelRow {
    pub label: String,
    /// Median of the measure over blocks.
    pub median: f64,
    /// Median of the limited measure.
    pub limited: Option<f64>,
}

/// Returns the best level of a factor; `limit` is `MEASURE<=VALUE`.
///
/// # Errors
/// A sentence: the study has not ended, or lacks the factor or the measure.
pub fn best_level(contents: &Contents, factor: &str, limit: Option<&str>) -> Result<BestLevel, String> {
    let study = &contents.plan.study;
    if !contents.has_ended() {
        return Err(format!(
            "{} has not ended, and a look at its figures would be a test with a price",
            study.name
        ));
    }
    let place = study.factors.iter().position(|known| known.name == factor).ok_or_else(|| {
        let known: Vec<&str> = study.factors.iter().map(|known| known.name.as_str()).collect();
        format!("there is no factor {factor:?}; the study varies {}", known.join(", "))
    })?;
    let limited = limit.map(|limit| parse(contents, limit)).transpose()?;
    let measure = study.measure.clone();
    let figures = |measure: &Measure, level: usize| by_block(contents, measure, place, level);
    let levels = study.factors[place].levels.iter().enumerate();
    let found: Vec<(LevelRow, KneeLevel)> = levels
        .map(|(index, level)| {
            let values = figures(&measure, index);
            let limits = limited.as_ref().map(|(limited, _)| figures(limited, index));
            let row = LevelRow {
                label: level.label.clone(),
                median: median(&values),
                limited: limits.as_ref().map(|limits| median(limits)),
            };
            let gain = match measure.better {
                Better::Higher => values,
                Better::Lower => values.into_iter().map(|value| 1.0 / value).collect(),
            };
            (row, KneeLevel { gain, limited: limits.unwrap_or_default() })
        })
        .collect();
    let (rows, levels): (Vec<LevelRow>, Vec<KneeLevel>) = found.into_iter().unzip();
    let limit = limited.as_ref().map(|(_, limit)| *limit);
    let sought = KneeSought { share: ENOUGH, limit, seed: contents.plan.schedule.seed };
    let knee = knee::knee(&levels, &sought);
    Ok(BestLevel { factor: factor.to_string(), measure, limited, levels: rows, knee })
}

/// Parses a measure with the limit of its values, as `MEASURE<=VALUE`.
fn parse(contents: &Contents, limit: &str) -> Result<(Measure, f64), String> {
    let expected = || format!("{limit:?}: expected MEASURE<=VALUE, as in 'ms of cache reads<=2'");
    let (name, value) = limit.split_once("<=").ok_or_else(expected)?;
    let value: f64 = value.trim().parse().map_err(|_| expected())?;
    let vocabulary = &contents.plan.study.vocabulary;
    let measure = vocabulary.measure(name.trim()).ok_or_else(|| {
        format!("there is no measure {:?}; expected {}", name.trim(), vocabulary.measures())
    })?;
    Ok((measure, value))
}

/// Returns a measure over the runs of a level, for each block that has all its runs. A level with
/// one arm has one run in each block, so the reference's second run is left out: the median of
/// means of two is not the median of single runs, and the reference would lose to equal levels.
fn by_block(contents: &Contents, measure: &Measure, factor: usize, level: usize) -> Vec<f64> {
    let has_level = |arm: usize| {
        let arms = &contents.plan.design.arms;
        arms.get(arm).and_then(|levels| levels.get(factor)) == Some(&level)
    };
    let last = contents.runs.iter().filter_map(|run| run.block).max().unwrap_or(0);
    let mean = |block: u64| {
        let runs: Vec<_> = contents.runs.iter().filter(|run| run.block == Some(block)).collect();
        if runs.iter().any(|run| run.record.is_none()) {
            return None;
        }
        let again = contents.plan.schedule.reference_again();
        let own = runs.iter().filter(|run| has_level(run.arm_index) && run.slot != again);
        let values: Vec<f64> =
            own.filter_map(|run| run.record.as_ref()).map(|record| measure.value(record)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    (1..=last).filter_map(mean).collect()
}
