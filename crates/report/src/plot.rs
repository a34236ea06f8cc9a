//! Curves and bars as data, with their axes.
//!
//! The profile of a run is drawn by a library, because readers inspect it point by point. Plots
//! here have few points with intervals, and `html` draws them as SVG. So they need no script, can
//! be printed, and follow the theme by their classes. Text has the same figures in tables, so a
//! plot must not show anything else.

use crate::format::grouped;
use crate::profile::tick_step;
use plumb_units::{Bytes, Nanos};

/// A chart of one or more series over two axes.
#[derive(Debug, Clone)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// The series, the first one drawn below the others.
    pub series: Vec<Series>,
}

/// Spacing of equal steps of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal lengths.
    Linear,
    /// Equal ratios have equal lengths.
    Log,
}

#[derive(Debug, Clone)]
pub struct Axis {
    /// Quantity of the axis, with the unit.
    pub title: String,
    pub scale: Scale,
    pub from: f64,
    pub to: f64,
    /// Positions of ticks, with their labels.
    pub ticks: Vec<(f64, String)>,
}

/// Style in which a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A line through its marks.
    Line,
    /// A dashed line through its marks.
    Dashed,
    Marks,
    /// A dashed line without marks: a fit instead of measurements.
    Fit,
}

#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    /// Index of its colour in the palette.
    pub colour: usize,
    pub stroke: Stroke,
    pub marks: Vec<Mark>,
}

/// Position of a label relative to its mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Side {
    /// To the right of its mark, if there is room.
    #[default]
    Right,
    Left,
}

#[derive(Debug, Clone, Default)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    /// Interval of the point along x.
    pub x_range: Option<(f64, f64)>,
    /// Interval of the point along y.
    pub y_range: Option<(f64, f64)>,
    /// Text next to the mark; empty for none.
    pub label: String,
    /// Side of the mark on which the label is.
    pub side: Side,
    /// Text of the tooltip at the mark.
    pub hint: String,
    /// True if a ring surrounds the mark.
    pub ringed: bool,
}

/// Counts over two quantities, drawn as darkness.
#[derive(Debug, Clone, Default)]
pub struct Heat {
    pub title: String,
    /// Quantity of the columns, with the unit.
    pub x_title: String,
    /// Positions from 0 at the left to 1, with their labels.
    pub x_ticks: Vec<(f64, String)>,
    /// Positions from 0 at the bottom to 1, with their labels.
    pub y_ticks: Vec<(f64, String)>,
    /// Counts by column, then by row from the bottom.
    pub cells: Vec<Vec<u64>>,
}

/// Quantities of one unit as bars with their intervals.
#[derive(Debug, Clone)]
pub struct Bars {
    pub title: String,
    /// Index of their colour in the palette.
    pub colour: usize,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone)]
pub struct Bar {
    pub name: String,
    /// Value that the bar's length shows.
    pub value: f64,
    /// Interval of the bar's end.
    pub range: (f64, f64),
    /// Printed form of the value.
    pub shown: String,
}

/// Approximate number of ticks on a linear axis.
const TICKS: f64 = 6.0;

impl Axis {
    /// An axis from zero to a round number not below `largest`.
    pub fn linear(title: &str, largest: f64, label: fn(f64) -> String) -> Axis {
        let largest = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
        let step = tick_step(largest * 10.0 / TICKS);
        Axis::stepped(title, step, (largest / step).ceil() as usize, label)
    }

    /// An axis of equal steps from zero.
    pub fn stepped(title: &str, step: f64, steps: usize, label: fn(f64) -> String) -> Axis {
        let places = (0..=steps.max(1)).map(|index| index as f64 * step);
        let ticks: Vec<(f64, String)> = places.map(|place| (place, label(place))).collect();
        let to = ticks.last().map_or(step, |(place, _)| *place);
        Axis { title: title.to_string(), scale: Scale::Linear, from: 0.0, to, ticks }
    }

    /// A logarithmic axis whose ends are 1, 2 or 5 times a power of ten. It starts at or below
    /// `smallest` and ends at or above `largest`.
    pub fn log(title: &str, smallest: f64, largest: f64, label: fn(f64) -> String) -> Axis {
        let smallest = if smallest > 0.0 && smallest.is_finite() { smallest } else { 1.0 };
        let largest = if largest.is_finite() { largest.max(smallest * 1.01) } else { smallest * 10.0 };
        let first = smallest.log10().floor() as i32;
        let last = largest.log10().ceil() as i32;
        let steps = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        let steps: Vec<f64> = steps.collect();
        // Tolerance for powers of ten, which are not exact.
        let from = steps.iter().copied().rfind(|step| *step <= smallest * 1.000_001).unwrap_or(smallest);
        let to = steps.iter().copied().find(|step| *step >= largest * 0.999_999).unwrap_or(largest);
        let ticks = steps.into_iter().filter(|step| (from..=to).contains(step));
        let ticks = ticks.map(|step| (step, label(step))).collect();
        Axis { title: title.to_string(), scale: Scale::Log, from, to, ticks }
    }

    /// Returns the position of a value between the ends, 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        place.clamp(0.0, 1.0)
    }
}

/// Formats a count for an axis: `20K`, `1.5M`.
pub fn short_count(value: f64) -> String {
    match value {
        value if value >= 1e6 => trimmed(value / 1e6) + "M",
        value if value >= 1e3 => trimmed(value / 1e3) + "K",
        value => trimmed(value),
    }
}

/// Formats microseconds for an axis: `50 us`, `2 ms`.
pub fn short_micros(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => trimmed(micros / 1e6) + " s",
        micros if micros >= 1e3 => trimmed(micros / 1e3) + " ms",
        micros => trimmed(micros) + " us",
    }
}

/// Formats bytes for an axis: `256K`.
pub fn short_bytes(bytes: f64) -> String {
    Bytes(bytes as u64).as_setting()
}

/// Formats a duration in microseconds with its unit.
pub fn duration(micros: f64) -> String {
    Nanos((micros * 1e3).round() as u64).to_string()
}

fn trimmed(value: f64) -> String {
    let decimals = if value.fract().abs() < 1e-9 { 0 } else { 1 };
    grouped(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> String {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn axes_end_at_round_numbers_around_the_data() {
        let linear = Axis::linear("IOPS", 74_000.0, short_count);
        assert_eq!(labels(&linear), "0 20K 40K 60K 80K");
        assert_eq!(linear.place(40_000.0), 0.5);
        let log = Axis::log("latency", 42.0, 3_900.0, short_micros);
        assert_eq!(labels(&log), "20 us 50 us 100 us 200 us 500 us 1 ms 2 ms 5 ms");
        assert!((log.place(20.0), log.place(5_000.0)) == (0.0, 1.0));
        assert!((log.place(316.227_766) - 0.5).abs() < 1e-6);
        assert_eq!(log.place(0.0), 0.0, "nothing lies below the axis");
    }

    #[test]
    fn nothing_to_draw_still_has_axes() {
        assert_eq!(labels(&Axis::linear("", 0.0, short_count)), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(labels(&Axis::log("", 0.0, 0.0, short_count)), "1 2");
        assert_eq!(labels(&Axis::log("", 100.0, 1000.0, short_count)), "100 200 500 1K");
    }
}
