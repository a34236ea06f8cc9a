//! The device's limits, measured in the same run, and what the run reached of them.

use super::Story;
use super::phases::{PROBE, Timeline};
use crate::measure;
use crate::record::{Calibration, DeviceLimits, LimitShare};
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance, probe};
use plumb_events::{IoStream, SessionKind, clock};
use plumb_io::Disk;
use plumb_units::Bytes;
use serde::{Deserialize, Serialize};

/// How much is read to find the sequential rate.
const SEQUENTIAL_BYTES: Bytes = Bytes(256 * Bytes::M);
/// The block size that the record's random read is stated for.
const RECORD_BLOCK_BYTES: u64 = 8 * Bytes::K;

/// What was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Bytes a second of large reads, many in flight.
    pub sequential_read: f64,
    /// Nanoseconds of one random read of a block, nothing else in flight.
    pub block_read_ns: u64,
}

/// Measures the device under a tablespace with reads of its own files; `None`
/// for files in memory, which have no device.
///
/// # Errors
/// When a read fails.
pub fn calibrate(instance: &Instance, purpose: Purpose) -> Result<Option<Calibrated>, EngineError> {
    if matches!(instance.access.disk, Disk::Memory(_)) {
        return Ok(None);
    }
    measure::make_cold(instance);
    let begin = clock::now();
    let session = instance.recorder.session("device probe", SessionKind::Probe);
    let sequential = probe::sequential_read(instance, &session, purpose, SEQUENTIAL_BYTES.0)?;
    let cost = probe::measure(instance, &session, purpose)?;
    instance.recorder.phase(PROBE, begin, 0);
    Ok(Some(Calibrated {
        sequential_read: sequential,
        block_read_ns: (cost.block_read_seconds * 1e9) as u64,
    }))
}

/// Measures what the plan of a merge may ask for, so that no build does while it is timed: which
/// of a study's arms ask depends on their settings.
///
/// # Errors
/// When a read fails.
pub fn learn_read_cost(instance: &Instance) -> Result<(), EngineError> {
    let session = instance.recorder.session("device probe", SessionKind::Probe);
    super::receipts::plan_of(instance)?.learn_read_cost(instance, &session)
}

/// What was measured in this run, and what the run reached of the device's limits.
pub(super) fn calibration(story: &Story<'_>) -> Option<Calibration> {
    let shares = shares(story);
    let calibrated = story.calibrated;
    if calibrated.is_none() && shares.is_empty() {
        return None;
    }
    let block_bytes = story.instance.tablespace(Purpose::Users).block_size.bytes() as u64;
    let first_file = story.instance.tablespace(Purpose::Users).files.first();
    let directory = first_file.and_then(|file| file.file.path().parent()).unwrap_or(story.instance.home());
    Some(Calibration {
        path: directory.display().to_string(),
        sequential_read_bytes_per_s: calibrated.map(|found| found.sequential_read),
        random_read_8k_ns: calibrated
            .filter(|_| block_bytes == RECORD_BLOCK_BYTES)
            .map(|found| found.block_read_ns),
        shares,
    })
}

/// Streams of the build against the device's sequential limits: those of a calibration
/// that holds for it, otherwise the raw read of the same run.
fn shares(story: &Story<'_>) -> Vec<LimitShare> {
    let stored = match story.limits {
        Some(DeviceLimits::Calibrated(stored)) => Some(stored),
        _ => None,
    };
    let (read, write) = match stored {
        Some(stored) => (
            stored.sequential_read_bytes_per_s.map(|rate| ("the device's sequential read", rate)),
            stored.sequential_write_bytes_per_s.map(|rate| ("the device's sequential write", rate)),
        ),
        None => (story.calibrated.map(|found| ("the raw sequential read", found.sequential_read)), None),
    };
    let timeline = Timeline::of(story);
    let reached = [
        ("table reads of the scan", Purpose::Users, timeline.rate_of_scan(), read),
        ("file reads of run generation", Purpose::Users, timeline.rate_in_build(IoStream::FileReads), read),
        ("temp reads of the merges", Purpose::Temp, timeline.rate_in_build(IoStream::TempReads), read),
        ("temp writes of the runs", Purpose::Temp, timeline.rate_in_build(IoStream::TempWrites), write),
        ("index writes", Purpose::Indx, timeline.rate_in_build(IoStream::IndexWrites), write),
    ];
    let share = |(what, purpose, rate, limit): (&str, Purpose, Option<f64>, Option<(&str, f64)>)| {
        let (name, limit) = limit.filter(|_| is_beside_the_tables(story, purpose))?;
        Some(LimitShare {
            what: what.to_string(),
            reached_bytes_per_s: rate?,
            limit: name.to_string(),
            limit_bytes_per_s: limit,
        })
    };
    reached.into_iter().filter_map(share).collect()
}

/// Whether the files of a tablespace lie on the file system of the tables, whose limits are known.
fn is_beside_the_tables(story: &Story<'_>, purpose: Purpose) -> bool {
    let mount = |purpose: Purpose| {
        let files = &story.instance.tablespace(purpose).files;
        let mounts = files.iter().map(|file| {
            // The innermost directory that was described.
            let under = story.devices.iter().filter(|device| file.file.path().starts_with(&device.path));
            under.max_by_key(|device| device.path.as_os_str().len()).map(|device| &device.mount)
        });
        mounts.collect::<Vec<_>>()
    };
    let tables = mount(Purpose::Users);
    mount(purpose).iter().all(|mount| tables.iter().all(|table| table == mount))
}
