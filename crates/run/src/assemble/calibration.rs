//! The device's limits, measured in the same run, and the share of them that the run reached.

use super::Evidence;
use super::phases::Timeline;
use plumb_engine::storage::tablespace::Purpose;
use plumb_events::IoStream;
use plumb_record::{DeviceLimits, LimitShare, MeasuredLimits};
use plumb_units::Bytes;

/// Block size of the random read in the record.
const RECORD_BLOCK_BYTES: u64 = 8 * Bytes::K;

/// Returns the limits measured in this run, and the share of them that it reached.
pub(super) fn calibration(seen: &Evidence) -> Option<MeasuredLimits> {
    let shares = shares(seen);
    let calibrated = seen.calibrated.as_ref();
    let read = calibrated.map(|found| &found.sequential_read);
    if calibrated.is_none() && shares.is_empty() {
        return None;
    }
    let block_bytes = seen.inside.tablespace(Purpose::Users).block_size.bytes() as u64;
    let first_file = seen.inside.tablespace(Purpose::Users).files.first();
    let directory = first_file.and_then(|file| file.parent()).unwrap_or(&seen.inside.home);
    Some(MeasuredLimits {
        path: directory.display().to_string(),
        sequential_read_bytes_per_s: read.map(|rate| rate.median),
        sequential_read_low_bytes_per_s: read.map(|rate| rate.low),
        sequential_read_high_bytes_per_s: read.map(|rate| rate.high),
        sequential_read_unsettled: read.and_then(|rate| rate.reason.clone()),
        random_read_8k_ns: calibrated
            .filter(|_| block_bytes == RECORD_BLOCK_BYTES)
            .map(|found| found.block_read_ns),
        shares,
    })
}

/// A rate of the device in bytes per second, with the ends of its interval if it has one.
#[derive(Clone, Copy)]
struct Limit {
    name: &'static str,
    rate: f64,
    ends: Option<[f64; 2]>,
}

/// Compares streams of the build with the device's sequential limits. They are from a calibration
/// that is valid for it, otherwise from the raw read of the same run.
fn shares(seen: &Evidence) -> Vec<LimitShare> {
    let stored = match &seen.limits {
        Some(DeviceLimits::Calibrated(stored)) => Some(stored),
        _ => None,
    };
    let of_stored = |name, rate: Option<f64>| rate.map(|rate| Limit { name, rate, ends: None });
    let (read, write) = match stored {
        Some(stored) => (
            of_stored("the device's sequential read", stored.sequential_read_bytes_per_s),
            of_stored("the device's sequential write", stored.sequential_write_bytes_per_s),
        ),
        None => {
            // If the parts differ by half, their median is no limit.
            let found = seen.calibrated.as_ref().map(|found| &found.sequential_read);
            let settled = found.filter(|rate| rate.settled).map(|rate| Limit {
                name: "the raw sequential read",
                rate: rate.median,
                ends: Some([rate.low, rate.high]),
            });
            (settled, None)
        }
    };
    let timeline = Timeline::of(seen);
    let reached = [
        ("table reads of the scan", Purpose::Users, timeline.rate_of_scan(), read),
        ("file reads of run generation", Purpose::Users, timeline.rate_in_build(IoStream::FileReads), read),
        ("temp reads of the merges", Purpose::Temp, timeline.rate_in_build(IoStream::TempReads), read),
        ("temp writes of the runs", Purpose::Temp, timeline.rate_in_build(IoStream::TempWrites), write),
        ("index writes", Purpose::Indx, timeline.rate_in_build(IoStream::IndexWrites), write),
    ];
    let share = |(what, purpose, rate, limit): (&str, Purpose, Option<f64>, Option<Limit>)| {
        let limit = limit.filter(|_| is_beside_the_tables(seen, purpose))?;
        Some(LimitShare {
            what: what.to_string(),
            reached_bytes_per_s: rate?,
            limit: limit.name.to_string(),
            limit_bytes_per_s: limit.rate,
            limit_low_bytes_per_s: limit.ends.map(|[low, _]| low),
            limit_high_bytes_per_s: limit.ends.map(|[_, high]| high),
        })
    };
    reached.into_iter().filter_map(share).collect()
}

/// True if a tablespace lies on the file system of the tables: only its device was measured.
fn is_beside_the_tables(seen: &Evidence, purpose: Purpose) -> bool {
    let mount = |purpose: Purpose| {
        let files = &seen.inside.tablespace(purpose).files;
        let mounts = files.iter().map(|file| {
            // The innermost directory with a description.
            let under = seen.devices.iter().filter(|device| file.starts_with(&device.path));
            under.max_by_key(|device| device.path.as_os_str().len()).map(|device| &device.mount)
        });
        mounts.collect::<Vec<_>>()
    };
    let tables = mount(Purpose::Users);
    mount(purpose).iter().all(|mount| tables.iter().all(|table| table == mount))
}
