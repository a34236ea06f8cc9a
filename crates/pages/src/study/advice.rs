//! Advice: settings with the expected gain, findings, and effects not tested.

use super::words;
use crate::run::findings_table;
use plumb_report::Section;
use plumb_report::format::{Change, Ends, Figure, Share};
use plumb_report::table::Facts;
use plumb_study::analysis::result::{Analysis, Recommendation, StudyState};
use plumb_study::vocabulary::Assignment;

/// Shows the recommended settings, the findings, and the effects not tested.
pub(super) fn advice(analysis: &Analysis) -> Section {
    let mut facts = Facts::default();
    match &analysis.recommendation {
        Some(recommendation) => recommend(analysis, recommendation, &mut facts),
        None => facts.add("Use", nothing_else(analysis)),
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

/// Returns the reason why no other settings are recommended.
pub(crate) fn nothing_else(analysis: &Analysis) -> &'static str {
    if analysis.state == StudyState::Interrupted {
        "not told before the study's end"
    } else if analysis.claims.iter().any(|claim| claim.asked_only) {
        "nothing else: what is proved was only asked for, and no receipt shows more"
    } else {
        "nothing else: no arm was proved better than the reference"
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
