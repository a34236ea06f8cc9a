//! A study on one screen: 24 lines of 100 characters; long reasons take more, because none is cut.
//!
//! The verdicts are lines of the answer; then come medians, the noise floor, the test of order, and
//! the runs. Longer values continue on the next line.

use super::effects::other_figure;
use super::words;
use crate::run::device_line;
use plumb_proof::order::OrderReport;
use plumb_report::answer::LINES_MAX;
use plumb_report::format::{Count, Figure, Probability, Reading, Seconds, Share};
use plumb_report::summary::LINE_MAX;
use plumb_report::text::wrap;
use plumb_report::{Headline, Summary};
use plumb_study::analysis::result::{Analysis, Arm, Counted, JudgedClaim};

/// Column of values: two blanks, the longest name, and two blanks.
const VALUE_COLUMN: usize = 15;
/// Characters of a claim's name that are shown.
const NAME_WIDTH: usize = 24;
pub(crate) const LINES: usize = 24;
/// The sentence and the lines below the claims, without other figures.
const OTHER_LINES: usize = 16;
/// Lines of other figures, if arms have any.
const FIGURES_LINES: usize = 2;
/// Lines of the excluded statistic's share, if a claim has one.
const EXPLAINED_LINES: usize = 2;

pub(super) fn summary(analysis: &Analysis) -> Summary {
    let named = named(analysis);
    let width = named.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    // As lines instead of facts, because a study's lines are limited to 100 characters.
    let facts = named.into_iter().map(|(name, value)| (format!("  {name:<width$}  "), value));
    Summary {
        subject: format!("{} on {}", analysis.study.name, analysis.environment.host.name),
        lines: facts.collect(),
        facts: Vec::new(),
    }
}

/// Returns a line for each claim, as many as the answer has room for.
pub(super) fn claims(analysis: &Analysis) -> Vec<Headline> {
    let mut worst_first = analysis.claims.iter().enumerate().collect::<Vec<_>>();
    let explained = analysis.claims.iter().any(|claim| claim.covered.is_some());
    let more = analysis.environment.devices.len().saturating_sub(1) + words::one_device(analysis).len();
    let more = more + if explained { EXPLAINED_LINES } else { 0 };
    let more = more + others(analysis).map_or(0, |_| FIGURES_LINES);
    let most = (LINES - OTHER_LINES).saturating_sub(more).clamp(2, LINES_MAX);
    let left_out = worst_first.len().saturating_sub(most);
    if left_out > 0 {
        // Doubtful claims are kept first, then the others in their order.
        worst_first.sort_by_key(|(_, claim)| std::cmp::Reverse(claim.verdict.exit_code()));
        worst_first.truncate(most - 1);
        worst_first.sort_by_key(|(index, _)| *index);
    }
    let width = worst_first.iter().map(|(_, claim)| claim.name.chars().count()).max().unwrap_or(0);
    let width = width.min(NAME_WIDTH);
    let line = |(index, claim): &(usize, &JudgedClaim), value: String| {
        let name = claim.name.chars().take(width).collect::<String>();
        let name = format!("{:>2} {name:<width$}  {}", index + 1, claim.outcome_word());
        Headline { name, value, aside: String::new() }
    };
    let whole = |claim: &(usize, &JudgedClaim)| line(claim, words::verdict(analysis, claim.1));
    let mut lines: Vec<Headline> = worst_first.iter().map(whole).collect();
    let height = |line: &Headline| (line.name.len() + 4 + line.value.len()).div_ceil(LINE_MAX);
    if lines.iter().map(height).sum::<usize>() > most {
        // The report has the rest of each line.
        lines = worst_first.iter().map(|claim| line(claim, claim.1.shown())).collect();
    }
    if left_out > 0 {
        let value = format!("{} more claims in the report", left_out + 1);
        lines.push(Headline { name: "and".to_string(), value, aside: String::new() });
    }
    lines
}

/// Returns the named lines below the claims.
fn named(analysis: &Analysis) -> Vec<(&'static str, String)> {
    let cached = analysis.doubtful.iter().flat_map(|found| &found.cached);
    let said = cached.filter_map(|cached| {
        let name = analysis.arm_name(cached.arm);
        analysis.doubtful.as_ref()?.of_arm(cached.arm, &name, analysis.arms.len())
    });
    let mut lines: Vec<_> = said.map(|said| ("Caution", said)).collect();
    lines.extend(absolute(analysis).map(|figures| ("Medians", figures)));
    lines.extend(others(analysis).map(|figures| ("Others", figures)));
    let floor = analysis.floors().map(|[(least_name, least), (most_name, most)]| {
        let (least, most) = (Share(least).figure(), Share(most).figure());
        let found = format!("{} blocks find {least}", analysis.design.blocks_used);
        match least_name == most_name {
            true => format!("{found} with 80% power"),
            false => format!("{found} ({least_name}) to {most} ({most_name}) with 80% power"),
        }
    });
    let without = match analysis.floor {
        Some(_) => "of no claim, because none was judged; the report has that of the pairs",
        None => "not measured",
    };
    lines.push(("Noise floor", floor.unwrap_or_else(|| without.to_string())));
    lines.extend(analysis.claims.iter().find_map(JudgedClaim::covers).map(|share| ("Explained", share)));
    lines.extend(analysis.order.as_ref().map(|order| ("Order", order_line(order))));
    lines.push(("Runs", runs(analysis)));
    lines.extend(analysis.evidence_hash.as_ref().map(|hash| ("Hash", hash.clone())));
    lines.extend(analysis.environment.devices.iter().map(|device| ("Path", device_line(device))));
    lines.extend(words::one_device(analysis).into_iter().map(|places| ("Places", places)));
    // Without a usable block, the reason replaces the other lines.
    let unused = analysis.design.blocks_used == 0;
    if let Some(failed) = analysis.design.blocks_marked.first().filter(|_| unused) {
        lines.push(("Failed", failed.reason.clone()));
        return lines;
    }
    lines.extend(analysis.findings.first().map(|finding| ("Finding", finding.what.clone())));
    lines.extend(analysis.not_tested.first().map(|gap| ("Not tested", gap.clone())));
    lines
}

/// Returns the medians of both arms of each claim, as many as a line has room for, because a ratio
/// alone does not say from what.
fn absolute(analysis: &Analysis) -> Option<String> {
    let measure = &analysis.study.measure;
    let median =
        |arm: usize| analysis.arms.get(arm).and_then(|arm| arm.median).map(|it| Reading(it).figure());
    let of_claim = |(index, claim): (usize, &JudgedClaim)| {
        // The medians of an arm are those of the study's own measure.
        let pair = claim.arms.filter(|_| claim.measure.is_none())?;
        let (reference, treatment) = (median(pair.reference)?, median(pair.treatment)?);
        Some(format!("{}: {reference} to {treatment}", index + 1))
    };
    let (title, unit) = (measure.title().to_lowercase(), measure.unit());
    let unit = if unit.is_empty() || unit == title { String::new() } else { format!(" ({unit})") };
    let mut line = format!("{title}{unit}, by claim ");
    let mut count = 0;
    for shown in analysis.claims.iter().enumerate().filter_map(of_claim) {
        let more = if count == 0 { shown } else { format!(", {shown}") };
        if line.chars().count() + more.chars().count() > LINE_MAX - VALUE_COLUMN {
            break;
        }
        line.push_str(&more);
        count += 1;
    }
    (count > 0).then_some(line)
}

/// Returns the other figures of the two arms of the first claim, as many as two lines have room
/// for. Claims on interactions compare more than two arms and are passed over.
fn others(analysis: &Analysis) -> Option<String> {
    let (index, pair) =
        analysis.claims.iter().enumerate().find_map(|(index, claim)| Some((index, claim.arms?)))?;
    let [reference, treatment] = [pair.reference, pair.treatment].map(|arm| analysis.arms.get(arm));
    let of = |arm: &Arm, name: &str| arm.others.iter().find(|figure| figure.name == name).cloned();
    let (reference, treatment) = (reference?, treatment?);
    let mut line = format!("claim {}: ", index + 1);
    let mut count = 0;
    for figure in &reference.others {
        let Some(other) = of(treatment, &figure.name) else { continue };
        if figure.median + other.median == 0.0 {
            continue;
        }
        let shown = format!("{} {} to {}", figure.name, other_figure(figure), other_figure(&other));
        let more = if count == 0 { shown } else { format!(", {shown}") };
        if wrap(&format!("{line}{more}"), LINE_MAX - VALUE_COLUMN).len() > FIGURES_LINES {
            break;
        }
        line.push_str(&more);
        count += 1;
    }
    (count > 0).then_some(line)
}

fn order_line(order: &OrderReport) -> String {
    let p = |p: f64| Probability(p).figure();
    format!(
        "carry-over p = {}, position p = {}, drift p = {}",
        p(order.carry_over_p),
        p(order.position_p),
        p(order.drift_p)
    )
}

fn runs(analysis: &Analysis) -> String {
    let counted = analysis.runs.iter().filter(|run| run.counted == Counted::Yes).count();
    let disturbed = analysis.doubtful.as_ref().map_or(0, |found| found.disturbed_blocks);
    let disturbed = if disturbed > 0 { format!(" ({disturbed} disturbed)") } else { String::new() };
    format!(
        "{} of {} counted, {} arms, {} of {} blocks used{}, {} s",
        Count(counted as u64).figure(),
        Count(analysis.runs.len() as u64).figure(),
        analysis.arms.len(),
        analysis.design.blocks_used,
        analysis.study.blocks,
        disturbed,
        Seconds(analysis.elapsed_ns).figure()
    )
}
