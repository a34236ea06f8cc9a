//! Figures of the machine during a run, on the time axis of its profile.
//!
//! A strip has a vertical axis of its own, from 0 to a round number, with a few lines. Figures are
//! means over intervals, drawn as steps; an unknown one leaves a gap.

use serde::Serialize;

/// A panel below a profile.
#[derive(Debug, Clone, Serialize)]
pub struct Strip {
    /// Title, such as the device `vda`.
    pub title: String,
    pub unit: String,
    /// Top of its vertical axis.
    pub top: f64,
    /// Ends of the intervals, seconds, one more than the figures of a line.
    pub ends_s: Vec<f64>,
    pub lines: Vec<StripLine>,
}

#[derive(Debug, Clone, Serialize)]
pub struct StripLine {
    pub name: String,
    /// Index of its colour in the palette.
    pub colour: usize,
    /// A figure for each interval; `None` if unknown.
    pub values: Vec<Option<f64>>,
}

impl Strip {
    /// Mean of a line between two times, weighted by the overlap of each interval;
    /// `None` if nothing is known.
    pub(crate) fn mean(&self, line: &StripLine, from_s: f64, to_s: f64) -> Option<f64> {
        let stretches = self.ends_s.windows(2).zip(&line.values);
        let (mut sum, mut weight) = (0.0, 0.0);
        for (ends, value) in stretches {
            let overlap = ends[1].min(to_s) - ends[0].max(from_s);
            if let Some(value) = value.filter(|_| overlap > 0.0) {
                sum += value * overlap;
                weight += overlap;
            }
        }
        (weight > 0.0).then(|| sum / weight)
    }
}
