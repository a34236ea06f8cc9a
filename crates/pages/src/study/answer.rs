//! The answer of a study: what is proved first, then how much of the rest is open, and what to use.

use super::advice::{assignments, gain, undecided};
use super::{effects, summary, words};
use plumb_proof::verdict::Standing;
use plumb_report::answer::LINES_MAX;
use plumb_report::format::{Count, Figure, Size, Throughput};
use plumb_report::{Headline, ReportAnswer};
use plumb_study::analysis::result::{Analysis, Arm, ArmIo, IoTable, JudgedClaim, StudyState};

/// Claims of the sentence; the lines below it have more.
const CLAIMS_MAX: usize = 2;
/// Longest question that leaves the sentence readable.
const QUESTION_MAX: usize = 90;

pub(super) fn answer(analysis: &Analysis) -> ReportAnswer {
    let design = &analysis.design;
    let mut lines = summary::claims(analysis);
    if let Some(devices) = devices(analysis) {
        lines.truncate(LINES_MAX - 1);
        lines.push(devices);
    }
    ReportAnswer {
        asked: question(analysis),
        found: found(analysis),
        sure: format!(
            "{}, {} of {} blocks used",
            analysis.tally(),
            design.blocks_used,
            analysis.study.blocks
        ),
        advice: advice(analysis),
        lines,
    }
}

/// Returns the first question of the study; its title if it asks none, or a long one.
fn question(analysis: &Analysis) -> String {
    match analysis.study.question.split_once('?') {
        Some((question, _)) if !question.contains(". ") && question.len() <= QUESTION_MAX => {
            format!("{question}?")
        }
        _ => analysis.study.title.clone(),
    }
}

fn found(analysis: &Analysis) -> String {
    if analysis.state == StudyState::Interrupted {
        return "no verdict before the study's end".to_string();
    }
    let claims = || analysis.claims.iter();
    let settled = |claim: &&JudgedClaim| claim.verdict.standing() == Standing::Proved;
    let chosen: Vec<&JudgedClaim> = match claims().any(|claim| settled(&claim)) {
        true => claims().filter(settled).collect(),
        false => claims().collect(),
    };
    let said = chosen
        .iter()
        .take(CLAIMS_MAX)
        .map(|claim| format!("{}: {}", differing(&claim.comparison), words::verdict(analysis, claim)));
    match chosen.is_empty() {
        true => "no claim was judged".to_string(),
        false => said.collect::<Vec<_>>().join("; "),
    }
}

/// Returns the busiest device of both arms of the first claim. Only commands have the line, because
/// their own figures do not show it.
fn devices(analysis: &Analysis) -> Option<Headline> {
    let pair = analysis.claims.iter().find_map(|claim| claim.arms)?;
    let of = |arm: usize| analysis.arms.get(arm).and_then(device);
    let value = format!("{}, then {}", of(pair.reference)?, of(pair.treatment)?);
    Some(Headline { name: "Disk".to_string(), value, aside: String::new() })
}

fn device(arm: &Arm) -> Option<String> {
    let is_command = arm.io.iter().all(|io| io.table == IoTable::Device);
    let bytes = |io: &&ArmIo| io.reads.bytes.saturating_add(io.writes.bytes);
    let io = effects::of_devices(arm).filter(|_| is_command).max_by_key(bytes)?;
    let elapsed_ns = arm.io_ns.filter(|ns| *ns > 0)?;
    let requests = io.reads.requests + io.writes.requests;
    let rate = (requests as f64 * 1e9 / elapsed_ns as f64).round() as u64;
    let size =
        bytes(&io).checked_div(requests).map_or(String::new(), |each| format!(" of {}", Size(each).figure()));
    let busy =
        effects::busy(io, elapsed_ns).map_or(String::new(), |share| format!(", {}% busy", share.figure()));
    let rate_bytes = Throughput { bytes: bytes(&io), elapsed_ns }.figure();
    Some(format!("{} {rate_bytes} MB/s in {} requests/s{size}{busy}", io.name, Count(rate).figure()))
}

/// Returns a comparison of two arms without the settings that they share.
fn differing(comparison: &str) -> String {
    let Some((treatment, reference)) = comparison.split_once(" against ") else {
        return comparison.to_string();
    };
    let [treatment, reference] = [treatment, reference].map(|arm| arm.split(' ').collect::<Vec<_>>());
    if treatment.len() != reference.len() {
        return comparison.to_string();
    }
    let pairs = || treatment.iter().zip(&reference).filter(|(one, other)| one != other);
    let [treatment, reference]: [Vec<&str>; 2] =
        [pairs().map(|(one, _)| *one).collect(), pairs().map(|(_, other)| *other).collect()];
    match treatment.is_empty() {
        true => comparison.to_string(),
        false => format!("{} against {}", treatment.join(" "), reference.join(" ")),
    }
}

fn advice(analysis: &Analysis) -> String {
    if analysis.state == StudyState::Interrupted {
        return "go on with --resume, or end it with plumb report --end".to_string();
    }
    match &analysis.recommendation {
        Some(found) => {
            format!(
                "use {}, {} in {} against {}",
                assignments(&found.settings),
                gain(found),
                analysis.study.measure.title().to_lowercase(),
                found.against
            )
        }
        None => format!("use {}", undecided(analysis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_names_what_differs() {
        let check = |comparison: &str, expected: &str| assert_eq!(differing(comparison), expected);
        check("a=1 b=2 c=3 against a=1 b=9 c=3", "b=2 against b=9");
        check("a=1 against a=1, at b=2", "a=1 against a=1, at b=2");
        check("dd if=x against cp x y", "dd if=x against cp x y");
        check("a=1 against a=1", "a=1 against a=1");
        check("an interaction", "an interaction");
    }
}
