//! Stability of the machine: noise of the reference against itself, order of execution, changes.

use super::figures::Figures;
use super::result::{CanaryFigure, Effect, LevelChange, NoiseFloor, StolenFigure};
use super::used_blocks::UsedBlocks;
use super::{CONFIDENCE, canary, steal_time};
use crate::plan::Plan;
use plumb_proof::change_point::{self, Search};
use plumb_proof::effect::Observations;
use plumb_proof::noise::Floor;
use plumb_proof::order::{self, OrderReport};
use plumb_proof::signed_rank;
use plumb_proof::verdict::ArmChange;

/// Number of blocks below which neither noise nor order can be tested.
const BLOCKS_MIN: usize = 2;

/// Results of the tests of stability, on the study's own measure; empty for a study that may go on.
#[derive(Default)]
pub(super) struct Stability {
    pub(super) order: Option<OrderReport>,
    pub(super) floor: Option<NoiseFloor>,
    pub(super) changes: Vec<LevelChange>,
    /// Changes of the canary so large that the machine counts as another one.
    pub(super) moves: Vec<ArmChange>,
    pub(super) canary: Vec<CanaryFigure>,
    pub(super) steal_time: Option<StolenFigure>,
    /// p of the reference against itself, the covariate included.
    pub(super) reference_p: Option<f64>,
}

impl Stability {
    pub(super) fn of(figures: &Figures<'_>) -> Stability {
        let (plan, used) = (figures.plan(), figures.used);
        let seed = plan.schedule.seed;
        let own = figures.measured(&plan.study.measure).ok();
        let own = own.filter(|found| found.blocks() >= BLOCKS_MIN);
        let mut changes = own.as_ref().map_or_else(Vec::new, |own| changes_of_arms(used, own));
        if own.is_some() {
            changes.extend(canary::changes(used, &figures.canary));
        }
        Stability {
            order: own.as_ref().map(|own| order::test(own, &used.orders(), seed)),
            floor: own.as_ref().and_then(|own| floor(plan, own)),
            changes,
            moves: canary::moves(seed, &figures.canary),
            canary: canary::figures(plan.until, &figures.canary, own.as_ref()),
            steal_time: steal_time::figure(used, own.as_ref()),
            reference_p: reference_p(figures),
        }
    }
}

fn floor(plan: &Plan, own: &Observations) -> Option<NoiseFloor> {
    let ratios = own.log_ratios(plan.schedule.reference_again(), plan.schedule.reference).ok()?;
    let interval = signed_rank::interval(&ratios, 1.0 - CONFIDENCE);
    Some(NoiseFloor {
        floor: reference_floor(plan, own),
        aa: Some(effect(signed_rank::estimate(&ratios), interval, 1.0 - CONFIDENCE)),
        aa_p: Some(signed_rank::p(&ratios)),
    })
}

fn reference_p(figures: &Figures<'_>) -> Option<f64> {
    let plan = figures.plan();
    let observations = figures.observations(&plan.study.measure).ok()?;
    let (first, again) = (plan.schedule.reference, plan.schedule.reference_again());
    Some(signed_rank::p(&observations.log_ratios(again, first).ok()?))
}

/// Searches changes of level in the reference's own figures, and in every
/// other arm's ratio to it.
fn changes_of_arms(used: &UsedBlocks<'_>, own: &Observations) -> Vec<LevelChange> {
    let plan = &used.contents.plan;
    let search = Search::usual(plan.schedule.seed);
    let mut changes = Vec::new();
    for arm in 0..plan.schedule.arms {
        let (series, name) = if arm == plan.schedule.reference {
            (own.series(arm), "its own figures")
        } else {
            (own.log_ratios(arm, plan.schedule.reference), "its ratio to the reference")
        };
        let found = series.map(|series| change_point::find(&series, &search)).unwrap_or_default();
        changes.extend(found.into_iter().map(|change| LevelChange {
            arm: plan.arm_name(arm),
            series: name.to_string(),
            block: used.first_block_of(&change),
            ratio: change.shift.exp(),
            p: change.p,
        }));
    }
    changes
}

/// Noise of the reference's two runs; of unknown size below two blocks.
fn reference_floor(plan: &Plan, observations: &Observations) -> Floor {
    let schedule = &plan.schedule;
    let series = |slot| observations.series(slot).unwrap_or_default();
    Floor::of(&series(schedule.reference), &series(schedule.reference_again()))
}

/// Converts logarithms of ratios to the effect of a report; an infinite end is `None`.
pub(super) fn effect(estimate: f64, interval: plumb_proof::interval::Interval, level: f64) -> Effect {
    let end = |log: f64| log.is_finite().then(|| log.exp());
    Effect {
        ratio: estimate.exp(),
        low: end(interval.low),
        high: end(interval.high),
        confidence: 1.0 - level,
    }
}
