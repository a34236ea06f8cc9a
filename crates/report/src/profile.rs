//! The axes and bands of I/O profiles, the same for text and HTML: of one run, or of two on the same axes.
//!
//! Axes are fixed by the context, so that two reports can be laid side by side;
//! where it leaves them open, time ends with the run and the vertical axis with
//! a round number above the largest bucket, or above the device's own limit
//! when that is near enough to be worth seeing.

use crate::context::{IoDirection, ProfileSeries, ReportContext};
use crate::study::context::{ProfilePair, RunProfile};
use plumb_units::{Bytes, Nanos};

/// The profile with its axes resolved.
#[derive(Debug, Clone)]
pub(crate) struct Chart {
    /// The end of the time axis, seconds.
    pub x_max_s: f64,
    /// The top of the vertical axis, MB/s.
    pub y_max_mb_per_s: f64,
    /// The length of a bucket, seconds.
    pub bucket_s: f64,
    /// The series that moved any bytes.
    pub series: Vec<ProfileSeries>,
    /// The phases.
    pub bands: Vec<Band>,
}

/// A phase on the time axis.
#[derive(Debug, Clone)]
pub(crate) struct Band {
    /// The phase's name.
    pub name: String,
    /// Where it starts, seconds.
    pub start_s: f64,
    /// Where it ends, seconds.
    pub end_s: f64,
}

impl Chart {
    /// The chart of a context; none when nothing was recorded over time.
    pub(crate) fn of(context: &ReportContext) -> Option<Chart> {
        let profile = &context.io_profile;
        let moved = |series: &&ProfileSeries| series.bytes.iter().any(|bytes| *bytes > 0);
        let series = profile.series.iter().filter(moved).cloned().collect::<Vec<_>>();
        if profile.bucket_ns == 0 || series.is_empty() {
            return None;
        }
        let bucket_s = Nanos(profile.bucket_ns).seconds();
        let peak = series.iter().map(|series| peak_mb_per_s(series, bucket_s)).fold(0.0, f64::max);
        // The limit belongs in the picture unless it would flatten the data below half of it.
        let limit = limit_mb_per_s(context, IoDirection::Read).filter(|limit| *limit <= 2.0 * peak);
        let top = limit.map_or(peak, |limit| limit.max(peak));
        let elapsed_s = Nanos(context.header.elapsed_ns).seconds();
        let bands = context.phases.iter().map(|phase| Band {
            name: phase.name.clone(),
            start_s: Nanos(phase.start_ns).seconds(),
            end_s: Nanos(phase.end_ns).seconds(),
        });
        Some(Chart {
            x_max_s: positive(profile.x_max_s).unwrap_or(elapsed_s.max(bucket_s)),
            y_max_mb_per_s: positive(profile.y_max_mb_per_s).unwrap_or(round_ceiling(top, &AXIS_ENDS)),
            bucket_s,
            series,
            bands: bands.collect(),
        })
    }

    /// The mean rate of a series between two times, MB/s.
    pub(crate) fn rate_mb_per_s(&self, series: &ProfileSeries, from_s: f64, to_s: f64) -> f64 {
        let first = (from_s / self.bucket_s).floor() as usize;
        let last = (to_s / self.bucket_s).ceil() as usize;
        let buckets = series.bytes.iter().enumerate().take(last).skip(first);
        let bytes = buckets.map(|(index, bytes)| {
            let start_s = index as f64 * self.bucket_s;
            let overlap_s = to_s.min(start_s + self.bucket_s) - from_s.max(start_s);
            *bytes as f64 * (overlap_s / self.bucket_s).max(0.0)
        });
        bytes.sum::<f64>() / Bytes::M as f64 / (to_s - from_s)
    }
}

/// The profiles of two runs on the same axes.
#[derive(Debug, Clone)]
pub(crate) struct PairChart {
    /// The place of its data in the embedded context: the index of the claim.
    pub claim: usize,
    /// What is compared.
    pub title: String,
    /// The reference, then the treatment; both have the same series in the same order.
    pub sides: [Side; 2],
}

/// One run of a pair.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// The arm and the number of the run.
    pub name: String,
    /// Its profile.
    pub chart: Chart,
}

impl PairChart {
    /// The chart of a pair; none when nothing was recorded over time.
    pub(crate) fn of(claim: usize, title: String, pair: &ProfilePair) -> Option<PairChart> {
        let runs = [&pair.reference, &pair.treatment];
        let mut names: Vec<(&str, IoDirection)> = Vec::new();
        let moving = |series: &&ProfileSeries| series.bytes.iter().any(|bytes| *bytes > 0);
        for series in runs.iter().flat_map(|run| run.profile.series.iter().filter(moving)) {
            if !names.iter().any(|(name, _)| *name == series.name) {
                names.push((&series.name, series.direction));
            }
        }
        if names.is_empty() || runs.iter().any(|run| run.profile.bucket_ns == 0) {
            return None;
        }
        let peak = runs.iter().flat_map(|run| {
            let bucket_s = Nanos(run.profile.bucket_ns).seconds();
            run.profile.series.iter().map(move |series| peak_mb_per_s(series, bucket_s))
        });
        let y_max_mb_per_s = round_ceiling(peak.fold(0.0, f64::max), &AXIS_ENDS);
        let x_max_s = runs.iter().map(|run| Nanos(run.elapsed_ns).seconds()).fold(0.0, f64::max);
        let side = |run: &RunProfile| Side {
            name: format!("{} (run {})", run.arm, run.run),
            chart: Chart {
                x_max_s: x_max_s.max(Nanos(run.profile.bucket_ns).seconds()),
                y_max_mb_per_s,
                bucket_s: Nanos(run.profile.bucket_ns).seconds(),
                series: names.iter().map(|name| series_of(run, *name)).collect(),
                bands: Vec::new(),
            },
        };
        Some(PairChart { claim, title, sides: [side(&pair.reference), side(&pair.treatment)] })
    }
}

/// A run's series of a name; an empty one when it has none.
fn series_of(run: &RunProfile, (name, direction): (&str, IoDirection)) -> ProfileSeries {
    let mut known = run.profile.series.iter();
    known.find(|series| series.name == name).cloned().unwrap_or(ProfileSeries {
        name: name.to_string(),
        direction,
        bytes: Vec::new(),
    })
}

/// The largest bucket of a series, MB/s.
pub(crate) fn peak_mb_per_s(series: &ProfileSeries, bucket_s: f64) -> f64 {
    let largest = series.bytes.iter().copied().max().unwrap_or(0);
    largest as f64 / Bytes::M as f64 / bucket_s
}

/// The device's sequential limit, MB/s; none when it was not calibrated.
pub(crate) fn limit_mb_per_s(context: &ReportContext, direction: IoDirection) -> Option<f64> {
    let calibration = context.calibration.as_ref()?;
    let bytes_per_s = match direction {
        IoDirection::Read => calibration.sequential_read_bytes_per_s,
        IoDirection::Write => calibration.sequential_write_bytes_per_s,
    };
    bytes_per_s.map(|rate| rate / Bytes::M as f64)
}

/// First digits at which a vertical axis may end.
const AXIS_ENDS: [f64; 9] = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0];

/// First digits of a distance between ticks.
const TICK_STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// The distance between the ticks of a time axis that ends here, at most ten of them.
pub(crate) fn tick_step(x_max_s: f64) -> f64 {
    round_ceiling(x_max_s / 10.0, &TICK_STEPS)
}

/// The smallest of the digits, times a power of ten, that is not below the value.
fn round_ceiling(value: f64, digits: &[f64]) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let mut ends = digits.iter().map(|digit| digit * power);
    ends.find(|end| *end >= value).unwrap_or(10.0 * power)
}

fn positive(axis: Option<f64>) -> Option<f64> {
    axis.filter(|end| end.is_finite() && *end > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_above_the_data() {
        for (value, end) in [
            (0.0, 1.0),
            (0.27, 0.3),
            (1.0, 1.0),
            (1.1, 1.5),
            (441.0, 500.0),
            (801.0, 1000.0),
            (1000.0, 1000.0),
            (1001.0, 1500.0),
        ] {
            assert!((round_ceiling(value, &AXIS_ENDS) - end).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn a_time_axis_has_at_most_ten_steps() {
        for (x_max_s, step_s) in [(30.0, 5.0), (0.9, 0.1), (100.0, 10.0), (101.0, 20.0)] {
            assert!((tick_step(x_max_s) - step_s).abs() < 1e-9, "{x_max_s}");
        }
    }
}
