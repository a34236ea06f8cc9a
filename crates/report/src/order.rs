//! Every run of a study in order of execution, as places on axes: what text and HTML draw.

use crate::table::Axis;

/// Runs from left to right, in one panel a measure.
#[derive(Debug, Clone)]
pub struct OrderPlot {
    /// The panels, the main one first.
    pub panels: Vec<OrderPanel>,
    /// The arms, and the copy of the reference.
    pub slots: Vec<SlotLabel>,
    /// A point a run, in order of execution.
    pub points: Vec<OrderPoint>,
    pub bands: Vec<OrderBand>,
}

/// A panel over the same runs.
#[derive(Debug, Clone)]
pub struct OrderPanel {
    /// What it shows, with the unit.
    pub measure: String,
    pub axis: Axis,
    /// A height for each run, 0 to 1; none for a run without a figure.
    pub heights: Vec<Option<f64>>,
    /// Whether the runs of the reference are joined by a line.
    pub joins_reference: bool,
}

/// What a slot stands for.
#[derive(Debug, Clone)]
pub struct SlotLabel {
    pub name: String,
    pub arm: usize,
    /// Whether it is the second run of the reference.
    pub is_copy: bool,
}

#[derive(Debug, Clone)]
pub struct OrderPoint {
    /// Its place, 0 to 1.
    pub x: f64,
    pub slot: usize,
    pub is_counted: bool,
    /// What is said when it is pointed at.
    pub hint: String,
}

/// The runs of one block.
#[derive(Debug, Clone)]
pub struct OrderBand {
    /// The block's number, or `warm-up`.
    pub name: String,
    /// Where it begins, 0 to 1.
    pub from: f64,
    pub to: f64,
    /// Whether all its runs count.
    pub is_counted: bool,
}
