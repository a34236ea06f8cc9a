//! Every run of a study in order of execution, as positions on axes, for text and HTML.

use crate::table::Axis;

/// Runs from left to right, in one panel for each measure.
#[derive(Debug, Clone)]
pub struct OrderPlot {
    /// The panels, with the main one first.
    pub panels: Vec<OrderPanel>,
    /// The arms, and the second run of the reference.
    pub slots: Vec<SlotLabel>,
    /// One point for each run, in order of execution.
    pub points: Vec<OrderPoint>,
    pub bands: Vec<OrderBand>,
}

/// A panel over the same runs.
#[derive(Debug, Clone)]
pub struct OrderPanel {
    /// The measure with its unit.
    pub measure: String,
    pub axis: Axis,
    /// Height of each run, 0 to 1; `None` for a run without a figure.
    pub heights: Vec<Option<f64>>,
    /// True if a line joins the runs of the reference.
    pub joins_reference: bool,
}

/// Label of a slot in the legend.
#[derive(Debug, Clone)]
pub struct SlotLabel {
    pub name: String,
    pub arm: usize,
    /// True for the second run of the reference.
    pub is_copy: bool,
}

#[derive(Debug, Clone)]
pub struct OrderPoint {
    /// Position along the axis, 0 to 1.
    pub x: f64,
    pub slot: usize,
    pub is_counted: bool,
    /// Text of the tooltip at the point.
    pub hint: String,
}

/// The runs of one block.
#[derive(Debug, Clone)]
pub struct OrderBand {
    /// Number of the block, or `warm-up`.
    pub name: String,
    /// Start of the band, 0 to 1.
    pub from: f64,
    /// End of the band, 0 to 1.
    pub to: f64,
    /// True if all runs of the block count.
    pub is_counted: bool,
}
