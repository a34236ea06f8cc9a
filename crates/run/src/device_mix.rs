//! The device's own rate for the mix of a workload: concurrent random reads and writes of single
//! blocks in one file.
//!
//! A device test that only reads cannot show the cost of concurrent writes to one file. In 2014
//! they cost two thirds of the rate on one file system. So the point has both, with one request
//! outstanding per session of the workload. It is measured before and after the work, because a
//! shared device changes within an hour. The report states the share of it that the work reached.
//! It is a point of the calibrator, on a temporary file next to the tables.
//!
//! Before the work the mix is the requested one. If all blocks are read and u percent of them then
//! written, writes are u / (100 + u) of all requests. The work's own mix is known only afterwards:
//! cached blocks are not read, and a block changed twice before its write is written once. So the
//! second point has the work's own mix, unless that is close to the requested one. The work is
//! compared with the points that have its mix.
//!
//! A repeat takes as long as the work is expected to take, within bounds, and the file shrinks with
//! it: a run of 100 ms is not held up by ten seconds of calibration.
//!
//! Limits: one request is one block; a database writer may join adjacent ones. If the calibrator
//! cannot measure (files in memory, no room), there is no point, and the record says why.

use plumb_calibrate::{Cells, Mode, Options, Task, calibrate};
use plumb_events::{IoStream, Period};
use plumb_host::device::DeviceDescription;
use plumb_record::is_near_mix;
use plumb_units::{Bytes, Nanos};

/// Requests of a workload to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    pub block: Bytes,
    pub outstanding: usize,
    /// Share of writes, per hundred requests.
    pub write_percent: u8,
    /// Duration of each repeat, between [`REPEAT_LEAST`] and [`REPEAT`].
    pub repeat: Nanos,
}

impl Mix {
    /// Returns the mix of sessions that read single blocks and update this percentage of them, for
    /// work that is expected to take this time.
    pub fn of_updates(block: Bytes, sessions: usize, update_percent: u64, expected: Nanos) -> Mix {
        let share = 100.0 * update_percent as f64 / (100.0 + update_percent as f64);
        Mix {
            block,
            outstanding: sessions.clamp(1, OUTSTANDING_MAX),
            write_percent: share.round() as u8,
            repeat: expected.clamp(REPEAT_LEAST, REPEAT),
        }
    }

    /// Returns the size of the file. For the longest repeat it is larger than a device's cache for
    /// the writes of a repeat, and quickly made.
    pub fn file(&self) -> Bytes {
        Bytes(FILE.0 * self.repeat.0 / REPEAT.0 / Bytes::M * Bytes::M)
    }

    /// Returns the mix of the work done, given the reads and writes it made of this mix.
    #[must_use]
    pub fn as_done(self, [reads, writes]: [u64; 2]) -> Mix {
        let own = write_percent([reads, writes]);
        if is_near_mix(self.write_percent, own) {
            self
        } else {
            Mix { write_percent: own.round() as u8, ..self }
        }
    }
}

/// Counts reads of blocks into the cache, and writes of the database writers.
pub fn requests(period: &Period) -> [u64; 2] {
    [IoStream::CacheReads, IoStream::DataWrites].map(|stream| period.stream(stream).count)
}

/// Writes per hundred requests; 0 without requests.
pub fn write_percent([reads, writes]: [u64; 2]) -> f64 {
    100.0 * writes as f64 / (reads + writes).max(1) as f64
}

/// Largest number of outstanding requests that the calibrator accepts.
const OUTSTANDING_MAX: usize = 1024;
/// Size of the file of the longest repeat.
const FILE: Bytes = Bytes(512 * Bytes::M);
/// Longest duration of a repeat.
const REPEAT: Nanos = Nanos(500_000_000);
/// Shortest duration of a repeat: hundreds of requests of a disk, thousands of a flash device.
const REPEAT_LEAST: Nanos = Nanos(50_000_000);
/// Longest total time in repeats, creation of the file included.
const BUDGET: u64 = 30;

/// Rate of a mix in requests per second: median, lowest and highest of its repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Measures a mix on a device. An error is one sentence.
pub fn measure(device: &DeviceDescription, mix: Mix, seed: u64) -> Result<Measured, String> {
    let mut options = Options::new(Mode::Advanced, seed, String::new());
    options.advanced.cells = Cells::Point;
    options.advanced.num_small = Some(mix.outstanding);
    options.advanced.num_large = Some(0);
    options.advanced.write_percent = mix.write_percent;
    options.size_small = mix.block;
    options.file_size = Some(mix.file());
    (options.duration, options.budget) = (Some(mix.repeat), Some(Nanos(BUDGET * mix.repeat.0)));
    let found = calibrate(std::slice::from_ref(device), &options, &()).map_err(|error| error.to_string())?;
    let point = found.tasks.iter().find(|task| matches!(task.task, Task::Point(_)));
    let repeats = point.map(|point| point.repeats.as_slice()).unwrap_or_default();
    let rate = |repeat: &plumb_calibrate::Repeat| {
        let requests: u64 = repeat.measurement.loads.iter().map(|load| load.requests()).sum();
        requests as f64 * 1e9 / repeat.measurement.elapsed_ns.max(1) as f64
    };
    let mut rates: Vec<f64> = repeats.iter().map(rate).collect();
    rates.sort_by(f64::total_cmp);
    match (rates.first(), rates.get(rates.len() / 2), rates.last()) {
        (Some(least), Some(median), Some(most)) => {
            Ok(Measured { median: *median, least: *least, most: *most })
        }
        _ => Err("no repeat finished".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_a_share_of_all_requests() {
        let percent = |updates| Mix::of_updates(Bytes(8192), 16, updates, REPEAT).write_percent;
        assert_eq!([0, 20, 50, 100].map(percent), [0, 17, 33, 50]);
        assert_eq!(Mix::of_updates(Bytes(8192), 5000, 0, REPEAT).outstanding, OUTSTANDING_MAX);
    }

    #[test]
    fn a_short_run_has_short_repeats_and_a_small_file() {
        let of = |ms: u64| {
            let mix = Mix::of_updates(Bytes(8192), 1, 0, Nanos(ms * 1_000_000));
            (mix.repeat.0 / 1_000_000, mix.file().0 / Bytes::M)
        };
        assert_eq!([1, 100, 500, 60_000].map(of), [(50, 51), (100, 102), (500, 512), (500, 512)]);
    }

    #[test]
    fn the_work_is_held_against_its_own_mix() {
        let asked = Mix::of_updates(Bytes(8192), 16, 20, REPEAT);
        let done = |reads, writes| asked.as_done([reads, writes]).write_percent;
        assert_eq!([done(83, 17), done(85, 15), done(91, 9), done(600, 400)], [17, 17, 9, 40]);
        assert_eq!([done(0, 10), done(10, 0), done(0, 0)], [100, 0, 0]);
    }
}
