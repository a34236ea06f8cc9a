//! Complete verdicts in words: the time of further blocks, and the expectation of an open claim.

use plumb_proof::verdict::Verdict;
use plumb_report::format::{Ends, Figure};
use plumb_study::analysis::block_time::BlockTime;
use plumb_study::analysis::result::{Analysis, JudgedClaim};
use plumb_study::definition::{Claim, Of};
use std::collections::BTreeMap;

/// Returns the verdict of a claim as it is printed.
pub(super) fn verdict(analysis: &Analysis, claim: &JudgedClaim) -> String {
    let is_open = matches!(claim.verdict, Verdict::NotProved { .. });
    let more = claim.blocks_needed.filter(|_| is_open);
    let in_time = more.and_then(|blocks| BlockTime::of(analysis).in_time(blocks));
    let text = claim.shown() + &in_time.map_or(String::new(), |time| format!(", {time}"));
    let text = text + &in_points(analysis, claim).unwrap_or_default();
    match open_although_proved(analysis, claim) {
        Some(expects) => format!("{text}; claimed: {expects}"),
        None => text,
    }
}

/// Returns the change of a percentage in points, because per cent of per cent misleads: misses
/// that double from 0.8 to 1.6% change the share of hits by 0.8%.
fn in_points(analysis: &Analysis, claim: &JudgedClaim) -> Option<String> {
    let is_typical = written(analysis, claim)?.of != Of::P95;
    let is_own = claim.measure.is_none() && analysis.study.measure.unit() == "%";
    let pair = claim.arms.filter(|_| is_typical && is_own)?;
    let median = |arm: usize| analysis.arms.get(arm)?.median;
    let (from, to) = (median(pair.reference)?, median(pair.treatment)?);
    Some(format!("; in points {:+.2}, from {from:.2}% to {to:.2}%", to - from))
}

/// Returns why a claim is open although its effect is proved.
pub(super) fn why_open(analysis: &Analysis, claim: &JudgedClaim) -> Option<String> {
    let expects = open_although_proved(analysis, claim)?;
    let ends = claim
        .effect
        .map_or(String::new(), |effect| format!(" {}", Ends { low: effect.low, high: effect.high }.figure()));
    let why = match expects.ends_with("on average") {
        true => "the average is not proved".to_string(),
        false => format!("the interval{ends} reaches to both sides of it"),
    };
    Some(format!("the effect is proved and the claim, {expects}, is open: {why}"))
}

/// Returns the expectation of a claim that is open although its effect is proved.
fn open_although_proved(analysis: &Analysis, claim: &JudgedClaim) -> Option<String> {
    claim.is_open_although_proved().then_some(written(analysis, claim)?.expectation())
}

/// Returns the claim as the study file has it.
fn written<'a>(analysis: &'a Analysis, claim: &JudgedClaim) -> Option<&'a Claim> {
    analysis.study.claims.iter().find(|written| written.name == claim.name)
}

/// Returns the places of a study that lie on one device, a sentence for each device.
pub(super) fn one_device(analysis: &Analysis) -> Vec<String> {
    let mut by_device: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for device in &analysis.environment.devices {
        by_device.entry(&device.device).or_default().push(&device.path);
    }
    let several = by_device.into_iter().filter(|(_, paths)| paths.len() > 1);
    several.map(|(device, paths)| format!("{} lie on one device, {device}", paths.join(" and "))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::parallel_sort;
    use super::*;
    use plumb_study::analysis::result::ClaimOutcome;
    use plumb_study::definition::Expectation;
    use plumb_study::vocabulary::{Figure as MeasureFigure, Measure};

    #[test]
    fn blocks_that_are_needed_are_said_as_time() {
        let mut study = parallel_sort();
        (study.elapsed_ns, study.design.loading_ns) = (100_000_000_000, 10_000_000_000);
        study.runs.truncate(9);
        let open = study.claims.iter().find(|claim| claim.blocks_needed == Some(14)).expect("one is open");
        let in_time = BlockTime::of(&study).in_time(14).expect("runs");
        assert_eq!(verdict(&study, open), format!("{}, {in_time}", open.shown()));
        let open = open.clone();
        study.runs.clear();
        assert_eq!(verdict(&study, &open), open.shown());
    }

    #[test]
    fn a_percentage_changes_by_points() {
        let mut study = parallel_sort();
        let claim = study.claims.iter().find(|claim| claim.arms.is_some() && claim.measure.is_none());
        let claim = claim.expect("two arms are compared").clone();
        assert_eq!(in_points(&study, &claim), None);
        study.study.measure = Measure::gain("hits", MeasureFigure::Measured("%".to_string()));
        let pair = claim.arms.expect("it has two");
        (study.arms[pair.reference].median, study.arms[pair.treatment].median) = (Some(99.2), Some(98.4));
        let shown = verdict(&study, &claim);
        assert!(shown.contains("; in points -0.80, from 99.20% to 98.40%"), "{shown}");
    }

    #[test]
    fn an_open_claim_with_proved_effect_states_its_expectation() {
        let mut study = parallel_sort();
        let index = study.claims.iter().position(|claim| matches!(claim.verdict, Verdict::Faster(_)));
        let index = index.expect("one is proved");
        study.claims[index].outcome = ClaimOutcome::Holds;
        assert_eq!(verdict(&study, &study.claims[index]), study.claims[index].shown());
        study.claims[index].outcome = ClaimOutcome::Open;
        let written = study.study.claims.iter_mut().find(|it| it.name == study.claims[index].name);
        written.expect("it was claimed").expects = Expectation::Faster { at_least: 60.0 };
        let shown = verdict(&study, &study.claims[index]);
        assert!(shown.ends_with("; claimed: faster by at least 60%"), "{shown}");
        assert!(why_open(&study, &study.claims[index]).is_some());
    }

    #[test]
    fn places_on_one_device_are_said() {
        let mut study = parallel_sort();
        assert_eq!(one_device(&study), Vec::<String>::new());
        let mut other = study.environment.devices[0].clone();
        other.path = "/u02".to_string();
        study.environment.devices.push(other.clone());
        let expected =
            format!("{} and /u02 lie on one device, {}", study.environment.devices[0].path, other.device);
        assert_eq!(one_device(&study), [expected]);
    }
}
