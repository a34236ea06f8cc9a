//! From raw records to verdicts: a pure function of a bundle's contents.
//!
//! ```text
//! runs ──[seen]──> complete blocks ──> figures ──[claims]──> p, Holm, interval ──┐
//!        │                                 ├──[stability]──> order, changes, A/A ─┼─> judge
//!        └──[doubts]──> receipts, verification, page cache, physical bounds ──────┘
//! proved ──[why]──> CPU, waits and the rest of the elapsed difference
//! ```
//!
//! All inference is `proof`'s; what is decided here is what it is fed with. Nothing is random but by the
//! study's seed, no clock is read and no file: the same bundle gives the same bytes, which is what
//! `plumb verify` relies on.

mod advice;
mod claims;
mod doubts;
mod effects;
mod head;
pub mod result;
mod seen;
mod stability;
pub mod tally;
mod why;

use crate::analysis::result::{ANALYSIS_SCHEMA_VERSION, Analysis};
use crate::bundle::Contents;
use plumb_proof::change_point::Search;
use seen::Seen;
use stability::Stability;

/// The confidence of intervals that no claim is judged by.
const CONFIDENCE: f64 = 0.95;

/// Everything that a study's report says.
#[must_use]
pub fn analyse(contents: &Contents) -> Analysis {
    let seen = Seen::of(contents);
    let stability = Stability::of(&seen);
    let tested = claims::test(&seen);
    let claims = claims::claims(&seen, &stability, &tested);
    let recommendation = advice::recommendation(&seen, &claims);
    let (state, end_time, elapsed_ns) = head::ended(&seen);
    Analysis {
        schema_version: ANALYSIS_SCHEMA_VERSION,
        study: contents.plan.study.clone(),
        study_hash: contents.plan.study.hash(),
        environment: contents.environment.clone(),
        state,
        end_time,
        elapsed_ns,
        arms: head::arms(&seen),
        design: head::design(&seen),
        main_effects: effects::main_effects(&seen),
        interactions: effects::interactions(&seen),
        floor: stability.floor(&seen),
        changes: stability.changes(&seen),
        order: stability.order,
        changes_need_blocks: Search::usual(0).values_needed() as u64,
        runs: head::runs(&seen),
        findings: advice::findings(&seen, &claims, recommendation.as_ref()),
        not_tested: advice::not_tested(&seen),
        recommendation,
        claims,
        calibration: head::calibration(&seen),
        settings: head::settings(&seen),
    }
}

/// Whether every claim is decided, so that a study that was to stop then may.
#[must_use]
pub fn decided(contents: &Contents) -> bool {
    let seen = Seen::of(contents);
    let tested = claims::test(&seen);
    seen.contents.plan.study.claims.iter().zip(&tested).all(|(claim, tested)| {
        let doubted = !doubts::contradictions(&seen, claim).is_empty();
        doubted || tested.as_ref().is_ok_and(|tested| tested.decided(seen.contents.plan.study.alpha))
    })
}
