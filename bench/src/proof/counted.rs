//! Statements of a study, compared with the law it was drawn from.

use super::rows::Counted;
use super::simulated::{Claimed, Simulated, Truth};
use plumb_proof::verdict::{Aim, More, Side, Typically, Verdict};
use plumb_study::analysis::result::{Analysis, ClaimOutcome, Effect, JudgedClaim};
use plumb_study::definition::{Claim, Expectation, Of};
use plumb_study::vocabulary::Better;

/// Rounding that a comparison of a truth with its own bound allows.
const EXACTLY: f64 = 1e-9;

/// Properties of one study that are counted.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) is_false: bool,
    pub(super) is_proved: bool,
    pub(super) is_unstable: bool,
    pub(super) misses: bool,
    pub(super) average_misses: bool,
    place: bool,
    levels: bool,
    enough: bool,
    holds: bool,
    pub(super) blocks: u64,
}

impl Seen {
    pub(super) fn of(analysis: &Analysis, of: &Simulated) -> Seen {
        let first = &analysis.claims[0];
        let truth = of.claims[0].truth;
        let labels = || analysis.claims.iter().map(|claim| claim.verdict.label());
        let enough = matches!(first.verdict, Verdict::NotProved { more: More::Enough(Aim::Equal(_)), .. });
        Seen {
            is_false: says_falsely(analysis, of),
            is_proved: labels().any(|label| label.starts_with("PROVED")),
            is_unstable: labels().any(|label| label == "UNSTABLE"),
            misses: misses(first.effect, of, truth.typical),
            average_misses: misses(first.average, of, truth.average),
            place: analysis.claims.iter().any(|claim| claim.verdict.to_string().contains("about block")),
            levels: is_silent_about_levels(analysis),
            enough,
            holds: analysis.claims.iter().all(|claim| claim.outcome == ClaimOutcome::Holds),
            blocks: first.blocks,
        }
    }

    pub(super) fn has(self, counted: Counted) -> bool {
        match counted {
            Counted::False => self.is_false,
            Counted::Proved => self.is_proved,
            Counted::Holds => self.holds,
            Counted::Misses => self.misses,
            Counted::Place => self.place,
            Counted::Levels => self.levels,
            Counted::Enough => self.enough,
        }
    }
}

/// True if an interval excludes a true effect on the cost.
fn misses(effect: Option<Effect>, of: &Simulated, truth: f64) -> bool {
    let Some(Effect { low, high, .. }) = effect.filter(|_| truth.is_finite()) else { return false };
    let truth = if of.unit.1 == Better::Higher { (-truth).exp() } else { truth.exp() };
    low.is_some_and(|low| truth < low * (1.0 - EXACTLY))
        || high.is_some_and(|high| truth > high * (1.0 + EXACTLY))
}

/// True if a verdict or the advice contradicts the law.
pub(super) fn says_falsely(analysis: &Analysis, of: &Simulated) -> bool {
    let claims = analysis.claims.iter().zip(&of.claims).zip(&analysis.study.claims);
    let wrong = |((judged, claimed), written): ((&JudgedClaim, &Claimed), &Claim)| {
        is_wrong(judged, claimed.truth, written, of.unit.1)
    };
    claims.into_iter().any(wrong) || advises_falsely(analysis, of)
}

/// Returns the margin or bound of an expectation on the logarithm of the cost, above 0.
fn bound_of(expects: Expectation, better: Better) -> f64 {
    let is_rate = better == Better::Higher;
    match expects {
        Expectation::Equal { within } => (within / 100.0).ln_1p(),
        // A rate of 95% is slower by 5%, as is a time of 105%.
        Expectation::NotSlower { by } | Expectation::Slower { at_least: by } => {
            if is_rate {
                -(-by / 100.0).ln_1p()
            } else {
                (by / 100.0).ln_1p()
            }
        }
        Expectation::Faster { at_least } => {
            if is_rate {
                (at_least / 100.0).ln_1p()
            } else {
                -(-at_least / 100.0).ln_1p()
            }
        }
        Expectation::Differs => 0.0,
    }
}

fn is_wrong(judged: &JudgedClaim, truth: Truth, written: &Claim, better: Better) -> bool {
    let Truth { typical, average } = truth;
    let expects = written.expects;
    let bound = bound_of(expects, better);
    // Only equalities and margins say something of an average near no effect.
    let is_margin = matches!(expects, Expectation::Equal { .. } | Expectation::NotSlower { .. });
    let margin = if is_margin { bound } else { 0.0 };
    let verdict = match &judged.verdict {
        Verdict::Mixed { on_average: Side::Slower, .. } => average <= margin,
        Verdict::Mixed { on_average: Side::Faster, .. } => average >= -margin,
        verdict => match verdict.proved() {
            Some(Typically::Differs(Side::Faster, _)) => typical >= 0.0,
            Some(Typically::Differs(Side::Slower, _)) => typical <= 0.0,
            Some(Typically::Equal(_)) => typical.abs() >= margin * (1.0 - EXACTLY),
            Some(Typically::NotSlower(_)) => typical >= margin * (1.0 - EXACTLY),
            None => false,
        },
    };
    let outcome = match (judged.outcome, expects) {
        (ClaimOutcome::Holds, Expectation::Slower { .. }) => typical <= bound * (1.0 + EXACTLY),
        (ClaimOutcome::Holds, Expectation::Faster { .. }) => -typical <= bound * (1.0 + EXACTLY),
        (ClaimOutcome::Refuted, Expectation::Slower { .. }) => typical >= bound * (1.0 - EXACTLY),
        (ClaimOutcome::Refuted, Expectation::Faster { .. }) => -typical >= bound * (1.0 - EXACTLY),
        (ClaimOutcome::Refuted, Expectation::Equal { .. }) => typical.abs() <= bound * (1.0 + EXACTLY),
        (ClaimOutcome::Refuted, Expectation::NotSlower { .. }) => typical <= bound * (1.0 + EXACTLY),
        _ => false,
    };
    let on_average = match expects {
        Expectation::Equal { .. } => average.abs() >= bound * (1.0 - EXACTLY),
        Expectation::NotSlower { .. } => average >= bound * (1.0 - EXACTLY),
        Expectation::Faster { .. } => average >= 0.0,
        Expectation::Slower { .. } => average <= 0.0,
        Expectation::Differs => average == 0.0,
    };
    verdict || outcome || written.of == Of::Average && judged.outcome == ClaimOutcome::Holds && on_average
}

/// True if the advice leaves out the best arm, or recommends one that is not better.
fn advises_falsely(analysis: &Analysis, of: &Simulated) -> bool {
    let Some(advice) = &analysis.recommendation else { return false };
    let effect = |arm: usize| (of.effect)(&analysis.arms[arm].levels);
    let lowest = (0..analysis.arms.len()).map(effect).fold(f64::INFINITY, f64::min);
    let has_best = advice.candidates.iter().any(|arm| effect(*arm) <= lowest);
    !has_best || effect(advice.arm) >= effect(analysis.design.reference_arm)
}

/// True if an interaction is proved and the claim of a main effect does not say "at some levels".
fn is_silent_about_levels(analysis: &Analysis) -> bool {
    let is_proved = analysis.interactions.iter().any(|found| found.p.is_some_and(|p| p <= 0.05));
    let said = |claim: &JudgedClaim| claim.reasons.iter().any(|reason| reason.starts_with("at some levels"));
    let found = analysis.findings.iter().any(|finding| finding.what.contains("at some levels"));
    !is_proved || !analysis.claims.iter().all(said) || !found
}
