//! The device's limits, measured in the same run, and what the run reached of them.

use super::Story;
use super::phases::{PROBE, Timeline};
use crate::measure;
use plumb_engine::storage::tablespace::Purpose;
use plumb_engine::{EngineError, Instance, probe};
use plumb_events::{IoStream, SessionKind, clock};
use plumb_io::Disk;
use plumb_report::context::{Calibration, LimitShare};
use plumb_units::Bytes;

/// How much is read to find the sequential rate.
const SEQUENTIAL_BYTES: Bytes = Bytes(256 * Bytes::M);
/// The block size that the record's random read is stated for.
const RECORD_BLOCK_BYTES: u64 = 8 * Bytes::K;

/// What was measured.
#[derive(Debug, Clone, Copy)]
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
    let session = instance.recorder.session("device probe", SessionKind::Foreground);
    let sequential = probe::sequential_read(instance, &session, purpose, SEQUENTIAL_BYTES.0)?;
    let cost = probe::measure(instance, &session, purpose)?;
    instance.recorder.phase(PROBE, begin, 0);
    Ok(Some(Calibrated {
        sequential_read: sequential,
        block_read_ns: (cost.block_read_seconds * 1e9) as u64,
    }))
}

pub(super) fn calibration(story: &Story<'_>) -> Option<Calibration> {
    let calibrated = story.calibrated?;
    let block_bytes = story.instance.tablespace(Purpose::Users).block_size.bytes() as u64;
    let first_file = story.instance.tablespace(Purpose::Users).files.first();
    let directory = first_file.and_then(|file| file.file.path().parent()).unwrap_or(story.instance.home());
    Some(Calibration {
        path: directory.display().to_string(),
        sequential_read_bytes_per_s: Some(calibrated.sequential_read),
        sequential_write_bytes_per_s: None,
        random_read_8k_ns: (block_bytes == RECORD_BLOCK_BYTES).then_some(calibrated.block_read_ns),
        shares: shares(story, calibrated.sequential_read),
    })
}

/// Streams of the build that read sequentially, against the sequential limit.
fn shares(story: &Story<'_>, limit: f64) -> Vec<LimitShare> {
    let timeline = Timeline::of(story);
    let reached = [
        ("table reads of the scan", timeline.rate_of_scan()),
        ("file reads of run generation", timeline.rate_in_build(IoStream::FileReads)),
        ("temp reads of the merges", timeline.rate_in_build(IoStream::TempReads)),
    ];
    let share = |(what, rate): (&str, Option<f64>)| {
        Some(LimitShare {
            what: what.to_string(),
            reached_bytes_per_s: rate?,
            limit: "the raw sequential read".to_string(),
            limit_bytes_per_s: limit,
        })
    };
    reached.into_iter().filter_map(share).collect()
}
