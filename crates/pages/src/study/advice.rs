//! Advice: settings with the expected gain, findings, and effects not tested.

use super::words;
use crate::run::findings_table;
use plumb_proof::verdict::{Side, Typically};
use plumb_report::Section;
use plumb_report::format::{Change, Ends, Figure, Share};
use plumb_report::table::Facts;
use plumb_study::analysis::result::{Analysis, JudgedClaim, Recommendation, StudyState};
use plumb_study::vocabulary::Assignment;

/// Shows the recommended settings, the findings, and the effects not tested.
pub(super) fn advice(analysis: &Analysis) -> Section {
    let mut facts = Facts::default();
    match &analysis.recommendation {
        Some(recommendation) => recommend(analysis, recommendation, &mut facts),
        None => facts.add("Use", undecided(analysis)),
    }
    for places in words::one_device(analysis) {
        facts.add("Places", format!("{places}: directories are compared, not devices"));
    }
    for gap in &analysis.not_tested {
        facts.add("Not tested", gap);
    }
    let section = Section::front("advice", "What To Do").facts(facts);
    if analysis.findings.is_empty() {
        section
    } else {
        section.table(findings_table(&analysis.findings, [34, 36, 34]))
    }
}

/// Returns the settings that claims prove better, where all comparisons of arms together decide
/// nothing; otherwise the reason why no other settings are recommended.
pub(crate) fn undecided(analysis: &Analysis) -> String {
    if analysis.state == StudyState::Interrupted {
        return "not told before the study's end".to_string();
    }
    if analysis.claims.iter().any(|claim| claim.asked_only) {
        return "nothing else: what is proved was only asked for, and no receipt shows more".to_string();
    }
    let changed = |claim: &JudgedClaim| {
        let written = analysis.study.claims.iter().find(|written| written.name == claim.name)?;
        let levels = analysis.study.factors.get(written.change.factor)?;
        let better = match claim.verdict.proved() {
            Some(Typically::Differs(Side::Faster, _)) => written.change.to,
            Some(Typically::Differs(Side::Slower, _)) => written.change.from,
            _ => return None,
        };
        let level = levels.levels.get(better).filter(|_| written.with.is_none())?;
        Some(assignments(&level.settings))
    };
    let own_measure = |claim: &&JudgedClaim| claim.measure.is_none();
    let proved: Vec<String> = analysis
        .claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| own_measure(claim))
        .filter_map(|(index, claim)| Some(format!("{} (claim {})", changed(claim)?, index + 1)))
        .collect();
    let arms = analysis.arms.len();
    match &proved[..] {
        [] => "nothing else: no arm was proved better than the reference".to_string(),
        proved => format!("{}; the best of all {arms} arms is not decided", proved.join(", ")),
    }
}

fn recommend(analysis: &Analysis, recommendation: &Recommendation, facts: &mut Facts) {
    facts.add("Use", assignments(&recommendation.settings));
    facts.add(
        "Gain to expect",
        format!(
            "{} in {}, against {}",
            gain(recommendation),
            analysis.study.measure.title(),
            recommendation.against
        ),
    );
    facts.add("Arm", analysis.arm_name(recommendation.arm));
    facts.add("Rests on", &recommendation.evidence);
}

/// Prints `-62.3% [-64.0, -60.1] (95% interval)`.
pub(crate) fn gain(recommendation: &Recommendation) -> String {
    let effect = &recommendation.gain;
    let ends = Ends { low: effect.low, high: effect.high }.figure();
    format!("{} {ends} ({} interval)", Change(effect.ratio).figure(), Share(effect.confidence).figure())
}

pub(crate) fn assignments(settings: &[Assignment]) -> String {
    let settings = settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
    settings.collect::<Vec<_>>().join(" ")
}
