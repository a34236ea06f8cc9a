//! Claims of averages: `equal within 5% on average`.
//!
//! The family tests the average after the typical run and shares the claim's error with it, so a
//! claim of averages needs no test of its own. It holds if both are proved. It is never refuted,
//! because only the typical run is tested at its bound.
//!
//! An average within a margin also needs the slow runs that did not happen. If n runs had none, up
//! to `1 - level^(1/n)` of all may be slow, and [`SLOW_FACTOR`] bounds what each of them costs.
//! With 1% of one arm's runs at ten times the length, the mean is 9% higher; without this allowance
//! 70% of studies of 30 blocks called the averages equal.
//!
//! Limits: a run that takes longer than that is not covered, and no number of runs covers all.

use super::claims::Tested;
use super::result::ClaimOutcome;
use crate::definition::{Claim, Expectation};
use plumb_proof::average::SlowSeen;
use plumb_proof::family::OnAverage;
use plumb_proof::verdict::{Better, Verdict};

/// Times the usual length that a slow run may take.
const SLOW_FACTOR: f64 = 10.0;

/// Returns the outcome of a claim of averages from that of its typical run, and adds the reason.
pub(super) fn outcome(
    claim: &Claim,
    better: Better,
    tested: Option<&Tested>,
    (typical, verdict): (ClaimOutcome, &Verdict),
    reasons: &mut Vec<String>,
) -> ClaimOutcome {
    if !claim.on_average || typical == ClaimOutcome::Open {
        return typical;
    }
    let Some(tested) = tested.filter(|_| typical == ClaimOutcome::Holds) else { return ClaimOutcome::Open };
    let lies = tested.answer.on_average;
    let improves = lies == Some(if better == Better::Lower { OnAverage::Below } else { OnAverage::Above });
    let worsens = lies == Some(if better == Better::Lower { OnAverage::Above } else { OnAverage::Below });
    let (is_shown, missing) = match (claim.expects, verdict) {
        (Expectation::Equal { within }, Verdict::Equal { beside: Some(_), .. }) => {
            within_margin(tested, better, within, within)
        }
        (Expectation::NotSlower { by }, Verdict::NotSlower { .. }) => {
            within_margin(tested, better, f64::INFINITY, by)
        }
        (Expectation::Equal { .. }, Verdict::Equal { beside: None, .. }) => (true, None),
        (_, Verdict::Faster(_)) => (improves, None),
        (_, Verdict::Slower(_)) => (worsens, None),
        _ => (false, None),
    };
    reasons.push(match (is_shown, missing) {
        (true, _) => "the average is proved as well".to_string(),
        (false, None) => "the average is not proved".to_string(),
        (false, Some(runs)) => format!(
            "the average is not proved: slow runs that did not happen may take {SLOW_FACTOR} times as long, and about {runs} \
             runs of each arm without one rule them out"
        ),
    });
    if is_shown { ClaimOutcome::Holds } else { ClaimOutcome::Open }
}

/// True if the average cost is within these margins, per cent, down and up, whatever slow runs did
/// not happen. Otherwise also the runs of each arm that would rule those out.
fn within_margin(tested: &Tested, better: Better, down: f64, up: f64) -> (bool, Option<u64>) {
    let (Some(found), Some(SlowSeen { treatment, reference })) = (tested.average, tested.slow) else {
        return (false, None);
    };
    let level = tested.answer.interval_level;
    let unseen = |runs: usize| 1.0 + (SLOW_FACTOR - 1.0) * (1.0 - level.powf(1.0 / runs.max(1) as f64));
    let ends = found.interval;
    // A rate of 95% is a cost of 1 / 0.95.
    let (low, high, most) = match better {
        Better::Lower => (ends.low, ends.high, 1.0 + up / 100.0),
        Better::Higher => (1.0 / ends.high, 1.0 / ends.low, 1.0 / (1.0 - up / 100.0)),
    };
    let is_below = high > 0.0 && high * unseen(treatment.runs) < most;
    let is_above = low * (1.0 + down / 100.0) > unseen(reference.runs);
    // Half of the margin is left for the noise.
    let share = (most - 1.0) / 2.0 / (SLOW_FACTOR - 1.0);
    let runs = (level.ln() / (1.0 - share).ln()).ceil() as u64;
    let is_within = tested.answer.on_average == Some(OnAverage::Within);
    (is_within && is_below && (down.is_infinite() || is_above), Some(runs))
}
