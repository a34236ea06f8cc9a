//! From raw records to verdicts: a pure function of a bundle's contents.
//!
//! ```text
//! runs ──[seen]──> complete blocks ──> figures ──[claims]──> p, family, interval ┐
//!        │                                 ├──[stability]──> order, changes, A/A ─┼─> judge
//!        └──[doubts]──> receipts, verification, page cache, physical bounds ──────┘
//! proved ──[why]──> CPU, waits and the rest of the elapsed difference
//! ```
//!
//! All inference is in `proof`; this module decides on its input. Randomness comes from the study's
//! seed alone, and neither clock nor file is read. The same bundle gives the same bytes, on which
//! `plumb verify` relies.

mod advice;
mod canary;
mod claims;
mod disturbed;
mod doubts;
mod effects;
mod head;
pub mod result;
mod seen;
pub mod spent;
mod stability;
mod stolen;
pub mod tally;
mod units;
pub(crate) mod why;

use crate::analysis::result::{ANALYSIS_SCHEMA_VERSION, Analysis};
use crate::bundle::Contents;
use plumb_proof::change_point::{STEP_BLOCKS_MIN, Search};
use seen::Seen;
use stability::Stability;

/// Confidence of intervals that judge no claim.
const CONFIDENCE: f64 = 0.95;

/// Computes everything that a study's report says.
#[must_use]
pub fn analyse(contents: &Contents) -> Analysis {
    let seen = Seen::of(contents);
    let stability = Stability::of(&seen);
    // Figures of a study that may continue stay unread, because each look at them spends error.
    let ended = seen.contents.has_ended();
    let tests = ended.then(|| claims::test(&seen));
    let mut claims = tests.as_ref().map_or_else(Vec::new, |tests| claims::claims(&seen, &stability, tests));
    let doubtful = disturbed::figure(&seen);
    advice::say_what_answered(&seen, &mut claims, doubtful.as_ref());
    let about = (claims.as_slice(), doubtful.as_ref());
    let recommendation = tests.as_ref().and_then(|tests| advice::recommendation(&seen, about, tests));
    let stolen = stability.stolen(&seen).filter(|_| ended);
    let (state, end_time, elapsed_ns) = head::ended(&seen);
    Analysis {
        schema_version: ANALYSIS_SCHEMA_VERSION,
        study: contents.plan.study.clone(),
        study_hash: contents.plan.study.hash(),
        environment: contents.environment.clone(),
        evidence_hash: None,
        state,
        end_time,
        elapsed_ns,
        arms: head::arms(&seen),
        design: head::design(&seen),
        main_effects: if ended { effects::main_effects(&seen) } else { Vec::new() },
        interactions: if ended { effects::interactions(&seen) } else { Vec::new() },
        floor: if ended { stability.floor(&seen) } else { None },
        changes: if ended { stability.changes(&seen) } else { Vec::new() },
        canary: if ended { stability.canary(&seen) } else { Vec::new() },
        stolen: stolen.clone(),
        doubtful: doubtful.clone(),
        order: if ended { stability.order } else { None },
        changes_need_blocks: Search::usual(0).values_needed() as u64,
        canary_needs_blocks: STEP_BLOCKS_MIN as u64,
        runs: head::runs(&seen),
        findings: advice::findings(&seen, about, (recommendation.as_ref(), stolen.as_ref())),
        not_tested: advice::not_tested(&seen, doubtful.as_ref()),
        recommendation,
        claims,
        calibration: head::calibration(&seen),
        settings: head::settings(&seen),
    }
}

/// True if every claim is decided or hopeless, so that a study that stops when decided may stop.
#[must_use]
pub fn decided(contents: &Contents) -> bool {
    let seen = Seen::of(contents);
    let tests = claims::test(&seen);
    seen.contents.plan.study.claims.iter().zip(&tests.claims).all(|(claim, tested)| {
        let doubted = !doubts::contradictions(&seen, claim).is_empty();
        doubted || tested.as_ref().is_ok_and(|tested| tested.settles(seen.contents.plan.study.blocks))
    })
}
