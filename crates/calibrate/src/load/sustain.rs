//! One load for minutes: burst credits that run out, the steady state of flash.
//!
//! Clouds give a volume credits for bursts, and a solid-state disk takes writes fast until its
//! spare blocks are used up. Both show only after minutes, so no repeat of a point sees them. A
//! sustained load is small random writes over the whole file, which use up both, in windows one
//! after the other. A change of level is searched in the windows' rates
//! ([`plumb_proof::change_point`]).
//!
//! Limits: between two windows the queue runs empty for some milliseconds. The search takes windows
//! as exchangeable. Slow waves of a shared device look like changes of level to it, so levels and
//! their times are shown, and the curve with them.

use super::TaskRunner;
use crate::{CalibrateError, Point, Progress, ProgressObserver, Task};
use plumb_events::now;
use plumb_proof::change_point::{self, Search};
use plumb_units::{Nanos, median};
use serde::{Deserialize, Serialize};

/// Windows of a sustained load: enough for the search, few enough for a picture.
const WINDOWS_MAX: u64 = 600;
const WINDOW_MIN: Nanos = Nanos(1_000_000_000);

/// Rates of one load over minutes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sustained {
    pub point: Point,
    /// Measured time of each window, nanoseconds.
    pub window_ns: u64,
    pub windows: Vec<Window>,
    /// Seed of the search for changes.
    pub seed: u64,
}

/// One window of a sustained load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Start since the start of the load, nanoseconds.
    pub begin_ns: u64,
    pub iops: f64,
    /// 99th percentile of the latency, microseconds.
    pub p99_micros: f64,
}

/// The windows between two changes of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SustainedLevel {
    /// Time from the start of the load to the first window.
    pub begin: Nanos,
    /// Time from the start of the load to the end of the last window.
    pub end: Nanos,
    /// Median of the windows' rates, requests a second.
    pub iops: f64,
    /// Median of the windows' 99th percentiles, microseconds.
    pub p99_micros: f64,
    /// p of the change at its start; `None` for the first.
    pub p: Option<f64>,
}

impl Sustained {
    /// Returns the levels of the rates, one if they never change.
    pub fn levels(&self) -> Vec<SustainedLevel> {
        let logs: Vec<f64> = self.windows.iter().map(|window| window.iops.max(1e-3).ln()).collect();
        let changes = change_point::find(&logs, &Search::usual(self.seed));
        let mut starts = vec![(0, None)];
        starts.extend(changes.iter().map(|change| (change.index, Some(change.p))));
        let ends: Vec<usize> =
            starts.iter().skip(1).map(|(index, _)| *index).chain([self.windows.len()]).collect();
        let level = |((start, p), end): (&(usize, Option<f64>), usize)| {
            let windows = &self.windows[*start..end];
            let of = |figure: fn(&Window) -> f64| median(&windows.iter().map(figure).collect::<Vec<f64>>());
            let (first, last) = (windows.first()?, windows.last()?);
            Some(SustainedLevel {
                begin: Nanos(first.begin_ns),
                end: Nanos(last.begin_ns.saturating_add(self.window_ns)),
                iops: of(|window| window.iops),
                p99_micros: of(|window| window.p99_micros),
                p: *p,
            })
        };
        starts.iter().zip(ends).filter_map(level).collect()
    }
}

/// Keeps a point's load up for `time`.
pub(crate) fn run(
    runner: &TaskRunner<'_>,
    point: Point,
    time: Nanos,
    observer: &dyn ProgressObserver,
) -> Result<Sustained, CalibrateError> {
    let window = Nanos(time.0 / WINDOWS_MAX).max(WINDOW_MIN);
    let begin = now();
    let task = Task::Point(point.clone());
    let mut windows = Vec::new();
    loop {
        let at = now().saturating_sub(begin);
        if at >= time {
            return Ok(Sustained { point, window_ns: window.0, windows, seed: runner.seed });
        }
        observer.progress(&Progress {
            what: format!("{task}, sustained"),
            done: 0,
            total: 0,
            elapsed: at,
            left: time.saturating_sub(at),
        });
        // Orders of repeats count from zero; those of windows from the other end.
        let measured = runner.run(&task, usize::MAX / 2 + windows.len(), window)?;
        let p99 = measured.loads.first().map_or(Nanos(0), |load| load.latency.quantile(0.99));
        windows.push(Window { begin_ns: at.0, iops: measured.iops(0), p99_micros: p99.micros() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffers, Load, Ring};
    use plumb_io::{DirectIo, MethodKind};
    use plumb_units::Bytes;

    fn sustained(rates: impl Iterator<Item = f64>) -> Sustained {
        let window = |(second, iops): (usize, f64)| Window {
            begin_ns: second as u64 * 1_000_000_000,
            // Some noise, as no two windows are equal.
            iops: iops * (1.0 + (second * 7 % 11) as f64 * 0.002),
            p99_micros: 32e6 / iops,
        };
        let point = Point {
            loads: vec![Load::random_read(Bytes(8192), 32)],
            threads: 1,
            method: MethodKind::IoUring,
            direct_io: DirectIo::Required,
            buffers: Buffers::Registered,
            ring: Ring::default(),
        };
        let windows = rates.enumerate().map(window).collect();
        Sustained { point, window_ns: 1_000_000_000, windows, seed: 1 }
    }

    #[test]
    fn credits_that_run_out_are_a_change_of_level() {
        let found = sustained((0..300).map(|second| if second < 180 { 3_000.0 } else { 600.0 })).levels();
        let shown: Vec<(u64, u64, u64)> = found
            .iter()
            .map(|level| {
                (level.begin.0 / 1_000_000_000, level.end.0 / 1_000_000_000, level.iops as u64 / 100)
            })
            .collect();
        assert_eq!(shown, [(0, 180, 30), (180, 300, 6)]);
        assert!(found[1].p.is_some_and(|p| p <= 0.001));
    }

    #[test]
    fn a_steady_load_has_one_level() {
        let found = sustained((0..300).map(|_| 3_000.0)).levels();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].end, Nanos(300_000_000_000));
    }
}
