//! Main effects and two-factor interactions, for information.
//!
//! A comparison that a claim makes is left out, so that no question has two answers. The rows of a
//! table share the error: their intervals hold together in 95% of studies, and p is corrected for
//! their number. As in a claim, an effect uses both runs of the reference.

use super::CONFIDENCE;
use super::figures::Figures;
use super::stability;
use crate::analysis::result::{Effect, Interaction, MainEffect};
use crate::definition::{Claim, Expectation, Of};
use crate::plan::Plan;
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::{Change, Observations};
use plumb_proof::family::{Asks, Looks};

/// Every change from a factor's reference level to another of its levels.
fn changes(plan: &Plan) -> Vec<Change> {
    let factors = plan.study.factors.iter().enumerate();
    factors
        .flat_map(|(factor, given)| (1..given.levels.len()).map(move |to| Change { factor, from: 0, to }))
        .collect()
}

fn observed(figures: &Figures<'_>) -> Option<Observations> {
    let observations = figures.observations(&figures.plan().study.measure).ok()?;
    (observations.blocks() > 0).then_some(observations)
}

/// Returns the comparison of a change, averaged over all other factors, or with a second change.
/// `None` if a claim of the study makes it, or the design has no arms for it.
fn comparison(
    plan: &Plan,
    observations: &Observations,
    change: Change,
    with: Option<Change>,
) -> Option<Contrast> {
    let own = Claim {
        name: String::new(),
        text: String::new(),
        change,
        with,
        at: Vec::new(),
        expects: Expectation::Differs,
        of: Of::Typical,
        measure: None,
        phase: None,
    };
    let is_claimed = |claim: &Claim| {
        claim.of != Of::P95
            && claim.measure.as_ref().is_none_or(|measure| *measure == plan.study.measure)
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

/// Returns the effects of a table with their p. In a study that may stop early, intervals hold at
/// any block, and p is unknown: only the claims' levels are tested.
fn tested(looks: Looks, contrasts: &[Contrast]) -> Vec<(Effect, Option<f64>)> {
    let rows = contrasts.len().max(1) as f64;
    let level = (1.0 - CONFIDENCE) / rows;
    let row = |contrast: &Contrast| {
        let p = (looks == Looks::Once)
            .then(|| (rows * looks.tails(contrast, 0.0, &[level]).two_sided()).min(1.0));
        let interval = looks.interval(contrast, Asks::Difference, level);
        (stability::effect(contrast.estimate(), interval, level), p)
    };
    contrasts.iter().map(row).collect()
}

pub(super) fn main_effects(figures: &Figures<'_>) -> Vec<MainEffect> {
    let Some(observations) = observed(figures) else { return Vec::new() };
    let plan = figures.plan();
    let of = |change: Change| Some((change, comparison(plan, &observations, change, None)?));
    let (changes, contrasts): (Vec<Change>, Vec<Contrast>) = changes(plan).into_iter().filter_map(of).unzip();
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
    changes.iter().zip(tested(figures.used.looks(), &contrasts)).map(row).collect()
}

pub(super) fn interactions(figures: &Figures<'_>) -> Vec<Interaction> {
    let Some(observations) = observed(figures) else { return Vec::new() };
    let plan = figures.plan();
    let changes = changes(plan);
    let named = |change: &Change| {
        let factor = &plan.study.factors[change.factor];
        format!("{} {} -> {}", factor.name, factor.levels[change.from].label, factor.levels[change.to].label)
    };
    let (mut pairs, mut contrasts) = (Vec::new(), Vec::new());
    for (index, first) in changes.iter().enumerate() {
        for second in changes[index + 1..].iter().filter(|second| second.factor != first.factor) {
            // A fraction does not have arms at all four corners of every pair.
            if let Some(contrast) = comparison(plan, &observations, *first, Some(*second)) {
                pairs.push((named(first), named(second)));
                contrasts.push(contrast);
            }
        }
    }
    let rows = pairs.into_iter().zip(tested(figures.used.looks(), &contrasts));
    rows.map(|((first, second), (effect, p))| Interaction { first, second, effect, p }).collect()
}
