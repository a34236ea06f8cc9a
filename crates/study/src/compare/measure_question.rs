//! Measures that a study has for two of its arms, each with the claim that compares them, if any.
//!
//! A claim in the opposite direction is inverted.

use crate::analysis;
use crate::analysis::result::{Effect, JudgedClaim};
use crate::bundle::Contents;
use crate::compare::Judged;
use crate::definition::Of;
use crate::vocabulary::Measure;
use plumb_proof::verdict::{Change, Side, Typically, Verdict};

#[derive(Debug)]
pub(super) struct MeasureQuestion {
    pub(super) measure: Measure,
    /// The study's claim, from the first arm to the second.
    pub(super) claim: Option<JudgedClaim>,
    /// Number of pairs of arms from which these two were picked.
    pub(super) pairs: usize,
}

/// Returns the study's measures for two of its arms, its own first.
pub(super) fn of_study(contents: &Contents, first: usize, second: usize) -> Vec<MeasureQuestion> {
    let plan = &contents.plan;
    let arms = plan.design.arms.len();
    let pairs = arms * (arms - 1) / 2;
    let mut asked = vec![MeasureQuestion { measure: plan.study.measure.clone(), claim: None, pairs }];
    for (claim, judged) in plan.study.claims.iter().zip(analysis::analyse(contents).claims) {
        let sides = claim.sides(&plan.design);
        let judged = match (&sides.from[..], &sides.to[..]) {
            _ if claim.with.is_some() || claim.of == Of::P95 => continue,
            ([from], [to]) if (*from, *to) == (first, second) => judged,
            ([from], [to]) if (*from, *to) == (second, first) => turned(judged),
            _ => continue,
        };
        let measure = claim.measure.as_ref().unwrap_or(&plan.study.measure);
        match asked.iter_mut().find(|known| known.measure == *measure) {
            // The first of two claims about a figure is used.
            Some(known) if known.claim.is_some() => {}
            Some(known) => known.claim = Some(judged),
            None => asked.push(MeasureQuestion { measure: measure.clone(), claim: Some(judged), pairs }),
        }
    }
    asked
}

impl MeasureQuestion {
    pub(super) fn judged(&self) -> Option<Judged> {
        let claim = self.claim.as_ref()?;
        let says = format!("as the claim {} of the study says it", claim.name);
        Some(Judged {
            measure: self.measure.clone(),
            claim: Some(claim.name.clone()),
            verdict: claim.verdict.clone(),
            asked_only: claim.asked_only,
            reasons: std::iter::once(says).chain(claim.reasons.iter().cloned()).collect(),
        })
    }
}

/// Inverts a claim. Its p is two-sided, so it stays.
fn turned(mut claim: JudgedClaim) -> JudgedClaim {
    let inverse = |effect: Effect| Effect {
        ratio: 1.0 / effect.ratio,
        low: effect.high.map(|high| 1.0 / high),
        high: effect.low.map(|low| 1.0 / low),
        ..effect
    };
    (claim.effect, claim.average) = (claim.effect.map(inverse), claim.average.map(inverse));
    let now = claim.effect.map(change);
    claim.verdict = match (claim.verdict, now) {
        (Verdict::Faster(_), Some(change)) => Verdict::Slower(change),
        (Verdict::Slower(_), Some(change)) => Verdict::Faster(change),
        (Verdict::Mixed { typically, on_average, .. }, Some(now)) => Verdict::Mixed {
            typically: match typically {
                Typically::Differs(side, _) => Typically::Differs(other(side), now),
                same => same,
            },
            on_average: other(on_average),
            average: claim.average.map_or(now, change),
        },
        // An equality holds in both directions; a margin on one side does not.
        (Verdict::NotSlower { .. }, Some(_)) => Verdict::NoFigure {
            reason: "it was asked in the other direction whether it is not slower".to_string(),
        },
        (verdict, _) => verdict,
    };
    let round = format!("{} is in the other direction, and these are its reasons", claim.comparison);
    claim.reasons.insert(0, round);
    claim
}

fn other(side: Side) -> Side {
    if side == Side::Faster { Side::Slower } else { Side::Faster }
}

/// Converts an effect to the change that a verdict prints.
fn change(effect: Effect) -> Change {
    let ends = [effect.low, effect.high].map(|end| end.map_or(f64::INFINITY, percent));
    Change { percent: percent(effect.ratio), low: ends[0].min(ends[1]), high: ends[0].max(ends[1]) }
}

/// Distance of a ratio from 1, per cent.
fn percent(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0).abs()
}
