//! Every claim's test, its correction for the others, and its verdict.
//!
//! A study that stops as soon as it may is tested by the walk that pays for every look
//! (`proof::sequential`), one of fixed length by the signed-rank test. Holm's procedure runs over all claims
//! of the study, those that are invalid too: what was claimed is counted, not what turned out well. Once more
//! over those that claim equality: their tests are against another hypothesis, and they may be wrong too.

use super::doubts;
use super::result::{ArmPair, Bearing, JudgedClaim};
use super::seen::Seen;
use super::stability::{Stability, effect, reference_floor};
use super::why;
use crate::study::{Claim, Expectation};
use crate::vocabulary::Measure;
use plumb_proof::change_point::{self, Search};
use plumb_proof::effect::log_ratio;
use plumb_proof::equivalence::{self, Equivalence};
use plumb_proof::interval::Interval;
use plumb_proof::multiple::{self, Step};
use plumb_proof::noise::Floor;
use plumb_proof::permutation::{self, Statistic};
use plumb_proof::sequential::{self, Monitor};
use plumb_proof::verdict::{ArmChange, Better, Change, Difference, Evidence, Judgement, Verdict, judge};

/// The power that a smallest effect is stated for.
const POWER: f64 = 0.8;

/// A claim's numbers.
pub(super) struct Tested {
    differences: Vec<f64>,
    estimate: f64,
    p: f64,
    step: Step,
    interval: Interval,
    equivalence: Option<Equivalence>,
    floor: Floor,
}

impl Tested {
    /// Whether more blocks would not change what is said, but for their number.
    pub(super) fn decided(&self, alpha: f64) -> bool {
        self.step.adjusted_p <= alpha && !self.interval.contains(0.0)
            || self.equivalence.is_some_and(|test| test.p <= alpha)
    }
}

/// The measure of a claim.
fn measure<'a>(seen: &'a Seen<'_>, claim: &'a Claim) -> &'a Measure {
    claim.measure.as_ref().unwrap_or(&seen.contents.plan.study.measure)
}

/// The tests of all claims in their order; or why one has no numbers.
pub(super) fn test(seen: &Seen<'_>) -> Vec<Result<Tested, String>> {
    let plan = &seen.contents.plan;
    let differences: Vec<Result<(Vec<f64>, Floor), String>> =
        plan.study.claims.iter().map(|claim| differences(seen, claim)).collect();
    let p_values: Vec<f64> =
        differences.iter().map(|found| found.as_ref().map_or(1.0, |(found, _)| p(seen, found))).collect();
    let steps = multiple::holm(&p_values, plan.study.alpha);
    let equalities = equalities(seen, &differences);
    let rows = differences.into_iter().zip(equalities).zip(p_values.iter().zip(steps));
    rows.map(|((found, equivalence), (p, step))| {
        let (differences, floor) = found?;
        let seed = plan.schedule.seed;
        Ok(Tested {
            estimate: permutation::test(&differences, 0.0, Statistic::SignedRank, seed).estimate,
            p: *p,
            step,
            interval: seen.interval(&differences, step.level),
            equivalence,
            floor,
            differences,
        })
    })
    .collect()
}

/// The log-ratios of a claim by block, and the noise of such a comparison.
fn differences(seen: &Seen<'_>, claim: &Claim) -> Result<(Vec<f64>, Floor), String> {
    let design = &seen.contents.plan.design;
    let observations = seen.observations(measure(seen, claim)).map_err(|error| error.to_string())?;
    let found = claim.differences(design, &observations).map_err(|error| error.to_string())?;
    // The noise of one run against one, averaged over the arms of a side; an interaction has two such pairs.
    let arms = claim.all_arms(design).len() as f64;
    let scale = if claim.with.is_some() { 4.0 / arms } else { 2.0 / arms }.sqrt()
        * if claim.with.is_some() { 2.0_f64.sqrt() } else { 1.0 };
    let floor = reference_floor(seen, &observations);
    let floor = Floor {
        deviation: floor.deviation * scale,
        robust_deviation: floor.robust_deviation * scale,
        ..floor
    };
    Ok((found, floor))
}

fn p(seen: &Seen<'_>, differences: &[f64]) -> f64 {
    let plan = &seen.contents.plan;
    let Some(spending) = seen.spending() else {
        return permutation::test(differences, 0.0, Statistic::SignedRank, plan.schedule.seed).p;
    };
    let levels = multiple::levels(plan.study.alpha, plan.study.claims.len());
    let mut monitor = Monitor::new(&levels, spending);
    differences.iter().for_each(|difference| {
        monitor.push(*difference);
    });
    monitor.p()
}

/// The tests of the claims that expect equality, corrected for their number: a family
/// of their own, for where a difference is wrongly proved no equality can be, and the
/// other way round.
fn equalities(
    seen: &Seen<'_>,
    differences: &[Result<(Vec<f64>, Floor), String>],
) -> Vec<Option<Equivalence>> {
    let study = &seen.contents.plan.study;
    let claimed: Vec<(usize, f64)> = (0..study.claims.len())
        .filter_map(|claim| Some((claim, margin(study.claims[claim].expects)?)))
        .collect();
    let level = study.alpha / claimed.len().max(1) as f64;
    let test = |(claim, margin): &(usize, f64)| {
        let (differences, _) = differences[*claim].as_ref().ok()?;
        Some(equal(seen, differences, *margin, level))
    };
    let tested: Vec<Option<Equivalence>> = claimed.iter().map(test).collect();
    let p_values: Vec<f64> = tested.iter().map(|test| test.map_or(1.0, |test| test.p)).collect();
    let steps = multiple::holm(&p_values, study.alpha);
    let mut all = vec![None; study.claims.len()];
    for ((test, step), (claim, _)) in tested.into_iter().zip(steps).zip(claimed) {
        all[claim] = test.map(|test| Equivalence { p: step.adjusted_p, ..test });
    }
    all
}

/// The margin of an equality, as a share.
fn margin(expects: Expectation) -> Option<f64> {
    match expects {
        Expectation::Equal { within } => Some(within / 100.0),
        _ => None,
    }
}

/// One test; in a study that ends when it is decided, at this level.
fn equal(seen: &Seen<'_>, differences: &[f64], margin: f64, level: f64) -> Equivalence {
    let Some(spending) = seen.spending() else {
        let seed = seen.contents.plan.schedule.seed;
        return equivalence::test(differences, margin, Statistic::SignedRank, seed);
    };
    // The walk says whether both margins were rejected at this level, and no more.
    let proved = sequential::equivalent_since(differences, margin, level, spending).is_some();
    let p = if proved { level } else { 1.0 };
    Equivalence { margin, p_lower: p, p_upper: p, p }
}

/// The claims of the report.
pub(super) fn claims(
    seen: &Seen<'_>,
    stability: &Stability,
    tested: &[Result<Tested, String>],
) -> Vec<JudgedClaim> {
    let study = &seen.contents.plan.study;
    study.claims.iter().zip(tested).map(|(claim, tested)| judged(seen, stability, claim, tested)).collect()
}

fn judged(
    seen: &Seen<'_>,
    stability: &Stability,
    claim: &Claim,
    tested: &Result<Tested, String>,
) -> JudgedClaim {
    let plan = &seen.contents.plan;
    let judgement = verdict(seen, stability, claim, tested.as_ref());
    let sides = claim.sides(&plan.design);
    let pair = match (&sides.from[..], &sides.to[..]) {
        ([reference], [treatment]) => Some(ArmPair { reference: *reference, treatment: *treatment }),
        _ => None,
    };
    let proved = matches!(judgement.verdict, Verdict::Faster(_) | Verdict::Slower(_));
    let explained = proved && claim.with.is_none();
    let tested = tested.as_ref().ok();
    JudgedClaim {
        name: claim.name.clone(),
        text: claim.text.clone(),
        comparison: claim.comparison(&plan.study),
        arms: pair,
        measure: claim.measure.clone(),
        bearing: bearing(claim.expects, &judgement.verdict),
        reasons: judgement.reasons,
        effect: tested
            .filter(|tested| !tested.differences.is_empty())
            .map(|tested| effect(tested.estimate, tested.interval, tested.step.level)),
        p: tested.map(|tested| tested.p),
        adjusted_p: tested.map(|tested| tested.step.adjusted_p),
        blocks: seen.blocks.len() as u64,
        blocks_needed: match judgement.verdict {
            Verdict::NotProved { more_blocks, .. } => more_blocks.map(|blocks| blocks as u64),
            _ => None,
        },
        verdict: judgement.verdict,
        smallest_effect: tested.filter(|tested| tested.floor.blocks > 1).map(|tested| {
            tested.floor.smallest_effect(tested.differences.len(), tested.step.level, POWER).exp_m1()
        }),
        equivalence: tested.and_then(|tested| tested.equivalence),
        why: explained.then(|| why::why(seen, claim)).flatten(),
        profiles: pair.filter(|_| explained).and_then(|pair| why::profiles(seen, pair)),
    }
}

fn verdict(
    seen: &Seen<'_>,
    stability: &Stability,
    claim: &Claim,
    tested: Result<&Tested, &String>,
) -> Judgement {
    let study = &seen.contents.plan.study;
    let mut contradictions = doubts::contradictions(seen, claim);
    let tested = match tested {
        Ok(tested) => tested,
        Err(why) => {
            let verdict = match contradictions.first() {
                Some(reason) => Verdict::Invalid { reason: reason.clone() },
                None => Verdict::NotProved { floor: f64::NAN, more_blocks: None },
            };
            contradictions.push(why.clone());
            return Judgement { verdict, reasons: contradictions };
        }
    };
    let seed = seen.contents.plan.schedule.seed;
    let changes = change_point::find(&tested.differences, &Search::usual(seed));
    let changes: Vec<ArmChange> =
        changes.into_iter().map(|change| ArmChange { arm: claim.comparison(study), change }).collect();
    judge(&Evidence {
        beyond_bound: &doubts::beyond_bound(seen, claim),
        contradictions: &contradictions,
        changes: &changes,
        order: stability.order.as_ref(),
        difference: Difference {
            estimate: tested.estimate,
            adjusted_p: tested.step.adjusted_p,
            interval: tested.interval,
            level: tested.step.level,
            blocks: tested.differences.len(),
        },
        equivalence: tested.equivalence,
        floor: tested.floor,
        alpha: study.alpha,
        claims: study.claims.len(),
        better: Better::Lower,
        effect_sought: log_ratio(100.0 * study.sought),
        seed,
    })
}

/// What a verdict means for what was expected.
fn bearing(expects: Expectation, verdict: &Verdict) -> Bearing {
    let by = |asked: f64, change: &Change| match () {
        () if change.low >= asked => Bearing::Holds,
        () if change.high < asked => Bearing::Refuted,
        () => Bearing::Open,
    };
    match (expects, verdict) {
        (Expectation::Faster { at_least }, Verdict::Faster(change))
        | (Expectation::Slower { at_least }, Verdict::Slower(change)) => by(at_least, change),
        (Expectation::Faster { .. }, Verdict::Slower(_) | Verdict::Equal { .. })
        | (Expectation::Slower { .. }, Verdict::Faster(_) | Verdict::Equal { .. }) => Bearing::Refuted,
        (Expectation::Equal { .. }, Verdict::Equal { .. })
        | (Expectation::Differs, Verdict::Faster(_) | Verdict::Slower(_)) => Bearing::Holds,
        (Expectation::Equal { within }, Verdict::Faster(change)) => {
            beyond(within / (1.0 + within / 100.0), change)
        }
        (Expectation::Equal { within }, Verdict::Slower(change)) => beyond(within, change),
        _ => Bearing::Open,
    }
}

/// A proved difference refutes an equality when all of its interval lies beyond the margin.
fn beyond(margin: f64, change: &Change) -> Bearing {
    if change.low > margin { Bearing::Refuted } else { Bearing::Open }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_bears_on_what_was_expected() {
        let faster = Verdict::Faster(Change { percent: 30.0, low: 25.0, high: 35.0 });
        let equal = Verdict::Equal { within: 5.0 };
        let open = Verdict::NotProved { floor: 1.0, more_blocks: None };
        for (expects, verdict, expected) in [
            ("faster", &faster, Bearing::Holds),
            ("faster by at least 20%", &faster, Bearing::Holds),
            ("faster by at least 30%", &faster, Bearing::Open),
            ("faster by at least 60%", &faster, Bearing::Refuted),
            ("slower", &faster, Bearing::Refuted),
            ("equal within 5%", &faster, Bearing::Refuted),
            ("equal within 30%", &faster, Bearing::Refuted),
            ("equal within 40%", &faster, Bearing::Open),
            ("differs", &faster, Bearing::Holds),
            ("differs", &equal, Bearing::Open),
            ("equal within 5%", &equal, Bearing::Holds),
            ("faster", &equal, Bearing::Refuted),
            ("faster", &open, Bearing::Open),
        ] {
            let expects = Expectation::parse(expects).expect("a form that is known");
            assert_eq!(bearing(expects, verdict), expected, "{expects} {verdict}");
        }
    }
}
