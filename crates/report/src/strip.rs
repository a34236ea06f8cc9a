//! Figures beside the bytes over time, on the same time axis: what a machine did while a run ran.
//!
//! A strip has an axis of its own, from 0 to a round number, and a few lines on it. Figures are means of stretches of
//! time, drawn as steps; one that is not known leaves a gap.

use serde::Serialize;

/// A panel below a profile.
#[derive(Debug, Clone, Serialize)]
pub struct Strip {
    /// What it shows, such as `vda`.
    pub title: String,
    /// The unit of its figures.
    pub unit: String,
    /// The top of its axis.
    pub top: f64,
    /// The ends of the stretches, seconds, one more than there are figures in a line.
    pub ends_s: Vec<f64>,
    pub lines: Vec<StripLine>,
}

/// A line of a strip.
#[derive(Debug, Clone, Serialize)]
pub struct StripLine {
    pub name: String,
    /// Its colour's place in the palette.
    pub colour: usize,
    /// A figure for each stretch; none where it is not known.
    pub values: Vec<Option<f64>>,
}

impl Strip {
    /// The mean of a line between two times, weighted by how long each stretch lies between them; none where nothing is
    /// known.
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
