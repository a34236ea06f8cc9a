//! The device's own rate for the mix of a workload: random reads and writes of single blocks, at once, to one file.
//!
//! A device test that only reads cannot show what concurrent writes to one file cost (on one file system in 2014 two thirds of
//! the rate), so the point has both, as many outstanding as the workload has sessions. It is measured before the
//! work and after it, because a shared device is not the same an hour later; the report says what share of it the
//! work reached. It is the calibrator's point, on a file of its own beside the tables, which is gone again.
//!
//! Before, the mix is that of what is asked for: of blocks that are all read and of which so many in a hundred are
//! then written, writes are u / (100 + u) of all requests. What the work makes of it is known afterwards: a block that is in the
//! cache is not read, and one that is changed again before it is written is written once. So after it the mix is the work's own, unless
//! that is as good as the one asked for; and the work is held against the points that have its mix.
//!
//! Limits: one request is one block; a database writer may join adjacent ones. Where the calibrator cannot measure (files in
//! memory, no room) there is no such point, and the record says why.

use plumb_calibrate::{Cells, Mode, Options, Task, calibrate};
use plumb_events::{IoStream, Period};
use plumb_host::device::DeviceDescription;
use plumb_record::is_near_mix;
use plumb_units::{Bytes, Nanos};

/// What a workload asks of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    pub block: Bytes,
    pub outstanding: usize,
    /// Writes in a hundred requests.
    pub write_percent: u8,
}

impl Mix {
    /// That of sessions which read blocks one at a time, and change so many in a hundred of them.
    #[must_use]
    pub fn of_updates(block: Bytes, sessions: usize, update_percent: u64) -> Mix {
        let share = 100.0 * update_percent as f64 / (100.0 + update_percent as f64);
        Mix { block, outstanding: sessions.clamp(1, OUTSTANDING_MAX), write_percent: share.round() as u8 }
    }

    /// The mix of work that was asked for this one and made so many reads and writes.
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

/// Reads of blocks into the cache, and writes of the database writers.
#[must_use]
pub fn requests(period: &Period) -> [u64; 2] {
    [IoStream::CacheReads, IoStream::DataWrites].map(|stream| period.stream(stream).count)
}

/// Writes in a hundred requests; 0 of none.
#[must_use]
pub fn write_percent([reads, writes]: [u64; 2]) -> f64 {
    100.0 * writes as f64 / (reads + writes).max(1) as f64
}

/// Requests outstanding at most: what the calibrator takes.
const OUTSTANDING_MAX: usize = 1024;
/// The file: larger than a device's cache for what a run writes in these seconds, and quickly made.
pub const FILE: Bytes = Bytes(512 * Bytes::M);
/// How long each of its repeats is measured.
const REPEAT: Nanos = Nanos(500_000_000);
/// How long it may take in all, the making of the file included.
const BUDGET: Nanos = Nanos(15_000_000_000);

/// The rate of a mix: the median of its repeats, and their ends; requests a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Measures a mix on a device.
///
/// # Errors
/// Why it cannot be, in a sentence.
pub fn measure(device: &DeviceDescription, mix: Mix, seed: u64) -> Result<Measured, String> {
    let mut options = Options::new(Mode::Advanced, seed, String::new());
    options.advanced.cells = Cells::Point;
    options.advanced.num_small = Some(mix.outstanding);
    options.advanced.num_large = Some(0);
    options.advanced.write_percent = mix.write_percent;
    options.size_small = mix.block;
    options.file_size = Some(FILE);
    (options.duration, options.budget) = (Some(REPEAT), Some(BUDGET));
    let found = calibrate(device, &options, &()).map_err(|error| error.to_string())?;
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
        _ => Err("no repeat came to its end".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_a_share_of_all_requests_and_not_of_the_reads() {
        let percent = |updates| Mix::of_updates(Bytes(8192), 16, updates).write_percent;
        assert_eq!([0, 20, 50, 100].map(percent), [0, 17, 33, 50]);
        assert_eq!(Mix::of_updates(Bytes(8192), 5000, 0).outstanding, OUTSTANDING_MAX);
    }

    #[test]
    fn the_work_is_held_against_its_own_mix() {
        let asked = Mix::of_updates(Bytes(8192), 16, 20);
        let done = |reads, writes| asked.as_done([reads, writes]).write_percent;
        assert_eq!([done(83, 17), done(85, 15), done(91, 9), done(600, 400)], [17, 17, 9, 40]);
        assert_eq!([done(0, 10), done(10, 0), done(0, 0)], [100, 0, 0]);
    }
}
