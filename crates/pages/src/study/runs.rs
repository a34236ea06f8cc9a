//! Every run: drawn in order of execution, and as a list.

use super::{order, with_unit};
use plumb_record::RunState;
use plumb_report::format::{Change, Count, Reading, Seconds};
use plumb_report::table::{Cell, Column, RowKind, Table, Tone};
use plumb_report::{Block, Section};
use plumb_study::analysis::result::{Analysis, Counted, StudyRun};
use std::collections::BTreeMap;

/// Draws the runs; `None` if there were none.
pub(super) fn plot(analysis: &Analysis) -> Option<Section> {
    let section = Section::front("runs-plot", "Every Run in Order of Execution")
        .note("from left to right as they ran; runs that do not count are hollow (small letters in text)");
    Some(section.block(Block::Order(order::plot(analysis)?)))
}

/// Lists the runs in order of execution.
pub(super) fn list(analysis: &Analysis) -> Section {
    let measure = &analysis.study.measure;
    let mut table = Table::new(vec![
        Column::number("Run"),
        Column::number("Block"),
        Column::number("Pos"),
        Column::wrapped("Arm", 32),
        Column::number("Start (s)"),
        Column::number(with_unit("Measure\n", measure.unit())),
        Column::number("To its\nreference"),
        Column::text("Counts"),
        Column::text("Run is"),
        Column::wrapped("Remark", 16),
    ]);
    let references = references(analysis);
    for run in &analysis.runs {
        table.push(kind(run), cells(analysis, run, &references));
    }
    Section::detail("runs", "Runs")
        .note("in order of execution; To its reference: against the first reference run of its block")
        .note("a run's record is runs/NNNN.json of the bundle, NNNN its number")
        .table(table)
}

/// Returns the figure of the reference's first run, by block.
fn references(analysis: &Analysis) -> BTreeMap<u64, f64> {
    let own = analysis.runs.iter().filter(|run| run.slot == analysis.design.reference_arm);
    own.filter_map(|run| Some((run.block?, run.value?))).collect()
}

fn kind(run: &StudyRun) -> RowKind {
    if run.counted == Counted::Yes { RowKind::Plain } else { RowKind::Quiet }
}

fn cells(analysis: &Analysis, run: &StudyRun, references: &BTreeMap<u64, f64>) -> Vec<Cell> {
    let reference = run.block.and_then(|block| references.get(&block));
    let ratio = run.value.zip(reference).map(|(value, reference)| Change(value / reference));
    let is_reference = run.slot == analysis.design.reference_arm;
    let (counts, reason) = match &run.counted {
        Counted::Yes => ("yes", ""),
        Counted::WarmUp => ("warm-up", ""),
        Counted::No { reason } => ("NO", reason.as_str()),
    };
    let state = match run.validity {
        Some(state) => Cell::from(state.word()).with_tone(crate::tone_of_run(state)),
        None => Cell::from("unfinished").with_tone(Tone::Bad),
    };
    let doubts = plumb_record::headline(&run.doubtful).join(", ");
    // Counts of receipts are shown only if some did not hold.
    let remark = match (reason, run.validity) {
        // A study without verification says so at its claims, not at each run.
        ("", Some(RunState::Valid | RunState::Unverified)) => doubts.as_str(),
        ("", _) => run.basis.as_str(),
        (reason, _) => reason,
    };
    vec![
        Cell::of(Count(run.number)),
        Cell::of(run.block.map(Count)),
        Cell::of(Count(run.position)),
        Cell::from(analysis.slot_name(run.slot)),
        Cell::of(Seconds(run.start_ns)),
        Cell::of(run.value.map(Reading)),
        if is_reference {
            Cell::default()
        } else {
            Cell::from(ratio.map_or_else(String::new, Change::coarse))
        },
        Cell::from(counts).with_tone(if counts == "NO" { Tone::Bad } else { Tone::Plain }),
        state,
        Cell::from(remark),
    ]
}
