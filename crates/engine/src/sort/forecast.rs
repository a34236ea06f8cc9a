//! Computes what a sort will do before it reads a row: runs, merges, and memory.
//!
//! The forecast repeats the decisions of a [`Sorter`](super::Sorter) with numbers of records in
//! place of records: strips are spilled while the area is full, then until the free memory holds
//! the buffers of one merge; if no such merge exists, runs are merged more than once.
//!
//! The bytes of a record follow from those of its key as in an index build: key and row id in one
//! word of 8 or 16 bytes, or else a header in front of the key and an entry of the area beside it.
//!
//! Limits: all keys have the same length, servers get equally many rows, and long keys are counted
//! without packing, which makes runs fewer than forecast. Bits of a row id are those of the number
//! of rows, and [`ROW_BITS_SPARE`] more, because blocks are not full.

use super::area::RecordSize;
use super::area::bytes::BytesArea;
use super::merge_plan::{self, MergeCost};
use super::plan::SortPlan;
use plumb_units::Bytes;

/// Bits of a row id that slots of blocks leave unused.
const ROW_BITS_SPARE: u32 = 3;
/// Bytes in front of a long key: its length and the row id.
const KEY_HEADER_BYTES: usize = 10;

/// Work of a sort server, computed before the sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Runs written during run generation; 0 if all records stay in memory.
    pub runs: u64,
    /// Records of each run but the last.
    pub run_rows: u64,
    /// Records that stay in memory until the last merge.
    pub memory_rows: u64,
    /// Most times that a record is read back; 0 if none is.
    pub passes: u64,
    /// Most runs that one merge takes.
    pub fan_in: u64,
    /// Bytes of a read request of the merge; 0 if nothing is read back.
    pub request: Bytes,
    /// Merges whose output is written as a run again.
    pub intermediate_merges: u64,
}

/// Returns the size of the record of a key of `key_bytes` bytes in a table of `rows` rows.
pub fn record_of_key(key_bytes: usize, rows: u64) -> RecordSize {
    let row_bits = u64::BITS - rows.leading_zeros() + ROW_BITS_SPARE;
    let bits = 8 * key_bytes as u64 + u64::from(row_bits);
    if bits < u64::from(u64::BITS) {
        RecordSize { bytes: 8, entry_bytes: 0 }
    } else if bits < u64::from(u128::BITS) {
        RecordSize { bytes: 16, entry_bytes: 0 }
    } else {
        RecordSize::new::<BytesArea>(KEY_HEADER_BYTES + key_bytes)
    }
}

/// Computes the work of one server that sorts `rows` records. `read_fac` is the read cost ratio
/// for merges of several passes, at least 1.
pub fn forecast(plan: &SortPlan, rows: u64, read_fac: f64) -> Forecast {
    let strips = plan.strips as u64;
    let strip = plan.strip().0;
    let strip_rows = plan.record.fitting(strip.0 as usize) as u64;
    let held = rows.div_ceil(strip_rows).min(strips);
    let mut at = Forecast {
        runs: rows.saturating_sub(strip_rows * strips).div_ceil(strip_rows),
        run_rows: strip_rows,
        memory_rows: 0,
        passes: 0,
        fan_in: 0,
        request: Bytes(0),
        intermediate_merges: 0,
    };
    if at.runs == 0 {
        return Forecast { run_rows: 0, memory_rows: rows, ..at };
    }
    for spilled in 0..=held {
        let runs = at.runs + spilled;
        let free = Bytes(strip.0 * (strips - held + spilled));
        if let Some(shape) = plan.one_pass(runs as usize, free) {
            let memory_rows = rows.saturating_sub(runs * strip_rows);
            let request = Bytes(u64::from(shape.chunk_blocks) * plan.block_bytes());
            return Forecast { runs, memory_rows, passes: 1, fan_in: runs, request, ..at };
        }
    }
    at.runs += held;
    let costs = MergeCost { read_fac, extra_pass: 1.0 };
    let blocks = plan.memory_blocks(plan.area);
    let shape = merge_plan::plan(at.runs as usize, blocks, plan.chunk_blocks_max, costs);
    at.passes = u64::from(merge_plan::passes(at.runs as usize, shape.fan_in));
    at.request = Bytes(u64::from(shape.chunk_blocks) * plan.block_bytes());
    let mut left = at.runs as usize;
    while let take @ 1.. = merge_plan::next_merge(left, shape.fan_in) {
        left = left - take + 1;
        at.intermediate_merges += 1;
        at.fan_in = at.fan_in.max(take as u64);
    }
    at.fan_in = at.fan_in.max(left as u64);
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use crate::sort::plan::TempSizes;

    fn of(area: &str, rows: u64, key_bytes: usize) -> Forecast {
        let mut settings = Settings::default();
        settings.set("sort_area_size", area, "test").expect("a size");
        settings.set("sort_direct_writes", "true", "test").expect("a word");
        let record = record_of_key(key_bytes, rows);
        let temp = TempSizes::of_new(&settings);
        let plan = SortPlan::of_settings(&settings, temp, record, rows).expect("a plan");
        forecast(&plan, rows, 5.0)
    }

    #[test]
    fn records_are_words_while_key_and_row_fit_them() {
        let bytes = |key, rows| record_of_key(key, rows).bytes;
        assert_eq!(bytes(4, 1_000_000), 8);
        assert_eq!(bytes(8, 1_000_000), 16);
        assert_eq!(bytes(12, 1_000_000), 16);
        assert_eq!(bytes(13, 1_000_000), 16);
        assert_eq!(bytes(14, 1_000_000), 24);
    }

    #[test]
    fn what_fits_the_area_is_never_written() {
        let small = of("4M", 200_000, 8);
        assert_eq!((small.runs, small.memory_rows, small.passes), (0, 200_000, 0));
    }

    #[test]
    fn a_small_area_needs_more_passes_and_a_large_one_fewer_runs() {
        let [tiny, middle, large] = ["64K", "1M", "16M"].map(|area| of(area, 5_000_000, 8));
        assert!(tiny.passes > 1 && tiny.intermediate_merges > 0, "{tiny:?}");
        assert_eq!((large.passes, large.intermediate_merges), (1, 0), "{large:?}");
        assert!(tiny.runs > middle.runs && middle.runs > large.runs);
        assert!(large.memory_rows > 0, "a part of the records is never written: {large:?}");
    }
}
