//! The workload's mix of reads and writes, and the share of the device's own rate it reached.

use super::Evidence;
use crate::device_mix;
use crate::evidence::MixPoint;
use plumb_record::{MixLimit, MixRate};
use plumb_units::path_text;

/// Compares single-block reads and writes of the database writers with the
/// device's rate for that mix.
pub(super) fn mix(seen: &Evidence) -> Option<MixLimit> {
    let found = seen.mix.as_ref()?;
    let period = &seen.measured.period;
    let requests = device_mix::requests(period);
    let rate = |point: &MixPoint| {
        let rate = point.rate.as_ref().ok()?;
        Some(MixRate { median: rate.median, least: rate.least, most: rate.most })
    };
    let (before, after) = (&found.before, &found.after);
    let refused = [before, after].into_iter().find_map(|point| point.rate.as_ref().err().cloned());
    Some(MixLimit {
        path: path_text(&found.path),
        block_bytes: before.mix.block.0,
        outstanding: before.mix.outstanding as u64,
        write_percent: before.mix.write_percent,
        after_write_percent: Some(after.mix.write_percent),
        before: rate(before),
        after: rate(after),
        refused: refused.unwrap_or_default(),
        reached_per_s: requests.iter().sum::<u64>() as f64 / period.elapsed.seconds().max(1e-9),
        reached_write_percent: device_mix::write_percent(requests),
        file_bytes: before.mix.file().0,
    })
}
