//! A verdict in words that need no other table: what more blocks take in time, and what was claimed
//! where the verdict alone does not say why a claim is open.

use plumb_lab::analysis::result::{Analysis, ClaimOutcome, JudgedClaim};
use plumb_lab::study::Expectation;
use plumb_proof::verdict::Verdict;
use plumb_report::format::{Ends, Figure};
use std::collections::BTreeMap;

/// Returns the verdict of a claim as it is printed.
pub(super) fn verdict(analysis: &Analysis, claim: &JudgedClaim) -> String {
    let is_open = matches!(claim.verdict, Verdict::NotProved { .. });
    let in_time = claim.blocks_needed.filter(|_| is_open).and_then(|blocks| in_time(analysis, blocks));
    let text = claim.shown() + &in_time.unwrap_or_default();
    match open_although_proved(analysis, claim) {
        Some(expects) => format!("{text}; claimed: {expects}"),
        None => text,
    }
}

/// Returns why a claim is open although its effect is proved.
pub(super) fn why_open(analysis: &Analysis, claim: &JudgedClaim) -> Option<String> {
    let expects = open_although_proved(analysis, claim)?;
    let ends = claim
        .effect
        .map_or(String::new(), |effect| format!(" {}", Ends { low: effect.low, high: effect.high }.figure()));
    Some(format!(
        "the effect is proved and the claim, {expects}, is open: the interval{ends} reaches to both sides of it"
    ))
}

/// Returns the expectation of a claim that is open although its effect is proved.
fn open_although_proved(analysis: &Analysis, claim: &JudgedClaim) -> Option<Expectation> {
    let proved = matches!(claim.verdict, Verdict::Faster(_) | Verdict::Slower(_) | Verdict::Equal { .. });
    let written = analysis.study.claims.iter().find(|written| written.name == claim.name)?;
    (proved && claim.outcome == ClaimOutcome::Open).then_some(written.expects)
}

/// Returns `, 4 h at 9.1 s a block`, by the blocks that ran; none where none did.
fn in_time(analysis: &Analysis, blocks: u64) -> Option<String> {
    let block = block_ns(analysis)? as f64 / 1e9;
    let a_block = if block < 10.0 { format!("{block:.1} s") } else { rough(block) };
    Some(format!(", {} at {a_block} a block", rough(block * blocks as f64)))
}

/// The mean time of a block, with all that happened between its runs.
fn block_ns(analysis: &Analysis) -> Option<u64> {
    let runs = analysis.runs.len() as u64;
    let spent = analysis.elapsed_ns.checked_sub(analysis.design.loading_ns)?;
    // The reference runs twice.
    spent.checked_div(runs).map(|run| run * (analysis.arms.len() as u64 + 1)).filter(|block| *block > 0)
}

/// A time in the unit that says it best.
fn rough(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
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

    #[test]
    fn blocks_that_are_needed_are_said_as_time() {
        let mut study = parallel_sort();
        (study.elapsed_ns, study.design.loading_ns) = (100_000_000_000, 10_000_000_000);
        study.runs.truncate(9);
        let block = 10.0 * (study.arms.len() + 1) as f64;
        assert_eq!(block_ns(&study).map(|ns| ns as f64 / 1e9), Some(block));
        let expected = format!(", {} at {} a block", rough(1577.0 * block), rough(block));
        assert_eq!(in_time(&study, 1577), Some(expected));
        let open = study.claims.iter().find(|claim| claim.blocks_needed == Some(14)).expect("one is open");
        let shown = format!("{}, {} at {} a block", open.shown(), rough(14.0 * block), rough(block));
        assert_eq!(verdict(&study, open), shown);
        study.runs.clear();
        assert_eq!(in_time(&study, 1577), None);
        let times = [9.0, 99.0, 720.0, 14_193.0, 400_000.0].map(rough);
        assert_eq!(times, ["9 s", "99 s", "12 min", "4 h", "5 days"]);
    }

    #[test]
    fn an_open_claim_says_what_it_was_where_its_effect_is_proved() {
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
