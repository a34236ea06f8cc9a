//! From raw records to verdicts: a pure function of a bundle's contents.
//!
//! ```text
//! runs ──[used_blocks]──> blocks ──[figures]──> figures ──[claims]──> tests ───────┐
//!                            │                     └─────[stability]──> stability ─┼─> judgements
//!                            ├──[doubts]──> receipts, verification, cache, bounds ─┘       │
//!                            └──[head, doubtful_runs]──> course of the study ─[advice]─> findings
//! proved ──[why]──> CPU, waits and the rest of the elapsed difference
//! ```
//!
//! Each stage returns a value that the next one takes. All inference is in `proof`; this module
//! decides on its input. Randomness comes from the study's seed alone, and neither clock nor file
//! is read. The same bundle gives the same bytes, on which `plumb verify` relies.

mod advice;
mod arm_figures;
mod averages;
pub mod block_time;
mod canary;
mod claims;
mod doubtful_runs;
mod doubts;
mod effects;
mod figures;
mod head;
pub mod result;
mod stability;
mod steal_time;
pub mod tally;
mod units;
mod used_blocks;
pub(crate) mod why;

use crate::bundle::Contents;
use figures::Figures;
use plumb_proof::change_point::{STEP_BLOCKS_MIN, Search};
use result::{
    ANALYSIS_SCHEMA_VERSION, Analysis, DoubtfulRuns, Interaction, JudgedClaim, MainEffect, Recommendation,
};
use stability::Stability;
use used_blocks::UsedBlocks;

/// Confidence of intervals that judge no claim.
const CONFIDENCE: f64 = 0.95;

/// Conclusions from the figures; empty for a study that may continue, because each look
/// at its figures spends error.
#[derive(Default)]
struct Judgements {
    stability: Stability,
    claims: Vec<JudgedClaim>,
    recommendation: Option<Recommendation>,
    main_effects: Vec<MainEffect>,
    interactions: Vec<Interaction>,
}

impl Judgements {
    fn of(figures: &Figures<'_>, doubtful: Option<&DoubtfulRuns>) -> Judgements {
        let (stability, tests) = (Stability::of(figures), claims::test(figures));
        let mut claims = claims::judge_all(figures.used, &stability, &tests);
        advice::say_what_answered(figures.used, &mut claims, doubtful);
        let interactions = effects::interactions(figures);
        advice::say_at_some_levels(&figures.plan().study, &mut claims, &interactions);
        Judgements {
            recommendation: advice::recommendation(figures, &tests, &claims, doubtful),
            main_effects: effects::main_effects(figures),
            interactions,
            stability,
            claims,
        }
    }
}

/// Computes everything that a study's report says.
#[must_use]
pub fn analyse(contents: &Contents) -> Analysis {
    let used = UsedBlocks::of(contents);
    let doubtful = doubtful_runs::figure(&used);
    let judge = || Judgements::of(&Figures::of(&used), doubtful.as_ref());
    let judged = if contents.has_ended() { judge() } else { Judgements::default() };
    let (state, end_time, elapsed_ns) = head::ended(&used);
    Analysis {
        schema_version: ANALYSIS_SCHEMA_VERSION,
        study: contents.plan.study.clone(),
        study_hash: contents.plan.study.hash(),
        environment: contents.environment.clone(),
        evidence_hash: None,
        state,
        end_time,
        elapsed_ns,
        arms: head::arms(&used),
        design: head::design(&used),
        findings: advice::findings(&used, &judged, doubtful.as_ref()),
        main_effects: judged.main_effects,
        interactions: judged.interactions,
        floor: judged.stability.floor,
        changes: judged.stability.changes,
        canary: judged.stability.canary,
        stolen: judged.stability.steal_time,
        not_tested: advice::not_tested(&used, doubtful.as_ref()),
        doubtful,
        order: judged.stability.order,
        changes_need_blocks: Search::usual(0).values_needed() as u64,
        canary_needs_blocks: STEP_BLOCKS_MIN as u64,
        runs: head::runs(&used),
        recommendation: judged.recommendation,
        claims: judged.claims,
        calibration: head::calibration(&used),
        settings: head::settings(&used),
    }
}

/// True if every claim is decided or hopeless, so that a study that stops when decided may stop.
#[must_use]
pub fn decided(contents: &Contents) -> bool {
    let used = UsedBlocks::of(contents);
    let study = &contents.plan.study;
    let tests = claims::test(&Figures::of(&used));
    study.claims.iter().zip(&tests.claims).all(|(claim, tested)| {
        let doubted = !doubts::contradictions(&used, claim).is_empty();
        doubted || tested.as_ref().is_ok_and(|tested| tested.settles(study.blocks))
    })
}
