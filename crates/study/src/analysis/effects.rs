//! Main effects and two-factor interactions, for reading.
//!
//! A claim's comparison is left out, so that no reader has two answers to one question. The
//! rows of a table share the error: their intervals hold together in 95% of studies, and p is
//! corrected for their number. An effect has both runs of the reference, as that of a claim has.

use super::CONFIDENCE;
use super::seen::Seen;
use super::stability;
use crate::analysis::result::{Effect, Interaction, MainEffect};
use crate::definition::{Claim, Expectation};
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::{Change, Observations};
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

/// The comparison of a change, averaged over all other factors, or with a second one; none where
/// the study has a claim of it, or the design has no arms for it.
fn comparison(
    seen: &Seen<'_>,
    observations: &Observations,
    (change, with): (Change, Option<Change>),
) -> Option<Contrast> {
    let plan = &seen.contents.plan;
    let own = Claim {
        name: String::new(),
        text: String::new(),
        change,
        with,
        at: Vec::new(),
        expects: Expectation::Differs,
        measure: None,
        phase: None,
    };
    let is_claimed = |claim: &Claim| {
        claim.measure.as_ref().is_none_or(|measure| *measure == plan.study.measure)
            && is_between(claim, &own)
            && claim.all_arms(&plan.design) == own.all_arms(&plan.design)
    };
    let claimed = plan.study.claims.iter().any(is_claimed);
    if claimed { None } else { own.contrast(&plan.design, observations, plan.twice()).ok() }
}

/// True if two claims compare the same levels of the same factors, in either direction.
fn is_between(one: &Claim, other: &Claim) -> bool {
    let changes = |claim: &Claim| {
        let all = [Some(claim.change), claim.with].into_iter().flatten();
        let mut all: Vec<_> = all
            .map(|change| (change.factor, change.from.min(change.to), change.from.max(change.to)))
            .collect();
        all.sort_unstable();
        all
    };
    changes(one) == changes(other)
}

/// The effects of a table with their p. In a study that may stop, intervals hold at whatever block
/// it did, and there is no p: the only ones known are those of the claims' levels.
fn tested(seen: &Seen<'_>, contrasts: &[Contrast]) -> Vec<(Effect, Option<f64>)> {
    let (rows, looks) = (contrasts.len().max(1) as f64, seen.looks());
    let level = (1.0 - CONFIDENCE) / rows;
    let row = |contrast: &Contrast| {
        let p = (looks == Looks::Once)
            .then(|| (rows * looks.tails(contrast, 0.0, &[level]).two_sided()).min(1.0));
        let interval = looks.interval(contrast, Asks::Difference, level);
        (stability::effect(contrast.estimate(), interval, level), p)
    };
    contrasts.iter().map(row).collect()
}

pub(super) fn main_effects(seen: &Seen<'_>) -> Vec<MainEffect> {
    let Some(observations) = observed(seen) else { return Vec::new() };
    let plan = &seen.contents.plan;
    let of = |change: Change| Some((change, comparison(seen, &observations, (change, None))?));
    let (changes, contrasts): (Vec<Change>, Vec<Contrast>) = changes(seen).into_iter().filter_map(of).unzip();
    let row = |(change, (effect, p)): (&Change, (Effect, Option<f64>))| {
        let factor = &plan.study.factors[change.factor];
        MainEffect {
            factor: factor.name.clone(),
            from: factor.levels[change.from].label.clone(),
            to: factor.levels[change.to].label.clone(),
            effect,
            p,
        }
    };
    changes.iter().zip(tested(seen, &contrasts)).map(row).collect()
}

pub(super) fn interactions(seen: &Seen<'_>) -> Vec<Interaction> {
    let Some(observations) = observed(seen) else { return Vec::new() };
    let plan = &seen.contents.plan;
    let changes = changes(seen);
    let named = |change: &Change| {
        let factor = &plan.study.factors[change.factor];
        format!("{} {} -> {}", factor.name, factor.levels[change.from].label, factor.levels[change.to].label)
    };
    let (mut pairs, mut contrasts) = (Vec::new(), Vec::new());
    for (index, first) in changes.iter().enumerate() {
        for second in changes[index + 1..].iter().filter(|second| second.factor != first.factor) {
            // In a fraction not every pair has arms at all four corners.
            if let Some(contrast) = comparison(seen, &observations, (*first, Some(*second))) {
                pairs.push((named(first), named(second)));
                contrasts.push(contrast);
            }
        }
    }
    let rows = pairs.into_iter().zip(tested(seen, &contrasts));
    rows.map(|((first, second), (effect, p))| Interaction { first, second, effect, p }).collect()
}
