//! The canary: how steady the machine was, and the share of the noise that its times explain.
//!
//! The two times (a fixed loop, fixed reads) are covariates that every study with a fixed number of
//! blocks registers before its first run. The better one adjusts the comparisons if it explains a
//! quarter of the noise within blocks and arms (`proof::covariate`). A study that stops when it is
//! decided reads its figures after each block. A fit that changes with every look would change
//! figures already read, so there the canary is only shown.
//!
//! A canary that changes its level reports a changed machine. Blocks absorb a change under which
//! the treatment's effect stays the same. Nothing supports that assumption after a change by
//! [`MOVES`] or more, so the claims become UNSTABLE. Change points of one figure a block need
//! fourteen blocks (`proof::change_point`). With eight to thirteen blocks, a step is searched in
//! the canary of each run.

use super::result::{CanaryFigure, Explains, LevelChange};
use super::used_blocks::UsedBlocks;
use crate::bundle::RunRecord;
use crate::canary::Canary;
use crate::plan::Until;
use plumb_proof::change_point::{self, Search};
use plumb_proof::covariate::Explained;
use plumb_proof::effect::Observations;
use plumb_proof::verdict::ArmChange;

/// Change of level, as a ratio, from which on claims over both levels are UNSTABLE.
const MOVES: f64 = 1.2;

/// One time of the canary, by block and slot.
pub(super) struct Series {
    what: &'static str,
    pub(super) times: Observations,
}

/// Returns the canary's times over the used blocks; none if a run lacks one.
pub(super) fn series(used: &UsedBlocks<'_>) -> Vec<Series> {
    type Time = fn(&Canary) -> Option<u64>;
    let times: [(&str, Time); 2] = [
        ("fixed processor work", |canary| Some(canary.cpu_ns)),
        ("fixed device reads", |canary| canary.read_ns),
    ];
    let of = |(what, time): (&'static str, Time)| {
        let figure = |run: &&RunRecord| Some(time(&run.settled.canary?)? as f64);
        let rows: Option<Vec<Vec<f64>>> =
            used.blocks.iter().map(|(_, runs)| runs.iter().map(figure).collect()).collect();
        let slots = used.contents.plan.schedule.slots();
        Some(Series { what, times: Observations::new(slots, &rows.filter(|rows| !rows.is_empty())?).ok()? })
    };
    times.into_iter().filter_map(of).collect()
}

/// Returns the time that serves as a covariate of these figures, if one
/// explains enough of their noise.
pub(super) fn best<'a>(until: Until, series: &'a [Series], figures: &Observations) -> Option<&'a Series> {
    let explained = series.iter().filter_map(|canary| Some((Explained::of(figures, &canary.times)?, canary)));
    let best = explained.max_by(|(one, _), (other, _)| one.share.total_cmp(&other.share))?;
    (until == Until::Blocks && best.0.helps()).then_some(best.1)
}

/// Returns the canary's figures for the report. `figures` are unadjusted values
/// of the study's own measure.
pub(super) fn figures(until: Until, series: &[Series], figures: Option<&Observations>) -> Vec<CanaryFigure> {
    let covariate = figures.and_then(|figures| best(until, series, figures)).map(|canary| canary.what);
    let row = |canary: &Series| {
        let mut times: Vec<f64> = canary.times.logs().iter().flatten().map(|log| log.exp()).collect();
        times.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        CanaryFigure {
            what: canary.what.to_string(),
            median_ns: at(0.5) as u64,
            low_ns: at(0.05) as u64,
            high_ns: at(0.95) as u64,
            explains: figures.and_then(|figures| Explained::of(figures, &canary.times)).map(Explains::from),
            adjusted: covariate == Some(canary.what),
        }
    };
    series.iter().map(row).collect()
}

pub(super) fn changes(used: &UsedBlocks<'_>, series: &[Series]) -> Vec<LevelChange> {
    let search = Search::usual(used.contents.plan.schedule.seed);
    found(series, &search)
        .into_iter()
        .map(|(what, change)| LevelChange {
            arm: "the canary".to_string(),
            series: what.to_string(),
            block: used.first_block_of(&change),
            ratio: change.shift.exp(),
            p: change.p,
        })
        .collect()
}

/// Returns changes so large that the machine counts as another one.
pub(super) fn moves(seed: u64, series: &[Series]) -> Vec<ArmChange> {
    let search = Search { shift: MOVES.ln(), ..Search::usual(seed) };
    let row = |(what, change)| ArmChange { arm: format!("the canary ({what})"), change };
    found(series, &search).into_iter().map(row).collect()
}

fn found(series: &[Series], search: &Search) -> Vec<(&'static str, change_point::ChangePoint)> {
    let mean = |block: &Vec<f64>| block.iter().sum::<f64>() / block.len() as f64;
    let by_block = |canary: &Series| {
        let what = canary.what;
        let blocks = canary.times.logs();
        let changes = if blocks.len() < search.values_needed() {
            Vec::from_iter(change_point::step(blocks, search))
        } else {
            change_point::find(&blocks.iter().map(mean).collect::<Vec<f64>>(), search)
        };
        changes.into_iter().map(move |change| (what, change))
    };
    series.iter().flat_map(by_block).collect()
}
