//! Every run in order of execution: what sorted tables of medians hide.
//!
//! A run is a point: to the right as it ran later, upwards as its figure was larger (by its
//! logarithm). Drift, a first run that pays for all, a block that something else hit, and arms
//! that change in the middle are then seen at a glance. Blocks are bands; runs that do not count
//! are hollow; one that gave no figure stands on the axis.

use super::context::{Counted, StudyContext, StudyRun};
use crate::axis::LogAxis;
use crate::format::{Figure, Reading};

/// The plot, positions 0 to 1.
#[derive(Debug, Clone)]
pub(crate) struct OrderPlot {
    /// What is plotted, with its unit.
    pub measure: String,
    /// The slots: the arms, and the reference's second run.
    pub slots: Vec<SlotLabel>,
    /// The runs in order of execution.
    pub points: Vec<Point>,
    /// The blocks, and before them the warm-up.
    pub bands: Vec<Band>,
    /// Positions and names on the vertical axis.
    pub ticks: Vec<(f64, String)>,
}

/// A slot in the legend.
#[derive(Debug, Clone)]
pub(crate) struct SlotLabel {
    /// Its arm's name.
    pub name: String,
    /// Its arm.
    pub arm: usize,
    /// Whether it is the reference's second run.
    pub is_copy: bool,
}

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// From left to right.
    pub x: f64,
    /// From the bottom to the top; none when the run gave no figure.
    pub y: Option<f64>,
    /// Its slot.
    pub slot: usize,
    /// Whether it counts.
    pub is_counted: bool,
    /// What a reader is told who points at it.
    pub hint: String,
}

/// Runs that belong together.
#[derive(Debug, Clone)]
pub(crate) struct Band {
    /// The block's number, or `warm-up`.
    pub name: String,
    /// Its left edge.
    pub from: f64,
    /// Its right edge.
    pub to: f64,
    /// Whether its runs count.
    pub is_counted: bool,
}

impl OrderPlot {
    /// The plot of a study; none without runs.
    pub(crate) fn of(study: &StudyContext) -> Option<OrderPlot> {
        if study.runs.is_empty() {
            return None;
        }
        let axis = LogAxis::around(study.runs.iter().filter_map(|run| run.value));
        let count = study.runs.len() as f64;
        let points = study.runs.iter().enumerate().map(|(index, run)| Point {
            x: (index as f64 + 0.5) / count,
            y: run.value.map(|value| axis.position(value)),
            slot: run.slot.min(study.arms.len()),
            is_counted: run.counted == Counted::Yes,
            hint: hint(study, run),
        });
        let measure = &study.header.measure;
        Some(OrderPlot {
            measure: format!("{} ({})", measure.name, measure.unit),
            slots: slots(study),
            points: points.collect(),
            bands: bands(&study.runs),
            ticks: axis.values(),
        })
    }
}

fn slots(study: &StudyContext) -> Vec<SlotLabel> {
    let arms = study.arms.iter().enumerate().map(|(arm, found)| SlotLabel {
        name: found.name.clone(),
        arm,
        is_copy: false,
    });
    let arm = study.design.reference_arm;
    let name = format!("{}, second run (A/A)", study.arm_name(arm));
    arms.chain(std::iter::once(SlotLabel { name, arm, is_copy: true })).collect()
}

fn bands(runs: &[StudyRun]) -> Vec<Band> {
    let count = runs.len() as f64;
    let mut bands: Vec<Band> = Vec::new();
    let mut last: Option<Option<u64>> = None;
    for (index, run) in runs.iter().enumerate() {
        let (from, to) = (index as f64 / count, (index + 1) as f64 / count);
        let counted = run.counted == Counted::Yes;
        match bands.last_mut() {
            Some(band) if last == Some(run.block) => {
                band.to = to;
                band.is_counted &= counted;
            }
            _ => bands.push(Band {
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

fn hint(study: &StudyContext, run: &StudyRun) -> String {
    let value = run.value.map_or("no figure".to_string(), |value| {
        format!("{} {}", Reading(value).figure(), study.header.measure.unit)
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
        study.slot_name(run.slot)
    )
}
