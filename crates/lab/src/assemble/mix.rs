//! The workload's mix of reads and writes, and what the work reached of the device's own rate for it.

use super::Evidence;
use crate::device_mix;
use crate::record::{MixLimit, MixRate};
use plumb_events::IoStream;
use plumb_units::path_text;

/// Reads of single blocks into the cache, and writes of the database writers, against the device's rate for such a mix.
pub(super) fn mix(seen: &Evidence) -> Option<MixLimit> {
    let found = seen.mix.as_ref()?;
    let period = &seen.measured.period;
    let reads = period.stream(IoStream::CacheReads).count as f64;
    let writes = period.stream(IoStream::DataWrites).count as f64;
    let rate = |rate: &Result<device_mix::Measured, String>| {
        let rate = rate.as_ref().ok()?;
        Some(MixRate { median: rate.median, least: rate.least, most: rate.most })
    };
    let [before, after] = &found.rates;
    let refused = [before, after].into_iter().find_map(|rate| rate.as_ref().err().cloned());
    Some(MixLimit {
        path: path_text(&found.path),
        block_bytes: found.mix.block.0,
        outstanding: found.mix.outstanding as u64,
        write_percent: found.mix.write_percent,
        before: rate(before),
        after: rate(after),
        refused: refused.unwrap_or_default(),
        reached_per_s: (reads + writes) / period.elapsed.seconds().max(1e-9),
        reached_write_percent: 100.0 * writes / (reads + writes).max(1.0),
        file_bytes: device_mix::FILE.0,
    })
}
