//! Axes for drawings: positions of values between 0 and 1, and ticks.
//!
//! Ratios and times are on a logarithmic scale. Twice and half are equally far from no effect, and
//! equal ratios equally far from each other. Sums (a difference and its parts) are on a linear
//! scale, because only there lengths add up.

use crate::format::{Change, Figure, Reading};
use crate::profile::tick_step;
use crate::table::{Axis, Drawing};

/// A ratio within its interval; an end that is `None` is unbounded.
pub type Effect = (Option<f64>, f64, Option<f64>);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    low: f64,
    high: f64,
}

/// Least space between two ticks, as a share of the axis.
const TICK_ROOM: f64 = 0.13;
/// Least distance that an axis of effects extends to either side of no effect.
const EFFECT_MIN: f64 = 0.02;
/// Factor by which intervals may widen the axis, relative to the
/// spread of the estimates' logarithms.
const INTERVAL_SHARE: f64 = 1.0;

impl LogAxis {
    /// An axis around the values with some margin; around 1 if none is above 0.
    pub fn around(values: impl IntoIterator<Item = f64>) -> LogAxis {
        let logs = values.into_iter().filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
        let (low, high) =
            logs.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), log| (low.min(log), high.max(log)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 0.0) };
        let room = (0.06 * (high - low)).max(0.005);
        LogAxis { low: (low - room).exp(), high: (high + room).exp() }
    }

    /// An axis that includes no effect and all estimates, and intervals up to
    /// a multiple of their spread.
    pub fn of_effects(effects: impl Iterator<Item = Effect> + Clone) -> LogAxis {
        let usable = |ratio: f64| (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln());
        let estimates = effects.clone().filter_map(|(_, ratio, _)| usable(ratio));
        let floor = (1.0 + EFFECT_MIN).ln();
        let (least, most) =
            estimates.fold((-floor, floor), |(least, most), log| (least.min(log), most.max(log)));
        let reach = INTERVAL_SHARE * (most - least);
        let ends = effects.flat_map(|(low, _, high)| [low, high]).flatten().filter_map(usable);
        let (low, high) = ends.fold((least, most), |(low, high), log| {
            (low.min(log.max(least - reach)), high.max(log.min(most + reach)))
        });
        LogAxis::around([low.exp(), high.exp()])
    }

    pub fn position(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        ((value / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }

    /// Draws a value within its interval; an end beyond the axis is open.
    pub fn interval(self, (low, at, high): Effect) -> Drawing {
        Drawing::Interval { low: self.end(low), at: self.position(at), high: self.end(high) }
    }

    fn end(self, end: Option<f64>) -> Option<f64> {
        end.filter(|end| (self.low..=self.high).contains(end)).map(|end| self.position(end))
    }

    /// Returns the axis of a column of effects: ticks in per cent of change, and
    /// a line at no effect.
    pub fn effects(self) -> Axis {
        let ratios = round_values(self.low, self.high, |step| 1.0 + step);
        let ticks = self.thinned(&ratios, 1.0, |ratio| {
            if (ratio - 1.0).abs() < 1e-9 { "0".to_string() } else { whole(Change(ratio).figure()) }
        });
        Axis { ticks, line: Some(self.position(1.0)) }
    }

    /// Returns positions and labels of round values.
    pub fn values(self) -> Vec<(f64, String)> {
        let values = round_values(self.low, self.high, |step| step);
        let middle = values.get(values.len() / 2).copied().unwrap_or(1.0);
        self.thinned(&values, middle, |value| Reading(value).short())
    }

    /// Returns the ticks that fit, starting at `from` and going outwards.
    fn thinned(self, values: &[f64], from: f64, name: impl Fn(f64) -> String) -> Vec<(f64, String)> {
        let mut kept: Vec<f64> = Vec::new();
        let (mut lower, mut upper): (Vec<f64>, Vec<f64>) =
            values.iter().copied().partition(|value| *value < from);
        lower.reverse();
        for side in [&mut upper, &mut lower] {
            for value in side.drain(..) {
                let at = self.position(value);
                if kept.iter().all(|other| (self.position(*other) - at).abs() >= TICK_ROOM) {
                    kept.push(value);
                }
            }
        }
        kept.sort_by(f64::total_cmp);
        kept.into_iter().map(|value| (self.position(value), name(value))).collect()
    }
}

/// Returns round values between two bounds: equal steps in a narrow range, 1-2-5 in a wide one.
/// `of` converts a multiple of the step into a value, and is strictly increasing.
fn round_values(low: f64, high: f64, of: impl Fn(f64) -> f64) -> Vec<f64> {
    if high / low >= 4.0 {
        let powers = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        let digits = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|digit: f64| digit * 10f64.powi(power)));
        return digits.filter(|value| (low..=high).contains(value)).collect();
    }
    let step = tick_step((high - low) * 2.0);
    let zero = of(0.0);
    let first = ((low - zero) / step).ceil() as i64;
    let last = ((high - zero) / step).floor() as i64;
    (first..=last).map(|index| of(index as f64 * step)).collect()
}

/// Shortens a whole percentage such as `-50.0%` to `-50%`.
fn whole(percent: String) -> String {
    percent.replace(".0%", "%")
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearAxis {
    low: f64,
    high: f64,
}

impl LinearAxis {
    /// An axis over the values, starting at 0 unless they are too
    /// close together to be distinguished.
    pub fn over(values: &[f64]) -> LinearAxis {
        let high = values.iter().copied().fold(0.0, f64::max);
        let low = values.iter().copied().fold(high, f64::min);
        let spread = high - low;
        let low =
            if low > 0.0 && spread < 0.25 * high { (low - 2.0 * spread).max(0.0) } else { low.min(0.0) };
        let room = 0.03 * (high - low).max(f64::MIN_POSITIVE);
        LinearAxis { low, high: high + room }
    }

    pub fn position(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// True if the axis starts above 0.
    pub fn is_cut(self) -> bool {
        self.low > 0.0
    }

    pub fn bars(self) -> Axis {
        let step = tick_step((self.high - self.low) * 2.0);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        let values = (first..=last).map(|index| index as f64 * step);
        Axis {
            ticks: values.map(|value| (self.position(value), Reading(value).short())).collect(),
            line: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: Axis) -> Vec<String> {
        axis.ticks.into_iter().map(|(_, name)| name).collect()
    }

    fn effect(low: f64, ratio: f64, high: f64) -> Effect {
        (Some(low), ratio, Some(high))
    }

    #[test]
    fn no_effect_is_named_and_lies_between_the_ends() {
        for effects in [vec![effect(0.35, 0.38, 0.4)], vec![effect(0.99, 1.001, 1.01)], vec![]] {
            let axis = LogAxis::of_effects(effects.iter().copied());
            let shown = axis.effects();
            let line = shown.line.unwrap();
            assert!((0.05..=0.95).contains(&line), "{effects:?}: {line}");
            assert!(names(shown).contains(&"0".to_string()), "{effects:?}");
        }
    }

    #[test]
    fn an_endless_interval_does_not_squeeze_the_estimates() {
        let wide = (Some(1e-9), 0.9, None);
        let axis = LogAxis::of_effects([wide, effect(0.85, 0.9, 0.95)].into_iter());
        assert!(axis.position(0.95) - axis.position(0.85) > 0.2);
        assert_eq!((axis.end(wide.0), axis.end(wide.2)), (None, None));
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(names(LogAxis::of_effects([effect(0.34, 0.36, 0.39)].into_iter()).effects())[0], "-60%");
        let values = LogAxis::around([0.9, 1.3]).values();
        assert_eq!(values.first().map(|(_, name)| name.as_str()), Some("0.9"));
        let wide = LogAxis::around([0.1, 30.0]).values();
        assert_eq!(
            wide.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(),
            ["0.2", "0.5", "2", "5", "20"]
        );
        assert_eq!(names(LinearAxis::over(&[1.0, 2.0]).bars()), ["0", "0.5", "1", "1.5", "2"]);
        assert!(LinearAxis::over(&[10.0, 10.5]).is_cut());
    }
}
