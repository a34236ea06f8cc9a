//! Question, verdicts and evidence of a study.

use super::effects::of_claims;
use super::words;
use crate::tone_of_standing;
use plumb_report::Section;
use plumb_report::format::{Change, Count, Ends, Figure, Probability, Seconds, Share};
use plumb_report::table::{Cell, Facts, Table, Tone};
use plumb_study::analysis::result::{Analysis, JudgedClaim};
use plumb_study::vocabulary::Better;
use plumb_units::Nanos;

pub(super) fn question(analysis: &Analysis) -> Section {
    let mut facts = Facts::default();
    facts.add("Question", &analysis.study.question);
    facts.add("Source", &analysis.study.source);
    facts.add("Workload", analysis.study.work_shown());
    facts.add("Target", &analysis.environment.target);
    let measure = &analysis.study.measure;
    facts.add("Measure", {
        let unit = if measure.unit().is_empty() { String::new() } else { format!(", in {}", measure.unit()) };
        let better = if measure.better == Better::Higher { "higher" } else { "lower" };
        format!("{}{unit}; {better} is better", measure.title())
    });
    facts.add("Host", host(analysis));
    if let Some(start) = start(analysis) {
        facts.add("Start", start);
    }
    facts.add("Ran", format!("{} to {}", analysis.environment.begin_time, analysis.end_time));
    facts.add(
        "Elapsed",
        format!("{} (secs), preparation and settling included", Seconds(analysis.elapsed_ns).figure()),
    );
    facts.add("Command", &analysis.environment.command_line);
    Section::front("question", "Question").facts(facts)
}

/// Describes the cost of starting a process if it exceeds a hundredth of a run,
/// because every time includes it.
fn start(analysis: &Analysis) -> Option<String> {
    let spawn = analysis.environment.spawn_ns?;
    let least = analysis.runs.iter().filter_map(|run| run.elapsed_ns).min()?;
    let share = spawn as f64 / least.max(1) as f64;
    // A figure that a command prints does not include its start.
    if analysis.study.measure.figure != plumb_study::vocabulary::Figure::Elapsed {
        return None;
    }
    match share {
        // Both vary, so a run as short as a start cannot be measured.
        half if half > 0.5 => Some(format!(
            "a process takes {} to start here, and the shortest run is hardly longer: their times are mostly that",
            Nanos(spawn)
        )),
        some if some > 0.01 => Some(format!(
            "{} of every run is the start of a process, {:.1}% of the shortest",
            Nanos(spawn),
            share * 100.0
        )),
        _ => None,
    }
}

fn host(analysis: &Analysis) -> String {
    let host = &analysis.environment.host;
    format!("{}, {}, {}, {}", host.name, host.processors(), host.cpu_model, host.kernel)
}

pub(super) fn verdicts(analysis: &Analysis) -> Section {
    let mut table = Table::default()
        .numbers(["#"])
        .wrapped("Verdict", 52)
        .wrapped("What was claimed before the run", 44)
        .text(["Claim"]);
    for (index, claim) in analysis.claims.iter().enumerate() {
        let outcome = match claim.outcome_word() {
            "REFUTED" => Tone::Bad,
            "holds" => Tone::Good,
            _ => Tone::Open,
        };
        table.row(vec![
            Cell::from((index + 1).to_string()),
            Cell::from(words::verdict(analysis, claim)).with_tone(tone_of_standing(Some(claim.standing()))),
            Cell::from(&claim.text),
            Cell::from(claim.outcome_word()).with_tone(outcome),
        ]);
    }
    Section::front("verdicts", "Verdicts")
        .note(
            "faster and slower: the typical run, per cent of the reference's figure; brackets: its interval",
        )
        .note(of_claims(analysis))
        .table(table)
}

/// Shows the evidence for each verdict.
pub(super) fn evidence(analysis: &Analysis) -> Section {
    let mut table = Table::default().numbers(["#"]).wrapped("Compared", 38).numbers([
        "p",
        "Family\np",
        "Blocks",
        "More\nneeded",
        "Floor",
        "Margin",
        "p of\nequality",
    ]);
    let mut reasons = Facts { caption: Some("Reasons, the decisive one last".to_string()), rows: Vec::new() };
    for (index, claim) in analysis.claims.iter().enumerate() {
        let number = index + 1;
        let equivalence = claim.equivalence;
        table.row(vec![
            Cell::from(number.to_string()),
            Cell::from(compared(claim)),
            Cell::of(claim.p.map(Probability)),
            Cell::of(claim.adjusted_p.map(Probability)),
            Cell::of(Count(claim.blocks)),
            Cell::of(claim.blocks_needed.map(Count)),
            Cell::of(claim.smallest_effect.map(Share)),
            Cell::of(equivalence.map(|test| Share(test.margin))),
            Cell::of(equivalence.map(|test| Probability(test.p))),
        ]);
        let open = words::why_open(analysis, claim);
        let sentences: Vec<String> =
            claim.covers().into_iter().chain(open).chain(claim.reasons.iter().cloned()).collect();
        reasons.add(format!("{number} {}", claim.name), sentences.join("; "));
    }
    let section = Section::front("evidence", "What the Verdicts Rest On")
        .note("p: how often the design's own draws within blocks, or blocks that vary as these do, would show as much; Family p: \
               times the number of claims that are not settled before it, to be held against the study's alpha")
        .note("Floor: the smallest effect that these blocks find with 80% power, from the spread of the claim itself; More needed: \
               blocks still to run for what the verdict says, with 80% power")
        .table(table)
        .table(beside(analysis));
    if reasons.rows.is_empty() { section } else { section.facts(reasons) }
}

/// Shows each treatment's effects besides that on the typical run.
fn beside(analysis: &Analysis) -> Table {
    let mut table = Table::default()
        .numbers(["#"])
        .wrapped("Claim", 24)
        .numbers(["On average", "Interval", "Slow runs", "at most\n(95%)", "Runs after\nit", "p", "p of\nshape", "p of\nwandering"])
        .with_caption(
            "On the average of the runs seen, intervals as above; slow runs, 1.5 times as slow as the reference's median or slower; carry-over; \
             whether the arms are as even as each other, and whether the effect wanders from block to block",
        );
    for (index, claim) in analysis.claims.iter().enumerate() {
        let average = claim.average.as_ref();
        let slow = claim.slow_runs;
        let after = claim.carry_over;
        table.row(vec![
            Cell::from((index + 1).to_string()),
            Cell::from(&claim.name),
            Cell::of(average.map(|effect| Change(effect.ratio))),
            Cell::of(average.map(|effect| Ends { low: effect.low, high: effect.high })),
            Cell::from(slow.map_or_else(String::new, |slow| format!("{} of {}", slow.slow, slow.runs))),
            Cell::of(slow.map(|slow| Share(slow.high))),
            Cell::of(after.map(|after| Change(after.shift.exp()))),
            Cell::of(after.map(|after| Probability(after.p))),
            Cell::of(claim.shape_p.map(Probability)),
            Cell::of(claim.wanders_p.map(Probability)),
        ]);
    }
    table
}

/// Returns the comparison, with the measure if it is not the study's.
fn compared(claim: &JudgedClaim) -> String {
    match &claim.measure {
        Some(measure) => format!("{}: {}", measure.title(), claim.comparison),
        None => claim.comparison.clone(),
    }
}
