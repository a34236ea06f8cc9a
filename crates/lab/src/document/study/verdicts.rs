//! What was asked, and what the evidence says.

use super::tone_of;
use crate::analysis::result::{Analysis, Better, Claim};
use plumb_report::Section;
use plumb_report::format::{Count, Figure, Probability, Seconds, Share};
use plumb_report::table::{Cell, Column, Facts, Table, Tone};

/// The question.
pub(super) fn question(study: &Analysis) -> Section {
    let header = &study.header;
    let mut facts = Facts::default();
    facts.add("Question", &header.question);
    facts.add("Source", &header.source);
    facts.add("Workload", &header.workload);
    facts.add("Target", &header.target);
    let better = match header.measure.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    facts.add("Measure", format!("{}, in {}; {better}", header.measure.name, header.measure.unit));
    facts.add("Host", host(study));
    facts.add("Ran", format!("{} to {}", header.begin_time, header.end_time));
    facts.add(
        "Elapsed",
        format!("{} (secs), preparation and settling included", Seconds(header.elapsed_ns).figure()),
    );
    facts.add("Command", &header.command_line);
    Section::front("question", "Question").facts(facts)
}

fn host(study: &Analysis) -> String {
    let host = &study.header.host;
    format!("{}, {} CPUs, {}", host.name, Count(u64::from(host.cpus)).figure(), host.cpu_model)
}

/// A verdict a claim.
pub(super) fn verdicts(study: &Analysis) -> Section {
    let mut table = Table::new(vec![
        Column::number("#"),
        Column::wrapped("Verdict", 52),
        Column::wrapped("What was claimed before the run", 44),
        Column::text("Claim"),
    ]);
    for (index, claim) in study.claims.iter().enumerate() {
        let bearing = match claim.bearing_word() {
            "REFUTED" => Tone::Bad,
            "holds" => Tone::Good,
            _ => Tone::Open,
        };
        table.row(vec![
            Cell::from((index + 1).to_string()),
            Cell::from(&claim.verdict.line).with_tone(tone_of(claim.verdict.exit_code)),
            Cell::from(&claim.text),
            Cell::from(claim.bearing_word()).with_tone(bearing),
        ]);
    }
    Section::front("verdicts", "Verdicts")
        .note("brackets: the interval that goes with the corrected test; faster and slower are per cent of the reference's figure")
        .table(table)
}

/// What each verdict rests on.
pub(super) fn evidence(study: &Analysis) -> Section {
    let mut table = Table::new(vec![
        Column::number("#"),
        Column::wrapped("Compared", 38),
        Column::number("p"),
        Column::number("Holm p"),
        Column::number("Blocks"),
        Column::number("More\nneeded"),
        Column::number("Floor"),
        Column::number("Margin"),
        Column::number("p of\nequality"),
    ]);
    let mut reasons = Facts { caption: Some("Reasons, the decisive one last".to_string()), rows: Vec::new() };
    for (index, claim) in study.claims.iter().enumerate() {
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
        reasons.add(format!("{number} {}", claim.name), claim.reasons.join("; "));
    }
    let section = Section::front("evidence", "What the Verdicts Rest On")
        .note("p: exact sign-flip test over blocks; Holm p: corrected for the claims of the study, to be held against its alpha")
        .note("Floor: the smallest effect that so many blocks find with 80% power; More needed: blocks still to run")
        .table(table);
    if reasons.rows.is_empty() { section } else { section.facts(reasons) }
}

/// The comparison, with the measure when it is not the study's.
fn compared(claim: &Claim) -> String {
    match &claim.measure {
        Some(measure) => format!("{}: {}", measure.name, claim.comparison),
        None => claim.comparison.clone(),
    }
}
