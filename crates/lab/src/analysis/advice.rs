//! What to do with it: the settings to use, what was noticed, what was not tested.
//!
//! The arm to use is the one with the smallest figures. Choosing the best of several by the figures
//! themselves flatters it, so its interval is one of all arms' that hold together (each at the study's error over
//! their number, or that of the claims where there are more); it is recommended only where that interval is clear
//! of no effect, and no claim about it is worse than not proved.

use super::doubts::contradicted;
use super::result::{Bearing, JudgedClaim, Recommendation};
use super::seen::Seen;
use super::stability::effect_of;
use crate::bundle::Settled;
use crate::record::Finding;
use plumb_proof::permutation::{self, Statistic};
use plumb_proof::verdict::Verdict;
use plumb_units::RowCount;

/// A share of runs that began on a busy device, above which it is said.
const BUSY_SHARE: f64 = 0.2;
/// p below which the reference is said to differ from itself.
const SELF_P: f64 = 0.01;

/// The settings to use; none when no arm is better than the reference beyond doubt.
pub(super) fn recommendation(seen: &Seen<'_>, claims: &[JudgedClaim]) -> Option<Recommendation> {
    let plan = &seen.contents.plan;
    let observations = seen.observations(&plan.study.measure).ok()?;
    let (reference, seed) = (plan.schedule.reference, plan.schedule.seed);
    let others: Vec<usize> = (0..plan.schedule.arms).filter(|arm| *arm != reference).collect();
    let ratios = |arm: &usize| observations.log_ratios(*arm, reference).unwrap_or_default();
    let estimate = |arm: &usize| permutation::test(&ratios(arm), 0.0, Statistic::SignedRank, seed).estimate;
    let best = *others.iter().min_by(|one, two| estimate(one).total_cmp(&estimate(two)))?;
    let gain = effect_of(seen, &ratios(&best), plan.study.alpha / plan.comparisons() as f64);
    // What is UNSTABLE, INVALID or IMPOSSIBLE about a claim is so about its arms.
    let doubted = |arm: usize| {
        let about = plan.study.claims.iter().zip(claims);
        let mut about = about.filter(|(claim, _)| claim.all_arms(&plan.design).contains(&arm));
        about.any(|(_, judged)| speaks_against_the_data(&judged.verdict))
            || !contradicted(seen, &[arm]).is_empty()
    };
    if gain.high.is_none_or(|high| high >= 1.0) || doubted(best) || doubted(reference) {
        return None;
    }
    // Those that all arms share are not the study's advice.
    let levels = plan.study.factors.iter().zip(&plan.design.arms[best]);
    let settings: Vec<_> = levels.flat_map(|(factor, level)| &factor.levels[*level].settings).collect();
    Some(Recommendation {
        arm: best,
        settings: settings.into_iter().cloned().collect(),
        against: plan.arm_name(reference),
        gain,
        evidence: format!(
            "the fastest of {} arms over {} blocks; the interval is one of {} that hold together",
            plan.schedule.arms,
            seen.blocks.len(),
            plan.comparisons()
        ),
    })
}

pub(super) fn findings(
    seen: &Seen<'_>,
    claims: &[JudgedClaim],
    recommendation: Option<&Recommendation>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(marked(seen));
    findings.extend(itself(seen));
    findings.extend(busy(seen));
    findings.extend(use_these(seen, recommendation));
    findings.extend(refuted(claims));
    findings.extend(critical(seen));
    findings.extend(undecided(claims));
    findings
}

/// UNSTABLE, INVALID and IMPOSSIBLE.
fn speaks_against_the_data(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unstable { .. } | Verdict::Invalid { .. } | Verdict::Impossible { .. })
}

fn finding(what: impl Into<String>, evidence: impl Into<String>, advice: impl Into<String>) -> Finding {
    Finding { what: what.into(), evidence: evidence.into(), advice: advice.into() }
}

fn marked(seen: &Seen<'_>) -> Option<Finding> {
    let first = seen.marked.first()?;
    Some(finding(
        format!("{} of the blocks begun could not be used", seen.marked.len()),
        format!("block {}: {}", first.block, first.reason),
        "mend what failed and study again: which blocks fail may depend on the treatment",
    ))
}

/// The reference's two runs of a block are the same treatment.
fn itself(seen: &Seen<'_>) -> Option<Finding> {
    let plan = &seen.contents.plan;
    let observations = seen.observations(&plan.study.measure).ok()?;
    let (first, again) = (plan.schedule.reference, plan.schedule.reference_again());
    let ratios = observations.log_ratios(again, first).ok()?;
    let p = permutation::test(&ratios, 0.0, Statistic::SignedRank, plan.schedule.seed).p;
    (p <= SELF_P).then(|| {
        finding(
            "The reference differs from itself",
            format!("its two runs of a block differ with p = {p:.4}, and nothing was changed between them"),
            "one such p in a hundred studies is chance; otherwise look for what runs beside them",
        )
    })
}

fn busy(seen: &Seen<'_>) -> Option<Finding> {
    let settled: Vec<&Settled> =
        seen.blocks.iter().flat_map(|(_, runs)| runs.iter().map(|run| &run.settled)).collect();
    let busy = settled.iter().filter(|settled| !settled.idle).count();
    (busy as f64 > BUSY_SHARE * settled.len() as f64).then(|| {
        finding(
            "Others used the device",
            format!("{busy} of {} runs began before it was idle", settled.len()),
            "the random order balances it at the cost of precision; study at a quieter time for smaller effects",
        )
    })
}

fn use_these(seen: &Seen<'_>, recommendation: Option<&Recommendation>) -> Option<Finding> {
    let Some(found) = recommendation else {
        let (blocks, needed) = (seen.blocks.len(), seen.contents.plan.blocks_to_recommend());
        return (blocks > 0).then(|| match blocks < needed {
            true => finding(
                "Too few blocks to recommend an arm",
                format!("{blocks} blocks; all comparisons with the reference together take {needed}"),
                format!("study again with --blocks {needed} or more"),
            ),
            false => finding(
                "No arm is better than the reference beyond doubt",
                format!("{blocks} blocks, all comparisons together"),
                "keep the settings of the reference",
            ),
        });
    };
    let varied: Vec<String> =
        found.settings.iter().map(|set| format!("{}={}", set.name, set.value)).collect();
    let gain = |ratio: f64| (1.0 - ratio) * 100.0;
    Some(finding(
        format!("{} is the best of the arms", seen.contents.plan.arm_name(found.arm)),
        format!(
            "{:.1}% less than {} [{:.1}, {:.1}]",
            gain(found.gain.ratio),
            found.against,
            gain(found.gain.high.unwrap_or(f64::NAN)),
            gain(found.gain.low.unwrap_or(f64::NAN))
        ),
        format!("set {}", varied.join(" ")),
    ))
}

fn refuted(claims: &[JudgedClaim]) -> Vec<Finding> {
    let refuted = claims.iter().filter(|claim| claim.bearing == Bearing::Refuted);
    let row = |claim: &JudgedClaim| {
        finding(
            format!("The claim {} does not hold here", claim.name),
            format!("{}: {}", claim.comparison, claim.verdict),
            "ratios may differ on another device: study it where it matters",
        )
    };
    refuted.map(row).collect()
}

/// The critical size of the sort area: below it merges of merges were made.
fn critical(seen: &Seen<'_>) -> Option<Finding> {
    let plan = &seen.contents.plan;
    let sizes = |level: &crate::study::Level| {
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
        let records = seen.records(&arms);
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

fn undecided(claims: &[JudgedClaim]) -> Option<Finding> {
    let open: Vec<&JudgedClaim> =
        claims.iter().filter(|claim| matches!(claim.verdict, Verdict::NotProved { .. })).collect();
    let first = open.first()?;
    let names: Vec<&str> = open.iter().map(|claim| claim.name.as_str()).collect();
    let needed = open.iter().filter_map(|claim| claim.blocks_needed);
    let beyond = open.iter().filter(|claim| claim.blocks_needed.is_none()).count();
    let some = needed.max().map(|most| {
        let them = if beyond == 0 { "them" } else { "those that blocks can decide" };
        let blocks = first.blocks + most;
        format!("a new study of about {blocks} blocks would decide {them}, if the noise stays as it is")
    });
    Some(finding(
        format!("{} of {} claims are not decided", open.len(), claims.len()),
        names.join(", "),
        some.unwrap_or_else(|| "no number of blocks that is planned for would decide them".to_string()),
    ))
}

pub(super) fn not_tested(seen: &Seen<'_>) -> Vec<String> {
    let plan = &seen.contents.plan;
    let study = &plan.study;
    let mut sentences = vec![
        format!("Tables of other sizes than {} rows, and other data than these.", RowCount(study.rows())),
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
    sentences.push(
        "Other work beside the runs: each had the machine to itself as far as the study could see."
            .to_string(),
    );
    sentences
}
