//! Main effects and two-factor interactions, for reading: only claims are corrected for.

use super::CONFIDENCE;
use super::seen::Seen;
use super::stability;
use crate::analysis::result::{Effect, Interaction, MainEffect};
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::{self, Change, Observations};
use plumb_proof::family::{Asks, Looks};

/// Every factor moved from its reference to each of its other levels.
fn changes(seen: &Seen<'_>) -> Vec<Change> {
    let factors = seen.contents.plan.study.factors.iter().enumerate();
    factors
        .flat_map(|(factor, given)| (1..given.levels.len()).map(move |to| Change { factor, from: 0, to }))
        .collect()
}

fn observed(seen: &Seen<'_>) -> Option<Observations> {
    let observations = seen.observations(&seen.contents.plan.study.measure).ok()?;
    (observations.blocks() > 0).then_some(observations)
}

/// An effect with its p. In a study that may stop, the interval holds at whatever block it did, and there is no p: the only
/// ones known are those of the claims' levels.
fn tested(seen: &Seen<'_>, differences: &[f64]) -> (Effect, Option<f64>) {
    let (contrast, level) = (Contrast::of_differences(differences), 1.0 - CONFIDENCE);
    let looks = seen.looks();
    let p = (looks == Looks::Once).then(|| looks.tails(&contrast, 0.0, &[level]).two_sided());
    (stability::effect(contrast.estimate(), looks.interval(&contrast, Asks::Difference, level), level), p)
}

pub(super) fn main_effects(seen: &Seen<'_>) -> Vec<MainEffect> {
    let Some(observations) = observed(seen) else { return Vec::new() };
    let plan = &seen.contents.plan;
    let row = |change: Change| {
        let differences = effect::main_effect(&plan.design, &observations, change).ok()?;
        let (effect, p) = tested(seen, &differences);
        let factor = &plan.study.factors[change.factor];
        Some(MainEffect {
            factor: factor.name.clone(),
            from: factor.levels[change.from].label.clone(),
            to: factor.levels[change.to].label.clone(),
            effect,
            p,
        })
    };
    changes(seen).into_iter().filter_map(row).collect()
}

pub(super) fn interactions(seen: &Seen<'_>) -> Vec<Interaction> {
    let Some(observations) = observed(seen) else { return Vec::new() };
    let plan = &seen.contents.plan;
    let changes = changes(seen);
    let named = |change: &Change| {
        let factor = &plan.study.factors[change.factor];
        format!("{} {} -> {}", factor.name, factor.levels[change.from].label, factor.levels[change.to].label)
    };
    let mut rows = Vec::new();
    for (index, first) in changes.iter().enumerate() {
        for second in changes[index + 1..].iter().filter(|second| second.factor != first.factor) {
            // In a fraction not every pair has arms at all four corners.
            let Ok(differences) = effect::interaction(&plan.design, &observations, *first, *second) else {
                continue;
            };
            let (effect, p) = tested(seen, &differences);
            rows.push(Interaction { first: named(first), second: named(second), effect, p });
        }
    }
    rows
}
