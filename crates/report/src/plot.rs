//! Curves and bars as data: what is drawn, with its axes worked out.
//!
//! The profile of a run has a library of its own, for it is read point by point. What
//! is here is a handful of points with their intervals, drawn as SVG by `html`: it
//! needs no script, prints, and follows the theme by its classes. Text has the
//! same figures in tables, so nothing may be said by a plot alone.

use crate::format::grouped;
use crate::profile::tick_step;
use plumb_units::{Bytes, Nanos};

/// A chart of one or more series over two axes.
#[derive(Debug, Clone)]
pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    /// What is drawn, the first one at the bottom.
    pub series: Vec<Series>,
}

/// How far apart equal steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    Linear,
    Log,
}

#[derive(Debug, Clone)]
pub struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    /// How far apart equal steps are.
    pub scale: Scale,
    pub from: f64,
    pub to: f64,
    pub ticks: Vec<(f64, String)>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// A line through its marks.
    Line,
    /// A dashed line through its marks.
    Dashed,
    Marks,
    /// A dashed line without marks: no measurement, but what was laid through some.
    Fit,
}

#[derive(Debug, Clone)]
pub struct Series {
    pub name: String,
    /// Its colour's place in the palette.
    pub colour: usize,
    pub stroke: Stroke,
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Side {
    /// To the right of its mark, where there is room.
    #[default]
    Right,
    Left,
}

#[derive(Debug, Clone, Default)]
pub struct Mark {
    pub x: f64,
    pub y: f64,
    pub x_range: Option<(f64, f64)>,
    pub y_range: Option<(f64, f64)>,
    /// The text beside it; empty for none.
    pub label: String,
    pub side: Side,
    /// What is said when it is pointed at.
    pub hint: String,
    pub ringed: bool,
}

/// Quantities of one unit as bars with their intervals.
#[derive(Debug, Clone)]
pub struct Bars {
    pub title: String,
    /// Their colour's place in the palette.
    pub colour: usize,
    pub bars: Vec<Bar>,
}

#[derive(Debug, Clone)]
pub struct Bar {
    pub name: String,
    pub value: f64,
    /// The interval of its end.
    pub range: (f64, f64),
    /// The value as it is printed.
    pub shown: String,
}

/// Ticks on a linear axis at most, near enough.
const TICKS: f64 = 6.0;

impl Axis {
    /// From zero to a round number that is not below `largest`.
    pub fn linear(title: &str, largest: f64, label: fn(f64) -> String) -> Axis {
        let largest = if largest > 0.0 && largest.is_finite() { largest } else { 1.0 };
        let step = tick_step(largest * 10.0 / TICKS);
        Axis::stepped(title, step, (largest / step).ceil() as usize, label)
    }

    /// So many steps from zero.
    pub fn stepped(title: &str, step: f64, steps: usize, label: fn(f64) -> String) -> Axis {
        let places = (0..=steps.max(1)).map(|index| index as f64 * step);
        let ticks: Vec<(f64, String)> = places.map(|place| (place, label(place))).collect();
        let to = ticks.last().map_or(step, |(place, _)| *place);
        Axis { title: title.to_string(), scale: Scale::Linear, from: 0.0, to, ticks }
    }

    /// From the 1, 2 or 5 times a power of ten at or below `smallest` to the one at or
    /// above `largest`.
    pub fn log(title: &str, smallest: f64, largest: f64, label: fn(f64) -> String) -> Axis {
        let smallest = if smallest > 0.0 && smallest.is_finite() { smallest } else { 1.0 };
        let largest = if largest.is_finite() { largest.max(smallest * 1.01) } else { smallest * 10.0 };
        let first = smallest.log10().floor() as i32;
        let last = largest.log10().ceil() as i32;
        let steps = (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(power)));
        let steps: Vec<f64> = steps.collect();
        // A hair of room: a power of ten is not exact.
        let from = steps.iter().copied().rfind(|step| *step <= smallest * 1.000_001).unwrap_or(smallest);
        let to = steps.iter().copied().find(|step| *step >= largest * 0.999_999).unwrap_or(largest);
        let ticks = steps.into_iter().filter(|step| (from..=to).contains(step));
        let ticks = ticks.map(|step| (step, label(step))).collect();
        Axis { title: title.to_string(), scale: Scale::Log, from, to, ticks }
    }

    /// Where a value lies between the ends, 0 to 1.
    pub fn place(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log => (value.max(self.from) / self.from).ln() / (self.to / self.from).ln(),
        };
        place.clamp(0.0, 1.0)
    }
}

/// A count on an axis: `20K`, `1.5M`.
pub fn short_count(value: f64) -> String {
    match value {
        value if value >= 1e6 => trimmed(value / 1e6) + "M",
        value if value >= 1e3 => trimmed(value / 1e3) + "K",
        value => trimmed(value),
    }
}

/// Microseconds on an axis: `50 us`, `2 ms`.
pub fn short_micros(micros: f64) -> String {
    match micros {
        micros if micros >= 1e6 => trimmed(micros / 1e6) + " s",
        micros if micros >= 1e3 => trimmed(micros / 1e3) + " ms",
        micros => trimmed(micros) + " us",
    }
}

/// Bytes on an axis: `256K`.
pub fn short_bytes(bytes: f64) -> String {
    Bytes(bytes as u64).as_setting()
}

/// A duration with its unit.
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
