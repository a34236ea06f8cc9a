//! Stability of the machine: noise of the reference against itself, order of execution, changes.

use super::result::{CanaryFigure, Effect, LevelChange, NoiseFloor, StolenFigure};
use super::seen::Seen;
use super::{CONFIDENCE, canary, stolen};
use plumb_proof::change_point::{self, Search};
use plumb_proof::effect::Observations;
use plumb_proof::noise::Floor;
use plumb_proof::order::{self, OrderReport};
use plumb_proof::signed_rank;

/// Number of blocks below which neither noise nor order can be tested.
const BLOCKS_MIN: usize = 2;

/// Tests of stability, on the study's own measure.
pub(super) struct Stability {
    observations: Option<Observations>,
    pub(super) order: Option<OrderReport>,
}

impl Stability {
    pub(super) fn of(seen: &Seen<'_>) -> Stability {
        let plan = &seen.contents.plan;
        let observations = seen.measured(&plan.study.measure).ok();
        let observations = observations.filter(|found| found.blocks() >= BLOCKS_MIN);
        let order = observations.as_ref().map(|found| order::test(found, &seen.orders(), plan.schedule.seed));
        Stability { observations, order }
    }

    pub(super) fn floor(&self, seen: &Seen<'_>) -> Option<NoiseFloor> {
        let plan = &seen.contents.plan;
        let observations = self.observations.as_ref()?;
        let floor = reference_floor(seen, observations);
        let (first, again) = (plan.schedule.reference, plan.schedule.reference_again());
        let ratios = observations.log_ratios(again, first).ok()?;
        let interval = signed_rank::interval(&ratios, 1.0 - CONFIDENCE);
        Some(NoiseFloor {
            floor,
            aa: Some(effect(signed_rank::estimate(&ratios), interval, 1.0 - CONFIDENCE)),
            aa_p: Some(signed_rank::p(&ratios)),
        })
    }

    /// Searches changes of level in the reference's own figures, and in every
    /// other arm's ratio to it.
    pub(super) fn changes(&self, seen: &Seen<'_>) -> Vec<LevelChange> {
        let plan = &seen.contents.plan;
        let Some(observations) = &self.observations else { return Vec::new() };
        let search = Search::usual(plan.schedule.seed);
        let mut changes = Vec::new();
        for arm in 0..plan.schedule.arms {
            let (series, name) = if arm == plan.schedule.reference {
                (observations.series(arm), "its own figures")
            } else {
                (observations.log_ratios(arm, plan.schedule.reference), "its ratio to the reference")
            };
            let found = series.map(|series| change_point::find(&series, &search)).unwrap_or_default();
            changes.extend(found.into_iter().map(|change| LevelChange {
                arm: plan.arm_name(arm),
                series: name.to_string(),
                block: seen.blocks.get(change.index).map_or(0, |(block, _)| *block),
                ratio: change.shift.exp(),
                p: change.p,
            }));
        }
        changes.extend(canary::changes(seen));
        changes
    }

    /// Processor time given to other guests, related to the noise of the study's own measure.
    pub(super) fn stolen(&self, seen: &Seen<'_>) -> Option<StolenFigure> {
        stolen::figure(seen, self.observations.as_ref())
    }

    /// Times of the canary, related to the noise of the study's own measure.
    pub(super) fn canary(&self, seen: &Seen<'_>) -> Vec<CanaryFigure> {
        canary::figures(seen, self.observations.as_ref())
    }
}

/// Noise of the reference's two runs; of unknown size below two blocks.
pub(super) fn reference_floor(seen: &Seen<'_>, observations: &Observations) -> Floor {
    let schedule = &seen.contents.plan.schedule;
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
