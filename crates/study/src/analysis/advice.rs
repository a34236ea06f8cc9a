//! Recommended settings, findings, and effects that the study did not test.
//!
//! Readers act on the recommendation, so it is tested like a claim. With three arms or more
//! `proof::best` returns the arms that cannot be told from the best, and those better than the
//! reference. It tests at the share of the error that the family leaves for advice, so that advice
//! waits until the claims are settled. With two arms, the claim that compares them decides.
//! Candidates lie within the smallest effect of interest of the best-looking arm. The recommended
//! one changes the fewest levels of the reference: a level whose difference is open stays as it is.

use super::block_time::BlockTime;
use super::claims::Tests;
use super::doubts::contradicted;
use super::figures::Figures;
use super::head::created;
use super::result::{
    ClaimOutcome, DoubtfulFact, DoubtfulRuns, EndsNanos, Interaction, JudgedClaim, PhasePart, Recommendation,
    StolenFigure,
};
use super::stability::{Stability, effect};
use super::steal_time::MUCH;
use super::used_blocks::UsedBlocks;
use super::{Judgements, units};
use crate::bundle::Settled;
use crate::definition::{Claim, Study};
use crate::plan::Plan;
use crate::vocabulary::Better;
use plumb_proof::best::{self, Arms, Best, Gain};
use plumb_proof::family::advice_levels;
use plumb_proof::interval::Interval;
use plumb_proof::randomisation::{Side, fewest_blocks};
use plumb_proof::verdict::{Aim, Standing, TOO_LARGE, Typically, Verdict};
use plumb_record::{Fact, Finding, capital};

/// Share of runs begun on a busy device above which a finding reports them.
const BUSY_SHARE: f64 = 0.2;
/// Share of a difference in one phase above which a finding reports it.
const ONE_PHASE_SHARE: f64 = 0.8;
/// The same limit for a phase other than the one the claim names.
const OTHER_PHASE_SHARE: f64 = 0.5;
/// p at or below which a finding reports that the reference differs from itself.
const SELF_P: f64 = 0.01;

/// Returns the recommended settings; `None` if no arm is proved better than the reference.
pub(super) fn recommendation(
    figures: &Figures<'_>,
    tests: &Tests,
    claims: &[JudgedClaim],
    doubtful: Option<&DoubtfulRuns>,
) -> Option<Recommendation> {
    let (plan, used) = (figures.plan(), figures.used);
    let Best { candidates, better } = chosen(figures, tests)?;
    // An arm answered from memory won against arms that used a device: not a fair comparison.
    let of_memory = |arm: usize| {
        let compared = doubtful.filter(|found| found.compares_memory_with_a_device(plan.schedule.arms));
        compared.is_some_and(|found| found.cached.iter().any(|cached| cached.arm == arm))
    };
    // A doubtful claim makes its arms doubtful, and an arm without a better average is no advice.
    let doubted = |arm: usize| {
        let about = plan.study.claims.iter().zip(claims);
        let mut about = about.filter(|(claim, _)| claim.all_arms(&plan.design).contains(&arm));
        about.any(|(_, judged)| speaks_against_the_data(&judged.verdict) || judged.asked_only)
            || !contradicted(used, &[arm]).is_empty()
            || of_memory(arm)
    };
    let reference = plan.schedule.reference;
    let changes = |arm: usize| {
        let levels = plan.design.arms[arm].iter().zip(&plan.design.arms[reference]);
        levels.filter(|(level, reference)| level != reference).count()
    };
    let sound = || better.iter().filter(|(arm, _)| !doubted(*arm));
    let lowest = sound().map(|(_, gain)| gain.estimate).fold(f64::INFINITY, f64::min);
    let as_good = sound().filter(|(_, gain)| gain.estimate - lowest <= plan.study.sought.ln_1p());
    let least = as_good.min_by(|(one, a), (two, b)| {
        changes(*one).cmp(&changes(*two)).then(a.estimate.total_cmp(&b.estimate))
    });
    let (arm, Gain { estimate, interval, level }) = *least.filter(|_| !doubted(reference))?;
    // Settings that all arms share are not advice of this study.
    let levels = plan.study.factors.iter().zip(&plan.design.arms[arm]);
    let settings: Vec<_> = levels.flat_map(|(factor, level)| &factor.levels[*level].settings).collect();
    let too_few = blocks_to_tell_apart(plan.schedule.arms, tests.advice_level);
    let too_few = Some(too_few).filter(|needed| used.blocks.len() < *needed && plan.advice_claim().is_none());
    Some(Recommendation {
        arm,
        settings: settings.into_iter().cloned().collect(),
        against: plan.arm_name(reference),
        evidence: evidence(plan, used.blocks.len(), candidates.len(), too_few),
        candidates,
        blocks_to_tell_apart: too_few.map(|needed| needed as u64),
        gain: match plan.study.measure.better {
            Better::Lower => effect(estimate, interval, level),
            Better::Higher => effect(-estimate, Interval { low: -interval.high, high: -interval.low }, level),
        },
    })
}

/// Describes the evidence for the advice. `too_few` is the number of blocks that would tell the
/// arms apart, if fewer ran.
fn evidence(plan: &Plan, blocks: usize, candidates: usize, too_few: Option<usize>) -> String {
    let arms = plan.schedule.arms;
    match plan.advice_claim() {
        Some(claim) => {
            let name = &plan.study.claims[claim].name;
            format!("the claim {name} over {blocks} blocks, its gain shrunk for having been significant")
        }
        None if too_few.is_some() => format!(
            "{arms} arms over {blocks} blocks, which are too few to tell arms from each other; of those that look as good it \
             changes least, and its gain is shrunk for the choice"
        ),
        None if candidates == 1 => format!("the best of {arms} arms over {blocks} blocks"),
        None => format!(
            "one of {candidates} of {arms} arms that cannot be told from the best over {blocks} blocks; of those that look as \
             good it changes least, and its gain is shrunk for the choice and for having been significant"
        ),
    }
}

/// Returns the fewest blocks in which one arm can be proved worse than another that ran once a
/// block. Its test is one of 2K - 3 on one side, and the smallest p halves with each block.
fn blocks_to_tell_apart(arms: usize, advice_level: f64) -> usize {
    let tests = (2 * arms).saturating_sub(3).max(1) as f64;
    fewest_blocks(0.5, 2.0 * advice_level / tests)
}

/// Returns the candidates and the arms better than the reference.
fn chosen(figures: &Figures<'_>, tests: &Tests) -> Option<Best> {
    let (plan, used) = (figures.plan(), figures.used);
    let reference = plan.schedule.reference;
    let Some(claim) = plan.advice_claim() else {
        let observations = figures.costs(&plan.study.measure).ok()?;
        let lost = used.failed();
        let arms = Arms { seen: &observations, arms: plan.schedule.arms, twice: plan.twice(), lost: &lost };
        let levels = advice_levels(plan.study.claims.len(), plan.study.alpha);
        return best::best(&arms, used.looks(), tests.advice_level, &levels).ok();
    };
    let tested = tests.claims[claim].as_ref().ok()?;
    let (answer, Interval { low, high }) = (tested.answer, tested.interval);
    // A claim may name the reference as its treatment.
    let turned = plan.study.claims[claim].sides(&plan.design).from != [reference];
    let turned = turned != (plan.study.measure.better == Better::Higher);
    let (side, estimate, interval) = match turned {
        true => (Side::Above, -answer.estimate, Interval { low: -high, high: -low }),
        false => (Side::Below, answer.estimate, tested.interval),
    };
    let estimate = best::corrected(&tested.contrast, estimate, answer.level / 2.0);
    let estimate = estimate.clamp(interval.low, interval.high);
    let gain = Gain { estimate, interval, level: answer.interval_level };
    let treatment = 1 - reference;
    answer.is(side).then(|| Best { candidates: vec![treatment], better: vec![(treatment, gain)] })
}

/// Adds to each claim's reasons which of its arms the page cache answered.
pub(super) fn say_what_answered(
    used: &UsedBlocks<'_>,
    claims: &mut [JudgedClaim],
    doubtful: Option<&DoubtfulRuns>,
) {
    let plan = &used.contents.plan;
    for (claim, judged) in plan.study.claims.iter().zip(claims) {
        let arms = claim.all_arms(&plan.design).into_iter();
        let said = arms.filter_map(|arm| doubtful?.of_arm(arm, &plan.arm_name(arm), plan.schedule.arms));
        // The decisive reason stays last.
        judged.reasons.splice(0..0, said);
    }
}

pub(super) fn findings(
    used: &UsedBlocks<'_>,
    judged: &Judgements,
    doubtful: Option<&DoubtfulRuns>,
) -> Vec<Finding> {
    let Judgements { claims, stability, recommendation, interactions, .. } = judged;
    let mut findings = Vec::new();
    findings.extend(units::findings(used));
    findings.extend(marked(used));
    findings.extend(itself(stability));
    findings.extend(doubtful.into_iter().flat_map(|doubtful| of_memory(used, doubtful)));
    findings.extend(doubtful.into_iter().flat_map(disturbed));
    findings.extend(busy(used));
    findings.extend(stability.steal_time.as_ref().and_then(others_had_it));
    findings.extend(use_these(used, claims, recommendation.as_ref()));
    findings.extend(refuted(claims));
    findings.extend(critical(used));
    findings.extend(undecided(used, claims));
    findings.extend(mixed(claims));
    findings.extend(at_some_levels(&used.contents.plan.study, claims, interactions));
    findings.extend(looks_too_large(claims));
    findings.extend(one_phase(&used.contents.plan.study.claims, claims));
    findings.extend(one_database(used));
    findings.extend(calibration_in_doubt(used));
    findings
}

/// Finding: the calibration is in doubt, so no figure was compared with its limits.
fn calibration_in_doubt(used: &UsedBlocks<'_>) -> Option<Finding> {
    let doubts = &used.contents.environment.calibration_doubts;
    (!doubts.is_empty()).then(|| {
        finding(
            "The calibration of the device is IN DOUBT",
            doubts.join("; "),
            "no figure was held against it: calibrate again while nothing else uses the device",
        )
    })
}

/// Findings for claims whose typical run and average disagree.
fn mixed(claims: &[JudgedClaim]) -> Vec<Finding> {
    let row = |claim: &JudgedClaim| {
        let slow = claim.slow_runs.map_or(String::new(), |slow| {
            let (low, high) = (100.0 * slow.low, 100.0 * slow.high);
            format!("; {} of {} runs were slow, {low:.0}% to {high:.0}% of all", slow.slow, slow.runs)
        });
        finding(
            format!("{} gains in most runs and loses in some", claim.name),
            format!("{}{slow}", claim.verdict),
            "look at the slow runs before you use it: what took longer in them?",
        )
    };
    claims.iter().filter(|claim| matches!(claim.verdict, Verdict::Mixed { .. })).map(row).collect()
}

/// Returns the proved interactions of a claim's factor, if the claim is about all levels of the
/// other factors: its effect is then one of some levels.
fn interacting<'a>(study: &Study, claim: &Claim, interactions: &'a [Interaction]) -> Vec<&'a Interaction> {
    let name = study.factors.get(claim.change.factor).map_or("", |factor| factor.name.as_str());
    let of_claim = |change: &str| change.split(' ').next() == Some(name);
    let proved = |found: &&Interaction| found.p.is_some_and(|p| p <= study.alpha);
    let is_main = claim.with.is_none() && claim.at.is_empty();
    let own = interactions.iter().filter(|found| of_claim(&found.first) || of_claim(&found.second));
    own.filter(proved).filter(|_| is_main).collect()
}

/// Findings for claims over all levels whose effect depends on another factor.
fn at_some_levels(study: &Study, claims: &[JudgedClaim], interactions: &[Interaction]) -> Vec<Finding> {
    let row = |(written, judged): (&Claim, &JudgedClaim)| {
        let found = interacting(study, written, interactions);
        let first = found.first()?;
        let p = first.p.unwrap_or(1.0);
        let evidence = format!(
            "{} with {}: {:+.1}% between the two effects (p = {p:.4})",
            first.first,
            first.second,
            100.0 * (first.effect.ratio - 1.0)
        );
        Some(finding(
            format!("{} is a mean of effects that differ: it holds at some levels", judged.name),
            evidence,
            "claim it at each level (`at = { ... }`): a mean of unlike effects is no setting's",
        ))
    };
    study.claims.iter().zip(claims).filter_map(row).collect()
}

/// Adds to the reasons of a claim over all levels that its effect depends on another factor.
pub(super) fn say_at_some_levels(study: &Study, claims: &mut [JudgedClaim], interactions: &[Interaction]) {
    for (written, judged) in study.claims.iter().zip(claims) {
        if let Some(found) = interacting(study, written, interactions).first() {
            let said = format!("at some levels: it depends on {} with {}", found.first, found.second);
            judged.reasons.insert(0, said);
        }
    }
}

/// Findings for claims proved by a study with less than 80% power for such effects.
fn looks_too_large(claims: &[JudgedClaim]) -> Vec<Finding> {
    let row = |claim: &JudgedClaim| {
        let proved = matches!(claim.verdict.proved(), Some(Typically::Differs(..)));
        let said = claim.reasons.iter().find(|reason| reason.starts_with(TOO_LARGE)).filter(|_| proved)?;
        Some(finding(
            format!("{} is proved, and looks larger than it is", claim.name),
            said.clone(),
            "its side is as sure as any; for its size, study again with more blocks",
        ))
    };
    claims.iter().filter_map(row).collect()
}

/// Finding: each level of these factors is a single database.
fn one_database(used: &UsedBlocks<'_>) -> Option<Finding> {
    let factors = created(used);
    (!factors.is_empty()).then(|| {
        finding(
            format!("Each level of {} is one database", factors.join(" and ")),
            "made once, before the first run: where its files came to lie is part of the level, and more blocks only make that surer",
            "study again with other databases before you believe a small effect of it",
        )
    })
}

/// Findings for proved differences that lie in one phase of several. If the claim names its phase,
/// only differences mostly in another phase are reported; if not, the reader decides.
fn one_phase(asked: &[Claim], claims: &[JudgedClaim]) -> Vec<Finding> {
    let row = |(asked, claim): (&Claim, &JudgedClaim)| {
        let why = claim.why.as_ref().filter(|why| why.phases.len() > 1)?;
        // A share needs a difference that excludes 0, and phases are of whole runs.
        if !why.is_told() || why.per.is_some() {
            return None;
        }
        let whole = why.treatment_elapsed_ns as f64 - why.reference_elapsed_ns as f64;
        let share = |phase: &PhasePart| (phase.treatment_ns as f64 - phase.reference_ns as f64) / whole;
        let most = why.phases.iter().max_by(|one, two| share(one).total_cmp(&share(two)))?;
        let clear = most.ends.is_some_and(EndsNanos::is_told);
        let what = format!("The difference of {} lies in the phase {}", claim.name, most.name);
        match asked.phase.as_deref().map(|named| (named, why.phases.iter().find(|phase| phase.name == named)))
        {
            None => (clear && share(most) > ONE_PHASE_SHARE).then(|| {
                let advice = "if the treatment is not about that phase, something else was changed with it";
                finding(what, format!("{:.0}% of it", 100.0 * share(most)), advice)
            }),
            Some((named, own)) => {
                (clear && most.name != named && share(most) > OTHER_PHASE_SHARE).then(|| {
                    let own = own.map_or(0.0, share);
                    let evidence = format!(
                        "{:.0}% of it, and {:.0}% in the phase {named}, which the claim is about",
                        100.0 * share(most),
                        100.0 * own
                    );
                    finding(what, evidence, "look for what else the treatment changed")
                })
            }
        }
    };
    asked.iter().zip(claims).filter_map(row).collect()
}

/// True for UNSTABLE, INVALID, IMPOSSIBLE and MIXED; MIXED does not improve the average.
fn speaks_against_the_data(verdict: &Verdict) -> bool {
    verdict.standing() <= Standing::Mixed
}

fn finding(what: impl Into<String>, evidence: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what: what.into(), evidence: evidence.into(), advice: advice.into(), ..Finding::default() }
}

fn marked(used: &UsedBlocks<'_>) -> Option<Finding> {
    let first = used.marked.first()?;
    Some(finding(
        format!("{} of the blocks begun could not be used", used.marked.len()),
        format!("block {}: {}", first.block, first.reason),
        "mend what failed and study again: which blocks fail may depend on the treatment",
    ))
}

/// Finding: the reference's two runs of a block differ, although they are the same treatment.
fn itself(stability: &Stability) -> Option<Finding> {
    let p = stability.reference_p?;
    (p <= SELF_P).then(|| {
        finding(
            "The reference differs from itself",
            format!("its two runs of a block differ with p = {p:.4}, and nothing was changed between them"),
            "one such p in a hundred studies is chance; otherwise look for other work on the machine",
        )
    })
}

/// Findings for arms answered from memory, and for layers that answer in place of the disk.
fn of_memory(used: &UsedBlocks<'_>, doubtful: &DoubtfulRuns) -> Vec<Finding> {
    let plan = &used.contents.plan;
    let of_fact = |fact: Fact| doubtful.facts.iter().find(|found| found.fact == fact);
    let cached = doubtful.cached.iter().filter_map(|cached| {
        let said = doubtful.of_arm(cached.arm, &plan.arm_name(cached.arm), plan.schedule.arms)?;
        let most = of_fact(Fact::PageCache)?;
        Some(finding(
            said,
            format!("most in run {} ({}): {}", most.run, most.arm, most.evidence),
            "make the data larger than memory",
        ))
    });
    let others = [Fact::CacheBelow, Fact::AboveDevice].into_iter().filter_map(of_fact);
    cached.chain(others.map(|found| counted(found, found.fact.advice()))).collect()
}

/// Findings for disturbances of counted runs. The hypervisor has a finding of its own.
fn disturbed(doubtful: &DoubtfulRuns) -> Vec<Finding> {
    let ours = doubtful.facts.iter().filter(|found| found.fact.is_disturbance() && found.fact != Fact::Steal);
    let advice = |fact| match fact {
        Fact::Quota => {
            "what varies servers or methods was judged within the quota: raise it to see what they do without"
        }
        _ => {
            "blocks hold runs of all arms, so it costs precision: study at a quieter time for smaller effects"
        }
    };
    ours.map(|found| counted(found, advice(found.fact))).collect()
}

fn counted(found: &DoubtfulFact, advice: &str) -> Finding {
    let DoubtfulFact { fact, runs, blocks, run, arm, evidence, .. } = found;
    let runs = format!("{} and {}", plural(*runs, "run"), plural(*blocks, "block"));
    finding(capital(fact.words().1), format!("in {runs}; most in run {run} ({arm}): {evidence}"), advice)
}

fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn busy(used: &UsedBlocks<'_>) -> Option<Finding> {
    let settled: Vec<&Settled> =
        used.blocks.iter().flat_map(|(_, runs)| runs.iter().map(|run| &run.settled)).collect();
    let busy = settled.iter().filter(|settled| !settled.idle).count();
    (busy as f64 > BUSY_SHARE * settled.len() as f64).then(|| {
        finding(
            "The device was not idle before runs",
            format!("{busy} of {} runs began before it was", settled.len()),
            "the random order balances it at the cost of precision; study at a quieter time for smaller effects",
        )
    })
}

/// Finding: the hypervisor gave processor time to other guests during runs.
fn others_had_it(stolen: &StolenFigure) -> Option<Finding> {
    (stolen.much > 0).then(|| {
        let percent = |share: f64| format!("{:.0}%", 100.0 * share);
        let goes_with = stolen.explains.map_or(String::new(), |share| {
            let (low, high) = (100.0 * share.low, 100.0 * share.high);
            format!("; {} [{low:.0}, {high:.0}] of the noise within blocks goes with it", percent(share.share))
        });
        let (much, most) = (percent(MUCH), percent(stolen.most));
        finding(
            "The hypervisor gave processor time to others",
            format!(
                "{} of {} runs lost {much} of it or more, one of them {most}{goes_with}",
                stolen.much, stolen.runs
            ),
            "the machine was a slower one in those runs: study at a quieter time, or where processors and devices are not shared",
        )
    })
}

fn use_these(
    used: &UsedBlocks<'_>,
    claims: &[JudgedClaim],
    recommendation: Option<&Recommendation>,
) -> Option<Finding> {
    if !used.contents.has_ended() {
        return Some(finding(
            "The study has not ended",
            "a look at its figures would be a test, and has its price",
            "go on with `plumb study --resume BUNDLE`, or end it where it is with `plumb report --end BUNDLE`",
        ));
    }
    let plan = &used.contents.plan;
    let Some(found) = recommendation else {
        let (blocks, needed) = (used.blocks.len(), plan.blocks_to_recommend());
        let asked = claims.iter().find(|claim| claim.asked_only);
        return (blocks > 0).then(|| match (asked, blocks < needed) {
            (Some(claim), _) => finding(
                "What is proved was only asked for",
                format!("nothing but the request shows where the difference of {} comes from", claim.name),
                "declare a [[receipt]] of what the level changes: then it becomes advice",
            ),
            (None, true) => finding(
                "Too few blocks to recommend an arm",
                format!("{blocks} blocks; all comparisons with the reference together take {needed}"),
                format!("study again with --blocks {needed} or more{}", in_time(used, needed as u64)),
            ),
            (None, false) => finding(
                "Which arm is the best is not decided",
                format!("{blocks} blocks, all {} arms compared together", plan.schedule.arms),
                "what a claim proves holds for its own arms: use that, and otherwise the reference's settings",
            ),
        });
    };
    let varied: Vec<String> =
        found.settings.iter().map(|set| format!("{}={}", set.name, set.value)).collect();
    let (sign, word) = match plan.study.measure.better {
        Better::Lower => (-1.0, "less"),
        Better::Higher => (1.0, "more"),
    };
    let gain = |ratio: f64| sign * (ratio - 1.0) * 100.0;
    let others: Vec<String> =
        found.candidates.iter().filter(|arm| **arm != found.arm).map(|arm| plan.arm_name(*arm)).collect();
    let what = match &others[..] {
        [] => format!("{} is the best of the arms", plan.arm_name(found.arm)),
        _ => format!("{} may be the best of the arms", plan.arm_name(found.arm)),
    };
    let ends = [found.gain.low, found.gain.high].map(|end| gain(end.unwrap_or(f64::NAN)));
    let ends = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    let against = format!(
        "{:.1}% {word} than {} [{:.1}, {:.1}]",
        gain(found.gain.ratio),
        found.against,
        ends.0,
        ends.1
    );
    let evidence = match (&others[..], found.blocks_to_tell_apart) {
        ([], _) => against,
        // A limit of the number of blocks is not reported as a result of the figures.
        (_, Some(needed)) => format!(
            "{against}; whether another arm is as good takes {needed} blocks or more to tell{}, and these are {}",
            in_time(used, needed),
            used.blocks.len()
        ),
        (_, None) => format!("{against}; not told from it: {}", others.join(", ")),
    };
    Some(finding(what, evidence, format!("set {}", varied.join(" "))))
}

fn refuted(claims: &[JudgedClaim]) -> Vec<Finding> {
    let refuted = claims.iter().filter(|claim| claim.outcome == ClaimOutcome::Refuted);
    let row = |claim: &JudgedClaim| {
        finding(
            format!("The claim {} does not hold here", claim.name),
            format!("{}: {}", claim.comparison, claim.shown()),
            "ratios may differ on another device: study it where it matters",
        )
    };
    refuted.map(row).collect()
}

/// Finding: the critical sort area, the size below which runs needed more than one merge pass.
fn critical(used: &UsedBlocks<'_>) -> Option<Finding> {
    let plan = &used.contents.plan;
    let sizes = |level: &crate::definition::Level| {
        let set = level.settings.iter().find(|set| set.name == "sort_area_size")?;
        plumb_units::parse_size(&set.value).ok()
    };
    let areas = plan
        .study
        .factors
        .iter()
        .position(|factor| factor.levels.iter().all(|level| sizes(level).is_some()))?;
    let mut levels: Vec<(u64, usize)> = plan.study.factors[areas]
        .levels
        .iter()
        .enumerate()
        .filter_map(|(at, level)| Some((sizes(level)?, at)))
        .collect();
    levels.sort_unstable();
    let merged = |level: usize| {
        let arms: Vec<usize> =
            (0..plan.design.arms.len()).filter(|arm| plan.design.arms[*arm][areas] == level).collect();
        let records = used.records(&arms);
        records.iter().filter_map(|(_, record)| Some(record.sort.as_ref()?.intermediate_merges)).max()
    };
    let found: Vec<(String, u64)> = levels
        .iter()
        .filter_map(|(_, level)| {
            Some((plan.study.factors[areas].levels[*level].label.clone(), merged(*level)?))
        })
        .collect();
    let last_merged = found.iter().rposition(|(_, merges)| *merges > 0)?;
    let counts: Vec<String> = found.iter().map(|(label, merges)| format!("{label}: {merges}")).collect();
    let evidence = format!(
        "intermediate merges in a run at most, by {}: {}",
        plan.study.factors[areas].name,
        counts.join(", ")
    );
    Some(match found.get(last_merged + 1) {
        Some((above, _)) => finding(
            format!("The critical sort area lies between {} and {above}", found[last_merged].0),
            evidence,
            "a sort area just above it has all the gain; memory beyond is better spent elsewhere",
        ),
        None => finding(
            format!("The critical sort area lies above {}", found[last_merged].0),
            evidence,
            "vary larger sort areas to find it",
        ),
    })
}

fn undecided(used: &UsedBlocks<'_>, claims: &[JudgedClaim]) -> Option<Finding> {
    let is_open = |claim: &&JudgedClaim| {
        matches!(claim.verdict, Verdict::NotProved { .. } | Verdict::NoFigure { .. })
            && claim.outcome != ClaimOutcome::Refuted
    };
    let open: Vec<&JudgedClaim> = claims.iter().filter(is_open).collect();
    let first = open.first()?;
    let names: Vec<&str> = open.iter().map(|claim| claim.name.as_str()).collect();
    let aim = |claim: &&JudgedClaim| match claim.verdict {
        Verdict::NotProved { more, .. } => Some((claim.blocks_needed?, more.aim()?)),
        _ => None,
    };
    let most = open.iter().filter_map(aim).max_by_key(|(blocks, _)| *blocks);
    let advice = most.map(|(most, aim)| {
        let blocks = first.blocks + most;
        let would = match aim {
            Aim::Find(percent) => format!("find {percent:.3}"),
            Aim::Equal(within) => format!("prove equal arms equal within {within:.3}"),
        };
        let would = would.trim_end_matches('0').trim_end_matches('.');
        format!(
            "a new study of about {blocks} blocks{} would {would}% with 80% power, if the noise stays as it is",
            in_time(used, blocks)
        )
    });
    Some(finding(
        format!("{} of {} claims are not decided", open.len(), claims.len()),
        names.join(", "),
        advice.unwrap_or_else(|| {
            "what was sought would have been found, or no planned number of blocks finds it".to_string()
        }),
    ))
}

/// Returns ` (4 h at 9.1 s a block)`; empty if no block ran.
fn in_time(used: &UsedBlocks<'_>, blocks: u64) -> String {
    BlockTime::by(used).in_time(blocks).map_or(String::new(), |time| format!(" ({time})"))
}

/// Says if other work ran on the machine, as far as the runs' circumstances show.
fn other_work(doubtful: Option<&DoubtfulRuns>) -> String {
    match doubtful {
        Some(found) if found.disturbed > 0 => format!(
            "A quiet machine: {} of {} runs were disturbed, in {}.",
            found.disturbed,
            found.runs,
            plural(found.disturbed_blocks, "block")
        ),
        Some(found) if found.judged == found.runs => {
            "Other work beside the runs: each had the machine to itself as far as the study could see."
                .to_string()
        }
        _ => "Other work beside the runs: whether there was any is not known.".to_string(),
    }
}

pub(super) fn not_tested(used: &UsedBlocks<'_>, doubtful: Option<&DoubtfulRuns>) -> Vec<String> {
    let plan = &used.contents.plan;
    let study = &plan.study;
    let mut sentences = vec![
        study.vocabulary.not_tested(study.work.as_ref()),
        "Other devices, file systems and machines: ratios transfer better than times, and neither by law."
            .to_string(),
    ];
    for factor in &study.factors {
        let levels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
        sentences.push(format!("Levels of {} other than {}.", factor.name, levels.join(", ")));
    }
    if !study.settings.is_empty() {
        let fixed: Vec<String> =
            study.settings.iter().map(|set| format!("{}={}", set.name, set.value)).collect();
        sentences.push(format!("Other values of what was fixed: {}.", fixed.join(" ")));
    }
    if study.factors.len() > 2 {
        sentences.push("Interactions of three factors and more.".to_string());
    }
    sentences.push(other_work(doubtful));
    sentences
}
