//! Sentences of a study's page that cannot both be true, whatever the law.
//!
//! Each rule compares numbers or words that a page prints of one claim: its verdict, its interval,
//! its floor, its correction, the gain, the advice, the exit code and the JUnit report.

use plumb_pages::study::{document, junit};
use plumb_proof::verdict::{Aim, More, TOO_LARGE, Verdict};
use plumb_report::text;
use plumb_study::analysis::result::{Analysis, ClaimOutcome, JudgedClaim, Standing};
use plumb_study::analysis::tally::OpenClaims;

/// Rounding that printed per cents allow.
const ROUNDED: f64 = 1.5e-3;

/// Returns the first contradiction of a page.
pub(super) fn first(analysis: &Analysis) -> Option<String> {
    let of_claims = analysis.claims.iter().find_map(|claim| {
        let found = numbers(claim).or_else(|| floor(claim)).or_else(|| answer(analysis, claim))?;
        Some(format!("{}: {found}: {}", claim.name, claim.verdict))
    });
    of_claims.or_else(|| codes(analysis)).or_else(|| advice(analysis)).or_else(|| words(analysis))
}

fn outside(claim: &JudgedClaim, ratio: f64) -> bool {
    let Some(effect) = claim.effect else { return false };
    effect.low.is_some_and(|low| ratio < low * (1.0 - ROUNDED))
        || effect.high.is_some_and(|high| ratio > high * (1.0 + ROUNDED))
}

/// Returns the corrected effect of a reason "... corrected for that, +1.2%", as a ratio.
fn corrected(claim: &JudgedClaim) -> Option<f64> {
    let reason = claim.reasons.iter().find(|reason| reason.starts_with(TOO_LARGE))?;
    let percent: f64 = reason.rsplit(' ').next()?.strip_suffix('%')?.parse().ok()?;
    Some(1.0 + percent / 100.0)
}

/// The estimate, the corrected effect and the verdict against the interval.
fn numbers(claim: &JudgedClaim) -> Option<String> {
    let effect = claim.effect?;
    let has_one = !outside(claim, 1.0)
        && effect.low.is_none_or(|low| low < 1.0)
        && effect.high.is_none_or(|high| high > 1.0);
    match &claim.verdict {
        _ if outside(claim, effect.ratio) => Some("the estimate lies outside its interval".to_string()),
        Verdict::Faster(_) | Verdict::Slower(_) if has_one => {
            Some("a difference is proved, and the interval has no effect".to_string())
        }
        Verdict::Faster(_) | Verdict::Slower(_) => {
            let left = corrected(claim).filter(|left| outside(claim, *left))?;
            Some(format!("corrected to {left}, outside of its interval"))
        }
        Verdict::Equal { within, .. } => {
            let margin = 1.0 + within / 100.0 + ROUNDED;
            let beyond = effect.low.is_none_or(|low| low * margin < 1.0)
                || effect.high.is_none_or(|high| high > margin);
            beyond.then(|| "equal, and the interval leaves the margin".to_string())
        }
        Verdict::NotProved { .. } => {
            let clear = effect.low.is_some_and(|low| low > 1.0) || effect.high.is_some_and(|high| high < 1.0);
            clear.then(|| "not proved, and the interval is clear of no effect".to_string())
        }
        _ => None,
    }
}

/// The floor and the blocks needed against each other and against what is proved.
fn floor(claim: &JudgedClaim) -> Option<String> {
    let floor = 100.0 * claim.smallest_effect?;
    match &claim.verdict {
        Verdict::NotProved { more: More::Enough(Aim::Find(percent)), .. } if floor > percent * 1.1 => {
            Some(format!("these blocks find {percent:.2}%, and their floor is {floor:.2}%"))
        }
        Verdict::NotProved { more: More::Blocks(_, Aim::Find(percent)), .. } if floor < percent * 0.9 => {
            Some(format!("more blocks find {percent:.2}%, and the floor is {floor:.2}%"))
        }
        Verdict::NotProved { floor: printed, .. }
            if printed.is_finite() && (printed / floor - 1.0).abs() > 0.02 =>
        {
            Some(format!("two floors, {printed:.2}% and {floor:.2}%"))
        }
        _ => None,
    }
}

/// The outcome of the claim against its verdict and its words.
fn answer(analysis: &Analysis, claim: &JudgedClaim) -> Option<String> {
    let shown = claim.shown();
    let is_proved = claim.verdict.standing() == Standing::Proved;
    let looks_proved = shown.starts_with("PROVED");
    if looks_proved != (is_proved && claim.outcome == ClaimOutcome::Holds) {
        return Some(format!("it is {:?}, and the line is {shown}", claim.outcome));
    }
    let xml = junit(analysis, OpenClaims::Fail);
    let case = xml.split("<testcase").find(|case| case.contains(&format!("name=\"{}: ", claim.name)))?;
    let passes = case.contains("<system-out>");
    let holds = claim.outcome == ClaimOutcome::Holds && is_proved;
    (passes != holds).then(|| format!("JUnit passes: {passes}"))
}

/// The exit code and the headline against the claims.
fn codes(analysis: &Analysis) -> Option<String> {
    let all_hold = analysis.claims.iter().all(|claim| claim.standing() == Standing::Proved);
    let code = analysis.exit_code();
    if (code == 0) != all_hold {
        return Some(format!("exit code {code}, and all claims hold: {all_hold}"));
    }
    let headline = analysis.headline();
    (headline.starts_with("PROVED") && code != 0).then(|| format!("{headline} with exit code {code}"))
}

/// The advice against the claims on its arms.
fn advice(analysis: &Analysis) -> Option<String> {
    let lower = analysis.study.measure.better == plumb_study::vocabulary::Better::Lower;
    let is_better = |ratio: f64| if lower { ratio < 1.0 } else { ratio > 1.0 };
    let reference = analysis.design.reference_arm;
    for claim in &analysis.claims {
        let Some(pair) = claim.arms.filter(|pair| pair.reference == reference && claim.measure.is_none())
        else {
            continue;
        };
        let advised = analysis.recommendation.as_ref().filter(|advice| advice.arm == pair.treatment);
        match (&claim.verdict, advised) {
            (Verdict::Slower(_), Some(_)) => return Some(format!("{} is slower, and advised", claim.name)),
            (Verdict::Faster(_), Some(advice)) if outside(claim, advice.gain.ratio) => {
                return Some(format!(
                    "{}: the gain {} is outside of {:?}",
                    claim.name, advice.gain.ratio, claim.effect
                ));
            }
            _ => {}
        }
    }
    let gain = analysis.recommendation.as_ref().map(|advice| advice.gain)?;
    let ends = [Some(gain.ratio), gain.low, gain.high].into_iter().flatten();
    (!ends.clone().all(is_better)).then(|| format!("an advice whose gain is {gain:?}"))
}

/// The text of the page against the claims.
fn words(analysis: &Analysis) -> Option<String> {
    let page = text::render(&document(analysis));
    let proved =
        analysis.claims.iter().any(|claim| matches!(claim.verdict, Verdict::Faster(_) | Verdict::Slower(_)));
    let two_arms = analysis.arms.len() == 2;
    if page.contains("no arm was proved better")
        && two_arms
        && analysis.claims.iter().any(|claim| matches!(claim.verdict, Verdict::Faster(_)))
    {
        return Some("no arm was proved better, and a claim proves one".to_string());
    }
    if page.contains(TOO_LARGE) && !proved {
        return Some("a correction of an effect that is not proved".to_string());
    }
    let says = |label: &str| analysis.claims.iter().any(|claim| claim.shown().contains(label));
    ["PROVED faster", "PROVED slower", "PROVED typically", "REFUTED", "UNSTABLE", "MIXED"]
        .into_iter()
        .find(|label| page.contains(label) && !says(label))
        .map(|label| format!("the page says {label}, and no claim does"))
}
