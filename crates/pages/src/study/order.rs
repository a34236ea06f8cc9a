//! Plots every run in order of execution, which sorted tables of medians hide.
//!
//! A run is a point: to the right by its time, upwards by the logarithm of its figure. One panel
//! shows the figures. Because arms may differ greatly, another shows each run relative to the
//! median of its arm. It shows drift, a first run that pays for all, a disturbed block, and an arm
//! that changes in the middle. Its axis covers the counted runs; values beyond are drawn at its
//! edge. Blocks are bands, uncounted runs are hollow, and a run without a figure is on the axis.

use super::with_unit;
use plumb_report::axis::LogAxis;
use plumb_report::format::{Figure, Reading};
use plumb_report::order::{OrderBand, OrderPanel, OrderPlot, OrderPoint, SlotLabel};
use plumb_report::table::Axis;
use plumb_study::analysis::result::{Analysis, Counted, StudyRun};

/// The panel of ratios extends at least this far to either side of 1.
const PANEL_MIN: f64 = 1.01;

/// Returns the plot, positions 0 to 1; `None` without runs.
pub(super) fn plot(analysis: &Analysis) -> Option<OrderPlot> {
    if analysis.runs.is_empty() {
        return None;
    }
    let count = analysis.runs.len() as f64;
    let points = analysis.runs.iter().enumerate().map(|(index, run)| OrderPoint {
        x: (index as f64 + 0.5) / count,
        slot: run.slot.min(analysis.arms.len()),
        is_counted: run.counted == Counted::Yes,
        hint: hint(analysis, run),
    });
    Some(OrderPlot {
        panels: vec![figures(analysis), against_median(analysis)],
        slots: slots(analysis),
        points: points.collect(),
        bands: bands(&analysis.runs),
    })
}

fn figures(analysis: &Analysis) -> OrderPanel {
    let axis = LogAxis::around(analysis.runs.iter().filter_map(|run| run.value));
    let measure = &analysis.study.measure;
    OrderPanel {
        measure: with_unit(&format!("{} ", measure.title()), measure.unit()),
        axis: Axis { ticks: axis.values(), line: None },
        heights: analysis.runs.iter().map(|run| run.value.map(|value| axis.position(value))).collect(),
        joins_reference: true,
    }
}

/// Shows each run relative to the median of its arm.
fn against_median(analysis: &Analysis) -> OrderPanel {
    let ratio = |run: &StudyRun| Some(run.value? / analysis.arms.get(run.arm)?.median?);
    let counted = analysis.runs.iter().filter(|run| run.counted == Counted::Yes);
    let axis = LogAxis::around(counted.filter_map(ratio).chain([1.0 / PANEL_MIN, PANEL_MIN]));
    OrderPanel {
        measure: "against the median of its arm".to_string(),
        axis: axis.effects(),
        heights: analysis.runs.iter().map(|run| ratio(run).map(|ratio| axis.position(ratio))).collect(),
        joins_reference: false,
    }
}

fn slots(analysis: &Analysis) -> Vec<SlotLabel> {
    let arms = analysis.arms.iter().enumerate().map(|(arm, found)| SlotLabel {
        name: found.name.clone(),
        arm,
        is_copy: false,
    });
    let arm = analysis.design.reference_arm;
    let name = format!("{}, second run (A/A)", analysis.arm_name(arm));
    arms.chain(std::iter::once(SlotLabel { name, arm, is_copy: true })).collect()
}

fn bands(runs: &[StudyRun]) -> Vec<OrderBand> {
    let count = runs.len() as f64;
    let mut bands: Vec<OrderBand> = Vec::new();
    let mut last: Option<Option<u64>> = None;
    for (index, run) in runs.iter().enumerate() {
        let (from, to) = (index as f64 / count, (index + 1) as f64 / count);
        let counted = run.counted == Counted::Yes;
        match bands.last_mut() {
            Some(band) if last == Some(run.block) => {
                band.to = to;
                band.is_counted &= counted;
            }
            _ => bands.push(OrderBand {
                name: run.block.map_or("warm-up".to_string(), |block| block.to_string()),
                from,
                to,
                is_counted: counted,
            }),
        }
        last = Some(run.block);
    }
    bands
}

fn hint(analysis: &Analysis, run: &StudyRun) -> String {
    let value = run.value.map_or("no figure".to_string(), |value| {
        format!("{} {}", Reading(value).figure(), analysis.study.measure.unit())
    });
    let block = run.block.map_or("warm-up".to_string(), |block| format!("block {block}"));
    let why = match &run.counted {
        Counted::Yes => String::new(),
        Counted::WarmUp => "; not counted".to_string(),
        Counted::No { reason } => format!("; not counted: {reason}"),
    };
    format!(
        "run {}, {block}, position {}: {}, {value}{why}",
        run.number,
        run.position,
        analysis.slot_name(run.slot)
    )
}
