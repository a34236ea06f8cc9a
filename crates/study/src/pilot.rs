//! A study that chooses its own number of blocks: `--find 5%`.
//!
//! ```text
//! reference, twice, PAIRS times ──> spread of a pair ──> spread of each claim's contrast
//!                                                          └──(proof::noise)──> blocks
//! ```
//!
//! Only the reference runs, so the number is chosen without any knowledge of effects. The tests
//! stay those of a study with the number fixed in its file. The pilot's runs are not part of the
//! study.
//!
//! Few pairs give a poor estimate of the spread: planned by the estimate, half of all studies would
//! be too small. So the plan uses a value that the true spread exceeds in one pilot of five.
//! Source: Browne, On the use of a pilot sample for sample size determination, 1995.
//!
//! If a pair lies far out, a run stalled. The study's test ranks such runs, so the spread is that
//! of the other pairs, from the median. The standard deviation asked for 355 blocks where 30 are
//! enough, and refused two studies of five. But a block with a stalled run tells a test of ranks
//! little: where a share f of blocks lies far out, its efficiency is (1 - f)^4 of that without
//! them (Hodges, Lehmann, The efficiency of some nonparametric competitors of the t-test, 1956:
//! the square of the integral of the squared density). So the spread is divided by (1 - f)^2.

use crate::StudyError;
use crate::definition::{Expectation, Of};
use crate::observer::{Observer, Stage};
use crate::plan::Plan;
use crate::targets::{NoRecord, Preparation, Target};
use plumb_events::{Cancel, clock};
use plumb_proof::contrast::Contrast;
use plumb_proof::effect::{Observations, log_ratio};
use plumb_proof::noise::{Goal, blocks_for, blocks_for_equality};
use plumb_proof::random::Generator;
use plumb_proof::randomisation;
use plumb_report::format::{Figure, Share};
use plumb_units::{Nanos, median};
use std::fmt;

/// Pairs of runs of the reference.
const PAIRS: usize = 8;
/// sqrt(7 / 3.822): with 7 degrees of freedom the true spread is below 1.353 times the estimate
/// in four pilots of five.
const UPPER: f64 = 1.353;
/// Standard deviations in the median size of normal pairs.
const OF_MEDIAN: f64 = 1.4826;
/// The factor for a spread from the median, which is less certain.
const UPPER_OF_MEDIAN: f64 = 1.5;
/// Median sizes beyond which a pair lies far out.
const FAR_OUT: f64 = 6.0;
/// Probability of finding the sought effect.
const POWER: f64 = 0.9;
/// Power of the plan on normal noise. One study of twenty is called UNSTABLE though nothing changes
/// in it: planned with 0.9, 85% found their effect.
const PLANNED: f64 = 0.95;
/// Simulated blocks of noise that determine the spread of a contrast.
const IMAGINED_BLOCKS: usize = 1_000;
/// Largest number accepted; a longer study is rejected.
const BLOCKS_MAX: usize = 1_000;

/// An effect to find, and the time for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sought {
    pub effect: f64,
    /// Time of the study, the pilot included; `None` is unlimited.
    pub budget: Option<Nanos>,
}

/// Result of a pilot, and the number of blocks derived from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    /// Effect to find, a share.
    pub effect: f64,
    /// Spread of the logarithm of the ratio of two runs of the reference.
    pub deviation: f64,
    /// Factor of the deviation that was planned with.
    pub upper: f64,
    /// Time of a run with everything around it.
    pub run: Nanos,
    /// Blocks that find the effect.
    pub blocks: usize,
    /// The claim that needs this number. `None` if it is the fewest that can prove anything.
    pub claim: Option<String>,
    /// Runs of the study, warm-up included.
    pub runs: usize,
    pub spent: Nanos,
}

impl fmt::Display for Pilot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |share: f64| Share(share).figure();
        let minutes = (self.run.0 * self.runs as u64) as f64 / 60e9;
        write!(
            out,
            "pilot: {} runs of the reference, whose pairs differ by {} (s_d; planned with {}); {} is found, and what is equal is \
             proved equal, in {:.0}% of studies of {} blocks{}: {} runs, about {minutes:.1} minutes",
            2 * PAIRS,
            shown(self.deviation),
            shown(self.upper * self.deviation),
            shown(self.effect),
            100.0 * POWER,
            self.blocks,
            self.claim.as_ref().map_or(String::new(), |claim| format!(" (the claim {claim} takes most)")),
            self.runs
        )
    }
}

/// Runs the pilot of a study that must find an effect of this share in each of its claims. `None`
/// if it was interrupted. Fails if the target cannot be prepared, a run fails, its figure has no
/// logarithm, or the study would be too long.
pub fn pilot(
    target: &mut dyn Target,
    plan: &Plan,
    sought: Sought,
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Option<Pilot>, StudyError> {
    let Sought { effect, budget } = sought;
    let start = clock::now();
    let refused = |why: String| StudyError::Plan { study: plan.study.name.clone(), why };
    require_no_p95(plan).map_err(refused)?;
    let reference = plan.arm_settings(plan.schedule.reference);
    let arms: Vec<_> = (0..plan.design.arms.len()).map(|arm| plan.arm_settings(arm)).collect();
    let name = format!("plumb-study-pilot-{:09}", plan.schedule.seed % 1_000_000_000);
    target.prepare(&Preparation { arms: &arms, expects_same: plan.study.expects_same, name: &name })?;
    let (mut logs, mut begin) = (Vec::new(), clock::now());
    // The first run is a warm-up.
    for run in 0..=2 * PAIRS {
        if run == 1 {
            begin = clock::now();
            require_time(budget, begin.saturating_sub(start)).map_err(refused)?;
        }
        let stage = Stage::Study {
            done: run as u64,
            runs: 2 * PAIRS as u64 + 1,
            block: 0,
            blocks: 0,
            arm: "pilot: the reference",
            left: None,
        };
        observer.stage(&stage);
        target.ready(&reference)?;
        let record = match target.run(&reference, cancel) {
            Ok(record) => record,
            Err(NoRecord::Interrupted) => return Ok(None),
            Err(NoRecord::Failed(reason)) => {
                return Err(refused(format!("a run of the pilot failed: {}", reason.whole())));
            }
        };
        let value = plan.study.measure.value(&record);
        if !(value.is_finite() && value > 0.0) {
            return Err(refused(format!(
                "a run of the pilot has {value} as its {}",
                plan.study.measure.name
            )));
        }
        logs.push(value.ln());
    }
    let run = Nanos(clock::now().saturating_sub(begin).0 / (2 * PAIRS) as u64);
    let (first, second): (Vec<f64>, Vec<f64>) =
        logs[1..].chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
    let pairs: Vec<f64> = first.iter().zip(&second).map(|(one, two)| two - one).collect();
    let (deviation, upper) = spread(&pairs);
    let (blocks, claim) =
        blocks(plan, effect, upper * deviation).map_err(|error| refused(error.to_string()))?;
    if blocks > BLOCKS_MAX {
        return Err(refused(format!(
            "--find {}%: pairs of runs differ by {:.1}%, so it would take more than {BLOCKS_MAX} blocks; look for a larger \
             effect, or make runs longer",
            100.0 * effect,
            100.0 * deviation
        )));
    }
    let (runs, spent) = ((blocks + 1) * plan.schedule.slots(), clock::now().saturating_sub(start));
    Ok(Some(Pilot { effect, deviation, upper, run, blocks, claim, runs, spent }))
}

fn require_no_p95(plan: &Plan) -> Result<(), String> {
    let Some(claim) = plan.study.claims.iter().find(|claim| claim.of == Of::P95) else { return Ok(()) };
    Err(format!(
        "the claim {} is of a p95, of which a pilot of {} runs says nothing: give --blocks, at least {}, instead of --find",
        claim.name,
        2 * PAIRS,
        plan.blocks_needed_for_p95()
    ))
}

/// Returns the spread of pairs of the reference, and the factor that four true spreads of five do
/// not exceed.
fn spread(pairs: &[f64]) -> (f64, f64) {
    let sizes: Vec<f64> = pairs.iter().map(|pair| pair.abs()).collect();
    let usual = median(&sizes);
    let near = sizes.iter().filter(|size| **size <= FAR_OUT * usual).count() as f64;
    if usual > 0.0 && near < sizes.len() as f64 {
        return (OF_MEDIAN * usual, UPPER_OF_MEDIAN * (sizes.len() as f64 / near).powi(2));
    }
    (randomisation::spread(&Contrast::of_differences(pairs)), UPPER)
}

/// Rejects a budget that the pilot alone would spend, estimated from
/// its first run with preparation.
fn require_time(budget: Option<Nanos>, first: Nanos) -> Result<(), String> {
    let needed = Nanos(first.0.saturating_mul(2 * PAIRS as u64 + 1));
    match budget {
        Some(budget) if needed > budget => Err(format!(
            "--budget {budget}: the pilot of --find takes {} runs, about {needed} like the first, and is part of it; give a \
             larger budget, or --blocks instead of --find",
            2 * PAIRS + 1
        )),
        _ => Ok(()),
    }
}

/// Returns the blocks with which each claim finds the effect, or its equality, given this spread of
/// pairs. Also returns the claim that needs most.
fn blocks(
    plan: &Plan,
    effect: f64,
    deviation: f64,
) -> Result<(usize, Option<String>), plumb_proof::ProofError> {
    let study = &plan.study;
    let mut generator = Generator::new(plan.schedule.seed);
    let mut run = || (deviation / std::f64::consts::SQRT_2 * generator.normal()).exp();
    let slots = plan.schedule.slots();
    let rows: Vec<Vec<f64>> = (0..IMAGINED_BLOCKS).map(|_| (0..slots).map(|_| run()).collect()).collect();
    let imagined = Observations::new(slots, &rows)?;
    let mut most = (plan.blocks_needed(), None);
    for claim in &study.claims {
        let deviation = claim.contrast(&plan.design, &imagined, plan.twice())?.deviation().max(1e-6);
        let alpha = study.alpha / study.claims.len() as f64;
        let goal = Goal { effect: log_ratio(100.0 * effect), deviation, alpha, power: PLANNED };
        let blocks = match claim.expects {
            Expectation::Equal { within } => {
                blocks_for_equality(&Goal { effect: 0.0, ..goal }, log_ratio(within), plan.schedule.seed)
            }
            Expectation::NotSlower { by } => {
                blocks_for(&Goal { effect: log_ratio(by), ..goal }, plan.schedule.seed)
            }
            Expectation::Faster { .. } | Expectation::Slower { .. } | Expectation::Differs => {
                blocks_for(&goal, plan.schedule.seed)
            }
        };
        if blocks > most.0 {
            most = (blocks, Some(claim.name.clone()));
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_holds_the_pilot_too() {
        let first = Nanos(1_000_000_000);
        assert_eq!(require_time(None, first), Ok(()));
        assert_eq!(require_time(Some(Nanos(17_000_000_000)), first), Ok(()));
        let refused =
            require_time(Some(Nanos(10_000_000_000)), first).expect_err("a pilot alone takes longer");
        assert!(
            refused.starts_with("--budget 10.0 s: the pilot of --find takes 17 runs, about 17.0 s"),
            "{refused}"
        );
    }

    #[test]
    fn a_plan_has_the_power_that_it_says() {
        // A study with one claim and known noise: the plan without the pilot's uncertainty.
        let plan = crate::plan::tests::plan(1);
        let (planned, _) = blocks(&plan, 0.05, 0.03).expect("a number");
        let rule = plumb_proof::noise::blocks_by_rule(&Goal {
            effect: 1.05f64.ln(),
            deviation: 0.03 * 0.75f64.sqrt(),
            alpha: plan.study.alpha / plan.study.claims.len() as f64,
            power: POWER,
        });
        assert!(
            (rule..=2 * rule + 8).contains(&planned),
            "{planned} blocks, and the rule of large numbers says {rule}"
        );
    }
}
